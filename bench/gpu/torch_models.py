"""Times decoders of transformers through torch.compile on a GPU, and writes the device's section of a page.

torch_models.py [--output FILE] [--driver host] [--models NAME …] [--ways NAME …] [--seconds S]

Weights are random. A step is one token after a prompt in a static cache, or a whole prompt. Each case is a process: all of them compile at the same time, and
then take turns on the device. With `--driver host` the models are tiny, the emulator runs the kernels on CPU tensors, and no times are shown. Exit codes: 0 ok,
1 a way of Piecewise failed or its numbers are wrong, 77 PyTorch, transformers or the device is missing.
"""
import argparse
import copy
import multiprocessing
import os
import statistics
import sys
import time
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/peers"), str(ROOT / "tests/torch")]
SKIPPED = 77
EMULATED = {"backend": "cuda", "driver": "host"}

MODELS = {
    "Llama-3.2-1B": (
        "Llama",
        dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8, head_dim=64)
        | dict(vocab_size=128256, tie_word_embeddings=True),
    ),
    "Qwen3-0.6B, 12 of 28 layers": (
        "Qwen3",
        dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=8, head_dim=128)
        | dict(vocab_size=151936, tie_word_embeddings=True),
    ),
    "Gemma-3-1B, 12 of 26 layers": (
        "Gemma3Text",
        dict(hidden_size=1152, intermediate_size=6912, num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=1, head_dim=256)
        | dict(vocab_size=262144),
    ),
}
TINY = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=128)
CLASSES = {"Gemma3Text": "Gemma3ForCausalLM"}

# By name: arguments of torch.compile; `rules` adds Piecewise's rules to Inductor.
WAYS = {
    "eager": None,
    "Inductor, reduce-overhead": dict(mode="reduce-overhead"),
    "Piecewise": dict(backend="piecewise", options={}),
    "Piecewise, capture torch": dict(backend="piecewise", options={"capture": "torch"}),
    "Piecewise, capture piecewise": dict(backend="piecewise", options={"capture": "piecewise"}),
    "Inductor": dict(),
    "Inductor with Piecewise's rules": dict(rules=("llm", "o2")),
}
BASE = "Inductor, reduce-overhead"


