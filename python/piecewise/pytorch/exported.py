"""Programs of torch.export: imported as graphs, compiled ahead of time, and stored in one file."""
from __future__ import annotations

import json
import os
import typing as t

import sympy
import torch
import torch.utils._pytree as pytree
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

import _piecewise
from _piecewise import Error

from .. import commands
from .borrowed import lent_threads
from .calls import of_any_sign, over
from .compiler import rules_of
from .conditions import holds, kept_condition, take_asserts, with_checks
from .counter import compilation_counter
from .decompositions import decompositions
from .devices import OnDevice, aligned, device_of, engine_of, opened_on
from .frozen import FrozenWeights
from .guards import conditions, shape_env, symbol_range
from .hosted import HostCalls, kept_sites
from .options import Options
from .prepared import PreparedWeights
from .storage import Place, part_of, read_memory, row_major, shared_outputs
from .taking import hint, pipelines
from .fx_import import CPU, DTYPES, FxImport, Refused, evaluated, expression

_FORMAT = 6
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_WEIGHTS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_WRITES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def _shared_results(graph: torch.fx.Graph) -> t.Dict[torch.fx.Node, t.Any]:
    """Returns the results that share memory with one another; arguments may have any strides."""
    views = {node: view for node, view in shared_outputs(graph).items() if view[0].op != "placeholder"}
    for root in {view[0] for view in views.values()}:
        fake = root.meta["val"]
        if not row_major(Place.of(fake.permute(_order(fake)))):  # a result has no gaps
            views = {node: view for node, view in views.items() if view[0] is not root}
    return views


def _import_program(
    program: torch.export.ExportedProgram, session: _piecewise.Session, own_attention: bool = False, place: torch.device = CPU
) -> FxImport:
    specs = program.graph_signature.input_specs
    static = [i for i, spec in enumerate(specs) if spec.kind in _WEIGHTS]
    try:
        left = read_memory(program.graph_module)
        if left:
            raise Refused("; ".join(f"{node.name}: {why}" for node, why in left.items()))
        return FxImport(program.graph_module.graph, program.graph_module, session, static, own_attention, _shared_results, guarded=False, place=place)
    except Refused as why:
        raise Error(str(why)) from None


def from_export(program: torch.export.ExportedProgram) -> _piecewise.Graph:
    """Imports a program of torch.export in core ATen; its weights are inputs. Raises Error if it is unsupported."""
    return _import_program(program.run_decompositions(decompositions()), commands.shared_session()).convert()["graph"]


def _extent(number: t.Any, what: str) -> t.Union[int, str]:
    """Returns a number, or a symbol's name."""
    size = expression(number)
    if isinstance(size, int):
        return size
    if isinstance(size, sympy.Symbol):
        return size.name
    raise Error(f"{what} has the extent {size}: only a number or a single symbol is supported")


def _order(fake: torch.Tensor) -> t.List[int]:
    """Returns the dims in memory order, outermost first."""
    strides = [int(expression(n)) if isinstance(expression(n), int) else n.node.hint for n in fake.stride()]
    return sorted(range(fake.dim()), key=lambda dim: (-strides[dim], dim))


