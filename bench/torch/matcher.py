"""Times Inductor's pattern matcher and inductor_pass on the same two patterns: CPU time of one pass over the graph of a Llama. Prints a table.

matcher.py [--layers N] [--rounds N]
"""
import argparse
import copy
import platform
import statistics
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch._inductor.config as config  # noqa: E402
from torch._inductor.custom_graph_pass import CustomGraphPass  # noqa: E402
from torch._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement  # noqa: E402

from piecewise.pytorch import inductor_pass  # noqa: E402

EPS = 1e-5
RULES = """
op pw_bench.rms(x: T[*b, d], w: T[d]) {eps: float} -> y: T[*b, d]
op pw_bench.swiglu(g: T[*b], u: T[*b]) -> y: T[*b]
rule norm { y = w * (x * rsqrt(mean(pow(x, 2)){dim = -1, keepdim = true} + eps))  =>  y = pw_bench.rms(x, w){eps = eps} }
rule swiglu { y = (g / (exp(neg(g)) + 1)) * u  =>  y = pw_bench.swiglu(g, u) }
pass both = greedy { norm, swiglu }
pipeline fuse { both }
"""


@torch.library.custom_op("pw_bench::rms", mutates_args=())
def rms(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


@torch.library.custom_op("pw_bench::swiglu", mutates_args=())
def swiglu(g: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(g) * u


rms.register_fake(lambda x, w, eps: torch.empty_like(x))
swiglu.register_fake(lambda g, u: torch.empty_like(g))


class Keep(CustomGraphPass):
    """Keeps the graph that Inductor passes to custom passes."""

    def __init__(self):
        self.module = None

    def __call__(self, graph):
        self.module = torch.fx.GraphModule(graph.owning_module, copy.deepcopy(graph))

    def uuid(self):
        return None


def llama(layers):
    import transformers as T

    shape = dict(vocab_size=128, hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2)
    model = T.LlamaForCausalLM(T.LlamaConfig(num_hidden_layers=layers, rms_norm_eps=EPS, **shape)).eval()
    keep = Keep()
    with torch.no_grad(), config.patch(post_grad_custom_pre_pass=keep, fx_graph_cache=False):
        torch.compile(lambda x: model(x, use_cache=False).logits)(torch.randint(0, 128, (1, 16)))
    return keep.module


def inductors():
    """Returns Inductor's pass for the same two patterns."""
    patterns = PatternMatcherPass()
    x, w = torch.empty(1, 16, 64), torch.empty(64)

    def spelled(x, w):
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS))

    def silu(g, u):
        return (g / (torch.exp(-g) + 1)) * u

    g = torch.empty(1, 16, 128)
    register_replacement(spelled, lambda x, w: rms(x, w, EPS), [x, w], fwd_only, patterns)
    register_replacement(silu, lambda g, u: swiglu(g, u), [g, g.clone()], fwd_only, patterns)
    return patterns


def targets(graph):
    return sorted(str(node.target) for node in graph.nodes if node.op == "call_function")


def timed(function):
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    module = llama(arguments.layers)
    nodes = len(module.graph.nodes)
    patterns = inductors()
    with tempfile.NamedTemporaryFile("w", suffix=".pwr") as file:
        file.write(RULES)
        file.flush()
        ours = inductor_pass(file.name, "fuse")
    times, after, counts = {"inductor": [], "piecewise": []}, {}, {}
    for _ in range(arguments.rounds):
        for name in times:
            one = torch.fx.GraphModule(module, copy.deepcopy(module.graph)).graph
            taken, count = timed(lambda: patterns.apply(one) if name == "inductor" else ours(one))
            times[name].append(taken)
            after[name], counts[name] = targets(one), count if name == "inductor" else sum(ours.done[-1].rewrites.values())
    same = after["inductor"] == after["piecewise"] and counts["inductor"] == counts["piecewise"]
    theirs, own = (statistics.median(times[name]) for name in ("inductor", "piecewise"))
    print(
        f"Inductor's pattern matcher and inductor_pass, two patterns, a Llama of {arguments.layers} layers, {nodes} nodes ({platform.machine()}):\n"
    )
    print("| | matches | CPU ms, median | share |\n|---|---|---|---|")
    print(f"| Inductor's matcher | {counts['inductor']} | {theirs * 1e3:.1f} | |")
    print(f"| inductor_pass: there, rewritten, back | {counts['piecewise']} | {own * 1e3:.1f} | {own / theirs:.1%} |")
    if not same:
        print(f"\nWRONG: the graphs differ; {ours.done[-1].refused}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
