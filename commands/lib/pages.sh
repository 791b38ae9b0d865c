#!/usr/bin/env bash
# pages.sh [--check] [PAGE ...]: puts listings, outputs and numbers into all pages, or into these,
# whose programs are built; with --check it changes nothing, and fails if a page is stale. Then it
# checks the links between pages, and counts words that the style of pages replaces.
set -euo pipefail
source "$(dirname "$0")/building.sh"
how=(-r) edited='' check='' # -r replaces the pages, which cog would do even with --check
if [[ ${1:-} == --check ]]; then
  check=$1
  shift
  edited=$(workbook edited)
  how=(--check)
  [[ -n $edited ]] || how+=(--diff)
fi
why() {
  if [[ -n $edited ]]; then
    echo "the pages named above show our sources, or what the programs print, and sources are" \
      "edited. $edited"
  else
    echo "a page is stale or can't be updated (see above); ./learn docs updates them"
  fi
}
settings
cd "$home/docs"
pages=("$@" mistakes.md)
[[ $# != 0 ]] || pages=(./*.md ../README.md)
T2T_BUILD=$build T2T_CHECK=$check PYTHONPATH=weaving PYTHONDONTWRITEBYTECODE=1 \
  "$venv/bin/python" -m cogapp -p 'from weave import *' "${how[@]}" "${pages[@]}" ||
  die "$(why)"
weaving() { "$venv/bin/python" "weaving/$1" "${@:2}"; }
weaving way.py check || die "a page is not as docs/README.md wants it (see above)"
weaving figures.py || die "a figure is not as a page can show it (see above)"
translated=()
shopt -s nullglob
for first in ./*/index.md; do # the pages of another language
  translated+=("${first%/*}"/*.md)
done
weaving links.py ./*.md ../README.md "${translated[@]}" ||
  die "a page links to something that does not exist (see above)"
weaving prose.py ||
  die "a page uses a word too often, or a word of our own where the field has one (see above)"
