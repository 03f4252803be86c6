#!/usr/bin/env bash
# What the action does beside building (action.yml); its words come from the
# environment, so that none of them is ever read as a script.
#   answer.sh sources   prints root= and hash= of what is built
#   answer.sh ask       asks trainfare, comments, and exits as it does
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# Every source gets one date: a cached build is of the same sources, which were
# only just unpacked, and would be newer than all that was made of them.
sources() {
  local files
  files=$(mktemp)
  (
    cd "$root"
    find . \( -path ./build -o -path ./.git \) -prune -o -type f -print0 |
      LC_ALL=C sort -z >"$files"
    xargs -0 touch -d @1000000000 <"$files"
    printf 'root=%s\nhash=%s\n' "$root" \
      "$(xargs -0 sha256sum <"$files" | sha256sum | cut -d ' ' -f 1)"
  )
  rm -f "$files"
}

# One comment a question, however often the pull request changes.
write_comment() { # <file>
  local comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments" ours
  ours=$(gh api --paginate "$comments" \
    --jq '.[] | select(.body | startswith(env.MARK)) | .id') || return
  if [[ -n $ours ]]; then
    gh api --silent --method PATCH -F "body=@$1" \
      "repos/$GITHUB_REPOSITORY/issues/comments/${ours%%$'\n'*}"
  else
    gh api --silent --method POST -F "body=@$1" "$comments"
  fi
}

ask() {
  local words=() options=() limit code=0
  local folder=${RUNNER_TEMP:-$(mktemp -d)}
  local answer=$folder/trainfare.json page=$folder/trainfare.md
  read -ra words <<<"${ASK//$'\n'/ }"
  if [[ -n ${BASELINE:-} ]]; then
    options+=(--baseline "$BASELINE")
  fi
  while IFS= read -r limit; do
    [[ -z ${limit// /} ]] || options+=(--fail-if "$limit")
  done <<<"${FAIL_IF:-}"
  rm -f "$answer"
  "$PROGRAM" "${words[@]}" "${options[@]}" --quiet --format markdown \
    --export "$answer" >"$page.answer" 2>"$page.said" || code=$?
  cat "$page.said" >&2
  if [[ ! -f $answer ]]; then
    exit "$code"
  fi
  if [[ -n ${BASELINE:-} ]]; then
    # Shorter than the answer with its difference, which the summary has.
    "$PROGRAM" diff "$BASELINE" "$answer" --quiet --format markdown \
      >"$page.comment"
  else
    cp "$page.answer" "$page.comment"
  fi
  export MARK="<!-- trainfare $ASK -->"
  # A comment has 65536 characters at most.
  {
    printf '%s\n### trainfare\n\n' "$MARK"
    head -c 60000 "$page.comment"
    # Indented it is code.
    [[ ! -s $page.said ]] ||
      printf '\n%s\n' "$(head -c 4000 "$page.said" | sed 's/^/    /')"
  } >"$page"
  if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    cat "$page.answer" "$page.said" >>"$GITHUB_STEP_SUMMARY"
  fi
  if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    printf 'answer=%s\n' "$answer" >>"$GITHUB_OUTPUT"
  fi
  if [[ ${COMMENT:-true} == true && -n ${PULL_REQUEST:-} ]]; then
    # The token of a fork's pull request may not write.
    write_comment "$page" ||
      echo "::warning::trainfare could not comment on the pull request"
  fi
  exit "$code"
}

case ${1:-} in
  sources | ask) "$1" ;;
  *)
    echo "usage: answer.sh sources | ask" >&2
    exit 2
    ;;
esac
