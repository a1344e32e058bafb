// For tests: a graph of chains of casts among all dtypes, and inputs with the edges of each.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "tensor/numerics.hpp"
#include "tensor/tensor.hpp"

namespace pw::test {

struct CastChains {
  std::string text;                 ///< of the graph's body
  std::vector<std::string> chains;  ///< by output
  std::vector<Tensor> inputs;
};

/// Numbers that are exact, between two neighbours, at their middle, out of range, and special.
inline Tensor edges_of(DType dtype, Random& random, std::int64_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const std::vector<double> kEdges{0,
                                          -0.0,
                                          1,
                                          -1,
                                          0.1,
                                          -0.1,
                                          2049,
                                          2051,
                                          -2049,
                                          257,
                                          65504,
                                          65519.9,
                                          65520,
                                          70000,
                                          1e-8,
                                          6e-8,
                                          3e-5,
                                          448,
                                          464,
                                          465,
                                          57344,
                                          61440,
                                          61441,
                                          -129,
                                          127.5,
                                          128,
                                          255.5,
                                          256,
                                          -0.5,
                                          0.5,
                                          1.5,
                                          2.5,
                                          1e30,
                                          -1e30,
                                          1e300,
                                          2e9,
                                          3e9,
                                          -3e9,
                                          1e10,
                                          9.3e18,
                                          kInfinity,
                                          -kInfinity,
                                          std::nan(""),
                                          1.00390625,
                                          1.01171875,
                                          16777217,
                                          4503599627370497.0};
  Tensor out(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i)
    store(dtype, out.data(), i,
          i < static_cast<std::int64_t>(kEdges.size()) ? kEdges[static_cast<std::size_t>(i)]
                                                       : 100 * random.normal());
  return out;
}

inline CastChains cast_chains(std::uint64_t seed) {
  constexpr DType kAll[] = {DType::b8,   DType::i8,     DType::i32,    DType::i64,
                            DType::u8,   DType::f8e4m3, DType::f8e5m2, DType::f16,
                            DType::bf16, DType::f32,    DType::f64};
  constexpr std::int64_t kCount = 128;
  Random random(seed);
  CastChains out;
  std::string inputs, results;
  for (const DType from : kAll) {
    inputs += fmt::format("{}x_{}: {}[{}]", inputs.empty() ? "in " : ", ", name(from), name(from),
                          kCount);
    out.inputs.push_back(edges_of(from, random, kCount));
    for (int chain = 0; chain < 4; ++chain) {
      std::string call = fmt::format("x_{}", name(from));
      DType last = from;
      for (std::size_t casts = 1 + random.below(4); casts > 0; --casts) {
        DType to = last;
        while (to == last) to = kAll[random.below(std::size(kAll))];
        call = fmt::format("{}({})", name(to), call);
        last = to;
      }
      const std::size_t at = out.chains.size();
      out.text += fmt::format("y{} = {}\n", at, call);
      results += fmt::format("{}y{}", results.empty() ? "out " : ", ", at);
      out.chains.push_back(call);
    }
  }
  out.text = inputs + "\n" + out.text + results;
  return out;
}

/// The first element whose bits differ, a NaN being equal to a NaN; empty where none does.
inline std::string different(const Tensor& a, const Tensor& b) {
  const auto size = static_cast<std::size_t>(size_of(a.dtype()));
  for (std::int64_t i = 0; i < a.view().count(); ++i) {
    const auto at = static_cast<std::size_t>(i) * size;
    const double x = load(a.dtype(), a.data(), i), y = load(b.dtype(), b.data(), i);
    if (std::memcmp(a.data() + at, b.data() + at, size) != 0 && !(std::isnan(x) && std::isnan(y)))
      return fmt::format("element {}: {} and {}", i, x, y);
  }
  return "";
}

}  // namespace pw::test
