// Exports the commands explain and match: why a rule did not match, and where a pattern does.
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/explaining.hpp"
#include "dsl/query.hpp"
#include "graph/text.hpp"
#include "pipeline/record.hpp"
#include "rewriter/legality.hpp"
#include "splitter/splitter.hpp"

namespace pw::cli {
namespace {

struct ExplainArgs {
  std::string rule;
  GraphOptions graph;
  RuleOptions rules;
  std::string before, at;
  std::optional<std::size_t> expect;
  std::size_t most = 5;
  std::int64_t tokens = 0;  ///< 0: not said
  bool pieces = false;
};

struct Code {
  std::string_view code, meaning;
};
constexpr std::array<Code, 17> kCodes{{
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
    {"N09", "guard: a `where` is false, or an `unless` is there; its parts are printed"},
    {"N10", "consumed: another rule, or a built-in pass, took the node first"},
    {"N11",
     "absent: the rule is not in this pipeline, no pass that has it ran when the match was there, "
     "or its family has no variant"},
    {"N12", "fuel: the pass had used up its fuel, or was stopped"},
    {"N13", "cycle: a path leads from an output back to an input; it is printed"},
    {"N14", "barrier: a mutation or an alias stands between the nodes"},
    {"N15", "boundary: the match would cross a piece boundary"},
    {"N16", "precedence: an `over` rule or a lower cost won"},
    {"N17", "undone: the strategy that applied it was taken back, for an `ensures` did not hold"},
}};

std::string title_of(const NearMiss& miss) {
  const std::string name = miss.rule_name.empty() ? "the rule" : miss.rule_name;
  if (!miss.at) return miss.why.message;
  if (miss.complete)
    return fmt::format("`{}` matched at %{}, and was not applied", name, miss.at->name);
  return fmt::format("`{}` matched {} of {} nodes at %{}, then stopped", name, miss.why.matched,
                     miss.rule_size, miss.at->name);
}

std::string alike(const NearMissGroup& group) {
  std::string out;
  if (group.matched_alike > 0 && !group.first.place.empty())
    out = fmt::format("{} of {} places like {} match; {} differ{} by {}", group.matched_alike,
                      group.matched_alike + group.count, group.first.place, group.count,
                      group.count == 1 ? "s" : "", group.first.why.code);
  if (group.others.empty()) return out;
  constexpr std::size_t kShown = 6;
  out += fmt::format("{}the same at {} more: ", out.empty() ? "" : "; ", group.others.size());
  for (std::size_t i = 0; i < group.others.size() && i < kShown; ++i)
    out += fmt::format(
        "{}%{}{}", i == 0 ? "" : ", ", group.others[i],
        group.other_steps[i] > 0 ? fmt::format(" (step {})", group.other_steps[i]) : "");
  if (group.others.size() > kShown) out += ", …";
  return out;
}

/// The match itself, where more is to be known of it than the node it is told at.
std::string match_of(const NearMiss& miss) {
  if (!miss.complete || miss.node_names.empty()) return "";
  std::string out = miss.since.empty()
                        ? "the match was there from the start: "
                        : fmt::format("the match came up in pass `{}`: ", miss.since);
  for (const std::string& name : miss.node_names)
    out += fmt::format("{}%{}", &name == miss.node_names.data() ? "" : ", ", name);
  return out;
}

void print_applied(const Explanation& found) {
  for (const AppliedGroup& group : found.applied) {
    std::string nodes;
    for (const std::string& name : group.nodes)
      nodes += fmt::format("{}%{}", nodes.empty() ? "" : ", ", name);
    print_out(fmt::format("`{}` was applied {} in pass `{}`, {}at step {}: {}\n", group.first.name,
                          group.count == 1 ? "once" : fmt::format("{} times", group.count),
                          group.first.pass, group.count == 1 ? "" : "first ", group.first.step,
                          nodes));
  }
}

void print_text(const Session& session, const Explanation& found, bool pipeline) {
  for (const NearMissGroup& group : found.groups) {
    const NearMiss& miss = group.first;
    Diagnostic d;
    d.severity = Severity::note;
    d.code = miss.why.code;
    d.message = title_of(miss);
    d.span = miss.why.span;
    d.help = miss.help;
    if (miss.at) {
      d.label = miss.why.message;
      if (!miss.at->text.empty()) d.notes.push_back(miss.at->text);
    }
    if (const std::string match = match_of(miss); pipeline && !match.empty())
      d.notes.push_back(match);
    d.notes.insert(d.notes.end(), miss.notes.begin(), miss.notes.end());
    if (const std::string more = alike(group); !more.empty()) d.notes.push_back(more);
    const bool color =
        session.color() && (session.options.color == "always" || ::isatty(STDOUT_FILENO) != 0);
    print_rendered(render({d}, session.context->sources, {color, 20}));
  }
}

/// The piece of each node, as the rules' `split` cuts the graph at hand.
class Pieces {
 public:
  Pieces(const Session& session, const LoadedRules& rules) : session_(session), rules_(rules) {}
  std::uint32_t operator()(const Graph& graph, NodeId node) {
    if (&graph != graph_) read(graph);
    return node.index < piece_.size() ? piece_[node.index] : 0;
  }

