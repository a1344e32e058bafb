// Partial evaluation of a right side (Futamura 1971).
//
// The problem: building a right side looks up ops, evaluates attributes and infers types, which
// costs far more than adding its nodes, and a graph has many matches of equal types. It is built
// once in a separate graph, whose inputs represent the values of the pattern, and read off as a
// list of nodes to add. Invariant: the list depends on types and attributes alone, the key of the
// guard cache (Verdicts). Cost: one build for each distinct key; linear in the recipe afterwards.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/same_type.hpp"
#include "rewriter/engine/known_types.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/strategies/verdicts.hpp"

namespace pw {
namespace {

class Writer {
 public:
  Writer(const Graph& graph, const RuleLayout& layout, const Match& match,
         const Candidate& candidate)
      : graph_(graph),
        rule_(*layout.rule),
        layout_(layout),
        match_(match),
        candidate_(candidate),
        scratch_(graph.context_ptr(), "right side") {}

  Result<Recipe> run() {
    scratch_.facts = with_conditions(graph_, match_.conditions);
    Env env = match_.env;
    add_inputs(env);
    BuildOptions options;
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)  // copied by `..`
      if (candidate_.nodes[i].valid())
        options.open_attributes.emplace(graph_.op_of(candidate_.nodes[i]).name,
                                        graph_.attributes(candidate_.nodes[i]));
    PW_TRY(build_statements(scratch_, rule_.replacement, env, options));
    PW_TRY(read_outputs(env));
    read_nodes();
    compare_with_old();
    return std::move(out_);
  }

 private:
  void add_inputs(Env& env) {
    for (std::size_t i = 0; i < rule_.values.size(); ++i) {
      const std::string& name = rule_.values[PatternValueId(i)].name;
      const auto bound = env.find(name);
      if (name.empty() || name == "_" || bound == env.end()) continue;
      const auto* value = std::get_if<ValueId>(&bound->second);
      if (value == nullptr || !value->valid()) continue;
      const ValueId input =
          scratch_.add_input(scratch_.fresh_name(name), graph_.type(*value), InputKind::input);
      sources_[input.index] = {static_cast<std::uint32_t>(i)};
      bound->second = input;
    }
  }

  Status read_outputs(const Env& env) {
    const Types& types = graph_.context().types;
    for (std::size_t i = 0; i < rule_.outputs.size(); ++i) {
      const std::string& name = rule_.outputs[i];
      const auto bound = env.find(name);
      const auto* to = bound == env.end() ? nullptr : std::get_if<ValueId>(&bound->second);
      if (to == nullptr || !to->valid())
        return fail(rule_.name_span, "N07", fmt::format("`{}` would be none", name));
      const ValueId from = candidate_.values[layout_.outputs[i].index];
      const TypeId before = graph_.type(from), after = scratch_.type(*to);
      const bool unsure = before == after && before == Types::unknown() &&
                          !surely_same_type(graph_, from, scratch_, *to,
                                            [&](ValueId input) { return matched_as(input); });
      if (before != after && !scratch_.is_input(*to) &&
          same_type(scratch_.context(), before, after, scratch_.facts)) {
        scratch_.set_type(*to, before);  // users keep the type they were built with
      } else if (before != after || unsure) {
        const bool known = before != Types::unknown() && after != Types::unknown();
        const bool shape = known && types[before].dtype == types[after].dtype;
        return fail(rule_.name_span, shape ? "N06" : "N05",
                    fmt::format("`{}` is {} and would become {}", name, types.print(before),
                                types.print(after)));
      }
      results_.push_back(*to);
      scratch_.add_output(*to);
    }
    return {};
  }

  void read_nodes() {
    scratch_.erase_dead();
    std::uint32_t made = 0;
    for (NodeId n = scratch_.first(); n.valid(); n = scratch_.next(n)) {
      Recipe::NewNode node;
      node.op = scratch_.op(n);
      node.attributes = scratch_.attributes(n);
      node.first_operand = static_cast<std::uint32_t>(out_.operands.size());
      node.operand_count = static_cast<std::uint32_t>(scratch_.operand_count(n));
      node.first_result = made;
      node.result_count = static_cast<std::uint32_t>(scratch_.result_count(n));
      for (std::size_t i = 0; i < node.operand_count; ++i)
        out_.operands.push_back(source_of(scratch_.operand(n, i)));
      for (std::size_t i = 0; i < node.result_count; ++i) {
        sources_[scratch_.result(n, i).index] = {Recipe::Source::kNew | made++};
        out_.types.push_back(scratch_.type(scratch_.result(n, i)));
      }
      out_.barriers = out_.barriers || is_barrier(scratch_.op_of(n));
      out_.nodes.push_back(node);
    }
    out_.reads.resize(rule_.values.size());
    for (const Recipe::Source& source : out_.operands)
      if (!source.absent() && !source.fresh()) out_.reads[source.index()] = 1;
    for (ValueId v : results_) out_.outputs.push_back(source_of(v));
  }

  /// Returns the graph's value that an input of the right side represents.
  [[nodiscard]] ValueId matched_as(ValueId input) const {
    const auto known = sources_.find(input.index);
    return known == sources_.end() ? ValueId() : candidate_.values[known->second.index()];
  }

  [[nodiscard]] Recipe::Source source_of(ValueId v) const {
    const auto known = v.valid() ? sources_.find(v.index) : sources_.end();
    return known == sources_.end() ? Recipe::Source{} : known->second;
  }

  /// Compares with the old nodes. A result can equal the old one only if each output comes from a
  /// node like the one it replaces.
  void compare_with_old() {
    out_.may_change_nothing = !out_.outputs.empty();
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const PatternValue& old = rule_.values[layout_.outputs[i]];
      const bool fresh = out_.outputs[i].fresh();
      const OpId before = graph_.op(candidate_.nodes[old.producer.index]);
      out_.may_change_nothing =
          out_.may_change_nothing && fresh && scratch_.op(scratch_.producer(results_[i])) == before;
    }
  }

  const Graph& graph_;
  const Rule& rule_;
  const RuleLayout& layout_;
  const Match& match_;
  const Candidate& candidate_;
  Graph scratch_;
  Recipe out_;
  std::vector<ValueId> results_;
  std::unordered_map<std::uint32_t, Recipe::Source> sources_;  // by scratch value; looked up only
};

}  // namespace

Result<Recipe> make_recipe(const Graph& graph, const RuleLayout& layout, const Match& match,
                           const Candidate& candidate) {
  return Writer(graph, layout, match, candidate).run();
}

}  // namespace pw
