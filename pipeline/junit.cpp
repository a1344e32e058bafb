// Exports junit.
#include "pipeline/junit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "viz/svg.hpp"

namespace pw {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// XML has no form for these, not even an escaped one.
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

std::string suite_head(const std::vector<TestResult>& tests, std::size_t errors) {
  const auto failed =
      std::count_if(tests.begin(), tests.end(), [](const TestResult& t) { return !t.passed(); });
  double seconds = 0;
  for (const TestResult& test : tests) seconds += test.seconds;
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"pwr test\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "time=\"{:.3f}\">\n",
      tests.size() + errors, failed, errors, seconds);
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

}  // namespace

std::string junit(const std::vector<TestResult>& tests, const std::vector<UnloadedFile>& unloaded) {
  std::string out = suite_head(tests, unloaded.size());
  for (const UnloadedFile& file : unloaded) out += error_case(file);
  for (const TestResult& test : tests) out += test_case(test);
  return out + "</testsuite>\n";
}

}  // namespace pw
