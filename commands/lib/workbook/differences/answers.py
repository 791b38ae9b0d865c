"""./learn graduate: the real model answers two questions through the reader's parts, beside ours.
locate.py then compares what each part makes of texts."""
import pathlib
import re
import subprocess
import tempfile
import time

from workbook import book
from workbook.commands import parts_list, passing_parts
from workbook.differences import traces

MODEL = "10_pretrained"
QUESTIONS = ["What is the capital of France?", "Why is the sky blue?"]
# The chat's own prompt, so long that no part sees as few rows as in a check that is worked by hand.
CHAT = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")
NEAR = 0.05  # two tokens whose logits are nearer than this: a sum in another order may turn them
WHOSE = {"": "ours", "_mine": "yours"}  # ours first: it tells how long yours may take


def compare():
    """Asks both models, and times them; the reader's parts, and whether their answers are as good
    as ours."""
    # First, since it checks what was edited since its check, so that the list is current.
    pairs = passing_parts.parts_that_pass(MODEL)
    parts_list.show()
    book.say(f"\nThe model runs through these parts. {passing_parts.whose(MODEL, pairs)}")
    passing_parts.build(pairs, f"{MODEL}_mine", MODEL)
    with tempfile.TemporaryDirectory(prefix="t2t-answers-") as folder:
        good = all([_compare_answers(pathlib.Path(folder), question) for question in QUESTIONS])
    print(book.bold("\nSpeed, ours and yours in turn"))
    for ending, whose in 2 * list(WHOSE.items()):
        found = re.search(r"prefill of \d+: ([\d.]+)\s+tokens/s;\s+decode of\s+\d+:\s+([\d.]+)",
                          _run(ending, f"the speed, {whose}", "--bench"))
        print(f"  {whose:<6} prefill {found.group(1)} tokens/s, decode {found.group(2)} tokens/s",
              flush=True)
    print()
    return pairs, good


def _compare_answers(folder, question):
    """Answers a question token by token, with their parts and with ours, and tells where they
    part."""
    prompt, said = CHAT.format(question), {}
    for ending, whose in WHOSE.items():
        text = _run(ending, f"the answer, {whose}", "--prompt", prompt, "--special", "--tokens",
                    "64", "--temperature", "0", "--save", folder / f"said{ending}")
        said[ending] = traces.numbers_of(folder / f"said{ending}/said.npy")
    print(book.bold(f"\nSmolLM2 through your parts: {question}"))
    print(text.rpartition("assistant\n")[2].strip("\n"))
    if said["_mine"] == said[""]:
        book.say(f"Each of its {len(said[''])} tokens is the one that our parts choose.", 2)
        return True
    same = next((i for i, (a, b) in enumerate(zip(said["_mine"], said[""])) if a != b),
                min(map(len, said.values())))
    apart = _how_much_likelier(folder, said, same)
    if apart < NEAR:
        book.say(f"The first {same} tokens are those of ours. Then two were equally likely, by "
                 f"{apart:.2g} in their logits.", 2)
        return True
    book.say(f"Our parts choose another token after {same}, by {apart:.2g} in the logits, so a "
             "part of yours is wrong where no check looks: for so many rows, or for one token at a "
             "time.", 2)
    return False


def _how_much_likelier(folder, said, same):
    """How much our model prefers its own token over theirs where they part; an answer that is over
    ended with a token too."""
    ids = traces.numbers_of(folder / "said/ids.npy") + said[""][:same]
    _run("", "our logits", "--ids", ",".join(map(str, ids)), "--logits", folder / "logits.npy")
    logits = traces.numbers_of(folder / "logits.npy")
    end = int(_run("", "the token of an end", "--tokenize", "<|im_end|>", "--special").strip("[]"))
    return max(logits) - logits[[*said["_mine"], end][same]]


longest = 0  # seconds that a run with our parts took


def _run(ending, what, *flags):
    """What a program prints. With their parts it may take twenty times as long as the longest with
    ours."""
    global longest
    limit, began = max(60, 20 * longest) if ending else None, time.monotonic()
    book.at_work(what)
    try:
        done = subprocess.run([book.BUILD / f"{MODEL}{ending}", *flags], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", cwd=book.ROOT,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        book.die(f"{what}: not there after {limit:.0f} seconds, where ours took {longest:.0f} at "
                 "most. A part works without end for so many rows")
    finally:
        book.at_work("")
    if not ending:
        longest = max(longest, time.monotonic() - began)
    if done.returncode != 0:
        why = done.stderr.strip() or f"exit status {done.returncode}"
        book.die(f"{MODEL}{ending}, {what}: {why}")
    return done.stdout.strip("\n")
