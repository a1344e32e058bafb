#include "verify/test_runner.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/own_folders.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "verify/expectation.hpp"
#include "verify/traits.hpp"

namespace pw {
namespace {

Result<Graph> graph_of(const RuleSet& rules, const ast::Test& test, const std::string& file) {
  if (!test.graph.empty()) return build_graph(rules.context, test.graph.front());
  const std::size_t slash = file.rfind('/');
  const bool relative = !test.file.starts_with("/") && slash != std::string::npos;
  const std::string path = relative ? file.substr(0, slash + 1) + test.file : test.file;
  auto graph = load_graph(rules.context, path);
  OwnFolders own;
  own.add_file(file);
  if (graph || own.hold(path)) return graph;
  return fail(
      test.span, "PW1310", "`" + path + "` cannot be read as a graph",
      "it is outside the rule file's folder, so its contents are not shown; run `pwr stats " +
          path + "` to see its errors");
}

Result<Env> params_of(const RuleSet& rules, const ast::Test& test, const TestOptions& options) {
  auto definitions = options.definitions;
  for (const auto& [name, value] : test.with) {
    definitions.emplace_back(name, value.kind == Expr::Kind::string ? value.text : print(value));
  }
  return bind_params(rules, definitions);
}

/// The texts of the diagnostics without source lines, which would contain the test itself.
std::string words_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    text += d.code + " " + d.message + "\n" + d.place + "\n" + d.label + "\n" + d.help + "\n";
    for (const Label& label : d.secondary) text += label.text + "\n";
    for (const std::string& note : d.notes) text += note + "\n";
  }
  return text;
}

class TestCase {
 public:
  TestCase(const RuleSet& rules, const ast::Test& test, const TestOptions& options,
           TestResult& result)
      : rules_(rules), test_(test), options_(options), result_(result) {}

  void run() {
    auto graph = graph_of(rules_, test_, result_.file);
    if (!graph) return stopped("the graph cannot be built", graph.error());
    if (auto kept = refuse_false_traits(*graph); !kept)
      return stopped("the graph declares a false trait of one of its ops", kept.error());
    auto params = params_of(rules_, test_, options_);
    if (!params) return stopped("the parameters are not valid", params.error());
    const Graph before = graph->compact();
    std::vector<TestVariant> variants;
    variants.push_back({{1, SymbolFact().max}, "", {}, std::move(*graph), {}, {}});
    for (const auto& [pass, span] : test_.apply) {
      auto after = applied(std::move(variants), pass, *params);
      if (!after) return stopped(fmt::format("`{}` did not run", pass), after.error());
      variants = std::move(*after);
    }
    for (const TestVariant& variant : variants)
      if (const Diagnostics broken = verify(variant.after); !broken.empty())
        return stopped("the rewritten graph is malformed", broken);
    for (const ast::Expectation& expectation : test_.expectations) {
      auto failure = judge({rules_, *params, before, variants, options_.seed}, expectation);
      if (failure) result_.failures.push_back(std::move(*failure));
    }
  }

 private:
  /// Applies one more pass to each variant, which may split it.
  Result<std::vector<TestVariant>> applied(std::vector<TestVariant> variants,
                                           const std::string& pass, const Env& params) const {
    const Strategy* strategy = rules_.strategy(pass);
    const bool ranged = strategy != nullptr && !strategy->ranges.empty();
    std::vector<TestVariant> out;
    for (TestVariant& variant : variants) {
      auto results = PW_TRY(run_ranges(variant.after, rules_, pass, params));
      for (RangedResult& result : results) {
        if (result.otherwise) continue;
        TestVariant next{result.range,    variant.name, variant.conditions, std::move(result.graph),
                         variant.reports, variant.runs};
        if (ranged) next.name = fmt::format("{}..{}", result.range.min, result.range.max);
        next.conditions.insert(next.conditions.end(), result.conditions.begin(),
                               result.conditions.end());
        next.reports.push_back(std::move(result.report));
        next.runs.push_back({pass, result.range});
        out.push_back(std::move(next));
      }
    }
    return out;
  }

