#!/usr/bin/python3
"""Bad input gets a diagnostic with a place and exit code 3: never a crash, a hang, or half a file."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin"))
SECONDS = 600  # a hang, not a measure of speed


def graph(**changes):
    """A small good graph.json with some of its keys replaced."""
    base = {
        "format": "piecewise.graph/1",
        "name": "g",
        "symbols": {"n": {"min": 1, "max": 64, "role": "tokens"}},
        "inputs": [{"name": "x", "type": "bf16[n, 64]", "kind": "input"}, {"name": "w", "type": "bf16[64]", "kind": "weight"}],
        "nodes": [
            {"name": "y", "op": "rms_norm", "operands": ["x", "w"], "attributes": {"eps": 1e-6}, "results": [{"name": "y", "type": "bf16[n, 64]"}]}
        ],
        "outputs": ["y"],
    }
    base.update(changes)
    return json.dumps(base)


def node(name="y", op="rms_norm", operands=("x", "w"), **more):
    return {"name": name, "op": op, "operands": list(operands), "results": [{"name": name}], **more}


GRAPHS = {  # name: (text, what the message must hold)
    "empty": ("", r"bad"),
    "not an object": ("[1, 2]", r"bad"),
    "truncated": (graph()[:150], r"bad"),
    "trailing text": (graph() + "}", r"bad"),
    "other format": (graph(format="onnx"), r"/format"),
    "no outputs key": ('{"format": "piecewise.graph/1"}', r"bad"),
    "unknown key": (graph(nodess=[]), r"nodess"),
    "unknown op": (graph(nodes=[node(op="rms_nrom")]), r"/nodes/0.*|rms_nrom"),
    "arity": (graph(nodes=[node(operands=("x",))]), r"/nodes/0"),
    "operand type": (graph(nodes=[node(operands=("x", "x"))]), r"/nodes/0"),
    "stated type": (graph(nodes=[{**node(), "results": [{"name": "y", "type": "f32[n, 64]"}]}]), r"/nodes/0"),
    "duplicate name": (graph(nodes=[node(), node()]), r"/nodes/1"),
    "use before definition": (graph(nodes=[node("y", "relu", ["z"]), node("z", "relu", ["x"])]), r"/nodes/0"),
    "cycle": (graph(nodes=[node("y", "add", ["x", "z"]), node("z", "relu", ["y"])]), r"cycle"),
    "unknown operand": (graph(nodes=[node(operands=("x", "ww"))]), r"ww"),
    "dangling output": (graph(outputs=["q"]), r"/outputs/0"),
    "unknown attribute": (graph(nodes=[node(attributes={"epsilon": 1})]), r"epsilon"),
    "attribute kind": (graph(nodes=[node(attributes={"eps": "small"})]), r"/nodes/0"),
    "number out of range": (graph().replace("1e-06", "1e999"), r"bad"),
    "integer out of range": (graph(symbols={"n": {"min": 1, "max": 10**30, "role": "tokens"}}), r"bad"),
    "enormous dims": (graph(inputs=[{"name": "x", "type": "bf16[9999999999999999999999]", "kind": "input"}]), r"/inputs/0"),
    "overflowing dims": (graph(inputs=[{"name": "x", "type": "bf16[" + "*".join(["4000000000"] * 4) + "]", "kind": "input"}]), r"/inputs/0"),
    "bad type": (graph(inputs=[{"name": "x", "type": "bf17[n", "kind": "input"}]), r"/inputs/0"),
    "two token symbols": (graph(symbols={"n": {"min": 1, "max": 9, "role": "tokens"}, "m": {"min": 1, "max": 9, "role": "tokens"}}), r"tokens"),
    "empty range": (graph(symbols={"n": {"min": 9, "max": 1, "role": "tokens"}}), r"/symbols/n"),
    "deep nesting": ("[" * 100000, r"bad"),
    "deep attribute": (graph(nodes=[node(attributes={"eps": eval("[" * 90 + "]" * 90)})]), r"bad"),
}

TEXTS = {
    "unknown op": ("graph g { in x: f32[4]\n  y = rellu(x)\n  out y }", r"bad:2:"),
    "arity": ("graph g { in x: f32[4]\n  y = relu(x, x)\n  out y }", r"bad:2:"),
    "broadcast": ("graph g { in x: f32[4], z: f32[5]\n  y = add(x, z)\n  out y }", r"bad:2:"),
    "unclosed": ("graph g { in x: f32[4]\n  y = relu(x", r"bad:2:"),
    "deep": ("graph g { in x: f32[4]\n  y = " + "relu(" * 5000 + "x" + ")" * 5000 + "\n out y }", r"bad:2:"),
    "unknown name": ("graph g { in x: f32[4]\n  y = relu(z)\n  out y }", r"bad:2:"),
    "unknown output": ("graph g { in x: f32[4]\n  y = relu(x)\n  out z }", r"bad:3:"),
}

HEAD = 'class GraphModule(torch.nn.Module):\n    def forward(self, a: "f32[4, 8]", b: "f32[8, 4]"):\n'
DUMPS = {
    "truncated call": (HEAD + '        mm: "f32[4, 4]" = torch.ops.aten.mm.default(a, b', r"bad:3:"),
    "unterminated type": (HEAD + '        mm: "f32[4, 4] = torch.ops.aten.mm.default(a, b)\n        return (mm,)\n', r"bad:3:"),
    "unknown name": (HEAD + '        mm: "f32[4, 4]" = torch.ops.aten.mm.default(a, c)\n        return (mm,)\n', r"bad:3:"),
    "bad type": (HEAD + '        mm: "f33[4, 4]" = torch.ops.aten.mm.default(a, b)\n        return (mm,)\n', r"bad:3:"),
    "contradiction": (HEAD + '        mm: "f32[4, 5]" = torch.ops.aten.mm.default(a, b)\n        return (mm,)\n', r"bad:3:"),
    "no return": (HEAD + '        mm: "f32[4, 4]" = torch.ops.aten.mm.default(a, b)\n', r"bad:"),
    "index out of range": (
        HEAD + "        s = torch.ops.aten.split_with_sizes.default(a, [4, 4], 1)\n        g = s[7]\n        return (g,)\n",
        r"bad:4:",
    ),
    "deep list": (HEAD + "        v = torch.ops.aten.view.default(a, " + "[" * 3000 + "]" * 3000 + ")\n        return (v,)\n", r"bad:3:"),
    "not a dump": ("def forward(\x00\xff", r"bad"),
}

RULES = {
    "truncated rule": ("rule r {\n  y = relu(x)\n  =>", r"bad:3:"),
    "unknown op": ("rule r {\n  y = rellu(x)\n  =>\n  y = x\n}", r"bad:2:"),
    "unbound name": ("rule r {\n  y = relu(x)\n  =>\n  y = relu(z)\n}", r"bad:4:"),
    "arity": ("rule r {\n  y = relu(x, x)\n  =>\n  y = x\n}", r"bad:2:"),
    "unknown attribute": ("rule r {\n  y = rms_norm(x, w){epsilon}\n  =>\n  y = x\n}", r"bad:2:"),
    "unknown rule": ("pass p = greedy { nothing }", r"bad:1:"),
    "duplicate rule": ("rule r { y = relu(x) => y = x }\nrule r { y = silu(x) => y = x }", r"bad:2:"),
    "precedence cycle": ("rule a over b { y = relu(x) => y = x }\nrule b over a { y = silu(x) => y = x }", r"bad:[12]:"),
    "not connected": ("rule r {\n  y = relu(x)\n  z = silu(w)\n  =>\n  y = x\n  z = w\n}", r"bad:"),
    "unterminated string": ('test t {\n  graph "file\n}', r"bad:2:"),
    "integer out of range": ("param p: int = 99999999999999999999", r"bad:1:"),
    "missing file": ('use "no/such/file.pwr"', r"bad:1:"),
    "deep nesting": ("rule r {\n  y = " + "relu(" * 5000 + "x" + ")" * 5000 + "\n => y = x }", r"bad:2:"),
    "body type": ("op f(x: T[*s]) -> y: T[*s] {\n  y = mm(x)\n}", r"bad:2:"),
    "stray bytes": ("rule \xff\x01 {", r"bad:1:"),
    "two mistakes": ("rule a { y = rellu(x) => y = x }\nrule b { y = sillu(x) => y = x }", r"(?s)bad:1:.*bad:2:"),
}


class BadInputs(unittest.TestCase):
    def check(self, command, text, expected, suffix):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "bad" + suffix).write_text(text, encoding="latin-1")
            out = Path(folder, "out.json")
            done = subprocess.run(
                [BIN.resolve() / "pwr", *[part.replace("OUT", str(out)) for part in command], "bad" + suffix],
                cwd=folder,
                capture_output=True,
                timeout=SECONDS,
                text=True,
                errors="replace",
            )
            message = done.stderr.replace("bad" + suffix, "bad")
            self.assertEqual(done.returncode, 3, f"{command} {text[:200]!r}\n{message[:2000]}")
            self.assertRegex(message, r"error(\[PW\d+\])?:")
            self.assertRegex(message, expected)
            self.assertNotIn("internal error", message)
            self.assertFalse(out.exists(), "a file was written")
            self.assertEqual(sorted(p.name for p in Path(folder).iterdir()), ["bad" + suffix], "a file was left over")


def add_cases(kind, cases, command, suffix):
    for name, (text, expected) in cases.items():

        def test(self, text=text, expected=expected):
            self.check(command, text, expected, suffix)

        setattr(BadInputs, f"test_{kind}_" + re.sub(r"\W", "_", name), test)


add_cases("json", GRAPHS, ["import", "-o", "OUT"], ".json")
add_cases("pwg", TEXTS, ["import", "-o", "OUT"], ".pwg")
add_cases("fx", DUMPS, ["import", "-o", "OUT"], ".txt")
add_cases("pwr", RULES, ["check"], ".pwr")

if __name__ == "__main__":
    if not (BIN / "pwr").exists():
        sys.exit(f"{BIN}/pwr is not built")
    unittest.main()
