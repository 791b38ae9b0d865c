# shellcheck shell=bash
# The book as a site: what builds it, and what checks it.
source "$(dirname "${BASH_SOURCE[0]}")/building.sh"

site_packages=(sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19 latex2mathml==3.81.1 sphinx-copybutton==0.5.2 sphinxext-opengraph==0.13.0)
check_packages=(playwright==1.65.2 axe-playwright-python==0.1.8)

# python_packages YES MODULE PACKAGES…: installs the packages into the book's Python if it lacks the module. Says what it
# installs, and asks first unless YES is --yes.
python_packages() {
  local yes=$1 module=$2
  shift 2
  ! "$venv/bin/python" -c "import $module" 2>/dev/null || return 0
  echo "Missing in build/python: $*." >&2
  if [[ $yes != --yes ]]; then
    [[ -t 0 ]] || die "nothing was installed; to agree, add --yes"
    agreed "Install them there from PyPI?" || die "nothing was installed"
  fi
  python_tools
  in_turn quietly "installing ${1%%=*} and $(($# - 1)) more" site-tools "$venv/bin/python" -m pip install -q "$@"
}

site_tools() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "the site needs Python 3.11 or newer, and here is $(python3 --version)"
  python_packages "${1:-}" "sphinx, myst_parser, furo, latex2mathml, sphinx_copybutton, sphinxext.opengraph" "${site_packages[@]}"
}

build_site() {
  quietly "building the site" site env PYTHONUTF8=1 "$venv/bin/python" "$home/docs/site/build.py" "$home/build/site"
  tail -1 "$home/build/site.log"
}

# Checks the site in Chromium, whose numbers it compares with those of two programs. Where Chromium is missing, it is
# installed if the argument is --yes and apt-get can; else this says that nothing was checked, and succeeds.
check_site() {
  local status=0
  python_packages "${1:-}" "playwright, axe_playwright_python" "${check_packages[@]}"
  if [[ ${1:-} == --yes && -z ${T2T_CHROMIUM:-} ]] && ! has_chromium && command -v apt-get >/dev/null; then
    [[ $(id -u) != 0 ]] || in_turn quietly "installing Chromium" chromium \
      env DEBIAN_FRONTEND=noninteractive bash -c 'apt-get update && apt-get install -y --no-install-recommends chromium'
  fi
  compile_more 03_rope 04_causal_attention
  (settings && PYTHONUTF8=1 T2T_BUILD=$build "$venv/bin/python" "$home/tests/site/check.py") || status=$?
  [[ $status == 0 || $status == 77 ]] || die "the site is not as it should be (see above)"
}
has_chromium() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    ! command -v "$name" >/dev/null || return 0
  done
  return 1
}
