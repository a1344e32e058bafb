"""A function for each command of pwr, which returns the data of `--format json`, or other data if the command has no JSON output.

A graph is given as a Graph or as the path of a file (`symbols` are for those of FX dumps), rules as Rules, as a file or a name of the
library, or as a list of such. What is given by path alone is read into a session of its own, as a command does. `params` of rules are
{"tp": 2}. `log` is called with each line that the command would say, such as print. What is wrong is raised as Error.
"""
from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import _piecewise
from _piecewise import Graph, Rules, Session as _Session, cache_clear, cache_stats, cache_verify, cache_why, doctor, format_rules, code_meaning

__all__ = [
    "bench",
    "bisect",
    "compile_model",
    "cache_clear",
    "cache_stats",
    "cache_verify",
    "cache_why",
    "check",
    "compile",
    "doctor",
    "draw",
    "equal",
    "explain",
    "extract",
    "export",
    "fmt",
    "format_rules",
    "fuzz_order",
    "generate",
    "import_",
    "match",
    "code_meaning",
    "ops",
    "opt",
    "plan",
    "plan_diff",
    "prove",
    "reduce",
    "report",
    "rule_order",
    "run_model",
    "sizes",
    "split",
    "stats",
    "test",
    "tune",
    "verify",
]

Path = Union[str, "os.PathLike[str]"]
GraphLike = Union[Graph, Path]
RulesLike = Union[Rules, Path, Sequence[Path]]
Params = Optional[Mapping[str, Any]]
Symbols = Union[None, str, Sequence[str], Mapping[str, Union[str, Sequence[str]]]]
Log = Optional[Callable[[str], Any]]
Rows = List[Dict[str, Any]]

_shared: Optional[_Session] = None


def shared_session() -> _Session:
    """Returns the session of all graphs and rules that are loaded without one, so that the op library is read once."""
    global _shared
    if _shared is None:
        _shared = _Session()
    return _shared


def symbol_texts(given: Symbols) -> List[str]:
    """Returns symbols in the spelling of the command line."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping):
        return [f"{symbol}={dims if isinstance(dims, str) else ','.join(dims)}" for symbol, dims in given.items()]
    return list(given or [])


def _param_texts(params: Params) -> List[str]:
    return [f"{name}={value}" for name, value in (params or {}).items()]


def _texts(given: Union[Path, Sequence[Path]]) -> List[str]:
    """Returns a list of paths for one path or several."""
    if isinstance(given, Rules):
        raise TypeError("pass rules as files or library names, not as Rules")
    return [os.fspath(given)] if isinstance(given, (str, os.PathLike)) else [os.fspath(path) for path in given]


def _session_of(session: Optional[_Session], *things: Any) -> _Session:
    """Returns the session of the first graph or rules; if all are given by path, a new one."""
    for thing in things:
        if isinstance(thing, (Graph, Rules)):
            return thing.session
    return session or _Session()


def _graph(session: _Session, given: GraphLike, symbols: Symbols, log: Log) -> Graph:
    if isinstance(given, Graph):
        return given
    return _piecewise.import_graph(session, os.fspath(given), {"symbols": symbol_texts(symbols)}, False, log)


def _rules(session: _Session, given: RulesLike) -> Rules:
    return given if isinstance(given, Rules) else _piecewise.Session.rules(session, _texts(given))


def _with_rules(
    call: Callable[..., Any],
    graph: GraphLike,
    rules: RulesLike,
    params: Params,
    symbols: Symbols,
    session: Optional[_Session],
    log: Log,
    *arguments: Any,
) -> Any:
    """Calls a function of the extension with a loaded graph, loaded rules and their params, then its own arguments and the log."""
    context = _session_of(session, graph, rules)
    loaded = _rules(context, rules)
    return call(_graph(context, graph, symbols, log), loaded, _param_texts(params), *arguments, log)


def check(
    files: Union[Path, Sequence[Path]], *, analysis: bool = True, proof: bool = True, session: Optional[_Session] = None, log: Log = None
) -> Rows:
    """Loads rule files and reports their contents, their mistakes, interactions of rules, and which rules are proved.

    analysis=False leaves out the last two, proof=False the last.
    Returns a row for each rule, pass, pipeline and param (`kind`, `name`, `of`; rules have `place`, `verdict`, `findings`, `reasons`, and of proofs
    `numbers`, in the words of verify(), `known_by` and `left_to_show`), each
    finding and each mistake (`code`, `place`, `message`, `help`), and one of the kind `summary`. Mistakes in the files are rows of the kind
    `error`, and not raised.
    """
    return _piecewise.check(session or _Session(), _texts(files), analysis, proof, log)


def rule_order(files: Union[Path, Sequence[Path]], *, dot: bool = False, session: Optional[_Session] = None) -> Any:
    """Sorts the rules by which rules enable which, as `pwr check --order` does.

    Returns rows of `step`, `rule`, `in a cycle` and `enables`; with dot=True the text of a picture for Graphviz.
    """
    return _piecewise.rule_order(session or _Session(), _texts(files), dot)


def explain(
    graph: GraphLike,
    rules: RulesLike,
    rule: str,
    pipeline: str = "",
    params: Params = None,
    *,
    before: str = "",
    at: str = "",
    most: int = 5,
    tokens: Optional[int] = None,
    pieces: bool = False,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Explains why a rule, family, or group did not match a graph, and with a pipeline the outcome of each match. code_meaning() describes a code.

    Returns `rule`, `matches` (with a pipeline: rewrites), `range`, `otherwise`, `applied` (rule, builtin, pass, step, nodes, count) and `near_misses` (code, rule,
    at, message, nodes, taken_by, help, count, others, …).
    """
    options = {"before": before, "at": at, "most": most, "pieces": pieces, **({} if tokens is None else {"tokens": tokens})}
    return _with_rules(_piecewise.explain, graph, rules, params, symbols, session, log, rule, pipeline, options)


