// Ops that torch.export leaves whole, and sizes that are equal by guards.
#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// Of one call on x, whose type and that of the result are stated; PW0511 where the result has
/// another: what stays a call of PyTorch's, or the error.
std::string taken(const std::string& x, const std::string& result, const std::string& call,
                  const std::string& more = "", FxOptions options = {}) {
  const std::string text = fmt::format(
      "def forward(self, x: \"{}\"{}):\n    y: \"{}\" = torch.ops.aten.{};\n    return (y,)\n", x,
      more, result, call);
  const ContextPtr context = library();
  options.file = "dump.fx.txt";
  const auto done = import_fx(context, text, options);
  if (!done) return messages(done.error(), *context);
  CHECK(messages(verify(done->graph), *context) == "");
  std::string out;
  for (const auto& [target, count] : done->report.opaque) out += target;
  for (const auto& [symbol, fact] : done->graph.facts.symbols)
    if (!options.guards.empty()) out += symbol + " " + print_range(fact);
  return out;
}

}  // namespace

TEST_CASE("fx: norms are ops of one name, unless training reads their statistics", "[fx]") {
  const auto lines = [](const std::string& body) {
    const ContextPtr context = library();
    FxOptions options;
    options.file = "dump.fx.txt";
    const auto done = import_fx(
        context, "def forward(self, x: \"bf16[4, 8]\", w: \"bf16[8]\"):\n" + body, options);
    if (!done) return messages(done.error(), *context);
    std::string out;
    for (const NodeId n : done->graph.order()) out += describe(done->graph, n) + "\n";
    return out;
  };
  const std::string layer =
      "    t = torch.ops.aten.native_layer_norm.default(x, [8], w, w, 1e-05)\n"
      "    y: \"bf16[4, 8]\" = t[0]\n";
  CHECK(lines(layer + "    return (y,)\n") == "y: bf16[4, 8] = layer_norm(x, w, w){eps = 1e-05}\n");
  const std::string trained = lines(layer + "    m = t[1];  return (y, m)\n");
  CHECK(trained.find("layer_norm") == std::string::npos);
  CHECK(trained.find("mean(") != std::string::npos);
  // A call that the op with one result does not cover keeps its own meaning, or stays opaque.
  const std::string axes = lines(
      "    t = torch.ops.aten.native_layer_norm.default(x, [4, 8], None, None, 1e-05)\n"
      "    y: \"bf16[4, 8]\" = t[0]\n    return (y,)\n");
  CHECK(axes.find("aten.native_layer_norm.default(x") != std::string::npos);
  const std::string weighted = lines(
      "    v = torch.ops.aten.expand.default(w, [4, 8])\n"
      "    t = torch.ops.aten.native_layer_norm.default(x, [4, 8], v, v, 1e-05)\n"
      "    y: \"bf16[4, 8]\" = t[0]\n    return (y,)\n");
  CHECK(weighted.find("layer_norm") == std::string::npos);
  CHECK(weighted.find("mean(") != std::string::npos);
  const std::string rms = "cast(w){dtype = f32}\ny: bf16[4, 8] = rms_norm(x, ";
  for (const std::string call :
       {"rms_norm.default(x, [8], w)", "rms_norm.default(x, [8], w, None)"})
    CHECK(lines("    y = torch.ops.aten." + call + "\n    return (y,)\n").find(rms) !=
          std::string::npos);
  CHECK(lines("    t = torch.ops.aten._fused_rms_norm.default(x, [8], w, None)\n    y = t[0]\n"
              "    return (y,)\n")
            .find(rms) != std::string::npos);
}

TEST_CASE("fx: pads of all modes", "[fx]") {
  CHECK(taken("f32[2, s0]", "f32[2, s0 + 3]", "pad.default(x, [1, 2])") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0 + 3]", "pad.default(x, [1, 2], 'constant', 0.5)") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0 + 3]", "pad.default(x, [1, 2], 'reflect')") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0 + 3]", "pad.default(x, [1, 2], 'replicate')") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0 + 3]", "pad.default(x, [1, 2], 'circular')") == "");
  CHECK(taken("f32[2, 6]", "f32[2, 5]", "pad.default(x, [-2, 1])") == "");
  CHECK(taken("f32[2, 2]", "f32[2, 6]", "pad.default(x, [3, 1], 'reflect')") == "aten.pad.default");
  CHECK(taken("f32[2, 6]", "f32[2, 9]", "pad.default(x, [1, 2], 'other')") == "aten.pad.default");
}

