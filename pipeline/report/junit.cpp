#include "pipeline/report/junit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "viz/formats/svg.hpp"

namespace pw {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// XML cannot represent these, not even escaped.
bool carried(const Utf8Character& c) {
  return c.length > 0 && c.code != 0xFFFE && c.code != 0xFFFF;
}

std::string xml_text(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (!carried(c))
      clean += kReplacement;
    else if (c.code < 0x20 && c.code != '\n' && c.code != '\t')
      clean += '?';
    else
      clean += text.substr(0, c.length);
    text.remove_prefix(std::max<std::size_t>(c.length, 1));
  }
  return viz::xml_escaped(clean);
}

/// Readers fold line ends in an attribute into spaces.
std::string xml_attribute(std::string_view text) {
  std::string out = xml_text(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos;)
    out.replace(at, 1, "&#10;");
  return out;
}

struct Suite {
  std::string_view name;
  std::size_t tests = 0, failures = 0, errors = 0;
  double seconds = 0;
};

std::string head(const Suite& suite) {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\">\n",
      suite.name, suite.tests, suite.failures, suite.errors, suite.seconds);
}

std::string test_case(const TestResult& test) {
  std::string out = fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                xml_attribute(test.file), xml_attribute(test.name), test.seconds);
  if (test.passed()) return out + "/>\n";
  out += ">\n";
  for (const TestFailure& f : test.failures)
    out += fmt::format("    <failure message=\"{}\">{}</failure>\n", xml_attribute(f.message),
                       xml_text(f.detail));
  return out + "  </testcase>\n";
}

std::string error_case(const UnloadedFile& file) {
  return fmt::format(
      "  <testcase classname=\"{}\" name=\"the file loads\" time=\"0.000\">\n"
      "    <error message=\"{}\">{}</error>\n  </testcase>\n",
      xml_attribute(file.file), xml_attribute(file.message), xml_text(file.report));
}

bool is_error(const RuleJudgement& judgement) {
  return judgement.verdict == RuleVerdict::no_instance ||
         judgement.verdict == RuleVerdict::cannot_run;
}

std::string rule_case(const RuleJudgement& judgement) {
  std::string out = fmt::format("  <testcase classname=\"pwr verify\" name=\"{}\" time=\"0.000\"",
                                xml_attribute(judgement.rule));
  if (judgement.holds()) return out + "/>\n";
  const char* kind = is_error(judgement) ? "error" : "failure";
  return out + fmt::format(">\n    <{0} message=\"{1}\">{2}</{0}>\n  </testcase>\n", kind,
                           xml_attribute(name(judgement.verdict)), xml_text(judgement.reason));
}

}  // namespace

std::string junit(const std::vector<TestResult>& tests, const std::vector<UnloadedFile>& unloaded) {
  Suite suite{"pwr test", tests.size() + unloaded.size(), 0, unloaded.size(), 0};
  for (const TestResult& test : tests) {
    suite.failures += test.passed() ? 0 : 1;
    suite.seconds += test.seconds;
  }
  std::string out = head(suite);
  for (const UnloadedFile& file : unloaded) out += error_case(file);
  for (const TestResult& test : tests) out += test_case(test);
  return out + "</testsuite>\n";
}

std::string junit(const std::vector<RuleJudgement>& judgements) {
  Suite suite{"pwr verify", judgements.size(), 0, 0, 0};
  for (const RuleJudgement& judgement : judgements)
    if (!judgement.holds()) ++(is_error(judgement) ? suite.errors : suite.failures);
  std::string out = head(suite);
  for (const RuleJudgement& judgement : judgements) out += rule_case(judgement);
  return out + "</testsuite>\n";
}

}  // namespace pw
