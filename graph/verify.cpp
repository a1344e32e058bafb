#include "graph/verify.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/infer/infer.hpp"
#include "graph/same_type.hpp"

namespace pw {
namespace {

constexpr std::size_t kMaxFindings = 20;

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), context_(graph.context()) {}

  Diagnostics run() {
    if (!check_list()) return std::move(found_);  // nothing else can be walked
    collect_values();
    check_names();
    for (NodeId n = graph_.first(); n.valid() && found_.size() < kMaxFindings; n = graph_.next(n)) {
      bool reads = check_operands(n);
      check_uses_of(n);
      bool fits = check_arity(n);
      bool attributes = check_attributes(n);
      if (reads && fits && attributes) check_types(n);
    }
    for (ValueId v : graph_.inputs()) check_use_list(v);
    check_outputs();
    check_writes();
    if (found_.size() > kMaxFindings) found_.resize(kMaxFindings);
    return std::move(found_);
  }

 private:
  void report(std::string_view code, std::string place, std::string message) {
    if (found_.size() < kMaxFindings)
      found_.push_back(
          error_in("graph " + graph_.name + " at " + std::move(place), code, std::move(message)));
  }
  std::string place(NodeId n) const {
    return fmt::format("node `{}` ({})", graph_.node_name(n), graph_.op_of(n).name);
  }

