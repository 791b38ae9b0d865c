#!/usr/bin/env bash
# What must be true of an archive that ./learn gpu --pack makes: unpacked into an empty folder, without network and with no
# more than a shell's usual programs, it starts, and says what is missing. $1 is on_gpu, which stands for all programs.
set -euo pipefail
on_gpu=$(cd "$(dirname "$1")" && pwd)/${1##*/}
source "$(dirname "$0")/../commands/lib/packing.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: $*" && exit 1; }

# It is packed, and unpacked in another place.
fetched=model.gguf T2T_WEIGHTS=$scratch/weights.gguf # as building.sh and settings have them
echo weights >"$T2T_WEIGHTS"
pack "$scratch/tensor-to-token-gpu" "$(dirname "$on_gpu")" "${on_gpu##*/}"
archive "$scratch/tensor-to-token-gpu" "$scratch/packed.tar.gz"
rm -rf "$scratch/tensor-to-token-gpu"
mkdir "$scratch/there" "$scratch/bin"
tar -C "$scratch/there" -xzf "$scratch/packed.tar.gz"
cd "$scratch/there/tensor-to-token-gpu"
[[ $(cat build/weights/model.gguf) == weights ]] || fail "the model's file is not in the archive"

# Nothing of this machine but programs that any has; no compiler, no Python.
for program in bash sh env sed grep cat cut dirname pwd mkdir rm ls sort paste ldd getconf tail head date sleep timeout; do
  ln -s "$(command -v "$program")" "$scratch/bin/$program"
done
alone=(env -i "PATH=$scratch/bin" "HOME=$scratch")
if unshare -rn true 2>/dev/null; then alone=(unshare -rn "${alone[@]}"); else echo "unshare is not allowed here: with network"; fi

status=0
"${alone[@]}" ./learn gpu >out 2>&1 || status=$?
[[ $status == 3 ]] || fail "without a driver: wanted status 3, got $status: $(cat out)"
grep -q "no GPU: nvidia-smi" out || fail "without a driver: $(cat out)"

# A driver's program that promises a GPU: now the packed programs are asked, and there is none.
cat >"$scratch/bin/nvidia-smi" <<'SMI'
#!/bin/sh
case "$*" in *compute_cap*) echo 9.0 ;; *driver_version*) echo 580.1 ;; *) echo "A card" ;; esac
SMI
chmod +x "$scratch/bin/nvidia-smi"
status=0
"${alone[@]}" ./learn gpu >out 2>&1 || status=$?
[[ $status == 1 ]] || fail "without a GPU: wanted status 1, got $status: $(cat out)"
grep -q "^no GPU here" out || fail "without a GPU: $(cat out)"
grep -q "the GPU can't be used by what was built with the toolkit of the archive" out || fail "without a GPU: $(cat out)"

# An archive packs no other.
status=0
"${alone[@]}" ./learn gpu --pack >out 2>&1 || status=$?
[[ $status == 1 ]] || fail "--pack in an archive: wanted status 1, got $status"
grep -q "this folder was unpacked from an archive" out || fail "--pack in an archive: $(cat out)"
