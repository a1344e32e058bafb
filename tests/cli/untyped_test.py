#!/usr/bin/python3
"""Dumps without types: what may be rewritten in them, where their types come from, and that they give the numbers of the dump
that states its types, or none."""
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from program import ProgramTest  # noqa: E402

ANNOTATION = re.compile(r"(\w+): \"[^\"]*\"")
BACKENDS = ("eager", "cpu")
A = "torch.ops.aten"
BF16, F32 = "torch.bfloat16", "torch.float32"


def norm(x, weight, out, shape, name="n"):
    """An RMSNorm in f32 of a bf16 value."""
    one = shape.rsplit(", ", 1)[0] + ", 1"
    return f"""
{name}_f: "f32[{shape}]" = {A}._to_copy.default({x}, dtype = {F32})
{name}_s: "f32[{shape}]" = {A}.pow.Tensor_Scalar({name}_f, 2)
{name}_m: "f32[{one}]" = {A}.mean.dim({name}_s, [-1], True)
{name}_e: "f32[{one}]" = {A}.add.Tensor({name}_m, 1e-06)
{name}_r: "f32[{one}]" = {A}.rsqrt.default({name}_e)
{name}_h: "f32[{shape}]" = {A}.mul.Tensor({name}_f, {name}_r)
{name}_b: "bf16[{shape}]" = {A}._to_copy.default({name}_h, dtype = {BF16})
{out}: "bf16[{shape}]" = {A}.mul.Tensor({name}_b, {weight})"""


