// The thirteen rules of rules.pwr written by hand against the public functions of Graph: an
// expert's alternative to rules, and the baseline of the engine. The counts and the final graph
// equal the engine's; there are no journal, statistics or reasons.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace pw::bench {

enum class HandRule : std::uint8_t {
  add_rms,
  rms_quant,
  add_rms_quant,
  rms_quant_dyn,
  add_rms_quant_dyn,
  silu_mul,
  silu_mul_slices,
  silu_mul_quant,
  silu_mul_quant_dyn,
  all_reduce_rms,
  all_reduce_add_rms,
  reshape_chain,
  reshape_id
};
inline constexpr std::size_t kHandRules = 13;
[[nodiscard]] const char* name(HandRule rule);
using HandCounts = std::array<std::size_t, kHandRules>;
[[nodiscard]] std::size_t total(const HandCounts& counts);

class HandCompiled {
 public:
  explicit HandCompiled(Graph& graph);
  /// Returns the counts of all legal matches in the current graph, by rule, without changes.
  HandCounts scan();
  /// Rewrites until nothing matches.
  HandCounts run();

 private:
  /// A match: one new node reads `reads`, its results replace `writes`, and the nodes `own` are
  /// erased.
  struct Match {
    HandRule rule;
    OpId op;  ///< invalid: no node is created, and the only write becomes the only read
    AttributesId attributes;
    std::uint8_t own_count = 0, read_count = 0, write_count = 0;
    std::array<NodeId, 4> own{};  ///< in the order of the graph
    std::array<ValueId, 4> reads{}, writes{};

    void set(std::initializer_list<NodeId> o, std::initializer_list<ValueId> r,
             std::initializer_list<ValueId> w) {
      for (NodeId n : o) own[own_count++] = n;
      for (ValueId v : r) reads[read_count++] = v;
      for (ValueId v : w) writes[write_count++] = v;
    }
  };
  enum class Kind : std::uint8_t { other, add, rms, fused, silu, act, reduce, reshape };

  void know(Kind kind, const char* op, OpId& id);
  void visit(NodeId node);
  template <class Sink>
  bool each(NodeId node, Sink&& sink);
  template <class Sink>
  bool at_add(NodeId add, Sink&& sink);
  template <class Sink>
  bool at_rms(NodeId rms, Sink&& sink);
  template <class Sink>
  bool at_fused(NodeId fused, Sink&& sink);
  template <class Sink>
  bool at_silu(NodeId silu, Sink&& sink);
  template <class Sink>
  bool at_activation(NodeId act, Sink&& sink);
  template <class Sink>
  bool at_reduce(NodeId reduce, Sink&& sink);
  template <class Sink>
  bool at_reshape(NodeId reshape, Sink&& sink);

  const std::vector<NodeId>& norms_of(ValueId value);
  [[nodiscard]] NodeId only_user(ValueId value) const;
  [[nodiscard]] bool is_scale(ValueId value) const;
  [[nodiscard]] bool is_weight_of(ValueId weight, ValueId rows);
  [[nodiscard]] bool same_type(ValueId a, ValueId b) const;
  [[nodiscard]] bool is_last_axis(NodeId node) const;
  [[nodiscard]] bool is_split_in_two(NodeId split);
  [[nodiscard]] bool is_half(NodeId slice, std::int64_t half) const;
  [[nodiscard]] AttributesId merged(NodeId reduce, NodeId norm);
  [[nodiscard]] AttributesId narrow(AttributesId attributes);
  [[nodiscard]] bool is_narrow(AttributesId fused);
  [[nodiscard]] bool legal(const Match& match) const;
  [[nodiscard]] bool reads_stand_before(const Match& match) const;
  [[nodiscard]] bool leads_back(const Match& match) const;
  void apply(const Match& match);
  NodeId make(const Match& match);

  Graph& graph_;
  Context& context_;
  OpId add_, rms_, fused_, quant_, dyn_, silu_, split_, slice_, mul_, act_, reduce_, reshape_;
  OpId rms_quant_, fused_quant_, rms_dyn_, fused_dyn_, act_quant_, act_dyn_, reduce_rms_,
      reduce_add_rms_;
  NameId eps_, group_, dim_, sizes_, start_, end_, step_, shape_, wide_;
  TypeId scale_;
  std::vector<Kind> kinds_;  ///< by op
  // Memoized positive type checks, because layers repeat.
  TypeId weight_, rows_;
  AttributesId halving_;
  std::pair<AttributesId, AttributesId> merged_from_;
  AttributesId merged_, plain_, narrowed_, known_narrow_;
  std::vector<NodeId> norms_, work_;
  HandCounts counts_{};
};

}  // namespace pw::bench
