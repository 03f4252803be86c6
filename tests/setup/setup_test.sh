#!/usr/bin/env bash
# Runs one case against a copy of ./setup in a scratch folder, on a PATH where
# apt and its like are stand-ins: no case installs or fetches anything.
#   setup_test.sh <case>
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tools=$scratch/tools
export TRAINFARE_CACHE=$scratch/cache APT_CALLS=$scratch/apt_calls TMPDIR=$scratch
export TRAINFARE_TRAINER=ON TRAINFARE_PACKAGES=ON TRAINFARE_WERROR=OFF
export ABSENT="" APT_EXIT=0 USER_ID=0

prepare_scratch() {
  local tool
  mkdir "$tools"
  for tool in awk bash cat cmake df dirname env flock grep head mkdir mktemp mv \
    ninja nproc python3 rm sed tail touch uname unzip; do
    if command -v "$tool" >/dev/null; then
      ln -s "$(command -v "$tool")" "$tools/$tool"
    fi
  done
  # shellcheck disable=SC2016  # expanded when the stand-in runs
  stand_in id 'echo "$USER_ID"'
  # shellcheck disable=SC2016
  stand_in dpkg-query 'for package in "${@:3}"; do
    [[ " $ABSENT " == *" $package "* ]] || echo "$package installed"
  done'
  # shellcheck disable=SC2016
  stand_in apt-get 'echo "${AS_ROOT:-user} $*" >>"$APT_CALLS"
  [[ $* != *install* || $APT_EXIT == 0 ]] || {
    echo "Reading package lists..."
    echo "E: Unable to locate package libceres-dev" >&2
    exit "$APT_EXIT"
  }'

  cp "$root/setup" "$root/CMakePresets.json" "$scratch/"
  cat >"$scratch/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.24)
project(fixture LANGUAGES NONE)
add_custom_command(OUTPUT made COMMAND ${CMAKE_COMMAND} -E touch made)
add_custom_target(programs ALL DEPENDS made)
file(WRITE ${CMAKE_BINARY_DIR}/options
  "${TRAINFARE_TRAINER} ${TRAINFARE_LIBTORCH_DIR}")
END
}

stand_in() { # <name> <body>
  rm -f "$tools/$1"
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$tools/$1"
  chmod +x "$tools/$1"
}

# Runs ./setup; sets `status` and `printed`, both streams in one.
run_setup() {
  status=0
  printed=$(PATH=$tools "$tools/bash" "$scratch/setup" "$@" 2>&1 </dev/null) ||
    status=$?
}

fail() {
  printf '%s\nexit status %s, printed:\n%s\n' "$*" "$status" "$printed" >&2
  exit 1
}

expect_status() { ((status == $1)) || fail "expected exit status $1"; }

