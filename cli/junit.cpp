// Exports junit.
#include "cli/junit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "viz/svg.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the UTF-8 character at the start of the text; 0 if there is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xF5   ? 0
                             : byte(0) >= 0xF0 ? 4
                             : byte(0) >= 0xE0 ? 3
                             : byte(0) >= 0xC2 ? 2
                                               : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool overlong = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool surrogate = byte(0) == 0xED && byte(1) >= 0xA0;
  const bool beyond = byte(0) == 0xF4 && byte(1) >= 0x90;
  const bool no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return overlong || surrogate || beyond || no_character ? 0 : length;
}

std::string xml(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = character(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0)
      clean += kReplacement;
    else if (length == 1 && first < 0x20 && first != '\n' && first != '\t')
      clean += '?';
    else
      clean += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return viz::xml_escaped(clean);
}

/// Readers fold line ends in an attribute into spaces.
std::string attribute(std::string_view text) {
  std::string out = xml(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos;)
    out.replace(at, 1, "&#10;");
  return out;
}

}  // namespace

std::string junit(const std::vector<TestResult>& tests) {
  const auto failed =
      std::count_if(tests.begin(), tests.end(), [](const TestResult& t) { return !t.passed(); });
  double seconds = 0;
  for (const TestResult& test : tests) seconds += test.seconds;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"pwr test\" tests=\"{}\" failures=\"{}\" time=\"{:.3f}\">\n",
      tests.size(), failed, seconds);
  for (const TestResult& test : tests) {
    out += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                       attribute(test.file), attribute(test.name), test.seconds);
    if (test.passed()) {
      out += "/>\n";
      continue;
    }
    out += ">\n";
    for (const TestFailure& f : test.failures)
      out += fmt::format("    <failure message=\"{}\">{}</failure>\n", attribute(f.message),
                         xml(f.detail));
    out += "  </testcase>\n";
  }
  return out + "</testsuite>\n";
}

}  // namespace pw::cli
