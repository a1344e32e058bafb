#include "pipeline/check/test.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/judge/judge.hpp"
#include "pipeline/load.hpp"
#include "verify/baseline.hpp"

namespace pw {
namespace {

bool is_baseline(const std::string& path) { return path.ends_with(".counts.json"); }

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".pwr" || is_baseline(it->path().string()))
      out.push_back(it->path().lexically_normal().string());
  if (error)
    return fail(
        error_at({}, "PW1431", "cannot read the folder `" + folder + "`: " + error.message()));
  if (out.empty())
    return fail(
        error_at({}, "PW1421", "there is no .pwr or .counts.json file in `" + folder + "`"));
  std::sort(out.begin(), out.end());
  return out;
}

SourceId source_of(const Context& context, const RuleSet& set, const std::string& path) {
  for (const ast::File& file : set.files)
    if (std::filesystem::path(context.sources.name(file.source)).lexically_normal() ==
        std::filesystem::path(path).lexically_normal())
      return file.source;
  return {};
}

/// Failures that an update has put right.
void drop_repaired(TestReport& report) {
  for (TestResult& test : report.tests)
    std::erase_if(test.failures, [](const TestFailure& f) { return f.fix.has_value(); });
}

Status update_file(TestReport& report, const SourceMap& sources, SourceId source, const Log& log) {
  if (const auto text = updated_counts(report, sources, source)) {
    PW_TRY(write_file(sources.name(source), *text));
    for (const TestResult& test : report.tests)
      for (const TestFailure& failure : test.failures)
        if (failure.fix)
          log.say(fmt::format("{}: {} is now {}", sources.describe(failure.fix->span),
                              sources.text(failure.fix->span), failure.fix->value));
  }
  drop_repaired(report);
  return {};
}

class TestFiles {
 public:
  TestFiles(const TestRequest& request, TestOptions options, const Log& log)
      : request_(request), options_(std::move(options)), log_(log) {}

  /// Each file has a separate context, so that two files may use one name.
  void run(const std::string& path, const UnloadedDone& unloaded) {
    const ContextPtr context = std::make_shared<Context>();
    const auto report =
        is_baseline(path) ? run_baseline(context, path) : run_rule_file(context, path);
    if (!report) {
      unloaded(report.error(), context);
      out_.unloaded.push_back({path, report.error().empty() ? "" : report.error().front().message,
                               render(report.error(), context->sources)});
      return;
    }
    out_.text += test_lines(*report, context->sources);
    out_.report.tests.insert(out_.report.tests.end(), report->tests.begin(), report->tests.end());
  }

  /// Returns the param of a definition that no file declares.
  [[nodiscard]] const std::string* unknown_param() const {
    for (const auto& [name, value] : options_.definitions)
      if (out_.unloaded.empty() && !params_.contains(name)) return &name;
    return nullptr;
  }
  TestOutcome take() { return std::move(out_); }

 private:
  Result<TestReport> run_rule_file(const ContextPtr& context, const std::string& path) {
    const RuleSet set = PW_TRY(load_rules(context, {path}));
    const SourceId source = source_of(*context, set, path);
    for (const auto& [name, param] : set.params) params_.insert(name);
    TestOptions known = options_;
    std::erase_if(known.definitions, [&](const auto& d) { return !set.params.contains(d.first); });
    TestReport report = run_tests(set, {source}, known);
    if (request_.update) PW_TRY(update_file(report, context->sources, source, log_));
    if (request_.verdicts) PW_TRY(add_verdicts(set, source, known.definitions, path, report));
    return report;
  }

