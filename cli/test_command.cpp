// Exports the command test: the tests of rule files, each file on its own.
#include <algorithm>
#include <filesystem>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/generating.hpp"
#include "cli/junit.hpp"
#include "verify/baseline.hpp"

namespace pw::cli {
namespace {

struct TestArgs {
  std::vector<std::string> paths;
  std::vector<std::string> definitions;
  std::string only, junit;
  std::uint64_t seed = 1;
  bool update = false;
};

bool is_baseline(const std::string& path) { return path.ends_with(".counts.json"); }

/// The .pwr and .counts.json files below a folder, in order of their names; a file is itself.
std::vector<std::string> rule_files(const Session& session, const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      out.push_back(path);
      continue;
    }
    std::size_t before = out.size();
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator it(path, error), end; !error && it != end;
         it.increment(error))
      if (it->path().extension() == ".pwr" || is_baseline(it->path().string()))
        out.push_back(it->path().lexically_normal().string());
    if (error)
      session.die("cannot read the folder `" + path + "`: " + error.message(), "", kInvalidInput);
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    if (out.size() == before)
      session.die("there is no .pwr or .counts.json file below `" + path + "`", "", kUsage);
  }
  return out;
}

/// What the files' tests came to, and what is printed of them.
struct Outcome {
  TestReport report;
  std::string text;
  std::vector<UnloadedFile> unloaded;
  std::set<std::string> params;  ///< of all files
};

SourceId source_of(const Context& context, const RuleSet& set, const std::string& path) {
  for (const ast::File& file : set.files)
    if (std::filesystem::path(context.sources.name(file.source)).lexically_normal() ==
        std::filesystem::path(path).lexically_normal())
      return file.source;
  return {};
}

void update_file(const Session& session, const TestReport& report, const SourceMap& sources,
                 SourceId source) {
  const auto text = updated_counts(report, sources, source);
  if (!text) return;
  session.need(write_file(sources.name(source), *text));
  for (const TestResult& test : report.tests)
    for (const TestFailure& failure : test.failures)
      if (failure.fix)
        session.say(fmt::format("{}: {} is now {}", sources.describe(failure.fix->span),
                                sources.text(failure.fix->span), failure.fix->value));
}

/// Failures that --update has put right.
void drop_repaired(TestReport& report) {
  for (TestResult& test : report.tests)
    std::erase_if(test.failures, [](const TestFailure& f) { return f.fix.has_value(); });
}

/// A file has a context of its own, so that two may use one name.
void run_file(const TestArgs& args, const TestOptions& options, const Options& shared,
              const std::string& path, Outcome& outcome) {
  Session session(shared);
  const RuleSet set = session.need(load_rules(session.context, {path}));
  const SourceId source = source_of(*session.context, set, path);
  for (const auto& [name, param] : set.params) outcome.params.insert(name);
  TestOptions known = options;
  std::erase_if(known.definitions, [&](const auto& d) { return !set.params.contains(d.first); });
  TestReport report = run_tests(set, {source}, known);
  if (args.update) {
    update_file(session, report, session.context->sources, source);
    drop_repaired(report);
  }
  outcome.text += test_lines(report, session.context->sources);
  std::move(report.tests.begin(), report.tests.end(), std::back_inserter(outcome.report.tests));
}

