#!/usr/bin/env bash
# libFuzzer on every reader, under AddressSanitizer and UBSan:
#
#   tests/fuzz/run.sh SECONDS [TARGET...]
#
# New inputs and findings stay in build/asan-ubsan/tests/fuzz/found; a finding
# stops the script. What it found belongs into tests/fuzz/corpus. Inputs and CPU
# seconds of each target are added to totals.tsv there. Readers of files write
# each input first: TMPDIR=/dev/shm makes that twice as fast.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [TARGET...]}
shift
cmake --preset asan-ubsan >/dev/null
cmake --build --preset asan-ubsan --target fuzz_reader
targets=("$@")
if ((${#targets[@]} == 0)); then
  for folder in tests/fuzz/corpus/*/; do
    targets+=("$(basename "$folder")")
  done
fi
found=build/asan-ubsan/tests/fuzz/found
log=$(mktemp)
trap 'rm -f "$log"' EXIT
TIMEFORMAT='cpu_seconds %U'
for target in "${targets[@]}"; do
  mkdir -p "$found/$target"
  printf 'fuzz: %s\n' "$target"
  { time TRAINFARE_FUZZ_TARGET="$target" build/asan-ubsan/bin/fuzz_reader \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -dict=tests/fuzz/words.dict -artifact_prefix="$found/$target-" \
    -print_final_stats=1 "$found/$target" "tests/fuzz/corpus/$target"; } \
    2>&1 | tee "$log"
  awk -v target="$target" '
    /number_of_executed_units/ { inputs = $2 }
    /^cpu_seconds/ { cpu = $2 }
    END { printf "%s\t%s\t%s\n", target, inputs, cpu }' "$log" \
    >>"$found/totals.tsv"
done
