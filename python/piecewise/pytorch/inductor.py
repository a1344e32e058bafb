"""Rules inside Inductor: a pass that rewrites a torch.fx graph in place."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import json
import logging
import operator
import typing as t

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.pattern_matcher import stable_topological_sort

import _piecewise
from _piecewise import Error

from .. import commands
from ..counting import counted
from .counter import compilation_counter
from .fused import operator_of
from .reports import Explanations
from .fx_import import CPU, DTYPES, FxImport, Refused, seen

_log = logging.getLogger("piecewise")

# The names that torch has for the primitives of rules' right sides, and for their attributes.
_CALLS: t.Dict[str, t.Tuple[t.Any, t.Dict[str, str]]] = {
    op: (getattr(torch.ops.aten, name).default, {})
    for op, name in {
        **{one: one for one in ("abs", "cos", "exp", "log", "mm", "neg", "relu", "rsqrt", "sigmoid", "sin", "sqrt", "tanh")},
        **{"maximum": "maximum", "minimum": "minimum"},
    }.items()
}
_CALLS |= {op: (getattr(torch.ops.aten, op).Tensor, {}) for op in ("add", "sub", "mul", "div")}
_SCALARS = frozenset(("add", "sub", "mul", "div"))  # torch's take a number as an operand
_CALLS["addmm"] = (torch.ops.aten.addmm.default, {})
_CALLS["reshape"] = (torch.ops.aten.reshape.default, {"shape": "shape"})
_CALLS["transpose"] = (torch.ops.aten.permute.default, {"dims": "perm"})
_VIEWS = frozenset(("reshape", "transpose"))  # calls that cost nothing
_CALLS["cast"] = (torch.ops.prims.convert_element_type.default, {"dtype": "to"})


@dataclasses.dataclass
class Rewritten:
    """The effect of the pass on one graph."""

    rewrites: t.Dict[str, int]  # by rule or pass
    refused: str = ""  # why the graph is unchanged; empty: it was rewritten
    explained: t.Callable[..., Explanations] = dataclasses.field(default=Explanations, repr=False, compare=False)
    rules: t.Dict[str, int] = dataclasses.field(default_factory=dict)  # rewrites by rule

    @functools.cached_property
    def near_misses(self) -> t.Dict[str, t.List[t.Dict[str, t.Any]]]:
        """Returns near misses of rules that matched nothing, as piecewise.explain does."""
        return {rule["rule"]: rule["near_misses"] for rule in self.explained()}

    def __str__(self) -> str:
        if self.refused:
            return f"stays as it is: {self.refused}"
        lines = [", ".join(f"{count} × {name}" for name, count in self.rewrites.items()) or "no rewrites"]
        nearest = sorted(self.near_misses.items(), key=lambda item: -max((miss["matched"] for miss in item[1]), default=0))
        for rule, misses in nearest[:_SHOWN]:
            lines += [
                f"{rule}: no match",
                *(f"  {miss['code']} at {miss['at']}, {miss['count']} ×: {'; '.join([miss['message'], *miss['notes']])}" for miss in misses),
            ]
        more = len(nearest) - _SHOWN
        return "\n".join([*lines, f"and {counted(more, 'rule')} more without a match: see near_misses"] if more > 0 else lines)


_SHOWN = 10  # rules without a match
_OUTSIDE = "N11"  # the rule is in no pass of the pipeline


def _note_casts(graph: _piecewise.Graph, misses: t.List[t.Dict[str, t.Any]]) -> None:
    """Annotates near misses where a cast separates two pattern nodes, as in bf16 graphs that compute in f32."""
    nodes = {node["name"]: node for node in json.loads(graph.json())["nodes"]} if misses else {}
    read: t.Dict[str, t.Set[str]] = {}
    for name, node in nodes.items():
        for operand in node["operands"]:
            read.setdefault(operand, set()).add(name)
    for miss in misses:
        at = nodes.get(miss["at"])
        around = [name for value in (at["results"] if at else ()) for name in sorted(read.get(value["name"], ()))]
        casts = [name for name in [miss["at"], *around] if nodes.get(name, {}).get("op") == "cast"]
        if casts:
            miss["notes"] = [*miss["notes"], f"the cast %{casts[0]} is in between: the pattern has none there"]


@functools.lru_cache(maxsize=None)
def _operator(op: str) -> t.Tuple[torch._ops.OpOverload, t.Dict[str, str]]:
    """Returns torch's op for an op of a rule's right side, and the attributes that its other arguments represent."""
    if op in _CALLS:
        return _CALLS[op]
    found: t.Any = torch.ops
    for part in op.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise Refused(f"a rule makes `{op}`, which is not an op of torch: register an op with that name, or write the rule with aten's ops")
    if isinstance(found, torch._ops.OpOverloadPacket):
        found = found.default
    if not isinstance(found, torch._ops.OpOverload):
        raise Refused(f"a rule makes `{op}`, which is not an op of torch")
    return found, {argument.name: argument.name for argument in found._schema.arguments}


def _is_tensor(argument: torch.Argument) -> bool:
    return str(argument.type) in ("Tensor", "Optional[Tensor]")


def _arguments(op: torch._ops.OpOverload, names: t.Dict[str, str], operands: t.List[t.Any], attributes: t.Dict[str, t.Any]):
    """Returns positional and keyword arguments of a call: operands fill tensors in order, attributes the rest. Raises Refused if some remain."""
    args, kwargs, rest, given = [], {}, list(operands), dict(attributes)
    for argument in op._schema.arguments:
        name = names.get(argument.name)
        if str(argument.type) == "List[Tensor]":
            value, rest = rest, []
        elif _is_tensor(argument) and (rest or not argument.has_default_value()):
            if not rest:
                raise Refused(f"{op} needs `{argument.name}`")
            value = rest.pop(0)
        elif name in given:
            value = given.pop(name)
            value = DTYPES[value] if isinstance(value, str) and "ScalarType" in str(argument.real_type) else value
        elif argument.has_default_value():
            value = argument.default_value
        else:
            raise Refused(f"{op} needs `{argument.name}`")
        if argument.kwarg_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    if rest or given:
        raise Refused(f"{op} takes no {'more operands' if rest else ', '.join(given)}")
    return tuple(args), kwargs


@functools.lru_cache(maxsize=None)
def _counts_unread(target: t.Any) -> bool:
    """Returns True if a call matters even if nothing reads it: it writes, or it advances random state."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.is_mutable or torch.Tag.nondeterministic_seeded in target.tags
    return target is not operator.getitem


