#!/usr/bin/env bash
# golden.sh REHEARSE CASE: each stage of CASE/scenario.yaml that has a golden file beside it, as text,
# against that file. Says the first line that differs. With REHEARSE_ACCEPT=1 (tools/accept) rewrites the
# files instead; an empty file asks for a new stage to be pinned.
rehearse=$(realpath "$1")
cd "$(dirname "$0")/$2" || exit 2
moved=0
scratch=$(mktemp) && trap 'rm -f "$scratch"' EXIT

# stage FILE CODE ARGS...: `rehearse ARGS` exits with a code of CODE and prints FILE.
stage() {
  local file=$1 codes=$2 code
  shift 2
  [[ -e $file ]] || return 0
  "$rehearse" "$@" >"$scratch"
  code=$?
  [[ $codes == *"$code"* ]] || { echo "rehearse $* exits with $code"; exit 1; }
  if [[ -n ${REHEARSE_ACCEPT:-} ]]; then
    cat "$scratch" >"$file"
  elif ! cmp -s "$file" "$scratch"; then
    moved=1
    echo "$file has moved; the first difference:"
    diff "$file" "$scratch" | head -n 6
  fi
}

stage plan.txt 0 plan scenario.yaml
stage program.txt 0 program scenario.yaml --rank 0
stage timeline.txt 0 timeline scenario.yaml
stage report.json 01 run scenario.yaml --json
((moved == 0)) || echo "If that is right, accept it with tools/accept and review the diff."
exit $moved
