// Weights that prove termination: each answer is checked against its definition.
#include "rewriter/analysis/certificate.hpp"

#include <numeric>

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;
using Kind = RowWeights::Kind;
using Rows = std::vector<std::vector<std::int64_t>>;

namespace {

/// Weights make every row positive; a combination of rows is positive nowhere.
bool holds(const Rows& rows, const RowWeights& found) {
  if (found.kind == Kind::overflow) return false;
  for (std::int64_t number : found.numbers)
    if (number < 0) return false;
  if (found.kind == Kind::weights) {
    for (const auto& row : rows)
      if (std::inner_product(row.begin(), row.end(), found.numbers.begin(), std::int64_t{0}) < 1)
        return false;
    return true;
  }
  std::int64_t all = 0;
  for (std::int64_t number : found.numbers) all += number;
  for (std::size_t j = 0; j < rows.front().size(); ++j) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) sum += found.numbers[i] * rows[i][j];
    if (sum > 0) return false;
  }
  return all > 0;
}

Kind kind_of(const Rows& rows) {
  const RowWeights found = weigh(rows);
  CHECK(holds(rows, found));
  return found.kind;
}

}  // namespace

TEST_CASE("certificate: a chain of ops has weights", "[analysis]") {
  CHECK(kind_of({{1, -1, 0}, {0, 1, -1}, {0, 0, 1}}) == Kind::weights);
  CHECK(kind_of({{2, -3, 0}, {0, 1, -1}}) == Kind::weights);
}

TEST_CASE("certificate: what is taken away and put back has none", "[analysis]") {
  CHECK(kind_of({{0}}) == Kind::combination);
  CHECK(kind_of({{1, -1}, {-1, 1}}) == Kind::combination);
  CHECK(kind_of({{1, -2}, {-1, 1}}) == Kind::combination);
  CHECK(kind_of({{5, -1, 0}, {0, 1, -1}, {0, -1, 1}}) == Kind::combination);
}

TEST_CASE("certificate: of two weights that balance, a third decides", "[analysis]") {
  CHECK(kind_of({{1, -1, 1}, {-1, 1, 0}}) == Kind::weights);
  CHECK(kind_of({{1, -1, 1}, {-1, 1, -1}}) == Kind::combination);
}

TEST_CASE("certificate: random rows are answered, and rightly", "[analysis]") {
  std::size_t weights = 0, combinations = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::size_t height = 1 + random.below(6), width = 1 + random.below(6);
    Rows rows(height, std::vector<std::int64_t>(width));
    for (auto& row : rows)
      for (std::int64_t& number : row) number = static_cast<std::int64_t>(random.below(7)) - 3;
    (kind_of(rows) == Kind::weights ? weights : combinations) += 1;
  }
  CHECK(weights > 50);
  CHECK(combinations > 50);
}
