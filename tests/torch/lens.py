#!/usr/bin/env python3
"""The lens on graphs of the library in libcuda's place: captured through PyTorch's hooks by objects that hold such a graph."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
from torch.cuda import graphs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = tempfile.TemporaryDirectory()


def stand_in():
    """Compiles the library in libcuda's place and returns its path."""
    text = (ROOT / "tests/backends_cuda/stand_in.cpp").read_text()
    source, path = Path(FOLDER.name, "driver.cpp"), Path(FOLDER.name, "libdriver.so")
    source.write_text(re.search(r'kDevice = R"\((.*?)\n\)";', text, re.S)[1])
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


LIBRARY = os.environ.get("PW_STAND_IN") or stand_in()
os.environ["PWR_CUDA_DRIVER"] = str(LIBRARY)
DRIVER = ctypes.CDLL(str(LIBRARY))

from piecewise import lens  # noqa: E402
from piecewise.pytorch import devices  # noqa: E402

_COUNT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(lambda name: 0)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(lambda name, values: None)
DRIVER.stand_in_kernels(_COUNT, _RUN)
KERNELS = [b"_ZN2at6native11fill_kernelIfEEvi", b"rms_norm", b"</script><img src=x>\x1b[31m../../../etc/passwd"]


def handle(call, *arguments):
    out = ctypes.c_void_p()
    assert call(ctypes.byref(out), *arguments) == 0
    return out


MODULE = handle(DRIVER.cuModuleLoadData, b"")
FUNCTIONS = [handle(DRIVER.cuModuleGetFunction, MODULE, name) for name in KERNELS]
STREAM = handle(DRIVER.cuStreamCreate, 1)


class CapturedGraph(graphs.CUDAGraph if torch.cuda.is_available() else object):
    """A graph that runs PyTorch's hooks as torch.cuda.CUDAGraph does, around captures of the library."""

    def capture(self, kernels, fill=True, copy=True):
        graphs._run_global_hooks(graphs._global_capture_start_hooks, self)
        assert DRIVER.cuStreamBeginCapture_v2(STREAM, 2) == 0
        if fill:
            DRIVER.cuMemsetD8Async(ctypes.c_uint64(0), 0, ctypes.c_size_t(64), STREAM)
        for kernel in kernels:
            assert DRIVER.cuLaunchKernel(FUNCTIONS[kernel], 4, 1, 1, 128, 1, 1, 0, STREAM, None, None) == 0
        if copy:
            DRIVER.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(0), ctypes.c_uint64(0), ctypes.c_size_t(256), STREAM)
        self.address = handle(lambda out, stream: DRIVER.cuStreamEndCapture(stream, out), STREAM)
        graphs._run_global_hooks(graphs._global_capture_end_hooks, self)
        graphs._run_global_hooks(graphs._global_instantiate_hooks, self)
        return self

    def raw_cuda_graph(self):
        return self.address.value

    def replay(self):
        graphs._run_global_hooks(graphs._global_replay_end_hooks, self)


class Kernel(ctypes.Structure):  # CUDA_KERNEL_NODE_PARAMS_v2
    _fields_ = [
        ("function", ctypes.c_void_p),
        ("extents", ctypes.c_uint * 7),
        *((name, ctypes.c_void_p) for name in ("params", "extra", "kernel", "context")),
    ]


class Conditional(ctypes.Structure):  # CUgraphNodeParams
    _fields_ = [
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("handle", ctypes.c_uint64),
        ("kind", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)),
        ("context", ctypes.c_void_p),
        ("rest", ctypes.c_ubyte * 208),
    ]


class ConditionalGraph(CapturedGraph):
    """A kernel, then a node that runs one of two bodies, of one and of two kernels."""

    def capture(self):
        graphs._run_global_hooks(graphs._global_capture_start_hooks, self)
        self.address = handle(DRIVER.cuGraphCreate, 0)
        first = self.kernel(self.address, 0)
        condition = ctypes.c_uint64()
        assert DRIVER.cuGraphConditionalHandleCreate(ctypes.byref(condition), self.address, STREAM, 1, 1) == 0
        params = Conditional(type=13, handle=condition.value, kind=0, size=2, context=STREAM.value)
        handle(DRIVER.cuGraphAddNode_v2, self.address, ctypes.byref(first), None, ctypes.c_size_t(1), ctypes.byref(params))
        for body, kernels in ((0, [1]), (1, [0, 1])):
            for kernel in kernels:
                self.kernel(ctypes.c_void_p(params.bodies[body]), kernel)
        graphs._run_global_hooks(graphs._global_capture_end_hooks, self)
        return self

    def kernel(self, graph, number):
        params = Kernel(function=FUNCTIONS[number].value, extents=(4, 1, 1, 128, 1, 1, 0))
        return handle(DRIVER.cuGraphAddKernelNode_v2, graph, None, ctypes.c_size_t(0), ctypes.byref(params))