# By name: inputs with their types, statements, what is returned.
MODELS = {
    "casts": (
        {"x": "bf16[4, 8]"},
        f"""
a: "f32[4, 8]" = {A}._to_copy.default(x, dtype = {F32})
b: "f32[4, 8]" = {A}.exp.default(a)
y: "bf16[4, 8]" = {A}._to_copy.default(b, dtype = {BF16})""",
        "y",
    ),
    "norm": ({"x": "bf16[4, 16]", "w": "bf16[16]"}, norm("x", "w", "y", "4, 16"), "y"),
    "two_norms": (
        {"x": "bf16[4, 16]", "r": "bf16[4, 16]", "w": "bf16[16]"},
        f"""
s: "bf16[4, 16]" = {A}.add.Tensor(x, r)"""
        + norm("s", "w", "y", "4, 16")
        + norm("y", "w", "z", "4, 16", "k"),
        "y, z, s",
    ),
    "mlp": (
        {"x": "bf16[4, 16]", "up": "bf16[16, 64]", "down": "bf16[32, 16]"},
        f"""
h: "bf16[4, 64]" = {A}.mm.default(x, up)
p = {A}.split.Tensor(h, 32, -1)
g: "bf16[4, 32]" = p[0]
v: "bf16[4, 32]" = p[1]
a: "bf16[4, 32]" = {A}.silu.default(g)
m: "bf16[4, 32]" = {A}.mul.Tensor(a, v)
y: "bf16[4, 16]" = {A}.mm.default(m, down)""",
        "y",
    ),
    "mlp_in_f32": (
        {"x": "bf16[4, 16]", "g": "f32[4, 16]"},
        f"""
f: "f32[4, 16]" = {A}._to_copy.default(x, dtype = {F32})
s: "f32[4, 16]" = {A}.sigmoid.default(f)
a: "f32[4, 16]" = {A}.mul.Tensor(f, s)
m: "f32[4, 16]" = {A}.mul.Tensor(a, g)
y: "bf16[4, 16]" = {A}._to_copy.default(m, dtype = {BF16})""",
        "y",
    ),
    "attention": (
        {"q": "bf16[2, 4, 8]", "k": "bf16[2, 4, 8]", "v": "bf16[2, 4, 8]"},
        f"""
t: "bf16[2, 8, 4]" = {A}.transpose.int(k, -2, -1)
s: "bf16[2, 4, 4]" = {A}.bmm.default(q, t)
c: "bf16[2, 4, 4]" = {A}.mul.Tensor(s, 0.35355339059327373)
f: "f32[2, 4, 4]" = {A}._to_copy.default(c, dtype = {F32})
p: "f32[2, 4, 4]" = {A}._softmax.default(f, -1, False)
b: "bf16[2, 4, 4]" = {A}._to_copy.default(p, dtype = {BF16})
y: "bf16[2, 4, 8]" = {A}.bmm.default(b, v)""",
        "y",
    ),
    "causal": (
        {"q": "f32[1, 4, 8]", "k": "f32[1, 4, 8]", "v": "f32[1, 4, 8]"},
        f"""
t: "f32[1, 8, 4]" = {A}.transpose.int(k, 1, 2)
s: "f32[1, 4, 4]" = {A}.bmm.default(q, t)
i: "i64[4]" = {A}.arange.default(4)
c: "i64[4, 1]" = {A}.unsqueeze.default(i, 1)
m: "b8[4, 4]" = {A}.le.Tensor(i, c)
n: "f32[]" = {A}.full.default([], float("-inf"), dtype = {F32})
w: "f32[1, 4, 4]" = {A}.where.self(m, s, n)
p: "f32[1, 4, 4]" = {A}._softmax.default(w, -1, False)
y: "f32[1, 4, 8]" = {A}.bmm.default(p, v)""",
        "y",
    ),
    "rope": (
        {"x": "bf16[4, 2, 8]", "cos": "f32[4, 1, 4]", "sin": "f32[4, 1, 4]"},
        f"""
f: "f32[4, 2, 8]" = {A}._to_copy.default(x, dtype = {F32})
a: "f32[4, 2, 4]" = {A}.slice.Tensor(f, 2, 0, 4)
b: "f32[4, 2, 4]" = {A}.slice.Tensor(f, 2, 4, 9223372036854775807)
ac: "f32[4, 2, 4]" = {A}.mul.Tensor(a, cos)
bs: "f32[4, 2, 4]" = {A}.mul.Tensor(b, sin)
l: "f32[4, 2, 4]" = {A}.sub.Tensor(ac, bs)
bc: "f32[4, 2, 4]" = {A}.mul.Tensor(b, cos)
as_: "f32[4, 2, 4]" = {A}.mul.Tensor(a, sin)
h: "f32[4, 2, 4]" = {A}.add.Tensor(bc, as_)
r: "f32[4, 2, 8]" = {A}.cat.default([l, h], -1)
y: "bf16[4, 2, 8]" = {A}._to_copy.default(r, dtype = {BF16})""",
        "y",
    ),
    "embedding": (
        {"table": "bf16[10, 4]", "ids": "i64[6]"},
        f"""
e: "bf16[6, 4]" = {A}.embedding.default(table, ids)
y: "bf16[6, 4]" = {A}.mul.Tensor(e, 3.0)""",
        "y",
    ),
    "softmax_by_hand": (
        {"x": "f32[4, 8]"},
        f"""
m: "f32[4, 1]" = {A}.amax.default(x, [-1], True)
d: "f32[4, 8]" = {A}.sub.Tensor(x, m)
e: "f32[4, 8]" = {A}.exp.default(d)
s: "f32[4, 1]" = {A}.sum.dim_IntList(e, [-1], True)
y: "f32[4, 8]" = {A}.div.Tensor(e, s)""",
        "y",
    ),
    "whole_numbers": (
        {"i": "i64[6]", "k": "i32[6]"},
        f"""
a: "i64[6]" = {A}.add.Tensor(i, k)
b: "f32[6]" = {A}.mul.Tensor(a, 0.5)
c: "i64[6]" = {A}.mul.Tensor(i, 1)
d: "f32[6]" = {A}.add.Tensor(i, 0.0)
e: "f32[6]" = {A}.div.Tensor(k, k)
f: "i64[]" = {A}.sum.default(k)""",
        "a, b, c, d, e, f",
    ),
    "numbers_that_change_a_type": (
        {"x": "bf16[4]", "w": "f32[4]"},
        f"""
a: "f32[4]" = {A}.mul.Tensor(x, w)
b: "bf16[4]" = {A}.mul.Tensor(x, 1.0)
c: "f32[4]" = {A}.add.Tensor(x, w)
d: "bf16[4]" = {A}.add.Tensor(x, 0)""",
        "a, b, c, d",
    ),
    "where": (
        {"x": "f32[4, 4]", "z": "bf16[4, 4]"},
        f"""
m: "b8[4, 4]" = {A}.gt.Scalar(x, 0)
y: "f32[4, 4]" = {A}.where.self(m, x, z)
n: "b8[4, 4]" = {A}.logical_not.default(m)
k: "i64[4]" = {A}.sum.dim_IntList(n, [1])""",
        "y, k",
    ),
    "slices": (
        {"x": "f32[6, 8]"},
        f"""
a: "f32[4, 8]" = {A}.slice.Tensor(x, 0, 1, 5)
b: "f32[4, 4]" = {A}.slice.Tensor(a, 1, 0, 8, 2)
c: "f32[4]" = {A}.select.int(b, 1, -1)
d: "f32[4, 1]" = {A}.unsqueeze.default(c, -1)
y: "f32[4, 4]" = {A}.add.Tensor(b, d)""",
        "y",
    ),
    "views": (
        {"x": "bf16[2, 3, 4]"},
        f"""
a: "bf16[2, 12]" = {A}.view.default(x, [2, 12])
b: "bf16[2, 3, 4]" = {A}.view.default(a, [2, 3, 4])
p: "bf16[3, 4, 2]" = {A}.permute.default(b, [1, 2, 0])
q: "bf16[2, 3, 4]" = {A}.permute.default(p, [2, 0, 1])
e: "bf16[5, 2, 3, 4]" = {A}.expand.default(q, [5, 2, 3, 4])
y: "bf16[2, 3, 4]" = {A}.sum.dim_IntList(e, [0])""",
        "y",
    ),
    "in_place_views": (
        {"x": "f32[3, 4]"},
        f"""
a: "f32[3, 4]" = {A}.clone.default(x)
t: "f32[4, 3]" = {A}.t_.default(a)
u: "f32[4, 1, 3]" = {A}.unsqueeze_.default(a, 1)
m: "f32[4, 1, 3]" = {A}.mul_.Tensor(a, 2)
y: "f32[4, 1, 3]" = {A}.relu.default(a)""",
        "y",
    ),
    "writes": (
        {"cache": "f32[8, 4]", "x": "f32[2, 4]"},
        f"""
s: "f32[2, 4]" = {A}.slice.Tensor(cache, 0, 2, 4)
c: "f32[2, 4]" = {A}.copy_.default(s, x)
y: "f32[8]" = {A}.sum.dim_IntList(cache, [1])""",
        "y",
    ),
    "scatter": (
        {"x": "f32[4, 4]", "i": "i64[2, 4]", "s": "f32[2, 4]"},
        f"""
z: "i64[2, 4]" = {A}.zeros_like.default(i)
a: "f32[4, 4]" = {A}.scatter.src(x, 0, z, s)
b: "f32[2, 4]" = {A}.gather.default(a, 0, z)
y: "f32[4, 4]" = {A}.slice_scatter.default(a, b, 0, 1, 3)""",
        "y",
    ),
    "index": (
        {"x": "bf16[6, 4]", "i": "i64[3]"},
        f"""
m: "i64[3]" = {A}.remainder.Scalar(i, 6)
g: "bf16[3, 4]" = {A}.index.Tensor(x, [m])
y: "f32[3]" = {A}.sum.dim_IntList(g, [1], dtype = {F32})""",
        "y",
    ),
    "quantized": (
        {"x": "bf16[4, 8]"},
        f"""
f: "f32[4, 8]" = {A}._to_copy.default(x, dtype = {F32})
a: "f32[4, 8]" = {A}.abs.default(f)
m: "f32[4, 1]" = {A}.amax.default(a, [-1], True)
s: "f32[4, 1]" = {A}.div.Tensor(m, 448.0)
d: "f32[4, 8]" = {A}.div.Tensor(f, s)
c: "f32[4, 8]" = {A}.clamp.default(d, -448.0, 448.0)
q: "f8e4m3[4, 8]" = {A}._to_copy.default(c, dtype = torch.float8_e4m3fn)
u: "f32[4, 8]" = {A}._to_copy.default(q, dtype = {F32})
y: "f32[4, 8]" = {A}.mul.Tensor(u, s)""",
        "y, s",
    ),
    "a_narrower_type_between": (
        {"x": "f32[4, 8]"},
        f"""
h: "bf16[4, 8]" = {A}._to_copy.default(x, dtype = {BF16})
f: "f32[4, 8]" = {A}._to_copy.default(h, dtype = {F32})
y: "f32[4, 8]" = {A}.neg.default(f)""",
        "y",
    ),
}


