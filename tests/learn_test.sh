#!/usr/bin/env bash
# What must be true of ./learn and of the programs on bad input: one clear line that names the value,
# an exit status that is not zero, nothing half-written. $1 is the folder of the built programs.
set -uo pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
passed=0

fail() { echo "FAILED: $*"; failed=$((failed + 1)); }

# refuses PART-OF-THE-MESSAGE COMMAND…
refuses() {
  local want=$1 lines
  shift
  if "$@" >out 2>err </dev/null; then fail "accepted: $*" && return; fi
  lines=$(wc -l <err)
  grep -qF -- "$want" err || { fail "wanted '$want' from: $*" && cat err && return; }
  ! grep -q $'[\e\r]' err || { fail "an escape sequence in the message of: $*" && return; }
  [[ $lines -eq 1 ]] || { fail "$lines lines, wanted one, from: $*" && cat err && return; }
  passed=$((passed + 1))
}
# accepts COMMAND…
accepts() {
  "$@" >out 2>err </dev/null && passed=$((passed + 1)) && return
  fail "refused: $*"
  cat err
}

learn=$home/learn
printf 'ab\xff' >bad.txt
: >empty.txt
for chapter in "$home"/chapters/[0-9][0-9]_*; do
  program=$build/${chapter##*/}
  accepts "$program" --help
  refuses "--unknown" "$program" --unknown
  refuses "--seed: wanted an integer from 1" "$program" --seed many
  if [[ -d /proc/self ]]; then
    refuses "--save: /proc/here" "$program" --save /proc/here
    refuses "/proc/self: no files can be made in it" "$program" --save /proc/self
  fi
  [[ ! -e /dev/full ]] || refuses "standard output can't be written: No space left" \
    bash -c '"$1" --help >/dev/full' bash "$program"
  for flag in $("$program" --help | sed -n 's/^ *\(--[a-z-]*\) X=.*/\1/p'); do
    refuses "$flag: wanted a number, got nan" "$program" "$flag" nan
    refuses "$flag: wanted a number that a float can hold, got 1e39" "$program" "$flag" 1e39
  done
  for flag in $("$program" --help | sed -nE 's/^ *(--[a-z-]*) (FILE|DIR|IN).*/\1/p'); do
    refuses "$flag: wanted a file or folder, got an empty name" "$program" "$flag" ""
  done
  grep -q -- '--text' <("$program" --help) || continue
  refuses "the text is empty" "$program" --text ""
  refuses "empty.txt: the text is empty" "$program" --file empty.txt
  refuses "bad.txt: byte 0xff at offset 2 is not UTF-8" "$program" --file bad.txt
  refuses "none.txt: can't be read" "$program" --file none.txt
  refuses "--tokens: wanted an integer from 1 to 1073741824, got $(head -c 80 /dev/zero | tr '\0' 9)…" \
    "$program" --tokens "$(head -c 9000 /dev/zero | tr '\0' 9)"
  refuses "--tokens: wanted an integer from 1" "$program" --tokens 0
  refuses "--tokens: wanted an integer from 1" "$program" --tokens -3
done

refuses "ids: token 0 is 256, outside [0, 256)" "$build/01_embedding" --ids 256
refuses "--eps: wanted 0 or more, got -1" "$build/02_normalization" --eps -1
refuses "eps: wanted more than 0 (row 0 has a variance of 0)" "$build/02_normalization" --eps 0 --width 1
refuses "--head-dim: wanted an even number" "$build/03_rope" --head-dim 7
refuses "--theta: wanted a number above 1 and at most 1e+37" "$build/03_rope" --theta 3e38
refuses "heads: wanted a number H that divides C = 10, got H = 3" "$build/04_causal_attention" --width 10 --heads 3
refuses "--context: wanted room for prompt and tokens" "$build/05_kv_cache" --context 10
refuses "groups: wanted G key and value heads that divide H query heads, got H = 8, G = 3" "$build/06_gqa" --groups 3
refuses "/none/x.svg: can't be written" "$build/07_swiglu" --svg /none/x.svg
refuses "C: wanted a multiple of H = 3, got 256" "$build/08_block" --heads 3
refuses "preset: wanted one of foundry-small" "$build/09_language_model" --model gpt5
refuses "--residual-scale: wanted a number from 0 to 1000" "$build/08_block" --residual-scale -1
small=(--tokens 4 --width 16 --heads 2 --groups 1 --ffn 8 --layers 8)
accepts "$build/08_block" "${small[@]}" --residual-scale 0
! grep -q nan out || fail "08_block --residual-scale 0 shows: $(grep nan out)"
refuses "--ids: wanted integers" "$build/01_embedding" --ids ""

# More memory than any machine has is refused before the first of it is taken, and before anything is shown.
wants() {
  refuses "$@"
  [[ ! -s out ]] || fail "began before it refused: ${*:2}"
}
most=1073741824
wants "--tokens and --width: wants about" "$build/01_embedding" --width $most
wants "--tokens and --width: wants about" "$build/02_normalization" --tokens $most
wants "--tokens, --heads and --head-dim: wants about" "$build/03_rope" --heads 256 --head-dim 1024
wants "--tokens, --width and --heads: wants about" "$build/04_causal_attention" --width $most
wants "--tokens: wanted at most 2048" "$build/04_causal_attention" --tokens 10000
wants "--width and --context: wants about" "$build/05_kv_cache" --context $most
wants "--tokens: wanted at most 2048" "$build/05_kv_cache" --context $most --tokens 1000000
wants "--groups and --head-dim: wants about" "$build/06_gqa" --head-dim $most
wants "--multiple and --speed-width: wants about" "$build/07_swiglu" --multiple $most
wants "--multiple and --speed-width: wants about" "$build/07_swiglu" --speed-width $most
wants "--ffn and --layers: wants about" "$build/08_block" --layers $most
wants "--vocabulary and --tokens: wants about" "$build/09_language_model" --prompt 1 --context $most --tokens $most


# A text's first bytes are enough, of what has no end too; a pipe is read once.
refuses "wants about" timeout 20 "$build/01_embedding" --file /dev/zero --width $most
accepts bash -c '"$1" --file <(echo a text from a pipe)' bash "$build/03_rope"
refuses "/dev/zero: wanted at most 64 MiB from a pipe or device" "$build/10_pretrained" \
  --model "$home/tests/fixtures/10_pretrained/tokenizer.gguf" --tokenize-file /dev/zero

accepts "$build/01_embedding" --save saved
accepts test -s saved/ids.npy
[[ -z $(find saved -name '.*' -type f) ]] || fail "left behind: $(ls -A saved)"
[[ ! -e /dev/full ]] || refuses "standard output can't be written" bash -c '"$1" >/dev/full' bash "$build/02_normalization"

# A model's file that can't be written again is refused before any work, and nothing is left.
quantization=$build/12_quantization
cp "$home/tests/fixtures/10_pretrained/tiny.gguf" in.gguf
refuses "--type: wanted q8_0, q4_0, q4_1, q4_k or q6_k, got q5_k" "$quantization" --quantize in.gguf out.gguf --type q5_k
refuses "--quantize: wanted different files, got in.gguf for both" "$quantization" --quantize in.gguf in.gguf --type q4_0
refuses "--quantize and --chat: wanted one of them" "$quantization" --quantize in.gguf out.gguf --type q4_0 --chat
refuses "--search: wanted --quantize too" "$quantization" --search
head -c 9999 in.gguf >cut.gguf
refuses "cut.gguf: " "$quantization" --quantize cut.gguf out.gguf --type q4_0
[[ ! -e out.gguf ]] || fail "a refused --quantize left a file"
accepts "$quantization" --quantize in.gguf out.gguf --type q6_k --search
accepts "$quantization" --model out.gguf --info

# A bench that has nowhere to put its figures says so before it measures.
refuses "/none/x.json: can't be written" timeout 20 "$build/common_bench" --json /none/x.json
refuses "empty.txt: wanted a JSON object of figures" timeout 20 "$build/common_bench" --json empty.txt
refuses "--json: wanted a file" timeout 20 "$build/common_bench" --json ""

# Where OpenBLAS can't have its buffers a program ends all the same, with our line or, as newer ones do,
# its own. (Sanitizers need more than any limit, and macOS has none.)
if [[ -d /proc/self ]] && ! grep -q fsanitize "$build/CMakeCache.txt"; then
  refuses "OpenBLAS" \
    env OMP_NUM_THREADS=2 bash -c 'ulimit -v 200000; timeout 60 "$1" --help' bash "$build/01_embedding"
fi

# What is written replaces plain files only, and follows no link.
echo own >own.txt
ln -s own.txt linked.svg && mkdir folder.svg
for svg in linked.svg folder.svg /dev/null; do
  refuses "$svg: wanted a plain file or none" "$build/07_swiglu" --svg "$svg"
done
[[ $(cat own.txt) == own && -L linked.svg && -d folder.svg && -c /dev/null ]] || fail "--svg wrote what was not its own"
rm linked.svg && accepts "$build/07_swiglu" --svg linked.svg && accepts "$build/07_swiglu" --svg linked.svg

# A pipe that nobody writes to is refused, and one that somebody will write to is read.
mkfifo pipe && mkdir piped && mkfifo piped/a.txt
refuses "pipe: is a pipe that nobody writes to" timeout 20 "$build/01_embedding" --file pipe
refuses "piped: wanted files that end in .md or .txt, got none" timeout 20 "$build/13_training" --folder piped
(sleep 1; echo a text from a pipe >pipe) &
accepts timeout 20 "$build/01_embedding" --file pipe
wait

# A program without kernels can't use a GPU, and results that stay on a GPU can't be written.
refuses "--gpu: this program was built without kernels; ./learn run 10 --gpu builds one with them" \
  "$build/10_pretrained" --gpu --ids 1
refuses "--trace and --gpu: wanted one of them at a time" "$build/10_pretrained" --gpu --trace traced --ids 1
refuses "--gpu: this program was built without kernels; ./learn run 12 --gpu builds one with them" \
  "$build/12_quantization" --gpu --ids 1
refuses "--cache-bits and --gpu: wanted one of them at a time" "$build/12_quantization" --gpu --cache-bits 8 --ids 1
refuses "--gpu: this program was built without kernels; ./learn serve --gpu builds one with them" \
  "$build/16_server" --serve --gpu
refuses "--cache-bits and --gpu: wanted one of them at a time" "$build/16_server" --serve --gpu --cache-bits 8

# Names and texts of other people's files bring no escape sequence to the terminal.
strange=$'strange\e[2J\r'
refuses 'strange\x1b[2J\x0d' "$build/13_training" --folder "$strange"
refuses 'strange\x1b[2J\x0d' "$build/10_pretrained" --adapter "$strange" --ids 1 --model "$strange"
cp in.gguf "$strange"
accepts "$quantization" --quantize "$strange" "$strange.out" --type q8_0
grep -qF 'strange\x1b[2J\x0d.out: ' out || fail "--quantize says: $(cat out)"
tiny_run=(--width 8 --layers 1 --heads 2 --groups 1 --context 8 --batch 1 --steps 1)
accepts "$build/13_training" --run "$strange.run" "${tiny_run[@]}"
! grep -q $'[\e\r]' out || fail "an escape sequence in the output of --run"

# A result that is no number is an error: here the model's last tensor is spoiled.
model=$strange.run/model.gguf
accepts "$build/10_pretrained" --model "$model" --ids 1,2 --logits good.npy
head -c -32 "$model" >nan.gguf && head -c 32 /dev/zero | tr '\0' '\377' >>nan.gguf
refuses "nan.gguf: wanted logits that are finite numbers, got " \
  "$build/10_pretrained" --model nan.gguf --ids 1,2 --logits bad.npy
echo a text >text.txt
refuses "perplexity: the model's logits are not numbers (NaN)" \
  "$build/10_pretrained" --model nan.gguf --perplexity text.txt --window 8
[[ ! -e bad.npy ]] || fail "--logits wrote what is no number"

# A file that grows too large is refused by name, and nothing is left of it.
refuses "big.gguf: can't be written: File too large" \
  bash -c 'ulimit -f 1; "$1" --quantize in.gguf big.gguf --type q8_0' bash "$quantization"
[[ -z $(find . -maxdepth 1 -name '.partial*' -o -name big.gguf) ]] || fail "left behind: $(ls -A)"
refuses "--adapter: wanted --float too" "$quantization" --adapter x.gguf --model none.gguf --chat

# A task refuses what it does not take, rather than to ignore it.
takes_not() { refuses "does not take --$1" "${@:2}"; }
for flag in "adapter x" "rope-scaling yarn=4" "pairing halves" "cache-bits 8" float; do
  takes_not "${flag% *}" "$quantization" --quantize in.gguf new.gguf --type q8_0 --$flag
done
takes_not system "$build/10_pretrained" --bench --system x
takes_not window "$build/10_pretrained" --prompt x --window 9
refuses "--window: wanted --perplexity or --perplexity-by-position too" "$build/10_pretrained" --window 9
refuses "--importance: wanted --quantize too" "$quantization" --importance empty.txt
tuning=$build/17_fine_tuning
for flag in merge questions ask; do refuses "--$flag: wanted --fine-tune too" "$tuning" --$flag x; done
for flag in epochs lessons; do refuses "--$flag: wanted --fine-tune too" "$tuning" --$flag 2; done
for flag in "other x" "model x" "rank 2"; do
  refuses "--${flag% *}: wanted --fine-tune or --lora-rewards too" "$tuning" --$flag
done
for flag in "kappa 1" "merge x" "epochs 2" "save d"; do takes_not "${flag% *}" "$tuning" --lora-rewards new --$flag; done
refuses "--lora-rate: wanted more than 0, got -1" "$tuning" --lora-rewards new --lora-rate -1
takes_not save "$tuning" --fine-tune new --save d
takes_not save "$build/18_experiments" --experiment norms --save d
training=$build/13_training
for flag in "save d" "tour-steps 20"; do takes_not "${flag% *}" "$training" --run new --$flag; done
for flag in "width 32" "seed 2" "file x" "save d"; do takes_not "${flag% *}" "$training" --resume new --$flag; done
refuses "--experiment and --encoder: wanted one of them at a time" "$build/18_experiments" --experiment norms --encoder reversal
refuses "--seeds: wanted --experiment or --encoder too" "$build/18_experiments" --seeds 2
refuses "--muon: wanted values, short, long or longer, got x" "$build/18_experiments" --muon x
refuses "--width: wanted --run too" "$training" --width 32
refuses "--run and --resume: wanted one of them at a time" "$training" --run a --resume a
refuses "--solutions: wanted no other flag with it, got --seed" "$build/05_kv_cache" --seed 2 --solutions
refuses "--file and --folder: wanted one of them at a time" "$training" --file a --folder a
refuses "--file and --folder: wanted one of them at a time" "$build/18_experiments" --file a --folder a
[[ ! -e new && ! -e new.gguf && ! -e d ]] || fail "a refused task left something"
"$quantization" --help | grep -- '--quantize IN OUT ' >/dev/null || fail "--help does not say that --quantize takes two files"

# An output never takes the place of an input, under no name of it, nor of another output.
mkdir same same/run && cp in.gguf same/model && ln same/model same/hard && ln -s model same/link
echo text | tee same/text same/run/loss.csv >same/questions
ln -s same other_name
cp -r same same_before
apart() { refuses "wanted different files, got" "$@"; }
for model in same/model same/link same/hard ./same/../same/model other_name/model "$scratch/same/model"; do
  apart "$build/10_pretrained" --model "$model" --ids 1,2 --logits same/model
  apart "$build/10_pretrained" --model "$model" --ids 1,2 --export same/model
  apart "$build/10_pretrained" --adapter "$model" --ids 1,2 --logits same/model
  apart "$build/12_quantization" --quantize in.gguf same/model --type q8_0 --importance "$model"
  apart "$build/12_quantization" --quantize "$model" same/model --type q8_0
done
apart env T2T_WEIGHTS=same/model "$build/10_pretrained" --ids 1,2 --logits same/model
for read in questions other ask model; do
  apart "$build/17_fine_tuning" --fine-tune same/questions --$read same/./questions
  apart "$build/17_fine_tuning" --fine-tune new --merge same/questions --$read other_name/questions
done
apart "$build/17_fine_tuning" --fine-tune new.gguf --merge ./new.gguf
refuses "--run and --file: same/run/loss.csv lies in the folder that is written to" \
  "$build/13_training" --run same/run/ --file same/run/loss.csv
apart "$build/13_training" --run same/run/ --folder other_name/run/.
apart "$build/07_swiglu" --file same/text --svg same/text
apart "$build/07_swiglu" --svg "$home/docs/07_swiglu.md"
cp saved/ids.npy same/x.npy && cp saved/ids.npy same_before/x.npy
for flag in save trace; do
  refuses "--$flag and --adapter: same/x.npy lies in the folder" \
    "$build/10_pretrained" --adapter same/x.npy --ids 1 --$flag other_name
  refuses "--$flag and --logits: same/new.npy lies in the folder" \
    "$build/10_pretrained" --ids 1 --logits same/new.npy --$flag same
done
diff -r same same_before || fail "a refused output took a file's place"
[[ ! -e new && ! -e new.gguf ]] || fail "a refused output was begun"
accepts "$build/12_quantization" --quantize same/link same/new --type q8_0

# Ranks are refused before any of them is started, and a run without mpirun says what to install.
refuses "--ranks: wanted at most 64, got 65" "$build/19_ranks" --ranks 65
refuses "--length: wanted at most 67108864, got 99999999" "$build/19_ranks" --length 99999999
refuses "is missing: /none (Debian: openmpi-bin" env T2T_MPIRUN=/none "$build/19_ranks" --ranks 2
refuses "3 processes were started, but MPI knows of 1" env HWLOC_HIDE_ERRORS=2 PMI_RANK=0 T2T_RANKS=3 "$build/19_ranks"
accepts env T2T_MPIRUN=/none "$build/19_ranks" --help
accepts env T2T_BRIEF=1 "$build/19_ranks" --ranks 3 --length 10 --save ranks
accepts test -s ranks/ring.npy
refuses "--ranks: wanted at most 64, got 65" "$build/20_split_models" --ranks 65 --prompt x
refuses "ranks: wanted at most H = 9, got 10" "$build/20_split_models" --ranks 10
refuses "--split: wanted tensor, context or experts, got rows" "$build/20_split_models" --split rows
refuses "--prefill: wanted from 6, two tokens for each rank, to 1048576, got 5" "$build/20_split_models" --split context --ranks 3 --prefill 5
refuses "ranks: wanted at most one for each of E = 8 experts, got 9" "$build/20_split_models" --split experts --ranks 9
refuses "none.gguf: there is no such file" "$build/20_split_models" --ranks 2 --model none.gguf
accepts "$build/20_split_models" --ranks 3 --save split
refuses "L, the blocks: wanted at least one for each of 9 stages, got 8" "$build/21_pipeline" --ranks 9
refuses "--schedule: wanted gpipe or 1f1b, got zb" "$build/21_pipeline" --schedule zb
refuses "--parts: wanted at most 64, got 65" "$build/21_pipeline" --parts 65
accepts "$build/21_pipeline" --ranks 3 --parts 2 --save pipeline --svg pipeline.svg
accepts test -s pipeline.svg
refuses "--ids: wanted integers below 61, as in 1,2,3, got 61" "$build/25_sinks" --model "$home/tests/fixtures/25_sinks/gpt_oss.gguf" --ids 3,61
refuses "tokenizer.ggml.model" "$build/25_sinks" --model "$home/tests/fixtures/25_sinks/gpt_oss.gguf" --prompt hi
refuses "L, the blocks: wanted at least one for each of 5 stages, got 4" "$build/22_grid" --stages 5
refuses "ranks that train: wanted at most G = 8, got 9" "$build/22_grid" --tensor 9
refuses "ranks: wanted at most 64, got 9 data x 2 stages x 4 tensor = 72" "$build/22_grid" --data 9 --tensor 4
refuses "--parts: wanted from 3, the data ranks, to 64, got 2" "$build/22_grid" --data 3 --parts 2
refuses "--limit: wanted a time above 0 seconds, got 0" "$build/22_grid" --limit 0
refuses "experts of a layer: wanted at least one for each of 9 expert ranks, got 8" "$build/22_grid" --data 1 --stages 1 --tensor 1 --experts 9 --parts 9
refuses "--parts: wanted a multiple of 4, data ranks times expert ranks, got 6" "$build/22_grid" --tensor 1 --experts 2 --parts 6
accepts "$build/22_grid" --data 1 --tensor 1 --experts 2 --train on-a-grid --steps 2 --every 1
accepts "$build/22_grid" --stages 1 --tensor 1 --mixture --train on-a-grid --steps 2 --every 1
refuses "--train: wanted a new folder, or in on-a-grid A training of chapter 22 on a grid, a dense model, 4 micro-batches, seed 1, 2 steps, got A training of chapter 22 on a grid, a mixture" "$build/22_grid" --train on-a-grid --steps 2
accepts "$build/22_grid" --data 3 --stages 1 --tensor 2 --parts 3 --save grid --same-bits
accepts test -s grid/logits.npy
refuses "R, a head's rotated channels: wanted an even number of at least 2, got 3" "$build/23_latent" --rotated 3
accepts "$build/23_latent" --tokens 9 --query-rank 0 --save latent
accepts test -s latent/cache.npy
latents=$home/tests/fixtures/23_latent
accepts "$build/23_latent" --model "$latents/v2_lite.gguf" --prompt "the end" --tokens 3
accepts "$build/23_latent" --model "$latents/v3.gguf" --ids 1,2 --float
refuses "--prompt: wanted --model too" "$build/23_latent" --prompt x
refuses "--prompt and --ids: wanted one of them" "$build/23_latent" --model "$latents/v3.gguf" --prompt x --ids 1
refuses "v3.gguf: has no tokenizer.ggml.model" "$build/23_latent" --model "$latents/v3.gguf" --prompt x
refuses "--ids: wanted integers below 59, as in 1,2,3, got 59" "$build/23_latent" --model "$latents/v3.gguf" --ids 59
refuses "general.architecture: wanted deepseek2, got llama" "$build/23_latent" --model "$home/tests/fixtures/10_pretrained/tiny.gguf"
refuses "--tokens: wanted" "$build/24_delta_rule" --tokens 0
accepts "$build/24_delta_rule" --tokens 5 --save delta
accepts test -s delta/memory.npy
hybrids=$home/tests/fixtures/24_delta_rule
accepts "$build/24_delta_rule" --model "$hybrids/qwen3_next.gguf" --ids 1,2 --tokens 3
accepts "$build/24_delta_rule" --model "$hybrids/qwen3_next_old.gguf"
refuses "--ids: wanted --model too" "$build/24_delta_rule" --ids 1
refuses "qwen3_next.gguf: has no tokenizer.ggml.model" "$build/24_delta_rule" --model "$hybrids/qwen3_next.gguf" --prompt x
refuses "--ids: wanted integers below 61, as in 1,2,3, got 61" "$build/24_delta_rule" --model "$hybrids/qwen3_next.gguf" --ids 61
refuses "general.architecture: wanted qwen3next, got llama" "$build/24_delta_rule" --model "$home/tests/fixtures/10_pretrained/tiny.gguf"
refuses "--svg-ladder: wanted two files" "$build/11_flash_attention" --svg-ladder "$home/README.md"
refuses "README.md: no record of ./learn gpu" "$build/11_flash_attention" --svg-ladder "$home/README.md" ladder.svg

# A figure that a page could not show is named, with what is wrong with it.
accepts python3 "$home/docs/weaving/figures.py" pipeline.svg
while IFS='|' read -r change says; do
  sed "$change" pipeline.svg >changed.svg
  ! python3 "$home/docs/weaving/figures.py" changed.svg >out && grep -qF "$says" out && passed=$((passed + 1)) && continue
  fail "wanted '$says' of a figure after $change" && cat out
done <<'END'
s/<desc>.*<.desc>//|has no desc
s/<.svg>//|is no XML
s/ x="8"/ x="-8"/|has words that leave the picture
s/class="first"/class="red"/|has an unknown tone: red
s/class="second"/fill="red"/|has a colour of its own in rect
s/prefers-color-scheme:dark/print/|has no colours for dark pages
END
accepts env T2T_BRIEF=1 "$build/20_split_models" --split experts --ranks 3 --save experts
accepts test -s experts/fullest.npy

# A real model's program, on a file that has a tokenizer and nothing else.
pretrained=$build/10_pretrained
tokenizer=$home/tests/fixtures/10_pretrained/tokenizer.gguf
head -c 50000000 /dev/zero | tr '\0' ' ' >spaces.txt
accepts "$pretrained" --model "$tokenizer" --tokenize-file empty.txt
refuses "spaces.txt: a word of 50000000 bytes" "$pretrained" --model "$tokenizer" --tokenize-file spaces.txt
refuses "spaces.txt: a word of 50000000 bytes" "$pretrained" --model "$tokenizer" --perplexity spaces.txt
refuses "bad.txt: byte 0xff at offset 2 is not UTF-8" "$pretrained" --model "$tokenizer" --perplexity bad.txt
refuses "empty.txt: wanted at least 2 tokens" "$pretrained" --model "$tokenizer" --perplexity empty.txt
refuses "none.gguf: there is no such file; ./learn weights" "$pretrained" --model none.gguf --chat
refuses "empty.txt: header: is not a GGUF file" "$pretrained" --model empty.txt --chat
refuses "--chat and --prompt: wanted one of them" "$pretrained" --chat --prompt hi
refuses "--prompt and --ids: wanted one of them" "$pretrained" --prompt hi --ids 1
refuses "--info and --logits: wanted one of them" "$pretrained" --info --logits x.npy
refuses "--compare: wanted two folders, got one" "$pretrained" --compare a
cp -r "$home/tests/fixtures/10_pretrained/trace" parted && cp parted/embedding.npy parted/final_norm.npy
accepts "$pretrained" --compare parted parted
"$pretrained" --compare "$home/tests/fixtures/10_pretrained/trace" parted >out && fail "status 0 where traces part"
grep -q "They first differ at final_norm" out || fail "does not say where traces part: $(cat out)"
refuses "--system: wanted --chat too" "$pretrained" --system "Be brief."
refuses "--pairing: wanted neighbours or halves, got thirds" "$pretrained" --pairing thirds
refuses "--cache-bits: wanted 32, 8 or 4, got 5" "$build/12_quantization" --cache-bits 5
refuses "RoPE's scaling: wanted none, linear" "$pretrained" --rope-scaling yarn --chat
refuses "--export and --logits: wanted one of them" "$pretrained" --export x.bin --logits x.npy
refuses "--alone: wanted --perplexity-by-position too" "$pretrained" --alone
takes_not alone "$pretrained" --alone --chat
refuses "--top-k: wanted an integer from 0" "$pretrained" --top-k -1
refuses "/none/x.npy: can't be written" "$pretrained" --model none.gguf --logits /none/x.npy
refuses "/dev/null: wanted a plain file or none" "$pretrained" --model none.gguf --logits /dev/null

# A chat template that is not known here is told of, with what is used in its place.
"$build/tiny_model" tiny.gguf
LC_ALL=C sed 's/You are tiny\./{{ a|trim }}./' tiny.gguf >other.gguf
echo Hi | "$pretrained" --model other.gguf --chat --tokens 2 >out 2>err || fail "no chat with another template: $(cat err)"
grep -q "other.gguf: its chat template is none of those known here (.*); plain ChatML is used instead" err ||
  fail "does not say that the chat template is not known: $(cat err)"

# A server: what it refuses, and one that answers and ends when it is asked to.
serving=$build/16_server
"$build/tiny_model" serve.gguf
refuses "--port: wanted a number up to 65535, got 70000" "$serving" --serve --port 70000
refuses "--cache-tokens: wanted room for a sequence of --context 2048, got 99" "$serving" --serve --cache-tokens 99
refuses "--budget: wanted a token for each of --parallel 16 sequences, got 4" "$serving" --serve --budget 4
refuses "--cache-bits: wanted 32, 8 or 4, got 5" "$serving" --serve --cache-bits 5
refuses "empty.txt: wanted a key in the first line, got none" "$serving" --serve --key empty.txt
refuses "--rate: wanted a number above 0 and at most 1000, got 0" "$serving" --load http://127.0.0.1:1 --rate 0
refuses "no server answers there" "$serving" --load http://127.0.0.1:1
refuses "--rate: wanted --load too" "$serving" --rate 2
"$serving" --serve --model serve.gguf --port 0 --context 256 --cache-bits 8 --swap 512 >served 2>log &
for _ in $(seq 100); do ! grep -q "Ctrl-C" served || break; sleep 0.1; done
address=$(sed -n 's/^ *\(http.*\)\/v1 .*/\1/p' served)
accepts "$serving" --load "$address" --rate 100 --requests 8 --words 1 --tokens 5
grep -q "^  8 of 8 were answered" out || { fail "a server under load says:" && cat out err log; }
kill -TERM $! && wait $! || fail "a server that is asked to end ends with $?"

# A run trains in a folder of its own, one program at a time, and leaves a reader's files alone.
training=$build/13_training
tiny=(--width 32 --layers 1 --heads 2 --groups 1 --context 32 --batch 2)
mkdir mine && for file in model.gguf loss.csv .partial-notes .partial-a1B2c3; do echo own >mine/$file; done
refuses "--run: mine: wanted a new or an empty folder" "$training" --run mine "${tiny[@]}" --steps 5
[[ $(cat mine/model.gguf mine/loss.csv mine/.partial-*) == $'own\nown\nown\nown' && $(ls -A mine | wc -l) == 4 ]] ||
  fail "a refused --run changed: $(ls -lA mine)"
refuses "none: can't be read" "$training" --run fresh --file none
[[ ! -e fresh ]] || fail "a refused --run left: $(ls -A fresh)"
for sizes in "--width 24000 --layers 1000" "--layers 1000000" "--ffn 1000000000"; do
  refuses "the model with all that training stores: wants about" "$training" --run fresh --file none $sizes
done
refuses "--decay: wanted 0 or more, and below 1e9" "$training" --run fresh --decay 1e9
refuses "--rate: wanted more than 0, and below 1e9" "$training" --run fresh --rate 1e20
refuses "--steps: wanted at most 1,000,000,000" "$training" --run fresh --steps 1073741824
refuses "can't be written: File too large" bash -c 'ulimit -f 8; "$@"' bash "$training" --run fresh "${tiny[@]}"
[[ ! -e fresh ]] || fail "a full disk left: $(ls -A fresh)"
mkdir odd odd/x.md && sed 's/$/\r/' "$home"/docs/13_*.md >odd/a.txt
accepts "$training" --run crlf "${tiny[@]}" --steps 5 --folder odd
accepts "$training" --run fresh "${tiny[@]}" --steps 5
refuses "--run: fresh holds a run" "$training" --run fresh "${tiny[@]}"
accepts "$training" --resume fresh
# A program that is stopped still holds its folder.
"$training" --run two "${tiny[@]}" --steps 100000 >/dev/null 2>&1 &
for ((i = 0; i < 200; ++i)); do [[ -e two/state.gguf ]] && break || sleep 0.1; done
kill -STOP $!
refuses "two: another program is at work in this folder" "$training" --resume two
mv two/state.gguf kept
refuses "two: another program is at work in this folder" "$training" --run two --file none
mv kept two/state.gguf
kill -CONT $! && kill $! && wait $! || fail "a refused run hurt the one that was there"
refuses "--run: two holds a run" "$training" --run two "${tiny[@]}"

# The tour ends well although what built ahead has ended before it.
mkdir -p toy/chapters/01_toy toy/build/release toy/bin
cp -r "$home/learn" "$home/commands" toy
printf '#!/bin/sh\nsleep 0.5\n' >toy/build/release/01_toy && printf '#!/bin/sh\n' >toy/bin/cmake
chmod +x toy/build/release/01_toy toy/bin/cmake
touch toy/build/release/build.ninja toy/chapters/01_toy/about
accepts env PATH="$PWD/toy/bin:$PATH" T2T_WEIGHTS=none toy/learn tour
grep -q '01_toy .* ok$' out || fail "a tour of one chapter printed: $(cat out)"
# It ends with chapter 10, and one that begins at 11 goes on to the last.
for name in 10_ten 11_more; do
  mkdir toy/chapters/$name && touch toy/chapters/$name/about && cp toy/build/release/01_toy toy/build/release/$name
done
accepts env PATH="$PWD/toy/bin:$PATH" T2T_WEIGHTS=none toy/learn tour
grep -q '10_ten .* ok$' out && ! grep -q 11_more out && grep -q 'tour 11 goes on' out || fail "a tour printed: $(cat out)"
accepts env PATH="$PWD/toy/bin:$PATH" T2T_WEIGHTS=none toy/learn tour 11
grep -q '11_more .* ok$' out && ! grep -q 10_ten out || fail "a tour from chapter 11 printed: $(cat out)"

accepts "$learn"
accepts "$learn" --help
accepts "$learn" test --help
refuses "unknown command 'fly'" "$learn" fly
refuses "there is no chapter '99'" "$learn" run 99
refuses "there is no chapter 'ropes'" "$learn" test ropes
refuses "there is no chapter '18446744073709551617'" "$learn" run 18446744073709551617
refuses "--json wants a file" "$learn" bench --json
refuses "--json wants a file" "$learn" bench --json --yes
refuses "--json is given twice" "$learn" bench --json a --json b
refuses "there is no chapter '99'" "$learn" test 01 99
refuses "there is no chapter '99'" "$learn" bench 01 99
refuses "unknown command '../learn'" "$learn" ../learn
refuses "unknown command 'lib'" "$learn" lib
refuses "unknown command 'fly'" "$learn" help fly
refuses "run which chapter? The chapters are: 01_embedding" "$learn" run
refuses "run does not take '--fast'; usage: ./learn run NN [--mine] [flags]" "$learn" run --fast
nvidia-smi -L &>/dev/null || refuses "--gpu: wanted an NVIDIA GPU with its driver, got none" "$learn" run 10 --gpu
nvidia-smi -L &>/dev/null || refuses "--gpu: wanted an NVIDIA GPU with its driver, got none" "$learn" run 12 --gpu
nvidia-smi -L &>/dev/null || refuses "--gpu: wanted an NVIDIA GPU with its driver, got none" "$learn" run 16 --serve --gpu
refuses "test does not take '--fast'; usage: ./learn test [NN ...] [--all] [--yes]" "$learn" test 01 --fast
refuses "bench does not take '--yes'; usage: ./learn bench [NN ...] [--json FILE]" "$learn" bench --yes
refuses "chapter 17 has nothing to measure" "$learn" bench 17
refuses "there is no chapter '99'" "$learn" tour 99
refuses "tour does not take '04'; usage: ./learn tour [--yes] [CHAPTER]" "$learn" tour 03 04
refuses "tour does not take '--fast'; usage: ./learn " "$learn" tour --fast
refuses "there is no chapter '99'" "$learn" docs 99
refuses "docs does not take '--fast'; usage: ./learn docs [NN ...] [--check]" "$learn" docs 03 --fast
for word in map doctor setup weights; do
  refuses "$word does not take '03'; usage: ./learn " "$learn" "$word" 03
  refuses "$word does not take '--fast'; usage: ./learn " "$learn" "$word" --fast
done
refuses "setup does not take '03'" "$learn" setup --yes 03
refuses "site does not take '03'; usage: ./learn site [--serve PORT] [--check] [--yes]" "$learn" site 03
for port in x 70000 -1 ''; do
  refuses "--serve: wanted a port up to 65535, got '$port'" "$learn" site --serve "$port"
done

# Every file of commands/ has a line in the help and help of its own, wherever --help stands.
"$learn" --help >overview
for word in "$home"/commands/[a-z]*; do
  [[ -f $word ]] || continue
  word=${word##*/}
  usage=$("$learn" "$word" --help | sed -n '1s/: .*//p')
  [[ $usage == "./learn "*"$word"* ]] || fail "./learn $word --help begins: $usage"
  grep -qF -- "$usage " overview || fail "./learn --help does not list: $usage"
  accepts "$learn" help "$word"
  [[ $usage != *'[flags]' ]] || continue
  accepts "$learn" "$word" --fast --help
  grep -qF -- "$usage: " out || fail "./learn $word --fast --help: $(cat out)"
done
[[ $(wc -l <overview) -eq $(($(find "$home/commands" -maxdepth 1 -type f | wc -l) + 2)) ]] || fail "$(cat overview)"

# Each chapter says what it is about; the map shows it.
"$learn" >overview
for chapter in "$home"/chapters/[0-9][0-9]_*; do
  keys=$(sed '/^room [a-z0-9_]*: /d; s/: .*//' "$chapter/about" | paste -sd' ' -)
  [[ $keys =~ ^"component adds shows write"(" easy")?(" hard")?(" chat")?(" gpu")?$ ]] || fail "$chapter/about has the lines: $keys"
  grep -qF -- "$(sed -n 's/^adds: //p' "$chapter/about")" overview || fail "the map does not show $chapter"
done

# A model file of the reader's own is neither written over nor removed.
echo own >own.gguf
refuses "own.gguf, which is not that model" env T2T_WEIGHTS="$scratch/own.gguf" "$learn" weights --yes
[[ $(cat own.gguf) == own ]] || fail "own.gguf was written over"

# Without a compiler, where nothing is built yet: what is missing, and what to do.
mkdir bin house
cp "$learn" house/
ln -s "$home/chapters" "$home/commands" house/
for tool in bash env cat cut dirname find getconf grep head id ls mkdir paste python3 readlink sed sort tail cmake ninja patch; do
  ln -s "$(command -v $tool)" bin/
done
refuses "missing here: C++ compiler" env -u CXX PATH="$scratch/bin" house/learn run 01
refuses "missing here: C++ compiler" env -u CXX PATH="$scratch/bin" house/learn bench 01 02
PATH=$scratch/bin house/learn setup </dev/null >out 2>err && fail "setup without a terminal went ahead"
grep -q "Missing here: C++ compiler" err || fail "setup does not say what is missing: $(cat err)"
printf '#!/bin/sh\n' >bin/brew && chmod +x bin/brew
PATH=$scratch/bin house/learn setup </dev/null >out 2>err && fail "setup without a terminal went ahead"
grep -q "^  brew install .* libomp " err || fail "setup on a Mac shows: $(cat err)"
rm bin/brew
mkdir links && ln -s ../house/learn links/through && ln -s links/through door
accepts ./door map

# docs weaves in place; docs --check only compares, so that a stale page fails and stays as it is.
mkdir -p tools house/build/release house/build/python/bin
ln -s "$home/docs" house/
: >house/build/release/build.ninja
printf '#!/bin/sh\n' >tools/cmake
printf '#!/bin/sh\n[ "$2" != compdb ] || echo "[]"\n' >tools/ninja
printf '#!/bin/sh\n[ "$1" != -c ] || exit 0\necho "$@"\nexit 1\n' >house/build/python/bin/python
chmod +x tools/cmake tools/ninja house/build/python/bin/python
refuses "a page is stale" env PATH="$scratch/tools:$PATH" house/learn docs --check
[[ $(cat out) == *" --check "* && $(cat out) != *" -r "* ]] || fail "docs --check runs cog with: $(cat out)"
refuses "a page is stale" env PATH="$scratch/tools:$PATH" house/learn docs
[[ $(cat out) == *" -r "* ]] || fail "docs runs cog with: $(cat out)"

# It also counts some words in the pages' own sentences: a page above a limit is refused, by name, word, count and limit.
printf '#!/bin/sh\n[ "$1" != weaving/prose.py ]\n' >house/build/python/bin/python
refuses "a page uses a word too often" env PATH="$scratch/tools:$PATH" house/learn docs --check
mkdir -p book/docs/weaving && cp "$home/docs/weaving/prose.py" book/docs/weaving/
times() { printf "%.0s$2 " $(seq "$1"); }
counted() { python3 book/docs/weaving/prose.py "$@" >out 2>err </dev/null; }
counts() { # PART-OF-THE-MESSAGE TEXT-OF-A-PAGE
  echo "$2" >book/docs/p.md
  counted book/docs/p.md && fail "a page passes with: $2" && return
  grep -qF -- "docs/p.md: $1: " out && passed=$((passed + 1)) || fail "wanted '$1', got $(cat out err) of a page with: $2"
}
most="$(times 1 "So it is.") $(times 7 "it is, so it is") $(times 8 "it has") $(times 6 numbers)"
other="it is, so that it is. \`So it has numbers, so\` [it](has-numbers.md#learned-by-heart), has L = 8, a standard deviation, powers of 2"
elsewhere=$'# So it has numbers\n\n```text\nSo it`s what has numbers, so by heart\n```\n\n| So it has numbers, so by heart |'
woven=$'<!-- [[[cog output("x") ]]] -->\n\nSo it has numbers, so by heart\n\n<!-- [[[end]]] -->'
printf '%s\n\n' "$elsewhere" "$woven" "$most $(times 9 "$other")" >book/docs/p.md
counted book/docs/p.md || fail "a page at its limits is refused: $(cat out err)"
counts '"So" 2 times in 63 words of prose, at most 1' "$most So it is."
counts '", so" 8 times in 63 words of prose, at most 7' "$most it is, so"
counts '"has" 9 times in 61 words of prose, at most 8' "$most has"
counts '"numbers" 7 times in 61 words of prose, at most 6' "$most numbers"
counts '"numbers" 13 times in 2,013 words of prose, at most 12' "$(times 2000 it) $(times 13 numbers)"
for words in "by heart" "computed again" "whole number" "nats a byte"; do counts "\"$words\" 1 time, at most 0" "It is ${words/ /$'\n'}."; done
echo "$(times 994 it) $(times 6 numbers)" | tee book/docs/p.md >book/docs/q.md
times 1000 it >book/README.md && counted && fail "all pages have 12 in 3,000, and 2 in 1,000 is the limit"
grep -qF 'all pages: "numbers" 12 times in 3,000 words of prose, at most 6: ' out || fail "all pages together: $(cat out err)"
rm book/docs/q.md && times 2000 it >book/README.md && counted || fail "all pages have 6 in 3,000: $(cat out err)"

# A copied or moved folder builds its own sources, in a folder of any name; builds take turns.
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$home" >house/build/release/CMakeCache.txt
: >house/build/release/01_embedding
PATH=$scratch/tools:$PATH house/learn run 01 >out 2>err </dev/null && fail "runs what is not built"
grep -q "was built in $home: it is built anew" err || fail "a copied folder says: $(cat err)"
[[ ! -e house/build/release/01_embedding ]] || fail "a copied folder kept the programs of the original"

# A build of another compiler is not used, and not thrown away for one that is not there.
mkdir -p house/build/release
echo "CMAKE_CXX_COMPILER:STRING=$(command -v cat)" >house/build/release/CMakeCache.txt
: >house/build/release/01_embedding && : >house/build/release/build.ninja
refuses "missing here: C++ compiler" env CXX=none PATH="$scratch/tools:$PATH" house/learn run 01
[[ -e house/build/release/01_embedding ]] || fail "a compiler that is not there cost what was built"
PATH=$scratch/tools:$PATH house/learn run 01 >out 2>err </dev/null && fail "runs what another compiler built"
grep -q "was built by $(command -v cat): it is built anew" err || fail "another compiler's build: $(cat err)"
[[ ! -e house/build/release/01_embedding ]] || fail "another compiler's programs were kept"

cp -rP house "it's; touch PWNED; '"
env -u T2T_WEIGHTS "./it's; touch PWNED; '/learn" weights --yes >out 2>err </dev/null && fail "fetched from nowhere"
grep -q "fetching the weights failed" err || fail "weights in a folder of an odd name: $(cat err)"
[[ ! -e PWNED && ! -e "it's; touch PWNED; '/PWNED" ]] || fail "the name of a folder was run as a command"
odd='p$(touch PWNED)q'
cp -rP house "$odd"
refuses "its path may hold no \$ \` \" \\ ; and no line end" "$odd/learn" run 01
[[ ! -e PWNED && ! -e "$odd/PWNED" ]] || fail "the name of a folder was run as a command by a build"
if command -v flock >/dev/null; then
  echo "building rope" >house/build/at_work
  flock house/build/lock sleep 1 &
  env PATH="$scratch/tools:$PATH" house/learn docs --check >out 2>err </dev/null
  grep -q "another ./learn is at work in this folder, perhaps in the background: waiting for it (building rope)" err || fail "no turns: $(cat err)"
  wait
fi
rm -rf house/build && : >house/build
refuses "house/build can't be written" env PATH="$scratch/tools:$PATH" house/learn run 01

# Only linalg.cpp pays for including xtensor-blas.
[[ $(grep -rl --include=*.[ch]pp 'xtensor-blas/' "$home/common" "$home/chapters") == "$home/common/linalg.cpp" ]] || fail "a second door to BLAS"

echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