  /// A test that stops with diagnostics passes if it expects this error.
  void stopped(const std::string& message, const Diagnostics& diagnostics) {
    const std::string text = render(diagnostics, rules_.context->sources);
    for (const ast::Expectation& expectation : test_.expectations) {
      if (expectation.kind != ast::Expectation::Kind::error) continue;
      if (words_of(diagnostics).find(expectation.error) == std::string::npos) {
        result_.failures.push_back(
            {expectation.span,
             fmt::format("expected the error \"{}\", got another", expectation.error),
             text,
             {}});
      }
      return;
    }
    result_.failures.push_back({test_.span, message, text, {}});
  }

  const RuleSet& rules_;
  const ast::Test& test_;
  const TestOptions& options_;
  TestResult& result_;
};

TestResult run_test(const RuleSet& rules, const ast::Test& test, const std::string& file,
                    const TestOptions& options) {
  TestResult result{
      test.name, file, test.name_span, static_cast<int>(test.expectations.size()), false, {}, 0};
  for (const ast::Expectation& expectation : test.expectations) {
    result.negative =
        result.negative || !expectation.because_code.empty() || !expectation.because_text.empty();
  }
  const auto start = std::chrono::steady_clock::now();
  TestCase(rules, test, options, result).run();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

std::size_t TestReport::failed() const {
  return static_cast<std::size_t>(std::count_if(
      tests.begin(), tests.end(), [](const TestResult& test) { return !test.passed(); }));
}
std::size_t TestReport::negative() const {
  return static_cast<std::size_t>(std::count_if(
      tests.begin(), tests.end(), [](const TestResult& test) { return test.negative; }));
}
std::size_t TestReport::expectations() const {
  std::size_t total = 0;
  for (const TestResult& test : tests) total += static_cast<std::size_t>(test.expectations);
  return total;
}

TestReport run_tests(const RuleSet& rules, const std::vector<SourceId>& sources,
                     const TestOptions& options) {
  TestReport report;
  for (const ast::File& file : rules.files) {
    if (!sources.empty() && std::find(sources.begin(), sources.end(), file.source) == sources.end())
      continue;
    const std::string& name = rules.context->sources.name(file.source);
    for (const ast::Item& item : file.items) {
      const auto* test = std::get_if<ast::Test>(&item);
      if (test == nullptr || test->name.find(options.only) == std::string::npos) continue;
      report.tests.push_back(run_test(rules, *test, name, options));
    }
  }
  return report;
}

std::optional<std::string> updated_counts(const TestReport& report, const SourceMap& sources,
                                          SourceId source) {
  std::map<std::uint32_t, CountFix, std::greater<>>
      fixes;  // from the end, so that positions stay valid
  for (const TestResult& test : report.tests)
    for (const TestFailure& failure : test.failures)
      if (failure.fix && failure.fix->span.source == source)
        fixes.emplace(failure.fix->span.begin, *failure.fix);
  if (fixes.empty()) return std::nullopt;
  const std::string before(sources.text(source));
  std::string text = before;
  for (const auto& [begin, fix] : fixes)
    text.replace(begin, fix.span.end - begin, std::to_string(fix.value));
  const auto formatted = [](const std::string& original) -> std::optional<std::string> {
    SourceMap own;
    auto file = parse_file(own, own.add("counts", original));
    if (!file) return std::nullopt;
    return format_file(*file, own);
  };
  return formatted(before) == before ? formatted(text) : text;
}

std::string test_lines(const TestReport& report, const SourceMap& sources) {
  std::string text;
  for (const TestResult& test : report.tests) {
    text += fmt::format("{} {}  {}\n", test.passed() ? "ok  " : "FAIL", test.file, test.name);
    for (const TestFailure& failure : test.failures) {
      const std::string place = sources.describe(failure.span);
      text += fmt::format("     {}{}{}\n", place, place.empty() ? "" : ": ", failure.message);
      if (!failure.detail.empty()) text += failure.detail;
    }
  }
  return text;
}

std::string test_summary(const TestReport& report) {
  return fmt::format("{}, {} failed, {} with a reason, {}\n", counted(report.tests.size(), "test"),
                     report.failed(), report.negative(),
                     counted(report.expectations(), "expectation"));
}

std::string test_report_text(const TestReport& report, const SourceMap& sources) {
  return test_lines(report, sources) + test_summary(report);
}

}  // namespace pw
