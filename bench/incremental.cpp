// Exports incremental_report.
#include "bench/incremental.hpp"

#include <fmt/format.h>

#include "base/file.hpp"
#include "dsl/dsl.hpp"
#include "graph/generate.hpp"
#include "graph/text.hpp"
#include "rewriter/incremental.hpp"

namespace pw::bench {
namespace {

constexpr std::size_t kNodes = 20'000;
constexpr double kMostAsked = 0.2;  // of the anchors that a run from scratch asks
constexpr const char* kPass = "all";
constexpr int kTurns = 9;

using Rules = std::shared_ptr<const RuleSet>;
using Input = std::shared_ptr<const Graph>;

/// A node of this op, about so far into the graph.
NodeId node_at(const Graph& graph, std::string_view op, double part) {
  const std::vector<NodeId> order = graph.order();
  auto at = static_cast<std::size_t>(part * static_cast<double>(order.size()));
  while (at + 1 < order.size() && graph.op_of(order[at]).name != op) ++at;
  return order[at];
}

/// One layer loses a norm, another gets an add, a third one its operands the other way round.
Input edited(const Graph& graph, double part) {
  Graph out = graph;
  const NodeId norm = node_at(out, "rms_norm", part);
  out.replace_uses(out.result(norm), out.operand(norm, 0));
  out.erase(norm);
  const NodeId add = node_at(out, "add", part + 0.01);
  const ValueId x = out.operand(add, 0), y = out.operand(add, 1);
  out.set_operand(add, 0, y);
  out.set_operand(add, 1, x);
  const NodeId silu = node_at(out, "silu", part + 0.02);
  NodeSpec spec;
  spec.op = out.op(silu);
  spec.operands = {out.result(silu)};
  spec.results = {{out.type(out.result(silu)), ""}};
  out.insert_before(out.next(silu));
  const NodeId again = out.add_node(spec);
  out.insert_before({});
  out.replace_uses(out.result(silu), out.result(again));
  out.set_operand(again, 0, out.result(silu));
  out.settle();  // as a file that was read leaves it
  return std::make_shared<const Graph>(std::move(out));
}

class Measuring {
 public:
  Measuring(const std::string& rules, Promises& promises)
      : promises_(promises), context_(std::make_shared<Context>()) {
    const std::string text = need(context_, read_file(rules));
    rules_ = load(text);
    const std::string norm = "y = rms_norm(r, w: T[d]){eps}\n";
    guarded_ = load(replaced(text, norm, norm + "  where eps < 0.5\n"));
    silenced_ = load(replaced(text, norm, norm + "  where eps > 0.5\n"));
    LlamaOptions options;
    options.layers = static_cast<std::int64_t>(kNodes / 24);
    options.quant = "fp8";
    options.tp = 2;
    graph_ = std::make_shared<const Graph>(need(context_, generate_llama(context_, options)));
    params_ = need(context_, bind_params(*rules_, {}));
  }

  std::string run() {
    std::vector<double> times;
    std::size_t rewrites = 0;
    for (int i = 0; i < kTurns; ++i)
      times.push_back(cold_seconds([&] {
        Graph copy = *graph_;
        rewrites = need(context_, run_pipeline(copy, *rules_, kPass, params_)).journal.total();
      }));
    table_.add({"from scratch", milliseconds(median(times)), grouped(rewrites), "", ""});
    after_nodes("a few nodes, at the beginning", 0);
    after_nodes("a few nodes, in the middle", 0.5);
    after_nodes("a few nodes, near the end", 0.95);
    after("a rule of each layer, which fires as before", graph_, guarded_);
    after("a rule of each layer, which no longer fires", graph_, silenced_);
    return fmt::format("{} nodes of llama in fp8 on two ranks, the {} rules of rules.pwr.\n\n{}",
                       grouped(graph_->node_count()), rules_->rules.size(), table_.print());
  }

 private:
  Rules load(const std::string& text) {
    return std::make_shared<const RuleSet>(
        need(context_, load_rule_texts(context_, {{"rules.pwr", text}})));
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) die("the rules no longer say " + from);
    return text.replace(at, from.size(), to);
  }

  /// A run, the edit, and the run that is measured. The share of anchors that it asks.
  double after(const std::string& what, const Input& graph, const Rules& rules) {
    std::vector<double> times;
    std::size_t all = 0, asked = 0, recalled = 0, rewrites = 0;
    for (int i = 0; i < kTurns; ++i) {
      IncrementalRun run;
      need(context_, run.run(graph_, rules_, kPass, params_));
      all = run.asked();
      std::optional<IncrementalRun::Rewritten> done;
      times.push_back(
          cold_seconds([&] { done = need(context_, run.run(graph, rules, kPass, params_)); }));
      asked = run.asked();
      recalled = run.recalled();
      rewrites = done->report.journal.total();
      if (i == 0) compare(*done, *graph, *rules);
    }
    table_.add(
        {what, milliseconds(median(times)), grouped(rewrites), grouped(asked), grouped(recalled)});
    return static_cast<double>(asked) / static_cast<double>(all);
  }
  /// The rules are those of before.
  void after_nodes(const std::string& what, double part) {
    const double share = after(what, edited(*graph_, part), rules_);
    promises_.at_most("anchors asked again after an edit of " + what, share, kMostAsked, "×");
  }
  void compare(const IncrementalRun::Rewritten& done, const Graph& input, const RuleSet& rules) {
    Graph copy = input;
    const RewriteReport report = need(context_, run_pipeline(copy, rules, kPass, params_));
    if (print_pwg(copy) != print_pwg(done.graph) ||
        journal_to_json_lines(report.journal, copy, rules) !=
            journal_to_json_lines(done.report.journal, done.graph, rules))
      die("rewriting again gives another graph than rewriting from scratch");
  }

  Promises& promises_;
  ContextPtr context_;
  Rules rules_, guarded_, silenced_;
  Input graph_;
  Env params_;
  Table table_{{"edited", "ms", "rewrites", "anchors asked", "matches taken over"}};
};

}  // namespace

std::string incremental_report(const std::string& rules, Promises& promises) {
  return Measuring(rules, promises).run();
}

}  // namespace pw::bench
