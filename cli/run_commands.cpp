// Exports the commands run and report: the main job, from a model's graph to numbers, and what it
// says.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backends/cache/digest.hpp"
#include "backends/safetensors.hpp"
#include "base/file.hpp"
#include "base/standard_output.hpp"
#include "cli/command_text.hpp"
#include "cli/commands.hpp"
#include "cli/dump.hpp"
#include "cli/engine.hpp"
#include "cli/expecting.hpp"
#include "cli/static_rows.hpp"

namespace pw::cli {
namespace {

struct RunArgs : EngineArgs {
  std::string report, dump;
  std::string replicated;    ///< input names, or `all`
  std::string save, expect;  ///< safetensors files of outputs
  Tolerance tolerance;
  std::int64_t ranks = 1;
  bool check = false, no_pad = false;
  bool times = false;          ///< in reports
  bool execute = true;         ///< report: with --run
  bool reports = false;        ///< the command report
  std::string output = "-";    ///< of report
  void add_to(CLI::App& sub);  ///< what a run takes, without where its answers go
};

bool has_collectives(const Graph& graph) {
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (graph.op_of(n).traits.collective) return true;
  return false;
}

void say_writes(const Session& session, const Graph& graph) {
  if (graph.written_inputs().empty()) return;
  std::string names;
  for (ValueId input : graph.written_inputs())
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", graph.value_name(input),
                         name(graph.input_kind(input)));
  session.say("writes " + names);
}

void print_results(const Session& session, const RunRecord& record, const RunArgs& args) {
  const std::string& format = session.options.format;
  auto print = [&](const Table& table) {
    print_out(table.print(format) + (format == "table" ? "\n" : ""));
  };
  if (!record.rewrite.passes.empty()) print(pass_table(record.rewrite, format == "table"));
  session.say(split_summary(*record.pieces));
  session.say(plan_summary(record.plan));
  print(step_table(record));
  if (args.check) print(number_table(record));
  if (!args.expect.empty()) print(expected_table(record));
}

/// What another system says the outputs are, against what they are: by the tolerance that is named,
/// else by the yardstick of rank 0.
std::vector<ExpectedCheck> compared(const Session& session, const RunArgs& args, const Graph& graph,
                                    const Safetensors& file, std::span<const Tensor> outputs,
                                    std::size_t step, std::size_t steps,
                                    const std::optional<Yardstick>& yardstick) {
  const ExpectedTensors found = session.need(find_expected(graph, file, step, steps));
  if (found.by_place && step == 0)
    session.say(
        fmt::format("note: {} has other names than the outputs: they are taken in their "
                    "order, {} as {} first",
                    args.expect, found.of_output.front()->name, output_name(graph, 0)));
  std::vector<ExpectedCheck> out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = stored_output(output_name(graph, i), step, steps);
    const Tensor expected = session.need(file.tensor(*found.of_output[i]));
    const TensorView got = outputs[i].view(), other = expected.view();
    if (args.tolerance.named())
      out.push_back(check_expected(name, got, other, args.tolerance));
    else
      out.push_back(check_expected(name, got, other,
                                   OutputYardstick{yardstick->reference.front()[i].view(),
                                                   yardstick->before.front()[i].view()}));
  }
  return out;
}

/// `all`, or names of inputs of the graph.
Replication replication_of(const Session& session, const RunArgs& args, const Graph& graph) {
  Replication replication;
  replication.all = args.replicated == "all";
  if (replication.all) return replication;
  std::set<std::string, std::less<>> inputs;
  for (ValueId input : graph.inputs()) inputs.emplace(graph.value_name(input));
  for (const std::string& name : CLI::detail::split(args.replicated, ',')) {
    if (name.empty()) continue;
    if (inputs.count(name) == 0)
      session.die("the graph has no input `" + name + "`", "--replicated takes input names, or all",
                  kUsage);
    replication.names.insert(name);
  }
  return replication;
}

