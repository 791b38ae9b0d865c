# shellcheck shell=bash
# What a machine needs to build the book, and the command that installs it.
source "$(dirname "${BASH_SOURCE[0]}")/basics.sh"

# One line for each need: its name, then a command that succeeds when it is installed, and prints
# its version if it can. A new need is a line here and a package in install_command.
look_for_needs() {
  local compiler
  read -ra compiler <<<"${CXX:-c++}"
  # clang knows the second of these flags.
  look_for "C++ compiler" program "${compiler[@]}" -dumpfullversion -dumpversion
  # The two folders: Apple's clang has no omp.h of its own.
  look_for OpenMP "${compiler[@]}" -I{/opt/homebrew,/usr/local}/opt/libomp/include \
    -x c++ -fsyntax-only -include omp.h /dev/null
  look_for CMake program cmake --version
  look_for Ninja program ninja --version
  look_for patch program patch --version
  look_for "Python 3 (venv)" python_with_venv
  look_for xtensor header XTENSOR_VERSION xtensor_config.hpp xtensor/{,containers/}xtensor.hpp
  look_for xtensor-blas header XTENSOR_BLAS_VERSION xblas_config.hpp xtensor-blas/xblas.hpp
  look_for xsimd header XSIMD_VERSION xsimd_config.hpp xsimd/xsimd.hpp
  look_for OpenBLAS openblas
  look_for CLI11 header CLI11_VERSION Version.hpp CLI/CLI.hpp
  look_for fmt header - - fmt/core.h
  look_for doctest header DOCTEST_VERSION doctest.h doctest/doctest.h
  look_for nlohmann-json header - - nlohmann/json.hpp
  look_for PCRE2 header PCRE2 pcre2.h pcre2.h
  look_for utf8proc header UTF8PROC_VERSION utf8proc.h utf8proc.h
  look_for Boost header - - boost/beast.hpp
  look_for MPI mpi
}

# Prints "NAME|ok|VERSION" or "NAME|MISSING|".
look_for() {
  local name=$1 state=ok version
  shift
  version=$("$@" 2>/dev/null) || state=MISSING version=
  echo "$name|$state|$version"
}
missing() { look_for_needs | sed -n 's/|MISSING|$//p' | paste -sd, - | sed 's/,/, /g'; }

# program NAME FLAGS…: succeeds when the program exists; NAME FLAGS prints its version.
program() {
  command -v "$1" >/dev/null || return 1
  "$@" | sed '1!d; s/^[A-Za-z][A-Za-z ]*//' || true
}
python_with_venv() { python3 -c "import ensurepip" && program python3 --version; }

# header PREFIX FILE HEADERS…: succeeds when one of HEADERS exists; FILE defines PREFIX_MAJOR and so
# on.
header() {
  local prefix=$1 file=$2 folder one found=
  local folders=(/usr/include /usr/local/include /opt/homebrew/include)
  shift 2
  for folder in "${folders[@]}"; do
    for one in "$@"; do [[ ! -e $folder/$one ]] || found=yes; done
  done
  [[ -n $found ]] || return 1
  find "${folders[@]}" -maxdepth 3 -name "$file" -exec \
    sed -nE "s/^#define ${prefix}_(MAJOR|MINOR|PATCH) *//p" {} + | head -3 | paste -sd. - || true
}

# Prints which build of OpenBLAS is installed.
openblas() {
  local libraries
  libraries=$(find -L /usr/lib /usr/lib64 /usr/local/lib {/opt/homebrew,/usr/local}/opt/openblas \
    -maxdepth 3 -name 'libopenblas.[sd][oy]*') || true
  sed -n 's#.*\(openblas-[a-z]*\)/.*#\1#p;s#.*/lib#lib#p' <<<"$libraries" | sort | tail -n 1 |
    grep .
}

# Prints which MPI is installed: its compiler, which knows where its headers are, and what starts
# ranks.
mpi() {
  command -v mpicxx >/dev/null && program mpirun --version
}

# Prints the command that installs the needs, for the first package manager that is found.
install_command() {
  local sudo='' cxx=g++ # or, where CXX asks for it, "clang-19 libomp-19-dev"
  [[ $(id -u) == 0 ]] || sudo="sudo "
  [[ ! ${CXX:-} =~ clang\+\+(-[0-9]+)? ]] ||
    cxx="clang${BASH_REMATCH[1]} libomp${BASH_REMATCH[1]}-dev"
  if command -v apt-get >/dev/null; then
    echo "${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends $cxx" \
      "cmake ninja-build patch python3-venv libxtensor-dev libxtensor-blas-dev libxsimd-dev" \
      "libopenblas-openmp-dev libcli11-dev libfmt-dev doctest-dev nlohmann-json3-dev" \
      "libpcre2-dev libutf8proc-dev libboost-dev libopenmpi-dev openmpi-bin"
  elif command -v dnf >/dev/null; then
    echo "${sudo}dnf install -y gcc-c++ cmake ninja-build patch python3 xtensor-devel" \
      "xtensor-blas-devel xsimd-devel openblas-devel cli11-devel fmt-devel doctest-devel" \
      "json-devel pcre2-devel utf8proc-devel boost-devel openmpi-devel"
  elif command -v pacman >/dev/null; then
    echo "${sudo}pacman -S --needed gcc cmake ninja patch python xtensor xtensor-blas xsimd" \
      "openblas cli11 fmt doctest nlohmann-json pcre2 libutf8proc boost openmpi"
  elif command -v brew >/dev/null; then
    # Homebrew has no xtensor-blas, which is headers alone. Apple's clang lacks OpenMP's library.
    echo "brew install cmake ninja python libomp xtensor xsimd openblas cli11 fmt doctest" \
      "nlohmann-json pcre2 utf8proc boost open-mpi coreutils &&" \
      "new=\$(mktemp -d) && git clone -q --depth 1" \
      "https://github.com/xtensor-stack/xtensor-blas \"\$new\" &&" \
      "cp -R \"\$new\"/include/* \"\$(brew --prefix)/include\""
  else
    die "found no apt-get, dnf, pacman or brew: install what is missing by hand"
  fi
}

# Installs what is missing, after asking. With --yes it does not ask.
install_missing() {
  local lacking command
  lacking=$(missing)
  [[ -n $lacking ]] || return 0
  echo "Missing here: $lacking." >&2
  command=$(install_command)
  printf 'This installs it:\n  %s\n' "$command" >&2
  if [[ ${1:-} != --yes ]]; then
    [[ -t 0 ]] || die "nothing was installed; to agree, add --yes"
    agreed "Run it now?" || die "nothing was installed"
  fi
  [[ $command != *sudo* ]] || sudo -v
  quietly installing setup env DEBIAN_FRONTEND=noninteractive bash -c "$command"
  lacking=$(missing)
  [[ -z $lacking ]] ||
    die "still missing after the installation: $lacking (its output: $home/build/setup.log)"
}
