# shellcheck shell=bash
# How the book is built and run: CMake, the environment of its programs, and a Python of our own.
source "$(dirname "${BASH_SOURCE[0]}")/needs.sh"
cores=$(getconf _NPROCESSORS_ONLN)
venv=$home/build/python # our own Python, with what weaves the pages
fetched=$home/build/weights/smollm2-135m-instruct.q4_1.gguf # what ./learn weights fetches

# A CUDA toolkit of our own, where the system has none: build/python with nvidia-cuda-nvcc (350 MB).
for nvcc in "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
  [[ ! -x $nvcc ]] || command -v nvcc >/dev/null || export CUDACXX=${CUDACXX:-$nvcc}
done

# Builds these targets. What is missing is looked for before the first build, and when one fails.
compile() { in_turn compile_now "$@" || exit 1; }
compile_now() {
  local more='' was_built
  was_built=$(built_otherwise)
  if [[ -n $was_built || ! -f $build/build.ninja ]]; then
    expect_all
    [[ -z $was_built ]] || say "what is built here was built $was_built: it is built anew"
    rm -rf "$build"
    (cd "$home" && quietly configuring configure cmake --preset release) || exit 1
  fi
  [[ $# == 1 ]] || more=" and $(($# - 1)) more"
  (quietly "building $1$more" "build-$1" cmake --build "$build" --target "$@") || { expect_all && exit 1; }
}

# A build holds the paths of its sources and of its compiler. A folder that was copied or moved would
# build the old sources, and one configured before CXX changed would use the old compiler: says so.
built_otherwise() {
  local sources compiler words
  sources=$(in_cache CMAKE_HOME_DIRECTORY) compiler=$(in_cache CMAKE_CXX_COMPILER)
  read -ra words <<<"${CXX:-c++}"
  if [[ -n $sources && ! $sources -ef $home ]]; then
    echo "in $sources"
  elif [[ -n $compiler && ! $compiler -ef $(command -v "${words[0]}") ]]; then
    echo "by $compiler"
  fi
}
in_cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true; }

expect_all() {
  local lacking
  lacking=$(missing)
  [[ -z $lacking ]] || die "missing here: $lacking. Run: ./learn setup"
}

# Sets the environment that the book's programs run in. What the reader has set stays.
settings() {
  # OpenBLAS before 0.3.22 or so takes newer CPUs for old ones; its threads are those of our loops.
  if [[ -z ${OPENBLAS_CORETYPE:-} ]] && grep -qs avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=SkylakeX; fi
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$cores}
  # A thread that waits for others looks for 0.1 ms, then gives up its core. Longer is many times slower
  # where something else runs too; not at all halves the speed of decoding, which has 200 waits a token.
  export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}
  # Large tensors on pages of 2 MB, one after the other: read half as fast again as from pages of 4 KB.
  export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824}
  export T2T_WEIGHTS=${T2T_WEIGHTS:-$fetched}
}

# Puts cogapp into our own Python. Its programs hold the path of their folder, so it is called by name.
python_tools() {
  "$venv/bin/python" -c 'import cogapp' 2>/dev/null || in_turn quietly "installing cogapp" cogapp install_cogapp
}
install_cogapp() { python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q cogapp==3.6.0; }