void run_steps(const Session& session, const RunArgs& args, const Graph& original,
               const Graph& graph, Backend& backend, Device* device,
               const std::vector<PlannedStep>& steps, RunRecord& record) {
  std::vector<Weights> weights =
      weights_of_ranks(original, args.seed, args.ranks, replication_of(session, args, original));
  give_weights(session, args, original, weights.front());
  std::optional<Safetensors> expected;
  if (!args.expect.empty()) expected = session.need(Safetensors::open(args.expect));
  std::map<std::string, Tensor> saved;
  Engine engine(session, args, graph, record, backend, device, weights.front());
  RunOptions run_options;
  run_options.pad = !args.no_pad;
  run_options.poison = args.check;
  // Sequences go on from step to step: each engine remembers what attention has seen.
  KvCache seen;
  CheckCaches others;
  const bool goes_on = !args.steps.empty();
  for (const PlannedStep& planned : steps) {
    Step step = planned.step;
    step.cache = goes_on ? &seen : nullptr;
    const std::int64_t t = step.tokens();
    session.progress(fmt::format("running {} tokens", t));
    RankStepResult result =
        need_run(session, engine.run(step, std::span<Weights>(weights), run_options));
    StepRun run{result.report, {}, {}};
    const std::size_t at = record.steps.size();
    std::optional<Yardstick> yardstick;
    if (args.check || (expected && !args.tolerance.named())) {
      session.progress(
          fmt::format("checking {} tokens against the double-precision interpreter", t));
      yardstick = need_run(session, run_yardstick(original, backend, std::span<Weights>(weights),
                                                  step, {}, goes_on ? &others : nullptr));
    }
    if (expected)
      run.expected = compared(session, args, original, *expected, result.outputs.front(), at,
                              steps.size(), yardstick);
    for (std::size_t i = 0; !args.save.empty() && i < result.outputs.front().size(); ++i)
      saved[stored_output(output_name(original, i), at, steps.size())] = result.outputs.front()[i];
    if (args.check) run.numbers = check_outputs(original, *yardstick, result.outputs);
    for (std::size_t rank = 0; rank < weights.size(); ++rank)
      weights[rank].write_back(original, result.outputs[rank]);
    for (std::int64_t id : planned.ended) {
      for (KvCache* of : {&seen, &others.before, &others.reference}) of->end(id);
    }
    record.steps.push_back(std::move(run));
  }
  engine.finish(record);
  if (args.save.empty()) return;
  std::vector<std::pair<std::string, TensorView>> views;
  for (const auto& [name, tensor] : saved) views.emplace_back(name, tensor.view());
  session.need(write_file(args.save, safetensors_text(std::move(views))));
}

/// The files that were named, and the rules that are built in as one; none where nothing is
/// reported.
std::vector<RunRecord::File> files_of(const Session& session, const RunArgs& args,
                                      const RuleSet& rules) {
  std::vector<RunRecord::File> out;
  if (args.report.empty() && !args.reports) return out;
  const auto add = [&](const std::string& path, const std::string& what) {
    if (path != "-") out.push_back({path, what, sha256(session.need(read_file(path)))});
  };
  add(args.graph.path, "graph");
  if (!args.steps.empty()) add(args.steps, "steps");
  if (!args.planned.empty()) add(args.planned, "plan");
  if (!args.map.empty()) add(args.map, "map of weights");
  for (const auto& [path, what] :
       {std::pair(&args.weights, "weights"), {&args.expect, "expected"}}) {
    if (path->empty()) continue;
    const MappedFile file = session.need(MappedFile::open(*path));
    const auto bytes = file.bytes();
    out.push_back(
        {*path, what, sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()})});
  }
  KeyParts library;
  const SourceMap& sources = session.context->sources;
  const auto built_in = [](const std::string& name) { return name.rfind("<library>/", 0) == 0; };
  for (const ast::File& file : rules.files) {
    const std::string& name = sources.name(file.source);
    if (!built_in(name)) out.push_back({name, "rules", sha256(sources.text(file.source))});
  }
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (built_in(sources.name(SourceId(i))))
      library.add(sources.name(SourceId(i)), sources.text(SourceId(i)));
  out.push_back({"built-in library", "ops and rules", library.digest()});
  return out;
}

