"""Tables of measurements without the rows of models that ranks have parts of."""

import contextlib
import csv
import dataclasses
import pathlib
import tempfile

# Columns of ways to split a model, as the importer of tables knows them
# (calibrate/records/import/table_parallel.cc).
WAYS = ["tp", "tensor_parallel", "pp", "pipeline_parallel",
        "cp", "context_parallel", "ep", "expert_parallel"]


def is_whole(row):
    """A way that is not stated, or of one rank, is none."""
    return all((row.get(way) or "1").strip() in ("1", "1.0") for way in WAYS)


def copy_whole(source, target):
    with open(source, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if is_whole(row)]
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, reader.fieldnames, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@contextlib.contextmanager
def of_whole_models(given):
    """What was given, with a folder of such tables for its own."""
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder)
        for source in given.tables.rglob("*.csv"):
            target = there / source.relative_to(given.tables)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_whole(source, target)
        yield dataclasses.replace(given, tables=there)
