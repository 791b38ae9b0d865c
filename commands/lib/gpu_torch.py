"""gpu_torch.py LINES: PyTorch's attention on this GPU, with the sizes of 11_flash_attention_gpu_bench.

It times scaled_dot_product_attention with each of PyTorch's own kernels (FlashAttention, cuDNN) in bf16, and
appends a JSON object a line to LINES. A call is timed as in gpu_timing.cu: after 300 ms of warming up, behind
a card that is kept busy, for half a second. Ends with status 3 where there is no PyTorch or no GPU.
"""
import json
import statistics
import sys
import time

TOKENS, WIDTH = 16384, 2048


def milliseconds(torch, work):
    start = time.monotonic()
    while time.monotonic() - start < 0.3:
        work()
        torch.cuda.synchronize()
    times, start = [], time.monotonic()
    while len(times) < 10 or time.monotonic() - start < 0.5:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(400_000)  # cycles, some 200 us
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)


def main(path):
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        print("PyTorch is not here: its attention was not measured")
        return 3
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU: its attention was not measured")
        return 3
    from torch.nn.functional import scaled_dot_product_attention as attend
    kernels = {"PyTorch, flash": SDPBackend.FLASH_ATTENTION, "PyTorch, cuDNN": SDPBackend.CUDNN_ATTENTION}
    print(f"PyTorch {torch.__version__}")
    with open(path, "a") as lines, torch.inference_mode():
        for causal in (False, True):
            for D in (64, 128):
                for T in (512, 1024, 2048, 4096, 8192, 16384):
                    B, H = TOKENS // T, WIDTH // D
                    q, k, v = (torch.randn(B, H, T, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
                    for name, backend in kernels.items():
                        try:
                            with sdpa_kernel(backend):
                                times = milliseconds(torch, lambda: attend(q, k, v, is_causal=causal))
                        except RuntimeError as error:  # not built for this card
                            print(f"  {name:16} T={T:<6} {str(error).splitlines()[0]}")
                            continue
                        ms = statistics.median(times)
                        tflops = 4 * B * H * D * T * T / (2 if causal else 1) / ms / 1e9
                        print(f"  {name:16} T={T:<6} {ms:8.3f} ms {tflops:8.1f} TFLOP/s  D={D} "
                              f"{'causal' if causal else 'full'}", flush=True)
                        line = {"kind": "attention", "rung": name, "D": D, "T": T, "causal": causal,
                                "least_ms": times[0], "ms": ms, "p90_ms": times[len(times) * 9 // 10],
                                "tflops": round(tflops, 2), "torch": torch.__version__}
                        lines.write(json.dumps(line) + "\n")
                        lines.flush()
    return 0


sys.exit(main(*sys.argv[1:]))
