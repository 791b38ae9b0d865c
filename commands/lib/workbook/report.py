"""The record of ./learn check --json: a verdict for each part and each of its checks."""
import dataclasses
import json

from workbook import book, checks, diagnosis, progress


def expect_writable(path) -> None:
    """Before all is graded: whether the record can be written where it is wanted."""
    try:
        there = path.exists()
        with path.open("a"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        book.die(f"{path} can't be written: {error.strerror}")


def write(path, verdicts) -> None:
    record = []
    for v in verdicts:
        one = {"chapter": v.chapter, "part": v.part, "verdict": v.word, "why": v.why}
        if v.said:
            one["compiler"] = v.said
        if "examples" in (known := progress.of(v.chapter, v.part)):
            one["examples"] = dict(zip(("caught", "of"), known["examples"]))
        if v.result:
            passed = v.passed
            one["seconds"] = round(v.result.seconds, 3)
            one["checks"] = [{"name": c, "kind": checks.kind_of(c), "passes": c in passed} for c in v.counted]
            one["left_out"] = sorted(v.left_out)
            one["mistakes"] = [{"name": a.name, "says": a.says} for a in v.alike]
            if v.text and not v.alike:
                one["exchanges"] = [[dataclasses.asdict(lines) for lines in exchange] for exchange in diagnosis.look(v)]
        if v.watched:
            one["races"] = [dataclasses.asdict(access) for access in v.watched.race]
        record.append(one)
    try:
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        book.die(f"{path} can't be written: {error.strerror}")
    passed = sum(v.word == "passes" for v in verdicts)
    print(f"{passed} of {len(verdicts)} parts pass; {path} has each check")
