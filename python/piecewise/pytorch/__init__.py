"""PyTorch integration: torch.compile(model, backend="piecewise").

    f = torch.compile(model, backend="piecewise")                    # found through the package's entry point
    f = torch.compile(model, backend="piecewise", options={"rules": ["my.pwr"], "pipeline": "mine"})
    piecewise.pytorch.report(f)                                      # ops taken, ops left to PyTorch, and why
    piecewise.pytorch.explain(f, "add_rms")                          # why a rule did not match
    torch.compile(model, options={"post_grad_custom_pre_pass": piecewise.pytorch.inductor_pass("my.pwr", "fuse")})
    piecewise.pytorch.compile_export(torch.export.export(model, inputs)).save("model.pwt")   # ahead of time; then load_compiled("model.pwt")

The importer for dumps reads the graphs of AOT autograd, which are functional and in core ATen, call by call. PyTorch runs calls of ops that Piecewise does not
define, inside the graph. If Piecewise has no values for the operands or results of a call, it cuts the graph into parts around that call. A graph of which it
supports nothing runs in PyTorch, and the report states the reason.
"""
import torch._dynamo as _dynamo

from .compiler import Backend, backend
from .counter import CompilationCounter, compilation_counter
from .decorators import DynamicDims, dynamic_dims, ignore, support
from .exported import Program, compile_export, from_export, load_compiled
from .inductor import InductorPass, inductor_pass
from .options import Options
from .reports import GraphReport, Reports, explain, forget, graphs, report

__all__ = [
    "Backend",
    "CompilationCounter",
    "DynamicDims",
    "GraphReport",
    "InductorPass",
    "Options",
    "Program",
    "Reports",
    "backend",
    "compilation_counter",
    "compile_export",
    "dynamic_dims",
    "explain",
    "forget",
    "from_export",
    "graphs",
    "ignore",
    "inductor_pass",
    "load_compiled",
    "report",
    "support",
]

if "piecewise" not in _dynamo.list_backends(exclude_tags=None):  # an installed package is found by its entry point
    _dynamo.register_backend(backend, "piecewise")
