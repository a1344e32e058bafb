"""Runs one model on one number of threads: compiled by each peer, called in turns. Prints a line of JSON.

one.py MODEL THREADS SECONDS FROZEN [PEER]

FROZEN, 1 or 0: whether Inductor and Piecewise may keep weights in a form of their own, as ONNX Runtime does. PEER, inductor or piecewise: only compile with
that one, in a fresh process.
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
    name, threads, seconds, frozen = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1"
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x = MODELS[name]()
    model.eval()
    out = {"model": name, "threads": threads}
    functions, compile_seconds = {"eager": model}, {}
    peers = sys.argv[5:] or ("inductor", "piecewise")
    with torch.no_grad():
        for peer in peers:
            functions[peer], compile_seconds[peer] = compiled(model, x, peer, frozen)
        if len(peers) == 1:
            print(json.dumps({"seconds": compile_seconds[peers[0]]}))
            return
        (report,) = front.report(functions["piecewise"]) if len(front.graphs()) == 1 else (front.graphs()[0],)
        out["ops"], out["taken"], out["left"] = report.ops, report.taken, report.left
        out["summary"] = report.summary[0] if report.summary else report.refused
        try:
            functions["onnxruntime"], compile_seconds["onnxruntime"] = by_onnxruntime(model, x, threads)
        except Exception as why:
            out["onnxruntime"] = f"{type(why).__name__}: {str(why).splitlines()[0][:160]}"
        want = model(x).double()
        out["error"] = {n: ((f(x).double() - want).norm() / want.norm()).item() for n, f in functions.items()}
        out["seconds"] = in_turns(functions, x, seconds)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