# The last line, matched as a pattern, and how many lines there are in all.
expect_last_line() { # <lines> <pattern>
  local lines
  mapfile -t lines <<<"$printed"
  ((${#lines[@]} == $1)) || fail "expected $1 lines, got ${#lines[@]}"
  # shellcheck disable=SC2053  # a pattern on purpose
  [[ ${lines[-1]} == $2 ]] || fail "expected a last line like: $2"
}

# What an unpacked LibTorch looks like to ./setup.
pretend_libtorch() {
  local libtorch_wheels
  # shellcheck source=/dev/null
  source <(sed -n '/^libtorch_wheels="/,/"$/p' "$root/setup")
  mkdir -p "$TRAINFARE_CACHE/libtorch-2.11.0"
  printf '%s\n' "$libtorch_wheels" >"$TRAINFARE_CACHE/libtorch-2.11.0/wheels.txt"
}

expect_nothing_left_in_cache() {
  local left=("$TRAINFARE_CACHE"/*)
  [[ ${left[*]} == "$TRAINFARE_CACHE/*" ]] || fail "left behind: ${left[*]}"
}

case_usage() {
  local arguments
  for arguments in "" "biuld" "build twice" "check formt"; do
    # shellcheck disable=SC2086  # two words are two arguments
    run_setup $arguments
    expect_status 2
    [[ $printed == *"usage: ./setup run | test | build"* ]] || fail "no usage"
  done
  TRAINFARE_TRAINER=maybe run_setup build
  expect_status 2
  run_setup --help
  expect_status 0
}

case_no_apt() {
  rm "$tools/apt-get"
  run_setup test
  expect_status 1
  expect_last_line 1 "setup: no apt-get here*libceres-dev*TRAINFARE_PACKAGES=OFF ./setup test"
}

case_no_root() {
  pretend_libtorch
  export ABSENT="libceres-dev" USER_ID=1000
  run_setup build
  expect_status 1
  expect_last_line 2 "setup: needs root*apt-get install libceres-dev"
  [[ ! -e $APT_CALLS ]] || fail "called apt-get without root"
}

case_apt_fails() {
  pretend_libtorch
  export ABSENT="libceres-dev" APT_EXIT=100
  run_setup build
  expect_status 1
  expect_last_line 2 "setup: apt-get could not install libceres-dev: E: Unable*"
}

case_installs_only_missing() {
  pretend_libtorch
  export ABSENT="libfmt-dev libceres-dev" USER_ID=1000
  # shellcheck disable=SC2016
  stand_in sudo '[[ $1 == -n ]] || AS_ROOT=root exec "$@"'
  run_setup build
  expect_status 0
  [[ $printed == "setup: will install with apt-get: libceres-dev libfmt-dev"$'\n'* ]] ||
    fail "does not say first what it installs"
  [[ $(tail -n 1 "$APT_CALLS") == "root "*" install "*" libceres-dev libfmt-dev" ]] ||
    fail "called apt-get $(<"$APT_CALLS")"
}

case_unwritable_cache() {
  # Even root cannot make a folder there.
  TRAINFARE_CACHE=/dev/null/cache run_setup build
  expect_status 1
  expect_last_line 2 \
    "setup: cannot write to /dev/null/cache;*TRAINFARE_TRAINER=OFF ./setup build"
}

case_no_space() {
  # shellcheck disable=SC2016
  stand_in df 'printf " Avail\n   100\n"'
  run_setup build
  expect_status 1
  expect_last_line 2 "setup: $TRAINFARE_CACHE has 100 MB free and LibTorch takes*"
  expect_nothing_left_in_cache
}

case_no_network() {
  PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS='' PIP_RETRIES=0 \
    PIP_INDEX_URL=http://127.0.0.1:9/ run_setup test
  expect_status 1
  expect_last_line 2 \
    "setup: LibTorch 2.11.0 could not be fetched, is there a network?*TRAINFARE_TRAINER=OFF ./setup test"
  expect_nothing_left_in_cache
}

case_wrong_wheel() {
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "no pip here, nothing to test"
    exit 77
  fi
  mkdir "$scratch/wheels"
  printf 'no wheel' \
    >"$scratch/wheels/torch-2.11.0-cp311-cp311-manylinux_2_28_$(uname -m).whl"
  PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS=$scratch/wheels PIP_NO_INDEX=1 \
    run_setup build
  expect_status 1
  expect_last_line 2 "setup: refused a file that is not the LibTorch*SHA-256*"
  expect_nothing_left_in_cache
}

case_no_trainer() {
  TRAINFARE_TRAINER=OFF run_setup build
  expect_status 0
  [[ $(<"$scratch/build/release/options") == "OFF " ]] || fail "wrong options"
  [[ ! -e $TRAINFARE_CACHE ]] || fail "made a cache that nobody needs"
}

case_repeats_at_no_cost() {
  pretend_libtorch
  run_setup build
  expect_status 0
  [[ $(<"$scratch/build/release/options") == \
    "ON $TRAINFARE_CACHE/libtorch-2.11.0/torch" ]] || fail "wrong options"
  touch "$scratch/first_run_over"
  run_setup build
  expect_status 0
  expect_last_line 1 "ninja: no work to do."
  [[ $scratch/first_run_over -nt $scratch/build/release/made ]] ||
    fail "built again"
  [[ ! -e $APT_CALLS ]] || fail "called apt-get"
}

prepare_scratch
"case_$1"
