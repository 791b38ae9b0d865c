"""Changes of a sum, a product or a condition: an operand forgotten, operands exchanged, and brackets set otherwise
(changes.py)."""
from tokens import COMPARISONS, LEVEL, PRODUCTS, SUMS


def operands(code, i):
    """a + b becomes a, b or b + a, and is grouped otherwise with what stands beside it."""
    operator = code.text(i)
    if operator not in LEVEL or operator in COMPARISONS or not code.is_binary(i):
        return
    left, right = code.left_of(i), code.right_of(i)
    if right is None or left < 0:
        return
    yield from _one_or_exchanged(code, i, left, right)
    if operator not in SUMS | PRODUCTS:
        return
    if operator == "/":
        yield from _divide_first(code, i, left, right)
    if operator in SUMS:
        yield from _regroup(code, i, left, right)
        yield i + 1, right, "1"
        yield from _keep_first(code, i, left)
    else:
        yield from _ungroup(code, i, left, right)


def _one_or_exchanged(code, i, left, right):
    """a - b becomes a, b or b - (a)."""
    operator, a, b = code.text(i), code.cut(left, i), code.cut(i + 1, right)
    yield left, right, a
    yield left, right, b
    if operator in ("-", "/", "%"):
        yield left, right, f"{b} {operator} ({a})"


def _divide_first(code, i, left, right):
    """a * b / c becomes a * (b / c) or a / c * b."""
    times = code.unit_before(i - 1) - 1
    if code.text(times) == "*" and times > left:
        yield left, right, f"{code.cut(left, times)} * ({code.cut(times + 1, right)})"
        yield left, right, f"{code.cut(left, times)} / {code.cut(i + 1, right)} * {code.cut(times + 1, i)}"


def _regroup(code, i, left, right):
    """a * b + c becomes a * (b + c) or (a + c) * b, and so on the other side."""
    operator, cut = code.text(i), code.cut
    for j in range(left, i):
        if code.text(j) in PRODUCTS and code.is_binary(j) and code.depth(left - 1, j) == 0:
            a, b, c = cut(left, j), cut(j + 1, i), cut(i + 1, right)
            yield left, right, f"{a} {code.text(j)} ({b} {operator} {c})"
            yield left, right, f"({a} {operator} {c}) {code.text(j)} {b}"
            yield left, right, f"{a} {code.text(j)} {c} {operator} {b}"
    for j in range(i + 1, right):
        if code.text(j) in PRODUCTS and code.is_binary(j) and code.depth(i, j) == 0:
            a, b, c = cut(left, i), cut(i + 1, j), cut(j + 1, right)
            yield left, right, f"({a} {operator} {b}) {code.text(j)} {c}"


def _keep_first(code, i, left):
    """a + b - c becomes a."""
    first, end = code.cut(left, i), code.right_of(i)
    while end is not None and code.text(end) in SUMS:
        end = code.right_of(end)
        if end is not None:
            yield left, end, first


def _ungroup(code, i, left, right):
    """(a + b) * c becomes a * c + b or a + b * c, and so on the other side."""
    operator, before, after = code.text(i), code.cut(left, i), code.cut(i + 1, right)
    if after.startswith("(") and code.partner.get(i + 1) == right - 1:
        for sign, a, b in _terms(code, i + 1):
            yield left, right, f"{before} {operator} {a} {sign} {b}"
            yield left, right, f"{a} {sign} {before} {operator} {b}"
    if before.startswith("(") and code.partner.get(left) == i - 1:
        for sign, a, b in _terms(code, left):
            yield left, right, f"{a} {operator} {after} {sign} {b}"
            yield left, right, f"{a} {sign} {b} {operator} {after}"


def _terms(code, bracket):
    """Each way to cut the sum in a bracket in two: its sign, and what is before and after it."""
    for j in code.inside(bracket):
        if code.text(j) in SUMS and code.is_binary(j):
            yield code.text(j), code.cut(bracket + 1, j), code.cut(j + 1, code.partner[bracket])