RunRecord empty_record(const Session& session, const RunArgs& args, const Graph& original,
                       const RuleSet& rules) {
  RunRecord record;
  record.command = shown_command("pwr", session.options.arguments);
  record.files = files_of(session, args, rules);
  record.graph_path = args.graph.path;
  record.backend = args.backend;
  record.seed = args.seed;
  record.ranks = args.ranks;
  record.collectives = has_collectives(original);
  record.executed = args.execute;
  record.times = args.times;
  return record;
}

/// The steps of each variant: by the size that its plan pads them to.
std::vector<std::vector<PlannedStep>> assigned(const Session& session, const RunArgs& args,
                                               const std::vector<Variant>& variants,
                                               const std::vector<RunRecord>& records,
                                               const std::vector<PlannedStep>& steps) {
  std::vector<std::vector<PlannedStep>> out(variants.size());
  for (const PlannedStep& planned : steps) {
    const std::int64_t t = planned.step.tokens();
    const auto runs_as = [&](std::size_t i) {
      if (args.no_pad) return t;
      const std::int64_t size = records[i].plan.capture.pad(t);
      return size > 0 ? size : round_up(t, records[i].plan.eager_multiple);
    };
    out[variant_of(session, variants, t, runs_as)].push_back(planned);
  }
  return out;
}

/// Rewrites, splits, plans and, unless it is only reported, runs; tells `done` of each graph that
/// the pipeline makes. Returns how many steps failed the check.
std::size_t run_variants(const Session& session, const RunArgs& args, const LoadedRules& rules,
                         const std::function<void(const std::string&, const RunRecord&)>& done) {
  if (args.ranks > 1 && !(args.weights + args.save + args.expect).empty())
    session.die("--weights, --save and --expect are of one rank", "leave out --ranks",
                kMissingCapability);
  std::unique_ptr<Backend> backend = backend_named(session, args);
  if (args.backend == "cuda" && args.ranks > 1)
    session.die("the backend cuda runs one rank a process",
                "the backends eager, cpu and interpreter run several", kMissingCapability);
  std::unique_ptr<Device> device;  // before any work is done
  if (args.execute && args.backend == "cuda")
    device = open_device(session, args.driver, args.strict, args.seed);
  Graph original = load(session, args.graph);
  const std::vector<PlannedStep> wanted =
      args.execute ? wanted_steps(session, args, original) : std::vector<PlannedStep>();
  say_writes(session, original);
  if (has_collectives(original) && args.ranks == 1 && args.execute)
    session.say("one rank: collectives run as the identity, up to their shape");
  std::vector<Variant> variants =
      make_variants(session, original, rules, args.rules.pipeline, true);
  if (!args.planned.empty() && variants.size() > 1)
    session.die("the pipeline makes a graph for each of several ranges of tokens",
                "--plan is of one graph", kUsage);
  std::vector<RunRecord> records(variants.size(), empty_record(session, args, original, rules.set));
  for (std::size_t i = 0; i < variants.size(); ++i)
    prepare(session, args, rules, variants[i], records[i]);
  const auto steps = assigned(session, args, variants, records, wanted);
  if (!args.steps.empty() && variants.size() > 1)
    session.die("the pipeline makes a graph for each of several ranges of tokens",
                "--steps runs one graph: a sequence's earlier tokens would be another graph's",
                kMissingCapability);
  if (variants.size() > 1 && !(args.save + args.expect).empty())
    session.die("the pipeline makes a graph for each of several ranges of tokens",
                "--save and --expect are of one graph", kMissingCapability);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (args.execute && steps[i].empty() && variants.size() > 1) continue;
    if (!variants[i].name.empty()) session.say("tokens " + variants[i].name + ":");
    check_sizes(session, records[i].plan, steps[i]);
    if (args.execute)
      run_steps(session, args, original, variants[i].result.graph, *backend, device.get(), steps[i],
                records[i]);
    done(variants[i].name, records[i]);
    failed += failed_steps(records[i]);
  }
  if (failed > 0)
    session.say(fmt::format("{} of {} steps differ from {} by more than they may", failed,
                            wanted.size(), args.check ? "the reference" : args.expect));
  return failed;
}