TEST_CASE("fx: finite numbers beyond the range of their dtype are left to PyTorch, which raises",
          "[fx]") {
  const auto of_half = [](const std::string& call) { return taken("f16[4]", "f16[4]", call); };
  CHECK(of_half("clamp.default(x, None, 65504)") == "");
  CHECK(of_half("clamp.default(x, None, 65519.0)") == "aten.clamp.default");
  CHECK(of_half("clamp.default(x, -1000000, 1)") == "aten.clamp.default");
  CHECK(of_half("masked_fill.Scalar(x, x, -1e+30)") == "aten.masked_fill.Scalar");
  CHECK(of_half("full_like.default(x, 65519.0)") == "aten.full_like.default");
  CHECK(of_half("full_like.default(x, inf)") == "");
  CHECK(of_half("add.Tensor(x, 1000000.0)") == "");  // becomes infinite
  CHECK(of_half("sub.Tensor(x, x, alpha = 1000000.0)") == "aten.sub.Tensor");
  CHECK(taken("f32[4]", "f32[4]", "full_like.default(x, 1e+40)") == "aten.full_like.default");
  CHECK(taken("bf16[4]", "bf16[4]", "fill.Scalar(x, 3.4e+38)") == "aten.fill.Scalar");
  CHECK(taken("f64[4]", "f64[4]", "fill.Scalar(x, 1e+300)") == "");
}

TEST_CASE("fx: elements repeated, rolled and counted", "[fx]") {
  CHECK(taken("f32[2, s0]", "f32[6, s0]", "repeat_interleave.self_int(x, 3, 0)") == "");
  CHECK(taken("f32[2, s0]", "f32[6*s0]", "repeat_interleave.self_int(x, 3)") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0]", "roll.default(x, [1, -2], [0, 1])") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0]", "roll.default(x, [1])") == "");
  CHECK(taken("f32[2, s0]", "f32[2, s0]", "roll.default(x, [1, 2], [0])") == "aten.roll.default");
  CHECK(taken("f32[3]", "f32[4, 3]", "tile.default(x, [4, 1])") == "");
  CHECK(taken("f32[2, 12]", "f32[2, 3, 4]", "unflatten.int(x, 1, [3, -1])") == "");
  CHECK(taken("f32[2, 12]", "f32[2, 3, 5]", "unflatten.int(x, 1, [3, 5])") == "aten.unflatten.int");
}

TEST_CASE("fx: products of any ranks", "[fx]") {
  const std::string second = ", z: \"f32[1, 8, 5]\"";
  CHECK(taken("f32[s0, 3, 4, 8]", "f32[s0, 3, 4, 5]", "matmul.default(x, z)", second) == "");
  CHECK(taken("f32[8]", "f32[1, 5]", "matmul.default(x, z)", second) == "");
  CHECK(taken("f32[2, 3, 4, 8]", "f32[2, 3, 4]", "matmul.default(x, z)", ", z: \"f32[8]\"") == "");
  CHECK(taken("f32[2, 4, 8]", "f32[2, 4, 5]", "matmul.default(x, z)", ", z: \"f32[3, 8, 5]\"") !=
        "");
}

TEST_CASE("fx: paddings by name, second names, and windows as columns", "[fx]") {
  const std::string kernel = ", w: \"f32[6, 4, 4, 3]\"";
  CHECK(taken("f32[s0, 4, 8, 8]", "f32[s0, 6, 8, 8]", "conv2d.padding(x, w, None, [1, 1], 'same')",
              kernel) == "");
  CHECK(taken("f32[s0, 4, 8, 8]", "f32[s0, 6, 5, 6]", "conv2d.padding(x, w, None, [1, 1], 'valid')",
              kernel) == "");
  CHECK(taken("f32[s0, 4, 8, 8]", "f32[s0, 8, 17, 15]",
              "conv_transpose2d.input(x, w, None, [2, 2], [1, 1], [1, 0])",
              ", w: \"f32[4, 8, 4, 3]\"") == "");
  CHECK(taken("f32[s0, 4, 8, 8]", "f32[s0, 24, 28]",
              "im2col.default(x, [3, 2], [1, 1], [1, 0], [2, 1])") == "");
  CHECK(taken("f32[s0]", "f32[s0]", "multiply.Tensor(x, x)") == "");
  CHECK(taken("f32[s0]", "b8[s0]", "greater_equal.Scalar(x, 1)") == "");
}

TEST_CASE("fx: sizes of two symbols that guards make equal stay two", "[fx]") {
  const std::string second = ", z: \"f32[2*s0, 4]\"";
  const auto add = [&](const FxOptions& options) {
    return taken("f32[s1, 4]", "f32[s1, 4]", "add.Tensor(x, z)", second, options);
  };
  CHECK(add({}) == "aten.add.Tensor");
  // A slice up to one of two symbols has no type that states this: the call stays PyTorch's.
  FxOptions options;
  options.equal = {{"2*s0", "s1"}};
  CHECK(add(options) == "aten.add.Tensor");
}

TEST_CASE("fx: a guard that the caller does not see to narrows a range", "[fx]") {
  FxOptions options;
  options.ranges["s0"] = {2, 100};
  const auto add = [&](const std::string& left, const std::string& right) {
    options.guards = {{left + " == " + right, Compare::eq, left, right}};
    return taken("f32[2*(s0//2), 4]", "f32[s0, 4]", "add.Tensor(x, z)", ", z: \"f32[s0, 4]\"",
                 options);
  };
  CHECK(add("2*(s0//2)", "s0") == "s0 2..100 by 2");
  // Other values than a range has: the sizes stay two.
  CHECK(add("(s0%4)*(s0%6)", "0").starts_with("aten.add.Tensor"));
}
