#!/usr/bin/env bash
# hygiene.sh TREE: small rules for all files that git knows (or would add).
cd "$1" || exit 2
found=0
complain() { while read -r line; do found=1; echo "$line"; done; }

mapfile -t files < <(
  { git ls-files --cached --others --exclude-standard . 2>/dev/null ||
    find . -path './build*' -prune -o -type f -printf '%P\n'; } | grep -v '^tests/house/bad/' | sort)
code=() own=()
for file in "${files[@]}"; do
  [[ -f $file ]] || continue  # deleted, not yet committed
  case $file in *.h | *.cpp | *.cu) code+=("$file") ;; esac
  # Published and recorded data are kept as they are; this folder has to spell out what it looks for.
  case $file in models/* | tests/data/* | tests/house/*) ;; *) own+=("$file") ;; esac
done

complain < <(for file in "${code[@]}"; do
  [[ $file != *.h ]] || grep -q '^#pragma once' "$file" || echo "$file: no #pragma once"
done)
complain < <(grep -nH $'\t' "${code[@]}" /dev/null | sed -E 's/:([0-9]+):.*/:\1: a tab/')
complain < <(grep -nHwE 'TODO|FIXME|XXX|HACK|stub' "${code[@]}" /dev/null | sed -E 's/:([0-9]+):.*/:\1: unfinished business/')
complain < <(grep -nHIE '(^|[^A-Za-z0-9_./-])/(home|root|work|Users)/[A-Za-z]' "${own[@]}" /dev/null | sed -E 's/:([0-9]+):/:\1: a path of one machine:/')
bytes=$(printf '%s\0' "${files[@]}" | du -cb --files0-from=- 2>/dev/null | tail -n 1 | cut -f 1)
((bytes <= 25000000)) || complain <<<"the repository has $bytes bytes, more than 25 MB"
exit $found
