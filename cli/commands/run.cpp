#include "pipeline/run/run.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "cli/command_text.hpp"
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/folded.hpp"
#include "cli/parts/labs.hpp"
#include "cli/settings.hpp"
#include "engines/python_functions.hpp"
#include "engines/rank_library.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/report/report.hpp"
#include "pipeline/report/report_diff.hpp"
#include "pipeline/run/dump.hpp"
#include "pipeline/run/generation.hpp"

namespace pw::cli {
namespace {

struct RunArgs : EngineArgs {
  RunRequest run;  ///< fields without an option in EngineArgs
  std::string report, dump;
  RunFailureArgs failure;
  std::string ranks = "1";  ///< a number of ranks, or the launcher
  bool no_pad = false;
  std::string host_functions;         ///< a Python file
  std::string output = "-";           ///< of report
  std::vector<std::string> compared;  ///< two reports
  bool all = false;                   ///< also rows where nothing happened
  /// Adds the options of a run, without those for its output.
  void add_to(CLI::App& sub, bool graph_required = true);
  [[nodiscard]] RunRequest request(const Session& session) const;
};

/// Ends this process after the loss of a rank, immediately, because its work waits for that rank.
RankLost end_of(const Session& session) {
  return [&session](const Diagnostics& diagnostics) {
    if (!diagnostics.empty()) session.report(diagnostics);
    constexpr auto kRead = std::chrono::milliseconds(200);  // so the other ranks notice
    std::this_thread::sleep_for(kRead);
    ::_exit(kInvalidInput);
  };
}

bool are_processes(const std::string& ranks) { return ranks == "mpi" || ranks == "nccl"; }

void take_ranks(const Session& session, const std::string& ranks, RunRequest& request) {
  if (!are_processes(ranks)) {
    request.ranks = session.need(parse_numbers(ranks, 1, 64)).front();
    return;
  }
  request.others = session.need(open_ranks(ranks, request.engine, end_of(session)));
  if (request.others->size() == 1)
    session.say("running a single rank; start several with mpirun or torchrun");
}

/// Returns true for the rank that prints: all would print the same.
bool speaks(const RunRequest& request) {
  return request.others == nullptr || request.others->rank() == 0;
}

RunRequest RunArgs::request(const Session& session) const {
  RunRequest out = run;
  fill(session, out);
  if (!host_functions.empty())
    session.need(give_python_functions(*session.context, host_functions));
  take_ranks(session, ranks, out);
  out.pad = !no_pad;
  out.command = shown_command("pwr", session.options.arguments);
  out.replication = {.all = false, .names = {graph.replicated.begin(), graph.replicated.end()}};
  out.replication.all = out.replication.names.erase("all") > 0;
  return out;
}

/// The results of a run of one graph.
Answer answer_of(const RunRecord& record, const RunRequest& request) {
  Answer out;
  out.add("variant", Cell(record.variant));
  out.add("passes", pass_table(record.rewrite));
  if (record.proof) {
    out.add("proofs", run_proof_table(*record.proof));
    out.add("not_proved", left_table(*record.proof));
  }
  out.add("steps", step_table(record));
  if (record.generated) {
    out.add("generated", generated_table(*record.generated));
    out.add("generated_steps", Cell(record.generated->steps));
    out.add("generated_launches", Cell(record.generated->launches));
  }
  if (request.check) {
    out.add("numbers", number_table(record));
    out.add("ties", tie_table(record));
  }
  if (!request.expect.empty()) out.add("expected", expected_table(record));
  return out;
}

std::vector<std::int64_t> failed_tokens(const RunRecord& record) {
  std::vector<std::int64_t> out;
  for (const StepRun& step : record.steps)
    if (step.failed()) out.push_back(step.report.tokens);
  return out;
}

/// Returns the words of the command line that name the graph of a run.
std::vector<std::string> graph_words(const GraphSource& graph) {
  std::vector<std::string> words{graph.path};
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {option, value});
  };
  add("--symbol", graph.symbols);
  add("--type", graph.types);
  if (graph.number != 0) add("--graph", {std::to_string(graph.number)});
  add("--input", graph.inputs);
  add("--weight", graph.weights);
  add("--buffer", graph.buffers);
  add("--set", graph.values);
  if (!graph.tokens.empty()) add("--tokens-symbol", {graph.tokens});
  add("--replicated", graph.replicated);
  return words;
}

