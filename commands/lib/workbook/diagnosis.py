"""Which mistake a part makes, by what it computes: the variants of ours (variants.py) that compute the same in every check.
judge.py keeps the program with the reader's part, and telling.py and report.py ask here what is known to compute the same.
"""
import concurrent.futures
import dataclasses
import os

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
TOLD = 3  # changes that compute the same, or exchanges: of more, each would be no more than one of many


@dataclasses.dataclass
class Diagnosis:
    mistakes: list = dataclasses.field(default_factory=list)  # (name, its one line)
    changes: list = dataclasses.field(default_factory=list)  # Changed
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
    return [one for one, facts in zip(some, apart) if not _without(facts, waiting)] + some[CONFIRMED:]


def not_contradicted(chapter, part, program, recorded):
    """The recorded mistakes that fail the same checks, without those that are known to compute something else in them."""
    known = known_variants.of(chapter, part) if recorded else None
    if known is None:
        return recorded
    theirs, waiting = _otherwise(known, known.facts(program))
    return [one for one in recorded if one.name not in known.apart or behaviour.agree(_without(known.apart[one.name], waiting), theirs)]


def compared(chapter, known, facts, confirm=lambda some: some):
    """The diagnosis of a part that computes these facts. What is found is told if it is confirmed."""
    theirs, waiting = _otherwise(known, facts)
    if not theirs:
        return Diagnosis()
    alike = [variants.Variant(name) for name, apart in known.apart.items() if behaviour.agree(_without(apart, waiting), theirs)]
    return _told(chapter, known, confirm(alike))


def _otherwise(known, facts):
    """What of these facts differs from ours, without the checks that call what is still to be written; and these checks."""
    waiting = behaviour.waiting(facts)
    return _without(behaviour.apart(facts, known.ours), waiting), waiting


def _without(facts, checks):
    return {key: text for key, text in facts.items() if behaviour.check_of(key) not in checks}


def _told(chapter, known, alike):
    says = {name: line for name, _, line in wrong.patches(chapter)}
    mistakes = {variant.name: (variant.name, says[variant.name]) for variant in reversed(alike) if variant.name in says}
    return Diagnosis(list(mistakes.values()), _simplest(known.told[variant.name] for variant in alike if variant.name in known.told))


def _simplest(changes):
    """One change of each statement, the shortest."""
    found = {}
    for change in sorted(changes, key=lambda one: abs(len(one.was) - len(one.then)) + len(one.then)):
        found.setdefault((change.function, change.line), change)
    return list(found.values())
