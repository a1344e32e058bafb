// A linear program solved by the simplex method with Bland's rule (1977), which cannot cycle, on
// exact rationals. Its dual names the rules that balance each other where there are no weights
// (Farkas' lemma).
#include "rewriter/analysis/certificate.hpp"

#include <algorithm>
#include <numeric>

#include "algebra/rational.hpp"

namespace pw {
namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::size_t kMostBits = 61;  // of a number in the table

/// Simplex tableau. Variables: the weights, then t, then a slack for each row and one for the sum.
/// The origin is feasible, so one phase is enough. Only the columns of nonbasic variables are kept:
/// the table has as many columns as there are weights, however many rows.
class Tableau {
 public:
  explicit Tableau(const Rows& rows)
      : columns_(rows.empty() ? 0 : rows.front().size()),
        rows_(rows.size()),
        outside_(columns_ + 1) {
    std::iota(outside_.begin(), outside_.end(), std::size_t{0});
    for (std::size_t i = 0; i < rows_; ++i) {  // t - (M w)_i + slack = 0
      std::vector<Rational> line(columns_ + 2);
      for (std::size_t j = 0; j < columns_; ++j) line[j] = -rows[i][j];
      line[columns_] = 1;
      lines_.push_back(std::move(line));
      basis_.push_back(slack(i));
    }
    std::vector<Rational> sum(columns_ + 2);
    for (std::size_t j = 0; j < columns_; ++j) sum[j] = 1;
    sum.back() = 1;
    lines_.push_back(std::move(sum));
    basis_.push_back(slack(rows_));
    goal_.resize(columns_ + 2);  // what raising a variable costs: negative ones pay
    goal_[columns_] = -1;
  }

  /// Maximises; returns false if a number grew too large.
  bool maximise() {
    while (true) {
      const std::optional<std::size_t> enter = entering();
      if (!enter) return true;
      const std::optional<std::size_t> leave = leaving(*enter);
      if (!leave || !pivot(*leave, *enter)) return false;
    }
  }

  [[nodiscard]] Rational best() const { return goal_.back(); }
  [[nodiscard]] std::vector<Rational> weights() const {
    std::vector<Rational> out(columns_);
    for (std::size_t i = 0; i < basis_.size(); ++i)
      if (basis_[i] < columns_) out[basis_[i]] = lines_[i].back();
    return out;
  }
  /// Returns each row's multiplier in the proof that no weights exist.
  [[nodiscard]] std::vector<Rational> multipliers() const {
    std::vector<Rational> out(rows_);
    for (std::size_t j = 0; j < outside_.size(); ++j)
      if (outside_[j] >= slack(0) && outside_[j] < slack(rows_))
        out[outside_[j] - slack(0)] = goal_[j];
    return out;
  }

 private:
  [[nodiscard]] std::size_t slack(std::size_t row) const { return columns_ + 1 + row; }

  /// Returns the column of the first variable with a negative cost.
  [[nodiscard]] std::optional<std::size_t> entering() const {
    std::optional<std::size_t> out;
    for (std::size_t j = 0; j < outside_.size(); ++j)
      if (goal_[j].sign() < 0 && (!out || outside_[j] < outside_[*out])) out = j;
    return out;
  }

