# Sourced by the scripts beside it: install what is missing, build what is stale. Says everything on
# stderr, since stdout belongs to the program; exits 2 on trouble, as the program does.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 # clones share the compiler cache wherever they lie

say() { echo "rehearse: $*" >&2; }
die() { say "$*"; exit 2; }

# lock: from here on build/ is ours; a second one waits. unlock: before the program takes over.
lock() {
  { exec 9>"$build/.lock"; } 2>/dev/null || die "cannot write in $build"
  flock 9
}
unlock() { exec 9>&-; }

# finished PROGRAM: its path in build/ where no source is newer, else nothing.
finished() {
  local program=$build/bin/$1
  [[ -x $program ]] || return 0
  [[ -n $(find "$root/sim" "$root/CMakeLists.txt" -type f -newer "$program" -print -quit) ]] ||
    echo "$program"
}

# need GROUP...: the Debian packages of these groups of packages.txt.
need() {
  local group package wanted=() missing=() log=$build/packages.log
  while read -r group package; do
    [[ " $* " == *" $group "* ]] && wanted+=("$package")
  done <"$root/tools/packages.txt"

  if ! command -v dpkg-query >/dev/null; then
    [[ -e $build/build.ninja ]] || say "not a Debian system; the build expects these to be there: ${wanted[*]}"
    return
  fi
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null)
  for package in "${wanted[@]}"; do
    [[ $installed == *"$package installed"* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "missing packages, and neither root nor sudo to install them: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null ||
    { tail -n 20 "$log" >&2; die "could not install them (whole log: $log)"; }
}

# configure: build/ for ninja, on first use; afterwards ninja itself configures again where needed.
configure() {
  local log=$build/configure.log
  [[ ! -e $build/build.ninja ]] || return 0
  say "first build, this takes five to ten minutes on two cores"
  cmake -S "$root" --preset release >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; die "could not configure (whole log: $log)"; }
}

# build_targets TARGET...: builds what is stale in build/.
build_targets() {
  local line tenth shown=0 log=$build/build.log start=$SECONDS
  configure
  # Ninja prints a line per step, "[12/143] ..."; we say every tenth of the way.
  NINJA_STATUS='[%f/%t] ' ninja -C "$build" "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    ((BASH_REMATCH[2] < 10 || tenth == shown || tenth == 10)) || say "building: $((10 * (shown = tenth)))%"
  done
  if ((PIPESTATUS[0] != 0)); then
    # The first complaint says most; without one (ninja itself failed) the end of the log does.
    { sed -n '/^FAILED: /,$p' "$log" | grep -v '^\[' | head -n 60 | grep . || tail -n 20 "$log"; } >&2
    die "the build failed (whole log: $log)"
  fi
  ((SECONDS - start < 10)) || say "building: 100%, in $((SECONDS - start)) s"
}

# cpp_files: our C++ files; those under tests/house/bad break rules on purpose.
cpp_files() {
  (cd "$root" && find sim tests tools \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -not -path 'tests/house/bad/*' | sort)
}

mkdir -p "$build" 2>/dev/null || die "cannot make $build: build in a folder that you may write"
