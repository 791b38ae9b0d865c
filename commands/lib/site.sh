# shellcheck shell=bash
# The book as a site: what builds it, and what checks it.
source "$(dirname "${BASH_SOURCE[0]}")/building.sh"

site_packages=(sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19 latex2mathml==3.81.1
  sphinx-copybutton==0.5.2 sphinxext-opengraph==0.13.0)
check_packages=(playwright==1.65.2 axe-playwright-python==0.1.8)

site_modules="sphinx, myst_parser, furo, latex2mathml, sphinx_copybutton, sphinxext.opengraph"
check_modules="playwright, axe_playwright_python"
has_site_tools() { "$venv/bin/python" -c "import $site_modules, $check_modules" 2>/dev/null; }

# python_packages YES MODULE PACKAGES…: installs the packages into the book's Python if it lacks the
# module. Says what it installs, and asks first unless YES is --yes.
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
  in_turn quietly "installing ${1%%=*} and $(($# - 1)) more" site-tools \
    "$venv/bin/python" -m pip install -q "$@"
}

site_tools() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "the site needs Python 3.11 or newer, and here is $(python3 --version)"
  python_packages "${1:-}" "$site_modules" "${site_packages[@]}"
}

build_site() {
  quietly "building the site" site env PYTHONUTF8=1 \
    "$venv/bin/python" "$home/docs/site/build.py" "$home/build/site"
  tail -1 "$home/build/site.log"
}

# Checks the site in Chromium, and compares its pieces with the numbers of programs: chapter 10's if
# its weights are here. Where Chromium is missing, --yes installs it; without --yes, a line says
# that nothing was checked, and how to install it.
check_site() {
  local status=0
  python_packages "${1:-}" "$check_modules" "${check_packages[@]}"
  [[ ${1:-} != --yes ]] || has_chromium || ! command -v apt-get >/dev/null || install_chromium
  compile_more 03_rope 04_causal_attention $([[ ! -e $fetched ]] || echo 10_pretrained)
  (settings && PYTHONUTF8=1 T2T_BUILD=$build "$venv/bin/python" "$home/tests/site/check.py") ||
    status=$?
  [[ $status == 0 || $status == 77 ]] || die "the site is not as it should be (see above)"
}
install_chromium() {
  local sudo=''
  [[ $(id -u) == 0 ]] || { sudo="sudo " && sudo -v; }
  in_turn quietly "installing Chromium" chromium env DEBIAN_FRONTEND=noninteractive \
    bash -c "${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends chromium"
}
has_chromium() {
  local name
  [[ -z ${T2T_CHROMIUM:-} ]] || return 0
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    ! command -v "$name" >/dev/null || return 0
  done
  return 1
}
