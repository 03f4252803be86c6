#!/usr/bin/env bash
# libFuzzer on every reader, under AddressSanitizer and UBSan:
#
#   tests/fuzz/run.sh SECONDS [TARGET...]
#
# New inputs go to build/fuzz/corpus/TARGET; a finding stops the script and
# stays in build/fuzz/findings. What it found belongs into tests/fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [TARGET...]}
shift
build=build/fuzz
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
  -DTRAINFARE_TRAINER=OFF -DTRAINFARE_BENCHMARKS=OFF -DTRAINFARE_FUZZ=ON \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g" \
  -DTRAINFARE_SANITIZE=address,undefined "${launcher[@]}" >/dev/null
targets=("$@")
if ((${#targets[@]} == 0)); then
  for folder in tests/fuzz/corpus/*/; do
    targets+=("$(basename "$folder")")
  done
fi
ninja -C "$build" "${targets[@]/#/fuzz_}"
mkdir -p "$build/findings"
for target in "${targets[@]}"; do
  mkdir -p "$build/corpus/$target"
  printf 'fuzz: %s\n' "$target"
  "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -dict=tests/fuzz/words.dict -artifact_prefix="$build/findings/$target-" \
    -print_final_stats=1 "$build/corpus/$target" "tests/fuzz/corpus/$target"
done