  // The order list: each node once, linked both ways, labels rising, all alive.
  bool check_list() {
    std::size_t count = 0;
    NodeId previous;
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      if (++count > graph_.node_bound()) {
        report("PW0601", "the order list", "it does not end");
        return false;
      }
      if (!graph_.alive(n)) report("PW0601", place(n), "a dead node is in the order list");
      if (graph_.previous(n) != previous)
        report("PW0601", place(n), "the order list is not doubly linked");
      if (previous.valid() && graph_.label(previous) >= graph_.label(n))
        report("PW0601", place(n), "the labels of the order list are not ascending");
      previous = n;
    }
    if (previous != graph_.last())
      report("PW0601", "the order list", "its last node is not the one recorded");
    if (count != graph_.node_count())
      report("PW0601", "the order list",
             fmt::format("it has {} nodes, but the graph has {}", count, graph_.node_count()));
    check_counts();
    return found_.empty();
  }

  void check_counts() {
    const OpTable& ops = context_.ops;
    std::vector<std::size_t> counts(ops.size(), 0);
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) ++counts[graph_.op(n).index];
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (const OpId op(i); counts[i] != graph_.node_count(op))
        report("PW0601", "the counts of ops",
               fmt::format("it has {} nodes of `{}`, but the graph has {}", counts[i], ops[op].name,
                           graph_.node_count(op)));
  }

  void collect_values() {
    for (ValueId v : graph_.inputs()) values_.push_back(v);
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        values_.push_back(graph_.result(n, i));
  }
  bool live(ValueId v) const {
    if (!v.valid() || v.index >= graph_.value_bound()) return false;
    return graph_.is_input(v) || graph_.alive(graph_.producer(v));  // inputs do not go away
  }

  void check_names() {
    std::unordered_map<std::string_view, ValueId> names;
    for (ValueId v : values_) {
      std::string name(graph_.value_name(v));
      if (name.empty()) report("PW0606", "a value", "it has no name");
      if (!names.emplace(graph_.value_name(v), v).second)
        report("PW0606", "value `" + name + "`", "another value has this name");
    }
  }

  bool check_operands(NodeId n) {
    bool ok = true;
    for (std::size_t i = 0; i < graph_.operand_count(n); ++i) {
      ValueId v = graph_.operand(n, i);
      if (!v.valid()) continue;
      if (!live(v)) {
        report("PW0602", place(n), fmt::format("operand {} is not a value of the graph", i));
        ok = false;
      } else if (!graph_.is_input(v) && graph_.label(graph_.producer(v)) >= graph_.label(n)) {
        report("PW0602", place(n),
               fmt::format("operand {}, `{}`, is defined at or after its use", i,
                           graph_.value_name(v)));
      }
    }
    return ok;
  }
  void check_uses_of(NodeId n) {
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      ValueId v = graph_.result(n, i);
      if (graph_.producer(v) != n || graph_.result_index(v) != i)
        report("PW0603", place(n), fmt::format("result {} does not know its producer", i));
      check_use_list(v);
    }
  }
  void check_use_list(ValueId v) {
    std::size_t count = 0;
    std::string where = fmt::format("value `{}`", graph_.value_name(v));
    for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u)) {
      if (++count > graph_.use_count(v)) break;
      if (!graph_.alive(graph_.user(u)))
        report("PW0603", where, "a dead node is among its users");
      else if (graph_.operand(graph_.user(u), graph_.use_operand(u)) != v)
        report("PW0603", where,
               fmt::format("`{}` is listed as a user, but reads something else",
                           graph_.node_name(graph_.user(u))));
    }
    if (count != graph_.use_count(v))
      report("PW0603", where, "its number of users differs from the recorded one");
  }

  bool check_arity(NodeId n) {
    const Op& op = graph_.op_of(n);
    if (op.imported) return true;
    bool variadic = !op.operands.empty() && op.operands.back().variadic;
    std::size_t least = op.operands.size() - (variadic ? 1 : 0), count = graph_.operand_count(n);
    if (count < least || (!variadic && count > least)) {
      report(
          "PW0604", place(n),
          fmt::format("it has {} operands, not {}{}", count, variadic ? "at least " : "", least));
      return false;
    }
    bool ok = true;
    for (std::size_t i = 0; i < count; ++i) {
      const OperandDecl& decl = op.operands[std::min(i, op.operands.size() - 1)];
      if (graph_.operand(n, i).valid() || decl.optional) continue;
      report("PW0604", place(n), fmt::format("operand `{}` is absent", decl.name));
      ok = false;
    }
    bool many = std::any_of(op.results.begin(), op.results.end(),
                            [](const ResultDecl& r) { return r.variadic; });
    if (!many && graph_.result_count(n) != op.results.size()) {
      report("PW0604", place(n),
             fmt::format("it has {} results, not {}", graph_.result_count(n), op.results.size()));
      ok = false;
    }
    return ok;
  }

  std::vector<TypeId> operand_types(NodeId n) const {
    std::vector<TypeId> out;
    for (ValueId v : graph_.operands(n)) out.push_back(v.valid() ? graph_.type(v) : TypeId());
    return out;
  }

  // Complete attributes stay as they are when they are completed again.
  bool check_attributes(NodeId n) {
    const Op& op = graph_.op_of(n);
    if (op.imported) return true;
    std::vector<TypeId> types = operand_types(n);
    Result<AttributesId> completed =
        complete_attributes(context_, op, context_.attributes[graph_.attributes(n)], types);
    if (!completed) {
      for (const Diagnostic& d : completed.error()) report("PW0605", place(n), d.message);
      return false;
    }
    if (*completed == graph_.attributes(n)) return true;
    report("PW0605", place(n),
           "its attributes are incomplete: " + context_.attributes.print(graph_.attributes(n)) +
               " should be " + context_.attributes.print(*completed));
    return false;
  }

  void check_types(NodeId n) {
    if (graph_.op_of(n).imported) return;
    std::vector<TypeId> types = operand_types(n);
    Result<std::vector<TypeId>> inferred =
        infer_types(context_, graph_.facts, graph_.op(n), types, graph_.attributes(n),
                    static_cast<int>(graph_.result_count(n)));
    if (!inferred) {
      for (const Diagnostic& d : inferred.error()) report("PW0607", place(n), d.message);
      return;
    }
    if (inferred->size() != graph_.result_count(n))
      return report(
          "PW0604", place(n),
          fmt::format("it has {} results, not {}", graph_.result_count(n), inferred->size()));
    for (std::size_t i = 0; i < inferred->size(); ++i) {
      TypeId type = graph_.type(graph_.result(n, i)), wanted = (*inferred)[i];
      if (wanted != Types::unknown() && !same_type(context_, type, wanted, graph_.facts))
        report("PW0607", place(n),
               fmt::format("result `{}` has type {}, but its op gives {}",
                           graph_.value_name(graph_.result(n, i)), context_.types.print(type),
                           context_.types.print(wanted)));
    }
  }

  void check_outputs() {
    std::map<ValueId, std::size_t> counts;
    for (ValueId v : graph_.outputs()) ++counts[v];
    for (const auto& [v, count] : counts) {
      if (!live(v))
        report("PW0608", "the outputs", "one of them is not a value of the graph");
      else if (count != graph_.output_count(v))
        report("PW0608", fmt::format("output `{}`", graph_.value_name(v)),
               "it is not an output as often as recorded");
    }
  }

  // A write is the last output of its input: of an input, once each, of the same type.
  void check_writes() {
    std::set<ValueId> seen;
    const std::vector<ValueId>& written = graph_.written_inputs();
    if (written.size() > graph_.outputs().size())
      return report("PW0609", "the writes", "there are more writes than outputs");
    for (std::size_t i = 0; i < written.size(); ++i) {
      const ValueId input = written[i], value = graph_.outputs()[graph_.returned_count() + i];
      if (!live(input) || !graph_.is_input(input)) {
        report("PW0609", "the writes", "one of them does not belong to an input");
        continue;
      }
      const std::string place = fmt::format("written input `{}`", graph_.value_name(input));
      if (!seen.insert(input).second) report("PW0609", place, "it is written twice");
      if (live(value) && !same_type(context_, graph_.type(value), graph_.type(input), graph_.facts))
        report("PW0609", place,
               fmt::format("it is {}, and {} is written to it",
                           context_.types.print(graph_.type(input)),
                           context_.types.print(graph_.type(value))));
    }
  }

  const Graph& graph_;
  Context& context_;
  std::vector<ValueId> values_;
  Diagnostics found_;
};

}  // namespace

Diagnostics verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace pw