  [[nodiscard]] std::optional<std::size_t> leaving(std::size_t enter) const {
    std::optional<std::size_t> out;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i][enter].sign() <= 0) continue;
      if (!out) {
        out = i;
        continue;
      }
      const Rational here = lines_[i].back() / lines_[i][enter];
      const Rational there = lines_[*out].back() / lines_[*out][enter];
      if (here < there || (!(there < here) && basis_[i] < basis_[*out])) out = i;
    }
    return out;
  }

  /// Exchanges the entering and the leaving variable.
  bool pivot(std::size_t row, std::size_t column) {
    std::vector<Rational>& pivoted = lines_[row];
    const Rational by = pivoted[column];
    pivoted[column] = 1;
    for (Rational& f : pivoted) f = f / by;
    bool fits = true;
    const auto clear = [&](std::vector<Rational>& line) {
      const Rational times = line[column];
      if (times.sign() == 0) return;
      line[column] = 0;
      for (std::size_t j = 0; j < line.size(); ++j) {
        line[j] = line[j] - times * pivoted[j];
        fits = fits && line[j].bits() <= kMostBits;
      }
    };
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (i != row) clear(lines_[i]);
    clear(goal_);
    std::swap(basis_[row], outside_[column]);
    return fits;
  }

  std::size_t columns_, rows_;
  std::vector<std::vector<Rational>> lines_;  ///< by row: the columns outside, then the right side
  std::vector<std::size_t> outside_;          ///< by column: its variable
  std::vector<std::size_t> basis_;            ///< by row: its variable
  std::vector<Rational> goal_;
};

/// Returns the smallest integers in the same proportions; empty if they are too large.
std::vector<std::int64_t> whole(const std::vector<Rational>& fractions) {
  std::int64_t multiple = 1, divisor = 0;
  for (const Rational& f : fractions) {
    const auto parts = f.pair();
    if (!parts) return {};
    const std::int64_t more = parts->denominator / std::gcd(multiple, parts->denominator);
    if (__builtin_mul_overflow(multiple, more, &multiple)) return {};
  }
  std::vector<std::int64_t> out;
  for (const Rational& f : fractions) {
    std::int64_t number = 0;
    const auto [numerator, denominator] = *f.pair();
    if (__builtin_mul_overflow(numerator, multiple / denominator, &number)) return {};
    out.push_back(number);
    divisor = std::gcd(divisor, number);
  }
  for (std::int64_t& number : out) number /= std::max<std::int64_t>(divisor, 1);
  return out;
}

}  // namespace

RowWeights weigh(const Rows& rows) {
  Tableau tableau(rows);
  if (!tableau.maximise()) return {};
  const bool found = tableau.best().sign() > 0;
  RowWeights out;
  out.numbers = whole(found ? tableau.weights() : tableau.multipliers());
  if (out.numbers.empty() && !rows.empty()) return {};
  out.kind = found ? RowWeights::Kind::weights : RowWeights::Kind::combination;
  return out;
}

Certificate find_certificate(const std::vector<Effect>& effects) {
  Certificate out;
  std::map<std::string, std::size_t> columns;
  for (const Effect& effect : effects) {
    for (const auto& [op, count] : effect.consumed) columns.emplace(op, columns.size());
    for (const auto& [op, count] : effect.built) columns.emplace(op, columns.size());
    if (effect.bounded) continue;
    out.balance = {{effect.rule, 1}};
    return out;
  }
  std::map<std::vector<std::int64_t>, RuleId> first;  // variants mostly have the same effect
  for (const Effect& effect : effects) {
    std::vector<std::int64_t> row(columns.size());
    for (const auto& [op, count] : effect.consumed) row[columns.at(op)] += count;
    for (const auto& [op, count] : effect.built) row[columns.at(op)] -= count;
    first.emplace(std::move(row), effect.rule);
  }
  if (first.empty()) {
    out.weights.emplace();
    return out;
  }
  Rows rows;
  for (const auto& [row, rule] : first) rows.push_back(row);
  const RowWeights found = weigh(rows);
  if (found.kind == RowWeights::Kind::weights) {
    out.weights.emplace();
    for (const auto& [op, column] : columns)
      if (found.numbers[column] != 0) out.weights->emplace(op, found.numbers[column]);
  }
  if (found.kind != RowWeights::Kind::combination) return out;
  std::size_t at = 0;
  for (const auto& [row, rule] : first) {
    if (found.numbers[at] != 0) out.balance.emplace_back(rule, found.numbers[at]);
    ++at;
  }
  return out;
}

}  // namespace pw
