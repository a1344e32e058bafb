// The benchmark of rewriting again after an edit: a few nodes, or one rule, of a graph that was
// rewritten before. Ends with what must hold, and exit code 1 if it does not.
#include "rewriter/incremental.hpp"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "bench/measure.hpp"
#include "bench/page.hpp"
#include "dsl/dsl.hpp"
#include "graph/generate.hpp"
#include "graph/text.hpp"

namespace pw::bench {
namespace {

constexpr std::size_t kNodes = 20'000;
constexpr double kMostMilliseconds = 5;
constexpr const char* kPass = "all";
constexpr int kTurns = 15;

using Rules = std::shared_ptr<const RuleSet>;
using Input = std::shared_ptr<const Graph>;

/// A node of this op, about so far into the graph.
NodeId node_at(const Graph& graph, std::string_view op, double part) {
  const std::vector<NodeId> order = graph.order();
  auto at = static_cast<std::size_t>(part * static_cast<double>(order.size()));
  while (at + 1 < order.size() && graph.op_of(order[at]).name != op) ++at;
  return order[at];
}

/// One layer loses a norm, another has the operands of an add the other way round, a third one a
/// silu twice.
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

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) die("the rules no longer say " + from);
  return text.replace(at, from.size(), to);
}

class Measuring {
 public:
  explicit Measuring(const std::string& rules) : context_(std::make_shared<Context>()) {
    const std::string text = need(context_, read_file(rules));
    rules_ = load(text);
    params_ = need(context_, bind_params(*rules_, {}));
    LlamaOptions options;
    options.layers = static_cast<std::int64_t>(kNodes / 24);
    options.quant = "fp8";
    options.tp = 2;
    graph_ = std::make_shared<const Graph>(need(context_, generate_llama(context_, options)));
    const std::string norm = "y = rms_norm(r, w: T[d]){eps}\n";
    // rms_quant comes first of the two rules that say so; one norm of the graph is quantised alone.
    const std::string alone = "y = rms_norm(x: T[*b, d], w: T[d]){eps}\n";
    few_ = load(replaced(text, alone, alone + "  where eps > 0.5\n"));
    as_before_ = load(replaced(text, norm, norm + "  where eps < 0.5\n"));
    no_more_ = load(replaced(text, norm, norm + "  where eps > 0.5\n"));
  }

  int run(const std::string& output) {
    const std::string head = fmt::format(
        "{}; GCC {}.{}. Processor time, medians of {} runs, each with cold caches. {} nodes of "
        "llama in fp8 on two ranks, the {} rules of rules.pwr.\n\n",
        machine(), __GNUC__, __GNUC_MINOR__, kTurns, grouped(graph_->node_count()),
        rules_->rules.size());
    from_scratch();
    after("a few nodes, at the beginning", edited(*graph_, 0), rules_);
    after("a few nodes, in the middle", edited(*graph_, 0.5), rules_);
    after("a few nodes, near the end", edited(*graph_, 0.95), rules_);
    after("a rule that fires once, and no longer does", graph_, few_);
    after("a rule of each layer, which fires as before", graph_, as_before_);
    after("a rule of each layer, which no longer fires", graph_, no_more_);
    after("a rule of each layer, which fires again", graph_, rules_, {no_more_});
    after("a few nodes, and a rule of each layer before", edited(*graph_, 0.5), rules_,
          {rules_, no_more_, rules_});
    const std::string text = head + table_.print() + "\n" + promises_.print();
    std::fputs(text.c_str(), stdout);
    if (!output.empty()) need(context_, write_section(output, "Rewriting after an edit", text));
    return promises_.kept() ? 0 : 1;
  }

 private:
  Rules load(const std::string& text) {
    return std::make_shared<const RuleSet>(
        need(context_, load_rule_texts(context_, {{"rules.pwr", text}})));
  }
  void from_scratch() {
    std::vector<double> times;
    std::size_t rewrites = 0;
    for (int i = 0; i < kTurns; ++i)
      times.push_back(cold_seconds([&] {
        Graph copy = *graph_;
        rewrites = need(context_, run_pipeline(copy, *rules_, kPass, params_)).journal.total();
      }));
    table_.add({"nothing: from scratch", milliseconds(median(times)), "", grouped(rewrites), "", "",
                "", ""});
  }
  /// Runs by rules before, and the update that is measured.
  void after(const std::string& what, const Input& graph, const Rules& rules,
             std::vector<Rules> before = {}) {
    if (before.empty()) before.push_back(rules_);
    std::vector<double> updates, results;
    IncrementalRun::Counters counters;
    for (int i = 0; i < kTurns; ++i) {
      IncrementalRun run;
      for (const Rules& one : before) need(context_, run.update(graph_, one, kPass, params_));
      updates.push_back(
          cold_seconds([&] { need(context_, run.update(graph, rules, kPass, params_)); }));
      std::optional<IncrementalRun::Rewritten> done;
      results.push_back(cold_seconds([&] { done = need(context_, run.result()); }));
      counters = run.counters();
      if (i == 0) compare(*done, *graph, *rules);
    }
    const double update = median(updates);
    table_.add({what, milliseconds(update), milliseconds(median(results)),
                grouped(counters.rewrites), grouped(counters.undone), grouped(counters.redone),
                grouped(counters.asked), counters.why});
    promises_.at_most("after an edit of " + what, update * 1e3, kMostMilliseconds, " ms");
  }
  void compare(const IncrementalRun::Rewritten& done, const Graph& input, const RuleSet& rules) {
    Graph copy = input;
    const RewriteReport report = need(context_, run_pipeline(copy, rules, kPass, params_));
    if (print_pwg(copy) != print_pwg(done.graph) ||
        journal_to_json_lines(report.journal, copy, rules) !=
            journal_to_json_lines(done.report.journal, done.graph, rules))
      die("rewriting again gives another graph than rewriting from scratch");
  }

  ContextPtr context_;
  Rules rules_, few_, as_before_, no_more_;
  Input graph_;
  Env params_;
  Promises promises_;
  Table table_{{"edited", "update ms", "graph and journal ms", "rewrites", "undone", "made again",
                "anchors asked", "from scratch, because"}};
};

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  CLI::App app{"Times rewriting after an edit. Exit code 1: something that must hold does not."};
  std::string rules = PW_BENCH_RULES, output;
  app.add_option("--rules", rules, "the rules");
  app.add_option("-o,--output", output, "also write the section of this processor in this page");
  CLI11_PARSE(app, argc, argv);
  return pw::bench::Measuring(rules).run(output);
}
