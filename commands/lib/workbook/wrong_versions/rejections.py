"""Which wrong versions ./learn test shows to be rejected: those whose key isn't current, and a few
that are drawn. If our sources were edited, no key is current, and only those of the folders that
are named are tried: without a folder, none.

rejections.py targets [--all] FOLDER ...   prints what to build, which shows it
rejections.py programs [--all] FOLDER ...  prints the programs that make these mistakes
rejections.py done [--all] FOLDER ...      once that is built: says how many, and with --all writes
                                           the keys
"""
import collections

from workbook import book, edited
from workbook.programs import plan
from workbook.wrong_versions import keys, wrong


def main(what, *words) -> None:
    every = "--all" in words
    named = [word for word in words if word != "--all"]
    folders = named or plan.folders()
    chosen = chosen_of(folders, every or (named and edited.files()), named)
    if what == "targets":
        print("\n".join(f"{folder}_rejects_{name}"
                        for folder, names in chosen.items() for name in names))
    elif what == "programs":
        print("\n".join(sorted({wrong.program(folder, name, part) for folder in chosen
                                for name, part, _ in wrong.patches(folder)
                                if name in chosen[folder]})))
    else:
        done(folders, chosen, every)


def chosen_of(folders, every, named):
    """{folder: the wrong versions to try}"""
    if edited.files() and not every:
        return dict.fromkeys(folders, [])
    if every:
        chosen = {folder: {name for name, _, _ in wrong.patches(folder)} for folder in folders}
    else:
        drawn = keys.drawn(folders, len(folders) if named else keys.DRAWN)
        chosen = {folder: {*keys.stale(folder), *drawn.get(folder, [])} for folder in folders}
    return {folder: sorted(names - skipped(folder) if names else names)
            for folder, names in chosen.items()}


def skipped(folder):
    """Those that can't be made."""
    return {*plan.of(folder).skipped, *plan.of(folder).elsewhere}


def done(folders, chosen, every) -> None:
    for folder in folders if every else []:
        if not skipped(folder):  # all were shown to be rejected, whether or not sources are edited
            keys.renew(folder, wrong.record(folder))
    tell(chosen)
    old = [one[:2] for one in folders
           if one in book.chapters() and wrong.record(one)["recorded"] != keys.of_checks(one)]
    if every and old:
        print("Their numbers were recorded with other checks, so ./learn check may not know them "
              f"by these: ./learn test {' '.join(old)} --record")


def tell(chosen):
    of = sum(len(wrong.patches(folder)) for folder in chosen)
    now = sum(map(len, chosen.values()))
    if edited.files() and not now:
        return book.say(f"None of the {of} wrong versions was tried, since they are made of our "
                        f"sources. {edited.note()} Or try those of a chapter: ./learn test NN")
    plans = [plan.of(folder) for folder, names in chosen.items() if names]
    left_out = 0
    for whats, says in (
            ([part for one in plans for part in one.skipped.values()],
             "{what} was changed, and {count} wrong version{s} of it no longer fit: skipped"),
            ([needed for one in plans for needed in one.elsewhere.values()],
             "{count} wrong version{s} of code for {what} can't be made for this processor: "
             "skipped")):
        left_out += len(whats)
        for what, count in collections.Counter(whats).items():
            book.say(says.format(what=what, count=count, s="s" * (count > 1)))
    rest = of - now - left_out
    by_record = f" {rest} by their record, whose keys are current;" if rest else ""
    print(f"{'All ' if not left_out else ''}{of - left_out} wrong versions are rejected:"
          f"{by_record} {now} were tried now.")
