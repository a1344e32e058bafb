#!/usr/bin/env python3
"""Piecewise as the compiler of vLLM's pieces: it is found through its entry point, computes PyTorch's numbers, is saved and loaded, and Inductor compiles what it refuses.

    compiler.py [TEST…]      run.py describes the environment
"""
import copy
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import unittest
import unittest.mock
from pathlib import Path

import fake_gpu
import models
import torch
import vllm.compilation.backends as backends
from vllm.compilation.compiler_interface import InductorStandaloneAdaptor
from vllm.compilation.counter import compilation_counter
from vllm.config import set_current_vllm_config
from vllm.config.utils import Range
from vllm.plugins import load_general_plugins

import _piecewise
import piecewise.vllm
from piecewise.pytorch.calls import _difference
from piecewise.pytorch.options import Options
from piecewise.vllm import versions
from piecewise.vllm.compiler import PiecewiseCompiler
from piecewise.vllm.pieces import identity_of
from piecewise.vllm.plugin import register

MODELS = ["llama", "qwen2", "qwen3", "gemma2", "gemma3", "opt", "gpt2", "phi3", "mixtral", "deepseek_v2"]
EXPERTS = ("mixtral", "deepseek_v2")  # whose layers of experts do not run on the CPU: they stop the step
CLOSE = 0.02  # relative RMS error in bf16
UNSET = (torch.empty, torch.empty_like, torch.ops.aten.empty.memory_format)
OPTIONS = {"piecewise": {}}


def unset(node):
    """Returns True for memory that the piece allocates for later pieces to fill, or a view of it."""
    while node.op == "call_method" and node.target in ("view", "reshape"):
        node = node.args[0]
    return node.op == "call_method" and node.target == "new_empty" or node.op == "call_function" and node.target in UNSET


