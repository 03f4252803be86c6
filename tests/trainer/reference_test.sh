#!/bin/sh
# reference_test.sh SCRIPT ARGUMENT...: runs a comparison with the reference
# implementation in its own environment; 77 (skipped) where that is not to be had.
set -eu
here=$(dirname "$0")
if ! python=$("$here/reference_env.sh"); then
  echo "SKIPPED: no environment for Transformers (network or python3-venv" \
    "missing?); tests/trainer/reference_env.sh makes it"
  exit 77
fi
script=$1
shift
export HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error TOKENIZERS_PARALLELISM=false
exec "$python" "$here/$script" "$@"
