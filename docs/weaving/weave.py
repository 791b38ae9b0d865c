"""What the pages' markers call. cogapp runs them: see ./learn docs.

code(path, name, …)       the functions or structs of these names, each with the comment above it, as one
                          listing; where several share a name, with its first parameters: "name(int a, int b"
part(path, name)          the lines between "// [name]" and "// [/name]"
output(chapter, section)  one section of what a chapter's program prints, by its title
figure(chapter, name)     what a chapter's program draws with --svg FILE, as docs/NAME.svg, with its text alternative
recorded_figure(name, source, run)
                          docs/NAME.svg, which a run drew that takes too long to weave or shows times; run says which, where and when
measured(chapter, only)   the chapter's figures from the recorded run, docs/recorded/measured.json; with only,
                          the lines whose name holds that text; with but, the others; with threads, those on so many
kernels(chapter, only)    what the chapter's CUDA kernels take of a GPU, from docs/recorded/kernels.json; with
                          only, those whose name holds that text
gpus(what)                    what ./learn gpu recorded in docs/gpu, a table for each GPU
solution(chapter, problem)  the folded answer to a problem on paper, as the chapter's program computes it (solutions.cpp)
verdict(chapter, part, mistake)
                          what ./learn check says of a wrong version, as if a reader had written it
examples(chapter, part, program)
                          what ./learn example says of the cases in a program: tests/workbook/rms_norm_examples.cpp
ladder()                  what ./learn list says before anything is written
recorded(name)            the table of a run that takes too long to weave, from docs/recorded/NAME.json: columns, rows and
                          a note on the command and the machine; perplexities also of which text, which may not change
wrong(chapter, names)     wrong versions by name, in this order, each with its first line; link=False: no link to all
mistakes()                every wrong version of every chapter: docs/mistakes.md
chapters()                the table of chapters, from the file `about` in each one's folder
way()                     the line at the end of a page that names what comes before and after it: way.txt
routes()                  the routes through the pages, with minutes
rooms()                   the folders inside of chapters, a sentence each, from the file `about`
"""
import functools
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import cog
import figures
import gpu_tables
import way as ways

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "commands/lib"))
from workbook.source import cpp  # noqa: E402
BUILD = pathlib.Path(os.environ.get("T2T_BUILD", ROOT / "build/release"))


def code(path, *names):
    text = cpp.plain((ROOT / path).read_text())
    spans, lines = [_span(path, text, name) for name in names], text.split("\n")
    body = [line for begin, end in spans for line in ["", *lines[begin:end]]]
    _listing(path, spans[0][0], body[1:])


def _span(path, text, name):
    """The lines of a definition, with the comment above it."""
    word = re.findall(r"[\w:~]+", re.split(r"\(| : ", name)[0])[-1]
    found = [(one.begin, one.end) for one in cpp.items(text) if one.kind != "declared" and
             (one.name == word and re.search(rf"(?<![\w:]){re.escape(name)}", text[one.begin:one.brace]) or
              one.kind == "check" and text.startswith(name, one.begin))]
    if len(found) != 1:
        raise SystemExit(f"{path}: {len(found)} definitions of {name}, wanted one")
    (begin, end), lines = (text.count("\n", 0, at) for at in found[0]), text.split("\n")
    while lines[begin - 1].startswith(("//", "#pragma omp")):
        begin -= 1
    return begin, end + 1


def part(path, name):
    lines = (ROOT / path).read_text().splitlines()
    marks = [i for i, line in enumerate(lines) if line.strip() in (f"// [{name}]", f"// [/{name}]")]
    if len(marks) != 2:
        raise SystemExit(f"{path}: {len(marks)} marks of region {name}, wanted two")
    _listing(path, marks[0] + 1, lines[marks[0] + 1:marks[1]])


def _listing(path, begin, lines):
    lines = [line for line in lines if not cpp.is_mark(line)]
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    body = "\n".join(line[indent:] for line in lines)
    _out(f"[`{path}`](../{path}#L{begin + 1})\n\n```cpp\n{body}\n```\n")


def output(chapter, section, flags=""):
    """The section's title is a line of its own at column 0; it ends where the next one begins."""
    lines = _run(chapter, flags)
    titles = [i for i, line in enumerate(lines) if line and not line.startswith(" ")]
    found = [i for i in titles if lines[i] == section]
    if len(found) != 1:
        raise SystemExit(f"{chapter}: {len(found)} sections titled {section!r}, wanted one")
    end = min((i for i in titles if i > found[0]), default=len(lines))
    text = "\n".join(line.rstrip() for line in lines[found[0]:end]).rstrip()
    _out(f"```text\n{text}\n```\n")


