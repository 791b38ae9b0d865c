"""./learn graduate: the real model through the reader's parts, beside ours."""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

import house
import list as ladder
import mine

MODEL = "10_pretrained"
QUESTION = "What is the capital of France?"


def main():
    argparse.ArgumentParser(prog="./learn graduate").parse_args()
    if not pathlib.Path(os.environ["T2T_WEIGHTS"]).is_file():
        house.die("the real model's file is missing. ./learn weights fetches it")
    ladder.show()
    mine.build(mine.parts_that_pass(MODEL), f"{MODEL}_mine", MODEL)
    print(house.bold(f"\nSmolLM2 through your parts: {QUESTION}"))
    print(run("_mine", "--chat", "--tokens", "64", "--temperature", "0", asked=QUESTION + "\n"))
    print(house.bold("Speed, yours and ours in turn"))
    for _ in range(2):
        for whose, ending in (("yours", "_mine"), ("ours", "")):
            print(f"  {whose:<6} {speed(run(ending, '--bench'))}")
    print(house.bold("\nThe trace of every part of every layer, yours beside ours"))
    with tempfile.TemporaryDirectory(prefix="t2t-trace-") as folder:
        for ending in ("_mine", ""):
            run(ending, "--prompt", QUESTION, "--tokens", "1", "--trace", f"{folder}/trace{ending}")
        print(run("", "--compare", f"{folder}/trace_mine", f"{folder}/trace", may_differ=True))


def run(ending, *flags, asked="", may_differ=False):
    done = subprocess.run([house.BUILD / f"{MODEL}{ending}", *flags], input=asked, capture_output=True, text=True,
                          env=os.environ, cwd=house.ROOT)
    if done.returncode != 0 and not may_differ:
        house.die(f"{MODEL}{ending} {' '.join(flags)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout.strip("\n")


def speed(text):
    found = re.search(r"prefill of \d+: ([\d.]+)\s+tokens/s;\s+decode of\s+\d+:\s+([\d.]+)", text)
    return f"prefill {found.group(1)} tokens/s, decode {found.group(2)} tokens/s"


if __name__ == "__main__":
    main()
