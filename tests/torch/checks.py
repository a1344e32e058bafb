#!/usr/bin/env python3
"""Calls that raise in PyTorch raise the same when compiled, for checks of shapes, of indices, and of numbers.

    checks.py [--only TEXT] [--backends eager,cpu]

Checks of numbers (CASES) are compared with eager PyTorch's in type and words, alone and with computation around them, with gradients and without; on numbers
that pass, results are PyTorch's. Of every op in PyTorch's OpInfo database, the samples that must raise (error_inputs) are compiled: each raises, here or in
PyTorch's tracing. Exit code 1 where one does not.
"""
import argparse
import itertools
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

from piecewise import pytorch as front  # noqa: E402

torch._dynamo.config.capture_dynamic_output_shape_ops = True


def floats(*shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape) / 8 - 1


def numbers(*values, dtype=torch.long):
    return torch.tensor(values, dtype=dtype)


def gathers(bad, good):
    """Returns by name: a function, arguments that raise, and arguments that do not; of indices into an axis of five elements."""
    x = floats(5, 4)
    at, fine = numbers(0, bad), numbers(0, good)
    return {
        "embedding": (lambda w, i: F.embedding(i, w), (x, at), (x, fine)),
        "embedding, and sums": (lambda w, i: (F.embedding(i, w) * 2 + 1).sum(-1), (x, at), (x, fine)),
        "index": (lambda x, i: x[i], (x, numbers(0, bad - 10 if bad < 0 else bad)), (x, fine)),
        "index of two axes": (lambda x, i, j: x[i, j], (x, numbers(0, 9), numbers(0, 1)), (x, fine, numbers(0, 1))),
        "index_select": (lambda x, i: x.index_select(0, i), (x, at), (x, fine)),
        "gather": (lambda x, i: x.gather(0, i[:, None]) + 1, (x, at), (x, fine)),
        "take": (lambda x, i: x.take(i) * 2, (x, numbers(0, 20)), (x, numbers(0, 19))),
        "take_along_dim": (lambda x, i: x.take_along_dim(i[:, None], 0), (x, at), (x, fine)),
        "scatter": (lambda x, i: x.scatter(0, i[:, None], 1.0), (x, at), (x, fine)),
        "scatter of a source": (lambda x, i: x.scatter(0, i[:, None].expand(2, 4), x[:2] * 2), (x, at), (x, fine)),
        "scatter_add": (lambda x, i: x.scatter_add(0, i[:, None].expand(2, 4), x[:2]), (x, at), (x, fine)),
        "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i[:, None].expand(2, 4), x[:2], "amax"), (x, at), (x, fine)),
        "index_add": (lambda x, i: x.index_add(0, i, x[:2]), (x, at), (x, fine)),
        "index_copy": (lambda x, i: x.index_copy(0, i, x[:2]), (x, at), (x, fine)),
        "index_fill": (lambda x, i: x.index_fill(0, i, 3.0), (x, at) if bad >= 0 else (x, numbers(0, -6)), (x, fine)),
        "index_put": (lambda x, i: x.index_put((i,), x[0]), (x, numbers(0, 9)), (x, fine)),
        "index_put, summed": (lambda x, i: x.index_put((i,), x[0], accumulate=True), (x, numbers(0, 9)), (x, fine)),
        "a write in place": (lambda x, i: x.clone().index_fill_(0, i, 2.0).relu(), (x, numbers(0, 9)), (x, fine)),
    }


def divisions(dtype):
    x, zero, fine = numbers(7, -7 if dtype != torch.uint8 else 5, 3, dtype=dtype), numbers(2, 0, 1, dtype=dtype), numbers(2, 1, 3, dtype=dtype)
    out = {
        "%": (lambda x, y: x % y, (x, zero), (x, fine)),
        "%, and sums": (lambda x, y: ((x + 1) % y * 2).sum(), (x, zero), (x, fine)),
        "% of one": (lambda x, y: x % y[0], (x, zero[1:]), (x, fine)),
        "a number %": (lambda x, y: 7 % y, (x, zero), (x, fine)),
        "fmod": (lambda x, y: torch.fmod(x, y), (x, zero), (x, fine)),
        "//": (lambda x, y: x // y, (x, zero), (x, fine)),
        "div, cut off": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), (x, zero), (x, fine)),
        "div, rounded down": (lambda x, y: torch.div(x, y, rounding_mode="floor"), (x, zero), (x, fine)),
        "% 0": (lambda x, y: (x + 1) % 0, (x, x), None),
        "fmod 0": (lambda x, y: torch.fmod(x, 0), (x, x), None),
        "// 0": (lambda x, y: x // 0, (x, x), None),
        "numbers outside the dtype": (lambda x, y: x % -3 + torch.fmod(x, -3) + x % 300 + x % (2**40 + 3) + -3 % y, (x, zero), (x, fine)),
    }
    return {f"{name} of {dtype}": case for name, case in out.items()}


