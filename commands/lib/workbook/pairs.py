"""The same mistake in two functions of a part, such as its formula and its row kernel: changes of two functions at once, tried
for a part that no single change explains (diagnosis.py)."""
import itertools
import pathlib
import tempfile

import behaviour
import house
import variants

BEST = 4  # changes of each function that are tried
LEAST = 2  # numbers of a check that a change has in common with the part, to be tried
MOST = 24  # pairs


def alike(chapter, part, known, theirs, agree, confirm):
    """The pairs of changes that compute theirs, as lists of names. agree(facts) says whether they do, and confirm(variants,
    program) which of them do in more checks."""
    right = variants.split_of(chapter, part)
    bodies = _bodies(right)
    some = _likely(known, theirs, bodies)[:MOST]
    if not some:
        return []
    with tempfile.TemporaryDirectory(prefix="pairs-", dir=house.BUILD / "variants") as folder:
        program = _program(chapter, part, right, [[bodies[name] for name in pair] for pair in some], folder)
        if program is None:
            return []
        ran = known.run_each([variants.Variant(f"pair {n}") for n in range(len(some))], program=program)
        found = confirm([variant for variant, facts in ran if agree(facts)], program)
        return [some[int(variant.name.split()[1])] for variant in found]


def _bodies(right):
    return {name: (i, body) for i, name, body in variants.changed_bodies(right)[0]}


def _likely(known, theirs, bodies):
    """Pairs of the likeliest changes of two functions."""
    by_function = {}
    for name in known.apart:
        if name in bodies:
            share = _shared(known.apart[name], theirs)
            if share:
                by_function.setdefault(bodies[name][0], []).append((share, name))
    best = [[name for _, name in sorted(some, key=lambda one: -one[0])[:BEST]] for some in by_function.values()]
    pairs = [pair for one, other in itertools.combinations(best, 2) for pair in itertools.product(one, other)]
    return sorted(pairs, key=lambda pair: -sum(_shared(known.apart[name], theirs) for name in pair))


def _shared(facts, theirs):
    """The share of the change's numbers that the part has too, or 0 if they are too few to tell."""
    common = sum(key in theirs and behaviour.same(text, theirs[key]) for key, text in facts.items())
    return common / len(facts) if common >= min(LEAST, len(facts)) else 0


def _program(chapter, part, right, pairs, folder):
    """A program that can make each of these pairs of changes."""
    made = pathlib.Path(folder, f"{part}.cpp")
    made.write_text(variants.switches.switched(right, [(i, f"pair {n}", body) for n, pair in enumerate(pairs) for i, body in pair]))
    return variants.linked(chapter, variants.command(chapter, part, made), made)