# Writes through a view whose shape is not known.
REFUSED = ("in_place_views", "writes")


def typed(name):
    inputs, statements, returned = MODELS[name]
    parameters = ", ".join(f'{i}: "{t}"' for i, t in inputs.items())
    body = "".join(f"    {line}\n" for line in statements.strip().splitlines())
    return f"def forward(self, {parameters}):\n{body}    return ({returned},)\n"


def untyped(name):
    return ANNOTATION.sub(r"\1", typed(name))


def listing(name):
    """Formats a call as str(graph) does; supports names, numbers, words and lists."""
    inputs, statements, returned = MODELS[name]
    names = set(inputs) | {line.split(":")[0].split(" =")[0] for line in statements.strip().splitlines()}

    def marked(text):
        return re.sub(r"(?<![\w.%])([A-Za-z_]\w*)(?![\w.(]| =)", lambda m: "%" + m[1] if m[1] in names else m[1], text)

    lines = [f"    %{i} : [num_users=1] = placeholder[target={i}]" for i in inputs]
    for line in statements.strip().splitlines():
        target, value = ANNOTATION.sub(r"\1", line).split(" = ", 1)
        if part := re.fullmatch(r"(\w+)\[(\d+)\]", value):
            lines.append(f"    %{target} : [num_users=1] = call_function[target=operator.getitem](args = (%{part[1]}, {part[2]}), kwargs = {{}})")
            continue
        callee, rest = value.split("(", 1)
        parts = re.split(r", (\w+ = .*)$", rest[:-1])
        keywords = ", ".join(re.sub(r"^(\w+) = ", r"\1: ", parts[1:][0]).split(", ")) if len(parts) > 1 else ""
        lines.append(f"    %{target} : [num_users=1] = call_function[target={callee}](args = ({marked(parts[0])},), kwargs = {{{keywords}}})")
    lines.append(f"    return ({', '.join('%' + r for r in returned.split(', '))},)")
    return "graph():\n" + "\n".join(lines) + "\n"