/// Returns the words of the command that finds the rewrite at fault.
std::vector<std::string> bisect_words(const RunArgs& args,
                                      const std::vector<std::int64_t>& tokens) {
  std::vector<std::string> words = graph_words(args.graph);
  words.insert(words.begin(), "bisect");
  for (const std::string& file : args.rules.rules) words.insert(words.end(), {"-r", file});
  words.insert(words.end(), {"-p", args.rules.pipeline});
  for (const std::string& text : args.rules.definitions) words.insert(words.end(), {"-D", text});
  words.insert(words.end(), {"--tokens", std::to_string(tokens.front())});
  const EngineOptions usual;
  const std::uint64_t seed = args.stated.engine.seed;
  if (seed != usual.seed) words.insert(words.end(), {"--seed", std::to_string(seed)});
  return words;
}

/// Adds the next command to a record whose numbers fail, and for a report the rewrite at fault.
void add_cause(const Session& session, const RunArgs& args, const LoadedRules& rules,
               RunRecord& record, bool reported) {
  const std::vector<std::int64_t> tokens = failed_tokens(record);
  if (tokens.empty() || args.rules.pipeline.empty() || labs() == nullptr) return;
  record.next_command = shown_command("pwr", bisect_words(args, tokens));
  if (reported)
    record.culprit = labs()->find_culprit(session, args.rules.pipeline, args.stated.engine.seed,
                                          {record.versions.front().graph, rules, {tokens.front()}});
}

/// Prints results as they arrive, or one JSON document at the end.
void print_results(const Session& session, const RunRecord& record, const Answer& answer,
                   bool all) {
  std::size_t ties = 0;
  for (const StepRun& step : record.steps)
    for (const NumericReport& report : step.numbers) ties += report.ties.size();
  if (ties > 0)
    session.say(
        fmt::format("note: the rewritten run resolves {} differently from the reference, and is "
                    "otherwise the same",
                    counted(ties, "tie")));
  session.say(split_summary(*record.pieces));
  session.say(plan_summary(record.plan));
  if (session.json()) return;
  const std::string& format = session.options.format;
  std::size_t idle = 0, active = 0;
  for (const auto& [key, member] : answer.members) {
    const auto* table = std::get_if<Table>(&member);
    if (table == nullptr) continue;
    const bool fold = key == "passes" && format == "table" && !all;
    Folded part = fold ? folded(*table, "rewrites", "0") : Folded{*table};
    idle += part.hidden;
    if (fold) active += part.shown.rows().size();
    if (!part.shown.empty()) print_out(part.shown.print(format) + (format == "table" ? "\n" : ""));
  }
  if (idle > 0)
    session.say(active > 0 ? counted(idle, "pass") + " changed nothing; --all lists them"
                           : "no pass changed the graph; --all lists the passes");
  const bool checked = !record.steps.empty() && !record.steps.front().numbers.empty();
  if (checked && format == "table")
    session.say(
        "error before, after: RMS error of the unrewritten and the rewritten run, against double "
        "precision; may be: the largest error after that passes; left out: elements that are not "
        "finite");
}

/// Exits with 4 if numbers fail, after `failing`. `answers`: those of all graphs, printed at the
/// end; null if standard output already has the answer.
void run_all(
    const Session& session, const RunRequest& request, const RunDone& done,
    const std::vector<Answer>* answers, const std::function<void()>& failing = [] {}) {
  const Log log = speaks(request) ? session.log() : Log();
  const auto run = run_model(session.context, request, log, done);
  if (!run && !speaks(request) && run.error().front().code == "PW1291")
    throw Exit{exit_code_of(run.error())};
  if (!run && request.others)
    session.say(fmt::format("rank {} of {}:", request.others->rank(), request.others->size()));
  const RunSummary summary = session.need(run);
  if (session.json() && answers != nullptr && speaks(request)) {
    Answer whole;
    whole.add("graphs", *answers);
    whole.add("steps", Cell(summary.steps));
    whole.add("failed", Cell(summary.failed));
    print_out(whole.print("json"));
  }
  if (summary.failed > 0) {
    const std::string rank =
        request.others ? fmt::format("rank {}: ", request.others->rank()) : std::string();
    session.say(fmt::format(
        "{}{} of {} {} from {} by more than {} may", rank, summary.failed,
        counted(summary.steps, "step"), summary.failed == 1 ? "differs" : "differ",
        request.check ? "the reference" : request.expect, summary.failed == 1 ? "it" : "they"));
    failing();
    throw Exit{kNumericMismatch};
  }
}

std::string inside(std::string folder, const std::string& variant) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return variant.empty() ? folder : folder + "/" + variant;
}

