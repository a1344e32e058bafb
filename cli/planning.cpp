#include "cli/planning.hpp"

#include "cli/commands.hpp"
#include "cli/help/help_format.hpp"
#include "cli/settings.hpp"
#include "pipeline/run/dump.hpp"
#include "pipeline/run/record.hpp"

namespace pw::cli {
namespace {

void run_split(const Options& options, const SplitArgs& args) {
  Session session(options);
  const auto [rules, graph, pieces, at_load] = prepared(session, args);
  if (!args.output.empty()) session.need(write_pieces(pieces, at_load, args.output, args.output));
  print_out(piece_table(pieces).print(options.format));
  session.say(split_summary(pieces));
}

/// Adds the options for the token counts to plan for.
void add_token_options(CLI::App& app, PlanArgs& args) {
  add_setting(app, "--max-tokens", args.stated.max_tokens, CLI::Range(1, 1 << 24),
              "largest token count to plan for");
  add_setting(app, "--ranges", args.ranges, "LIST", "end points of token ranges: 8,32");
  CLI::Option* sizes_option =
      add_setting(app, "--sizes", args.sizes, "LIST",
                  "capture sizes to use instead of the default ones: 1,2,4,8");
  app.add_option("--size-cap", args.stated.size_cap,
                 "largest of the default capture sizes; default: 512")
      ->check(CLI::Range(1, 1 << 24))
      ->excludes(sizes_option)
      ->configurable();
  add_setting(app, "--compile-sizes", args.compile_sizes, "LIST",
              "also compile for exactly these token counts: 16,64,128");
  add_setting(app, "--max-requests", args.stated.max_requests, CLI::Range(1, 1 << 20),
              "maximum sequences of a step, for the default capture sizes");
  add_setting(
      app, "--speculative-tokens", args.stated.speculative_tokens, CLI::Range(0, 1024),
      "K: a decode step has 1+K tokens for each sequence; capture sizes are multiples of that")
      ->type_name("K");
  add_setting(app, "--sequence-parallel", args.stated.sequence_parallel, CLI::Range(1, 65536),
              "number of ranks that share the tokens of a step; all steps are padded to a "
              "multiple of it")
      ->type_name("RANKS");
}

}  // namespace

CutGraph prepared(const Session& session, const SplitArgs& args) {
  return session.need(load_and_cut(
      session.context, {args.graph, args.rules, args.plan.request(session)}, session.log()));
}

PlanRequest PlanArgs::request(const Session& session) const {
  PlanRequest out = stated;
  const auto read = [&](const std::string& list, std::vector<std::int64_t>& numbers) {
    if (!list.empty()) numbers = session.need(parse_numbers(list, 1, kLargestSize));
  };
  out.fold = fold != "none";
  read(ranges, out.range_ends);
  read(sizes, out.capture_sizes);
  read(compile_sizes, out.compile_sizes);
  read(loras, out.loras);
  return out;
}

void PlanArgs::add_to(CLI::App& app) {
  const OptionsOf group(app, "Split and plan");
  CLI::Option* at = add_setting(app, "--at", stated.at, "OP", "also split at this op (repeatable)");
  if (app.get_option_no_throw("--no-split") == nullptr)  // pwviz draws no pieces then
    app.add_flag("!--no-split", stated.split,
                 "do not split: the whole rewritten graph is one piece, which is captured only if "
                 "all of its ops allow it")
        ->excludes(at)
        ->configurable();
  add_setting(app, "--fold", fold, CLI::IsMember({"auto", "none"}),
              "auto: structurally equal pieces form one class; none: each piece is its own class");
  add_token_options(app, *this);
  add_setting(app, "--loras", loras, "LIST",
              "also capture for these numbers of LoRA adapters: 1,4");
  app.add_option("--mode", stated.mode,
                 "what to capture: none, piecewise, full, full_decode_only, full_and_piecewise; "
                 "default: the rules' mode, else piecewise. Reduced if an op does not allow it")
      ->check(
          CLI::IsMember({"none", "piecewise", "full", "full_decode_only", "full_and_piecewise"}))
      ->configurable();
}

void add_split_command(CLI::App& app, const Options& options) {
  auto split_args = std::make_shared<SplitArgs>();
  auto* sub = app.add_subcommand(
      "split", "Split a graph at attention-like ops into pieces and piece classes");
  split_args->graph.add_to(*sub);
  split_args->rules.add_to(*sub);
  split_args->plan.add_to(*sub);
  sub->add_option("-o,--output", split_args->output,
                  "write the stitched graph and each piece to this folder")
      ->type_name("DIR");
  sub->footer(
      "Examples:\n  pwr split model.json\n  pwr split model.json -r llm -p o2 -o pieces/\n  pwr "
      "split model.json --at all_reduce --fold none");
  sub->callback([split_args, &options] { run_split(options, *split_args); });
}

}  // namespace pw::cli
