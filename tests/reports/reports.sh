#!/usr/bin/env bash
# reports.sh REHEARSE TREE: every scenario that says what it expects does so. One line each; the
# expectations that it misses follow. A figure that is known to be missed is declared in the file,
# "# misses KEY: why"; a declared one that is met fails as well, so that the line goes.
rehearse=$1 missed=0 known=0 count=0
cd "$2" || exit 2

while read -r scenario; do
  answer=$("$rehearse" check "$scenario" 2>&1)
  code=$?
  count=$((count + 1))
  declared=$(sed -nE 's/^# misses ([a-z_]+):.*/\1/p' "$scenario" | sort)
  found=$(awk '$1 == "MISS" { print $2 }' <<<"$answer" | sort)
  if ((code > 1)); then
    missed=$((missed + 1))
    echo "ERROR $scenario"
    echo "$answer"
  elif [[ $found != "$declared" ]]; then
    missed=$((missed + 1))
    echo "MISS  $scenario (declared: ${declared:-none})"
    grep -E '^ +(key|MISS)' <<<"$answer"
  elif [[ -n $declared ]]; then
    known=$((known + 1))
    echo "not yet $scenario"
    grep -E '^ +(key|MISS)' <<<"$answer"
    grep -E '^# misses ' "$scenario"
  else
    echo "ok    $scenario"
  fi
done < <(grep -rlE '^expect:' --include='*.yaml' scenarios | sort)
((count > 0)) || { echo "no scenario under scenarios/ expects anything"; exit 1; }
echo "$((count - missed - known)) of $count scenarios as expected, $known not yet"
exit $((missed > 0))
