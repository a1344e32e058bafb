#!/usr/bin/python3
"""Small files that ask for much: each is refused, or read, in little time and memory."""
import os
import resource
import struct
import subprocess
import unittest
import zipfile

from program import BIN, ProgramTest

# An idle machine takes less than 2 seconds and 500 MB for each; these files once made the programs request unbounded amounts.
SECONDS, MEGABYTES = 12, 1200
SANITIZED = "asan" in str(BIN)  # sanitizers take a multiple of both

GRAPH = "graph g {\n  symbol n in 1..64 tokens\n  in x: f32[n, 2]  in weight t: f32[2]\n  y = x * t\n  out y\n}\n"

# ---- ONNX, field by field


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def integer(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, dims, element=7, raw=None, integers=(), more=b""):
    out = b"".join(integer(1, dim) for dim in dims) + integer(2, element) + text(8, name) + more
    return out + (text(9, raw) if raw is not None else text(7, b"".join(varint(i) for i in integers)))


def row(name, *numbers):
    return tensor(name, [len(numbers)], integers=numbers)


def scalar(name, number):
    return tensor(name, [], integers=[number])


def attribute(name, value):
    if isinstance(value, int):
        return text(1, name) + integer(3, value) + integer(20, 2)
    if isinstance(value, bytes):
        return text(1, name) + text(5, value) + integer(20, 4)
    return text(1, name) + text(8, b"".join(varint(i) for i in value)) + integer(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(text(1, i) for i in inputs) + b"".join(text(2, o) for o in outputs) + text(4, op)
    return out + b"".join(text(5, attribute(k, v)) for k, v in attributes.items()) + (text(7, domain) if domain else b"")


def value(name, dims=("n", 4), element=1):
    shape = b"".join(text(1, text(2, dim) if isinstance(dim, str) else integer(1, dim)) for dim in dims)
    return text(1, name) + text(2, text(1, integer(1, element) + text(2, shape)))


def function(name, nodes, inputs=("a",), outputs=("b",)):
    out = text(1, name) + b"".join(text(4, i) for i in inputs) + b"".join(text(5, o) for o in outputs)
    return out + b"".join(text(7, n) for n in nodes) + text(9, text(1, "") + integer(2, 18)) + text(9, text(1, "f") + integer(2, 1)) + text(10, "f")


def model(nodes, constants=(), inputs=(value("x"),), functions=()):
    graph = b"".join(text(1, n) for n in nodes) + text(2, "g") + b"".join(text(5, t) for t in constants)
    graph += b"".join(text(11, i) for i in inputs) + text(12, text(1, "y"))
    opsets = text(8, text(1, "") + integer(2, 18)) + text(8, text(1, "f") + integer(2, 1))
    return integer(1, 8) + text(7, graph) + opsets + b"".join(text(25, f) for f in functions)


def doubling(op, name="t", depth=40):
    """Each function calls the next one twice."""
    functions = [function(f"f{i}", [node(f"f{i + 1}", ["a"], [name], "f"), node(f"f{i + 1}", [name], ["b"], "f")]) for i in range(depth)]
    return model([node("f0", ["x"], ["y"], "f")], functions=[*functions, function(f"f{depth}", [node(op, ["a"], ["b"])])])


def wide(depth=12):
    """Each function calls the next one ten times, and the last holds nothing."""
    functions = [function(f"f{i}", [node(f"f{i + 1}", ["a"], [f"t{j}"], "f") for j in range(10)], outputs=("a",)) for i in range(depth)]
    return model([node("f0", ["x"], ["y"], "f")], functions=[*functions, function(f"f{depth}", [], outputs=("a",))])


def of_dims(steps, step):
    """A shape that is calculated from a dim in steps."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["p0"], axis=0)]
    for i in range(steps):
        nodes += step(f"p{i}", f"p{i + 1}", str(i))
    nodes += [
        node("Unsqueeze", [f"p{steps}", "axis"], ["u"]),
        node("Concat", ["u", "minus"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    return model(nodes, [scalar("zero", 0), scalar("three", 3), row("minus", -1), row("axis", 0)])


def divided(p, q, i):
    return [node("Div", [p, "three"], ["d" + i]), node("Add", ["d" + i, p], ["a" + i]), node("Mul", ["a" + i, "d" + i], [q])]


def squared(p, q, _):
    return [node("Mul", [p, p], [q])]


def folded():
    nodes = [node("Add", ["w" if i == 0 else f"v{i - 1}", "w"], [f"v{i}"]) for i in range(20000)]
    return model([*nodes, node("Identity", ["v19999"], ["y"])], [row("w", *range(4096))])


def windows():
    """Each node is a constant that the importer makes."""
    nodes = [node("HannWindow", ["size"], [f"v{i}"]) for i in range(1000)]
    return model([*nodes, node("Identity", ["v999"], ["y"])], [scalar("size", 1 << 22)])


def external(name, count, extent):
    place = integer(14, 1) + text(13, text(1, "location") + text(2, name))
    return model([node("Relu", ["x"], ["y"])], [tensor(f"w{i}", [extent], 1, b"", more=place) for i in range(count)])


def fill(*shape):
    return model([node("ConstantOfShape", ["s"], ["c"]), node("Add", ["c", "c"], ["y"])], [row("s", *shape)])


def ranged(last):
    return model([node("Range", ["a", "b", "d"], ["r"]), node("Mul", ["r", "r"], ["y"])], [scalar("a", 0), scalar("b", last), scalar("d", 1)])


def tiled():
    nodes = [node("Tile", ["w" if i == 0 else f"t{i - 1}", "r"], [f"t{i}"]) for i in range(8)]
    return model([*nodes, node("Identity", ["t7"], ["y"])], [row("w", 1, 2), row("r", 10**6)])


def doubled_rows():
    nodes = [node("Concat", ["w" if i == 0 else f"c{i - 1}"] * 2, [f"c{i}"], axis=0) for i in range(60)]
    return model([*nodes, node("Identity", ["c59"], ["y"])], [row("w", 1, 2)])


ONNX = {
    "a fill": lambda: fill(10**9),
    "a fill of rank 10": lambda: fill(*[10**5] * 10),
    "a range": lambda: ranged(2**62),
    "tiles of tiles": tiled,
    "rows that double": doubled_rows,
    "functions that double": lambda: doubling("Relu"),
    "functions that double and do nothing": lambda: doubling("Identity"),
    "functions with long names": lambda: doubling("Relu", "t" * 100_000, 30),
    "functions of ten calls": wide,
    "dims in quotients": lambda: of_dims(40, divided),
    "dims to a power": lambda: of_dims(40, squared),
    "numbers that are added": folded,
    "windows": windows,
    "a tensor of rank 100000": lambda: model([node("Identity", ["w"], ["y"])], [tensor("w", [1] * 100_000, 1, bytes(4))]),
    "a list of four million": lambda: model([node("Foo", ["x"], ["y"], "q", a=[1] * (1 << 22))]),
    "holes": lambda: external("holes", 1, 1 << 38),
    "holes, often": lambda: external("shared", 1000, 1 << 24),
    "a length beyond the file": lambda: integer(1, 8) + b"\x3a" + varint(2**60) + b"abc",
    "a number without an end": lambda: integer(1, 8) + b"\x3a" + b"\xff" * 1000,
}
REFUSED = {
    "functions that double": "PW0524",
    "functions that double and do nothing": "PW0524",
    "functions with long names": "PW0524",
    "functions of ten calls": "PW0524",
    "windows": "PW0524",
    "a tensor of rank 100000": "PW0521",
    "a list of four million": "PW0524",
    "holes": "PW0521",
    "holes, often": "PW0521",
    "a length beyond the file": "PW0520",
    "a number without an end": "PW0520",
}

# ---- safetensors


def stored(header, data=b"", length=None):
    return struct.pack("<Q", len(header) if length is None else length) + header.encode() + data


def entry(name, begin, end, shape):
    return f'"{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}'


SAFETENSORS = {
    "a length of 2^60": lambda: stored("{}", length=2**60),
    "a million brackets": lambda: stored("[" * 1_000_000),
    "a million objects": lambda: stored('{"a":' * 1_000_000),
    "a million tensors": lambda: stored("{" + ",".join(entry(f"t{i}", 0, 0, "[0]") for i in range(1_000_000)) + "}"),
    "one name a million times": lambda: stored("{" + ",".join([entry("t", 0, 0, "[0]")] * 1_000_000) + "}"),
    "a rank of five million": lambda: stored("{" + entry("t", 0, 4, "[" + "1," * 5_000_000 + "1]") + "}", bytes(4)),
    "a list of numbers": lambda: stored("[" + "0," * 20_000_000 + "0]"),
    "a text of 40 MB": lambda: stored('{"__metadata__":{"a":"' + "x" * 40_000_000 + '"}}'),
    "a million notes": lambda: stored('{"__metadata__":{' + ",".join(f'"k{i}":"v"' for i in range(1_000_000)) + "}}"),
    "places beyond the file": lambda: stored("{" + entry("t", 0, 2**50, f"[{2**48}]") + "}", bytes(4)),
    "places that overlap": lambda: stored("{" + ",".join(entry(f"t{i}", 0, 4, "[1]") for i in range(100_000)) + "}", bytes(4)),
}


class Adversarial(ProgramTest):
    def pwr_within(self, *arguments):
        """Runs pwr; its processor time and memory are bounded, which other work on the machine does not change much."""
        process = subprocess.Popen(
            [BIN / "pwr", "--no-config", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: SANITIZED or resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, MEGABYTES << 20)),
        )
        messages = process.stderr.read().decode(errors="replace")
        process.stderr.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (0, 3), messages)
        if not SANITIZED:
            self.assertLess(used.ru_utime + used.ru_stime, SECONDS)
        return process.returncode, messages

    def test_onnx(self):
        for name, size in (("holes", 1 << 40), ("shared", 1 << 26)):
            with open(self.path(name), "wb") as file:
                file.truncate(size)
        for name, make in ONNX.items():
            with self.subTest(name):
                code, messages = self.pwr_within("import", self.file("model.onnx", make()), "-o", self.path("out.pwg"))
                if name in REFUSED:
                    self.assertEqual(code, 3)
                    self.assertIn(REFUSED[name], messages)

    def test_safetensors(self):
        graph = self.file("g.pwg", GRAPH)
        for name, make in SAFETENSORS.items():
            with self.subTest(name):
                code, messages = self.pwr_within("run", graph, "--weights", self.file("w.safetensors", make()), "--tokens", "3")
                self.assertEqual(code, 3)
                self.assertIn("PW1271", messages)

    def test_pt2(self):
        graph = self.file("g.pwg", GRAPH)
        for name, text_of_model in (
            ("brackets", "[" * 10_000_000),
            ("numbers", "[" + "0," * 30_000_000 + "0]"),
            ("objects", "[" + "{}," * 20_000_000 + "0]"),
            ("spaces", " " * (1 << 27)),
        ):
            archive = self.path("model.pt2")
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
                for entry_name, content in (
                    ("archive_format", "pt2"),
                    ("archive_version", "0"),
                    ("byteorder", "little"),
                    ("models/model.json", text_of_model),
                ):
                    file.writestr("m/" + entry_name, content)
            for command in (["import", archive, "-o", self.path("out.pwg")], ["run", graph, "--weights", archive, "--tokens", "3"]):
                with self.subTest(name, command=command[0]):
                    self.assertEqual(self.pwr_within(*command)[0], 3)


@unittest.skipIf(SANITIZED, "sanitizers reserve more memory than is allowed here")
class ShortMemory(ProgramTest):
    def test_a_proof_ends_in_order(self):
        codes = set()
        for megabytes in range(40, 121, 5):
            limit = megabytes * 10**6
            done = subprocess.run(
                [BIN / "pwr", "--no-config", "prove", "-r", "noop"],
                capture_output=True,
                check=False,
                timeout=3600,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),  # pylint: disable=cell-var-from-loop
            )
            with self.subTest(megabytes=megabytes):
                self.assertGreaterEqual(done.returncode, 0, done.stderr)
                if done.returncode == 70:
                    self.assertIn(b"out of memory", done.stderr)
            codes.add(done.returncode)
        self.assertIn(70, codes)


if __name__ == "__main__":
    unittest.main()
