# shellcheck shell=bash
# Builds what the reader wrote. ninja compares the times of files, not their contents: a file that
# is saved while it is compiled, or replaced by an older one, leaves an object of another text that
# looks fresh. So a part is built from a copy of its text, build/release/mine/NN_name/PART.cpp, and
# where a text differs from the copy, what was made of the copy is removed before the copy is
# rewritten.
source "$(dirname "${BASH_SOURCE[0]}")/building.sh"

# take_texts FOLDER: makes the copies those of FOLDER/texts/NN_name/PART.cpp.
take_texts() {
  local text copy name
  while IFS= read -r text; do
    name=${text#"$1/texts/"} copy=$build/mine/${text#"$1/texts/"}
    ! cmp -s "$text" "$copy" || continue
    case $name in
    *.cpp | *.cu)
      name=${name%.*}
      rm -f "$build/mine/$name"*.o "$build/mine/mine_${name/\//_}.o"
      ;;
    *) find "$build/mine" -name '*.o' -delete 2>/dev/null || true ;; # any part may include a header
    esac
    mkdir -p "$(dirname "$copy")"
    cp "$text" "$copy"
  done < <(find "$1/texts" -type f)
}

# compile_written FOLDER TARGET…: builds them from the texts in FOLDER. What came of the first
# target, the log and the first error are put there too, before another ./learn can build from other
# texts. No compiler may compute for more than 60 seconds or take more than 4 GiB: what a reader
# wrote may make it work without end.
compile_written() {
  local folder=$1 log status=0
  shift
  configure_now
  take_texts "$folder"
  # The list of parts that go into the programs of --mine.
  [[ ! -f $folder/mine.json ]] || cp "$folder/mine.json" "$build/mine.json"
  log=$home/build/build-${1##*/}.log
  rm -f "$log"
  (ulimit -S -t 60 -v $((4 << 20)) 2>/dev/null || true; compile_more_now "$@") || status=$?
  if [[ -f $log ]]; then
    cp "$log" "$folder/log"
    [[ $status == 0 ]] || first_error "$log" >"$folder/error" || true
  fi
  [[ $status == 0 ]] || exit "$status"
  cp "$build/$1" "$folder/program"
}
