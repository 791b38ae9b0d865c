# shellcheck shell=bash
# An archive for a GPU machine without network or compilers, which ./learn gpu --pack makes: the commands, the
# programs, built here, with the libraries that they need, and the real model's file if it is here.
source "$(dirname "${BASH_SOURCE[0]}")/building.sh"

# libraries_of PROGRAM…: the shared libraries that the programs are linked with. Those of the C library are left out,
# since they belong to the machine's loader: it must be as new as here, or newer.
libraries_of() {
  ldd "$@" | sed -n 's/^[[:space:]].* => \(\/.*\) (0x.*/\1/p' |
    grep -vE '/(libc|libm|libmvec|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so' | sort -u
}

# pack FOLDER FROM PROGRAM…: fills a new folder with what runs these programs of the folder FROM by ./learn gpu.
pack() {
  local to=$1 from=$2 library
  shift 2
  mkdir -p "$to/packed/lib"
  (cd "$home" && tar -cf - --exclude=__pycache__ learn LICENSE commands docs/gpu chapters/16_server/server/chat_page.html) |
    tar -xf - -C "$to"
  (cd "$from" && cp -- "$@" "$to/packed")
  (cd "$from" && libraries_of "$@") | while read -r library; do cp -L -- "$library" "$to/packed/lib/"; done
  [[ ! -e $T2T_WEIGHTS ]] || { mkdir -p "$to/build/weights" && cp -- "$T2T_WEIGHTS" "$to/build/weights/${fetched##*/}"; }
  ldd --version | sed -n '1s/.* //p' >"$to/packed/libc" # the oldest C library that will do
}

# archive FOLDER FILE: FOLDER as a .tar.gz, which is whole or not there.
archive() {
  tar -C "$(dirname "$1")" -czf "$2.part" "${1##*/}" && mv "$2.part" "$2"
}
