#include "dsl/embedded_rules.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "dsl/check/check.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> rule_files_on_disk() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator("rules")) {
    if (entry.path().extension() == ".pwr")
      names.push_back(fs::relative(entry.path(), "rules").generic_string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("embedded rules: every file of rules/ is listed, in order of its path", "[dsl]") {
  std::vector<std::string> embedded;
  for (const auto& file : pw::embedded_rules()) embedded.emplace_back(file.path);
  CHECK(embedded == rule_files_on_disk());
}

TEST_CASE("embedded rules: the text is the file's, byte for byte", "[dsl]") {
  for (const auto& file : pw::embedded_rules()) {
    INFO(file.path);
    CHECK(file.text == read_file(fs::path("rules") / file.path));
  }
}

// Programs trust them when they start.
TEST_CASE("embedded rules: bodies of ops fit their signatures", "[dsl]") {
  const auto checked = pw::check_op_library();
  if (!checked) FAIL(checked.error().front().message);
}