def _has_effect(node: torch.fx.Node) -> bool:
    """Returns True if a call matters even if nothing reads it. Calls that copy what their op writes do not, unless the op draws random numbers."""
    if node.target in (torch.ops.higher_order.auto_functionalized, torch.ops.higher_order.auto_functionalized_v2):
        return torch.Tag.nondeterministic_seeded in getattr(node.args[0], "tags", (torch.Tag.nondeterministic_seeded,))
    return _counts_unread(node.target)


@dataclasses.dataclass(frozen=True)
class _Ref:
    """A reference to a value by name among arguments."""

    name: str


def _references(value: t.Any) -> t.Iterator[str]:
    """Returns the names that arguments refer to."""
    if isinstance(value, _Ref):
        yield value.name
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        yield from _references(list(value.values()))


class _Back:
    """Applies the changes of a run to the original torch.fx graph."""

    def __init__(self, graph: torch.fx.Graph, aliases: t.Dict[str, str], before: _piecewise.Graph, after: _piecewise.Graph):
        self._graph, self._before, self._after = graph, before, after
        self._nodes = {node.name: node for node in graph.nodes}
        self._made: t.Dict[str, torch.fx.Node] = {}  # by reference
        self._moved = False  # a new call may come after its users
        self._views: t.Dict[str, t.List[torch.fx.Node]] = {}  # by value: its no-op views
        for name, value in aliases.items():
            self._views.setdefault(value, []).append(self._nodes[name])

    def _alike(self, name: str) -> t.List[torch.fx.Node]:
        """Returns a value's node and its no-op views."""
        own, views = self._nodes.get(name), self._views.get(name, [])
        return views if own is None else [own, *views]

    def change(self) -> None:
        """Applies the changes. Raises Refused before any change if a new call has no op in torch, or reads a value that torch does not have."""
        changes = _piecewise.changes(self._before, self._after)
        changes["moved"] = [move for move in changes["moved"] if all(map(self._has, move))]
        changes["outputs"] = [move for move in changes["outputs"] if all(map(self._has, move))]
        planned = [self._planned(*made) for made in changes["made"]]
        read = [name for _, args, kwargs, _ in planned for name in _references((args, kwargs))]
        inside = self._inside(read)
        self._check([name for name in read if name not in inside])
        planned = [*inside.values(), *planned]
        (last,) = self._graph.find_nodes(op="output")
        for call in planned:
            self._make(last, *call)
        for user, old, new in changes["moved"]:
            self._replace(self._reader(user, old), old, new)
        for old, new in changes["outputs"]:
            for user in (last, *self._writers(old)):
                self._replace(user, old, new)
        if self._moved:
            stable_topological_sort(self._graph)
        self._erase(changes["gone"])

    def _has(self, name):
        """Returns True if torch has the value: others are inside a torch call, which stays as it is, and equal those that replaced them."""
        return name.startswith("#") or bool(self._alike(name))

    def _planned(self, name, operands, attributes, results, number):
        """Returns op, arguments, and results of a new call: torch's op, or one with a generated kernel."""
        try:
            op, names = _operator(name)
        except Refused as why:
            return self._fused(number, results, why)
        given = [o and _Ref(o) for o in operands]
        if name in _SCALARS:
            given = [ref if ref is None or self._has(ref.name) else self._number(ref, operands) for ref in given]
        return op, *_arguments(op, names, given, attributes), results

    def _number(self, ref, operands):
        """Returns the value of a constant that no torch node has; the reference itself if torch would compute in another dtype."""
        value, kind = self._constants.get(ref.name, (ref, ""))
        kinds = {self._dtypes.get(other) for other in operands if other != ref.name}
        return value if kinds == {kind} else ref

    @functools.cached_property
    def _constants(self):
        """Returns number and dtype of the constants of rank 0, by value."""
        nodes = [node for of in (self._before, self._after) for node in of.nodes if node.op == "constant" and node.results[0].type.endswith("[]")]
        return {node.results[0].name: (node.attributes["value"], self._dtypes[node.results[0].name]) for node in nodes}

    @functools.cached_property
    def _dtypes(self):
        values = [value for of in (self._before, self._after) for value in (*of.inputs, *(result for node in of.nodes for result in node.results))]
        return {value.name: value.type.partition("[")[0] for value in values}

    def _fused(self, number, results, refusal):
        graph, reads = _piecewise.new_call(self._before, self._after, number)
        places = [node.meta["val"].device for read in reads if not read.startswith("#") for node in self._alike(read) if "val" in node.meta]
        try:
            op = operator_of(graph, places[0] if places else CPU)
        except (Error, Refused):
            raise refusal from None
        return op, tuple(map(_Ref, reads)), {}, results

    def _inside(self, names):
        """Returns the calls, by value, for views that are only a part of a torch call, such as a scale that a kernel reads as [1]."""
        out = {}
        for name in names:
            node = None if name in out or self._has(name) else self._views_inside.get(name)
            if node is not None and (self._has(node.operands[0]) or node.operands[0] in self._views_inside):
                out |= self._inside(node.operands)
                out[name] = self._planned(node.op, node.operands, node.attributes, [(name, "")], None)
        return out

    @functools.cached_property
    def _views_inside(self):
        return {node.results[0].name: node for node in self._after.nodes if node.op in _VIEWS}

    def _check(self, operands):
        for name in operands:
            if not self._has(name):
                raise Refused(f"`{name}` is only a part of a torch call, so a new call cannot read it")

    def _make(self, last, op, args, kwargs, results):
        args, kwargs = self._meant(args), self._meant(kwargs)
        place = self._place(last, args, kwargs, results)
        with self._graph.inserting_before(place):
            node = self._graph.call_function(op, args, kwargs)
            parts = [node]
            if len(op._schema.returns) != 1:
                parts = [self._graph.call_function(operator.getitem, (node, i)) for i in range(len(results))]
        replaced = [self._nodes.get(name) for _, name in results]
        for part, old, (reference, _) in zip(parts, replaced, results):
            self._made[reference] = part
            if old is not None and "stack_trace" in old.meta:
                part.meta["stack_trace"] = old.meta["stack_trace"]
        self._infer(node, parts, replaced)

    def _place(self, last, args, kwargs, results):
        """Returns the insertion point: before the first value whose name a result takes over if all operands precede it; otherwise the end."""
        read = []
        torch.fx.map_arg((args, kwargs), read.append)
        firsts = [self._nodes[name] for _, name in results if name in self._nodes]
        first = min(firsts, default=last)
        if len(firsts) == len(results) and all(node < first for node in read):
            return first
        self._moved = True
        return last

    @staticmethod
    def _infer(node, parts, replaced):
        """Infers metadata of a result: from the values that it replaces, otherwise from the op's fake-tensor function."""
        vals = [old.meta.get("val") if old is not None else None for old in replaced]
        if all(isinstance(val, torch.Tensor) and val.is_contiguous() for val in vals):
            node.meta["val"] = vals[0] if parts[0] is node else tuple(vals)
        else:
            mode = torch._guards.detect_fake_mode([n.meta.get("val") for n in node.all_input_nodes])
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            with mode if mode is not None else contextlib.nullcontext():
                node.meta["val"] = node.target(*args, **kwargs)
        if parts[0] is not node:
            for part, val in zip(parts, node.meta["val"]):
                part.meta["val"] = val

    def _meant(self, value):
        if isinstance(value, _Ref):
            return self._made.get(value.name) or self._alike(value.name)[0]
        if isinstance(value, (list, tuple)):
            return type(value)(self._meant(item) for item in value)
        if isinstance(value, dict):
            return {key: self._meant(item) for key, item in value.items()}
        return value

    def _writers(self, name):
        """Returns calls that copy a value into an argument: the outputs of such a graph."""
        return [user for node in self._alike(name) for user in node.users if user.target is torch.ops.aten.copy_.default]

    def _reader(self, result, read):
        """Returns the call that has a result and reads a value: a result of several is an item of its call."""
        node = self._nodes[result]
        while node.target is operator.getitem and not set(self._alike(read)) & set(node.all_input_nodes):
            node = node.args[0]
        return node

    def _replace(self, user, old, new):
        by = self._meant(_Ref(new))
        for node in self._alike(old):
            user.replace_input_with(node, by)

    def _erase(self, names):
        """Erases a node and the operands that only it read, which the imported graph may not contain."""
        rest = [node for name in names for node in self._alike(name)]
        erased = set()
        while rest:
            node = rest.pop()
            if node.users or node.op != "call_function" or node in erased or _has_effect(node):
                continue
            rest += node.all_input_nodes
            self._graph.erase_node(node)
            erased.add(node)


