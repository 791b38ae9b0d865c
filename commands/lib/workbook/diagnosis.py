"""Which mistake a part makes, by what it computes: the variants of ours (variants.py) that compute the same in every check.
judge.py keeps the program with the reader's part, and telling.py and report.py ask here what is known to compute the same.
"""
import dataclasses
import os
import time

import behaviour
import house
import known_variants
import pairs
import prepare_variants
import variants
import wrong

PATIENCE = 8  # seconds that a verdict waits for variants that are being run
CONFIRMED = 12  # variants of which more checks are run
TRIED = 16  # changes that are tried in the other form and in both
LEAST = 0.15  # of the numbers of both that are the same, for one to be tried


@dataclasses.dataclass
class Diagnosis:
    mistakes: list = dataclasses.field(default_factory=list)  # (name, its one line, where)
    changes: list = dataclasses.field(default_factory=list)  # (Changed, where)
    pairs: list = dataclasses.field(default_factory=list)  # (Changed, Changed): both at once
    looking: str = ""  # how far the comparison is, if it isn't done


def keep(chapter, part, program):
    """Keeps the program in which the reader's part is linked; where it is now."""
    kept = known_variants.folder(chapter, part) / "theirs"
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, kept)
    return kept


def look(chapter, part, program):
    """What is known to compute what this program computes, in which the reader's part is linked."""
    known = known_variants.of(chapter, part)
    if known is None:
        prepare_variants.begin((chapter, part))
        known = _wait(chapter, part)
    if known is None:
        return Diagnosis(looking=known_variants.progress(chapter, part))
    facts = known.facts(program)
    if known.long and not behaviour.apart(facts, known.ours):
        theirs = known.run(program, long=True)
        alike = [variants.Variant(name) for name, apart in known.long.items() if theirs and behaviour.agree(apart, theirs)]
        return _told(chapter, known, alike)
    return compared(chapter, part, known, facts, lambda some, its=None: _confirmed(known, program, some, its))


def _confirmed(known, program, some, its):
    """The variants, of a program of theirs if there is one, without those that more checks tell apart from the part."""
    if not known.more or not some:
        return some
    theirs = known.facts(program, more=True)
    waiting = behaviour.waiting(theirs)
    apart = [behaviour.apart(known.facts(its or known.program(one), one, more=True), theirs) for one in some[:CONFIRMED]]
    return [one for one, facts in zip(some, apart) if not _without(facts, waiting, ())] + some[CONFIRMED:]


def not_contradicted(chapter, part, program, recorded):
    """The recorded mistakes that fail the same checks, without those that are known to compute something else in them."""
    known = known_variants.of(chapter, part) if recorded else None
    if known is None:
        return recorded
    theirs, waiting = _otherwise(known, known.facts(program))
    return [one for one in recorded if one.name not in known.apart or behaviour.agree(_without(known.apart[one.name], waiting, ()), theirs)]


def _wait(chapter, part):
    until = time.monotonic() + PATIENCE
    found = None
    while found is None and time.monotonic() < until and not os.environ.get("T2T_NO_VARIANTS"):
        house.at_work(f"comparing with variants of our part: {known_variants.progress(chapter, part)}")
        time.sleep(0.2)
        known_variants.key.cache_clear()
        found = known_variants.of(chapter, part)
    house.at_work("")
    return found


def compared(chapter, part, known, facts, confirm=lambda some, its=None: some):
    """The diagnosis of a part that computes these facts. What is found is told if it is confirmed."""
    theirs, waiting = _otherwise(known, facts)
    if not theirs:
        return Diagnosis()

    def agree(apart):
        return behaviour.agree(_without(apart, waiting, ()), theirs)
    alike = [variants.Variant(name) for name, apart in known.apart.items() if agree(apart)]
    if alike := alike or _turned_alike(known, theirs, waiting):
        return _told(chapter, known, confirm(alike))
    return Diagnosis(pairs=_told_pairs(known, pairs.alike(chapter, part, known, theirs, agree, confirm)))


def _otherwise(known, facts):
    """What of these facts differs from ours, without the checks that call what is still to be written; and these checks."""
    waiting = behaviour.waiting(facts)
    return _without(behaviour.apart(facts, known.ours), waiting, ()), waiting


def _without(facts, checks, keys):
    return {key: text for key, text in facts.items() if key.split(" | ")[0] not in checks and key not in keys}


def _turned_alike(known, theirs, waiting):
    """The same in the other form or in both: first the recorded mistakes, then the changes that have most of these numbers
    in any form."""
    values = {(key.split(" | ")[0], text) for key, text in theirs.items()}

    def likeness(name):
        facts = known.apart[name]
        common = sum((key.split(" | ")[0], text) in values or (key in theirs and behaviour.same(text, theirs[key])) for key, text in facts.items())
        return common / (len(facts) + len(theirs) - common)
    like = {name: likeness(name) for name in known.apart}
    likely = sorted((name for name in like if like[name] > LEAST), key=lambda name: (-like[name], name))
    recorded = [name for name in known.apart if name not in known.told]
    changed = [name for name in likely if name in known.told][:TRIED]
    return next(filter(None, (_alike_in_forms(known, names, theirs, waiting) for names in (recorded, changed))), [])


def _alike_in_forms(known, names, theirs, waiting):
    some = [variants.Variant(name, form, only) for form in known.turned for name in names for only in (False, True)]
    return [variant for variant, facts in known.run_each(some)
            if behaviour.agree(*(_without(one, waiting, known.turned[variant.form]) for one in (facts, theirs)))]


def _told(chapter, known, alike):
    says = {name: line for name, _, line in wrong.patches(chapter)}
    mistakes = {variant.name: (variant.name, says[variant.name], _where(variant)) for variant in reversed(alike) if variant.name in says}
    by_form = {}
    for variant in alike:
        if variant.name in known.told:
            by_form.setdefault(variant.form, []).append((known.told[variant.name], _where(variant)))
    # A mistake in both forms is found from either of them: it is told from the one in which it is in fewer places.
    return Diagnosis(list(mistakes.values()), min(map(_simplest, by_form.values()), key=len, default=[]))


def _told_pairs(known, some):
    """One pair of changes for each pair of statements, the shortest."""
    found = {}
    for pair in sorted(some, key=lambda pair: sum(len(known.told[name].now) for name in pair)):
        changes = tuple(known.told[name] for name in pair)
        found.setdefault(tuple((change.function, change.line) for change in changes), changes)
    return list(found.values())


def _where(variant):
    if not variant.form:
        return ""
    return f"in the {'row form' if variant.form == 'rows' else 'formula'} alone" if variant.only else "in both forms"


def _simplest(changes):
    """One change of each statement, the shortest."""
    found = {}
    for change, form in sorted(changes, key=lambda one: abs(len(one[0].was) - len(one[0].then)) + len(one[0].then)):
        found.setdefault((change.function, change.line), (change, form))
    return list(found.values())
