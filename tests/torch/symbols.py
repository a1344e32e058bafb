"""Sizes that are symbols, under torch.compile and compile_export, beside PyTorch: numbers read from tensors, dims that export fixed, and dims that are
equal by guards alone. Run by run.py.
"""
import sys
import warnings

import torch
from torch._higher_order_ops import associative_scan
from torch.export import Dim, export

from piecewise import pytorch as front

warnings.filterwarnings("ignore")
torch._dynamo.config.capture_scalar_outputs = True
failures = []


def say(name, problem=""):
    print(f"  {name}: {problem or 'right'}", flush=True)
    if problem:
        failures.append(name)


def same(got, want):
    got, want = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    for a, b in zip(got, want, strict=True):
        if not (torch.allclose(a, b, atol=1e-5, equal_nan=True) if isinstance(a, torch.Tensor) else a == b):
            return False
    return True


def compiled_as_is(name, f, calls, least=0.0, dynamic=None):
    """PyTorch's values for each call's arguments; at least so much of all ops is taken."""
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="piecewise", dynamic=dynamic)
    try:
        with torch.no_grad():
            wrong = [i for i, args in enumerate(calls) if not same(compiled(*args), f(*args))]
    except Exception as error:
        return say(name, f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}")
    reports = front.report(compiled)
    ops, taken = sum(r.ops for r in reports), sum(r.taken for r in reports)
    if wrong:
        return say(name, f"other values in calls {wrong}")
    return say(name, "" if taken >= least * ops else f"{taken} of {ops} ops taken: {[r.refused for r in reports if r.refused]}")


# ---- numbers of tensors


def as_a_size(i):
    n = i.item()
    torch._check(n >= 0)
    return torch.zeros(n) + 1


def as_a_bound(x, i):
    n = i.item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n] * 2 + 1


def as_a_factor(x):
    return x.new_zeros(4) + int(x.sum()) * 2


def as_a_real_factor(x):
    return x * x.amax().item() + 1


def as_a_result(x):
    n = x.amax().item()
    return n, x + 1


def as_times(x, i):
    n = i.item()
    torch._check(n >= 0)
    return x.repeat(n, 2).tanh()


def as_a_check(x, y):
    torch._check((y.sum() > 0).item())
    return x.tanh() + y


def numbers():
    small, large = torch.arange(4), torch.arange(7)
    compiled_as_is("a number of a tensor as a size", as_a_size, [(torch.tensor(3),), (torch.tensor(5),), (torch.tensor(0),)])
    compiled_as_is("as a bound", as_a_bound, [(torch.randn(6, 3), torch.tensor(n)) for n in (2, 5, 6)])
    compiled_as_is("as a factor", as_a_factor, [(small,), (large,)])
    compiled_as_is("as a real factor", as_a_real_factor, [(torch.randn(5),), (torch.randn(5),)])
    compiled_as_is("as a result", as_a_result, [(small,), (small + 3,)])
    compiled_as_is("as a check", as_a_check, [(torch.randn(3), torch.ones(3)), (torch.randn(3), torch.ones(3) * 2)], 0.4)
    compiled_as_is("as how often", as_times, [(torch.randn(2, 3), torch.tensor(n)) for n in (1, 4)])


# ---- dims that are equal by guards


def scan(a, b):
    def combine(x, y):
        return x[0] * y[0], x[1] * y[0] + y[1]

    return associative_scan(combine, (a, b), dim=0, combine_mode="generic")[1].tanh() + 1


def down_and_up(x):
    """A U-Net: halved, doubled, and joined with its input."""
    half = x[:, ::2]
    back = torch.stack([half, half], 2).flatten(1, 2)
    return torch.cat([back + x, x.tanh()], 1) * 2


def two_names(x, y):
    return (x + y).tanh() * y.sum(0)


def halves(x):
    n = x.shape[0] // 2
    return x[:n] * x[n:] + 1


def in_chunks(x):
    """Like Mamba 2: padded to whole chunks; the padding, if any, is cut off."""
    n = x.shape[1]
    fill = (8 - n % 8) % 8
    chunks = torch.nn.functional.pad(x, (0, 0, 0, fill)).reshape(x.shape[0], -1, 8, x.shape[2])
    sums = chunks.cumsum(2) + chunks.sum(2, keepdim=True).cumsum(1)
    whole = sums.reshape(x.shape[0], -1, x.shape[2])
    return (whole[:, :n] if fill else whole) * x


def equal_dims():
    def scanned(n):
        return torch.rand(n, 3, 8), torch.rand(n, 3, 8)

    compiled_as_is("a scan of any length", scan, [scanned(n) for n in (17, 23, 40, 64)], 0.9, dynamic=True)
    compiled_as_is("halved and doubled", down_and_up, [(torch.randn(3, n),) for n in (6, 10, 16)], 0.9, dynamic=True)
    compiled_as_is("filled up to whole chunks", in_chunks, [(torch.randn(2, n, 3),) for n in (12, 24, 29, 16, 7)], 0.6, dynamic=True)
    compiled_as_is("two symbols of one size", two_names, [(torch.randn(n, 4), torch.randn(n, 4)) for n in (3, 5, 8)], 1.0, dynamic=True)
    # PyTorch runs the sum of halves with different forms.
    compiled_as_is("two halves", halves, [(torch.randn(n, 3),) for n in (6, 8, 12)], 0.7, dynamic=True)


# ---- what export has fixed


class Fixed(torch.nn.Module):
    def forward(self, x):
        y = x.cumsum(1)
        for i in range(x.shape[1]):
            y = y + x[:, i : i + 1]
        return y


class Even(torch.nn.Module):
    def forward(self, x):
        return x.view(-1, 2, x.shape[1]).sum(1) + x[: x.shape[0] // 2]


def exported_dims():
    for name, module, auto, sizes in (
        ("a dim that export fixed", Fixed(), {0: Dim.AUTO, 1: Dim.AUTO}, ((3, 12), (5, 12))),
        ("an even dim", Even(), {0: Dim.AUTO}, ((6, 4), (10, 4))),
    ):
        try:
            compiled = front.compile_export(export(module, (torch.randn(*sizes[0]),), dynamic_shapes=(auto,)))
            inputs = [torch.randn(*size) for size in sizes]
            say(name, "" if all(torch.allclose(compiled(x), module(x), atol=1e-4) for x in inputs) else "other values")
        except Exception as error:
            say(name, f"{type(error).__name__}: {str(error)[:200]}")


def main():
    numbers()
    equal_dims()
    exported_dims()
    print(f"sizes that are symbols: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