class Stepper:
    """Steps of one model, always at the same place of its cache."""

    def __init__(self, torch, model, config, tokens, past, device):
        import transformers

        self._torch, self.model, self._past = torch, model, past
        self._cache = transformers.StaticCache(config=config, max_cache_len=past + tokens + 8)
        draw = torch.Generator().manual_seed(1)
        before, self._ids = (torch.randint(3, config.vocab_size, (1, n), generator=draw).to(device) for n in (max(past, 1), tokens))
        self._at = torch.arange(past, past + tokens, device=device)[None]
        with torch.inference_mode():  # allocates the cache, which only an eager call does in a way that graphs may capture
            model(input_ids=before, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        self.rewind()

    def rewind(self):
        with self._torch.inference_mode():
            for layer in self._cache.layers:
                for name in ("cumulative_length", "cumulative_length_int"):
                    length = getattr(layer, name, None)
                    if isinstance(length, self._torch.Tensor):
                        length.fill_(self._past)
                    elif length is not None:
                        setattr(layer, name, self._past)

    def __call__(self, function):
        with self._torch.inference_mode():
            call = function(input_ids=self._ids, position_ids=self._at, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
        return call.logits


def compiled(torch, model, how):
    """Returns the function of a way, and what reports on its compilation."""
    from piecewise import pytorch as front

    if how is None:
        return model.forward, lambda: ""
    how, known = dict(how), len(front.graphs())
    counters = torch._dynamo.utils.counters["inductor"]
    skips = counters["cudagraph_skips"]
    if "rules" in how:
        one = front.inductor_pass(*how.pop("rules"))
        how["options"] = {"post_grad_custom_pre_pass": one, "fx_graph_cache": False}  # a cached graph would report no rewrites
        return torch.compile(model.forward, fullgraph=True, dynamic=False, **how), lambda: "; ".join(sorted({*map(str, map(rewrites, one.done))}))
    if how.get("backend") == "piecewise":
        front.Backend(**how["options"])  # refuses an unknown option before anything is compiled
        return torch.compile(model.forward, fullgraph=True, dynamic=False, **how), lambda: "; ".join(map(summary, front.graphs()[known:]))
    return torch.compile(model.forward, fullgraph=True, dynamic=False, **how), lambda: uncaptured(counters["cudagraph_skips"] - skips)


def uncaptured(count):
    return f"graphs not captured: {count}" if count else ""


def summary(report):
    if report.refused:
        return f"PyTorch runs it: {report.refused}"
    notes = [f"{report.taken} of {report.ops} ops", *report.summary[:1]]
    notes += [f"{report.captures} captured"] * (report.captures > 0)
    notes += [f"{what}: {why}" for what, why in (("in parts", report.in_parts), ("not captured", report.not_captured)) if why]
    return "; ".join(notes)


def rewrites(done):
    return done.refused or ", ".join(f"{count} × {name}" for name, count in done.rewrites.items()) or "no rewrites"


class Measured:
    """A case in its process: compiles all ways, then times them."""

    def __init__(self, name, tokens, past, arguments):
        import torch
        import transformers

        warnings.filterwarnings("ignore")
        torch._dynamo.config.recompile_limit = 64
        torch.manual_seed(0)
        self.torch, self.host = torch, arguments.driver == "host"
        self.device = "cpu" if self.host else "cuda"
        family, sizes = MODELS[name]
        config = getattr(transformers, f"{family}Config")(**(sizes | (TINY if self.host else {}) | {"max_position_embeddings": 8192}))
        self.dtype = torch.float32 if self.host else torch.bfloat16
        with torch.device(self.device):
            model = getattr(transformers, CLASSES.get(family, f"{family}ForCausalLM"))(config).eval().to(self.dtype)
        self.step = Stepper(torch, model, config, tokens, past, self.device)
        exact = Stepper(torch, copy.deepcopy(model).double(), config, tokens, past, self.device)
        self.exact = exact(exact.model.forward)
        self.functions, self.rows = {}, {}
        self.error = self.distance(self.step(model.forward))

    def wait(self):
        if not self.host:
            self.torch.cuda.synchronize()

    def distance(self, logits):
        from stock import error

        return error(self.exact, logits, 0.0)

    def compile(self, way):
        """Compiles one way and compares its numbers; its row names what failed."""
        from stock import is_right

        row = self.rows[way] = {"way": way}
        how = WAYS[way]
        if self.host and how and how.get("backend") == "piecewise":
            how = how | {"options": how["options"] | EMULATED}
        start = time.perf_counter()
        try:
            function, report = compiled(self.torch, self.step.model, how)
        except ValueError as why:
            row["note"] = f"not available: {str(why).partition(';')[0]}"
            return
        try:
            for _ in range(3):  # graphs are captured at a second or third call
                self.step.rewind()
                error = self.distance(self.step(function))
                row.setdefault("first", time.perf_counter() - start)
                row["error"] = max(error, row.get("error", 0.0))
            row["note"] = report()
        except Exception as why:  # whatever a compiler raises: the other ways go on
            traceback.print_exc()
            row["note"] = f"failed: {type(why).__name__}: {(str(why).strip().splitlines() or [''])[0][:160]}"
            row["failed"] = "Piecewise" in way
            return
        if not is_right(row["error"], self.error, "f32" if self.host else "bf16"):
            row["note"], row["failed"] = f"WRONG; {row['note']}", "Piecewise" in way
        self.functions[way] = function

    def time(self):
        """Takes the medians of alternating steps, in milliseconds."""
        times = {way: [] for way in self.functions}
        for _ in range(1 if self.host else 20):
            for way, function in self.functions.items():
                self.step.rewind()
                self.wait()
                start = time.perf_counter()
                self.step(function)
                self.wait()
                times[way].append(1e3 * (time.perf_counter() - start))
        for way, all_times in times.items():
            self.rows[way]["ms"] = statistics.median(all_times)


def work(pipe, name, tokens, past, arguments, deadline):
    """Runs a case in its own process. The deadline for compiling is a time of the wall clock, which processes share."""
    case = Measured(name, tokens, past, arguments)
    slowest = 0.0
    for way in arguments.ways:
        start = time.time()
        if start + slowest > deadline:
            case.rows[way] = {"way": way, "note": "no time was left to compile it"}
            continue
        case.compile(way)
        slowest = max(slowest, time.time() - start)
    pipe.send(list(case.rows.values()))
    if pipe.recv() == "time":
        case.time()
    pipe.send(list(case.rows.values()))


class Process:
    """A case, as the parent sees it."""

    def __init__(self, name, tokens, past, arguments, deadline):
        self.title = (name, f"one token after {past}" if past else f"a prompt of {tokens}")
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, name, tokens, past, arguments, deadline), daemon=True)
        self._process.start()
        theirs.close()
        self.rows = []

    def read(self, until, command=None):
        """Reads rows, after a command; without any by that time, the process is ended."""
        try:
            if command is not None:
                self._pipe.send(command)
            if self._pipe.poll(max(0.0, until - time.time())):
                self.rows = self._pipe.recv()
                return
            why = "not finished in time"
        except (EOFError, ConnectionError):
            why = "its process ended early"
        self._process.kill()
        self._process.join()
        for row in self.rows:
            row["note"] = f"{why}; {row.get('note', '')}"
        self.rows = self.rows or [{"way": "all", "note": why, "failed": True}]

    def time(self, until):
        if self._process.is_alive():
            self.read(until, "time")

    def end(self):
        self._process.join(5)
        self._process.kill()
        self._process.join()


