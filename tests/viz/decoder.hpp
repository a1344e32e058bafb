// A small decoder with unnamed maths, for pictures: layers of norm, product, attention, product,
// add.
#pragma once

#include "rewriter/strategies/journal.hpp"
#include "tests/splitter/graphs.hpp"

namespace pw::test {

struct Decoder : Builder {
  std::vector<NodeId> sums;  ///< add nodes, each read by the norm of the same position
  std::vector<NodeId> norms;

  explicit Decoder(int layers) {
    graph.name = "decoder";
    Traits splitting;
    splitting.splitting = true;
    op("attention", splitting);
    ValueId x = in_group("embed", one("embedding", {weight("table"), input("ids")}));
    ValueId residual;
    for (int i = 0; i < layers; ++i) {
      const std::string layer = "layers." + std::to_string(i);
      x = product(norm(x, residual, layer + ".attn"), "qkv", layer + ".attn");
      x = in_group(layer + ".attn", attention(x, i));
      x = product(x, "o", layer + ".attn");
      x = product(norm(x, residual, layer + ".mlp"), "up", layer + ".mlp");
      x = in_group(layer + ".mlp", one("mul", {one("silu", {x}), literal(0.5)}));
      x = product(x, "down", layer + ".mlp");
    }
    graph.add_output(norm(x, residual, "final"));
  }

  ValueId weight(const std::string& name) { return input(name, InputKind::weight); }
  ValueId in_group(const std::string& group, ValueId v) {
    graph.set_group(graph.producer(v), group);
    return v;
  }
  ValueId product(ValueId x, const std::string& name, const std::string& group) {
    return in_group(group, one("mm", {x, weight(graph.fresh_name(name + "_w"))}));
  }
  ValueId norm(ValueId x, ValueId& residual, const std::string& group) {
    residual = residual.valid() ? in_group(group, one("add", {x, residual})) : x;
    if (!graph.is_input(residual) && graph.op_of(graph.producer(residual)).name == "add")
      sums.push_back(graph.producer(residual));
    const ValueId y =
        in_group(group, one("rms_norm", {residual, weight(graph.fresh_name("norm_w"))}));
    norms.push_back(graph.producer(y));
    return y;
  }

  /// Applies a fusion: every add with its norm becomes one node with two results.
  void fuse() {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const NodeId sum = sums[i], norm = norms[i + 1];
      graph.insert_before(norm);
      NodeSpec spec;
      spec.op = op("fused_add_rms_norm");
      spec.operands = {graph.operand(sum, 0), graph.operand(sum, 1), graph.operand(norm, 1)};
      spec.results = {{type(), "y"}, {type(), "r"}};
      spec.group = std::string(graph.group(norm));
      const NodeId fused = graph.add_node(spec);
      graph.insert_before({});
      graph.replace_uses(graph.result(norm), graph.result(fused, 0));
      graph.replace_uses(graph.result(sum), graph.result(fused, 1));
      graph.erase(norm);
      graph.erase(sum);
    }
  }

  /// After fuse(): the matches of rule 0 that made these nodes.
  void record_fusions(Journal& journal) const {
    std::size_t k = 0;
    for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
      if (graph.op_of(n).name != "fused_add_rms_norm") continue;
      journal.add(MatchEvent{RuleId(0), {sums[k], norms[k + 1]}, {}, {n}, {sums[k], norms[k + 1]}});
      ++k;
    }
  }
};

}  // namespace pw::test