def asserted(x, y):
    torch._assert_async((y > 0).all(), "a rate is not positive")
    return x * y + 1


def classes():
    scores, at = floats(3, 4), numbers(0, 3, 2)
    out = {}
    for name, bad in (("too large", numbers(0, 4, 2)), ("negative", numbers(0, -3, 2))):
        out |= {
            f"one_hot, {name}": (lambda s, t: F.one_hot(t, 4), (scores, bad), (scores, at)),
            f"one_hot, {name}, and sums": (lambda s, t: (F.one_hot(t, num_classes=4).float() * s).sum(-1), (scores, bad), (scores, at)),
            f"nll_loss, {name}": (lambda s, t: F.nll_loss(s, t), (scores, bad), (scores, at)),
            f"cross_entropy, {name}": (lambda s, t: F.cross_entropy(s * 2, t, reduction="sum"), (scores, bad), (scores, at)),
            f"bincount, {name}": (lambda s, t: torch.bincount(t, minlength=4) + 1, (scores, numbers(0, -1)), None),
            f"repeat_interleave, {name}": (lambda s, t: torch.repeat_interleave(s, t, 0, output_size=5), (scores, numbers(1, -1, 5)), (scores, at)),
        }
    rates = floats(3, 4).sigmoid()
    out["binary_cross_entropy"] = (F.binary_cross_entropy, (rates + 1, rates), (rates, rates))
    out["masked_scatter"] = (lambda x, y: x.masked_scatter(x > -2, y), (floats(3, 4), floats(2)), (floats(3, 4), floats(12)))
    whole = torch.arange(12).view(3, 4)  # an error of a gradient's tracing has other words
    out["an assert"] = (asserted, (rates, -rates), (rates, rates))
    out["index_add of one column"] = (lambda x, y: x.index_add(0, numbers(0, 2), y) * 2, (whole, whole[:2, :1]), (whole, whole[:2]))
    for dtype in (torch.int64, torch.int8):
        x = numbers(1, -2, 3, dtype=dtype)
        out[f"a negative power of {dtype}"] = (lambda x, y: (x + 1) ** -2 + y, (x, x), None)
    truths = numbers(True, False, dtype=torch.bool)
    for name, op in (("floor", torch.floor), ("round", torch.round), ("abs", torch.abs)):
        out[f"{name} of bool"] = (lambda x, y, op=op: op(x) | y, (truths, truths), None)
    out["frac of integers"] = (lambda x, y: torch.frac(x + 1) + y, (whole, whole), None)
    out["multinomial"] = (lambda x, y: torch.multinomial(x, 2) + y, (numbers(-1.0, 2.0, dtype=torch.float32), 1), None)
    return out


def chosen(x):
    """The rows of positive first elements; their number is known at run time."""
    return x[x[:, 0] > 0] * 2


def rows():
    """Calls that no rows are given to."""
    ops = {
        "max": lambda x: x.max(),
        "min": lambda x: x.min(),
        "max along an axis": lambda x: x.max(0)[0],
        "places of min along an axis": lambda x: x.min(0)[1],
    }
    out = {}
    for name, op in ops.items():
        out[f"{name} of no rows"] = (lambda x, y, op=op: op(chosen(x)) + y, (-floats(3, 4).abs(), 1), (floats(3, 4) + 3, 1))
        out[f"{name} of nothing"] = (lambda x, y, op=op: op(x * 2) + y, (floats(0, 4), 1), None)
    return out