def lines_of(processes, host):
    """Returns the rows of all cases as a Markdown table."""
    lines = ["| model | step | way | ms | × reduce-overhead | error | first call, s | note |", "|---|---|---|--:|--:|--:|--:|---|"]
    for case in processes:
        base = next((row.get("ms") for row in case.rows if row["way"] == BASE), None)
        for row in case.rows:
            ms, error, first = (row.get(what) for what in ("ms", "error", "first"))
            cells = [*case.title, row["way"]]
            cells += ["—" if host or ms is None else f"{ms:.3f}", "—" if host or ms is None or base is None else f"{ms / base:.2f}"]
            cells += ["—" if error is None else f"{error:.1e}", "—" if host or first is None else f"{first:.1f}"]
            lines.append("| " + " | ".join([*cells, row.get("note", "").replace("|", "\\|")]) + " |")
    return lines


def page_of(torch, transformers, processes, host):
    place = "The emulator ran the kernels: tiny models in f32, no times." if host else "bf16, one sequence; medians of alternating steps."
    return [
        f"PyTorch {torch.__version__}, transformers {transformers.__version__}; random weights. {place} × reduce-overhead is a way's time divided by that of",
        "Inductor's reduce-overhead in the same run: below 1 it is faster. The error is the RMS distance of the logits from a run in f64, relative to their RMS.",
        "The first call includes compilation, while other cases compiled too.",
        "",
        *lines_of(processes, host),
    ]


def missing(arguments):
    """Returns what is not there, or an empty text."""
    for package in ("torch", "transformers", "_piecewise", "piecewise.pytorch"):
        try:
            __import__(package)
        except ImportError as why:
            return str(why)
    import torch

    return "" if arguments.driver == "host" or torch.cuda.is_available() else f"PyTorch {torch.__version__} finds no device"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--more", type=Path, help="append this file of Markdown to the section")
    parser.add_argument("--driver", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="NAME")
    parser.add_argument("--past", type=int, default=128, help="tokens before a decoded one")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--seconds", type=float, default=150, help="for everything; two thirds are for compiling")
    arguments = parser.parse_args()
    if why := missing(arguments):
        print(f"SKIPPED: models of transformers: {why}", file=sys.stderr)
        return SKIPPED
    import torch
    import transformers
    from environment import write_section

    start, host = time.time(), arguments.driver == "host"
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(1, (os.cpu_count() or 1) // (2 * len(arguments.models)))))
    steps = [(1, arguments.past), (arguments.prompt, 0)]
    compiling, end = start + arguments.seconds * 2 / 3, start + arguments.seconds
    processes = [Process(name, *step, arguments, compiling) for step in steps for name in arguments.models]
    for case in processes:
        case.read(compiling + 0.1 * arguments.seconds)
    for case in processes:
        case.time(end)
        case.end()
    lines = page_of(torch, transformers, processes, host)
    if arguments.more:
        lines += ["", arguments.more.read_text(encoding="utf-8").strip()]
    print("\n".join(lines))
    if arguments.output:
        write_section(arguments.output, "Models of transformers through torch.compile", lines, "Emulator" if host else torch.cuda.get_device_name())
    return 1 if any(row.get("failed") for case in processes for row in case.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
