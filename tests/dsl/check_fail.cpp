// Runs tests/fail: each file states on its lines which diagnostics it gives, `// error PW0123: part
// of the message`, and gives no others.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;

struct Expected {
  std::uint32_t line = 0;
  std::string severity, code, part;
  bool met = false;
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Expected> expected_of(const fs::path& path) {
  static const std::regex kMark(
      R"(// (error|warning) (PW\d+): ((?:(?! // (?:error|warning) PW).)*))");
  std::vector<Expected> expected;
  const std::vector<std::string> lines = lines_of(path);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::sregex_iterator it(lines[i].begin(), lines[i].end(), kMark), end; it != end; ++it)
      expected.push_back({static_cast<std::uint32_t>(i + 1), (*it)[1], (*it)[2], (*it)[3]});
  }
  return expected;
}

std::vector<fs::path> files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator("tests/fail")) {
    if (entry.path().extension() == ".pwr") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

bool meets(const pw::Diagnostic& d, const pw::SourceMap& sources, const Expected& e) {
  if (!d.span.valid() || sources.position(d.span.source, d.span.begin).line != e.line) return false;
  const bool warning = d.severity == pw::Severity::warning;
  return d.code == e.code && (e.severity == "warning") == warning &&
         d.message.find(e.part) != std::string::npos;
}

}  // namespace

TEST_CASE("check: every file of tests/fail gives the diagnostics it states, and no others",
          "[dsl]") {
  REQUIRE(files().size() > 10);
  for (const fs::path& path : files()) {
    DYNAMIC_SECTION(path.filename().string()) {
      auto context = std::make_shared<pw::Context>();
      auto set = pw::load_rules(context, {path.string()});
      const pw::Diagnostics found = set ? set->warnings : set.error();
      INFO(pw::render(found, context->sources, {false, 100}));
      std::vector<Expected> expected = expected_of(path);
      REQUIRE(!expected.empty());
      for (const pw::Diagnostic& d : found) {
        const auto it = std::ranges::find_if(
            expected, [&](const Expected& e) { return !e.met && meets(d, context->sources, e); });
        INFO("unexpected: " << d.code << " " << d.message << " at "
                            << context->sources.describe(d.span));
        CHECK(it != expected.end());
        if (it != expected.end()) it->met = true;
      }
      for (const Expected& e : expected) {
        INFO("missing: line " << e.line << " " << e.severity << " " << e.code << ": " << e.part);
        CHECK(e.met);
      }
    }
  }
}