/// Each pipeline of a file of counts is a test.
void run_baseline(const TestArgs& args, const Options& shared, const std::string& path,
                  Outcome& outcome) {
  Session session(shared);
  Baseline baseline = session.need(baseline_from_json(session.need(read_file(path)), path));
  const RuleSet set = session.need(load_rules(session.context, baseline.rules));
  const Env params = session.need(bind_params(set, baseline.params));
  const Graph graph = generated(session, baseline.generate);
  TestReport report;
  bool changed = false;
  for (auto& [pipeline, known] : baseline.pipelines) {
    if (pipeline.find(args.only) == std::string::npos) continue;
    const PipelineCounts counts = session.need(count_pipeline(graph, set, pipeline, params));
    TestResult result{pipeline, path, {}, 1, false, {}, 0};
    if (counts != known && args.update) {
      changed = true;
      session.say(path + ": " + pipeline + "\n" + counts_difference(known, counts));
      known = counts;
    } else if (counts != known) {
      result.failures.push_back({{},
                                 "the counts of `" + pipeline + "` are not those of the file",
                                 counts_difference(known, counts) +
                                     "  if this is meant: pwr test " + path + " --update\n",
                                 {}});
    }
    report.tests.push_back(std::move(result));
  }
  if (changed) session.need(write_file(path, baseline_to_json(baseline)));
  outcome.text += test_lines(report, session.context->sources);
  std::move(report.tests.begin(), report.tests.end(), std::back_inserter(outcome.report.tests));
}

/// A file that cannot be loaded hides no other.
void run_path(const TestArgs& args, const TestOptions& options, const Options& shared,
              const std::string& path, Outcome& outcome) {
  try {
    if (is_baseline(path))
      run_baseline(args, shared, path, outcome);
    else
      run_file(args, options, shared, path, outcome);
  } catch (const Exit& early) {
    outcome.unloaded.push_back({path, early.message, early.report});
  }
}

void print_outcome(const Options& options, const Outcome& outcome) {
  if (options.format == "table") {
    print_out(outcome.text + test_summary(outcome.report));
    return;
  }
  Table table({"file", "test", "expectations", "negative", "result"});
  for (const TestResult& test : outcome.report.tests)
    table.add({test.file, test.name, std::to_string(test.expectations),
               test.negative ? "yes" : "no", test.passed() ? "ok" : test.failures.front().message});
  print_out(table.print(options.format));
}

void run_test(const Options& options, const TestArgs& args) {
  Session session(options);
  TestOptions test_options;
  test_options.only = args.only;
  test_options.seed = args.seed;
  for (const std::string& text : args.definitions)
    test_options.definitions.push_back(session.need(parse_definition(text), kUsage));
  Outcome outcome;
  for (const std::string& path : rule_files(session, args.paths))
    run_path(args, test_options, options, path, outcome);
  for (const auto& [name, value] : test_options.definitions)
    if (outcome.unloaded.empty() && !outcome.params.contains(name))
      session.die("no file has a param `" + name + "`", "", kUsage);
  print_outcome(options, outcome);
  if (!args.junit.empty())
    session.need(write_file(args.junit, junit(outcome.report.tests, outcome.unloaded)));
  if (!outcome.unloaded.empty()) throw Exit{kInvalidInput};
  if (outcome.report.failed() > 0) throw Exit{kNegative};
}

}  // namespace

void add_test_command(CLI::App& app, const Options& options) {
  auto test = std::make_shared<TestArgs>();
  auto* sub = app.add_subcommand(
      "test", "Run the tests in rule files, and compare counts kept in .counts.json files");
  sub->add_option("paths", test->paths, "rule files, files of counts, or folders of them")
      ->required();
  sub->add_option("--only", test->only, "tests whose name holds this text")->type_name("TEXT");
  sub->add_option("-D,--define", test->definitions, "set a param, unless a test sets it: -D tp=2")
      ->type_name("NAME=VALUE");
  sub->add_flag(
      "--update", test->update,
      "put the counts of failed `expect R == 3` and of .counts.json files right; other failures "
      "stay");
  sub->add_option("--junit", test->junit, "write the results as JUnit XML too")->type_name("FILE");
  sub->add_option("--seed", test->seed, "of the numbers for `expect numeric`")
      ->capture_default_str();
  sub->footer(
      "Examples:\n"
      "  pwr test rules/\n"
      "  pwr test my_rules.pwr --only residual\n"
      "  pwr test rules/ --update && git diff       look at what the counts became\n"
      "  pwr test rules/ --junit results.xml\n"
      "  pwr test tests/baselines/          rewrites of generated models, rule by rule");
  sub->callback([test, &options] { run_test(options, *test); });
}

}  // namespace pw::cli
