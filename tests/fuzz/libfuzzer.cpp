// One format of formats.hpp under libFuzzer: PW_FUZZ_FORMAT names it. A crash, a sanitizer's
// report, a refusal without a reason, or what takes too long ends the program;
// tests/fuzz/libfuzzer.py runs it. With PW_FUZZ_SEEDS it only writes the format's examples and a
// dictionary into that folder.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "tests/dsl/mutants.hpp"
#include "tests/fuzz/formats.hpp"

namespace {

using namespace pw;
using namespace pw::test;

/// Declarations of texts stay in the context, which is replaced now and then.
constexpr int kReadsOfContext = 256;
constexpr std::size_t kMostWords = 400;

std::optional<Format>& chosen() {
  static std::optional<Format> format;
  return format;
}

/// As libFuzzer's dictionaries have it: "text" with bytes escaped.
std::string entry(const std::string& word) {
  std::string out = "\"";
  for (const char c : word) out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  return out + "\"\n";
}

void write_seeds(const std::filesystem::path& folder, const std::vector<Format>& all) {
  std::filesystem::create_directories(folder / "corpus");
  std::set<std::string> words;
  for (const std::string& word : foreign_tokens(all)) words.insert(word);
  std::size_t number = 0;
  for (const std::string& text : chosen()->texts) {
    std::ofstream(folder / "corpus" / std::to_string(number++), std::ios::binary) << text;
    for (const std::string& piece : pieces_of(text))
      if (words.size() < kMostWords) words.insert(piece);
  }
  std::ofstream dictionary(folder / "words");
  for (const std::string& word : words)
    if (!word.empty() && word.size() < 64) dictionary << entry(word);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::string name = environment("PW_FUZZ_FORMAT");
  const std::vector<Format> all = formats();
  for (const Format& format : all)
    if (format.name == name) chosen() = format;
  if (!chosen()) {
    std::cerr << "PW_FUZZ_FORMAT is not one of the formats:\n";
    for (const Format& format : all) std::cerr << format.name << "\n";
    std::exit(2);
  }
  if (const std::string folder = environment("PW_FUZZ_SEEDS"); !folder.empty()) {
    write_seeds(folder, all);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static ContextPtr context = fresh_context();
  static int reads = 0;
  if (chosen()->uses_context && ++reads % kReadsOfContext == 0) context = fresh_context();
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const Read read = chosen()->read(context, text);
  if (!read) check_refusal(read.error(), *context);
  return 0;
}