def figure(chapter, name, flags="--svg", source="shows/figure.cpp"):
    """Writes docs/NAME.svg; when pages are only checked ($T2T_CHECK), it must be what the program draws."""
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder, f"{name}.svg")
        _lines_of(chapter, f"{flags} {made}")
        svg = made.read_text()
    path, wrong_with_it = ROOT / f"docs/{name}.svg", figures.faults(svg)
    if wrong_with_it:
        raise SystemExit(f"{path.name} {wrong_with_it[0]}")
    if not path.exists() or path.read_text() != svg:
        if os.environ.get("T2T_CHECK"):
            raise SystemExit(f"docs/{path.name} is not what {chapter} {flags} draws now")
        path.write_text(svg)
    place = f"chapters/{chapter}/{source}"
    _out(f"{_image(path.name, svg)}[`{place}`](../{place}) draws this figure: `./learn run {chapter[:2]} {flags} FILE`\n")


def recorded_figure(name, source, run):
    svg = (ROOT / f"docs/{name}.svg").read_text()
    for fault in figures.faults(svg):
        raise SystemExit(f"{name}.svg {fault}")
    _out(f"{_image(f'{name}.svg', svg)}[`{source}`](../{source}) drew this figure: {run}\n")


def _image(file, svg):
    told = re.sub(r"([\\\[\]*_`])", r"\\\1", figures.alternative(svg))
    return f"![{told}]({file})\n\n"


def solution(chapter, problem):
    lines = _run(chapter, "--solutions")
    if problem not in lines:
        raise SystemExit(f"{chapter}: no answer to {problem!r}")
    text = itertools.takewhile(lambda line: not line or line.startswith(" "), lines[lines.index(problem) + 1:])
    _out(f"<details><summary>Answer</summary>\n\n{' '.join(' '.join(text).split())}\n\n</details>\n")


@functools.cache
def _run(chapter, flags):
    """A program's lines; each is run once however many sections are quoted."""
    return _lines_of(chapter, flags)


def _lines_of(chapter, flags):
    environment = dict(os.environ, COLUMNS="96", NO_COLOR="1", T2T_BRIEF="1")  # no page shows a time of such a run
    command = [str(BUILD / chapter), *shlex.split(flags)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr}")
    return run.stdout.splitlines()


def measured(chapter, only="", threads=None, but=None):
    record = ROOT / "docs/recorded/measured.json"
    run = json.loads(record.read_text()).get(chapter) if record.exists() else None
    if run is None:
        return _out("Not measured yet.\n")
    rows = ["| work | threads | time | compared with | ratio |", "| --- | ---: | ---: | --- | ---: |"]
    for line in run["lines"]:
        if only not in line["what"] or (but and but in line["what"]) or threads not in (None, line["threads"]):
            continue
        rows.append(f"| {line['what']} | {line['threads']} | {_time(line['seconds'])} | {line['limit']}, "
                    f"{_time(line['limit_seconds'])} | {_ratio(line['limit_seconds'] / line['seconds'])} |")
    rows.append(f"\nRecorded {run['date']} on {run['cpu']}, {run['blas']}. The ratio is the other time "
                f"divided by ours; both times are medians of calls made in turn. `./learn bench {chapter[:2]}` measures yours.")
    _out("\n".join(rows) + "\n")


