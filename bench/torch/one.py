"""Runs one model on one number of threads: compiled by each peer, called in turns. Prints a line of JSON.

one.py MODEL DTYPE THREADS SECONDS
one.py MODEL DTYPE THREADS PEER            only compile with inductor or piecewise, in a fresh process
one.py MODEL DTYPE THREADS profile [frozen]    print times by class of op instead

DTYPE: f32 or bf16. `frozen`, and a peer named so: weights are kept in a form of the peer's own, by Inductor's `freezing` and Piecewise's `frozen`.
"""
import json
import os
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch._inductor.config  # noqa: E402
from models import MODELS  # noqa: E402
from op_classes import profiled  # noqa: E402

from piecewise import pytorch as front  # noqa: E402

PEERS = ["inductor", "inductor frozen", "piecewise", "piecewise frozen"]


def compiled(model, x, peer):
    """Returns the function compiled by "inductor", "piecewise", or one of them with " frozen", and the seconds to its first result."""
    start = time.perf_counter()
    backend, _, frozen = peer.partition(" ")
    options = {"freezing" if backend == "inductor" else "frozen": True} if frozen else None
    function = torch.compile(model, backend=backend, dynamic=False, options=options)
    with torch._inductor.config.patch(freezing=peer == "inductor frozen"):  # Dynamo reads it before the options apply
        function(x)
    return function, time.perf_counter() - start


def by_onnxruntime(model, x, threads):
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, (x,), path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    function = lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])  # noqa: E731
    function(x)
    return function


def in_turns(functions, x, seconds):
    """Returns the medians of alternating calls, in seconds."""
    times = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, function in functions.items():
            start = time.perf_counter()
            function(x)
            times[name].append(time.perf_counter() - start)
    return {name: sorted(taken)[len(taken) // 2] for name, taken in times.items()}


def profile(model, x, frozen):
    torch._inductor.config.cpp.enable_kernel_profile = True
    functions = {"eager": model}
    for backend in ("inductor", "piecewise"):
        functions[backend], _ = compiled(model, x, backend + frozen)
    return {"profile": profiled(functions, x)}


def measured(model, x, threads, seconds):
    """Returns what was compiled, how far each peer's result is from eager PyTorch's, and the medians of the calls."""
    out, notes, functions = {}, [], {"eager": model}
    for peer in PEERS:
        functions[peer], _ = compiled(model, x, peer)
        if peer == "piecewise":
            (report,) = front.report(functions[peer]) if len(front.graphs()) == 1 else (front.graphs()[0],)
            out |= {"ops": report.ops, "taken": report.taken}
            notes += ["left to PyTorch: " + ", ".join(f"{n} × {op}" for op, n in report.left.items())] if report.left else []
    try:
        functions["onnxruntime"] = by_onnxruntime(model, x, threads)
    except Exception as why:
        notes.append(f"ONNX Runtime: {type(why).__name__}: {(str(why).splitlines() or [''])[0][:100]}")
    want = model(x).double()
    out["error"] = {name: ((f(x).double() - want).norm() / want.norm()).item() for name, f in functions.items()}
    return out | {"notes": "; ".join(notes), "seconds": in_turns(functions, x, seconds)}


def main():
    name, dtype, threads, what = *sys.argv[1:3], int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x = MODELS[name]()
    model.eval()
    if dtype == "bf16":
        model, x = model.bfloat16(), x.bfloat16() if x.is_floating_point() else x
    out = {"model": name, "dtype": dtype, "threads": threads}
    with torch.no_grad():
        if what == "profile":
            out |= profile(model, x, " frozen" if "frozen" in sys.argv[5:] else "")
        elif what in PEERS:
            out["seconds"] = compiled(model, x, what)[1]
        else:
            out |= measured(model, x, threads, float(what))
    print(json.dumps(out))


if __name__ == "__main__":
    main()
