"""Which mistake a part makes, by what it computes: the variants of ours (variants.py) that compute the same in every check.
judge.py keeps the program with the reader's part, and telling.py and report.py ask here what is known to compute the same.
"""
import concurrent.futures
import dataclasses
import math
import os
import time

import behaviour
import exchanged
import house
import known_variants
import prepare_variants
import progress
import source
import variants
import wrong

CONFIRMED = 12  # variants of which more checks are run
TRIED = 16  # changes that are tried in the other form and in both, the likeliest first,
TRIED_SECONDS = 2  # as long as there is time,
SCREENED = 4  # of the failing checks, the fastest: they tell most variants apart, in a part of the time
LEAST = 0.15  # of the numbers of both that are the same, for one to be tried
TOLD = 3  # changes that compute the same, or exchanges: of more, each would be no more than one of many


@dataclasses.dataclass
class Diagnosis:
    mistakes: list = dataclasses.field(default_factory=list)  # (name, its one line, where)
    changes: list = dataclasses.field(default_factory=list)  # (Changed, where)
    exchanges: list = dataclasses.field(default_factory=list)  # of lines of the reader's, if neither is known: [[Lines, ...], ...]
    looking: str = ""  # how far the comparison is, if it isn't done

    @property
    def found(self):
        return bool(self.mistakes) or 1 <= len(self.changes) <= TOLD


def keep(chapter, part, program):
    """Keeps the program in which the reader's part is linked; where it is now."""
    kept = known_variants.folder(chapter, part) / "theirs"
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(program, kept)
    return kept


def look(verdict):
    """What is known to compute what the part of this verdict computes, or else where it is wrong."""
    found = _compared(verdict.chapter, verdict.part, verdict.program)
    wrong_ones = {failure.check for failure in verdict.wrong} or {verdict.result.running}
    if not found.found and any(wrong_ones) and not os.environ.get("T2T_NO_VARIANTS") and _fails_again(verdict.program, wrong_ones):
        house.at_work("trying lines of ours in the place of yours")
        try:
            found.exchanges = exchanged.look(verdict.text, wrong_ones, verdict.failed - wrong_ones)
        finally:
            house.at_work("")
        if len(found.exchanges) <= TOLD:
            _note_next(verdict, {lines.function for exchange in found.exchanges for lines in exchange})
    return found


def _fails_again(program, wrong_ones):
    """Whether the checks fail with one thread, too. Otherwise they would pass after any exchange."""
    return not behaviour.passes(program, None, sorted(wrong_ones), exchanged.WHOLE_SECONDS)


def _note_next(verdict, wrong_ones):
    """Notes the function that is wrong, or calls what is, for ./learn hint."""
    ours = house.ours(verdict.chapter, verdict.part).read_text()
    for function in source.to_write(ours):
        if wrong_ones & {one.name for one in source.with_helpers(ours, function)}:
            return progress.note(verdict.chapter, verdict.part, next=function.name)


def _compared(chapter, part, program):
    known = known_variants.of(chapter, part)
    if known is None and os.environ.get("T2T_NO_VARIANTS"):
        return Diagnosis()
    if known is None:
        prepare_variants.begin((chapter, part))
        return Diagnosis(looking=known_variants.progress(chapter, part))
    facts = known.facts(program)
    if known.long and not behaviour.apart(facts, known.ours):
        theirs = known.run(program, long=True)
        alike = [variants.Variant(name) for name, apart in known.long.items() if theirs and behaviour.agree(apart, theirs)]
        return _told(chapter, known, alike)
    return compared(chapter, known, facts, lambda some: _confirmed(known, program, some))


def _confirmed(known, program, some):
    """The variants without those that more checks tell apart from the part."""
    if not known.more or not some:
        return some
    theirs = known.facts(program, more=True)
    waiting = behaviour.waiting(theirs)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        apart = list(pool.map(lambda one: behaviour.apart(known.facts(known.program(one), one, more=True), theirs), some[:CONFIRMED]))
    return [one for one, facts in zip(some, apart) if not _without(facts, waiting, ())] + some[CONFIRMED:]


def not_contradicted(chapter, part, program, recorded):
    """The recorded mistakes that fail the same checks, without those that are known to compute something else in them."""
    known = known_variants.of(chapter, part) if recorded else None
    if known is None:
        return recorded
    theirs, waiting = _otherwise(known, known.facts(program))
    return [one for one in recorded if one.name not in known.apart or behaviour.agree(_without(known.apart[one.name], waiting, ()), theirs)]


def compared(chapter, known, facts, confirm=lambda some: some):
    """The diagnosis of a part that computes these facts. What is found is told if it is confirmed."""
    theirs, waiting = _otherwise(known, facts)
    if not theirs:
        return Diagnosis()
    alike = [variants.Variant(name) for name, apart in known.apart.items() if behaviour.agree(_without(apart, waiting, ()), theirs)]
    return _told(chapter, known, confirm(alike or _turned_alike(known, theirs, waiting)))


def _otherwise(known, facts):
    """What of these facts differs from ours, without the checks that call what is still to be written; and these checks."""
    waiting = behaviour.waiting(facts)
    return _without(behaviour.apart(facts, known.ours), waiting, ()), waiting


def _without(facts, checks, keys):
    return {key: text for key, text in facts.items() if behaviour.check_of(key) not in checks and key not in keys}


def _turned_alike(known, theirs, waiting):
    """The same in the other form or in both: first the recorded mistakes, then the changes that have most of these numbers
    in any form."""
    values = {(behaviour.check_of(key), text) for key, text in theirs.items()}

    def likeness(name):
        facts = known.apart[name]
        common = sum((behaviour.check_of(key), text) in values or (key in theirs and behaviour.same(text, theirs[key]))
                     for key, text in facts.items())
        return common / (len(facts) + len(theirs) - common)
    like = {name: likeness(name) for name in known.apart}
    likely = sorted((name for name in like if like[name] > LEAST), key=lambda name: (-like[name], name))
    recorded = [name for name in known.apart if name not in known.told]
    changed = [name for name in likely if name in known.told][:TRIED]
    return _alike_in_forms(known, recorded, theirs, waiting) or _alike_in_forms(known, changed, theirs, waiting, TRIED_SECONDS)


def _alike_in_forms(known, names, theirs, waiting, seconds=math.inf):
    forms = [form for form, differs in known.turned.items() if _without(theirs, waiting, differs)]
    some = [variants.Variant(name, form, only) for name in names for form in forms for only in (False, True)]
    def agreeing(some, checks, seconds=math.inf):
        there, until = behaviour.of_some(theirs, checks), time.monotonic() + seconds
        for variant, facts in known.run_each(some, only=checks):
            if behaviour.agree(*(_without(one, waiting, known.turned[variant.form]) for one in (facts, there))):
                yield variant
            if time.monotonic() > until:
                break
    checks = {behaviour.check_of(key) for key in theirs}
    screened = [check for check in known.quick if check in checks][:SCREENED]
    return list(agreeing(list(agreeing(some, screened, seconds)), ()))


def _told(chapter, known, alike):
    says = {name: line for name, _, line in wrong.patches(chapter)}
    mistakes = {variant.name: (variant.name, says[variant.name], _where(variant)) for variant in reversed(alike) if variant.name in says}
    by_form = {}
    for variant in alike:
        if variant.name in known.told:
            by_form.setdefault(variant.form, []).append((known.told[variant.name], _where(variant)))
    # A mistake in both forms is found from either of them: it is told from the one in which it is in fewer places.
    return Diagnosis(list(mistakes.values()), min(map(_simplest, by_form.values()), key=len, default=[]))


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
