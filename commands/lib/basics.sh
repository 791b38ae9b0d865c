# shellcheck shell=bash
# What all commands use: the folder of the book, messages and progress, refusal of arguments, and
# the chapters.
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034  # the commands use it
build=$home/build/release
export PYTHONPYCACHEPREFIX=$home/build/pycache # Python leaves nothing among the sources

# Messages, wrapped if this is a terminal.
say() {
  [[ -t 2 ]] || { echo "learn: $*" >&2 && return; }
  fold -s -w "$(tput cols 2>/dev/null || echo 80)" <<<"learn: $*" >&2
}
die() { say "$*"; exit 1; }
bold() {
  if [[ -t 1 && -z ${NO_COLOR:-} ]]; then printf '\033[1m%s\033[0m\n' "$*"; else echo "$*"; fi
}

# quietly WHAT LOG COMMAND…: shows one line of progress on a terminal, and the log when COMMAND
# fails.
quietly() {
  local what=$1 log=$home/build/$2.log start=$SECONDS status=0 pid
  shift 2
  expect_build
  echo "$what" >"$home/build/at_work"
  # COMMAND and what it starts are one process group, so that Ctrl-C can end them together.
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  set +m
  trap 'kill -- "-$pid" 2>/dev/null; trap - INT; kill -INT "${BASHPID:-$$}"' INT TERM HUP
  while [[ -t 2 ]] && kill -0 "$pid" 2>/dev/null; do
    printf '\r\033[K  %s %s %s s' "$what" "$(grep -aso '^\[[0-9]*/[0-9]*\]' "$log" | tail -1)" \
      "$((SECONDS - start))" >&2
    sleep 0.2
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  wait "$pid" || status=$?
  trap - INT TERM HUP
  [[ $status != 0 ]] || return 0
  { failed_checks "$log" || first_error "$log" || tail -40 "$log"; } >&2
  die "$what failed; its whole output: $log"
}

# What checks that a build ran have printed when they failed: see tests/expect_passed.
failed_checks() { sed -n 's/^| //p' "$1" | grep .; }

# What a compiler or linker says first of an error, without the command that failed.
first_error() {
  local not='^(FAILED: |\[[0-9]+/[0-9]+\] |ninja: build stopped|/[^ ]*/[a-z0-9+-]+ .* -[co] |: && )'
  grep -avE "$not" "$1" |
    grep -m1 -A40 -E '(error|undefined reference|multiple definition)[: ]'
}

# Makes the build folder; refuses one that can't be written.
expect_build() {
  mkdir -p "$home/build" 2>/dev/null && [[ -w $home/build ]] ||
    die "$home/build can't be written, and the build goes there"
}

# What another command builds, or one in the background, must be whole before this one builds.
wait_for_turn() {
  local begin=$SECONDS work=''
  read -r work 2>/dev/null <"$home/build/at_work" || true # when it has just begun, there is none
  say "another ./learn is at work in this folder, perhaps in the background:" \
    "waiting for it${work:+ ($work)}"
  until flock -w 1 9; do [[ ! -t 2 ]] || printf '\r\033[K  %s s' "$((SECONDS - begin))" >&2; done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# in_turn COMMAND…: runs it when no other ./learn builds or fetches in this folder.
in_turn() {
  expect_build
  if [[ -n ${has_turn:-} ]] || ! command -v flock >/dev/null; then "$@"; return; fi
  (
    flock -n 9 || wait_for_turn
    has_turn=yes
    "$@"
  ) 9>"$home/build/lock"
}

# Refuses an argument, and prints the usage of the command, from the second line of its file.
refuse() {
  die "${0##*/} does not take '$1'; usage: ./learn $(sed -n '2s/^# [0-9]* \(.*\) | .*/\1/p' "$0")"
}

# only FLAG ARGUMENTS…: refuses any argument that is not FLAG.
only() {
  local flag=$1 argument
  shift
  for argument in "$@"; do [[ $argument == "$flag" ]] || refuse "$argument"; done
}

# Asks a question, and succeeds when the answer is yes.
agreed() {
  local answer
  read -rp "$1 [y/N] " answer
  [[ $answer == [yY]* ]]
}

chapters() { (cd "$home/chapters" && ls -d [0-9][0-9]_*); }

# Turns "3", "03", "rope" or "03_rope" into 03_rope.
chapter() {
  local name
  for name in $(chapters); do
    [[ $name == "$1" || ${name#*_} == "$1" ]] ||
      [[ $1 =~ ^[0-9]{1,4}$ && $((10#${name%%_*})) == $((10#$1)) ]] || continue
    echo "$name" && return
  done
  die "there is no chapter '$1'; the chapters are: $(chapters | paste -sd' ' -)"
}

# about NAME KEY: a line of the chapter's file `about`: its component, what it adds or what it
# shows.
about() { sed -n "s/^$2: //p" "$home/chapters/$1/about"; }
