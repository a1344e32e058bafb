// Exports the command explain, and adds opt, which is in opt_command.cpp.
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/rewriting.hpp"
#include "graph/text.hpp"

namespace pw::cli {
namespace {

struct ExplainArgs {
  std::string rule;
  GraphOptions graph;
  RuleOptions rules;
};

struct Code {
  std::string_view code, meaning;
};
constexpr std::array<Code, 16> kCodes{{
    {"N01", "op: the node has another op than the pattern asks for"},
    {"N02", "arity: the node has another number of operands or results"},
    {"N03",
     "operand order: it would match with its operands swapped, but the op is not commutative"},
    {"N04",
     "attribute: an attribute has another value; one that the pattern does not write must hold its "
     "default"},
    {"N05", "dtype: an element type differs"},
    {"N06", "shape: a shape does not fit, or cannot be proved to fit; the known facts are printed"},
    {"N07", "variable: one name would stand for two things"},
    {"N08",
     "extra users: a value that the rule consumes is used outside the match; rebind it on the "
     "right, or put it into `given { }`"},
    {"N09", "guard: a `where` is false or not known; its parts are printed"},
    {"N10", "consumed: another rule took the node first"},
    {"N11", "absent: the rule is not in this pipeline, or its family has no variant"},
    {"N12", "fuel: the pass had used up its fuel"},
    {"N13", "cycle: a path leads from an output back to an input; it is printed"},
    {"N14", "barrier: a mutation or an alias stands between the nodes"},
    {"N15", "boundary: the match would cross a piece boundary"},
    {"N16", "precedence: an `over` rule or a lower cost won"},
}};

void run_explain(const Options& options, const ExplainArgs& args) {
  Session session(options);
  for (const Code& code : kCodes) {
    if (args.rule != code.code) continue;
    fmt::print("{} {}\n", code.code, code.meaning);
    return;
  }
  if (args.graph.path.empty())
    session.die("`" + args.rule + "` is no code N01 … N16; to explain a rule, name a graph too",
                "pwr explain add_rms model.json -r llm", kUsage);
  LoadedRules rules = load(session, args.rules);
  std::vector<RuleId> ids = rules.set.resolve(args.rule);
  if (ids.empty()) {
    std::vector<std::string> names;
    for (const Rule& rule : rules.set.rules) names.push_back(rule.name);
    std::string near = nearest(args.rule, names);
    session.die("there is no rule `" + args.rule + "`",
                near.empty() ? "" : "did you mean `" + near + "`?", kUsage);
  }
  Graph graph = load(session, args.graph);
  if (!args.rules.pipeline.empty()) rewritten(session, graph, rules, args.rules.pipeline, {});
  bool any = false;
  for (RuleId id : ids) {
    const Rule& rule = rules.set.rules[id];
    std::size_t matches = find_matches(graph, rules.set, id, rules.params).size();
    if (matches > 0) {
      fmt::print("{}: {} match{}\n", rule.name, matches, matches == 1 ? "" : "es");
      any = true;
      continue;
    }
    std::optional<Rejection> why = explain(graph, rules.set, id, rules.params);
    if (!why) {
      fmt::print("{}: no node of the graph has an op of its pattern\n", rule.name);
      continue;
    }
    Diagnostic d;
    d.severity = Severity::note;
    d.code = why->code;
    d.message =
        fmt::format("`{}` matched {} of {} nodes at %{}, then stopped", rule.name, why->matched,
                    rule.nodes.size(), why->at.valid() ? graph.node_name(why->at) : "?");
    d.span = why->span;
    d.label = why->message;
    if (why->at.valid()) d.notes.push_back(print_node(graph, why->at));
    std::fputs(render({d}, session.context->sources, {session.color(), 20}).c_str(), stdout);
  }
  if (!any) throw Exit{kNegative};
}

}  // namespace

void add_rewrite_commands(CLI::App& app, const Options& options) {
  add_opt_command(app, options);

  auto explain_args = std::make_shared<ExplainArgs>();
  auto* sub = app.add_subcommand("explain", "Say why a rule did not match, or what a code means");
  sub->add_option("rule", explain_args->rule, "a rule's name, or a code N01 … N16")->required();
  explain_args->graph.add_to(*sub, false);
  explain_args->rules.add_to(*sub);
  sub->footer(
      "Examples:\n  pwr explain add_rms model.json -r llm\n  pwr explain rms_quant model.json -r "
      "llm -p clean     after the pass clean\n  pwr explain N08");
  sub->callback([explain_args, &options] { run_explain(options, *explain_args); });
}

}  // namespace pw::cli