def outs():
    """Calls with `out=` whose checks tracing loses: of memory that a result shares, and of dtypes."""
    x, at = torch.arange(8), numbers(5, 4, 3, 2, 1, 0)

    def take(x, y):
        x = x + 1
        return torch.take(x[:6], at, out=x[2:] if y is at else x.new_empty(6)) * 2

    def cat(x, y):
        x = x + 1
        return torch.cat([x[:3], x[3:6]], out=x[1:7] if y is at else x[:0].clone()) * 2

    def extremes(x, y):
        low = x.new_empty([])
        return torch.aminmax(x, dim=0, out=(low, low if y is at else x.new_empty([])))[0] * 2

    def pairs(x, y):
        out = torch.empty(8, dtype=torch.complex64 if y is at else torch.complex128)
        return torch.complex(x.double(), x.double(), out=out) * 2

    def sums(x, y):
        x = x + 1
        return torch.add(x[1:], 1, out=x[:-1] if y is at else x[1:]) * 2

    cases = {"take": take, "cat": cat, "aminmax": extremes, "complex": pairs, "add": sums}
    return {f"out= of {name}": (call, (x, at), (x, x)) for name, call in cases.items()}


def fills():
    """Finite numbers beyond the range of the dtype that they are converted to; f16 ends at 65504."""
    half, mask, at = floats(3, 4).half(), floats(3, 4) > 0, numbers(0, 2)
    ops = {
        "full": lambda x, n: torch.full((4,), n, dtype=torch.float16) + x,
        "full_like": lambda x, n: torch.full_like(x * 2, n) + x,
        "fill_": lambda x, n: (x + 1).fill_(n) * 2,
        "masked_fill": lambda x, n: (x + 1).masked_fill(mask, n) * 2,
        "clamp": lambda x, n: (x + 1).clamp(0, n) * 2,
        "clamp, one bound": lambda x, n: (x + 1).clamp(max=n) * 2,
        "hardtanh": lambda x, n: F.hardtanh(x + 1, -1.0, n) * 2,
        "pad": lambda x, n: F.pad(x + 1, (1, 1), value=n) * 2,
        "index_fill": lambda x, n: (x + 1).index_fill(0, at, n) * 2,
        "threshold": lambda x, n: F.threshold(x + 1, 0.5, n) * 2,
        "alpha": lambda x, n: torch.add(x, x + 1, alpha=n) * 2,
    }
    return {f"{name} of {bad:g}": (op, (half, bad), (half, 60000.0)) for name, op in ops.items() for bad in (65519.0, 1e6)}


CASES = {
    **{f"{name}, too large": case for name, case in gathers(5, 4).items()},
    **{f"{name}, far too large": case for name, case in gathers(1 << 40, 4).items()},
    **{f"{name}, negative": case for name, case in gathers(-1, 4).items() if not name.startswith("index_fill")},
    **{name: case for dtype in (torch.int64, torch.int32, torch.int8, torch.uint8) for name, case in divisions(dtype).items()},
    **classes(),
    **rows(),
    **outs(),
    **fills(),
}


