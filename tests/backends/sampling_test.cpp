// Sampling of tokens: the distribution of draws, and that a draw depends only on its logits, seed
// and position.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr std::int64_t kDraws = 20000;
using Numbers = std::vector<double>;

Numbers rising(std::int64_t count, double from = 0) {
  Numbers out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), from);
  return out;
}

Numbers run(const std::string& text, const std::vector<std::pair<std::string, Tensor>>& inputs) {
  const Graph graph = graph_of(text);
  Weights weights(graph, 1);
  for (const auto& [name, tensor] : inputs) weights.give(name, tensor);
  const auto out = run_whole(graph, *make_eager(), weights, one_sequence(1));
  INFO((out ? std::string() : render(out.error(), graph.context().sources)));
  REQUIRE(out);
  return values((*out)[0]);
}

/// Draws tokens from one row of logits, at the positions 0, 1, …
Numbers draws(const Numbers& logits, const std::string& kept, double temperature, double seed) {
  const auto width = static_cast<std::int64_t>(logits.size());
  return run(fmt::format("in l: f32[1, {1}], s: i64[{0}], at: i64[{0}]\n"
                         "k = {2}\n"
                         "t = sample_token(expand(k){{shape = [{0}, {1}]}}, s, at)"
                         "{{temperature = {3}}}\nout t",
                         kDraws, width, kept, temperature),
             {{"l", tensor(DType::f32, {1, width}, logits)},
              {"s", tensor(DType::i64, {kDraws}, Numbers(kDraws, seed))},
              {"at", tensor(DType::i64, {kDraws}, rising(kDraws))}});
}

Numbers softmax(const Numbers& logits, double temperature) {
  Numbers out;
  for (double l : logits) out.push_back(std::exp(l / temperature));
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& p : out) p /= sum;
  return out;
}

/// Returns Pearson's statistic; infinite if something impossible was drawn.
double chi_square(const Numbers& counts, const Numbers& odds) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  double out = 0;
  for (std::size_t i = 0; i < odds.size(); ++i) {
    const double expected = odds[i] * all, off = counts[i] - expected;
    if (counts[i] > 0 || expected > 0) out += off * off / expected;
  }
  return out;
}

Numbers counts(const Numbers& drawn, std::size_t kinds) {
  Numbers out(kinds);
  for (double d : drawn) ++out[static_cast<std::size_t>(d)];
  return out;
}

const Numbers kLogits{0.3, -1.2, 2.1, 0.3, -4.0, 1.0, 1.7, -0.5};

}  // namespace

TEST_CASE("sampling: draws have the probabilities of softmax", "[backends]") {
  // With 7 degrees of freedom, a correct generator exceeds 29.9 with probability 0.01 %.
  for (const double temperature : {0.5, 1.0, 3.0}) {
    for (const double seed : {0.0, 17.0, -3.0}) {
      INFO("temperature " << temperature << ", seed " << seed);
      const Numbers drawn = draws(kLogits, "l + 0.0", temperature, seed);
      CHECK(chi_square(counts(drawn, 8), softmax(kLogits, temperature)) < 29.9);
    }
  }
}

TEST_CASE("sampling: neighbours and other seeds are independent", "[backends]") {
  // With 63 degrees of freedom, the same limit is 113.5.
  const Numbers odds = softmax(kLogits, 1.5);
  Numbers both;
  for (double p : odds)
    for (double q : odds) both.push_back(p * q);
  const Numbers first = draws(kLogits, "l + 0.0", 1.5, 5),
                second = draws(kLogits, "l + 0.0", 1.5, 6);
  Numbers neighbours, seeds;
  for (std::size_t i = 0; i + 1 < first.size(); i += 2)
    neighbours.push_back(first[i] * 8 + first[i + 1]);
  for (std::size_t i = 0; i < first.size(); ++i) seeds.push_back(first[i] * 8 + second[i]);
  CHECK(chi_square(counts(neighbours, 64), both) < 113.5);
  CHECK(chi_square(counts(seeds, 64), both) < 113.5);
}

TEST_CASE("sampling: what top-k and top-p leave keeps its proportions", "[backends]") {
  const double temperature = 1.3;
  Numbers left = softmax(kLogits, temperature);
  for (std::size_t i : {0, 1, 3, 4, 7}) left[i] = 0;  // of 8, the largest 3 remain
  const double sum = std::accumulate(left.begin(), left.end(), 0.0);
  for (double& p : left) p /= sum;
  // With 2 degrees of freedom, the limit is 18.4. The first three have 0.75 of the probability, the
  // first five 0.81.
  for (const char* kept : {"top_k_logits(l){k = 3}", "top_p_logits(l){p = 0.7, temperature = 1.3}",
                           "top_p_logits(top_k_logits(l){k = 5}){p = 0.75, temperature = 1.3}"}) {
    INFO(kept);
    CHECK(chi_square(counts(draws(kLogits, kept, temperature, 11), 8), left) < 18.4);
  }
}

TEST_CASE("sampling: argmax of computed values is found in each kernel", "[backends]") {
  // A kernel may round such values in one of its passes only.
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens\n"
      "in x: bf16[n, 512], w: bf16[512], f: f32[n, 40], g: f32[40], seed: i64[n], at: i64[n]\n"
      "a = argmax(x * w + x * 0.37)\nb = argmax(tanh(x * 0.3 + w))\nc = argmax(f * g + f)\n"
      "y = top_k_logits(x * w + x * 0.37){k = 1}\nd = argmax(y)\n"
      "e = sample_token(y, seed, at)\nout a, b, c, d, e");
  Weights weights(graph, 3);
  for (const bool strict : {false, true}) {
    BackendOptions options;
    options.strict = strict;
    CpuBackend cpu(options);
    const auto out = run_whole(graph, cpu, weights, one_sequence(9), {{"n", 9}});
    INFO((out ? std::string() : render(out.error(), graph.context().sources)));
    REQUIRE(out);
    for (std::size_t i = 0; i < out->size(); ++i)
      for (double place : values((*out)[i])) CHECK((place >= 0 && place < (i == 2 ? 40 : 512)));
    CHECK(values((*out)[3]) == values((*out)[0]));
    CHECK(values((*out)[4]) == values((*out)[0]));
  }
}

TEST_CASE("sampling: a draw depends only on its logits, seed and position", "[backends]") {
  const std::string text =
      "in x: bf16[n, 64], s: i64[n], at: i64[n]\n"
      "t = sample_token(top_p_logits(x){p = 0.9}, s, at)\nout t";
  const Graph graph = graph_of("symbol n in 1..64 tokens\n" + text);
  Weights weights(graph, 3);
  const auto eager = make_eager(), single = make_interpreter(Precision::single);
  const auto tokens = [&](Backend& backend, const Step& step) {
    auto out = run_whole(graph, backend, weights, step, {{"n", step.tokens()}});
    REQUIRE(out);
    return values((*out)[0]);
  };
  const Step all{{{0, 5, 2}, {1, 3, 0}}};
  const Numbers joint = tokens(*eager, all);
  CHECK(tokens(*single, all) == joint);
  Numbers separate;
  for (const Sequence& s : all.sequences)
    for (std::int64_t i = 0; i < s.new_tokens; ++i)
      separate.push_back(tokens(*eager, Step{{{s.id, 1, s.past + i}}}).front());
  CHECK(separate == joint);
}