class Compared:
    """Wraps PiecewiseCompiler.compile so that each piece also runs in PyTorch, from vLLM's own graph."""

    def __init__(self):
        self.errors, self.not_run = {}, {}
        self._compile = PiecewiseCompiler.compile

    def __enter__(self):
        self._patch = unittest.mock.patch.object(PiecewiseCompiler, "compile", lambda *args: self.compile(*args))
        self._patch.start()
        return self

    def __exit__(self, *_):
        self._patch.stop()

    def compile(self, compiler, graph, inputs, config, sizes, key=None):
        own = copy.deepcopy(graph)
        call, handle = self._compile(compiler, graph, inputs, config, sizes, key)
        results = own.graph.output_node().args[0]

        def run(*args):
            given = [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
            got = call(*args)
            try:
                wanted = own(*given)
            except NotImplementedError as why:  # an op without a kernel for the CPU
                self.not_run[key] = str(why).split(".")[0]
                return got
            pairs = [(w, g) for w, g, node in zip(wanted, got, results) if isinstance(w, torch.Tensor) and not unset(node)]
            self.errors.setdefault(key, []).append(max(_difference(w, g) for w, g in pairs))
            return got

        return run, handle


def sources():
    return [one.source for one in piecewise.vllm.report()]


class Case(unittest.TestCase):
    def setUp(self):
        load_general_plugins()
        piecewise.vllm.forget()
        shutil.rmtree(os.environ["VLLM_CACHE_ROOT"] + "/torch_compile_cache", ignore_errors=True)

    def manager(self, config, cache):
        """Returns vLLM's compiler manager on an empty cache."""
        manager = backends.CompilerManager(config.compilation_config, use_aot_compile=True)
        manager.compute_hash(config)
        manager.initialize_cache(cache)
        return manager

    def compile(self, config, function, *args, cache, sizes=Range(1, 64)):
        """Compiles one graph like vLLM's backend; returns the call and the compiled pieces."""
        found = []

        def backend(graph, inputs):
            with set_current_vllm_config(config, check_compile=False):
                manager = self.manager(config, cache)
                inputs = [node.meta["example_value"] for node in graph.graph.find_nodes(op="placeholder")]
                call = manager.compile(graph, inputs, {}, config.compilation_config, sizes)
                manager.save_to_file()
            found.append(manager)
            return call

        torch._dynamo.reset()
        torch._dynamo.mark_dynamic(args[0], 0)
        with torch.no_grad():
            out = torch.compile(function, backend=backend, fullgraph=True)(*args)
        return out, found[0].compiler


class Plugin(Case):
    def test_it_is_found_through_its_entry_point(self):
        (found,) = (e for e in importlib.metadata.entry_points(group="vllm.general_plugins") if e.name == "piecewise")
        self.assertIs(found.load(), register)
        self.assertEqual(versions.problems(), [])

    def test_registering_again_changes_nothing(self):
        before = backends.make_compiler
        register()
        self.assertIs(backends.make_compiler, before)

    def test_vllm_that_does_not_request_it_keeps_its_compiler(self):
        config = models.config_of("llama")
        with set_current_vllm_config(config):
            self.assertIs(type(backends.make_compiler(config.compilation_config, use_aot_compile=True)), InductorStandaloneAdaptor)

    def test_the_environment_requests_it_too(self):
        config = models.config_of("llama")
        with set_current_vllm_config(config), unittest.mock.patch.dict(os.environ, PIECEWISE_VLLM="1"):
            self.assertIs(type(backends.make_compiler(config.compilation_config, use_aot_compile=True)), PiecewiseCompiler)

    def test_wrong_options_stop_the_start(self):
        for given, message in (
            ({"pipelin": "o2"}, "did you mean `pipeline`"),
            ({"pipeline": "none_such"}, "there is no pipeline `none_such`"),
            ({"capture": "torch"}, "vLLM captures its own CUDA graphs"),
            ("o2", "must be an object of options"),
        ):
            config = models.config_of("llama", additional={"piecewise": given})
            with self.subTest(given), set_current_vllm_config(config), self.assertRaisesRegex((ValueError, piecewise.Error), message):
                backends.make_compiler(config.compilation_config, use_aot_compile=True)

    def test_another_vllm_is_refused_with_the_difference(self):
        with unittest.mock.patch("importlib.metadata.version", lambda _: "0.41.2"):
            self.assertIn("this is vLLM 0.41.2; piecewise supports vLLM >= 0.33, < 0.34", versions.problems())
        with unittest.mock.patch.object(InductorStandaloneAdaptor, "compile", lambda self, graph: None):
            self.assertRegex(
                versions.problems()[1], r"InductorStandaloneAdaptor.compile takes \(self, graph\), expected \(self, graph, example_inputs"
            )

    def test_combined_artifacts_are_refused(self):
        config = models.config_of("llama", additional=OPTIONS)
        with set_current_vllm_config(config), unittest.mock.patch.dict(os.environ, VLLM_USE_MEGA_AOT_ARTIFACT="1"):
            with self.assertRaisesRegex(RuntimeError, "VLLM_USE_MEGA_AOT_ARTIFACT=0"):
                backends.make_compiler(config.compilation_config, use_aot_compile=True)


class Models(Case):
    def check(self, name, tokens, **config):
        before = compilation_counter.clone()
        with Compared() as compared:
            model = models.made(models.config_of(name, additional=OPTIONS, **config))
            for count in tokens:
                try:
                    model(count)
                except (NotImplementedError, AssertionError) as why:
                    if name not in EXPERTS:
                        raise
                    compared.not_run[name] = str(why).split(" with")[0] or f"failed: {traceback.extract_tb(why.__traceback__)[-1].line}"
        pieces = compilation_counter.num_piecewise_capturable_graphs_seen - before.num_piecewise_capturable_graphs_seen
        return pieces, compared

    def test_pieces_of_ten_models(self):
        total = 0
        for name in MODELS:
            with self.subTest(name):
                piecewise.vllm.forget()
                pieces, compared = self.check(name, [16, 5, 1])
                print(f"{name:12} {pieces} pieces", [f"{max(errors):.2g}" for errors in compared.errors.values()], compared.not_run or "", flush=True)
                self.assertGreaterEqual(pieces, 3)
                self.assertEqual([s for s in sources() if s not in ("compiled", "shared")], [], piecewise.vllm.report())
                self.assertEqual(len(sources()), pieces)
                self.assertGreaterEqual(len(compared.errors), 1 if name in EXPERTS else pieces, compared.not_run)
                self.assertLess(max(map(max, compared.errors.values())), CLOSE)
                total += pieces
        print(f"{total} pieces of {len(MODELS)} models")

    def test_ranges_and_single_sizes(self):
        _, compared = self.check("llama", [4, 10, 40], compile_sizes=[4], compile_ranges_endpoints=[16])
        ranges = {one.range for one in piecewise.vllm.report()}
        self.assertEqual(ranges, {(4, 4), (1, 16), (17, 64)})
        self.assertEqual(set(sources()), {"compiled"})
        self.assertEqual(len(compared.errors), 9)
        self.assertLess(max(map(max, compared.errors.values())), CLOSE)

    def test_quantised_pieces_compile(self):
        passes = {"fuse_norm_quant": True, "fuse_act_quant": True}
        _, compared = self.check("llama_fp8", [16], custom_ops=["+quant_fp8", "+rms_norm", "+silu_and_mul"], passes=passes)
        print("llama_fp8", piecewise.vllm.report(), compared.not_run, sep="\n")
        self.assertEqual([s for s in sources() if s not in ("compiled", "shared")], [], piecewise.vllm.report())

    def test_whole_graphs_without_the_plugin(self):
        eager = models.made(models.config_of("llama", mode=0))
        wanted = [eager(count) for count in (16, 5, 1)]
        with unittest.mock.patch.dict(os.environ, VLLM_USE_AOT_COMPILE="0"):
            model = models.made(models.config_of("llama", mode=2, backend="piecewise"))
            piecewise.pytorch.forget()
            got = [model(count) for count in (16, 5, 1)]
        self.assertEqual(len(piecewise.pytorch.graphs()), 1)
        self.assertGreater(piecewise.pytorch.graphs()[0].taken, 50)
        self.assertLess(max(map(_difference, wanted, got)), CLOSE)


def fast_norm(x, w):
    x = x.float()
    return (torch.nn.functional.silu(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) @ w),)


