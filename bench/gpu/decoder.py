"""Times steps of a decoder in PyTorch, eager and compiled, and prints a Markdown table.

The model is that of pw_bench_gpu: 8 layers of 2048, 16 heads of 128 (4 of keys), 5632 inside, bf16. Every sequence has 256 past tokens; rotary embedding is
omitted. Without PyTorch or a device it prints one line.
"""
import argparse
import statistics
import time


def decoder(torch, layers, hidden, heads, kv_heads, inside, vocabulary, device):
    nn, functional = torch.nn, torch.nn.functional
    width = hidden // heads

    def norm(x, weight):
        x32 = x.float()
        return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.ones(hidden))
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * width, bias=False)
            self.out = nn.Linear(hidden, hidden, bias=False)
            self.up = nn.Linear(hidden, 2 * inside, bias=False)
            self.down = nn.Linear(inside, hidden, bias=False)

        def forward(self, x, keys, values, at):
            q, k, v = self.qkv(norm(x, self.before)).split([heads * width, kv_heads * width, kv_heads * width], -1)
            rows = x.shape[0]
            keys[:, :, at] = k.view(rows, kv_heads, width)
            values[:, :, at] = v.view(rows, kv_heads, width)
            seen = functional.scaled_dot_product_attention(
                q.view(rows, heads, 1, width), keys.repeat_interleave(heads // kv_heads, 1), values.repeat_interleave(heads // kv_heads, 1)
            )
            x = x + self.out(seen.reshape(rows, hidden))
            gate, up = self.up(norm(x, self.after)).chunk(2, -1)
            return x + self.down(functional.silu(gate) * up)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(vocabulary, hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.last, self.head = nn.Parameter(torch.ones(hidden)), nn.Linear(hidden, vocabulary, bias=False)

        def forward(self, tokens, cache, at):
            x = self.table(tokens)
            for layer, (keys, values) in zip(self.layers, cache):
                x = layer(x, keys, values, at)
            return self.head(norm(x, self.last))

    return Decoder().to(device=device, dtype=torch.bfloat16)


def milliseconds(torch, step, device, rounds):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for _ in range(rounds + 3):
        wait()
        begin = time.perf_counter()
        step()
        wait()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times[3:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="2 layers of 128: to see that it runs")
    args = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"Not measured: {error}.")
        return
    if args.device == "cuda" and not torch.cuda.is_available():
        print(f"Not measured: PyTorch {torch.__version__} finds no device.")
        return
    sizes = (2, 128, 4, 2, 192, 64) if args.small else (8, 2048, 16, 4, 5632, 32000)
    past = 256
    print("| steps of a decoder | as it is, ms | compiled | reduce-overhead |\n|---|--:|--:|--:|")
    with torch.inference_mode():
        model = decoder(torch, *sizes, args.device)
        width = sizes[1] // sizes[2]
        for sequences in (1, 8, 32):
            tokens = torch.zeros(sequences, dtype=torch.long, device=args.device)
            cache = [
                tuple(torch.zeros(sequences, sizes[3], past + 1, width, dtype=torch.bfloat16, device=args.device) for _ in range(2))
                for _ in range(sizes[0])
            ]
            cells = []
            for how in (None, {}, {"mode": "reduce-overhead"}):
                try:
                    run = model if how is None else torch.compile(model, dynamic=False, **how)
                    cells.append(f"{milliseconds(torch, lambda: run(tokens, cache, past), args.device, 20):.2f}")
                except Exception as error:  # a missing compiler; the table names it
                    cells.append(type(error).__name__)
                torch._dynamo.reset()
            print(f"| {sequences} sequences | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
