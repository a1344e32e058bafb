"""Applies rules to the graphs of TensorRT-LLM's AutoDeploy. Importing the module registers the transform `piecewise_rules`.

    import piecewise.autodeploy      # before the LLM is created; then, in AutoDeploy's configuration:

    transforms:
      piecewise_rules: {stage: post_load_fusion, rules: [my.pwr], pipeline: fuse}
"""
from __future__ import annotations

import logging as _logging
import typing as _t

from tensorrt_llm._torch.auto_deploy.transform.interface import BaseTransform, TransformConfig, TransformInfo, TransformRegistry

from .pytorch.inductor import Rewritten
from .pytorch.inductor import inductor_pass as _inductor_pass

__all__ = ["PiecewiseRules", "PiecewiseRulesConfig", "done"]

_log = _logging.getLogger(__name__)

done: _t.List[Rewritten] = []  # an entry for each graph of this process: `print(done[-1])` lists near misses


class PiecewiseRulesConfig(TransformConfig):
    """The keys of `piecewise_rules`, besides AutoDeploy's own: rule files or names of the library, a pipeline, and its parameters."""

    rules: _t.List[str] = ["llm"]
    pipeline: str = "o2"
    params: _t.Dict[str, _t.Any] = {}


@TransformRegistry.register("piecewise_rules")
class PiecewiseRules(BaseTransform):
    """Rewrites a graph by a pipeline of rules, and leaves it as it is, with a reason in the log, if an op of a rule cannot run in PyTorch."""

    config: PiecewiseRulesConfig

    @classmethod
    def get_config_class(cls) -> _t.Type[TransformConfig]:
        return PiecewiseRulesConfig

    def _apply(self, gm: _t.Any, cm: _t.Any, factory: _t.Any, shared_config: _t.Any) -> _t.Tuple[_t.Any, TransformInfo]:
        """Rewrites the graph in place. Raises piecewise.Error for mistakes in the rules."""
        rules = _inductor_pass(self.config.rules, self.config.pipeline, self.config.params)
        rules(gm.graph)
        done.append(rules.done[-1])
        fired = done[-1].rules
        if fired:
            gm.recompile()
        _log.info("%s", ", ".join(f"{rule} {count}" for rule, count in fired.items()) or done[-1].refused or "no rule matched")
        return gm, TransformInfo(skipped=bool(done[-1].refused), num_matches=sum(fired.values()), is_clean=not fired, has_valid_shapes=not fired)