def raised(call):
    """The error of a call, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def words(error):
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}" if error is not None else "nothing"


def compiled(function, **options):
    torch._dynamo.reset()
    front.forget()
    return torch.compile(function, backend="piecewise", dynamic=False, options=options)


def wrong_of_case(function, bad, good, backend, training):
    """In words, where a case is wrong."""
    wrong = []

    def given(arguments):
        return [x.clone().requires_grad_(training and x.is_floating_point()) if isinstance(x, torch.Tensor) else x for x in arguments]

    call = compiled(function, backend=backend)
    want = raised(lambda: function(*given(bad)))
    for attempt in range(2):
        got = raised(lambda: call(*given(bad)))
        if words(got) != words(want):
            wrong.append(f"raises {words(got)}, and PyTorch {words(want)}")
            break
    if good is not None:
        expected, results = function(*given(good)), None
        try:
            results = call(*given(good))
        except Exception as error:
            wrong.append(f"raises {words(error)} where PyTorch does not")
        if results is not None and not torch.allclose(expected, results, rtol=1e-5):
            wrong.append("gives other numbers")
    return wrong


def check_cases(only, backends):
    count, wrong = 0, 0
    for name, (function, bad, good) in CASES.items():
        if only not in name:
            continue
        for backend in backends:
            for training in (False, True):
                if training and not any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in bad):
                    continue
                count += 1
                for said in wrong_of_case(function, bad, good, backend, training):
                    wrong += 1
                    print(f"{name} on {backend}{' with gradients' if training else ''}: {said}", flush=True)
    print(f"{count - wrong} of {count} checks of numbers raise what PyTorch raises")
    return wrong


def check_shared():
    """Arguments of `out=` that share memory in some calls of one compiled function, before or after calls in which they do not."""
    at, wrong = numbers(5, 4, 3, 2, 1, 0), 0

    def take(x, at, out):
        return torch.take(x, at, out=out) + 1

    def disjoint():
        return floats(6), at, floats(6)

    def same():
        x = floats(6)
        return x, at, x

    def views():
        x = floats(8)
        return x[:6], at, x[2:]

    def halves():
        x = floats(12)
        return x[:6], at, x[6:]

    for order in itertools.permutations((disjoint, same, views, halves)):
        call = compiled(take)
        for make in (*order, *order):
            given, expected, results = make(), make(), []
            want, got = (raised(lambda f=f, x=x: results.append(f(*x))) for f, x in ((take, expected), (call, given)))
            equal = all(map(torch.equal, [*expected, *results[:1]], [*given, *results[1:]]))
            if words(got) != words(want) or not equal:
                wrong += 1
                print(f"out= {make.__name__} of {[f.__name__ for f in order]}: raises {words(got)}, and PyTorch {words(want)}; numbers {equal}")
    print(f"calls whose out= shares memory with an argument: {wrong} differ")
    return wrong


def check_arguments():
    """Integers divided by an argument that changes from call to call, and to its power: 0, negative, or beyond the dtype."""
    ops, wrong = {"//": lambda x, n: x // n, "%": lambda x, n: x % n + 1, "fmod": torch.fmod, "**": lambda x, n: x**n}, 0
    for (name, op), dtype in itertools.product(ops.items(), (torch.int64, torch.int32)):
        torch._dynamo.reset()
        call = torch.compile(op, backend="piecewise")
        for number in (2, 3, 5, 0, -1, -3, 2**33 + 1):
            results = []
            want, got = (raised(lambda f=f: results.append(f(numbers(7, -7, 3, dtype=dtype), number))) for f in (op, call))
            if words(got) != words(want) or (want is None and not torch.equal(*results)):
                wrong += 1
                print(f"{name} {number} of {dtype}: raises {words(got)}, and PyTorch {words(want)}; {results}")
    print(f"integers and an argument that changes: {wrong} calls differ")
    return wrong


def check_samples(only):
    """Samples that must raise: in PyTorch's tracing most do."""
    counts, wrong = {"here": 0, "in tracing": 0, "PyTorch raises nothing": 0}, 0
    for info in op_db:
        if info.error_inputs_func is None or only not in info.name:
            continue
        try:
            samples = list(info.error_inputs("cpu"))
        except Exception:
            continue
        for number, sample in enumerate(samples):
            given = sample.sample_input

            def call(*args, _op=info.op, _given=given):
                return _op(*args, **_given.kwargs)

            arguments = (given.input, *given.args)
            want = raised(lambda: call(*arguments))
            if want is None:
                counts["PyTorch raises nothing"] += 1
                continue
            function = compiled(call)
            got = raised(lambda: function(*arguments))
            if got is None:
                wrong += 1
                print(f"{info.name} {number}: raises nothing, and PyTorch {words(want)}", flush=True)
            else:
                counts["here" if front.graphs() else "in tracing"] += 1
    print(f"samples that must raise: {counts}, {wrong} do not")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases and ops whose names hold this")
    parser.add_argument("--backends", default="eager,cpu")
    parser.add_argument("--no-samples", action="store_true", help="leave PyTorch's own samples out")
    arguments = parser.parse_args()
    wrong = check_cases(arguments.only, arguments.backends.split(","))
    wrong += check_arguments() if arguments.only in "an argument" else 0
    wrong += check_shared() if arguments.only in "out=" else 0
    wrong += 0 if arguments.no_samples else check_samples(arguments.only)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
