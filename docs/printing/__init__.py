"""What docs/results.py prints: a module a page of docs/results/, or for two."""
