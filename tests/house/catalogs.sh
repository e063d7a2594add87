#!/usr/bin/env bash
# catalogs.sh TREE: in a folder with a catalog.cpp, every .cpp without a header of its own defines at
# least one entry (`const Entry kName`), and the catalog lists each entry (`&kName`) exactly once. What
# stands in an unnamed namespace is the file's own affair.
cd "$1" || exit 2
found=0
complain() { found=1; echo "$*"; }

while read -r catalog; do
  folder=$(dirname "$catalog")
  entry=$(grep -oE 'Catalog<[a-zA-Z_:]+>' "$catalog" | sed -E 's/Catalog<(.*::)?([a-zA-Z_]+)>/\2/' | head -n 1)
  [[ -n $entry ]] || { complain "$catalog defines no Catalog<...>"; continue; }
  table=$(tr '\n' ' ' <"$catalog" | grep -oE '\[\] *= *\{[^}]*\}')
  for source in "$folder"/*.cpp; do
    [[ $source != "$catalog" ]] || continue
    names=$(sed '/^namespace {/,/^}  \/\/ namespace$/d' "$source" |
      grep -oE "^ *(constinit |extern |inline )?const(expr)? ([a-z_]+::)*$entry k[A-Za-z0-9_]+" |
      grep -oE 'k[A-Za-z0-9_]+$' | sort -u)
    [[ -n $names || -e ${source%.cpp}.h ]] || complain "$source defines no $entry, and has no header for others to use"
    for name in $names; do
      listed=$(grep -oE "&([a-z_]+::)*$name\b" <<<"$table" | wc -l)
      ((listed > 0)) || complain "$catalog does not list $name of $(basename "$source"): add &$name"
      ((listed < 2)) || complain "$catalog lists $name of $(basename "$source") $listed times"
    done
  done
done < <(find sim -name catalog.cpp | sort)
exit $found
