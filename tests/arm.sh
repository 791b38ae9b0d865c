#!/usr/bin/env bash
# Builds for a 64-bit ARM processor on a Debian machine of another kind, and runs checks and a tiny
# model under emulation: the loops of 4 lanes, and NEON's instructions of chapter 12. Nothing is timed.
# It installs Debian's cross compiler, the emulator and ARM's libraries where they are missing, as root.
# The compiler optimizes little (-O1), which takes less time. Arguments name other test programs, or programs
# with their flags in quotes.
set -euo pipefail
cd "$(dirname "$0")/.."
libraries=/usr/lib/aarch64-linux-gnu
expected='  assistant  kkkimppmpppmpmpmpmpmpmppmpmpmpmpmpmpmpmpmpmpmpmp' # of the tiny model, on any processor

if [[ $(uname -m) == aarch64 ]]; then
  echo "This is an ARM processor: ./learn test checks the same"
  exit
fi
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null ||
  [[ ! -e $libraries/libpcre2-8.so || ! -e $libraries/libutf8proc.so || ! -e $libraries/libstdc++.so.6 ]]; then
  dpkg --add-architecture arm64
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++-aarch64-linux-gnu \
    qemu-user-static libstdc++6:arm64 libgomp1:arm64 libopenblas-openmp-dev:arm64 libpcre2-dev:arm64 \
    libutf8proc-dev:arm64 >/dev/null
fi

programs=("$@")
[[ $# != 0 ]] || programs=(04_causal_attention_test 12_quantization_test)
cmake --preset arm
cmake --build --preset arm -j "$(getconf _NPROCESSORS_ONLN)" --target 10_pretrained "${programs[@]%% *}"
export OMP_NUM_THREADS=2
for program in "${programs[@]}"; do
  echo "== $program"
  # shellcheck disable=SC2086  # its flags are words
  qemu-aarch64-static build/arm/$program
done
echo "== 10_pretrained"
T2T_WEIGHTS=none qemu-aarch64-static build/arm/10_pretrained >build/arm/answer
grep -F "  assistant" build/arm/answer
grep -qxF "$expected" build/arm/answer || {
  echo "the tiny model's answer should be:" && echo "$expected"
  exit 1
}
