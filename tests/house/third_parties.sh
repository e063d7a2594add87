#!/usr/bin/env bash
# third_parties.sh TREE: a third party is used in few .cpp files and appears in no header of sim/.
cd "$1" || exit 2
found=0

# only LIBRARY INCLUDE FILES: both patterns are extended regular expressions.
only() {
  local hits
  hits=$(grep -rnE --include='*.h' --include='*.cpp' "^#include [<\"]($2)" sim | grep -vE "^($3):")
  [[ -z $hits ]] || { found=1; sed "s|\$|    ($1 may be included by $3 only)|" <<<"$hits"; }
}

only "a third party" 'fmt/|yaml-cpp/|boost/|Eigen/|CLI/|nlohmann/|simdjson|zlib|tbb/|oneapi/' 'sim/.*\.cpp'
only yaml-cpp 'yaml-cpp/' 'sim/scenario/config_node\.cpp'
only Boost.Graph 'boost/graph' 'sim/(plan|network)/.*\.cpp'
only Eigen 'Eigen/' 'sim/compute/fit\.cpp'
only CLI11 'CLI/' 'sim/cli/.*\.cpp'
exit $found
