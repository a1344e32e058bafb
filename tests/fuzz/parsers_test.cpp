// Every text that the project reads, made wrong at random: tokens dropped, doubled, moved and
// brought in from another text, bytes changed, cut short. Each is read, or refused with a code, a
// reason and a place inside it; a graph that is read prints as a text that reads back to the same
// bytes. `[slow]` takes more of each; seeds are printed.
#include <chrono>
#include <iostream>

#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"
#include "tests/fuzz/formats.hpp"

namespace {

using namespace pw;
using namespace pw::test;

void check_format(const Format& format, const std::vector<std::string>& foreign,
                  std::uint64_t first, std::uint64_t count) {
  std::vector<std::vector<std::string>> pieces;
  for (const std::string& text : format.texts) pieces.push_back(pieces_of(text));
  std::size_t accepted = 0;
  ContextPtr context = fresh_context();
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Random random(combine(seed, hash_text(format.name)));
    const std::string text = mutated(pieces[random.below(pieces.size())], foreign, random);
    if (seed % 16 == 0) context = fresh_context();  // of ops that texts declare
    INFO(format.name << ", seed " << seed << "\n" << text.substr(0, 4000));
    const auto begin = std::chrono::steady_clock::now();
    const Read read = format.read(context, text);
    if (read)
      ++accepted;
    else
      check_refusal(read.error(), *context);
    // Not a benchmark: detects a hang, which would end the run without a message.
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(600));
  }
  std::cerr << "  " << format.name << ": " << count << " texts, " << accepted << " were read\n";
  CHECK(accepted < count);
}

void parse_all(std::uint64_t first, std::uint64_t count) {
  const std::vector<Format> all = formats();
  const std::vector<std::string> foreign = foreign_tokens(all);
  std::cerr << "texts made wrong, seeds " << first << " to " << first + count - 1 << "\n";
  for (const Format& format : all) {
    for (const std::string& text : format.texts) {
      if (text.find("[__aot_graphs]") != std::string::npos)
        continue;  // several: one is to be chosen
      const ContextPtr context = fresh_context();
      const Read read = format.read(context, text);
      INFO(format.name << (read ? std::string() : render(read.error(), context->sources)));
      CHECK(read.has_value());
    }
    check_format(format, foreign, first, count);
  }
}

}  // namespace

TEST_CASE("fuzz: texts made wrong are read or refused", "[fuzz]") { parse_all(1, 40); }
TEST_CASE("fuzz: many texts made wrong", "[.][slow][fuzz][texts]") { parse_all(1000, 8000); }