void run_run(const Options& options, const RunArgs& args) {
  Session session(options);
  RunRequest request = args.request(session);
  request.hash_files = !args.report.empty();
  request.check = request.check || args.failure.wanted();
  if (request.others && args.failure.wanted())
    session.need(Status(fail(error_in("--ranks " + args.ranks, "PW1201",
                                      "--check-each and --on-failure need all ranks in one process",
                                      "use the same number of ranks in one process: --ranks " +
                                          std::to_string(request.others->size())))));
  std::vector<Answer> answers;
  std::optional<FailedRun> failed;
  std::string next;
  const RunDone done = [&](RunRecord& record, const LoadedRules& rules) {
    if (!speaks(request)) return Status();
    answers.push_back(answer_of(record, request));
    if (args.failure.check_each) labs()->check_passes(session, request, record, answers.back());
    if (!args.failure.on_failure.empty() && !failed && failed_steps(record) > 0)
      failed = FailedRun{record.versions.front().graph, rules, failed_tokens(record)};
    if (request.check && !request.others)
      add_cause(session, args, rules, record, !args.report.empty());
    if (next.empty() && !record.next_command.empty())
      next = next_command("pwr", bisect_words(args, failed_tokens(record)));
    print_results(session, record, answers.back(), args.all);
    if (!args.report.empty())
      session.say("report: " +
                  session.need(write_report(record, rules, inside(args.report, record.variant),
                                            session.log())));
    if (!args.dump.empty())
      session.need(write_dump(record, rules.set, inside(args.dump, record.variant), session.log()));
    return Status();
  };
  run_all(session, request, done, &answers, [&] {
    if (!next.empty() && !args.failure.wanted())
      session.say(
          "help: --check-each names the first pass that fails; this names the rewrite:\n  " + next);
    if (failed)
      labs()->reduce_failure(session, args.failure, args.rules, args.stated.engine.seed, *failed);
  });
  if (request.check && speaks(request)) session.say("all outputs of all steps pass the check");
}

enum class ReportForm : std::uint8_t { text, page, markdown, json };

/// Selects the format by the extension; for standard output by --format.
ReportForm report_form(const Session& session, const std::string& path) {
  if (names_stream(path)) return session.json() ? ReportForm::json : ReportForm::text;
  if (path.ends_with(".html") || path.ends_with(".htm")) return ReportForm::page;
  if (path.ends_with(".md")) return ReportForm::markdown;
  if (path.ends_with(".json")) return ReportForm::json;
  if (!path.ends_with(".txt"))
    session.die("cannot determine the format of `" + path + "` from its extension",
                "the extensions of reports are .html, .txt, .md and .json", kUsage);
  return ReportForm::text;
}

Result<std::string> written(const Session& session, const RunRecord& record,
                            const LoadedRules& rules, ReportForm form) {
  switch (form) {
    case ReportForm::text: return text_of(record, rules.set);
    case ReportForm::page: return page_of(record, rules, session.log());
    case ReportForm::markdown: return markdown_of(record, rules.set);
    case ReportForm::json: return json_of(record, rules.set);
  }
  return std::string();
}

void run_report_diff(const Session& session, const std::vector<std::string>& files, bool all) {
  const auto changes = session.need(compare_report_files(files[0], files[1]));
  print_out(session.options.format == "table"
                ? report_change_lines(changes, all)
                : report_change_table(changes).print(session.options.format));
  if (changes.empty()) return session.say("the reports are equal");
  session.say(fmt::format("{} and {} differ", files[0], files[1]));
  throw Exit{kNegative};
}

void run_report(const Options& options, const RunArgs& args) {
  Session session(options);
  if (!args.compared.empty()) return run_report_diff(session, args.compared, args.all);
  if (args.graph.path.empty())
    session.die("no graph is given", "pwr report model.json, or pwr report --diff A B", kUsage);
  const ReportForm form = report_form(session, args.output);
  RunRequest request = args.request(session);
  request.check = request.execute;
  request.hash_files = true;
  const bool streamed = names_stream(args.output);
  std::vector<Answer> answers;
  const RunDone done = [&](RunRecord& record, const LoadedRules& rules) {
    if (!speaks(request)) return Status();
    if (request.check && !request.others) add_cause(session, args, rules, record, true);
    if (streamed && form == ReportForm::json && !answers.empty())
      session.die("several reports cannot share standard output",
                  "name a file with -o: each report is written to its own", kUsage);
    const std::string path = streamed ? args.output : variant_path(args.output, record.variant);
    session.need(write_file(path, session.need(written(session, record, rules, form))));
    if (!streamed) session.say("report: " + path);
    Answer& answer = answers.emplace_back();
    answer.add("variant", Cell(record.variant));
    answer.add("output", Cell(path));
    return Status();
  };
  run_all(session, request, done, streamed ? nullptr : &answers);
}

