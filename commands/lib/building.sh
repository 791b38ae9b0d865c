# shellcheck shell=bash
# How the book is built and run: CMake, the environment of its programs, and its own Python.
source "$(dirname "${BASH_SOURCE[0]}")/needs.sh"
cores=$(getconf _NPROCESSORS_ONLN)
venv=$home/build/python # its own Python
arch=${T2T_ARCH:-native} # the processor to build for, as -march has it: x86-64-v3, say
fetched=$home/build/weights/smollm2-135m-instruct.q4_1.gguf # what ./learn weights fetches

# If the system has no CUDA toolkit: the one in build/python, if nvidia-cuda-nvcc (350 MB) is there.
use_own_toolkit() {
  local nvcc
  for nvcc in "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    [[ ! -x $nvcc ]] || command -v nvcc >/dev/null || export CUDACXX=${CUDACXX:-$nvcc}
  done
}
use_own_toolkit

# Whether kernels can be built for a GPU of this machine.
has_gpu() { command -v "${CUDACXX:-nvcc}" >/dev/null && nvidia-smi -L &>/dev/null; }

# Builds these targets. Checks what is missing before the first build, and when a build fails.
compile() { in_turn compile_now "$@" || exit 1; }
compile_now() {
  local more=''
  configure_now
  [[ $# == 1 ]] || more=" and $(($# - 1)) more"
  (quietly "building ${1##*/}$more" "build-${1##*/}" cmake --build "$build" --target "$@") ||
    { expect_all && exit 1; }
}

# The same for targets of which CMake does not know, too (programs.py of the workbook). Goes
# on after a failure, so that every check that fails is told.
compile_more() { in_turn compile_more_now "$@" || exit 1; }
compile_more_now() {
  local more=''
  python_tools
  configure_now
  [[ $# == 1 ]] || more=" and $(($# - 1)) more"
  (quietly "building ${1##*/}$more" "build-${1##*/}" build_more "$@") || { expect_all && exit 1; }
}
build_more() {
  ninja -C "$build" build.ninja && # which is made anew if a CMakeLists.txt has changed
    python3 "$home/commands/lib/workbook" programs "$@" &&
    ninja -C "$build" -f programs.ninja -k 0 "$@"
}

# Configures the build where there is none, or where it is another's.
configure() { in_turn configure_now || exit 1; }
configure_now() {
  local was_built
  expect_plain_folder
  was_built=$(built_otherwise)
  if [[ -n $was_built || ! -f $build/build.ninja ]]; then
    expect_all
    [[ -z $was_built ]] || say "what is built here was built $was_built: it is built anew"
    rm -rf "$build"
    keep_as_it_was
    (cd "$home" && quietly configuring configure \
      cmake --preset release -DT2T_ARCH="$arch") || exit 1
  fi
}

# A copy of the sources as they are when the book is first built, if git does not keep them:
# edited.py compares.
keep_as_it_was() {
  [[ ! -e $home/build/as_it_was ]] || return 0
  [[ ! -e $home/.git ]] || ! git -C "$home" rev-parse HEAD >/dev/null 2>&1 || return 0
  mkdir -p "$home/build/as_it_was"
  (cd "$home" && find chapters common tests -name '*.[chn]*' -type f | tar -cf - -T - |
    tar -xf - -C build/as_it_was) 2>/dev/null || true
}

# CMake hands the folder's name to a shell here and there, as when it tries the CUDA compiler, and a
# shell runs what stands in $(…) or between backticks.
expect_plain_folder() {
  case $home in
  *[\$\`\"\\\;]* | *$'\n'*)
    die "nothing can be built in the folder $(printf %q "$home"):" \
      "its path may hold no \$ \` \" \\ ; and no line end"
    ;;
  esac
}

# A build holds the paths of its sources and its compiler. A folder that was copied or moved would
# build the old sources, and one that was configured before CXX or T2T_ARCH changed would use the
# old compiler, or build for the old processor. In these cases this prints "in FOLDER", "by
# COMPILER" or "for the processor …".
built_otherwise() {
  local sources compiler words
  sources=$(in_cache CMAKE_HOME_DIRECTORY) compiler=$(in_cache CMAKE_CXX_COMPILER)
  read -ra words <<<"${CXX:-c++}"
  if [[ -n $sources && ! $sources -ef $home ]]; then
    echo "in $sources"
  elif [[ -n $compiler && ! $compiler -ef $(command -v "${words[0]}") ]]; then
    echo "by $compiler"
  elif [[ -n $compiler && $(in_cache T2T_ARCH) != "$arch" ]]; then
    echo "for the processor $(in_cache T2T_ARCH)"
  fi
}
in_cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true; }

expect_all() {
  local lacking
  lacking=$(missing)
  [[ -z $lacking ]] || die "missing here: $lacking. Run: ./learn setup"
}

# Sets the environment for the book's programs. Variables that the reader has set stay.
settings() {
  # OpenBLAS before about 0.3.22 treats newer CPUs as old ones. It shares its threads with our
  # loops.
  ! grep -qs avx512f /proc/cpuinfo ||
    export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$cores}
  # A thread that waits for others spins for a moment, then gives up its core. 10,000 rounds are
  # nearly three times slower when another program wants that core; without spinning, decoding is
  # half as fast, since a token has 150 waits.
  export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-600}
  # Large tensors lie on pages of 2 MB, from which they are read 1.5 times as fast as from 4 KB
  # pages.
  local large=glibc.malloc.hugetlb=1
  large+=:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824
  export GLIBC_TUNABLES=${GLIBC_TUNABLES:-$large}
  export T2T_WEIGHTS=${T2T_WEIGHTS:-$fetched}
}

# Installs into the book's Python what weaves the pages and what reads C++, for them and for the
# tutor. Its scripts hold their folder's path, so it is run by -m.
python_tools() {
  [[ -z ${has_python_tools:-} ]] || return 0 # which what this starts need not ask again
  "$venv/bin/python" -c 'import cogapp, tree_sitter_cpp' 2>/dev/null ||
    in_turn quietly "installing cogapp and tree-sitter" python-tools install_python_tools
  export has_python_tools=yes
}
install_python_tools() {
  python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q cogapp==3.6.0 \
    tree-sitter==0.26.1 tree-sitter-cpp==0.23.4
}

# workbook WHAT ARGUMENTS…: runs WHAT.py of commands/lib/workbook (__main__.py). While Python starts,
# Ctrl-C would show where it stood, so it is ignored until book.py asks for it.
workbook() {
  expect_build
  command -v python3 >/dev/null ||
    die "Python 3 is missing, and perhaps more: ./learn setup says what, and installs it"
  settings
  [[ $1 == edited ]] || python_tools # which a chapter can be run without
  (
    trap '' INT
    PYTHONUTF8=1 python3 "$home/commands/lib/workbook" "$@"
  )
}
