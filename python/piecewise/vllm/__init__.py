"""vLLM integration: Piecewise as the compiler of vLLM's pieces, and rules as a pass of vLLM.

    vllm serve MODEL --additional-config '{"piecewise": {"pipeline": "o2"}}'         # the compiler, found through the package's entry point
    vllm serve MODEL -cc.mode=2 -cc.backend=piecewise                                # the same on whole graphs, without a plugin
    PIECEWISE_VLLM_RULES='{"rules": ["my.pwr"], "pipeline": "fuse"}' vllm serve MODEL \\
        -cc.inductor_passes.post_grad_custom_post_pass=piecewise.vllm.rules.vllm_rules   # rules, in Inductor

Nothing changes in a vLLM that requests none of these. See docs/vllm.md.
"""
from __future__ import annotations

from .plugin import register
from .reports import PieceReport, PieceReports, forget, report

__all__ = ["PieceReport", "PieceReports", "forget", "register", "report"]