def options(name):
    return [word for i, t in MODELS[name][0].items() for word in ("--type", f"{i}={t.replace(' ', '')}", "--input", i)]


class Untyped(ProgramTest):
    def saved(self, graph, *args):
        out = self.path("out.safetensors")
        self.pwr("run", graph, *args, "--save", out)
        return Path(out).read_bytes()

    def kinds(self, name):
        return [word for i in MODELS[name][0] for word in ("--input", i)]

    def test_an_untyped_dump_with_the_types_of_its_inputs_gives_the_same_bytes(self):
        for name in MODELS:
            forms = {"text": untyped(name)}
            if "float(" not in typed(name):
                forms["listing"] = listing(name)
            for backend in BACKENDS:
                stated = self.file(f"{name}.typed.fx.txt", typed(name))
                for rules in ((), ("-r", "llm", "-p", "o2", "--check")):
                    with self.subTest(model=name, backend=backend, rules=rules):
                        want = self.saved(stated, *self.kinds(name), "--backend", backend, *rules)
                        for form, text in forms.items():
                            bare = self.file(f"{name}.{form}.fx.txt", text)
                            self.assertEqual(want, self.saved(bare, *options(name), "--backend", backend, *rules), form)

    def test_what_was_rewritten_without_types_gives_the_same_numbers_with_them(self):
        for name, (inputs, _, _) in MODELS.items():
            # Without types, ops count as ops of floats, and what cannot be expressed is refused.
            if name == "whole_numbers" or name in REFUSED:
                continue
            with self.subTest(model=name):
                stated = self.file(f"{name}.typed.fx.txt", typed(name))
                want = self.saved(stated, *self.kinds(name))
                bare, graph = self.file(f"{name}.fx.txt", untyped(name)), self.path(f"{name}.pwg")
                self.pwr("opt", bare, *self.kinds(name), "-r", "llm", "-p", "o2", "-o", graph)
                text = Path(graph).read_text()
                for i, t in inputs.items():
                    text, count = re.subn(rf"(in (?:weight |buffer )?`?{i}`?): \?", rf"\1: {t}", text)
                    self.assertEqual(count, 1, text)
                checked = self.file(f"{name}.checked.pwg", text)
                known = not re.search(r"^  op ", text, re.M)
                out = self.path("out.safetensors")
                if known:
                    self.assertEqual(want, self.saved(checked), text)
                else:  # what it needed a type to know stayed a call
                    self.assertIn("error[PW", self.pwr("run", checked, "--save", out, code=3).stderr)

    def test_no_rule_that_compares_types_meets_a_value_without_one(self):
        graph, out = self.file("casts.fx.txt", untyped("casts")), self.path("h.json")
        messages = self.pwr("opt", graph, "-r", "llm", "-p", "clean", "--prove", "-o", out)
        self.assertNotIn("noop.cast_id", messages.stdout)
        self.assertRegex(self.pwr("stats", out).stdout, r"cast +2")
        why = self.pwr("explain", "noop.cast_id", graph, "-r", "llm", "-p", "clean", code=1).stdout
        self.assertIn("N05", why)
        self.assertIn("its type is not known, but the rule requires T", why)

    def test_a_type_that_a_cast_gives_is_known_without_its_extents(self):
        text = f"def forward(self, x):\n    a = {A}._to_copy.default(x, dtype = {F32})\n    b = {A}.exp.default(a)\n    c = {A}._to_copy.default(b, dtype = {F32})\n    return (c,)\n"
        out = self.path("h.json")
        self.pwr("opt", self.file("same.fx.txt", text), "-r", "llm", "-p", "clean", "-o", out)
        self.assertRegex(self.pwr("stats", out).stdout, r"cast +1")

    RULES = """rule zero { y = add(x, 0.0) => y = x }
rule twice { y = relu(relu(x)) => y = relu(x) }
rule unless_cast { y = neg(x: T) unless { c = cast(x){dtype = T} } => y = mul(x, -1.0) }
rule narrow { y = exp(x: bf16) => y = exp(x) }
rule square { y = mul(x: T, w: T) => y = mul(w, x) }
rule sized { y = abs(x) where size(x, 0) == 4 => y = relu(x) }
pass all = greedy { zero, twice, narrow, square, sized }
"""

    def test_which_rules_match_unknown_types(self):
        rules = self.file("rules.pwr", self.RULES)
        text = f"def forward(self, x, w):\n    a = {A}.add.Tensor(x, 0.0)\n    b = {A}.relu.default(w)\n    c = {A}.relu.default(b)\n    d = {A}.exp.default(a)\n    e = {A}.mul.Tensor(x, w)\n    f = {A}.abs.default(x)\n    return (c, d, e, f)\n"
        graph = self.file("rules.fx.txt", text)
        done = self.pwr("opt", graph, "-r", rules, "-p", "all", "-o", self.path("r.pwg"))
        after = Path(self.path("r.pwg")).read_text()
        self.assertEqual(after.count("relu("), 1, after)  # a type that is the operand's, whatever that is
        self.assertIn("add(x,", after)  # f32 of whole numbers
        self.assertIn("exp(a)", after)
        self.assertIn("mul(x, w)", after)
        self.assertIn("abs(x)", after, done.stdout)

    def test_the_command_says_what_stayed_untyped(self):
        graph = self.file("mlp.fx.txt", untyped("mlp"))
        messages = self.pwr("stats", graph).stderr
        self.assertRegex(messages, r"note: \d+ values have no known type: x, up, down, …; pass --type NAME=TYPE for inputs")
        self.assertNotIn("no known type", self.pwr("stats", graph, *options("mlp")).stderr)
        one = self.pwr("import", graph, "--type", "x=bf16[n,16]").stderr
        self.assertRegex(one, r"values have no known type: up, down, ")

    def test_symbols_in_types(self):
        graph, out = self.file("norm.fx.txt", untyped("norm")), self.path("n.pwg")
        self.pwr("import", graph, "--type", "x=bf16[n, 16]", "--type", "w=bf16[16]", "-o", out)
        text = Path(out).read_text()
        self.assertIn("symbol n in 1..32768 tokens", text)
        self.assertIn("in x: bf16[n, 16]", text)
        self.pwr("run", out, "-r", "llm", "-p", "o2", "--tokens", "1,5", "--check")

    def test_attributes_of_the_module(self):
        text = f"def forward(self, x):\n    w = self.layer.weight\n    y = {A}.mul.Tensor(x, w);  w = None\n    return (y,)\n"
        graph = self.file("module.fx.txt", text)
        self.pwr("run", graph, "--type", "x=f32[2,4]", "--type", "layer_weight=f32[4]", "--check")

    def test_mistakes_in_types(self):
        graph = self.file("norm.fx.txt", untyped("norm"))
        for given, code, message in (
            ("x", 2, "there is no `=` between a name and a type"),
            ("x=bf17[4]", 3, "unknown dtype `bf17`"),
            ("xx=bf16[4]", 3, "there is no input `xx`"),
            ("x=?", 3, "`?` is not a type"),
        ):
            self.assertIn(message, self.pwr("import", graph, "--type", given, code=code).stderr)
        stated = self.file("stated.fx.txt", typed("norm"))
        self.assertIn("the dump already states `x` as bf16[4, 16]", self.pwr("import", stated, "--type", "x=f32[4,16]", code=3).stderr)
        self.pwr("import", stated, "--type", "x=bf16[4,16]")
        out = self.path("g.json")
        self.pwr("import", stated, "-o", out)
        self.assertIn("--type is for FX dumps", self.pwr("stats", out, "--type", "x=bf16[4,16]", code=2).stderr)

    REPRO = """import torch
from torch import tensor, device
import torch._inductor.inductor_prims

isolate_fails_code_str = None

class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, arg0_1, arg1_1, arg2_1):
        convert = torch.ops.prims.convert_element_type.default(arg0_1, torch.float32);  arg0_1 = None
        exp = torch.ops.aten.exp.default(convert);  convert = None
        back = torch.ops.prims.convert_element_type.default(exp, torch.bfloat16);  exp = None
        add = torch.ops.aten.add.Tensor(back, arg1_1);  back = arg1_1 = None
        return (add, arg2_1)

def load_args(reader):
    buf0 = reader.storage(None, 64)
    reader.tensor(buf0, (4, 8), dtype=torch.bfloat16, is_leaf=True)  # arg0_1
    buf1 = reader.storage(None, 32, device=device(type='cuda', index=0))
    reader.tensor(buf1, (8,), (1,), is_leaf=True)  # arg1_1
    buf2 = reader.storage(None, 8, dtype_hint=torch.int64)
    reader.tensor(buf2, (), dtype=torch.int64, is_leaf=True)  # arg2_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='real', check_str=None)
"""

    def test_the_arguments_that_a_script_of_inductor_loads(self):
        graph, out = self.file("repro.py", self.REPRO), self.path("r.pwg")
        messages = self.pwr("import", graph, "-o", out).stderr
        self.assertIn("note: 3 inputs have the types and sizes that `load_args` states", messages)
        self.assertNotIn("no known type", messages)
        text = Path(out).read_text()
        for line in ("arg0_1: bf16[4, 8]", "arg1_1: f32[8]", "arg2_1: i64[]"):
            self.assertIn(line, text)
        self.pwr("run", out, "-r", "llm", "-p", "o2", "--check")
        self.pwr("import", graph, "--type", "arg0_1=bf16[n,8]", "-o", out)
        self.assertIn("arg0_1: bf16[n, 8]", Path(out).read_text())

    def test_what_is_written_can_be_read_back(self):
        for name in REFUSED:
            self.assertIn("error[PW0516]", self.pwr("import", self.file("m.fx.txt", untyped(name)), code=3).stderr)
        for name in (n for n in MODELS if n not in REFUSED):
            with self.subTest(model=name):
                first, second = self.path("a.pwg"), self.path("b.pwg")
                self.pwr("import", self.file("m.fx.txt", untyped(name)), "-o", first)
                self.assertIn(": ?", Path(first).read_text())
                self.pwr("import", first, "-o", second)
                self.assertEqual(Path(first).read_text(), Path(second).read_text())
                self.pwr("diff", first, second)
        self.assertIn("`?` if it is unknown", self.pwr("stats", self.file("b.pwg", "graph g { in x: bf16\n y = relu(x) out y }"), code=3).stderr)
        given = self.file("format.pwr", "test t {\n  graph { in   x: ?,w: bf16[4]\n y = relu(x) out y, w }\n  apply cse\n  expect none\n}\n")
        self.pwr("fmt", given)
        self.assertIn("in x: ?, w: bf16[4]", Path(given).read_text())
        before = Path(given).read_text()
        self.pwr("fmt", given)
        self.assertEqual(before, Path(given).read_text())

    def test_an_untyped_graph_is_refused_with_a_reason(self):
        done = self.pwr("run", self.file("norm.fx.txt", untyped("norm")), *self.kinds("norm"), code=3)
        self.assertIn("error[PW", done.stderr)


if __name__ == "__main__":
    unittest.main()
