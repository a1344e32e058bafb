// The matched items of both graphs are compared one by one; unmatched items are removed or added.
// Changes that are equal up to names and numbers in strings are folded into one entry by their key.
// Linear in both graphs, but for sorting.
#include "graph/compare/graph_diff.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

/// A change, with the key by which it equals others.
struct Found {
  GraphChange change;
  std::string key;
};

/// Removes numbers in strings (`"layers.3.attn"`), which identify layers, not changes.
std::string without_numbers(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    const bool digit = quoted && is_digit(c);
    if (!digit)
      out += c;
    else if (out.back() != '#')
      out += '#';
  }
  return out;
}

std::string print_list(const std::vector<std::string>& parts, const char* between) {
  return fmt::format("{}", fmt::join(parts, between));
}

class Differ {
 public:
  Differ(const Graph& before, const Graph& after, const GraphMatch& match)
      : before_(before), after_(after), match_(match), context_(before.context()) {}

  GraphDiff run(bool fold) {
    symbols();
    inputs();
    for (NodeId n = before_.first(); n.valid(); n = before_.next(n))
      if (!match_.node_after[n.index].valid()) lone(ChangeKind::removed, before_, n);
    for (NodeId n = after_.first(); n.valid(); n = after_.next(n))
      if (!match_.node_before[n.index].valid()) lone(ChangeKind::added, after_, n);
    for (NodeId n = before_.first(); n.valid(); n = before_.next(n))
      if (match_.node_after[n.index].valid()) both(n, match_.node_after[n.index]);
    outputs();
    for (Found& found : found_) put(std::move(found), fold);
    for (std::size_t i = 0; i < out_.changes.size(); ++i)
      if (!last_group_[i].empty() && last_group_[i] != out_.changes[i].where)
        out_.changes[i].where += " … " + last_group_[i];
    return std::move(out_);
  }

 private:
  // ---- gathering
  void put(Found found, bool fold) {
    const auto [at, fresh] = by_key_.try_emplace(found.key, out_.changes.size());
    if (fold && !fresh) {
      ++out_.changes[at->second].count;
      last_group_[at->second] = std::move(found.change.where);
      return;
    }
    last_group_.emplace_back();
    out_.changes.push_back(std::move(found.change));
  }
  void add(GraphChange change, const std::string& detail) {
    std::string key = fmt::format("{}\n{}\n{}", name(change.kind), change.thing, detail);
    found_.push_back({std::move(change), std::move(key)});
  }

  // ---- symbols and inputs
  static std::string print(const SymbolFact& fact) {
    std::string out = fmt::format("{}..{}", fact.min, fact.max);
    if (fact.multiple != 1) out += fmt::format(" by {}", fact.multiple);
    return fact.role.empty() ? out : out + " " + fact.role;
  }
  void symbols() {
    for (const auto& [symbol, fact] : before_.facts.symbols) {
      const SymbolFact* now = after_.facts.find(symbol);
      const std::string old = print(fact);
      if (now == nullptr)
        add({ChangeKind::removed, 1, "symbol", old, symbol, ""}, symbol);
      else if (print(*now) != old)
        add({ChangeKind::changed, 1, "symbol", old + " → " + print(*now), symbol, ""}, symbol);
    }
    for (const auto& [symbol, fact] : after_.facts.symbols)
      if (before_.facts.find(symbol) == nullptr)
        add({ChangeKind::added, 1, "symbol", print(fact), symbol, ""}, symbol);
  }

  static std::string print_input(const Graph& graph, ValueId v) {
    return fmt::format("{} {}{}", name(graph.input_kind(v)),
                       graph.context().types.print(graph.type(v)),
                       print_replicated(graph.replicated_over(v)));
  }
  void inputs() {
    for (const ValueId v : before_.inputs()) {
      const ValueId now = match_.value_after[v.index];
      const std::string old = print_input(before_, v), called(before_.value_name(v));
      if (!now.valid()) {
        add({ChangeKind::removed, 1, "input", old, called, ""}, old);
        continue;
      }
      if (after_.value_name(now) != called) ++out_.renamed_inputs;
      const std::string what = old + " → " + print_input(after_, now);
      if (old != print_input(after_, now))
        add({ChangeKind::changed, 1, "input", what, called, ""}, what);
    }
    for (const ValueId v : after_.inputs())
      if (!match_.value_before[v.index].valid())
        add({ChangeKind::added, 1, "input", print_input(after_, v),
             std::string(after_.value_name(v)), ""},
            print_input(after_, v));
  }

