"""Times by class of op: of Piecewise's compiled graphs, and of eager PyTorch and Inductor by torch.profiler."""
import re
import time

CLASSES = {  # by name, in this order
    "attention": r"attention|flash",
    "convolution": r"conv",
    "matmul": r"^(packed |mkl::_mkl_|mkldnn::_)?(\w*mm(_\w+)?|\w*linear(_\w+)?|matmul|bmm)$",
    "copies": r"^(\w*copy_?|clone|contiguous|cat|stack|reshape|transpose|t|slice|split\w*|expand|(_unsafe_)?view|as_strided|permute|empty\w*|full|constant)$",
    "row kernels": r"row kernel|cpp_fused",
}
LEFT, REST = "PyTorch's ops", "overhead"


def class_of(op, otherwise):
    name = op.removeprefix("aten::").removeprefix("aten.")
    return next((one for one, pattern in CLASSES.items() if re.search(pattern, name)), otherwise)


def summed(rows, seconds, calls, otherwise):
    """Returns milliseconds of a call by class; the rest of its time is overhead."""
    out = dict.fromkeys([*CLASSES, LEFT], 0.0)
    for op, spent in rows:
        out[class_of(op, otherwise)] += spent / calls * 1e3
    return out | {REST: seconds / calls * 1e3 - sum(out.values())}


def timed(function, x, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function(x)
    return time.perf_counter() - start


def of_piecewise(function, x, calls):
    import _piecewise

    function(x)
    _piecewise.op_times(True)
    seconds = timed(function, x, calls)
    rows = _piecewise.op_times(False)
    return summed([(op, spent) for op, _, _, spent in rows], seconds, calls, LEFT)


def of_pytorch(function, x, calls):
    """Eager ops that are not listed are pointwise ops and reductions, which other peers run in row kernels."""
    import torch

    function(x)
    seconds = timed(function, x, calls)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        timed(function, x, calls)
    events = [event for event in profile.key_averages() if "::" in event.key or "cpp_fused" in event.key]
    return summed([(event.key, event.self_cpu_time_total * 1e-6) for event in events], seconds, calls, "row kernels")


def profiled(functions, x, calls=10):
    """Returns the times of some functions: by name, by class."""
    return {name: (of_piecewise if name == "piecewise" else of_pytorch)(function, x, calls) for name, function in functions.items()}


def table(rows):
    """Returns a table of milliseconds, and the class of the largest loss of each model to Inductor."""
    classes = [*CLASSES, LEFT, REST]
    lines = ["| model | dtype | threads | peer | " + " | ".join(classes) + " | largest loss |", "|---" * (len(classes) + 5) + "|"]
    for row in rows:
        times = row["profile"]
        losses = {one: times["piecewise"][one] - times["inductor"][one] for one in classes}
        worst = max(losses, key=losses.get)
        for peer, spent in times.items():
            worst_loss = f"{worst}: {losses[worst]:+.2f} ms" if peer == "piecewise" else ""
            cells = [row["model"], row["dtype"], row["threads"], peer, *(f"{spent[one]:.2f}" for one in classes), worst_loss]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"