def spectrum(x, w):
    return (torch.fft.fft(x).abs(),)


class Saving(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.x, self.w = torch.randn(16, 64), torch.randn(64, 64)

    def test_a_second_process_compiles_nothing(self):
        results = []
        for path in (os.environ["PATH"], "/nonexistent"):  # without a compiler
            out = f"{self.folder.name}/{len(results)}.pt"
            environment = os.environ | {"VLLM_CACHE_ROOT": self.folder.name, "PWR_CACHE_DIR": self.folder.name + "/kernels", "PATH": path}
            done = subprocess.run([sys.executable, __file__, "--run", out], env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            results.append(json.loads(done.stdout.splitlines()[-1]))
        self.assertEqual(set(results[0]["sources"]), {"compiled"})
        self.assertEqual(set(results[1]["sources"]), {"loaded"})
        self.assertEqual(len(results[0]["sources"]), len(results[1]["sources"]))
        self.assertGreater(results[0]["rewritten"], 0)
        self.assertEqual((results[1]["rewritten"], results[1]["traced"]), (0, 0))
        self.assertEqual(results[1]["loaded"], results[0]["saved"])
        self.assertTrue(torch.equal(*(torch.load(f"{self.folder.name}/{i}.pt") for i in (0, 1))))

    def test_a_refused_piece_falls_to_inductor(self):
        config = models.config_of("llama", additional=OPTIONS)
        (got,), _ = self.compile(config, spectrum, self.x, self.w, cache=self.folder.name)
        (one,) = piecewise.vllm.report()
        self.assertEqual(one.source, "inductor")
        self.assertRegex(one.reason, "complex64")
        torch.testing.assert_close(got, spectrum(self.x, self.w)[0], rtol=1e-4, atol=1e-4)
        (row,) = json.loads(Path(self.folder.name, "piecewise.json").read_text())
        self.assertEqual((row["source"], row["reason"]), ("inductor", one.reason))
        piecewise.vllm.forget()
        (got,), _ = self.compile(config, spectrum, self.x, self.w, cache=self.folder.name)  # Inductor's own artifact
        self.assertEqual(sources(), [])
        torch.testing.assert_close(got, spectrum(self.x, self.w)[0], rtol=1e-4, atol=1e-4)

    def test_a_mistake_of_ours_falls_to_inductor(self):
        config = models.config_of("llama", additional=OPTIONS)
        with unittest.mock.patch("piecewise.vllm.compiler.compiled", side_effect=KeyError("planted")), self.assertLogs("vllm.piecewise", "ERROR"):
            (got,), _ = self.compile(config, fast_norm, self.x, self.w, cache=self.folder.name)
        self.assertEqual([(one.source, one.reason) for one in piecewise.vllm.report()], [("inductor", "'planted'")])
        torch.testing.assert_close(got, fast_norm(self.x, self.w)[0], rtol=1e-3, atol=1e-3)

    def test_saved_pieces_that_do_not_fit_are_compiled_again(self):
        config = models.config_of("llama", additional=OPTIONS)
        wanted = fast_norm(self.x, self.w)[0]
        self.compile(config, fast_norm, self.x, self.w, cache=self.folder.name)
        (path,) = Path(self.folder.name).glob("*.piecewise")
        data = path.read_bytes()
        for kind, damaged in (("cut", data[:-9]), ("changed", data[:-1] + bytes([data[-1] ^ 1])), ("other", b"x"), ("none", None)):
            with self.subTest(kind):
                path.write_bytes(damaged) if damaged is not None else path.unlink()
                piecewise.vllm.forget()
                (got,), _ = self.compile(config, fast_norm, self.x, self.w, cache=self.folder.name)
                self.assertEqual(sources(), ["not loaded", "compiled"])
                torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)
        piecewise.vllm.forget()
        self.compile(config, fast_norm, self.x, self.w, cache=self.folder.name)
        self.assertEqual(sources(), ["loaded"])

    def test_the_hash_covers_rules_options_and_build(self):
        rules = Path(self.folder.name, "own.pwr")
        text = "pass p = greedy { r }\nrule r { y = relu(relu(x)) => y = relu(x) }\npipeline mine { p }\n"
        rules.write_text(text)
        hashes = []

        def note(**options):
            config = models.config_of("llama", additional={"piecewise": {"rules": [str(rules)], "pipeline": "mine", **options}})
            with set_current_vllm_config(config):
                compiler = backends.make_compiler(config.compilation_config, use_aot_compile=True)
                hashes.append(compiler.compute_hash(config))

        note()
        note()
        self.assertEqual(len(set(hashes)), 1)
        note(backend="interpreter")
        rules.write_text(text.replace("relu(relu(x))", "relu(relu(relu(x)))"))
        note()
        self.assertEqual(len(set(hashes)), 3)
        again = "from piecewise.vllm.pieces import identity_of; from piecewise.pytorch import Options; print(identity_of(Options()))"
        copied = Path(self.folder.name, Path(_piecewise.__file__).name)
        shutil.copyfile(_piecewise.__file__, copied)  # another file: another build
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([self.folder.name, os.environ["PYTHONPATH"]])}
        done = subprocess.run([sys.executable, "-c", again], env=environment, capture_output=True, text=True)
        self.assertRegex(done.stdout.strip(), "^[0-9a-f]{64}$", done.stderr[-1000:])
        self.assertNotEqual(done.stdout.strip(), identity_of(Options()))

    def test_equal_pieces_are_compiled_once(self):
        models.made(models.config_of("llama_deep", additional=OPTIONS))(16)
        self.assertEqual(sources(), ["compiled", "compiled", "shared", "shared", "compiled"])


def run(out):
    """Runs a model and prints what was compiled; see test_a_second_process_compiles_nothing."""
    from piecewise.pytorch import taking
    from piecewise.vllm import pieces

    load_general_plugins()
    make, trace, counts = taking._Rewritten.make, pieces.aot_module_simplified, {"rewritten": 0, "traced": 0}

    def counted(name, function):
        def wrapper(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return wrapper

    taking._Rewritten.make = counted("rewritten", make)
    pieces.aot_module_simplified = counted("traced", trace)
    model = models.made(models.config_of("llama", additional=OPTIONS))
    torch.save(model(16), out)
    counter = compilation_counter
    print(
        json.dumps({"sources": sources(), "saved": counter.num_compiled_artifacts_saved, "loaded": counter.num_compiled_artifacts_loaded, **counts})
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        unittest.main(argv=sys.argv, verbosity=2)
