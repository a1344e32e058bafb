#include "cli/help/diagnostic_examples.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr std::string_view kGraph = "graph.pwg", kDump = "dump.fx.txt", kJson = "graph.json",
                           kCommand = "";

// Correct inputs, which many examples end with.
constexpr std::string_view kNegatedDump = R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(x)
    return (y,))",
                           kNegatedJson = R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})";

constexpr DiagnosticExample kOthers[] = {
    {"PW0001", kCommand, R"(pwr stats model.pwg)",
     "cannot read `model.pwg`: No such file or directory", R"(pwr stats examples/first_rule.pwg)"},
    {"PW0301", kGraph, R"(graph g { in x: f32[4]  y = reshape(x){shape = [k]}  out y })",
     "unknown name `k`", R"(graph g { in x: f32[4]  y = reshape(x){shape = [2, 2]}  out y })"},
    {"PW0302", kGraph, R"(graph g { in x: f31[4]  y = neg(x)  out y })",
     "`f31` is not a dtype here", R"(graph g { in x: f32[4]  y = neg(x)  out y })"},
    {"PW0303", kGraph, R"(graph g { in x: f32["n"]  y = neg(x)  out y })", "`\"n\"` is not a dim",
     R"(graph g { in x: f32[n]  y = neg(x)  out y })"},
    {"PW0305", kGraph, R"(graph g { in x: f32[4, 8]  y = sum(none){dim = 1}  out y })",
     "op `sum`: operand `x` must not be none",
     R"(graph g { in x: f32[4, 8]  y = sum(x){dim = 1}  out y })"},
    {"PW0306", kGraph, R"(graph g { in x: f32[4]  y = bitwise_or(x, 1)  out y })",
     "op `bitwise_or`: promote(T, U) is f32, but only integers and b8 are supported here",
     R"(graph g { in x: i32[4]  y = bitwise_or(x, 1)  out y })"},
    {"PW0307", kGraph, R"(graph g { in x: f32[4, 8]  y = amax(x){axis = 1}  out y })",
     "op `amax` has no attribute `axis`",
     R"(graph g { in x: f32[4, 8]  y = amax(x){dim = 1}  out y })"},
    {"PW0308", kGraph, R"(graph g { in x: f32[4, 8]  y = reshape(x)  out y })",
     "op `reshape` needs the attribute `shape: dims`",
     R"(graph g { in x: f32[4, 8]  y = reshape(x){shape = [8, 4]}  out y })"},
    {"PW0309", kGraph, R"(graph g { in x: f32[4, 8]  y = amax(x){dim = 2}  out y })",
     "op `amax`: axis 2 is outside an operand of rank 2",
     R"(graph g { in x: f32[4, 8]  y = amax(x){dim = 1}  out y })"},
    {"PW0310", kGraph, R"(graph g { in x: f32[4, 8]  y = reshape(x){shape = [5, 8]}  out y })",
     "op `reshape`: cannot view [4, 8] as [5, 8]: 32 elements are not 40",
     R"(graph g { in x: f32[4, 8]  y = reshape(x){shape = [8, 4]}  out y })"},
    {"PW0312", kGraph, R"(graph g { in x: f32[4]  y = add(x)  out y })",
     "op `add` takes 2 operands, not 1", R"(graph g { in x: f32[4]  y = add(x, 1)  out y })"},
    {"PW0320", kGraph, R"(graph g { in x: f32[4]  y = rellu(x)  out y })", "unknown op `rellu`",
     R"(graph g { in x: f32[4]  y = relu(x)  out y })"},
    {"PW0321", kGraph, R"(graph g { symbol n in 1..64  in x: f32[n]  y = add(x, [n])  out y })",
     "`[n]` is neither a tensor nor a number",
     R"(graph g { symbol n in 1..64  in x: f32[n]  y = add(x, 1)  out y })"},
    {"PW0322", kGraph, R"(graph g { in x: f32[4]  y = f16(x, x)  out y })",
     "the cast `f16(…)` takes one operand, not 2",
     R"(graph g { in x: f32[4]  y = f16(x)  out y })"},
    {"PW0324", kGraph, R"(graph g {
  in x: f32[4, 8], w: f32[8]
  y = neg(fused_add_rms_norm(x, x, w))
  out y
})",
     "`fused_add_rms_norm` has 2 results; an operand is one value",
     R"(graph g {
  in x: f32[4, 8], w: f32[8]
  h, s = fused_add_rms_norm(x, x, w)  y = neg(h)
  out y
})"},
    {"PW0328", kGraph, R"(graph g { in x: f32[4]  y, z = neg(x)  out y })",
     "`neg(x)` has 1 result, but 2 names are bound",
     R"(graph g { in x: f32[4]  y = neg(x)  out y })"},
    {"PW0329", kGraph, R"(graph g { in x: f32[4]  y: f16[4] = neg(x)  out y })",
     "`y` is declared as f16[4], but `neg` gives f32[4]",
     R"(graph g { in x: f32[4]  y: f32[4] = neg(x)  out y })"},
    {"PW0422", kCommand, R"(pwr opt examples/first_rule.pwg -r llm -p o2 -D tp=two)",
     "param `tp` is of kind int, which `two` is not",
     R"(pwr opt examples/first_rule.pwg -r llm -p o2 -D tp=2)"},
    {"PW0460", kCommand, R"(pwr check docs)", "this folder has no .pwr file",
     R"(pwr check examples/first_rule.pwr)"},
    {"PW0461", kCommand, R"(pwr check nop)",
     "no such file, and no rule file of the library has this name", R"(pwr check noop)"},
    {"PW0464", kCommand, R"(pwr check examples/first_rule.pwg)", "this is a graph",
     R"(pwr check examples/first_rule.pwr)"},
    {"PW0471", kGraph, R"(graph g { in x: f32[4]  y = neg(x)  y = relu(y)  out y })",
     "`y` is bound twice", R"(graph g { in x: f32[4]  h = neg(x)  y = relu(h)  out y })"},
    {"PW0473", kGraph, R"(graph g { in x: f32  y = neg(x)  out y })",
     "input `x` needs a complete type", R"(graph g { in x: f32[]  y = neg(x)  out y })"},
    {"PW0474", kGraph, R"(graph g { in x: f32[4]  y = neg(x)  out z })",
     "output `z` is not a value of this graph", R"(graph g { in x: f32[4]  y = neg(x)  out y })"},
    {"PW0476", kGraph, R"(graph g { in x: f32[4]  y = neg(x)  out y }
graph h { in x: f32[4]  y = relu(x)  out y })",
     "a .pwg file contains one graph, and this is another",
     R"(graph g { in x: f32[4]  y = neg(x)  out y })"},
    {"PW0479", kGraph, R"(graph g { in x: f32[4]  h = neg(x)  y = neg(h)  out y  write h = y })",
     "`h` is not an input, so it cannot be written back",
     R"(graph g { in x: f32[4]  y = neg(x)  out y  write x = y })"},
    {"PW0480", kGraph,
     R"(graph g { symbol n in 1..8  symbol n in 4..8  in x: f32[n]  y = neg(x)  out y })",
     "a second fact of `n`", R"(graph g { symbol n in 4..8  in x: f32[n]  y = neg(x)  out y })"},
    {"PW0481", kCommand, R"(pwr stats README.md)", "this is a Markdown document",
     R"(pwr stats examples/first_rule.pwg)"},
    {"PW0501", kDump, R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(x) +
    return (y,))",
     "expected an expression, found the end of the line", kNegatedDump},
    {"PW0502", kDump, R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(x
    return (y,))",
     "`(` is not closed",
     R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(x);  x = None
    return (y,))"},
    {"PW0504", kDump, R"(class A(torch.nn.Module):
    def forward(self, x: "f32[4]"):
        return (x,)
class A(torch.nn.Module):
    def forward(self, x: "f32[4]"):
        return (x,))",
     "this text has 2 graphs; choose one with --graph N",
     R"(class A(torch.nn.Module):
    def forward(self, x: "f32[4]"):
        y = torch.ops.aten.neg.default(x)
        return (y,))"},
    {"PW0505", kDump, R"(def forward(self, x: "f31[4]"):
    y = torch.ops.aten.neg.default(x)
    return (y,))",
     "unknown dtype `f31`", kNegatedDump},
    {"PW0506", kCommand, R"(pwr stats examples/tiny-decoder.fx.txt --graph 2)",
     "this text has 1 graph", R"(pwr stats examples/tiny-decoder.fx.txt --graph 1)"},
    {"PW0507", kDump, R"(def forward(self, x: "f32[4]", x: "f32[4]"):
    y = torch.ops.aten.neg.default(x)
    return (y,))",
     "duplicate input `x`",
     R"(def forward(self, x: "f32[4]", w: "f32[4]"):
    y = torch.ops.aten.mul.Tensor(x, w)
    return (y,))"},
    {"PW0508", kDump, R"(def forward(self, x: "f32[4]"):
    self.h = torch.ops.aten.neg.default(x)
    return (x,))",
     "only a name can be assigned here",
     R"(def forward(self, x: "f32[4]"):
    h = torch.ops.aten.neg.default(x)
    return (h,))"},
    {"PW0509", kDump, R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(z)
    return (y,))",
     "unknown name `z`", kNegatedDump},
    {"PW0511", kDump, R"(def forward(self, x: "f32[4]"):
    y: "f32[5]" = torch.ops.aten.neg.default(x)
    return (y,))",
     "`y` is stated as f32[5], but `neg` gives f32[4]",
     R"(def forward(self, x: "f32[4]"):
    y: "f32[4]" = torch.ops.aten.neg.default(x)
    return (y,))"},
    {"PW0513", kDump, R"(def forward(self, x: "f32[4]"):
    y = torch.ops.aten.neg.default(x))",
     "the function returns no value", kNegatedDump},
    {"PW0702", kCommand, R"(pwr split examples/first_rule.pwg --at rmsnorm)",
     "unknown op `rmsnorm`", R"(pwr split examples/first_rule.pwg --at rms_norm)"},
    {"PW1001", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"],)",
     "not JSON: a key is expected here", kNegatedJson},
    {"PW1004", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "op": "relu", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "the key `op` is duplicated", kNegatedJson},
    {"PW1005", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": "x",
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "expected a list, found a string", kNegatedJson},
    {"PW1006", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "result": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "unknown member `result`", kNegatedJson},
    {"PW1007", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f31[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "unknown dtype `f31` (at byte 0 of the type)", kNegatedJson},
    {"PW1009", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "x", "type": "f32[4]"}]}],
 "outputs": ["x"]})",
     "the name `x` is already taken by an input", kNegatedJson},
    {"PW1010", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["z"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "there is no value `z`", kNegatedJson},
    {"PW1012", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["y"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "a cycle: n ← n", kNegatedJson},
    {"PW1013", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["z"]})",
     "dangling output: there is no value `z`", kNegatedJson},
    {"PW1014", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "negg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "unknown op `negg`", kNegatedJson},
    {"PW1015", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[4]"}, {"name": "z", "type": "f32[4]"}]}],
 "outputs": ["y"]})",
     "`neg` has 1 result, not 2", kNegatedJson},
    {"PW1016", kJson, R"({"format": "piecewise.graph/1",
 "inputs": [{"name": "x", "type": "f32[4]"}],
 "nodes": [{"name": "n", "op": "neg", "operands": ["x"],
            "results": [{"name": "y", "type": "f32[8]"}]}],
 "outputs": ["y"]})",
     "`y` is declared as f32[8], but `neg` gives f32[4]", kNegatedJson},
    {"PW1101", kCommand, R"(pwr opt examples/first_rule.pwg -r examples/first_rule.pwr)",
     "no pipeline is given",
     R"(pwr opt examples/first_rule.pwg -r examples/first_rule.pwr -p fuse)"},
    {"PW1207", kCommand, R"(pwr run examples/first_rule.pwg --tokens 600)",
     "a step has 600 tokens, but the graph declares symbol n in 1..512",
     R"(pwr run examples/first_rule.pwg --tokens 512)"},
    {"PW1211", kCommand, R"(pwr run examples/first_rule.pwg --steps README.md)",
     "`For` does not begin with the number of a sequence below 1048576",
     R"(pwr run examples/first_rule.pwg --steps examples/chat.steps)"},
    {"PW1271", kCommand, R"(pwr run examples/first_rule.pwg --tokens 4 --weights README.md)",
     "its header has 8603391950370906147 bytes; the limit is 100000000",
     R"(pwr run examples/first_rule.pwg --tokens 4)"},
    {"PW1401", kCommand, R"(pwr stats examples/tiny-decoder.fx.txt --symbol n=arg0_1)",
     "`arg0_1` is not input.axis",
     R"(pwr stats examples/tiny-decoder.fx.txt --symbol n=arg0_1.0,arg1_1.0)"},
    {"PW1402", kCommand, R"(pwr run examples/first_rule.pwg --tokens all)",
     "`all` is not an integer from 1 to 16777216",
     R"(pwr run examples/first_rule.pwg --tokens 1,7,16)"},
    {"PW1403", kCommand, R"(pwr opt examples/first_rule.pwg -r llm -p o2 -D tp)",
     "this is not NAME=VALUE", R"(pwr opt examples/first_rule.pwg -r llm -p o2 -D tp=2)"},
    {"PW1404", kCommand, R"(pwr run examples/tiny-decoder.fx.txt --tokens 64)",
     "a step has 64 tokens, but the graph is static with 512 rows",
     R"(pwr run examples/tiny-decoder.fx.txt --tokens 512)"},
    {"PW1405", kCommand, R"(pwr run examples/first_rule.pwg --tokens 4 --backend gpu)",
     "there is no backend `gpu`", R"(pwr run examples/first_rule.pwg --tokens 4 --backend cpu)"},
    {"PW1409", kCommand, R"(pwr run examples/first_rule.pwg --tokens 4 --ranks 2 --replicated y)",
     "the graph has no input `y`",
     R"(pwr run examples/first_rule.pwg --tokens 4 --ranks 2 --replicated x,res)"},
    {"PW1470", kCommand, R"(pwr run examples/first_rule.pwg --set m=4)",
     "the graph has no symbol `m`", R"(pwr run examples/first_rule.pwg --set n=4)"},
};

}  // namespace

const DiagnosticExample* diagnostic_example(std::string_view code) {
  const std::span<const DiagnosticExample> rules = rule_examples(), others = kOthers;
  for (const auto examples : {rules, others}) {
    const auto found = std::ranges::find(examples, code, &DiagnosticExample::code);
    if (found != examples.end()) return &*found;
  }
  return nullptr;
}

}  // namespace pw
