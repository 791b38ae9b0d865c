"""What ./learn gpu recorded in docs/gpu/NAME.json, as tables for a page."""
import json

NOTHING = ("**No run of these kernels on a GPU is recorded yet.** Their results are tested on a CPU. `./learn gpu` checks and measures "
           "them on your GPU.\n")


def tables(folder):
    """All cards' tables, one after the other."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return "\n".join(_card(record) for record in records) or NOTHING


def _card(record):
    results, clocks = record["results"], record["while_measuring"]
    limits = [r for r in results if r["kind"] == "limits"]
    most = {name: max(r[name] for r in limits) for name in ("copy_gb_s", "read_gb_s", "mma_tflops", "matrix_tflops")}
    return "\n".join([
        f"**{record['name']}**, driver {record['driver']}, {record['date']}; medians while the multiprocessors ran at "
        f"{clocks['sm_clock_mhz']} MHz. It copies {most['copy_gb_s']:.0f} GB/s and reads {most['read_gb_s']:.0f}; `mma.sync` alone "
        f"reaches {most['mma_tflops']:.0f} TFLOP/s, cuBLAS {round(most['matrix_tflops']) or 'not measured'}.",
        "", *_attention(results, most["mma_tflops"]), "", *_decode(results, most["read_gb_s"]), ""])


def _attention(results, ceiling):
    """A line for each rung and mask at D = 128, a column for each T."""
    rows = [r for r in results if r["kind"] == "attention" and r["D"] == 128]
    lengths = sorted({r["T"] for r in rows})
    sides = list(dict.fromkeys((r["rung"], r["causal"]) for r in rows))
    speed = {(r["rung"], r["causal"], r["T"]): r["tflops"] for r in rows}
    yield "| TFLOP/s at D = 128 | " + " | ".join(f"T = {T}" for T in lengths) + " | best, of `mma.sync` |"
    yield "| --- |" + " ---: |" * (len(lengths) + 1)
    for rung, causal in sides:
        cells = [speed.get((rung, causal, T)) for T in lengths]
        best = max(cell for cell in cells if cell is not None)
        yield (f"| {rung}{', causal' if causal else ''} | " + " | ".join("" if c is None else f"{c:.1f}" for c in cells) +
               f" | {100 * best / ceiling:.0f} % |")


def _decode(results, read):
    yield "| rung 5, D = 128 | time | GB/s | of a read |"
    yield "| --- | ---: | ---: | ---: |"
    for r in (r for r in results if r["kind"] == "decode"):
        yield f"| B = {r['B']}, S = {r['S']} | {1000 * r['ms']:.1f} us | {r['gb_s']:.0f} | {100 * r['gb_s'] / read:.0f} % |"