class _Reader:
    """A restricted unpickler: accepts numbers, texts, lists, and tensors only, so that reading a file runs no code."""

    def __init__(self, program: torch.export.ExportedProgram, options: Options):
        self._program = with_checks(program).run_decompositions(decompositions())
        self._asserts = take_asserts(self._program.graph_module)
        self._options = options
        self._session = _piecewise.Session()
        self._place, self._backend = _place_of(self._program, options)
        self._imported = _import_program(self._program, self._session, options.own_attention, self._place)
        self._places: t.Dict[str, t.Tuple[str, int]] = {}  # by placeholder
        self._weights: t.List[torch.Tensor] = []
        self._arguments: t.List[t.Any] = []  # by the caller's: dtype and extents; None: not a tensor
        self._numbers: t.List[t.Any] = []  # the caller's arguments that are constants, and their values

    def read(self) -> t.Dict[str, t.Any]:
        self._read_inputs()
        rules = rules_of(self._options, self._session)
        graph = self._imported.convert()["graph"]
        imported = graph
        for pipeline in pipelines(self._options, self._backend):
            graph = self._session.run(graph, rules, pipeline, dict(self._options.params)).graph
        if graph.writes:
            raise Error("the program's graph writes its inputs")
        sizes = {name: hint(self._program.graph, at) for name, at in self._imported.symbols.items()}
        if self._backend == "cuda":
            graph = _for_device(graph, imported, opened_on(self._options.driver, self._place), sizes)
        writes, outputs, asserts = self._outputs()
        text = graph.json()
        left = {node["op"] for node in json.loads(text)["nodes"]}
        constants = {name: ("weight", self._keep(value)) for name, value in self._imported.constants.items()}
        spec = self._program.call_spec
        return {
            "format": _FORMAT,
            "graph": text,
            "backend": self._backend,
            "driver": self._options.driver,
            "place": str(self._place),
            "sizes": sizes,
            "frozen": self._options.frozen,
            "check": self._options.check,
            "weights": self._weights,
            "arguments": self._arguments,
            "numbers": self._numbers,
            "inputs": [list((constants | self._places)[i.name]) for i in graph.inputs],
            "symbols": {name: list(self._symbol(*place)) for name, place in self._imported.symbols.items()},
            "ranges": self._ranges(),
            "conditions": [[kept_condition(guard), str(guard)] for guard in conditions(shape_env(self._program.graph), self._imported.symbols)],
            "results": [[_NAMES[fake.dtype], _order(fake)] for fake in self._imported.results],
            "writes": writes,
            "outputs": outputs,
            "asserts": asserts,
            "in_spec": pytree.treespec_dumps(spec.in_spec),
            "out_spec": pytree.treespec_dumps(spec.out_spec),
            "layouts": kept_sites(self._program.graph_module.graph, left, graph),
            "ops": sorted(str(op) for op in self._imported.operators if {str(op), str(op).removesuffix(".default")} & left),
        }

    def _keep(self, weight: torch.Tensor) -> int:
        self._weights.append(weight.detach().resolve_neg().contiguous())
        return len(self._weights) - 1

    def _read_inputs(self):
        values = {node.name: node.meta.get("val") for node in self._program.graph_module.graph.find_nodes(op="placeholder")}
        written = {spec.target for spec in self._program.graph_signature.output_specs if spec.kind in _WRITES}
        for spec in self._program.graph_signature.input_specs:
            name = spec.arg.name
            if spec.kind in _WEIGHTS:
                kept = self._program.constants if spec.target in self._program.constants else self._program.state_dict
                value = kept[spec.target]
                self._places[name] = ("weight", self._keep(value.clone() if spec.target in written else value))
            elif spec.kind == InputKind.USER_INPUT:
                self._places[name] = ("argument", len(self._arguments))
                value = values[name]
                tensor = isinstance(value, torch.Tensor)
                if isinstance(spec.arg, ConstantArgument):
                    self._numbers.append([len(self._arguments), spec.arg.value])
                self._arguments.append([_NAMES[value.dtype], [_extent(n, f"`{name}`") for n in value.shape]] if tensor else None)
            else:
                raise Error(f"the program's input `{name}` is a {spec.kind.name}")

    def _symbol(self, index: int, dim: int) -> t.Tuple[int, int]:
        """Returns the argument of the caller, and its dim, that determine a symbol."""
        spec = self._program.graph_signature.input_specs[index]
        kind, place = self._places[spec.arg.name]
        if kind != "argument":
            raise Error(f"a weight's extent is a symbol: `{spec.arg.name}`")
        return place, dim

    def _ranges(self) -> t.Dict[str, t.List[int]]:
        out = {}
        for symbol, known in self._program.range_constraints.items():
            least, most = known.lower, known.upper
            out[symbol.name] = [int(least) if isinstance(least, sympy.Integer) else 0, int(most) if isinstance(most, sympy.Integer) else 1 << 40, 1]
        env = shape_env(self._program.graph_module.graph)
        for name in self._imported.symbols if env is not None else ():  # as the graph was imported
            known, (least, most, _) = symbol_range(env, name), out.get(name, (0, 1 << 40, 1))
            out[name] = [max(known.least, least), min(known.most, most), known.multiple]
        return out

    def _output(self, kind: str, what: t.Any) -> t.List[t.Any]:
        """Returns the stored origin of a result."""
        if kind == "argument":
            names = {i: name for name, i in self._imported.arguments.items()}
            return [kind, list(self._places[names[what]])]
        if kind == "value" and isinstance(what, torch.Tensor):
            return ["argument", ["weight", self._keep(what)]]
        if kind == "view":
            of, place, _, dtype = what
            return [kind, [of, place.kept(), _NAMES[dtype]]]
        return [kind, _extent(what, "a result") if kind == "number" else what]

    def _outputs(self):
        """Returns the writes, the results, and the asserts of a call."""
        given = [self._output(*output) for output in self._imported.outputs]
        specs = self._program.graph_signature.output_specs
        writes, outputs, asserted = [], [], iter(given[len(specs) :])
        targets = {spec.target: spec.arg.name for spec in self._program.graph_signature.input_specs if spec.target}
        for spec, output in zip(specs, given):
            if spec.kind in _WRITES:
                writes.append([list(self._places[targets.get(spec.target, spec.target)]), output])
            elif spec.kind == OutputKind.USER_OUTPUT:
                outputs.append(output)
            else:
                raise Error(f"the program's output is a {spec.kind.name}")
        asserts = [[["condition", condition] if condition is not None else next(asserted), message] for condition, message in self._asserts]
        return writes, outputs, asserts