@contextlib.contextmanager
def _no_collections():
    """Disables garbage collection: thousands of small objects would trigger several scans of PyTorch's heap."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class InductorPass(CustomGraphPass):
    """A pass for Inductor's option post_grad_custom_pre_pass; see inductor_pass. `done` has an entry for each graph."""

    def __init__(self, rules: t.Sequence[str], pipeline: str, params: t.Mapping[str, t.Any]):
        self.done: t.List[Rewritten] = []
        self._made_of = (list(rules), pipeline, dict(params))
        self._session = _piecewise.Session()
        self._rules = self._session.rules(list(rules))
        if pipeline not in self._rules.pipelines:
            raise Error(f"there is no pipeline `{pipeline}`; there are {', '.join(self._rules.pipelines)}")
        self._own = self._rules.names
        self._pipeline, self._params = pipeline, {name: str(value) for name, value in params.items()}
        self._uuid = self._session.digest([("pass", "inductor"), ("pipeline", pipeline), ("params", repr(sorted(self._params.items())))])

    def __call__(self, graph: torch.fx.Graph) -> None:
        try:
            with _no_collections():
                self.done.append(self._rewrite(graph))
        except (Refused, Error) as why:
            self.done.append(Rewritten({}, str(why)))
            _log.warning("the graph stays as it is: %s", why)
        else:
            compilation_counter.add("num_inductor_compiles")

    def _rewrite(self, graph: torch.fx.Graph) -> Rewritten:
        """Changes the graph; explanations are made only when they are read."""
        import_whole = functools.partial(
            FxImport, graph, graph.owning_module, self._session, own_attention=True, keep_idle=True
        )  # nothing here runs it
        result = seen(graph, self._session, self._rules, self._pipeline)
        whole = result is None
        result = result or import_whole().convert()
        run = self._session.run(result["graph"], self._rules, self._pipeline, self._params)
        fired = {rule: count for rule in self._own if (count := run.count(rule))}
        missed = [rule for rule in self._own if rule not in fired]
        before = (
            result["graph"] if whole or not missed else import_whole().convert()["graph"]
        )  # the current graph: near misses may involve nodes that the seen part omits
        _Back(graph, result["aliases"], run.before(), run.graph).change()
        rewrites = {row["pass"]: row["rewrites"] for row in run.passes if row["rewrites"]}
        return Rewritten(rewrites, explained=functools.partial(self._explain, before, missed), rules=fired)

    def _explain(self, graph: _piecewise.Graph, missed: t.Sequence[str], rules: t.Optional[t.Sequence[str]] = None) -> Explanations:
        """Explains rules of the pipeline: by default those that did not match."""
        all_said = [commands.explain(graph, self._rules, rule, self._pipeline, self._params) for rule in (missed if rules is None else rules)]
        out = Explanations(rule for rule in all_said if not any(miss["code"] == _OUTSIDE for miss in rule["near_misses"]))
        _note_casts(graph, [miss for rule in out for miss in rule["near_misses"]])
        return out

    def __deepcopy__(self, _: t.Any) -> "InductorPass":  # Inductor copies its options
        return self

    def __reduce__(self):
        return inductor_pass, self._made_of

    def uuid(self) -> str:
        """Returns an identifier of the rules' texts, the pipeline, the params, and this build, for Inductor's cache."""
        return self._uuid


def inductor_pass(rules: t.Union[str, t.Sequence[str]], pipeline: str, params: t.Optional[t.Mapping[str, t.Any]] = None) -> InductorPass:
    """Returns a pass for Inductor that applies Piecewise's rules.

        torch.compile(model, options={"post_grad_custom_pre_pass": piecewise.pytorch.inductor_pass("my.pwr", "fuse")})

    Rules may make ops of torch: registered ops by name (`mine.norm`), and primitives that aten has. Any other op with a body, also of a rule's `=> fuse`,
    becomes `torch.ops.piecewise.NAME`, with generated kernels. A graph for which a rule makes an op without a body is left unchanged, and `done` of the
    pass has the reason. Raises Error for mistakes in the rules.
    """
    return InductorPass([rules] if isinstance(rules, str) else list(rules), pipeline, params or {})