def _ratio(ratio):
    """With no more digits than such a ratio can bear."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 2 else f"{ratio:.2f}"


def _time(seconds):
    unit, factor = ("us", 1e6) if seconds < 1e-3 else ("ms", 1e3) if seconds < 1 else ("s", 1)
    return f"{seconds * factor:.3g} {unit}"


def kernels(chapter, only="", folder="kernels", cards=None):
    """docs/weaving/kernel_table.py records them where there is a CUDA toolkit."""
    record = ROOT / "docs/recorded/kernels.json"
    run = json.loads(record.read_text()) if record.exists() else {}
    if chapter not in run:
        return _out("Not compiled for a GPU yet.\n")
    cards = cards.split() if cards else [one for one in run[chapter][0] if one.startswith("sm_")]
    rows = [f"| kernel | registers a thread, {' / '.join(cards)} | static shared memory, bytes | spilled bytes |",
            "| --- | ---: | ---: | ---: |"]
    for row in (row for row in run[chapter] if only in row["kernel"] and pathlib.Path(row["source"]).parent.name == folder):
        registers, spills = (" / ".join(str(row[one][f]) for one in cards) for f in ("registers", "spills"))
        rows.append(f"| `{row['kernel']}` in [{pathlib.Path(row['source']).name}](../chapters/{chapter}/{row['source']}) | "
                    f"{registers} | {row['sm_90a']['shared']} | {spills} |")
    rows.append(f"\nReported by ptxas of nvcc {run['nvcc']}. `python3 docs/weaving/kernel_table.py` updates the table.")
    _out("\n".join(rows) + "\n")


def gpus(what):
    _out(gpu_tables.tables(ROOT / "docs/gpu", what))


def recorded(name):
    run = json.loads((ROOT / f"docs/recorded/{name}.json").read_text())
    if "text" in run:
        _expect_same_text(name, run)
        run["note"] = f"{run['tokens']:,} tokens of [one text]({os.path.relpath(ROOT / run['text'], ROOT / 'docs')}), in windows of " \
                      f"{run['window']:,}. {run['note']}"
    rows = [run["columns"], ["---:"] * len(run["columns"]), *run["rows"]]
    _out("\n".join("| " + " | ".join(row) + " |" for row in rows) + f"\n\n{run['note']}\n")


def _expect_same_text(name, run):
    digest = hashlib.sha256((ROOT / run["text"]).read_bytes()).hexdigest()[:16]
    if digest != run["digest"]:
        raise SystemExit(f"docs/recorded/{name}.json: {run['text']} is not the text that it was recorded with, so the perplexities of "
                         "other tables are not to be compared with these: python3 docs/weaving/perplexities.py")


def verdict(chapter, part, mistake):
    """The checks that the wrong version fails, and their numbers, are the same on any machine."""
    _workbook("from workbook import book; from workbook.verdict import judge, telling; "
              f"telling.tell(judge.of_program('{chapter}', '{part}', book.BUILD / '{chapter}_wrong_{part}'))", T2T_WRONG=mistake)


def examples(chapter, part, program):
    _workbook(f"from workbook import book; from workbook.commands import example; program = book.BUILD / '{program}'; "
              "cases = example.tried(program).checks; "
              f"results = example.tried_on_each(dict.fromkeys(example.mistakes_of('{chapter}', '{part}'), program)); "
              f"example.tell('{chapter}', '{part}', cases, results)")


def ladder():
    _workbook("from workbook.commands import parts_list; parts_list.show()", T2T_WORK="/nonexistent/work")


def _workbook(script, **environment):
    """What the code of commands/lib/workbook prints."""
    environment = dict(os.environ, COLUMNS="80", NO_COLOR="1", PYTHONPATH=str(ROOT / "commands/lib"), **environment)
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{script}: {run.stderr}")
    _out(f"```text\n{run.stdout.rstrip()}\n```\n")


def wrong(chapter, names, link=True):
    patches = {patch.stem: patch for patch in _patches(chapter)}
    chosen = names.split()
    unknown = [name for name in chosen if name not in patches]
    if unknown:
        raise SystemExit(f"{chapter}: no wrong version {', '.join(unknown)}")
    more = len(patches) - len(chosen)
    rows = _mistake_table(patches[name] for name in chosen)
    if link and more > 0:
        rows.append(f"\nThe tests reject these and [{more} other wrong versions](mistakes.md#{chapter.replace('_', '-')}), "
                    f"and [`./learn check {chapter[:2]}`](workbook.md) can tell which one you have made.")
    _out("\n".join(rows) + "\n")


def mistakes():
    rows = []
    for folder in sorted((ROOT / "tests/wrong").glob("[0-9][0-9]_*")):
        patches = _patches(folder.name)
        rows += [f"## {folder.name.replace('_', ' ')}", "", f"{len(patches)} wrong versions of "
                 f"[{folder.name}]({folder.name}.md).", "", *_mistake_table(patches), ""]
    _out("\n".join(rows))


def _patches(chapter):
    folder = ROOT / "tests/wrong" / chapter
    return [patch for place in ("*", "races/*", "code/*") for patch in sorted(folder.glob(f"{place}.patch"))]


def _mistake_table(patches):
    rows = ["| mistake | what it does |", "| --- | --- |"]
    for patch in patches:
        says = patch.read_text().splitlines()[0].replace('|', '\\|')
        rows.append(f"| [{patch.stem.replace('_', ' ')}](../{patch.relative_to(ROOT)}) | {says} |")
    return rows


def chapters():
    rows = ["| | component | adds | what you see |", "| --- | --- | --- | --- |"]
    for folder in sorted((ROOT / "chapters").glob("[0-9][0-9]_*")):
        lines = [line.partition(": ") for line in (folder / "about").read_text().splitlines()]
        if [key for key, _, _ in lines][:3] != ["component", "adds", "shows"]:
            raise SystemExit(f"{folder}/about: wanted the lines component: adds: and shows:")
        cells = " | ".join(text for _, _, text in lines[:3])
        rows.append(f"| [{folder.name[:2]}](docs/{folder.name}.md) | {cells} |")
    _out("\n".join(rows) + "\n")


def rooms():
    rows = ["| folder | what it does |", "| --- | --- |"]
    for about in sorted((ROOT / "chapters").glob("*/about")):
        said = dict(re.findall(r"^room (\w+): (.*)$", about.read_text(), re.M))
        if set(said) != {one.name for one in about.parent.iterdir() if one.is_dir()} - {"shows"}:  # of which docs/README.md tells
            raise SystemExit(f"{about}: wanted a line `room NAME: …` for each folder of the chapter but shows, and no other")
        rows += [f"| [`{about.parent.name}/{name}/`](../chapters/{about.parent.name}/{name}) | {sentence} |"
                 for name, sentence in said.items()]
    _out("\n".join(rows) + "\n")


def way():
    _out(ways.neighbours(pathlib.Path(cog.inFile).stem))


def routes():
    _out(ways.routes())


def _out(text):
    cog.outl("\n" + text)
