// Texts of rule files made wrong at random, from a seed.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace pw::test {

inline std::vector<std::string> pieces_of(std::string_view text) {
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

/// `foreign`: tokens of other constructs, which are inserted anywhere.
inline std::string mutated(const std::vector<std::string>& pieces,
                           const std::vector<std::string>& foreign, Random& random) {
  std::vector<std::string> copy = pieces;
  for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
    const std::size_t i = random.below(copy.size()), j = random.below(copy.size());
    const auto at = copy.begin() + static_cast<std::ptrdiff_t>(i);
    switch (random.below(8)) {
      case 0: copy.erase(at); break;
      case 1: copy.insert(at, " " + copy[i] + " "); break;
      case 2: std::swap(copy[i], copy[j]); break;
      case 3: copy[i] = copy[j]; break;
      case 4: copy.insert(at, " " + foreign[random.below(foreign.size())] + " "); break;
      case 5: copy[i] = " " + foreign[random.below(foreign.size())] + " "; break;
      case 6: {  // a run of tokens, to another place
        const std::size_t length = std::min<std::size_t>(1 + random.below(12), copy.size() - i);
        const std::vector<std::string> run(at, at + static_cast<std::ptrdiff_t>(length));
        copy.insert(copy.begin() + static_cast<std::ptrdiff_t>(j), run.begin(), run.end());
        break;
      }
      default: copy[i] += static_cast<char>(random.below(256)); break;
    }
    if (copy.empty()) copy.emplace_back("rule");
  }
  if (random.below(40) == 0) copy.resize(random.below(copy.size()) + 1);
  std::string text;
  for (const std::string& piece : copy) text += piece;
  return text;
}

/// Lists, absence, choices, fusions, equivalences, searches, ranges, externs.
inline constexpr std::string_view kNewer = R"(
param tp: int = 2
extern pred fused_output_quant(layer: str, kind: str)
extern fn min_tokens(d: int, tp: int, sm: int) -> int
op attend(x: T[n, d], scale: f32[1]?) {layer: str, out: dtype? = none} -> y: either(out, T)[n, d] splitting
op store(mut cache: T[m, d], x: T[n, d]) {at: int = 0} -> (c: T[m, d] from cache) effect
table Acts (act, least) { r: relu, 2  n: neg, none }
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
pattern wave(x) -> y { y = sin(x) | y = cos(neg(x)) }
rule merge { many y = mm(x, w: T[k, m]) where count(y) >= 2 => z = mm(x, cat(w...){dim = 1}) y... = split(z){dim = 1, sizes = [m...]} }
rule sink { y = cat(wave(abs?(x))...){dim} => y = relu(cat(x...){dim}) }
rule cancel { y... = split(z){dim, sizes = [m...]} r = cat(y...){dim} _ = m => r = z }
rule absent { y = relu(x) unless { h = neg(y) _ = wave(h) } => y = maximum(x, 0) }
rule fold for k in Acts { y = k.act(abs(x)) where k.least == none or tp >= k.least => y = sin(x) }
rule halves { y = relu(x: T[n, 2*d]) assume n % tp == 0, n >= min(8, min_tokens(d, tp, 90)) => y = maximum(x, 0) }
rule attn { y = abs(views(attend(x, none){layer, ..})) where fused_output_quant(layer, "fp8_static") => y = reshape(attend(abs(x), none){layer, ..}){shape = y.shape} }
rule whole { q = static_scaled_fp8_quant(rms_norm(x, w){eps}, s) => q = fuse }
rule turn { y = sub(x, z) <=> y = add(x, neg(z)) }
rule sums { h = all_reduce(m: T[n, d]){group} where replicated(h, group) => h = all_gather(reduce_scatter(m){dim = 0, world = tp, group}){dim = 0, world = tp, group} }
pass searched = saturate { turn, absent_not } nodes 500 rounds 4 cost bytes
rule absent_not { y = neg(neg(x)) => y = x }
pass once_more = repeat (once { merge, sink } ; walk { cancel }) fuel 3
pass kept = atomic greedy { sums } ensures count(all_reduce) == 0 and nodes < 100
pass better = best of { greedy { absent } | greedy { turn[forward] } ; dce | once { turn[backward] } } by nodes
pipeline ranged { for tokens in ranges(16, 256) { greedy { halves, fold[*], whole } attn when tp > 1 better kept once_more searched } }
split s { at unified_attention at attend when tp > 1 }
capture { sizes 1, 2, 4..64 by 4, 128 mode full_and_piecewise }
test u { graph { symbol n in 1..64 by 2 tokens in weight w: f32[8] replicated "tp" "dp" in buffer c: f32[n, 8] y = relu(w) @ "layer.0" "m.py:3" out y } apply absent expect absent == 1 }
test t {
  graph { symbol n in 1..8192 tokens in x: f32[n, 8] replicated "tp" y = relu(x) z = neg(neg(y)) out z }
  apply ranged with tp = 4
  expect halves == 1 in 1..16, fold[*] + halves >= 1, count(relu) == 0 in 17..256, `whole` == 0
  expect none because N09 "n % tp"
  expect numeric within 1e-3
  expect graph { in x: f32[n, 8] y = maximum(x, 0) out y }
}
)";

}  // namespace pw::test
