"""Which wrong versions ./learn test shows to be rejected: those whose key isn't current, and one drawn from each folder.

prove.py targets [--all] FOLDER ...  prints what to build, which shows it
prove.py programs [--all] FOLDER ... prints the programs that make these mistakes
prove.py done [--all] FOLDER ...     once that is built: says how many, and with --all writes the keys
"""
import sys

import house
import keys
import wrong


def main(what, *words):
    every = "--all" in words
    folders = [word for word in words if word != "--all"] or keys.folders()
    chosen = {folder: chosen_of(folder, every) for folder in folders}
    if what == "targets":
        print("\n".join(f"{folder}_rejects_{name}" for folder, names in chosen.items() for name in names))
        return
    if what == "programs":
        print("\n".join(sorted({wrong.program(folder, name, part) for folder, names in chosen.items()
                                for name, part, _ in wrong.patches(folder) if name in names})))
        return
    if every:
        for folder in folders:
            keys.renew(folder, wrong.record(folder))
    tell(chosen)
    if every and (old := recorded_with_others(folders)):
        print("Their numbers were recorded with other checks, so ./learn check may not know them by these: "
              f"./learn test {' '.join(old)} --record")


def recorded_with_others(folders):
    """The chapters whose checks have changed since their wrong versions were recorded."""
    return [one[:2] for one in folders if one in house.chapters() and wrong.record(one)["recorded"] != keys.of_checks(one)]


def chosen_of(folder, every):
    names = [name for name, _, _ in wrong.patches(folder)]
    chosen = names if every else {*keys.stale(folder), keys.drawn(folder)}
    return sorted(chosen)


def tell(chosen):
    of = sum(len(wrong.patches(folder)) for folder in chosen)
    now = sum(map(len, chosen.values()))
    by_record = f" {of - now} by their record, whose keys are current;" if now < of else ""
    print(f"All {of} wrong versions are rejected:{by_record} {now} were tried now.")


if __name__ == "__main__":
    main(*sys.argv[1:])