void RunArgs::add_to(CLI::App& sub, bool graph_required) {
  EngineArgs::add_to(sub, graph_required);
  sub.add_option("--ranks", ranks,
                 "N: emulate N ranks in this process in lockstep, with exact collectives; mpi, "
                 "nccl: run as one rank of a job started by mpirun or torchrun")
      ->check([](const std::string& text) {
        return are_processes(text) ? std::string() : CLI::Range(1, 64)(text);
      })
      ->type_name("N|mpi|nccl")
      ->capture_default_str()
      ->configurable();
  add_file(sub, "--host-functions", host_functions,
           "a Python file whose dict `functions` maps names of ops that have neither a "
           "kernel nor a body to functions; it runs in python3 with your full permissions");
  add_switch(sub, "--prove", run.prove,
             "prove each rewrite, by its rule or individually, and list those that are not proved");
  add_switch(sub, "--no-pad", no_pad, "do not pad steps: run each at its own size");
  add_switch(sub, "!--no-native", stated.native,
             "with a .pwx: ignore its compiled code, and run its graphs on --backend");
  add_switch(
      sub, "--times", run.times,
      "include the times of passes and steps in the report, which is otherwise reproducible");
}

void add_run_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<RunArgs>();
  auto* sub = app.add_subcommand("run", "Rewrite, split, plan and execute a graph");
  args->add_to(*sub);
  args->add_generation(*sub);
  add_switch(*sub, "--all", args->all, "also print passes that changed nothing");
  add_switch(*sub, "--check", args->run.check,
             "compare the errors with those of the unrewritten graph, both against the "
             "double-precision interpreter; exit with 4 if worse");
  if (labs() != nullptr) labs()->add_run_options(*sub, args->failure);
  add_file(*sub, "--save", args->run.save,
           "write the outputs to this safetensors file, as NAME@STEP if there are several steps");
  CLI::Option* expect = add_setting(
      *sub, "--expect", args->run.expect, "FILE",
      "compare the outputs with those of another system in this safetensors file, matched "
      "by name or else by order; the RMS of the difference must not exceed the error of the "
      "unrewritten graph, measured as with --check, or else each element must be within "
      "--rtol and --atol; exit with 4 if an output differs by more");
  sub->add_option(
         "--rtol", args->run.tolerance.relative,
         "with --expect: relative tolerance of each element; default with --atol alone: by dtype")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect)
      ->configurable();
  sub->add_option("--atol", args->run.tolerance.absolute,
                  "with --expect: absolute tolerance of each element, added to the relative one")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect)
      ->configurable();
  sub->add_option("--dump", args->dump,
                  "write the graph before and after each pass, the pieces, generated sources, "
                  "plan.json and stats.json to this folder")
      ->type_name("DIR");
  sub->add_option(
         "--report", args->report,
         "write report.html, report.txt, report.json, plan.json and the journal to this folder")
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
      "  pwr run model.json -r llm -p o2 -D tp=2 --ranks 2 --replicated ids,embed_w --check\n"
      "  mpirun -n 2 pwr run model.json -r llm -p o2 -D tp=2 --ranks mpi --check");
  sub->callback([args, &options] { run_run(options, *args); });
}

void add_report_command(CLI::App& app, const Options& options) {
  auto reported = std::make_shared<RunArgs>();
  reported->run.execute = false;
  auto* sub = app.add_subcommand(
      "report", "Rewrite, split and plan a graph, and report all of it as a page or text");
  reported->add_to(*sub, false);
  add_switch(*sub, "--all", reported->all, "with --diff: list every row that differs");
  add_switch(*sub, "--run", reported->run.execute,
             "also execute the steps, and compare their results as run --check does");
  sub->add_option("-o,--output", reported->output,
                  "report.html: a page with the graph after each pass; report.txt, or - for "
                  "standard output: text; report.md: Markdown; report.json: data, for --diff")
      ->capture_default_str();
  add_setting(*sub, "--diff", reported->compared, "A B",
              "compare two .json reports instead; exit with 1 if they differ")
      ->expected(2);
  sub->footer(
      "A report contains nothing about the machine; without --times, the same input gives the same "
      "bytes.\n"
      "Examples:\n"
      "  pwr report model.json -r llm -p o2 -o report.html\n"
      "  pwr report model.json -r llm -p o2 --run --tokens 1,7,300 -o report.html\n"
      "  pwr report model.json -r llm -p o2 | less\n"
      "  pwr report model.json -r llm -p o2 -o before.json\n"
      "  pwr report model.json -r mine.pwr -p mine -o after.json\n"
      "  pwr report --diff before.json after.json     what did my rules change?");
  sub->callback([reported, &options] { run_report(options, *reported); });
}

}  // namespace

void add_run_commands(CLI::App& app, const Options& options) {
  add_run_command(app, options);
  add_report_command(app, options);
}

}  // namespace pw::cli
