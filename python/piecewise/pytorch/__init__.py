"""PyTorch integration: torch.compile(model, backend="piecewise").

    f = torch.compile(model, backend="piecewise")                    # found through the package's entry point
    f = torch.compile(model, backend="piecewise", options={"rules": ["my.pwr"], "pipeline": "mine"})
    piecewise.pytorch.report(f)                                      # ops taken, ops left to PyTorch, and why
    piecewise.pytorch.explain(f, "add_rms")                          # why a rule did not match
    torch.compile(model, options={"post_grad_custom_pre_pass": piecewise.pytorch.inductor_pass("my.pwr", "fuse")})
    piecewise.pytorch.compile_export(torch.export.export(model, inputs)).save("model.pwt")   # ahead of time; then load_compiled("model.pwt")

Graphs are taken as AOT autograd makes them, functional and of core ATen, call by call through the importer that reads dumps. A call of an op that Piecewise has no
meaning for stays a call of PyTorch inside the graph. Where it has no values for what a call reads or gives, the graph is cut into parts around that call. A graph
of which nothing can be taken runs in PyTorch, and says why.
"""
import torch._dynamo as _dynamo

from .compiler import Backend, backend
from .decorators import ignore, support
from .exported import Program, compile_export, from_export, load_compiled
from .inductor import InductorPass, inductor_pass
from .options import Options
from .reports import GraphReport, Reports, explain, forget, graphs, report

__all__ = [
    "Backend",
    "GraphReport",
    "InductorPass",
    "Options",
    "Program",
    "Reports",
    "backend",
    "compile_export",
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
