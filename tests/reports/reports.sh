#!/usr/bin/env bash
# reports.sh REHEARSE TREE: every scenario that says what it expects does so. One line each; the
# expectations that it misses follow.
rehearse=$1 missed=0 count=0
cd "$2" || exit 2

while read -r scenario; do
  answer=$("$rehearse" check "$scenario" 2>&1)
  code=$?
  count=$((count + 1))
  ((code == 0)) || missed=$((missed + 1))
  case $code in
    0) echo "ok    $scenario" ;;
    1) echo "MISS  $scenario"; grep -E '^ +(key|MISS)' <<<"$answer" ;;
    *) echo "ERROR $scenario"; echo "$answer" ;;
  esac
done < <(grep -rlE '^expect:' --include='*.yaml' scenarios | sort)
((count > 0)) || { echo "no scenario under scenarios/ expects anything"; exit 1; }
echo "$((count - missed)) of $count scenarios as expected"
exit $((missed > 0))