void run_run(const Options& options, const RunArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const auto done = [&](const std::string& name, const RunRecord& record) {
    print_results(session, record, args);
    const std::string folder = name.empty() ? args.report : args.report + "/" + name;
    if (!args.report.empty())
      session.say("report: " + write_report(session, record, rules.set, folder));
    if (!args.dump.empty())
      write_dump(session, record, rules.set, name.empty() ? args.dump : args.dump + "/" + name,
                 args.grouping == "auto");
  };
  if (run_variants(session, args, rules, done) > 0) throw Exit{kNumericMismatch};
  if (args.check) session.say("all outputs of all steps pass the check");
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void run_report(const Options& options, RunArgs args) {
  Session session(options);
  const bool page = ends_with(args.output, ".html") || ends_with(args.output, ".htm");
  if (!page && !names_stream(args.output) && !ends_with(args.output, ".txt"))
    session.die("cannot tell the type of `" + args.output + "` from its extension",
                "a report is written as .html or .txt", kUsage);
  args.check = args.execute;
  const LoadedRules rules = load(session, args.rules);
  const auto done = [&](const std::string& name, const RunRecord& record) {
    const std::string path =
        names_stream(args.output) ? args.output : variant_path(args.output, name);
    session.need(write_file(
        path, page ? page_of(session, record, rules.set) : text_of(session, record, rules.set)));
    if (!names_standard_output(path)) session.say("report: " + path);
  };
  if (run_variants(session, args, rules, done) > 0) throw Exit{kNumericMismatch};
}

void RunArgs::add_to(CLI::App& sub) {
  EngineArgs::add_to(sub);
  sub.add_option("--ranks", ranks,
                 "ranks in this process, in step, with exact collectives between them")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{64}))
      ->capture_default_str();
  sub.add_option("--replicated", replicated,
                 "inputs that hold the same on every rank, or `all`; others differ")
      ->type_name("NAMES");
  sub.add_flag("--no-pad", no_pad, "run each step at its own size");
  sub.add_flag("--times", times,
               "say in the report how long passes and steps took; without, the same input gives "
               "the same report");
}

}  // namespace

Table step_table(const RunRecord& record, bool times) {
  std::vector<std::string> columns = {"tokens", "runs as", "mode", "time", "why"};
  if (!times) columns.erase(columns.begin() + 3);
  Table table(columns);
  for (const StepRun& step : record.steps) {
    std::vector<std::string> row = {std::to_string(step.report.tokens),
                                    std::to_string(step.report.padded), step.report.mode,
                                    seconds(step.report.seconds), step.report.reason};
    if (!times) row.erase(row.begin() + 3);
    table.add(std::move(row));
  }
  return table;
}

Table number_table(const RunRecord& record) {
  std::vector<std::string> columns = {"tokens",   "output", "dtype",        "elements",
                                      "left out", "rms",    "error before", "error after",
                                      "may be",   "result"};
  if (record.ranks > 1) columns.insert(columns.begin() + 1, "rank");
  Table table(columns);
  for (const StepRun& step : record.steps) {
    for (std::size_t rank = 0; rank < step.numbers.size(); ++rank) {
      for (const OutputCheck& o : step.numbers[rank].outputs) {
        std::vector<std::string> row = {std::to_string(step.report.tokens),
                                        o.name,
                                        std::string(name(o.dtype)),
                                        std::to_string(o.count),
                                        std::to_string(o.left_out),
                                        fmt::format("{:.4g}", o.reference_rms),
                                        fmt::format("{:.3g}", o.before_error),
                                        fmt::format("{:.3g}", o.after_error),
                                        fmt::format("{:.3g}", o.bound),
                                        o.passed ? "ok" : "FAILED: " + o.reason};
        if (record.ranks > 1) row.insert(row.begin() + 1, std::to_string(rank));
        table.add(std::move(row));
      }
    }
  }
  return table;
}

Table expected_table(const RunRecord& record) {
  Table table({"tokens", "output", "dtype", "expected", "elements", "rms", "rms error", "may be",
               "largest", "outside", "result"});
  for (const StepRun& step : record.steps)
    for (const ExpectedCheck& o : step.expected)
      table.add({std::to_string(step.report.tokens), o.name, std::string(name(o.dtype)),
                 std::string(name(o.expected_dtype)), std::to_string(o.count),
                 fmt::format("{:.4g}", o.rms), fmt::format("{:.3g}", o.rms_error),
                 o.bound > 0 ? fmt::format("{:.3g}", o.bound) : "–",
                 fmt::format("{:.3g}", o.largest), std::to_string(o.outside),
                 o.passed ? "ok" : "FAILED: " + o.reason});
  return table;
}

