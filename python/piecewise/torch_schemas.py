"""Formats PyTorch's op schemas as lines with reads, writes, and aliases. import/fx/torch_schemas.txt documents the format in its header."""
import re

import torch
import torch.fx.node

OUTSIDE = ("c10d", "profiler", "streams", "symm_mem")  # their ops have effects beyond tensors

# Batch norm in training updates its running statistics, which its schema omits.
BATCH_NORMS = (
    "aten::batch_norm",
    "aten::_batch_norm_impl_index",
    "aten::cudnn_batch_norm",
    "aten::instance_norm",
    "aten::miopen_batch_norm",
    "aten::native_batch_norm",
)
RUNNING = ("running_mean", "running_var")
# Their results may be their arguments, or views of them, which their schemas omit.
MAY_ALIAS = (
    "aten::broadcast_tensors",
    "aten::einsum",
    "aten::meshgrid",
    "aten::type_as",
    "aten::unsafe_split",
    "aten::unsafe_split_with_sizes",
    "aten::_unsafe_view",
    "_c10d_functional::wait_tensor",
)


def split_top(text, at=","):
    """Splits at separators outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == at and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def split_arguments(text):
    """Splits arguments as split_top does, but respects quoted default values."""
    quoted = []

    def put_away(match):
        quoted.append(match.group(0))
        return "\0"

    return split_top(re.sub(r'"[^"]*"', put_away, text))


KIND = re.compile(r"^Tensor(?:\((?P<set>[^()]*)\))?(?P<rest>[?\[\]0-9]*)(?:\((?P<list_set>[^()]*)\))?$")


def kind_of(type_text, shared=""):
    """Returns `T` or `L` with its alias set, or nothing; `shared` is the set for types without one."""
    match = KIND.match(type_text)
    if not match:
        return ""
    letters = (match["set"] or match["list_set"] or shared).replace(" ", "")
    before = letters.partition("->")[0]
    name = before.rstrip("!")
    return ("L" if "[" in match["rest"] else "T") + name + ("!" if before.endswith("!") else "")


def argument(text, name_of_op, shared):
    text, equals, _ = text.partition("=")
    type_text, _, name = text.strip().rpartition(" ")
    if name in RUNNING and name_of_op in BATCH_NORMS:
        shared = "!"
    kind = kind_of(type_text.strip(), shared)
    return name + (":" + kind if kind else "") + ("=" if equals else "")


def line_of(name, op):
    match = re.match(r"^\S+?\((.*)\) -> (.*)$", str(op._schema), re.S)
    arguments, results = match.groups()
    if results.startswith("(") and results.endswith(")"):
        results = results[1:-1]
    base = name.split(".")[0]
    annotated = "(a" in arguments
    in_place = base.endswith("_") and not base.endswith("__") and "!" not in arguments
    may_alias = not annotated and (torch.Tag.maybe_aliasing_or_mutating in op.tags or base in MAY_ALIAS)
    shared = "!" if in_place else "a" if may_alias else ""
    out = [name.replace("::", ".", 1)]
    out += ["*" if text == "*" else argument(text, base, shared) for text in split_arguments(arguments)]
    out.append(">")
    for text in split_top(results):
        out.append(kind_of(result_type(text), "a" if may_alias else "") or "-")
    if torch.Tag.nondeterministic_seeded in op.tags:
        out.append("!random")
    if torch.Tag.inplace_view in op.tags:
        out.append("!shape")
    if op.namespace in OUTSIDE or op in torch.fx.node._side_effectful_functions or ">" == out[-1] and not any(w.endswith("!") for w in out):
        if base not in MAY_ALIAS:
            out.append("!effect")
    return " ".join(out)


def result_type(text):
    """Returns a result's type without its optional name."""
    match = re.match(r"^(.*[\])a-zA-Z?]) [a-zA-Z_]\w*$", text)
    return match[1] if match else text