class Lens(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(lens.stop)
        self.out = Path(self.folder.name, "process_0001")

    def overview(self):
        return json.loads((self.out / "overview.json").read_text())

    def test_graphs_classes_and_launches(self):
        lens.start(self.folder.name)
        captured = [CapturedGraph().capture([0, 1] * 3) for _ in range(3)]
        captured += [CapturedGraph().capture([0]), CapturedGraph().capture([])]
        for _ in range(4):
            captured[1].replay()
        lens.stop()
        overview = self.overview()
        self.assertEqual([graph["class"] for graph in overview["graphs"]], [1, 1, 1, 2, 3])
        first = overview["graphs"][0]
        self.assertEqual((first["nodes"], first["edges"], first["kinds"]), (8, 7, {"kernel": 6, "memcpy": 1, "memset": 1}))
        self.assertEqual((first["critical_path"], first["could_be_programmatic"], first["known_bytes"]), (8, 5, 320))
        self.assertGreaterEqual(first["capture_s"], 0)
        self.assertGreaterEqual(first["instantiate_s"], 0)
        self.assertEqual(
            [(known["graphs"], known["kernels"], known["replays"], known["launches"]) for known in overview["classes"]],
            [(3, 6, 4, 24), (1, 1, 0, 0), (1, 0, 0, 0)],
        )
        index = (self.out / "index.html").read_text()
        self.assertIn("no kernels", index)
        self.assertIn('<a href="graph_0003.html">', index)
        self.assertEqual(
            sorted(path.name for path in self.out.iterdir()),
            sorted(["index.html", "overview.json", *(f"graph_000{i}.{kind}" for i in range(1, 6) for kind in ("html", "json"))]),
        )
        self.assertEqual(graphs._global_capture_end_hooks, {})

    def test_bodies_of_conditional_nodes(self):
        """A body's kernels are shown and counted, but a replay may not launch them."""
        lens.start(self.folder.name)
        graph = ConditionalGraph().capture()
        for _ in range(3):
            graph.replay()
        DRIVER.stand_in_hides_bodies(1)
        ConditionalGraph().capture()
        DRIVER.stand_in_hides_bodies(0)
        lens.stop()
        overview = self.overview()
        known, unknown = overview["graphs"]
        self.assertEqual((known["kinds"], known["kernels_in_bodies"], known["unknown_bodies"]), ({"kernel": 4, "conditional": 1}, 3, 0))
        self.assertEqual((unknown["kinds"], unknown["kernels_in_bodies"], unknown["unknown_bodies"]), ({"kernel": 1, "conditional": 1}, 0, 1))
        counts = [(known["kernels"], known["kernels_in_bodies"], known["launches"]) for known in overview["classes"]]
        self.assertEqual(counts, [(1, 3, 3), (1, 0, 0)])
        nodes = json.loads((self.out / "graph_0001.json").read_text())["nodes"]
        self.assertEqual([(node.get("inside"), node.get("body", 0)) for node in nodes], [(None, 0), (4, 0), (4, 1), (4, 1), (None, 0)])
        self.assertEqual((nodes[4]["condition"], nodes[4]["bodies"]), ("if", 2))
        page = (self.out / "graph_0001.html").read_text()
        self.assertIn("in bodies", page)
        self.assertNotIn('"groupName":[]', page)
        self.assertIn("does not report the bodies of 1 conditional node", (self.out / "graph_0002.html").read_text())
        self.assertIn("<td>unknown</td>", (self.out / "index.html").read_text())

    def test_files_are_deterministic_and_names_are_demangled(self):
        lens.start(self.folder.name)
        CapturedGraph().capture([0, 1])
        CapturedGraph().capture([0, 1])
        lens.stop()
        one, two = ((self.out / f"graph_000{i}.json").read_text() for i in (1, 2))
        self.assertEqual(one.replace("graph_0001", "graph_0002"), two)
        self.assertIn("void at::native::fill_kernel<float>(int)", one)

    def test_kernels_of_piecewise_have_the_names_of_pytorch(self):
        """The file and the page link a kernel to its op and the nodes of the FX graph."""

        def f(x, y):
            return torch.relu(x + y) * y

        torch.compile(f, backend="piecewise", options={"backend": "cuda", "driver": "host"})(torch.ones(2, 8), torch.ones(2, 8))
        (name, label), *others = devices.kernel_labels.items()
        self.assertEqual(others, [])
        self.assertRegex(name, r"^k_[0-9a-f]{16}$")
        self.assertRegex(label, r"^.*mul.*: mul\w*$")
        lens.start(self.folder.name)
        FUNCTIONS.append(handle(DRIVER.cuModuleGetFunction, MODULE, name.encode()))
        CapturedGraph().capture([0, len(FUNCTIONS) - 1])
        lens.stop()
        nodes = json.loads((self.out / "graph_0001.json").read_text())["nodes"]
        self.assertEqual([node.get("label") for node in nodes if node["kind"] == "kernel"], [None, label])
        self.assertIn(label, (self.out / "graph_0001.html").read_text())

    def test_hostile_names(self):
        """A kernel's name reaches neither a path, nor markup, nor a terminal."""
        lens.start(self.folder.name)
        CapturedGraph().capture([2])
        lens.stop()
        page = (self.out / "graph_0001.html").read_text()
        self.assertNotIn("<img src=x>", page)
        self.assertNotIn("\x1b", page + (self.out / "graph_0001.json").read_text())
        self.assertEqual({path.stem for path in self.out.iterdir()}, {"graph_0001", "index", "overview"})

    def test_failures_are_told_once_and_the_program_goes_on(self):
        lens.start(self.folder.name)
        broken = CapturedGraph()
        broken.raw_cuda_graph = lambda: 0
        with self.assertWarnsRegex(UserWarning, "its address is 0"):
            broken.capture([0])
        CapturedGraph().capture([0])
        lens.stop()
        self.assertIn("PW1262", self.overview()["graphs"][0]["failure"])
        self.assertEqual(self.overview()["graphs"][1]["nodes"], 3)

    def test_start_again(self):
        lens.start(self.folder.name)
        lens.start(self.folder.name)
        with self.assertRaisesRegex(ValueError, "call piecewise.lens.stop"):
            lens.start(self.folder.name + "/other")
        CapturedGraph().capture([0])
        lens.stop()
        lens.start(self.folder.name)
        CapturedGraph().capture([0])
        lens.stop()
        self.assertEqual(sorted(path.name for path in Path(self.folder.name).iterdir()), ["process_0001", "process_0002"])

    def test_files_are_graphs(self):
        import piecewise

        lens.start(self.folder.name)
        CapturedGraph().capture([0, 1])
        CapturedGraph().capture([0, 0])
        lens.stop()
        one, two = (self.out / f"graph_000{i}.json" for i in (1, 2))
        graph = piecewise.load(one)
        self.assertEqual(graph.ops(), {"cuda.memset": 1, "cuda.fill_kernel": 1, "cuda.rms_norm": 1, "cuda.memcpy": 1})
        self.assertFalse(piecewise.diff(one, one))
        self.assertTrue(piecewise.diff(one, two))

    def test_forked_process_has_its_own_folder(self):
        lens.start(self.folder.name)
        CapturedGraph().capture([0])
        child = os.fork()
        if child == 0:
            CapturedGraph().capture([1])
            lens.stop()
            os._exit(0)
        os.waitpid(child, 0)
        lens.stop()
        for process, kernel in (("process_0001", "fill_kernel"), ("process_0002", "rms_norm")):
            self.assertIn(kernel, Path(self.folder.name, process, "graph_0001.json").read_text())
            self.assertEqual(len(json.loads(Path(self.folder.name, process, "overview.json").read_text())["graphs"]), 1)


class Environment(unittest.TestCase):
    def run_with(self, program, **variables):
        return subprocess.run([sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True)

    def test_variable(self):
        with tempfile.TemporaryDirectory() as folder:
            program = "import piecewise, torch; print(len(torch.cuda.graphs._global_capture_end_hooks))"
            self.assertEqual(self.run_with(program, PIECEWISE_LENS=folder).stdout, "1\n")
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_variable_alone(self):
        """PyTorch starts the lens through the wheel's entry point, without an import of piecewise by the program."""
        text = (ROOT / "pyproject.toml").read_text()
        entry = re.search(r'entry-points."torch.backends".*\n(\w+) = "(.*)"', text)
        with tempfile.TemporaryDirectory() as folder:
            info = Path(folder, "piecewise_graphs-0.dist-info")
            info.mkdir()
            (info / "METADATA").write_text("Name: piecewise-graphs\nVersion: 0\n")
            (info / "entry_points.txt").write_text(f"[torch.backends]\n{entry[1]} = {entry[2]}\n")
            program = "import torch, sys; print('piecewise' in sys.modules, len(torch.cuda.graphs._global_capture_end_hooks))"
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
            for variable, printed in ((folder, "True 1\n"), ("", "False 0\n")):
                done = self.run_with(program, PIECEWISE_LENS=variable, PYTHONPATH=path)
                self.assertEqual(done.stdout, printed, done.stderr)

    def test_without_the_variable_nothing_is_loaded(self):
        program = "import piecewise, sys; print('torch' in sys.modules, 'piecewise.lens' in sys.modules)"
        self.assertEqual(self.run_with(program, PIECEWISE_LENS="").stdout, "False False\n")

    def test_old_pytorch(self):
        program = "import torch.cuda.graphs as g; del g.register_graph_capture_end_hook\nimport piecewise; print('goes on')"
        done = self.run_with(program, PIECEWISE_LENS="/nowhere")
        self.assertEqual(done.stdout, "goes on\n", done.stderr)
        self.assertIn("requires PyTorch 2.14 or later", done.stderr)


if __name__ == "__main__":
    warnings.simplefilter("always")
    unittest.main()
