"""Runs one model on one number of threads: compiled by each peer, called in turns. Prints a line of JSON.

one.py MODEL DTYPE THREADS SECONDS FROZEN [PEER | profile]

DTYPE: f32 or bf16. FROZEN, 1 or 0: whether Inductor and Piecewise may keep weights in a form of their own, as ONNX Runtime does. PEER, inductor or piecewise:
only compile with that one, in a fresh process. profile: print times by class of op instead.
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


def compiled(model, x, backend, frozen):
    """Returns the compiled function, and the seconds to its first result."""
    start = time.perf_counter()
    options = {"frozen": True} if frozen and backend == "piecewise" else None
    function = torch.compile(model, backend=backend, dynamic=False, options=options)
    with torch._inductor.config.patch(freezing=frozen and backend == "inductor"):
        function(x)
    return function, time.perf_counter() - start


def by_onnxruntime(model, x, threads):
    import onnxruntime

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, (x,), path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    function = lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])  # noqa: E731
    function(x)
    return function, time.perf_counter() - start


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


def main():
    name, dtype, threads, seconds, frozen = *sys.argv[1:3], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "1"
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x = MODELS[name]()
    model.eval()
    if dtype == "bf16":
        model, x = model.bfloat16(), x.bfloat16() if x.is_floating_point() else x
    out = {"model": name, "dtype": dtype, "threads": threads}
    functions, compile_seconds = {"eager": model}, {}
    profile = sys.argv[6:] == ["profile"]
    torch._inductor.config.cpp.enable_kernel_profile = profile
    peers = ["inductor", "piecewise"] if profile else sys.argv[6:] or ["inductor", "piecewise"]
    with torch.no_grad():
        for peer in peers:
            functions[peer], compile_seconds[peer] = compiled(model, x, peer, frozen)
        if profile:
            print(json.dumps(out | {"profile": profiled(functions, x)}))
            return
        if len(peers) == 1:
            print(json.dumps({"seconds": compile_seconds[peers[0]]}))
            return
        (report,) = front.report(functions["piecewise"]) if len(front.graphs()) == 1 else (front.graphs()[0],)
        out["ops"], out["taken"], out["left"] = report.ops, report.taken, report.left
        out["summary"] = report.summary[0] if report.summary else report.refused
        try:
            functions["onnxruntime"], compile_seconds["onnxruntime"] = by_onnxruntime(model, x, threads)
        except Exception as why:
            out["onnxruntime"] = f"{type(why).__name__}: {(str(why).splitlines() or [''])[0][:160]}"
        want = model(x).double()
        out["error"] = {n: ((f(x).double() - want).norm() / want.norm()).item() for n, f in functions.items()}
        out["seconds"] = in_turns(functions, x, seconds)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
