// Exports the command split, and what all commands that cut and plan share.
#include "cli/planning.hpp"

#include <algorithm>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/eager/eager.hpp"
#include "cli/commands.hpp"
#include "cli/rewriting.hpp"
#include "cli/static_rows.hpp"

namespace pw::cli {
namespace {

void run_split(const Options& options, const SplitArgs& args) {
  Session session(options);
  const auto [rules, graph, pieces] = prepared(session, args);
  if (!args.output.empty()) {
    make_folder(session, args.output);
    save(session, pieces.stitch, args.output + "/stitch.pwg");
    for (const Piece& piece : pieces.pieces)
      save(session, piece.graph, args.output + "/" + piece.name + ".pwg");
  }
  print_out(piece_table(pieces).print(options.format));
  session.say(split_summary(pieces));
}

/// Capture sizes of the rules that are fewer or more tokens than the model runs are left out, and
/// it is said.
void keep_runnable(const Session& session, PlanOptions& options, std::int64_t least) {
  std::vector<std::int64_t>& sizes = options.capture_sizes;
  const auto outside = std::stable_partition(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return least <= size && size <= options.max_tokens;
  });
  if (outside == sizes.end()) return;
  const std::string instead =
      outside == sizes.begin() ? "; none is left, and the default ones are planned" : "";
  const std::string bounds = least > 1 ? fmt::format("{} to {}", least, options.max_tokens)
                                       : fmt::format("at most {}", options.max_tokens);
  session.say(
      fmt::format("note: capture sizes {} of the rules are left out: a step has {} tokens{}",
                  fmt::join(outside, sizes.end(), ", "), bounds, instead));
  sizes.erase(outside, sizes.end());
}

}  // namespace

Prepared prepared(const Session& session, const SplitArgs& args) {
  LoadedRules rules = load(session, args.rules);
  Graph graph = load(session, args.graph);
  if (!args.rules.pipeline.empty()) rewritten(session, graph, rules, args.rules.pipeline, {});
  StitchedGraph pieces = cut(session, graph, rules, args.plan);
  return {std::move(rules), std::move(graph), std::move(pieces)};
}

void PlanArgs::add_to(CLI::App& app) {
  app.add_option("--at", at, "split at this op too (repeatable)")->type_name("OP");
  app.add_option("--fold", fold,
                 "auto: structurally equal pieces are one class; none: each is its own")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str();
  app.add_option("--max-tokens", max_tokens, "largest token count that is planned for")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--ranges", ranges, "end points of token ranges: 8,32")->type_name("LIST");
  CLI::Option* stated =
      app.add_option("--sizes", sizes, "capture sizes instead of the default ones: 1,2,4,8")
          ->type_name("LIST");
  app.add_option("--size-cap", size_cap, "largest of the default capture sizes; 512 if left out")
      ->check(CLI::Range(1, 1 << 24))
      ->excludes(stated);
  app.add_option("--compile-sizes", compile_sizes,
                 "compile for exactly these token counts too: 16,64,128")
      ->type_name("LIST");
  app.add_option("--max-requests", max_requests, "sequences of a step, for the default sizes")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--speculative-tokens", speculative_tokens,
                 "K: a decode step has 1+K tokens a sequence; captured sizes are multiples of that")
      ->check(CLI::Range(0, 1024))
      ->type_name("K")
      ->capture_default_str();
  app.add_option("--sequence-parallel", sequence_parallel,
                 "ranks that share the tokens of a step: all steps pad to a multiple of them")
      ->check(CLI::Range(1, 65536))
      ->type_name("RANKS")
      ->capture_default_str();
  app.add_option("--loras", loras, "capture for these numbers of adapters too: 1,4")
      ->type_name("LIST");
  app.add_option("--mode", mode,
                 "what is captured: none, piecewise, full, full_decode_only, full_and_piecewise; "
                 "the rules' mode if left out, else piecewise. Lowered where an op does not allow "
                 "it")
      ->check(
          CLI::IsMember({"none", "piecewise", "full", "full_decode_only", "full_and_piecewise"}));
}

StitchedGraph cut(const Session& session, const Graph& graph, const LoadedRules& rules,
                  const PlanArgs& args) {
  SplitOptions options;
  options.at = args.at;
  options.fold = args.fold != "none";
  options.has_kernel = has_kernel;
  std::vector<OpId> splitting =
      session.need(splitting_ops(session.context, &rules.set, rules.params, options));
  return session.need(split(graph, splitting, options));
}

