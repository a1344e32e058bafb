// Rule files with a token dropped, doubled, swapped, replaced or brought in from another file, or
// cut short, or with a byte changed: each loads, or its refusal has a reason and a location. Never
// a crash or a hang.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"

namespace {

using pw::test::kNewer;
using pw::test::mutated;
using pw::test::pieces_of;

constexpr std::string_view kMore = R"(
param tp: int = 1
table Acts (act, size) { r: relu, 64  n: neg, none }
pattern norm(x, w){eps} -> y { y = rms_norm(x, w){eps} | y = mul(cast?(x), rsqrt(w + eps)) where size(x, 0) > 2 }
op twice(x: T[*b, d]) {k: int = 2} -> (y: T[*b, d], z: T[*b, d] from x) rowwise { y = x + x z = relu(y) }
group g { rule a over b { y = relu(relu(x: T[n, 2*d])) where d % 8 == 0, n in 1..256 => y = relu(x) } }
rule b for k in Acts { given { h = neg(x) } y = k.act(h) where k.size == none or tp > 1 => y = k.act(maximum(h, 0)) }
rule c { y = norm(relu(x: bf16[*b, d]), w: T[d]){eps} => y = rms_norm(relu(x), w){eps} }
rule e { o = unified_attention(q, k, v, s?){layer, ..} => o = unified_attention(k, q, v, s){layer, ..} }
pass p = greedy { g.*, b[*], c } fuel 10 ; once { e } when tp > 1
pipeline all { p ; dce ; walk { c } }
split s { at unified_attention, mm at relu when tp > 1 }
capture { sizes 1, 2, 8..256 by 8 mode piecewise }
explore e { of all orders p, dce before p: dce over b, c with tp in 1, 2 tokens in 1..256, 257..512 subsets sample 10 seed 3 by nodes, bytes }
test t { graph { in x: bf16[n, 64], w: bf16[64] y = rms_norm(relu(x), w) out y } apply all with tp = 2 expect c == 1, count(relu) == 1, b[r] == 0 because N05 "x" }
)";

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Subject {
  std::string name, text;
};

/// The rules of the library, the examples, and the texts above.
std::vector<Subject> subjects() {
  std::vector<Subject> out{{"older", std::string(kMore)}, {"newer", std::string(kNewer)}};
  for (const char* folder : {"rules", "examples", "tests/language"}) {
    std::vector<Subject> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".pwr")
        found.push_back({entry.path().generic_string(), file_text(entry.path())});
    std::ranges::sort(found, {}, &Subject::name);
    std::move(found.begin(), found.end(), std::back_inserter(out));
  }
  return out;
}

void load_mutants(const Subject& subject, std::uint64_t seed, int rounds) {
  const std::vector<std::string> pieces = pieces_of(subject.text), foreign = pieces_of(kNewer);
  pw::Random random(seed);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string mutant = mutated(pieces, foreign, random);
    INFO(subject.name << ", seed " << seed << ", round " << round << ":\n" << mutant);
    auto context = std::make_shared<pw::Context>();
    auto set = pw::load_rule_texts(context, {{"mutant.pwr", mutant}});
    if (set) continue;
    ++refused;
    REQUIRE_FALSE(set.error().empty());
    for (const pw::Diagnostic& d : set.error()) {
      INFO(d.code << " " << d.message);
      REQUIRE((d.span.valid() || !d.place.empty()));
      REQUIRE_FALSE(d.code.empty());
      REQUIRE_FALSE(d.message.empty());
    }
    REQUIRE_FALSE(pw::render(set.error(), context->sources).empty());
  }
  CHECK(refused >= rounds / 4);
}

void load_mutants_of_all(std::uint64_t seed, int of_texts, int of_files) {
  for (const Subject& subject : subjects()) {
    const bool file = subject.name.find('/') != std::string::npos;
    load_mutants(subject, pw::combine(seed, pw::hash_text(subject.name)),
                 file ? of_files : of_texts);
  }
}

}  // namespace

TEST_CASE("check: the text that is mutated is sound", "[dsl]") {
  for (const Subject& subject : subjects()) {
    INFO(subject.name);
    auto context = std::make_shared<pw::Context>();
    // By its place, so that what it uses is found beside it.
    auto set = subject.name.find('/') == std::string::npos
                   ? pw::load_rule_texts(context, {{"whole.pwr", subject.text}})
                   : pw::load_rules(context, {subject.name});
    INFO((set ? std::string() : pw::render(set.error(), context->sources)));
    CHECK(set);
  }
}

TEST_CASE("check: mangled rule files are diagnosed with a place", "[dsl]") {
  load_mutants_of_all(1, 150, 6);
}

TEST_CASE("check: thousands of mangled rule files", "[.slow][dsl]") {
  load_mutants_of_all(2, 4000, 200);
}