  // ---- nodes
  std::string type_of(const Graph& graph, ValueId v) const {
    return v.valid() ? context_.types.print(graph.type(v)) : "none";
  }
  void lone(ChangeKind kind, const Graph& graph, NodeId n) {
    ++(kind == ChangeKind::removed ? out_.removed : out_.added);
    std::vector<std::string> operands, results;
    for (const ValueId v : graph.operands(n)) operands.push_back(type_of(graph, v));
    for (std::size_t r = 0; r < graph.result_count(n); ++r)
      results.push_back(type_of(graph, graph.result(n, r)));
    const std::string what =
        fmt::format("({}){} → {}", print_list(operands, ", "),
                    context_.attributes.print(graph.attributes(n)), print_list(results, ", "));
    add({kind, 1, graph.op_of(n).name, what, std::string(graph.node_name(n)),
         std::string(graph.group(n))},
        without_numbers(what));
  }

  /// The differing parts, as text and as a key for comparison with other changes.
  struct Parts {
    std::vector<std::string> shown, compared;
    void add(const std::string& text) { add(text, without_numbers(text)); }
    void add(std::string text, std::string key) {
      shown.push_back(std::move(text));
      compared.push_back(std::move(key));
    }
  };
  void both(NodeId n, NodeId m) {
    ++out_.matched;
    Parts parts;
    const std::string op = before_.op_of(n).name;
    if (before_.op(n) != after_.op(m)) parts.add("op: " + op + " → " + after_.op_of(m).name);
    if (before_.attributes(n) != after_.attributes(m)) attributes(n, m, parts);
    results(n, m, parts);
    operands(n, m, parts);
    if (parts.shown.empty()) return;
    ++out_.changed;
    add({ChangeKind::changed, 1, op, print_list(parts.shown, "; "),
         std::string(before_.node_name(n)), std::string(before_.group(n))},
        print_list(parts.compared, "; "));
  }

  void attributes(NodeId n, NodeId m, Parts& parts) const {
    std::map<std::string, std::pair<const Attribute*, const Attribute*>> all;
    for (const auto& [key, value] : context_.attributes[before_.attributes(n)])
      all[std::string(context_.strings.text(key))].first = &value;
    for (const auto& [key, value] : context_.attributes[after_.attributes(m)])
      all[std::string(context_.strings.text(key))].second = &value;
    const auto print = [&](const Attribute* value) {
      return value == nullptr ? std::string("absent") : context_.attributes.print(*value);
    };
    for (const auto& [key, values] : all)
      if (print(values.first) != print(values.second))
        parts.add(fmt::format("{}: {} → {}", key, print(values.first), print(values.second)));
  }

  void results(NodeId n, NodeId m, Parts& parts) const {
    const std::size_t olds = before_.result_count(n), news = after_.result_count(m);
    for (std::size_t r = 0; r < std::max(olds, news); ++r) {
      const std::string old = r < olds ? type_of(before_, before_.result(n, r)) : "absent";
      const std::string now = r < news ? type_of(after_, after_.result(m, r)) : "absent";
      if (old != now)
        parts.add(olds == 1 && news == 1 ? fmt::format("type: {} → {}", old, now)
                                         : fmt::format("result {}: {} → {}", r, old, now));
    }
  }

