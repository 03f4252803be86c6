#!/bin/sh
# Makes the reference's own environment, once: Transformers on the very LibTorch
# that the trainer links (same version, same wheel). Prints the path of its
# Python; fails where it cannot be had. About 3 GB, in the cache.
set -eu
cache=${TRAINFARE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trainfare}
environment=$cache/reference-2.11.0
complete=$environment/complete-1
if [ ! -e "$complete" ]; then
  mkdir -p "$cache"
  # Two tests may ask at once.
  exec 9>"$cache/reference.lock"
  flock 9
fi
if [ ! -e "$complete" ]; then
  echo "reference_env.sh: installing torch 2.11.0 and transformers into" \
    "$environment" >&2
  python3 -m venv "$environment" >&2
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    torch==2.11.0 'transformers==4.57.*' safetensors tokenizers numpy >&2
  touch "$complete"
fi
echo "$environment/bin/python"
