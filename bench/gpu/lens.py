"""Records CUDA graphs of a decode step with the lens, and checks its files against what was captured.

lens.py [--folder DIR]

The graphs are those of torch.cuda.graph, Inductor with reduce-overhead, and Piecewise with `capture: "piecewise"`, of one decoder with random weights. Prints a
Markdown table, and leaves all files in DIR. Exits with 1 if a file is wrong, and with 77 without a device or before PyTorch 2.14.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from decoder import decoder  # noqa: E402

SKIPPED = 77
SIZES = (4, 2048, 16, 4, 5632, 32000)  # layers, hidden, heads, heads of keys, inside, vocabulary
PAST = 256


def unavailable():
    try:
        import torch

        import piecewise.lens  # noqa: F401
    except ImportError as why:
        return str(why)
    if not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} finds no device"
    return "" if hasattr(torch.cuda.graphs, "register_graph_capture_end_hook") else f"PyTorch {torch.__version__} has no hooks for captured graphs"


def captured(torch, step):
    """Captures a step as engines do, replays it twice, and returns its graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step()
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    return graph


def record(torch, folder):
    """Captures a step in each way; returns the ways, each with the number of graphs recorded so far."""
    import piecewise.lens

    tokens = torch.zeros(1, dtype=torch.long, device="cuda")
    width = SIZES[1] // SIZES[2]
    cache = [tuple(torch.zeros(1, SIZES[3], PAST + 1, width, dtype=torch.bfloat16, device="cuda") for _ in range(2)) for _ in range(SIZES[0])]
    ways = []
    with torch.inference_mode():
        model = decoder(torch, *SIZES, "cuda")
        piecewise.lens.start(folder)
        kept = captured(torch, lambda: model(tokens, cache, PAST))
        ways.append(("torch.cuda.graph", recorded(folder)))
        for name, how in (
            ("Inductor, reduce-overhead", {"mode": "reduce-overhead"}),
            ("Piecewise, capture piecewise", {"backend": "piecewise", "options": {"capture": "piecewise"}}),
        ):
            run = torch.compile(model, dynamic=False, **how)
            for _ in range(4):
                run(tokens, cache, PAST)
            torch.cuda.synchronize()
            ways.append((name, recorded(folder)))
            torch._dynamo.reset()
        del kept
    piecewise.lens.stop()
    return ways


def recorded(folder):
    """Returns the number of graphs that are written so far."""
    return len(list(Path(folder).glob("process_*/graph_*.json")))


def mistakes(process, graphs):
    """Returns what is wrong in the files of a process."""
    wrong = []
    for graph in graphs:
        name = graph["name"]
        if "topology" not in graph:
            wrong.append(f"{name}: {graph.get('failure', 'it was not read')}")
            continue
        nodes = json.loads((process / graph["file"]).read_text())["nodes"]
        if len(nodes) != graph["nodes"]:
            wrong.append(f"{name}: {len(nodes)} nodes in its file, {graph['nodes']} in the overview")
        if not graph["kinds"].get("kernel"):
            wrong.append(f"{name}: no kernels")
        if any(node["kind"] == "kernel" and not node.get("name") for node in nodes):
            wrong.append(f"{name}: a kernel without a name")
        if not (process / f"{name}.html").exists():
            wrong.append(f"{name}: no page")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="default: a temporary one")
    arguments = parser.parse_args()
    if why := unavailable():
        print(f"skipped: {why}")
        return SKIPPED
    import torch

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        ways = record(torch, folder)
        process = sorted(folder.glob("process_*"))[-1]
        graphs = json.loads((process / "overview.json").read_text())["graphs"]
        wrong = mistakes(process, graphs)
    print(
        "| captured by | graph | nodes | kernels | edges | critical path | could be programmatic | capture, ms | lens, ms |\n|---|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    before = 0
    for way, count in ways:
        if count == before:
            wrong.append(f"{way}: no graph was recorded")
        for graph in graphs[before:count]:
            if "topology" not in graph:
                continue
            numbers = (graph["nodes"], graph["kinds"].get("kernel", 0), graph["edges"], graph["critical_path"], graph["could_be_programmatic"])
            times = (graph["capture_s"] or 0, graph.get("lens_s", 0))
            print(f"| {way} | {graph['name']} | " + " | ".join([*map(str, numbers), *(f"{1e3 * s:.1f}" for s in times)]) + " |")
        before = count
    print(*[f"\nWRONG: {one}" for one in wrong], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