  void operands(NodeId n, NodeId m, Parts& parts) const {
    const std::size_t olds = before_.operand_count(n), news = after_.operand_count(m);
    for (std::size_t k = 0; k < std::max(olds, news); ++k) {
      const bool in_both = k < olds && k < news;
      const ValueId a = k < olds ? before_.operand(n, k) : ValueId();
      const ValueId b = k < news ? after_.operand(m, k) : ValueId();
      if (in_both && stays(a, b)) continue;
      const std::string old = k < olds ? called(before_, a) : "absent";
      const std::string now = k < news ? called(after_, b) : "absent";
      parts.add(fmt::format("operand {}: {} → {}{}", k, old, old == now ? "another " : "", now),
                fmt::format("operand {}: {} → {}", k, k < olds ? made_by(before_, a) : "absent",
                            k < news ? made_by(after_, b) : "absent"));
    }
  }

  /// Returns true if two values correspond, or if both were replaced: such values are listed on
  /// their own.
  [[nodiscard]] bool stays(ValueId a, ValueId b) const {
    if (!a.valid() || !b.valid()) return a.valid() == b.valid();
    if (match_.value_after[a.index] == b) return true;
    return !match_.value_after[a.index].valid() && !match_.value_before[b.index].valid();
  }
  static std::string called(const Graph& graph, ValueId v) {
    return v.valid() ? print_name(graph.value_name(v)) : "none";
  }
  static std::string made_by(const Graph& graph, ValueId v) {
    if (!v.valid()) return "none";
    if (graph.is_input(v)) return "input " + graph.context().types.print(graph.type(v));
    return fmt::format("{}.{}", graph.op_of(graph.producer(v)).name, graph.result_index(v));
  }

  // ---- outputs
  static ValueId written_by(const Graph& graph, std::size_t output) {
    return output < graph.returned_count()
               ? ValueId()
               : graph.written_inputs()[output - graph.returned_count()];
  }
  /// Returns true if an output is returned on both sides, or written to the same input.
  [[nodiscard]] bool same_write(std::size_t output) const {
    const ValueId a = written_by(before_, output), b = written_by(after_, output);
    return a.valid() == b.valid() && (!a.valid() || stays(a, b));
  }
  /// Prints a returned value, or `written to cache: cache_1`.
  static std::string output_of(const Graph& graph, std::size_t output) {
    const ValueId input = written_by(graph, output);
    const std::string value = called(graph, graph.outputs()[output]);
    return input.valid() ? fmt::format("written to {}: {}", graph.value_name(input), value) : value;
  }

  void outputs() {
    const auto &old = before_.outputs(), &now = after_.outputs();
    std::size_t begin = 0, end = 0;  // what is the same at both ends
    const std::size_t least = std::min(old.size(), now.size());
    if (old.size() != now.size()) {
      while (begin < least && stays(old[begin], now[begin])) ++begin;
      while (begin + end < least && stays(old[old.size() - 1 - end], now[now.size() - 1 - end]))
        ++end;
    }
    for (std::size_t i = begin; i + end < std::max(old.size(), now.size()); ++i) {
      const bool in_old = i + end < old.size(), in_new = i + end < now.size();
      if (in_old && in_new && stays(old[i], now[i]) && same_write(i)) continue;
      const std::string a = in_old ? output_of(before_, i) : "";
      const std::string b = in_new ? output_of(after_, i) : "";
      const ChangeKind kind = !in_new   ? ChangeKind::removed
                              : !in_old ? ChangeKind::added
                                        : ChangeKind::changed;
      add({kind, 1, "output",
           fmt::format("output {}: {}{}{}", i, a, in_old && in_new ? " → " : "", b), in_old ? a : b,
           ""},
          std::to_string(i));
    }
  }

  const Graph &before_, &after_;
  const GraphMatch& match_;
  Context& context_;
  std::vector<Found> found_;
  std::map<std::string, std::size_t> by_key_;
  std::vector<std::string> last_group_;  ///< by change
  GraphDiff out_;
};

}  // namespace

std::string_view name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::removed: return "removed";
    case ChangeKind::added: return "added";
    case ChangeKind::changed: return "changed";
  }
  return "?";
}

GraphDiff diff_graphs(const Graph& before, const Graph& after, const GraphMatch& match, bool fold) {
  return Differ(before, after, match).run(fold);
}

}  // namespace pw
