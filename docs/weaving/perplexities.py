"""Measures the perplexities that the pages quote, all of them on one text that never changes: docs/recorded/text/measured.txt.

python3 docs/weaving/perplexities.py [cache] [file] [long] records docs/recorded/perplexity_NAME.json. The programs of chapters 10
and 12 must be built, and the weights fetched. All three take about an hour on two cores.
"""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "docs/recorded/text/measured.txt"
IMPORTANCE = TEXT.with_name("importance.txt")
WEIGHTS = ROOT / "build/weights/smollm2-135m-instruct.q4_1.gguf"
WINDOW = "2048"


def run(chapter, *words):
    told = subprocess.run([ROOT / "build/release" / chapter, *words], capture_output=True, text=True, check=True).stdout
    print(" ".join(map(str, words)), told.strip().splitlines()[-1], flush=True)
    return told


def perplexity(*words):
    """(tokens scored, perplexity) of the text; with the flags of chapter 12's program."""
    told = run("12_quantization", "--perplexity", TEXT, "--window", WINDOW, *words)
    tokens, found = re.search(r"(\d+) tokens scored, perplexity ([\d.]+)", told).groups()
    return int(tokens), float(found)


def more(found, than):
    return f"{100 * (found / than - 1):.2f} %"


def cache():
    tokens, packed = perplexity()
    floats = perplexity("--float")[1]
    rows = [["floats", f"{packed:.3f}", "", f"{floats:.3f}", ""]]
    for bits in ("8", "4"):
        of_packed, of_floats = (perplexity("--cache-bits", bits, *flag)[1] for flag in ([], ["--float"]))
        rows.append([f"{bits} bits", f"{of_packed:.3f}", more(of_packed, packed), f"{of_floats:.3f}", more(of_floats, floats)])
    return tokens, ["cache", "packed weights, activations in 8 bits", "more", "float weights and activations", "more"], rows


def file():
    tokens, own = perplexity("--float")
    columns = ["type", "size", "perplexity, scale of the range", "with a search", "with importance"]
    rows = [["the file itself", f"{WEIGHTS.stat().st_size / 1e6:.0f} MB", f"{own:.3f}", "", ""]]
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder, "made.gguf")
        for kind in ("q8_0", "q6_k", "q4_1", "q4_k", "q4_0"):
            found = []
            for how in ([], ["--search"], ["--importance", IMPORTANCE]):
                run("12_quantization", "--quantize", WEIGHTS, made, "--type", kind, *how)
                found.append(f"{perplexity('--float', '--model', made)[1]:.3f}")
                size = made.stat().st_size
                made.unlink()
            rows.append([kind.upper(), f"{size / 1e6:.0f} MB", *found])
    return tokens, columns, rows


def long():
    named = ["none", "linear", "ntk", "llama3", "yarn"]
    how = [["--alone"], *(["--rope-scaling", f"{name}=2"] for name in named)]
    of_each = [run("10_pretrained", "--perplexity-by-position", TEXT, "--tokens", "12288", "--window", WINDOW, *words) for words in how]
    found = [re.findall(r"^\s*([\d,]+)\s+([\d,]+)\s+([\d.]+)\s*$", told, re.M) for told in of_each]
    rows = [[f"{first} … {last}", *(one[i][2] for one in found)] for i, (first, last, _) in enumerate(found[0])]
    return 12288, ["positions", "alone", "none", "linear", "NTK-aware", "Llama 3", "YaRN"], rows


def processor():
    return re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()).group(1)


def record(name, tokens, columns, rows):
    what = {"text": str(TEXT.relative_to(ROOT)), "digest": hashlib.sha256(TEXT.read_bytes()).hexdigest()[:16], "tokens": tokens,
            "window": int(WINDOW), "columns": columns, "rows": rows,
            "note": f"Recorded {datetime.date.today()} on {processor()}: `python3 docs/weaving/perplexities.py {name}`."}
    (ROOT / f"docs/recorded/perplexity_{name}.json").write_text(json.dumps(what, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or ["cache", "file", "long"]:
        record(name, *{"cache": cache, "file": file, "long": long}[name]())