def match(
    graph: GraphLike,
    pattern: str,
    rules: Union[Path, Sequence[Path]] = (),
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Rows:
    """Lists where a pattern, the left side of a rule, matches a graph; `rules` are files whose shared patterns it may use.

    Returns a row for each match: `match` (its number), `nodes` and `bindings`, both as text; no rows if it does not match.
    """
    context = _session_of(session, graph)
    return _piecewise.match(_graph(context, graph, symbols, log), pattern, _texts(rules), _param_texts(params))


def verify(
    rules: RulesLike,
    only: Union[str, Sequence[str]] = (),
    params: Params = None,
    *,
    ranks: Sequence[int] = (2, 4),
    graph: Optional[Path] = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Rows:
    """Verifies rules on graphs generated from their patterns: those named, or all, together with the traits of declared ops (also those of the file `graph`).

    Returns a row per rule: `rule`, `verdict` (same_bits, rounds, differs_only_for, may_overflow, refuted, unknown, no_instance, cannot_run), `known_by`
    (proof, samples, or None if unknown), `only_for`, `reason`, `contradiction`, `proof`, `left_to_show`, `uncovered`, `granted`, and `cases` of the proof,
    `by_dtype`, `graphs`, `samples`, `ranks`, `ulps`, and `drawn` (their dtypes, ranks, sizes, and special values) of the samples, `guards`, and `test`, the graph of a refutation as text.
    """
    loaded = _rules(_session_of(session, rules), rules)
    return _piecewise.verify(loaded, _param_texts(params), [only] if isinstance(only, str) else list(only), list(ranks), os.fspath(graph or ""), log)


def prove(
    rules: RulesLike,
    only: Union[str, Sequence[str]] = (),
    params: Params = None,
    *,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Rows:
    """Proves rules for all sizes, dtypes, and attributes: those named, or all.

    Returns the rows of `verify`.
    """
    loaded = _rules(_session_of(session, rules), rules)
    return _piecewise.prove(loaded, _param_texts(params), [only] if isinstance(only, str) else list(only), log)


def equal(
    single: GraphLike,
    ranks: Union[GraphLike, Sequence[GraphLike]],
    relation: str = "",
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Proves that the graphs of several ranks, in rank order, or one other graph, compute the same as a graph. `relation` is the text of `--relation`.

    Returns `rows` (a row a claim: `output`, `claim`, `of`, `verdict`, `node`, `op`, `source`, `reason`), `verdict` (same_bits, rounds, or unknown), `known_by`,
    `granted`, `equal_by_name`, `nodes` and `matched`.
    """
    others: Sequence[GraphLike] = list(ranks) if isinstance(ranks, (list, tuple)) else [ranks]  # type: ignore[list-item]
    context = _session_of(session, single, *others)
    return _piecewise.equal(_graph(context, single, symbols, log), [_graph(context, other, symbols, log) for other in others], relation)


def test(
    paths: Union[Path, Sequence[Path]],
    params: Params = None,
    *,
    only: str = "",
    seed: int = 1,
    update: bool = False,
    junit: Optional[Path] = None,
    log: Log = None,
) -> Rows:
    """Runs the tests in rule files and compares .counts.json files. update=True corrects counts; junit names a file for the results as JUnit XML.

    Returns a row for each test: `file`, `test`, `expectations`, `negative` and `result` ("ok", or what failed). Raises the errors of files that cannot be loaded after
    testing all others.
    """
    return _piecewise.test(_texts(paths), _param_texts(params), only, seed, update, os.fspath(junit or ""), log)


def fmt(files: Union[Path, Sequence[Path]], check: bool = False) -> List[str]:
    """Formats rule files in place; check=True only reports.

    Returns the files that are not formatted.
    """
    return _piecewise.format_files(_texts(files), check)


def import_(
    path: Path,
    *,
    symbols: Symbols = None,
    types: Mapping[str, str] = {},
    number: int = 0,
    inputs: Sequence[str] = (),
    weights: Sequence[str] = (),
    buffers: Sequence[str] = (),
    replicated: Sequence[str] = (),
    rules: RulesLike = (),
    session: Optional[_Session] = None,
    log: Log = None,
) -> Graph:
    """Imports a graph of any format, checks its invariants, and reports details of the import to `log`.

    `types` of inputs, as {"x": "bf16[n, 64]"}, `number`, `inputs`, `weights` and `buffers` apply to FX dumps; `replicated` inputs are equal on all ranks of a collective's group; `rules` define foreign ops. Returns the Graph; without rules it belongs to the session of load().
    """
    context = _session_of(session or (None if rules else shared_session()), rules)
    if rules:
        _rules(context, rules)
    options = {
        "symbols": symbol_texts(symbols),
        "types": [f"{name}={type}" for name, type in types.items()],
        "number": number,
        "inputs": list(inputs),
        "weights": list(weights),
        "buffers": list(buffers),
        "replicated": list(replicated),
    }
    return _piecewise.import_graph(context, os.fspath(path), options, True, log)


def export(graph: GraphLike, path: Path, *, symbols: Symbols = None, session: Optional[_Session] = None, log: Log = None) -> None:
    """Exports a graph as .json, .pwg, .pwb, or .onnx. For the first two, weights from its file are stored next to it as .weights.safetensors."""
    _piecewise.export(_graph(_session_of(session, graph), graph, symbols, log), os.fspath(path))


def stats(graph: GraphLike, *, symbols: Symbols = None, session: Optional[_Session] = None, log: Log = None) -> Dict[str, Any]:
    """Counts a graph's ops.

    Returns `ops` (rows of op, nodes and meaning: body, native or unknown), `nodes`, `inputs`, `outputs`, `written` (names of inputs) and `hash` (structural).
    """
    return _piecewise.stats(_graph(_session_of(session, graph), graph, symbols, log))


def generate(
    family: str,
    *,
    layers: Optional[int] = None,
    hidden: Optional[int] = None,
    heads: Optional[int] = None,
    kv_heads: Optional[int] = None,
    head: Optional[int] = None,
    ffn: Optional[int] = None,
    vocab: Optional[int] = None,
    eps: Optional[float] = None,
    quant: str = "none",
    lm_head: str = "none",
    group: Optional[int] = None,
    tp: Optional[int] = None,
    rank: Optional[int] = None,
    experts: Optional[int] = None,
    topk: Optional[int] = None,
    expert_ffn: Optional[int] = None,
    q_rank: Optional[int] = None,
    kv_rank: Optional[int] = None,
    opaque: bool = False,
    shuffle: Optional[int] = None,
    session: Optional[_Session] = None,
) -> Graph:
    """Generates a graph of a model family; `pwr generate --help` lists them. Other sizes are the defaults of the family.

    `quant`: none, fp8, fp8-token, fp8-group, or nvfp4. With `opaque`, a mixture of experts and latent attention are single ops that no engine runs.
    `lm_head`: none, logits, greedy, or the values of a draw, "temperature=0.8,top_k=50". `shuffle` is a seed for another node order. Returns the Graph, in the session of load().
    """
    options = {name: value for name, value in locals().items() if name not in ("family", "session") and value is not None}
    return _piecewise.generate(session or shared_session(), family, options)


def ops(
    names: Union[str, Sequence[str]] = (), *, rules: RulesLike = (), backend: str = "", splitting: bool = False, session: Optional[_Session] = None
) -> Rows:
    """Lists ops: those named, by their own or foreign names, or all, including those of `rules`.

    Returns a row for each op: `op`, `signature`, `meaning` (body, native, none), `traits`, `splits` ("yes" or ""), `backends` and `foreign`.
    """
    loaded = _rules(_session_of(session, rules), rules)
    return _piecewise.ops(loaded, [names] if isinstance(names, str) else list(names), backend, splitting)


def opt(
    graph: GraphLike,
    rules: RulesLike,
    pipeline: str,
    params: Params = None,
    *,
    output: Optional[Path] = None,
    trace: Optional[Path] = None,
    verify_each: bool = False,
    naive: bool = False,
    limit: Optional[int] = None,
    prove: bool = False,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Rewrites a graph with a pipeline and returns statistics. `output` is a file for the graph, `trace` a folder for the graph after each pass and the journal.

    Returns `graphs` (for each graph of the pipeline, `variant`, "1-256" or "", and `graph`), and rows: `passes`, `rules` and `choices`, as `pwr opt --stats` prints them;
    with `prove` also `proofs` and `not_proved`, as `pwr opt --prove` does.
    """
    options = {
        "trace": os.fspath(trace or ""),
        "verify_each": verify_each,
        "naive": naive,
        "prove": prove,
        **({} if limit is None else {"limit": limit}),
    }
    return _with_rules(_piecewise.optimize, graph, rules, params, symbols, session, log, pipeline, os.fspath(output or ""), options)


def fuzz_order(
    graph: GraphLike,
    rules: RulesLike,
    pipeline: str,
    params: Params = None,
    *,
    orders: int = 20,
    seed: int = 1,
    reduce: bool = True,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Runs a pipeline in many orders of its rules and matches; reduce=False skips the search for a smaller graph that shows a difference.

    Returns `orders` (rows of order, seed, nodes, hash and counts that differ), `different` (how many orders have a different result), and `difference`: None, or `order`,
    `seed`, `nodes`, `counts`, `difference` and `tests` (.pwr text that shows it).
    """
    return _with_rules(_piecewise.fuzz_order, graph, rules, params, symbols, session, log, pipeline, orders, seed, reduce)


def _failure(command: str, timeout: float, code: str, tokens: Sequence[int], seed: int, runs: int) -> Dict[str, Any]:
    return {"command": command, "timeout": timeout, "code": code, "tokens": list(tokens), "seed": seed, "runs": runs}


def bisect(
    graph: GraphLike,
    rules: RulesLike,
    pipeline: str,
    params: Params = None,
    *,
    command: str = "",
    timeout: float = 60,
    code: str = "",
    tokens: Sequence[int] = (),
    seed: int = 1,
    runs: int = 40,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Finds the change in a pipeline's run that introduces a failure: of numbers, of `command` (words, no shell; {before}, {after} are graphs), or with `code`.

    Returns `culprit` (at most one row: change, of, pass, rule, before and after), `reason`, `changes` and `runs`.
    """
    options = _failure(command, timeout, code, tokens, seed, runs)
    return _with_rules(_piecewise.bisect, graph, rules, params, symbols, session, log, pipeline, options)


def reduce(
    graph: GraphLike,
    rules: Union[Path, Sequence[Path]],
    pipeline: str,
    params: Params = None,
    *,
    command: str = "",
    timeout: float = 60,
    code: str = "",
    order: bool = False,
    tokens: Sequence[int] = (),
    seed: int = 1,
    runs: int = 2000,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
) -> Dict[str, Any]:
    """Reduces a failing graph and its rules. The failure is in the numbers, of `command`, of the diagnostic `code`, or from the `order` of rewrites.

    Returns `reduction` (at most one row: failure, rules, nodes_before, nodes and runs), `reason`, and `test`: .pwr text that fails until the fault is fixed.
    """
    context = _session_of(session, graph)
    files = _texts(rules)
    options = {**_failure(command, timeout, code, tokens, seed, runs), "order": order}
    return _piecewise.reduce(_graph(context, graph, symbols, log), _rules(context, rules), files, _param_texts(params), pipeline, options, log)


def extract(
    files: Union[Path, Sequence[Path]],
    *,
    solver: str = "own",
    steps: int = 20_000_000,
    seconds: float = 10,
) -> Dict[str, Any]:
    """Extracts the cheapest graph from e-graphs in the JSON of extraction-gym; shared nodes count once.

    `solver` is "own", with a limit of `steps`, or "cbc", with `seconds` for each part; without CBC it raises PW1452. Returns `extractions`: a row for each file
    with cost, bound, gap and exact.
    """
    return _piecewise.extract(_texts(files), {"solver": solver, "steps": steps, "seconds": seconds})


def split(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    output: Optional[Path] = None,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Rows:
    """Splits a graph, after an optional pipeline, at attention-like ops. `output` is a folder for the stitching graph and each piece.

    options: split_at (ops), fold, split (False: the whole graph is one piece). Returns a row for each piece, as `pwr split` prints them.
    """
    return _with_rules(_piecewise.split, graph, rules, params, symbols, session, log, pipeline, os.fspath(output or ""), options)


def plan(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Plans a graph: ranges, capture sizes, padding, dispatch, and memory.

    options: split_at, fold, split, max_tokens, ranges, sizes, size_cap, compile_sizes, max_requests, speculative_tokens, sequence_parallel, loras and mode are those of
    `pwr plan`, with lists of numbers; `steps` (texts such as "64x1,5") and `active_loras` select steps to dispatch.
    Returns `counters` (rows of counter, number and vllm, its name there), and `graphs`: for each graph of the pipeline, `variant`, `plan` (the text of plan.json), `memory` (rows),
    `dispatch` (a row for each of `steps`) and `summary`.
    """
    return _with_rules(_piecewise.plan, graph, rules, params, symbols, session, log, pipeline, options)


def plan_diff(before: Path, after: Path) -> List[str]:
    """Returns the differences of two plan.json files, one line each, as `pwr plan --diff` prints them."""
    return _piecewise.compare_plans(os.fspath(before), os.fspath(after))


def sizes(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    histograms: Union[str, Sequence[str]] = ("lognormal", "bimodal", "uniform"),
    output: Optional[Path] = None,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Chooses capture sizes for histograms of token counts, each a file or lognormal, bimodal or uniform; `output` is an .svg file.

    options: those of plan(), and times (a file), graphs (their maximum number) and graph_seconds (the minimum savings of each).
    Returns `rows` (traffic, graphs, set, us a step, % above least, % padding, % eager), and `chosen`: the sizes for each histogram.
    """
    names = [histograms] if isinstance(histograms, str) else list(histograms)
    return _with_rules(_piecewise.sizes, graph, rules, params, symbols, session, log, pipeline, names, os.fspath(output or ""), options)


def compile(
    graph: GraphLike,
    output: Path,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,  # noqa: A001
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Emits the kernels of each piece as CUDA C++ and, if NVRTC is available, cubins, into the folder `output`.

    options: those of plan(), and archs (a list), fuse, strict, sources_only, schedules, tokens and dump. Returns the contents of report.json.
    """
    return _with_rules(_piecewise.compile, graph, rules, params, symbols, session, log, pipeline, os.fspath(output), options)


def tune(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Rows:
    """Finds each kernel's schedule; needs NVRTC, and with measure=True a device (otherwise raises PW1450 or PW1260).

    options: those of plan(), and tokens (a list), archs (a list), strict, measure and output (the table of schedules, a file).
    Returns a row for each kernel, architecture and token count, as `pwr tune` prints them.
    """
    return _with_rules(_piecewise.tune, graph, rules, params, symbols, session, log, pipeline, options)


def _request(
    call: Callable[..., Any],
    graph: GraphLike,
    rules: RulesLike,
    pipeline: str,
    params: Params,
    symbols: Symbols,
    session: Optional[_Session],
    options: Mapping[str, Any],
    log: Log,
) -> Dict[str, Any]:
    named = graph if isinstance(graph, Graph) else os.fspath(graph)
    return call(
        _session_of(session, graph, rules),
        named,
        symbol_texts(symbols),
        rules if isinstance(rules, Rules) else _texts(rules),
        pipeline,
        _param_texts(params),
        dict(options),
        log,
    )


def run_model(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Loads, rewrites, splits, plans, builds, and runs a model as `pwr run` does; check=True compares the outputs with the unrewritten graph.

    options: backend, driver, cached_tokens, programmatic_edges, share_executables, stream_weights, strict, fuse, schedules, seed, tokens, steps, weights, map, plan, those of plan(), execute, check, prove, pad, native, ranks, replicated (a list), save,
    expect, rtol and atol; they equal the options of `pwr run` with these names (execute=False: as `pwr report`). `given` has contents of inputs, by name: numpy
    arrays, or objects with __dlpack__ in CPU memory. `backends` adds backends by name, each a callable: backend(graph) is called once for each piece. It returns
    a callable that takes an array for each input and returns one for each output, in order. `hook`: an object with before(call), after(call) or both, called around
    each piece of each step with a PieceCall. generate_steps, end_tokens (a list) and steps_in_launch continue the sequences of `steps`. `functions` runs ops that have neither a kernel nor a body, by the op's name, as in Graph.run().
    Returns a dict: `steps` and `failed`, how many ran and how many exceed the tolerance; `log`, the output of `pwr run`; `graphs`, for each graph of the pipeline
    a dict of `variant`, `graph`, `passes`, `rules`, `pieces`, `steps`, `numbers` (rows as dicts), `generated` (rows of sequences, with generate_steps), `plan` (its JSON), `kernels` (sources by name), `counters` and `outputs`
    (for each step arrays by name).
    """
    return _request(_piecewise.run_request, graph, rules, pipeline, params, symbols, session or shared_session(), options, log)


def compile_model(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    output: Path,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> List[str]:
    """Compiles a model into one file, as `pwr compile -o model.pwx` does; run_model(output) then runs it without a compiler.

    options: those of run_model() up to those of plan(). Returns the lines of the log.
    """
    return _request(_piecewise.artifact_request, graph, rules, pipeline, params, symbols, session, {**options, "output": str(output)}, log)


def bench(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Measures steps of a planned graph: as planned, eager, and padded to the most rows.

    options: those of run_model() up to those of plan(), histogram, repeats, and generate_steps, end_tokens and steps_in_launch. Returns rows: `steps`, `pieces` and `totals`, with
    generate_steps `generation`; and `log`.
    """
    return _request(_piecewise.bench_request, graph, rules, pipeline, params, symbols, session, options, log)


def report(
    graph: GraphLike,
    rules: RulesLike = (),
    pipeline: str = "",
    params: Params = None,
    *,
    page: bool = False,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Dict[str, Any]:
    """Rewrites, splits, and plans a graph and returns a text report; page=True: one HTML page with the graph after each pass.

    options: those of run_model() except execute, save and expect; run=True executes the steps and checks them; times; command (to print in the report).
    Returns `steps`, `failed`, `log`, and `graphs`: for each graph of the pipeline, `variant` and `text`.
    """
    call = _piecewise.report_page if page else _piecewise.report_text
    return _request(call, graph, rules, pipeline, params, symbols, session, options, log)


def draw(
    files: Union[Path, Sequence[Path]],
    output: Optional[Path] = None,
    rules: Union[Path, Sequence[Path]] = (),
    pipeline: str = "",
    params: Params = None,
    *,
    symbols: Symbols = None,
    session: Optional[_Session] = None,
    log: Log = None,
    **options: Any,
) -> Optional[str]:
    """Draws files as `pwviz` does: a graph, the effect of a pipeline on it, a trace folder, or several graphs compared.

    `output` is the picture file, whose extension selects the format. options: those of plan(), and after (a pass, by its name or number), view, collapse, most_boxes, overlay (a file),
    split and times. Returns the outline as text, or None if `output` is written.
    """
    named = {**options, "symbols": symbol_texts(symbols)}
    return _piecewise.draw_files(
        session or _Session(), _texts(files), _texts(rules), pipeline, _param_texts(params), os.fspath(output or ""), named, log
    )