def _place_of(program: torch.export.ExportedProgram, options: Options) -> t.Tuple[torch.device, str]:
    """Returns the device of a program and its backend."""
    try:
        place = device_of(program.graph)
        return place, engine_of(options, place)
    except Refused as why:
        raise Error(str(why)) from None


def _for_device(graph: _piecewise.Graph, imported: _piecewise.Graph, device: _piecewise.Device, sizes: t.Dict[str, int]) -> _piecewise.Graph:
    """Returns the rewritten graph, or the imported one if only that can run on the device. Raises Error if it cannot either."""
    if unsupported := device.unsupported(imported, sizes):
        node, why = unsupported[0]
        op = next((one.op for one in imported.nodes if one.name == node), node)
        raise Error(f"`{op}` ({node}) cannot run on the device: {why}; a compiled program has no calls of PyTorch's there, so use torch.compile")
    return imported if device.unsupported(graph, sizes) else graph


class Program:
    """A compiled program, called like the exported module. Raises Error for arguments of other dtypes or extents."""

    def __init__(self, kept: t.Dict[str, t.Any]):
        lent_threads()
        self._kept = kept
        self._in, self._out = pytree.treespec_loads(kept["in_spec"]), pytree.treespec_loads(kept["out_spec"])
        self.graph = _piecewise.Session().loads(kept["graph"], "torch")
        self._hosted = HostCalls.read(kept["layouts"])
        functions = self._hosted.functions(map(_operator, kept["ops"]))
        self._place = torch.device(kept["place"])
        self._frozen: t.Union[FrozenWeights, PreparedWeights, None] = None
        if kept["backend"] == "cuda":
            of = opened_on(kept["driver"], self._place), self._place, self.graph, kept["sizes"]
            self._frozen = PreparedWeights(*of, kept["check"]) if kept["frozen"] else None
            self._compiled = OnDevice(*of) if self._frozen is None else self._frozen.compiled
        else:
            self._compiled = _piecewise.Compiled(self.graph, kept["backend"], functions, over, kept["frozen"])
            self._frozen = FrozenWeights(self._compiled, kept["check"]) if kept["frozen"] else None
        self._ready = of_any_sign(aligned if kept["backend"] == "cuda" else torch.Tensor.contiguous)
        self._run = self._compiled.run if self._frozen is None else self._frozen.run
        if len(kept["inputs"]) != len(self.graph.inputs):
            raise Error("the file is damaged: its graph has a different number of inputs than it lists")

    def __getstate__(self) -> t.Dict[str, t.Any]:
        return self._kept

    def __setstate__(self, kept: t.Dict[str, t.Any]) -> None:
        self.__init__(kept)

    @property
    def summary(self) -> t.List[str]:
        """Returns a summary of the compiled graph."""
        return self._frozen.summary if isinstance(self._frozen, PreparedWeights) else self._compiled.summary

    def save(self, path: t.Union[str, os.PathLike]) -> None:
        """Saves the program with its weights into one file for load_compiled."""
        temporary = f"{os.fspath(path)}.{os.getpid()}"
        torch.save(self._kept, temporary)
        os.replace(temporary, path)
        compilation_counter.add("num_aot_artifacts_saved")

    def __call__(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in:
            raise Error(f"the arguments have the structure {spec}, but the program takes {self._in}")
        symbols = self._symbols(flat)
        places = {"weight": self._kept["weights"], "argument": flat}
        given = [places[kind][i] for kind, i in self._kept["inputs"]]
        prepared = self._frozen.place(given) if self._frozen is not None else ()
        given = [self._ready(tensor) for tensor in given]
        results = [
            torch.empty([extents[dim] for dim in order], dtype=DTYPES[dtype], device=self._place).permute(
                [order.index(dim) for dim in range(len(order))]
            )
            for extents, (dtype, order) in zip(self._compiled.extents(symbols), self._kept["results"])
        ]
        dense = [torch.empty(result.shape, dtype=result.dtype, device=self._place) if not result.is_contiguous() else result for result in results]
        before = self._hosted.begin((), symbols)
        try:
            self._run([x.data_ptr() for x in given], [x.data_ptr() for x in dense], symbols, *prepared)
        finally:
            self._hosted.end(before)
        for result, made in zip(results, dense):
            if result is not made:
                result.copy_(made)

        def meant(kind, what):
            if kind == "result":
                return results[what]
            if kind == "argument":
                return places[what[0]][what[1]]
            if kind == "view":
                place = Place.read(what[1]).at(lambda number: evaluated(number, symbols))
                return part_of(results[what[0][1]], place, DTYPES[what[2]])
            if kind == "condition":
                return holds(what, symbols)
            return symbols[what] if kind == "number" and isinstance(what, str) else what

        for what, message in self._kept["asserts"]:
            if not meant(*what):
                raise RuntimeError(message)
        out = [meant(*output) for output in self._kept["outputs"]]
        for (kind, i), what in self._kept["writes"]:
            places[kind][i].copy_(meant(*what))
        return pytree.tree_unflatten(out, self._out)

    def _symbols(self, flat: t.Sequence[t.Any]) -> t.Dict[str, int]:
        for i, (value, wanted) in enumerate(zip(flat, self._kept["arguments"])):
            if wanted is None:
                continue
            dtype, extents = wanted
            if (
                not isinstance(value, torch.Tensor)
                or value.dtype != DTYPES[dtype]
                or value.dim() != len(extents)
                or value.device.type != self._place.type
            ):
                where = "in CPU memory" if self._place.type == "cpu" else f"on {self._place}"
                raise Error(f"argument {i} is not a {DTYPES[dtype]} tensor of rank {len(extents)} {where}")
        for i, number in self._kept["numbers"]:
            if isinstance(flat[i], torch.Tensor) or not (flat[i] == number or (number != number and flat[i] != flat[i])):
                raise Error(f"argument {i} is {flat[i]!r}, but the program was exported for {number!r}")
        symbols = {name: flat[i] if dim < 0 else flat[i].shape[dim] for name, (i, dim) in self._kept["symbols"].items()}
        for name, (least, most, multiple) in self._kept["ranges"].items():
            if name in symbols and not (least <= symbols[name] <= most and symbols[name] % multiple == 0):
                steps = f" by {multiple}" if multiple > 1 else ""
                raise Error(f"{name} is {symbols[name]}, but was exported for {least} to {most}{steps}")
        for condition, text in self._kept["conditions"]:
            if not holds(condition, symbols):
                raise Error(f"the sizes {symbols} violate {text}, which the program was exported for")
        for i, (value, wanted) in enumerate(zip(flat, self._kept["arguments"])):
            if wanted is not None and [symbols.get(e, e) for e in wanted[1]] != list(value.shape):
                raise Error(f"argument {i} has the shape {list(value.shape)}, but the program takes {wanted[1]}")
        return symbols


def _operator(name: str) -> torch._ops.OpOverload:
    found: t.Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, torch._ops.OpOverload):
        raise Error(f"the program calls `{name}`, which is not an op of this PyTorch: register it first")
    return found


