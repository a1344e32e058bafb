// The server reports for a text what `pwr check` reports for a file with this text.
#include "lsp/checks.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/io/own_folders.hpp"
#include "pipeline/check/check.hpp"
#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"

namespace pw::cli {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

CheckJob job_of(const std::string& path, const std::string& text) {
  CheckJob job;
  job.uri = "file://" + path;
  job.path = path;
  job.version = 1;
  job.text = std::make_shared<SourceText>(path, text);
  job.unsaved.emplace(real_path(path).generic_string(), text);
  return job;
}

/// Code, place and severity of each, in the order of places.
std::vector<std::string> as_lines(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}
std::vector<std::string> of_server(const std::string& path, const std::string& text) {
  std::vector<std::string> out;
  for (const FoundDiagnostic& d : check_document(job_of(path, text)).found)
    out.push_back(d.code + " " + std::to_string(d.begin) + " " + std::to_string(d.end) + " " +
                  std::to_string(static_cast<int>(d.severity)));
  return as_lines(std::move(out));
}
std::vector<std::string> of_command(const std::string& path) {
  const auto context = std::make_shared<Context>();
  const auto checked = check_rule_files(context, {{path}, false});
  std::vector<std::string> out;
  for (const Diagnostic& d : checked ? checked->warnings() : checked.error())
    out.push_back(d.code + " " + std::to_string(d.span.begin) + " " + std::to_string(d.span.end) +
                  " " + std::to_string(static_cast<int>(d.severity)));
  return as_lines(std::move(out));
}

/// A separate folder for a test.
struct Scratch {
  fs::path path = fs::temp_directory_path() / fs::path("pw-lsp-" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

TEST_CASE("checks: every file of the tree has the diagnostics of pwr check", "[lsp]") {
  std::size_t files = 0;
  for (const char* folder : {"rules", "examples", "tests/fail", "tests/language"})
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".pwr") continue;
      const std::string path = entry.path().generic_string();
      INFO(path);
      CHECK(of_server(path, file_text(path)) == of_command(path));
      ++files;
    }
  CHECK(files > 40);
}

TEST_CASE("checks: 1000 mutants, unsaved, have the diagnostics of pwr check", "[lsp]") {
  const Scratch scratch;
  std::vector<std::vector<std::string>> texts;
  for (const char* path : {"examples/first_rule.pwr", "examples/own_kernel.pwr"})
    texts.push_back(test::pieces_of(file_text(path)));
  const std::vector<std::string> foreign{"rule", "{", "}", "=>",   "where", "given",
                                         "relu", "T", "x", "[*s]", "1.5",   "\"",
                                         "pass", ",", "(", ")"};
  const std::string path = (scratch.path / "mutant.pwr").generic_string();
  const std::string unsaved = (scratch.path / "unsaved.pwr").generic_string();
  Random random(23);
  std::size_t accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = test::mutated(texts[random.below(texts.size())], foreign, random);
    std::ofstream(path, std::ios::binary) << text;
    INFO("mutant " << i << ":\n" << text);
    const std::vector<std::string> found = of_command(path);
    REQUIRE(of_server(unsaved, text) == found);
    if (found.empty()) ++accepted;
  }
  CHECK(accepted > 20);
  CHECK(accepted < 980);
}

TEST_CASE("checks: types nobody wrote follow the rule's variables", "[lsp]") {
  const std::string text =
      "rule r {\n  a = f32(x: T[*b, d])\n  y = T(a)\n  =>\n  y = silu(x)\n}\n"
      "pass p = greedy { r }\n"
      "test t {\n  graph { in x: bf16[n, 4]  y = f32(x)  out y }\n  apply p\n  expect none\n}\n";
  const CheckedDocument checked = check_document(job_of("/nowhere/r.pwr", text));
  std::vector<std::string> types;
  for (const auto& [key, type] : checked.types)
    types.push_back(key.substr(key.rfind(' ') + 1) + ": " + type);
  std::sort(types.begin(), types.end());
  CHECK(types == std::vector<std::string>{"a: f32[*b, d]", "y: T[*b, d]", "y: f32[n, 4]"});
}

TEST_CASE("checks: a broken item leaves the types of the others", "[lsp]") {
  const std::string text =
      "rule ok { y = relu(x: T[*b]) => y = silu(x) }\nrule bad { y = relu( }\n";
  const CheckedDocument checked = check_document(job_of("/nowhere/r.pwr", text));
  REQUIRE(checked.found.size() == 1);
  CHECK(checked.found.front().code == "PW0101");
  REQUIRE(checked.types.size() == 1);
  CHECK(checked.types.begin()->second == "T[*b]");
}

}  // namespace
}  // namespace pw::cli
