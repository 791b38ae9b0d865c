"""What ./learn gpu recorded in docs/gpu/NAME.json, as tables for a page: one for each card. What a record lacks is an empty cell."""
import json

NOTHING = ("**No run of these kernels on a GPU is recorded yet.** Their results are tested on a CPU. `./learn gpu` checks and measures "
           "them on your GPU.\n")
# Texts and keys of the table of decode.
SHOWN = ((1, 1024), (1, 16384), (1, 65536), (8, 16384), (64, 1024), (64, 4096), (64, 16384))


def tables(folder, what):
    """what: one of TABLES."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return "\n".join(filter(None, (_card(record, what) for record in records))) or NOTHING


def _card(record, what):
    """Nothing if the record is from before these kernels were there."""
    rows = [*TABLES[what](record["results"])]
    clock = record["while_measuring"]["sm_clock_mhz"]
    at = f", multiprocessors at {clock:.0f} MHz" if clock else ""
    return rows and "\n".join([*rows, "", f"Recorded {record['date']} on an {record['name']} (driver {record['driver']}{at}); "
                      "medians. `./learn gpu` measures yours.", ""])


def _most(results, name, group=""):
    """A limit of the card: the highest that was measured, or that of the groups whose names contain a text. 0 if there is none."""
    return max((r[name] for r in results if r["kind"] == "limits" and group in r["group"]), default=0)


def _found(results, kind, *fields):
    """The results of a kind, by their fields."""
    return {tuple(r[field] for field in fields): r for r in results if r["kind"] == kind}


def _values(found, at):
    """The different values of a field, in their order."""
    return list(dict.fromkeys(key[at] for key in found))


def _row(*cells):
    return "| " + " | ".join("" if cell is None else cell for cell in cells) + " |"


def _head(first, columns):
    yield _row(first, *columns)
    yield "| --- |" + " ---: |" * len(columns)


def _short(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _cell(result, field, factor=1.0, unit=""):
    return result and _short(factor * result[field]) + unit


def _share(result, field, whole):
    return f"{100 * result[field] / whole:.0f} %" if result and whole else None


def _ladder(results):
    found = _found(results, "attention", "rung", "D", "causal", "T")
    lengths = (512, 2048, 16384)
    yield from _head("TFLOP/s at D = 128", [f"{T:,} tokens" for T in lengths] + [f"{T:,}, causal" for T in lengths])
    for rung in _values(found, 0):
        yield _row(_name(rung), *(_cell(found.get((rung, 128, causal, T)), "tflops") for causal in (False, True) for T in lengths))
    matrix, floats = (_most(results, name) for name in ("matrix_tflops", "float_tflops"))
    yield ""
    yield (f"A copy moves {_most(results, 'copy_gb_s'):,.0f} GB/s on this GPU, and a sum reads {_most(results, 'read_gb_s'):,.0f}. In TFLOP/s, "
           f"`mma.sync` alone reaches {_most(results, 'mma_tflops'):.0f}" +
           (f", and cuBLAS's products reach {matrix:.0f} in bf16 and {floats:.0f} in float32." if matrix else "."))


def _name(rung):
    number, _, words = rung.partition(" ")
    return f"rung {number}, {words}" if number.isdigit() else rung


def _peers(results):
    """Rung 4 beside PyTorch's kernels, and its speed divided by theirs."""
    found = _found(results, "attention", "rung", "D", "causal", "T")
    rivals = [rung for rung in _values(found, 0) if rung.startswith("PyTorch")]
    yield from _head("TFLOP/s", ["rung 4", *(word for rival in rivals for word in (rival, "ratio"))])
    for D, causal, T in ((D, causal, T) for D in (64, 128) for causal in (False, True) for T in (1024, 16384)):
        ours, *theirs = (found.get((rung, D, causal, T)) for rung in ("4 swizzle, async", *rivals))
        ratios = (f"{ours['tflops'] / their['tflops']:.2f}" if ours and their else None for their in theirs)
        yield _row(f"D = {D}, {T:,} tokens{', causal' if causal else ''}", _cell(ours, "tflops"),
                   *(cell for their, ratio in zip(theirs, ratios) for cell in (_cell(their, "tflops"), ratio)))


def _decode(results):
    """Microseconds of rung 5 and of PyTorch, and how near to a plain read rung 5 comes."""
    found = _found(results, "decode", "rung", "B", "S")
    ours, rivals = "5 decode", [rung for rung in _values(found, 0) if rung.startswith("PyTorch")]
    read = _most(results, "read_gb_s", "decode, ")
    yield from _head("texts and keys", ["rung 5", "of a read", *rivals])
    for B, S in SHOWN:
        yield _row(f"{B} · {S:,}", _cell(found.get((ours, B, S)), "ms", 1000, " µs"), _share(found.get((ours, B, S)), "gb_s", read),
                   *(_cell(found.get((rival, B, S)), "ms", 1000, " µs") for rival in rivals))


def _rows(results):
    found = _found(results, "rows", "kernel", "T", "C")
    sizes = sorted({key[1:] for key in found})
    shapes = [f"[{T:,}, {C:,}]" for T, C in sizes]
    yield from _head("kernel", shapes + [f"of a copy, {shape}" for shape in shapes])
    for kernel in _values(found, 0):
        mine = [found.get((kernel, *size)) for size in sizes]
        yield _row(kernel, *(r and f"{1000 * r['ms']:.1f} µs" for r in mine), *(_share(r, "gb_s", r and r["copy_gb_s"]) for r in mine))


def _pages(results):
    found = _found(results, "pages", "what", "B", "S")
    names = ("contiguous", "pages of 16", "pages of 64")
    yield from _head("texts and positions", [*names, "share of the contiguous speed, pages of 16"])
    for B, S in dict.fromkeys(key[1:] for key in found):
        beside, ours, longer = (found.get((name, B, S)) for name in names)
        yield _row(f"{B} · {S:,}", *(_cell(r, "ms", 1000, " µs") for r in (beside, ours, longer)), _share(ours, "gb_s", beside and beside["gb_s"]))


def _prompts(results):
    found = _found(results, "prompts", "what", "B", "T", "S")
    names = ("contiguous", "pages of 16", "pages of 64")
    if found:
        yield from _head("texts, new tokens and positions", [*(f"{name}, TFLOP/s" for name in names), "share of contiguous, pages of 16"])
    for B, T, S in dict.fromkeys(key[1:] for key in found):
        beside, ours, longer = (found.get((name, B, T, S)) for name in names)
        yield _row(f"{B} · {T:,} · {S:,}", *(_cell(r, "tflops") for r in (beside, ours, longer)), _share(ours, "tflops", beside and beside["tflops"]))


def _experts(results):
    """Milliseconds, and the arithmetic and the bytes of ours."""
    found = _found(results, "experts", "shape", "T", "what")
    names = _values(found, 2)
    yield from _head("model and tokens", [*names, "ours, TFLOP/s", "of `mma.sync`", "weights, of a read"])
    for shape, T in dict.fromkeys(key[:2] for key in found):
        ours = found.get((shape, T, "all three kernels"))
        yield _row(f"{shape}, {T:,}", *(_cell(found.get((shape, T, name)), "ms", unit=" ms") for name in names), _cell(ours, "tflops"),
                   _share(ours, "tflops", _most(results, "mma_tflops", shape)), _share(ours, "gb_s", _most(results, "read_gb_s", shape)))


TABLES = {"ladder": _ladder, "peers": _peers, "decode": _decode, "rows": _rows, "pages": _pages, "prompts": _prompts,
          "experts": _experts}