 private:
  void read(const Graph& graph) {
    graph_ = &graph;
    piece_.assign(graph.node_bound(), 0);
    const auto at =
        session_.need(splitting_ops(session_.context, &rules_.set, rules_.params, SplitOptions{}));
    const StitchedGraph pieces = session_.need(split(graph, at));
    for (std::size_t i = 0; i < pieces.pieces.size(); ++i)
      for (NodeId n : pieces.pieces[PieceId(i)].nodes)
        piece_[n.index] = static_cast<std::uint32_t>(i);
  }
  const Session& session_;
  const LoadedRules& rules_;
  const Graph* graph_ = nullptr;
  std::vector<std::uint32_t> piece_;
};

bool explained_code(const std::string& word) {
  for (const Code& code : kCodes) {
    if (word != code.code) continue;
    print_out(fmt::format("{} {}\n", code.code, code.meaning));
    return true;
  }
  return false;
}

void check_name(const Session& session, const LoadedRules& rules, const std::string& name) {
  if (!rules.set.resolve(name).empty()) return;
  for (const ast::File& file : rules.set.files)
    for (const ast::Item& item : file.items)
      if (const auto* rule = std::get_if<ast::Rule>(&item); rule != nullptr && rule->name == name)
        return;  // a family without a variant
  std::vector<std::string> names;
  for (const Rule& rule : rules.set.rules) {
    names.push_back(rule.name);
    names.push_back(rule.base_name);
  }
  const std::string near = nearest(name, names);
  session.die("there is no rule `" + name + "`", near.empty() ? "" : "did you mean `" + near + "`?",
              kUsage);
}

void check_options(const Session& session, const ExplainArgs& args) {
  if (args.graph.path.empty())
    session.die("`" + args.rule + "` is no code N01 … N17; to explain a rule, name a graph too",
                "pwr explain add_rms model.json -r llm", kUsage);
  const bool alone = args.rules.pipeline.empty();
  if (alone && !args.before.empty())
    session.die("`--before` needs a pipeline", "add `-p o2`", kUsage);
  if (alone && args.tokens > 0) session.die("`--tokens` needs a pipeline", "add `-p o2`", kUsage);
}

std::string header(const Explanation& found, const ExplainArgs& args) {
  const bool alone = args.rules.pipeline.empty(), one = found.matches == 1;
  std::string out = fmt::format("{}: {} {}", args.rule, found.matches,
                                alone ? (one ? "match" : "matches")
                                : one ? "rewrite"
                                      : "rewrites");
  if (args.expect && *args.expect != found.matches)
    out += fmt::format(", expected {}", *args.expect);
  if (found.range) out += fmt::format(" for {}..{} tokens", found.range->min, found.range->max);
  if (found.otherwise) out += ", for steps that do not meet what rules assume";
  return out;
}

void run_explain(const Options& options, const ExplainArgs& args) {
  if (explained_code(args.rule)) return;
  Session session(options);
  check_options(session, args);
  LoadedRules rules = load(session, args.rules);
  check_name(session, rules, args.rule);
  const Graph graph = load(session, args.graph);
  ExplainOptions explain;
  explain.pipeline = args.rules.pipeline;
  explain.before = args.before;
  explain.at = args.at;
  explain.most = args.most;
  if (args.tokens > 0) explain.tokens = args.tokens;
  if (args.pieces) explain.piece_of = Pieces(session, rules);
  const Explanation found =
      session.need(explain_rules(graph, rules.set, args.rule, rules.params, explain));
  if (!found.at_found)
    session.die("no node of the graph is called `" + args.at + "`", "names stand in `pwr export`",
                kUsage);
  const bool wanted = !args.expect || *args.expect != found.matches;
  if (options.format == "json") {
    print_out(printable_json(explanation_to_json(found, args.rule)));
  } else {
    print_out(header(found, args) + "\n");
    if (wanted) print_applied(found);
    if (wanted) print_text(session, found, !args.rules.pipeline.empty());
    if (wanted && found.matches == 0 && found.groups.empty())
      print_out("no node of the graph has an op of its pattern\n");
  }
  if (args.expect ? wanted : found.matches == 0) throw Exit{kNegative};
}

struct MatchArgs {
  std::string pattern;
  GraphOptions graph;
  RuleOptions rules;
  std::size_t most = 20;
};

std::string shown(const Graph& graph, const Binding& binding) {
  if (const auto* value = std::get_if<ValueId>(&binding))
    return value->valid() ? fmt::format("%{}", graph.value_name(*value)) : "none";
  if (const auto* dim = std::get_if<DimId>(&binding)) return graph.context().dims.print(*dim);
  if (const auto* dtype = std::get_if<DTypeBinding>(&binding))
    return std::string(name(dtype->dtype));
  if (const auto* shape = std::get_if<Shape>(&binding)) return graph.context().types.print(*shape);
  if (const auto* a = std::get_if<Attribute>(&binding)) return graph.context().attributes.print(*a);
  if (const auto* list = std::get_if<std::vector<ValueId>>(&binding))
    return fmt::format("{} values", list->size());
  return "none";
}

void run_match(const Options& options, const MatchArgs& args) {
  Session session(options);
  const Query query = session.need(load_query(session.context, args.rules.rules, args.pattern));
  std::vector<std::pair<std::string, std::string>> definitions;
  for (const std::string& text : args.rules.definitions)
    definitions.push_back(session.need(parse_definition(text), kUsage));
  const Env params = session.need(bind_params(query.rules, definitions));
  const Graph graph = load(session, args.graph);
  Table table({"match", "nodes", "bindings"});
  std::size_t count = 0;
  for (RuleId id : query.variants)
    for (const Match& match : find_matches(graph, query.rules, id, params)) {
      ++count;
      std::string nodes, bindings;
      for (NodeId n : all_nodes(match))
        nodes += fmt::format("{}%{} {}", nodes.empty() ? "" : ", ", graph.node_name(n),
                             graph.op_of(n).name);
      for (const auto& [name, binding] : match.env)
        if (!params.contains(name))
          bindings +=
              fmt::format("{}{} = {}", bindings.empty() ? "" : ", ", name, shown(graph, binding));
      if (count <= args.most || options.format != "table")
        table.add({std::to_string(count), nodes, bindings});
    }
  if (!table.empty()) print_out(table.print(options.format));
  session.say(fmt::format("{} match{}{}", count, count == 1 ? "" : "es",
                          count > args.most && options.format == "table"
                              ? fmt::format(", {} shown; --most shows more", args.most)
                              : ""));
  if (count > 0) return;
  for (RuleId id : query.variants) {
    Explanation found;
    for (NearMiss& miss : find_near_misses(graph, query.rules, id, params)) {
      found.groups.push_back({std::move(miss), 1, 0, {}, {}});
      break;
    }
    print_text(session, found, false);
  }
  throw Exit{kNegative};
}

}  // namespace

void add_explain_commands(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ExplainArgs>();
  auto* sub = app.add_subcommand("explain", "Say why a rule did not match, or what a code means");
  sub->add_option("rule", args->rule, "a rule, family or group; or a code N01 … N17")->required();
  args->graph.add_to(*sub, false);
  args->rules.add_to(*sub);
  sub->add_option(
      "--before", args->before,
      "with -p: near misses are those of the graph before this pass (else before the first with "
      "the rule)");
  sub->add_option("--at", args->at,
                  "only what concerns a node of this name; with -p, at whatever time it had it");
  sub->add_option("--tokens", args->tokens,
                  "with -p: the graph that the pipeline makes for steps of so many tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  sub->add_option("--expect", args->expect,
                  "exit with 1 unless it matches so often; then print the odd ones out");
  sub->add_option("--most", args->most, "near misses printed at most, after grouping");
  sub->add_flag("--pieces", args->pieces, "a match has to lie in one piece of the split graph");
  sub->footer(
      "Without -p the rule is asked on the graph as it is. With -p the pipeline is run, and every "
      "match\n"
      "that stood at some time is followed: applied, in which pass; consumed by which rule, at "
      "which\n"
      "step (N10); not in a pass that ran (N11); out of fuel (N12); lost to a rule above or to a "
      "lower\n"
      "cost (N16); undone by which `ensures`, because of which node (N17); or with a right side "
      "that\n"
      "cannot be built (its code says why).\n"
      "Examples:\n"
      "  pwr explain add_rms model.json -r llm\n"
      "  pwr explain rms_quant model.json -r llm -p o2\n"
      "  pwr explain rms_quant model.json -r mine.pwr -p ranged --tokens 300\n"
      "  pwr explain rms_quant model.json -r llm -p o2 --before norm_quant --expect 32\n"
      "  pwr explain silu_mul model.json -r llm --at mul_7 --format json\n"
      "  pwr explain N08");
  sub->callback([args, &options] { run_explain(options, *args); });

  auto match = std::make_shared<MatchArgs>();
  auto* find = app.add_subcommand("match", "List where a pattern matches, without a rule");
  find->add_option("pattern", match->pattern, "the left side of a rule")->required();
  match->graph.add_to(*find);
  match->rules.add_to(*find, false);
  find->add_option("--most", match->most, "matches printed at most");
  find->footer(
      "Values may have other users: nothing is consumed. Shared patterns of -r files may be used.\n"
      "Without a match the nearest miss is explained, and the exit code is 1.\n"
      "Examples:\n"
      "  pwr match 'y = mul(silu(g), u)' model.json\n"
      "  pwr match 'n = rms(x, w){eps}  q = static_scaled_fp8_quant(n, s)' model.json -r llm\n"
      "  pwr match 'y = mm(x: bf16[n, k], w) where k >= 4096' model.json --format json");
  find->callback([match, &options] { run_match(options, *match); });
}

}  // namespace pw::cli