bool StepRun::failed() const {
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const NumericReport& one) { return !one.passed(); }) ||
         std::any_of(expected.begin(), expected.end(),
                     [](const ExpectedCheck& one) { return !one.passed; });
}

std::size_t failed_steps(const RunRecord& record) {
  return static_cast<std::size_t>(std::count_if(record.steps.begin(), record.steps.end(),
                                                [](const StepRun& step) { return step.failed(); }));
}

void add_run_commands(CLI::App& app, const Options& options) {
  auto args = std::make_shared<RunArgs>();
  auto* sub = app.add_subcommand("run", "Rewrite, split, plan and execute a graph");
  args->add_to(*sub);
  sub->add_flag("--check", args->check,
                "compare with the unrewritten graph, both against the double-precision "
                "interpreter; exit 4 if worse");
  sub->add_option("--save", args->save,
                  "write the outputs to this safetensors file, NAME@STEP where there are several "
                  "steps")
      ->type_name("FILE");
  CLI::Option* expect =
      sub->add_option("--expect", args->expect,
                      "compare the outputs with those of another system in a safetensors file, by "
                      "name or else in their order: by the RMS of the difference, beside the "
                      "errors of the unrewritten graph, which is run twice as by --check; or by "
                      "--rtol and --atol; exit 4 where one is beyond it")
          ->type_name("FILE");
  sub->add_option("--rtol", args->tolerance.relative,
                  "of --expect: each element, of the value; by dtype beside --atol alone")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect);
  sub->add_option("--atol", args->tolerance.absolute, "of --expect: each element, added to it")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect);
  sub->add_option("--dump", args->dump,
                  "write the graph before and after each pass, the pieces, generated sources, "
                  "plan.json and stats.json into this folder")
      ->type_name("DIR");
  sub->add_option("--report", args->report,
                  "write report.html, report.txt, plan.json and the journal into this folder")
      ->type_name("DIR");
  sub->footer(
      "Examples:\n"
      "  pwr run model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -r llm -p o2 --tokens 1,7,16,300 "
      "--check\n"
      "  pwr run model.json -r my_rules.pwr -p mine -D tp=2 --check --report out/\n"
      "  pwr run model.json -r llm -p o2 --backend cpu\n"
      "  pwr run model.json -r llm -p o2 --backend cuda --driver host --check\n"
      "  pwr run model.json -r llm -p o2 --plan plan.json --steps traffic.txt\n"
      "  pwr run model.json -r llm -p o2 --weights model.safetensors --map names.json --tokens 7 "
      "--expect outputs.safetensors\n"
      "  pwr run model.json -r llm -p o2 -D tp=2 --ranks 2 --replicated ids,embed_w --check");
  sub->callback([args, &options] { run_run(options, *args); });

  auto reported = std::make_shared<RunArgs>();
  reported->execute = false;
  reported->reports = true;
  sub = app.add_subcommand(
      "report", "Rewrite, split and plan a graph, and say all of it in one page or text");
  reported->add_to(*sub);
  sub->add_flag("--run", reported->execute,
                "execute the steps too, and compare their numbers as run --check does");
  sub->add_option("-o,--output", reported->output,
                  "report.html: one page with the graph after each pass; report.txt, or - for "
                  "standard output: text")
      ->capture_default_str();
  sub->footer(
      "Nothing of the machine is in it, and the same input gives the same bytes (but for "
      "--times).\n"
      "Examples:\n"
      "  pwr report model.json -r llm -p o2 -o report.html\n"
      "  pwr report model.json -r llm -p o2 --run --tokens 1,7,300 -o report.html\n"
      "  pwr report model.json -r llm -p o2 | less");
  sub->callback([reported, &options] { run_report(options, *reported); });
}

}  // namespace pw::cli