def compile_export(program: torch.export.ExportedProgram, **options: t.Any) -> Program:
    """Compiles a program of torch.export: imports it, rewrites it by the options' rules (see Options), and builds its kernels, on the device of its tensors.

    The result shares the weights of the exported program, but has its own copies of buffers that it writes. Raises Error for an unsupported program, and for
    mistakes in the options.
    """
    parsed = Options.of(options)
    if parsed.capture != "none":
        raise ValueError("a compiled program captures no CUDA graphs: leave out `capture`")
    compiled = Program(_Reader(program, parsed).read())
    compilation_counter.add("num_aot_compiles")
    return compiled


def load_compiled(path: t.Union[str, os.PathLike]) -> Program:
    """Loads a program from Program.save. Runs no passes; kernels come from the compile cache. Raises Error for any other file."""
    try:
        kept = torch.load(path, weights_only=True)
    except OSError:
        raise
    except Exception as why:  # other files raise exceptions of many types
        raise Error(f"{os.fspath(path)} is not a compiled program: {why}") from None
    if not isinstance(kept, dict) or kept.get("format") != _FORMAT:
        raise Error(f"{os.fspath(path)} is not a compiled program of this version")
    program = Program(kept)
    compilation_counter.add("num_aot_artifacts_loaded")
    return program
