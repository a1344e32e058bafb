// Exports RuleEngine's matching by machine code: the text of its program compiled by the compiler
// that the options lend, and the functions that the code calls. Without a compiler the program is
// interpreted, and a warning says so.
#include "rewriter/engine.hpp"

namespace pw {

/// The gates that are asked of registers; those of numbers look further.
NativeGates RuleEngine::native_gates(std::uint32_t index) const {
  const Prepared& rule = rules_[index];
  NativeGates out;
  out.asked = rule.simple && !rule.verdicts->reads_numbers();
  out.only_counted = !rule.compares;
  out.permutable = rule.permutable;
  out.always_convex = rule.always_convex;
  out.nodes = rule.reading.nodes;
  out.values = rule.reading.values;
  out.own = rule.reading.ends.own;
  out.outputs = rule.reading.ends.outputs;
  out.reads = rule.reading.ends.reads;
  out.consumed = rule.reading.ends.consumed;
  return out;
}

void RuleEngine::compile_natively() {
  if (program_.code.empty()) return;
  std::vector<NativeGates> gates;
  for (std::uint32_t i = 0; i < rules_.size(); ++i) gates.push_back(native_gates(i));
  Result<NativeMatcher> made =
      run_.options.compiler->compile(native_text(program_, gates, constant_));
  if (!made) return run_.warn_interpreted(made.error());
  native_ = std::move(*made);
  native_counted_.assign(rules_.size(), 0);
  NativeState& state = native_state_;
  state = {};
  state.nodes = registers_->nodes.data();
  state.values = registers_->values.data();
  state.swaps = registers_->swaps.data();
  state.engine = this;
  state.counted = native_counted_.data();
  note_guesses();
  state.accept = [](void* self, std::uint32_t rule, std::uint32_t anchor, std::uint32_t gate) {
    auto& engine = *static_cast<RuleEngine*>(self);
    const std::uint64_t edition = engine.graph_.edition();
    const bool leave_out =
        engine.accept(rule, NodeId(std::size_t{anchor}), static_cast<Gate>(gate));
    if (engine.choice_count_ > 0 || engine.offers_ > 0 || !engine.asked_.empty())
      engine.native_state_.found = 1;
    if (engine.graph_.edition() != edition)  // tried out, and undone
      engine.native_state_.graph = GraphArrays::of(engine.graph_);
    return std::uint32_t{leave_out};
  };
  state.finish = [](void* self, std::uint32_t anchor) {
    auto& engine = *static_cast<RuleEngine*>(self);
    NativeState& now = engine.native_state_;
    const NodeId node(std::size_t{anchor});
    if (now.stopped != NativeState::kRunning) engine.give_up(now.stopped, node);
    engine.finish_attempt(node);
    engine.choice_count_ = 0;
    engine.asked_.clear();
    now.stopped = NativeState::kRunning;
    now.found = 0;
    now.steps = engine.steps_;
    now.graph = GraphArrays::of(engine.graph_);
    engine.asked_last_ = node;
    return std::uint32_t{engine.offers_ > 0};
  };
}

/// Anew when the verdicts are.
void RuleEngine::note_guesses() {
  guesses_.clear();
  for (const Prepared& rule : rules_) guesses_.push_back(rule.verdicts->guesses());
  native_state_.guesses = guesses_.data();
}

/// Returns the node behind the last one.
NodeId RuleEngine::run_natively(NodeId first, std::size_t count, std::uint64_t until) {
  NativeState& state = native_state_;
  state.graph = GraphArrays::of(graph_);
  state.steps = steps_;
  state.until = until;
  state.phase = seeding_    ? NativeState::seeding
                : sweeping_ ? NativeState::sweeping
                            : NativeState::any;
  state.counting = counting_ ? 1 : 0;
  state.careful = careful_ ? 1 : 0;
  state.barriers = run_.barriers ? 1 : 0;
  choice_count_ = 0;
  asked_.clear();
  return NodeId(std::size_t{native_.run(&state, first.index, count)});
}

void RuleEngine::seed_natively() {
  std::size_t seen = 0;
  for (NodeId n = graph_.first(); n.valid(); seen += kTold) {
    tell(seen, graph_.node_count(), "nodes");
    n = run_natively(n, kTold);
  }
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    counted_ += native_counted_[i];
    if (rules_[i].stats != nullptr) rules_[i].stats->hits += native_counted_[i];
    native_counted_[i] = 0;
  }
}

}  // namespace pw
