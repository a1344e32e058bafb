"""Times attention in PyTorch at the sizes of pw_bench_tensor, and prints a Markdown table with each of its implementations.

Keys and values alternate among copies that together exceed the second-level cache, and calls run one after another in a CUDA graph. Without PyTorch or a
device it prints one line.
"""
import argparse
import statistics
import time

STEPS = (
    (1, 512, 0), (1, 1024, 0), (8, 512, 0), (1, 2048, 0), (1, 4096, 0), (1, 8192, 0), (4, 2048, 0), (4, 1024, 4096),
    (1, 1, 4095), (1, 1, 16383), (1, 1, 32767), (1, 1, 131071), (2, 1, 4095), (8, 1, 4095), (8, 1, 32767), (64, 1, 4095),
    (512, 1, 511), (8, 4, 4092), (64, 4, 4092),
)  # fmt: skip
COLD_BYTES = 192 << 20


def microseconds(torch, calls, rounds):
    """Returns the microseconds of one call, in a graph of several consecutive calls."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for i in range(rounds):
            calls[i % len(calls)]()
    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[1:]) / rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", default="32:8,32:32,64:8", help="heads and groups of heads")
    args = parser.parse_args()
    try:
        import torch
        from torch.nn.attention import SDPBackend, bias, sdpa_kernel
    except ImportError as error:
        print(f"Not measured: {error}.")
        return
    if not torch.cuda.is_available():
        print(f"Not measured: PyTorch {torch.__version__} finds no device.")
        return
    attend = torch.nn.functional.scaled_dot_product_attention
    ways = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
    print(f"PyTorch {torch.__version__}, µs.\n\n| heads | step | " + " | ".join(ways) + " |\n|---|---|" + "--:|" * len(ways))
    for pair in args.heads.split(","):
        heads, groups = (int(part) for part in pair.split(":"))
        for sequences, rows, past in STEPS:
            keys = past + rows
            size = 4 * sequences * keys * groups * 128
            if size > 3 << 30:
                continue
            turns = max(1, min(16, COLD_BYTES // size))
            q = torch.randn(sequences, heads, rows, 128, dtype=torch.bfloat16, device="cuda")
            pools = [torch.randn(2, sequences, groups, keys, 128, dtype=torch.bfloat16, device="cuda") for _ in range(turns)]
            options = {"enable_gqa": heads != groups}
            if rows > 1:
                options |= {"is_causal": True} if past == 0 else {"attn_mask": bias.causal_lower_right(rows, keys)}
            cells = []
            for way in ways.values():
                try:
                    with sdpa_kernel(way):
                        calls = [lambda pool=pool: attend(q, pool[0], pool[1], **options) for pool in pools]
                        work = sequences * rows * (past + rows / 2) * heads
                        cells.append(f"{microseconds(torch, calls, max(4, min(64, int(2e9 / (work + 1e7))))):.1f}")
                except RuntimeError as error:
                    cells.append(type(error).__name__)
            print(f"| {heads} in {groups} | {sequences} of {rows} after {past} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
