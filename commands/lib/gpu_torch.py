"""gpu_torch.py LINES: what PyTorch makes of our kernels' work on this GPU, with sizes of our
benches.

It times attention, decode and the experts' products with each of PyTorch's own kernels
(FlashAttention, cuDNN, grouped_mm) in bf16, and appends a JSON object a line to LINES. A call is
timed as in gpu_timing.cu: after 150 ms of warming up, behind a card that is kept busy, for 300 ms.
What this PyTorch or this card cannot do is left out, with a line that says so. Ends with status 3
where there is no PyTorch or no GPU.
"""
import json
import statistics
import sys
import time

TOKENS, WIDTH = 16384, 2048
SHAPES = {"Qwen3-30B-A3B": (128, 8, 2048, 768), "Mixtral-8x7B": (8, 2, 4096, 14336)}  # E, k, C, F


class Measured:
    """Times work, prints what comes of it, and writes it to the file."""

    def __init__(self, torch, lines):
        self.torch, self.lines = torch, lines
        self.written, self.read = (torch.ones(64 << 20, device="cuda") for _ in range(2))

    def empty_cache(self):
        self.written.fill_(1)
        self.read.sum()

    def times(self, work, before):
        start = time.monotonic()
        while time.monotonic() - start < 0.15:
            work()
            self.torch.cuda.synchronize()
        times, start = [], time.monotonic()
        while len(times) < 10 or time.monotonic() - start < 0.3:
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            before()
            self.torch.cuda._sleep(400_000)  # cycles, some 200 us
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return sorted(times)

    def __call__(self, title, work, counts, before=lambda: None, **fields):
        """counts: what a call does, by the name of the field of its speed, as 1e-9 of operations or
        bytes."""
        try:
            times = self.times(work, before)
        except (RuntimeError, AttributeError, TypeError) as error:
            # It is not built for this card, or not in this PyTorch.
            why = (str(error) or repr(error)).splitlines()[0]
            return print(f"  {title}: left out: {why}", flush=True)
        ms = statistics.median(times)
        speeds = {name: round(count / ms * (1 if name == "tflops" else 1000), 2)
                  for name, count in counts.items()}
        print(f"  {title:48} {1000 * ms:10.1f} us ",
              "  ".join(f"{name} {speed}" for name, speed in speeds.items()), sep="", flush=True)
        found = {"least_ms": times[0], "ms": ms, "p90_ms": times[len(times) * 9 // 10],
                 "torch": self.torch.__version__}
        self.lines.write(json.dumps(fields | speeds | found) + "\n")
        self.lines.flush()


def numbers(torch, *shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def with_kernel(name, work):
    """work with one of PyTorch's kernels of attention alone."""
    def call():
        from torch.nn.attention import SDPBackend, sdpa_kernel
        with sdpa_kernel(getattr(SDPBackend, name)):
            return work()
    return call


KERNELS = {"PyTorch, flash": "FLASH_ATTENTION", "PyTorch, cuDNN": "CUDNN_ATTENTION"}


def attention(torch, measured, causal, D, T):
    attend = torch.nn.functional.scaled_dot_product_attention
    B, H = TOKENS // T, WIDTH // D
    # In memory as ours are.
    q, k, v = (numbers(torch, B, T, H, D).transpose(1, 2) for _ in range(3))
    for rung, kernel in KERNELS.items():
        measured(f"{rung} D={D} T={T} {'causal' if causal else 'full'}",
                 with_kernel(kernel, lambda: attend(q, k, v, is_causal=causal)),
                 {"tflops": 4e-9 * B * H * D * T * T / (2 if causal else 1)},
                 kind="attention", rung=rung, D=D, T=T, causal=causal)


def decode(torch, measured, B, S, H=32, G=4, D=128):
    attend = torch.nn.functional.scaled_dot_product_attention
    q = numbers(torch, B, 1, H, D).transpose(1, 2)
    k, v = (numbers(torch, B, S, G, D).transpose(1, 2) for _ in range(2))
    for rung, kernel in KERNELS.items():
        measured(f"{rung} B={B} S={S}",
                 with_kernel(kernel, lambda: attend(q, k, v, enable_gqa=True)),
                 {"gb_s": 4e-9 * B * S * G * D}, measured.empty_cache,
                 kind="decode", rung=rung, B=B, S=S)


def experts(torch, measured, shape):
    """The products alone, of rows that are gathered already, with silu between them."""
    E, k, C, F = SHAPES[shape]
    gate, up, down = (numbers(torch, E, out, into) for out, into in ((F, C), (F, C), (C, F)))
    for T in (1, 16, 256, 4096, 16384):
        chosen = torch.rand(T, E, device="cuda").topk(k).indices.flatten()
        count = torch.bincount(chosen, minlength=E)
        ends, used = count.cumsum(0).to(torch.int32), int((count > 0).sum())
        x = numbers(torch, T * k, C)

        def work():
            def product(x, w):
                return torch._grouped_mm(x, w.transpose(-2, -1), offs=ends)
            return product(torch.nn.functional.silu(product(x, gate)) * product(x, up), down)

        measured(f"PyTorch, grouped_mm {shape} T={T}", work,
                 {"tflops": 6e-9 * T * k * C * F, "gb_s": 6e-9 * used * C * F},
                 measured.empty_cache, kind="experts", shape=shape, what="PyTorch, grouped_mm", T=T,
                 used=used)


def main(path):
    try:
        import torch
    except ImportError:
        print("PyTorch is not here: its kernels were not measured")
        return 3
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU: its kernels were not measured")
        return 3
    print(f"PyTorch {torch.__version__}")
    with open(path, "a") as lines, torch.inference_mode():
        measured = Measured(torch, lines)
        for causal in (False, True):
            for D in (64, 128):
                for T in (512, 1024, 2048, 4096, 8192, 16384):
                    attention(torch, measured, causal, D, T)
        for B in (1, 8, 64):
            for S in (1024, 4096, 16384, 65536) if B == 1 else (1024, 4096, 16384):
                decode(torch, measured, B, S)
        for shape in SHAPES:
            experts(torch, measured, shape)
    return 0


sys.exit(main(*sys.argv[1:]))
