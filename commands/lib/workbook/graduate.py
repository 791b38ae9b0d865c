"""./learn graduate: the real model through the reader's parts, beside ours."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

import house
import ladder
import mine

MODEL = "10_pretrained"
QUESTIONS = ["What is the capital of France?", "Why is the sky blue?"]
# The chat's own prompt, so long that no part sees as few rows as in a check that is worked by hand.
CHAT = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")
NEAR = 0.05  # two tokens whose logits are nearer than this: a sum in another order may turn them
WHOSE = {"": "ours", "_mine": "yours"}  # ours first: it tells how long yours may take


def main():
    pairs = mine.parts_that_pass(MODEL)  # checks what was edited since its check, so that the list is current
    ladder.show()
    house.say("\nThe model runs through these parts. " + mine.whose(MODEL, pairs))
    mine.build(pairs, f"{MODEL}_mine", MODEL)
    with tempfile.TemporaryDirectory(prefix="t2t-graduate-") as folder:
        folder = pathlib.Path(folder)
        good = all([compare_answers(folder, question) for question in QUESTIONS])
        compare_speed()
        good = compare_traces(folder) and good
    if good:
        house.say("\nTalk to it yourself: ./learn run 10 --mine --chat")
    sys.exit(not good)


def compare_answers(folder, question):
    """Answers a question token by token, with their parts and with ours, and tells where they part."""
    prompt, said = CHAT.format(question), {}
    for ending, whose in WHOSE.items():
        text = run(ending, f"the answer, {whose}", "--prompt", prompt, "--special", "--tokens", "64", "--temperature", "0",
                   "--save", folder / f"said{ending}")
        said[ending] = numbers_of(folder / f"said{ending}/said.npy")
    print(house.bold(f"\nSmolLM2 through your parts: {question}"))
    print(text.rpartition("assistant\n")[2].strip("\n"))
    if said["_mine"] == said[""]:
        house.say(f"Each of its {len(said[''])} tokens is the one that our parts choose.", 2)
        return True
    same = next((i for i, (a, b) in enumerate(zip(said["_mine"], said[""])) if a != b), min(map(len, said.values())))
    apart = how_much_likelier(folder, said, same)
    if apart < NEAR:
        house.say(f"The first {same} tokens are those of ours. Then two were equally likely, by {apart:.2g} in their logits.", 2)
        return True
    house.say(f"Our parts choose another token after {same}, by {apart:.2g} in the logits, so a part of yours is wrong where no "
              f"check looks: for so many rows, or for one token at a time.", 2)
    return False


def how_much_likelier(folder, said, same):
    """How much our model prefers its own token over theirs where they part; an answer that is over ended with a token too."""
    ids = numbers_of(folder / "said/ids.npy") + said[""][:same]
    run("", "our logits", "--ids", ",".join(map(str, ids)), "--logits", folder / "logits.npy")
    logits = numbers_of(folder / "logits.npy")
    end = int(run("", "the token of an end", "--tokenize", "<|im_end|>", "--special").strip("[]"))
    return max(logits) - logits[[*said["_mine"], end][same]]


def numbers_of(file):
    """The numbers of an .npy file of one row."""
    content = file.read_bytes()
    begin = 10 + int.from_bytes(content[8:10], "little")
    kind = "i" if b"'<i4'" in content[:begin] else "f"
    return list(struct.unpack(f"<{(len(content) - begin) // 4}{kind}", content[begin:]))


def compare_speed():
    print(house.bold("\nSpeed, ours and yours in turn"))
    for _ in range(2):
        for ending, whose in WHOSE.items():
            print(f"  {whose:<6} {speed(run(ending, f'the speed, {whose}', '--bench'))}", flush=True)


def compare_traces(folder):
    print(house.bold("\nThe trace of every part of every layer, yours beside ours"))
    for ending, whose in WHOSE.items():
        run(ending, f"the trace, {whose}", "--prompt", CHAT.format(QUESTIONS[0]), "--special", "--trace", folder / f"trace{ending}")
    told = run("", "the traces", "--compare", folder / "trace_mine", folder / "trace", may_differ=True)
    print(told)
    return "common parts agree" in told


longest = 0  # seconds that a run with our parts took


def run(ending, what, *flags, may_differ=False):
    """What a program prints. With their parts it may take twenty times as long as the longest with ours."""
    global longest
    limit, began = max(60, 20 * longest) if ending else None, time.monotonic()
    with subprocess.Popen([house.BUILD / f"{MODEL}{ending}", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", env=os.environ, cwd=house.ROOT) as process:
        said, complaint = wait(process, what, began, limit)
    if not ending:
        longest = max(longest, time.monotonic() - began)
    if process.returncode != 0 and not may_differ:
        house.die(f"{MODEL}{ending}, {what}: {complaint.strip() or f'exit status {process.returncode}'}")
    return said.strip("\n")


def wait(process, what, began, limit):
    """What the program prints to both. On a terminal a line tells how long it has been at work."""
    try:
        while True:
            taken = time.monotonic() - began
            house.at_work(f"{what} {taken:.0f} s")
            try:
                return process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                if limit and taken > limit:
                    house.die(f"{what}: not there after {limit:.0f} seconds, where ours took {longest:.0f} at most. "
                              "A part works without end for so many rows")
    finally:
        process.kill()
        house.at_work("")


def speed(text):
    found = re.search(r"prefill of \d+: ([\d.]+)\s+tokens/s;\s+decode of\s+\d+:\s+([\d.]+)", text)
    return f"prefill {found.group(1)} tokens/s, decode {found.group(2)} tokens/s"


if __name__ == "__main__":
    main()