  /// Adds a test per rule of the file, which fails if the rule changes numbers or may overflow.
  Status add_verdicts(const RuleSet& set, SourceId source,
                      const std::vector<std::pair<std::string, std::string>>& params,
                      const std::string& path, TestReport& report) const {
    const LoadedRules loaded{set, PW_TRY(bind_params(set, params))};
    RuleJudge judge(loaded, {});
    for (const RuleId id : PW_TRY(rules_to_judge(set, {}))) {
      const Rule& rule = set.rules[id];
      if (!(rule.name_span.source == source)) continue;
      const RuleJudgement judgement = judge.judge(id);
      TestResult result;
      result.name = "verdict of " + rule.name;
      result.file = path;
      result.span = rule.name_span;
      result.expectations = 1;
      const std::size_t line = judgement.reason.find('\n');
      for (const Diagnostic& warning : verdict_warnings(set, id, judgement, path))
        result.failures.push_back(
            {rule.name_span, warning.message,
             line == std::string::npos ? "" : judgement.reason.substr(line + 1)});
      report.tests.push_back(std::move(result));
    }
    return {};
  }

  /// Runs each pipeline of a count file as a test.
  Result<TestReport> run_baseline(const ContextPtr& context, const std::string& path) {
    Baseline baseline =
        PW_TRY(baseline_from_json(PW_TRY(read_text_file(path, "a file of counts")), path));
    const RuleSet set = PW_TRY(load_rules(context, baseline.rules));
    const Env params = PW_TRY(bind_params(set, baseline.params));
    const Graph graph = PW_TRY(generate_model(context, PW_TRY(parse_model(baseline.generate))));
    TestReport report;
    bool changed = false;
    for (auto& [pipeline, known] : baseline.pipelines) {
      if (pipeline.find(request_.only) == std::string::npos) continue;
      const PipelineCounts counts = PW_TRY(count_pipeline(graph, set, pipeline, params));
      TestResult& result =
          report.tests.emplace_back(TestResult{pipeline, path, {}, 1, false, {}, 0});
      if (counts == known) continue;
      const std::string difference = counts_difference(known, counts);
      if (!request_.update) {
        result.failures.push_back(
            {{},
             "the counts of `" + pipeline + "` differ from the file",
             difference + "  if this is intended: pwr test " + path + " --update\n",
             {}});
        continue;
      }
      changed = true;
      log_.say(path + ": " + pipeline + "\n" + difference);
      known = counts;
    }
    if (changed) PW_TRY(write_file(path, baseline_to_json(baseline)));
    return report;
  }

  const TestRequest& request_;
  TestOptions options_;
  const Log& log_;
  TestOutcome out_;
  std::set<std::string> params_;  // of all files
};

}  // namespace

Result<std::vector<std::string>> test_files(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    if (std::error_code ignored; !std::filesystem::is_directory(path, ignored)) {
      out.push_back(path);
      continue;
    }
    for (std::string& file : PW_TRY(files_below(path))) out.push_back(std::move(file));
  }
  return out;
}

Result<TestOutcome> run_test_files(const TestRequest& request, const Log& log,
                                   const UnloadedDone& unloaded) {
  TestOptions options;
  options.only = request.only;
  options.seed = request.seed;
  for (const std::string& text : request.definitions)
    options.definitions.push_back(PW_TRY(parse_definition(text)));
  TestFiles files(request, std::move(options), log);
  const std::vector<std::string> paths = PW_TRY(test_files(request.paths));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    log.progress({"testing", i, paths.size(), "files"});
    files.run(paths[i], unloaded);
  }
  if (const std::string* name = files.unknown_param())
    return fail(error_at({}, "PW1422", "no file declares a param `" + *name + "`"));
  TestOutcome out = files.take();
  if (out.report.tests.empty() && out.unloaded.empty())
    return fail(error_at({}, "PW1441",
                         request.only.empty()
                             ? std::string("the named files have no tests")
                             : "no test has a name that contains `" + request.only + "`",
                         request.only.empty() ? "tests begin with `test name {` in a .pwr file"
                                              : "leave out --only to run all tests"));
  return out;
}

Table test_table(const TestReport& report) {
  Table table({"file", "test", "expectations", "negative", "result"});
  for (const TestResult& test : report.tests)
    table.add({test.file, test.name, test.expectations, yes_cell(test.negative, "no"),
               test.passed() ? "ok" : test.failures.front().message});
  return table;
}

}  // namespace pw