Plan planned(const Session& session, const StitchedGraph& pieces, const Graph& graph,
             const LoadedRules& rules, const PlanArgs& args, std::optional<TokenRange> range,
             const SymbolFact* declared) {
  PlanOptions options;
  const auto numbers = [&](const std::string& list) {
    return list.empty() ? std::vector<std::int64_t>()
                        : session.need(parse_numbers(list, 1, kLargestSize), kUsage);
  };
  options.max_tokens = args.max_tokens;
  options.max_requests = args.max_requests;
  options.size_cap = args.size_cap.value_or(options.size_cap);
  options.speculative_tokens = args.speculative_tokens;
  options.sequence_parallel = args.sequence_parallel;
  const std::string stated = rules.set.capture.mode;
  options.mode = !args.mode.empty() ? args.mode : !stated.empty() ? stated : "piecewise";
  options.loras = numbers(args.loras);
  options.range_ends = numbers(args.ranges);
  options.compile_sizes = numbers(args.compile_sizes);
  options.capture_sizes = args.sizes.empty() ? rules.set.capture.sizes : numbers(args.sizes);
  std::int64_t least = 1;
  const std::string tokens = graph.facts.tokens();
  if (const SymbolFact* fact = graph.facts.find(tokens)) {
    options.max_tokens = std::min(options.max_tokens, fact->max);
    if (!range) least = (declared != nullptr ? declared : fact)->min;
  }
  if (args.sizes.empty()) keep_runnable(session, options, least);
  if (args.size_cap && !options.capture_sizes.empty())
    session.say(
        "note: --size-cap changes nothing: it is for the default sizes, and the rules "
        "state theirs");
  const auto outside = [&](std::int64_t size) {
    return range && (size < range->min || size > range->max);
  };
  const bool some = !options.capture_sizes.empty();
  std::erase_if(options.capture_sizes, outside);
  if (some && options.capture_sizes.empty())
    session.say(
        fmt::format("note: no capture size lies in tokens {}..{}; the default ones are "
                    "planned there",
                    range->min, range->max));
  std::erase_if(options.compile_sizes, outside);
  std::erase_if(options.range_ends, outside);
  if (range) options.min_tokens = range->min;
  Graph wide = graph;  // which graph runs a step is chosen by what its plan pads it to
  if (const auto fact = wide.facts.symbols.find(tokens);
      declared != nullptr && fact != wide.facts.symbols.end()) {
    fact->second.min = declared->min;
    fact->second.multiple = declared->multiple;
  }
  Plan plan = session.need(make_plan(pieces, wide, options));
  if ((!args.mode.empty() || plan.mode == "none") && !plan.mode_reason.empty())
    session.say("note: " + plan.mode_reason);
  for (const std::string& note : plan.notes) session.say("note: " + note);
  if (const std::string note = many_rows_note(graph); !note.empty()) session.say(note);
  return plan;
}

Table piece_table(const StitchedGraph& pieces) {
  Table table({"piece", "class", "runs", "nodes", "inputs", "outputs"});
  for (const Piece& piece : pieces.pieces)
    table.add({piece.name, pieces.classes[piece.piece_class].name,
               piece.capturable() ? "captured" : "eagerly", std::to_string(piece.nodes.size()),
               std::to_string(piece.inputs.size()), std::to_string(piece.outputs.size())});
  return table;
}

std::string split_summary(const StitchedGraph& pieces) {
  const bool host = std::any_of(pieces.pieces.begin(), pieces.pieces.end(),
                                [](const Piece& piece) { return !piece.host_op.empty(); });
  std::size_t eager = pieces.classes.size() - pieces.capturable_classes();
  return fmt::format(
      "{} pieces, {} capturable, {} classes{}", pieces.pieces.size(), pieces.capturable(),
      pieces.capturable_classes(),
      eager ? fmt::format(" (and {} {})", eager, host ? "that run eagerly" : "of splitting ops")
            : "");
}

std::string plan_summary(const Plan& plan) {
  std::string sizes = plan.capture.sizes.empty()
                          ? "no capture sizes"
                          : fmt::format("{} capture sizes {}..{}", plan.capture.sizes.size(),
                                        plan.capture.sizes.front(), plan.capture.sizes.back());
  const std::string exact =
      plan.compile_sizes.empty() ? "" : fmt::format(" and {} sizes", plan.compile_sizes.size());
  return fmt::format("{}, {} range{}{}, arena {} (live {}), weights {}", sizes, plan.ranges.size(),
                     plan.ranges.size() == 1 ? "" : "s", exact, bytes(plan.memory.arena_bytes),
                     bytes(plan.memory.live_bytes), bytes(plan.memory.weight_bytes));
}

void add_split_command(CLI::App& app, const Options& options) {
  auto split_args = std::make_shared<SplitArgs>();
  auto* sub =
      app.add_subcommand("split", "Cut a graph at attention-like ops into pieces and classes");
  split_args->graph.add_to(*sub);
  split_args->rules.add_to(*sub);
  split_args->plan.add_to(*sub);
  sub->add_option("-o,--output", split_args->output,
                  "write the stitching graph and each piece into this folder")
      ->type_name("DIR");
  sub->footer(
      "Examples:\n  pwr split model.json\n  pwr split model.json -r llm -p o2 -o pieces/\n  pwr "
      "split model.json --at all_reduce --fold none");
  sub->callback([split_args, &options] { run_split(options, *split_args); });
}

}  // namespace pw::cli
