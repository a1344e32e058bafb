// Rule files with a token dropped, doubled, swapped or replaced: each loads, or says why not and
// where. Never a crash.
#include <cctype>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "tests/catch.hpp"

namespace {

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    const auto word = [&](std::size_t at) {
      return at < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
    };
    if (word(i)) {
      while (word(end)) ++end;
    }
    pieces.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return pieces;
}

std::string mutated(const std::vector<std::string>& pieces, pw::Random& random) {
  std::vector<std::string> copy = pieces;
  for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
    const std::size_t i = random.below(copy.size()), j = random.below(copy.size());
    switch (random.below(4)) {
      case 0: copy.erase(copy.begin() + static_cast<std::ptrdiff_t>(i)); break;
      case 1:
        copy.insert(copy.begin() + static_cast<std::ptrdiff_t>(i), " " + copy[i] + " ");
        break;
      case 2: std::swap(copy[i], copy[j]); break;
      default: copy[i] = copy[j]; break;
    }
  }
  std::string text;
  for (const std::string& piece : copy) text += piece;
  return text;
}

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
test t { graph { in x: bf16[n, 64], w: bf16[64] y = rms_norm(relu(x), w) out y } apply all with tp = 2 expect c == 1, count(relu) == 1, b[r] == 0 because N05 "x" }
)";

void load_mutants(std::string_view text, std::uint64_t seed, int rounds) {
  const std::vector<std::string> pieces = pieces_of(text);
  pw::Random random(seed);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string mutant = mutated(pieces, random);
    INFO("seed " << seed << ", round " << round << ":\n" << mutant);
    auto context = std::make_shared<pw::Context>();
    auto set = pw::load_rule_texts(context, {{"mutant.pwr", mutant}});
    if (set) continue;
    ++refused;
    REQUIRE_FALSE(set.error().empty());
    for (const pw::Diagnostic& d : set.error()) {
      REQUIRE((d.span.valid() || !d.place.empty()));
      REQUIRE_FALSE(d.code.empty());
      REQUIRE_FALSE(d.message.empty());
    }
    REQUIRE_FALSE(pw::render(set.error(), context->sources).empty());
  }
  CHECK(refused > rounds / 4);
}

}  // namespace

TEST_CASE("check: the text that is mutated is sound", "[dsl]") {
  auto context = std::make_shared<pw::Context>();
  auto set = pw::load_rule_texts(context, {{"whole.pwr", std::string(kMore)}});
  INFO((set ? std::string() : pw::render(set.error(), context->sources)));
  REQUIRE(set);
}

TEST_CASE("check: mangled rule files are diagnosed with a place", "[dsl]") {
  load_mutants(kMore, 1, 1000);
  for (const pw::EmbeddedFile& file : pw::embedded_rules()) {
    if (!file.path.starts_with("ops/")) load_mutants(file.text, pw::hash_text(file.path), 10);
  }
}
