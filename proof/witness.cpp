// Searches for inputs that distinguish two terms, by testing. One or two pointwise inputs are drawn
// from a grid of critical values; all others are random, with magnitudes at which ops overflow. A
// second, directed phase scales one input until a chosen step leaves the range of its dtype.
// Pointwise terms with at most 16 input bits are also enumerated exhaustively, which is a proof of
// equality. Every witness is confirmed by the strict evaluation of both sides. The number of
// samples and the size of terms are bounded; no result means nothing.
// The search is incomplete by design: it looks where laws of the reals typically break in floats.
// Products and exponentials overflow, casts to narrower dtypes saturate or round to infinity, and a
// rounded operand flips a comparison. All samples are pure functions of their number and of input
// names, so a verdict never depends on a random seed.
#include "proof/witness.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "proof/index_levels.hpp"
#include "tensor/numerics.hpp"

namespace pw::proof {
namespace {

// Limits of one search. They bound its time; no limit affects soundness.
constexpr std::size_t kRandomSamples = 240;
constexpr std::size_t kFlipSamples = 960;  // two operands have to be near each other
constexpr std::size_t kGridSide = 60;
constexpr std::size_t kMostGrid = 3600;  // samples for all pairs of critical numbers
constexpr std::size_t kMostShown = 6;    // inputs of a printed witness
constexpr std::size_t kAimedSamples = 96;
constexpr std::size_t kSmallSamples = 32;
constexpr std::size_t kMostAimedNodes = 60;  // of terms that a sample is aimed at
constexpr std::size_t kMostTargets = 8;
constexpr std::size_t kMostNodes = 400;

/// Returns integers near the bounds of a dtype and near the literals.
/// Besides the bounds these are the square roots near which products overflow: 46341 for i32,
/// 3037000500 for i64. 16777217 is the least positive integer that f32 does not hold.
std::vector<double> critical_integers(DType dtype, const std::set<double>& literals) {
  std::vector<double> out;
  const double low = dtype == DType::u8    ? 0
                     : dtype == DType::i8  ? -128
                     : dtype == DType::i32 ? -0x1p31
                                           : -0x1p63;
  const double high = dtype == DType::u8    ? 255
                      : dtype == DType::i8  ? 127
                      : dtype == DType::i32 ? 0x1p31 - 1
                                            : 0x1p63;
  for (double x :
       {0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 5.0, -7.0, 100.0, -100.0, low, low + 1, high, high - 1,
        std::floor(high / 2), std::floor(high / 2) + 1, 46341.0, -3037000500.0, 16777217.0})
    if (x >= low && x <= high) out.push_back(x);
  for (double literal : literals)
    for (double x : {literal, literal + 1, literal - 1, low + literal, high - literal,
                     high + literal, low - literal})
      if (std::rint(x) == x && x >= low && x <= high) out.push_back(x);
  return out;
}

/// Returns floats near the ends of the ranges of scalar functions and near the literals, and
/// `ends`.
/// exp overflows in f32 from 88.8 and in f64 from 709.8; 104.7 and 746 are where exp(-x) underflows
/// to 0. Powers of the largest number make a product of two, or of four, overflow or not. `large /
/// literal` is where a product with a literal leaves the range.
std::vector<double> critical_floats(DType dtype, const std::set<double>& literals,
                                    const std::set<double>& ends) {
  const FloatFormat format = pw::format_of(dtype);
  const double large = format.largest, least = std::ldexp(1.0, format.smallest);
  std::vector<double> sizes = {1,
                               0.37,
                               2.6,
                               11.3,
                               17.2,
                               89.3,
                               104.7,
                               460,
                               std::log(large) + 0.3,  // exp overflows, sinh not
                               711,
                               746,
                               70001,
                               large / 1.37,
                               large / 3.3,
                               std::sqrt(large) * 1.31,
                               std::pow(large, 0.26),
                               std::pow(large, 0.74),
                               least * 1.4,
                               std::sqrt(least) * 0.83,
                               std::ldexp(3.0, format.smallest - format.mantissa)};
  for (double literal : literals) {
    const double size = std::abs(literal);
    if (size == 0 || !std::isfinite(size)) continue;
    sizes.insert(sizes.end(), {size, size * 1.3, large / size * 0.8, large / size * 1.2,
                               least / size * 0.9, large / 1.02 - size});
  }
  std::vector<double> out = {0.0, -0.0};
  for (double size : sizes)
    for (double x : {size, -size})
      // The margin of 1 % excludes a dtype's largest number itself, which rounding alone may push
      // to infinity.
      if (const double held = rounded(dtype, x); std::abs(held) <= 0.99 * large)
        out.push_back(held);
  for (double end : ends)
    if (end <= large) out.insert(out.end(), {end, -end});
  return out;
}

/// Returns finite numbers of a dtype at which scalar functions change their behavior, and those of
/// `ends`.
std::vector<double> critical_numbers(DType dtype, const std::set<double>& literals,
                                     const std::set<double>& ends) {
  if (dtype == DType::b8) return {0, 1};
  const std::vector<double> out =
      is_float(dtype) ? critical_floats(dtype, literals, ends) : critical_integers(dtype, literals);
  std::vector<double> unique;
  for (double x : out)
    // 0.0 == -0.0, so their sign bits are compared as well.
    if (std::none_of(unique.begin(), unique.end(),
                     [&](double y) { return x == y && std::signbit(x) == std::signbit(y); }))
      unique.push_back(x);
  return unique;
}

}  // namespace

/// The parts of two terms.
struct Scope {
  std::set<double> literals;
  std::set<TermId> computed;  ///< floats, not only cast
  std::size_t reads = 0, nodes = 0;
  bool pointwise = true;
  bool compares = false;  ///< floats
  /// Largest numbers of narrower dtypes that an input is cast to: it may round to infinity.
  std::set<double> ends;
};

/// The distribution of a sample's numbers.
enum class Draw : std::uint8_t {
  grid,    ///< all pairs of critical numbers, for terms of at most two reads
  random,  ///< a critical number for each input or each of its elements
  small,   ///< zeros and numbers near 1, at which nothing overflows
  alike,   ///< random ones, where all inputs have one magnitude
  aimed,   ///< random ones and large ones, of which one input is scaled
};

/// A sample: values for all inputs of two terms.
/// Values are drawn on first use and then fixed, so both sides read the same inputs. They depend on
/// the input's name, its position, and the number of the sample only.
class Sample {
 public:
  Sample(const Terms& terms, const Scope& scope, std::size_t number, Draw draw)
      : terms_(terms), scope_(scope), number_(number), draw_(draw) {}

  Machine::Inputs inputs(bool reals = false) {
    Machine::Inputs out;
    out.read = [this, reals](TermId id, const std::vector<std::int64_t>& at) {
      auto value = read(id, at);
      if (value && reals && is_float(value->dtype)) value->dtype = DType::f64;
      return value;
    };
    out.size = [this](const Integers::Unknown& unknown) { return size(unknown); };
    // The result of an opaque op cannot be chosen freely.
    out.opaque = [](TermId, const std::vector<std::int64_t>&) { return std::optional<Scalar>(); };
    return out;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, Scalar>>& seen() const { return seen_; }
  /// Scales the numbers of an input by a power of two.
  void scale(const std::string& name, double power) {
    scaled_ = name;
    power_ = power;
    reads_.clear();
    seen_.clear();
  }
  Scalar left, right;

 private:
  // Reads are identified by name and evaluated position: two terms that read one element see one
  // value.
  std::optional<Scalar> read(TermId id, const std::vector<std::int64_t>& at) {
    const Term& term = terms_[id];
    std::string name = term.name;
    for (std::int64_t place : at) name += fmt::format(" {}", place);
    const auto known = reads_.find(name);
    if (known != reads_.end()) return known->second;
    const Scalar out = drawn(term.name, term.dtype, at);
    seen_.emplace_back(place_of(term, at), out);
    return reads_.emplace(name, out).first->second;
  }

  /// Prints the element as a user expects: with one index per axis, or with numbers under a sum.
  std::string place_of(const Term& term, const std::vector<std::int64_t>& at) const {
    std::string out;
    for (std::size_t i = 0; i < at.size(); ++i)
      out += (i == 0 ? "" : ", ") +
             (scope_.pointwise ? terms_.integers().print(term.at[i]) : std::to_string(at[i]));
    return fmt::format("{}[{}]", term.name, out);
  }

  // Chooses a value by the distribution of this sample. With one magnitude per input, sums overflow
  // as a whole; with one per element, a large element meets small ones.
  Scalar drawn(const std::string& name, DType dtype, const std::vector<std::int64_t>& at) {
    auto& numbers = critical_[dtype];
    if (numbers.empty()) numbers = critical_numbers(dtype, scope_.literals, scope_.ends);
    if (draw_ == Draw::small && is_float(dtype)) {
      constexpr double kSmall[] = {0.375, -0.375, 0, 1.25, -1.25, 2.5, -2.5, 1};
      std::uint64_t own = combine(hash_text(name), number_);
      for (std::int64_t place : at) own = combine(own, static_cast<std::uint64_t>(place) + 1);
      return Scalar::of(dtype, kSmall[(own >> 9) % std::size(kSmall)]);
    }
    const std::size_t order = reads_.size();
    // The first read takes the column of the grid and the second the row; grids have at most two
    // reads.
    if (draw_ == Draw::grid) {
      const std::size_t which = order == 0 ? number_ % kGridSide : number_ / kGridSide;
      return Scalar::of(dtype, numbers[which % numbers.size()]);
    }
    // In half of the samples all elements of an input have one magnitude.
    const std::uint64_t of_input = combine(hash_text(name), number_);
    const std::uint64_t key = draw_ == Draw::alike ? combine(number_, 5) : of_input;
    std::uint64_t own = combine(of_input, 77);
    for (std::int64_t place : at) own = combine(own, static_cast<std::uint64_t>(place) + 1);
    const bool together = draw_ != Draw::random || number_ % 2 == 0;
    double number = numbers[(together ? key >> 9 : own >> 9) % numbers.size()];
    if (!is_float(dtype) || !together) return Scalar::of(dtype, number);
    const double large = pw::format_of(dtype).largest;
    const bool near_the_end = draw_ == Draw::aimed && combine(number_, 9) % 2 == 0;
    if (near_the_end) number = large / 1.37;
    const double factor = 0.7 + static_cast<double>(own >> 40 & 255) / 900;
    const bool signs = (key >> 5) % 3 != 0;
    number *= factor * (signs && (own >> 7) % 2 ? -1 : 1);
    if (name == scaled_)
      number = std::exp2(std::log2(std::abs(number)) + power_) * std::copysign(1.0, number);
    return Scalar::of(dtype, std::clamp(number, -0.99 * large, 0.99 * large));
  }

  // Chooses a size from 1 to 8, or an index below its extent. Eight samples in a row share their
  // sizes, because sizes matter less than values. A symbol that may be below 1 is
  // sometimes 0. Returns nothing for an index of an empty axis, which rejects the sample.
  std::optional<std::int64_t> size(const Integers::Unknown& unknown) {
    const bool symbol = unknown.kind == Integers::Unknown::Kind::symbol;
    const std::string name = symbol ? std::string(unknown.name)
                                    : fmt::format("{} {}", unknown.number, unknown.extent.index);
    const auto known = sizes_.find(name);
    if (known != sizes_.end()) return known->second;
    const std::uint64_t draw = combine(hash_text(name), number_ / 8 + 3) >> 11;
    std::int64_t out = 0;
    if (symbol) {
      constexpr std::int64_t kSizes[] = {2, 1, 3, 2, 4, 2, 6, 8};
      out = kSizes[draw % 8] - (unknown.free && draw % 16 == 0 ? 2 : 0);
    } else {
      const auto extent = terms_.integers().evaluate(
          unknown.extent, [this](const Integers::Unknown& inner) { return size(inner); });
      if (!extent || *extent <= 0) return std::nullopt;
      out = static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(*extent));
    }
    sizes_.emplace(name, out);
    return out;
  }

  const Terms& terms_;
  const Scope& scope_;
  std::size_t number_;
  Draw draw_;
  std::string scaled_;
  double power_ = 0;
  std::map<std::string, Scalar> reads_;
  std::map<std::string, std::int64_t> sizes_;
  std::map<DType, std::vector<double>> critical_;
  std::vector<std::pair<std::string, Scalar>> seen_;
};

namespace {

/// Returns true if it casts an input, perhaps after other casts, to a float that cannot represent
/// all its values.
bool narrows_input(const Terms& terms, TermId id) {
  const Term& term = terms[id];
  if (term.kind != Term::Kind::call || term.function != Function::cast || !is_float(term.dtype))
    return false;
  TermId from = term.args[0];
  if (!is_float(terms[from].dtype) || holds_all(term.dtype, terms[from].dtype)) return false;
  while (terms[from].kind == Term::Kind::call && terms[from].function == Function::cast)
    from = terms[from].args[0];
  return terms[from].kind == Term::Kind::read;
}

/// Counts shared nodes once. At most six literals are kept, since each adds critical numbers.
Scope scope_of(const Terms& terms, TermId a, TermId b) {
  Scope out;
  std::set<TermId> seen;
  bool narrowed = false;
  for (TermId side : {a, b})
    terms.walk(side, [&](TermId id, std::vector<TermId>& next) {
      const Term& term = terms[id];
      next.insert(next.end(), term.args.begin(), term.args.end());
      if (!seen.insert(id).second) return;
      ++out.nodes;
      out.reads += term.kind == Term::Kind::read;
      if (narrows_input(terms, id)) narrowed = true;
      out.compares = out.compares || (term.kind == Term::Kind::call && term.dtype == DType::b8 &&
                                      is_float(terms[term.args[0]].dtype));
      if (is_float(term.dtype)) out.ends.insert(pw::format_of(term.dtype).largest);
      if (term.kind == Term::Kind::call && term.function != Function::cast && is_float(term.dtype))
        out.computed.insert(id);
      out.pointwise = out.pointwise && term.kind != Term::Kind::reduce &&
                      term.kind != Term::Kind::opaque && term.kind != Term::Kind::lambda;
      if (term.kind == Term::Kind::number && std::isfinite(term.number) && out.literals.size() < 6)
        out.literals.insert(term.number);
    });
  // Without a narrowing cast of an input, no dtype's largest number is special for it.
  if (!narrowed) out.ends.clear();
  return out;
}

bool finite(const Scalar& x) { return !is_float(x.dtype) || std::isfinite(x.real); }

/// Returns true if one is infinite or NaN and the other is not, or both are infinite with different
/// signs.
bool leaves_range(const Scalar& a, const Scalar& b) {
  if (finite(a) != finite(b)) return true;
  // Two NaN agree, and so do NaN and infinity: both sides left the range there.
  return !finite(a) && std::isinf(a.real) && std::isinf(b.real) && a.real != b.real;
}

/// Allowed error for small numbers: a few steps of the least ones, not amplified by a division.
/// The factor 4 leaves room for the order of evaluation, which the error bounds do not cover. The
/// cap of 1024 steps keeps a division by a tiny number from excusing any difference.
double allowed(const Machine::Result& a, const Machine::Result& b) {
  const double step = smallest_of(a.value.dtype);
  return 4 * (a.error + b.error) +
         std::min(4 * (a.underflow + b.underflow), kMostLostSteps * step) + 2 * step;
}

}  // namespace

/// Requires the difference in `granted` mode as well. There, partial sums have unlimited range, so
/// a difference that comes only from the order of a sum does not count: every verdict grants it.
bool WitnessSearch::overflows(TermId a, TermId b, Sample& sample) const {
  Machine granted(terms_, sample.inputs(), Machine::Mode::granted);
  const auto x = granted.run(a), y = granted.run(b);
  if (!x || !y) return false;
  evaluated_ = true;
  const double bound = allowed(*x, *y);
  const auto distinct = [&](const Scalar& left, const Scalar& right) {
    if (!finite(left) || !finite(right)) return leaves_range(left, right);
    return std::abs(left.real - right.real) > bound;
  };
  if (!distinct(x->value, y->value)) return false;
  Machine strict(terms_, sample.inputs(), Machine::Mode::strict);
  const auto left = strict.run(a), right = strict.run(b);
  if (!left || !right || !distinct(left->value, right->value)) return false;
  sample.left = left->value;
  sample.right = right->value;
  return true;
}

/// Excludes comparisons from the error bounds, so that a branch taken differently shows as a large
/// difference. Both modes must agree, for the same reason as in overflows.
bool WitnessSearch::flips(TermId a, TermId b, Sample& sample) const {
  constexpr double kBranches = 1.0 / 32;  // approximations of one function differ by less
  const auto distinct = [&](Machine::Mode mode) {
    Machine left(terms_, sample.inputs(), mode), right(terms_, sample.inputs(), mode);
    left.decide_comparisons();
    right.decide_comparisons();
    const auto x = left.run(a), y = right.run(b);
    if (!x || !y || !finite(x->value) || !finite(y->value)) return false;
    sample.left = x->value;
    sample.right = y->value;
    const double p = x->value.real, q = y->value.real;
    return std::abs(p - q) > allowed(*x, *y) + kBranches * std::max(std::abs(p), std::abs(q));
  };
  return distinct(Machine::Mode::granted) && distinct(Machine::Mode::strict);
}

/// Evaluates in f64 first: a NaN there is a property of the functions, not of rounding. The strict
/// evaluation then confirms that one side only is NaN, as for x / x ⇒ 1 at 0.
bool WitnessSearch::differs_in_domain(TermId a, TermId b, Sample& sample) const {
  Machine reals(terms_, sample.inputs(true), Machine::Mode::reals);
  const auto x = reals.run(a), y = reals.run(b);
  if (!x || !y || std::isnan(x->value.real) == std::isnan(y->value.real)) return false;
  const bool known = differs(a, b, sample);
  return known && std::isnan(sample.left.real) != std::isnan(sample.right.real);
}

/// Compares bits, which suits integers and booleans. It also supplies both values for other
/// searches.
bool WitnessSearch::differs(TermId a, TermId b, Sample& sample) const {
  Machine strict(terms_, sample.inputs(), Machine::Mode::strict);
  const auto left = strict.run(a), right = strict.run(b);
  if (!left || !right) return false;
  evaluated_ = true;
  sample.left = left->value;
  sample.right = right->value;
  return !same_bits(left->value, right->value);
}

/// An intermediate result of a term, and the inputs that it depends on.
struct Target {
  TermId step;
  std::vector<std::string> inputs;
};

namespace {

/// Steps whose inputs include no float cannot be scaled and are skipped.
std::vector<Target> targets_of(const Terms& terms, const Scope& scope) {
  std::vector<Target> out;
  for (TermId step : scope.computed) {
    std::set<std::string> inputs;
    terms.walk(step, [&](TermId id, std::vector<TermId>& next) {
      const Term& term = terms[id];
      next.insert(next.end(), term.args.begin(), term.args.end());
      if (term.kind == Term::Kind::read && is_float(term.dtype)) inputs.insert(term.name);
    });
    if (!inputs.empty()) out.push_back({step, {inputs.begin(), inputs.end()}});
    if (out.size() == kMostTargets) break;
  }
  return out;
}

}  // namespace

/// Scales one input until a step is above the largest or below the least number of its dtype;
/// returns true on success.
/// The step is usually monotone in the magnitude of one input. The search scans powers of two in
/// steps of 24 for a sign change. Nine bisections then leave about 0.05 in the exponent. False if
/// the step does not cross the goal within 2^±240.
bool WitnessSearch::aim(const Target& target, std::size_t number, Sample& sample) const {
  const FloatFormat format = pw::format_of(terms_[target.step].dtype);
  const double least = std::ldexp(1.0, format.smallest - format.mantissa);
  const double goals[] = {1.05 * format.largest, 1.6 * format.largest, 0.3 * least,
                          1.3 * format.largest};
  const double goal = std::log2(goals[number % 4]);
  const std::string& input = target.inputs[number / 4 % target.inputs.size()];
  const auto above = [&](double power) -> std::optional<bool> {
    sample.scale(input, power);
    Machine reals(terms_, sample.inputs(true), Machine::Mode::reals);
    const auto value = reals.run(target.step);
    if (!value || std::isnan(value->value.real)) return std::nullopt;
    return std::log2(std::abs(value->value.real)) > goal;
  };
  constexpr double kStep = 24, kMost = 240;
  std::optional<bool> before = above(-kMost);
  for (double low = -kMost; low < kMost; low += kStep) {
    const std::optional<bool> after = above(low + kStep);
    if (before && after && *before != *after) {
      double from = low, to = low + kStep;
      for (int halving = 0; halving < 9; ++halving) {
        const double middle = (from + to) / 2;
        (above(middle) == before ? from : to) = middle;
      }
      sample.scale(input, to);
      return true;
    }
    before = after;
  }
  return false;
}

/// Rejects a sample that violates a fact: no instance of the case has such sizes.
std::optional<Witness> WitnessSearch::tried(TermId a, TermId b, Parts parts, Sample& sample) {
  Machine strict(terms_, sample.inputs(), Machine::Mode::strict);
  const auto& known = terms_.integers().facts();
  const bool fits = std::all_of(known.begin(), known.end(), [&](Ix fact) {
    const auto value = strict.index(fact);
    return value && *value >= 0;
  });
  if (!fits || !(this->*parts)(a, b, sample)) return std::nullopt;
  return Witness{print_witness(sample.seen(), sample.left, sample.right)};
}

/// Draws pointwise terms of at most two reads from the grid, all others randomly, and then aims at
/// single steps. 1009 is coprime to the size of the grid, so the first samples are spread over it.
std::optional<Witness> WitnessSearch::search(TermId a, TermId b, Parts parts) {
  constexpr std::size_t kHopeless = 40;
  evaluated_ = false;
  const Scope scope = scope_of(terms_, a, b);
  if (scope.nodes > kMostNodes) return std::nullopt;
  const auto sample_of = [&](std::size_t number, Draw draw) {
    return Sample(terms_, scope, number, draw);
  };
  const bool grid = scope.pointwise && scope.reads > 0 && scope.reads <= 2;
  const std::size_t random = parts == &WitnessSearch::flips ? kFlipSamples : kRandomSamples;
  const std::size_t samples = grid && scope.reads == 2 ? kMostGrid : random;
  for (std::size_t n = 0; n < samples; ++n) {
    // A term that 40 samples could not evaluate has an op without a scalar function, or is too
    // large.
    if (n == kHopeless && !evaluated_) return std::nullopt;
    const Draw draw = parts == &WitnessSearch::flips && n % 2 == 1 ? Draw::alike : Draw::random;
    Sample sample = grid ? sample_of(n * 1009 % kMostGrid, Draw::grid) : sample_of(n, draw);
    if (auto found = tried(a, b, parts, sample)) return found;
  }
  // One read was covered by the grid. Only overflow depends on the exact magnitude of a step.
  if (scope.reads < 2 || parts != &WitnessSearch::overflows) return std::nullopt;
  if (!scope.pointwise || scope.nodes > kMostAimedNodes) return std::nullopt;
  const std::vector<Target> targets = targets_of(terms_, scope);
  for (std::size_t n = 0; n < kAimedSamples && !targets.empty(); ++n) {
    Sample sample = sample_of(n, Draw::aimed);
    if (!aim(targets[n % targets.size()], n / targets.size(), sample)) continue;
    if (auto found = tried(a, b, parts, sample)) return found;
  }
  return std::nullopt;
}

std::optional<Witness> WitnessSearch::overflow(TermId a, TermId b) {
  return search(a, b, &WitnessSearch::overflows);
}
/// Restores `evaluated_`, which reports on the search for overflow.
std::optional<Witness> WitnessSearch::flip(TermId a, TermId b) {
  const bool evaluated = evaluated_;
  const Scope scope = scope_of(terms_, a, b);
  auto out = scope.compares ? search(a, b, &WitnessSearch::flips) : std::nullopt;
  evaluated_ = evaluated;
  return out;
}
/// Small inputs suffice: logarithms, roots, and quotients are undefined at 0 and below. All samples
/// are tried, at any size of the grid, because there are only 32.
std::optional<Witness> WitnessSearch::undefined(TermId a, TermId b) {
  const Scope scope = scope_of(terms_, a, b);
  if (scope.nodes > kMostNodes) return std::nullopt;
  for (std::size_t n = 0; n < kSmallSamples; ++n) {
    Sample sample(terms_, scope, n, Draw::small);
    if (auto found = tried(a, b, &WitnessSearch::differs_in_domain, sample)) return found;
  }
  return std::nullopt;
}
std::optional<Witness> WitnessSearch::difference(TermId a, TermId b) {
  return search(a, b, &WitnessSearch::differs);
}

/// This is a proof for the interpreter's arithmetic, since every input is evaluated. Reads at
/// different positions vary independently, which includes the case that they coincide. Returns
/// false for dtypes of more than 8 bits and for terms of more than 30 nodes; false means unknown.
bool WitnessSearch::same_for_all(TermId a, TermId b, std::size_t* evaluated) {
  constexpr std::size_t kMostNodes = 30;
  if (!terms_.pointwise(a) || !terms_.pointwise(b)) return false;
  std::set<TermId> reads;
  std::size_t nodes = 0, inputs = 1;
  for (TermId side : {a, b})
    terms_.walk(side, [&](TermId id, std::vector<TermId>& next) {
      next.insert(next.end(), terms_[id].args.begin(), terms_[id].args.end());
      ++nodes;
      if (terms_[id].kind == Term::Kind::read) reads.insert(id);
    });
  const auto count = [&](TermId read) -> std::size_t {
    const DType dtype = terms_[read].dtype;
    return dtype == DType::b8 ? 2 : dtype == DType::i8 || dtype == DType::u8 ? 256 : 0;
  };
  for (TermId read : reads)
    if (inputs *= count(read); inputs == 0 || inputs > 65536) return false;
  if (nodes > kMostNodes) return false;
  ++*evaluated;
  std::map<TermId, Scalar> values;
  for (std::size_t n = 0; n < inputs; ++n) {
    std::size_t rest = n;
    for (TermId read : reads) {
      const double low = terms_[read].dtype == DType::i8 ? -128 : 0;
      values[read] = Scalar::of(terms_[read].dtype, low + static_cast<double>(rest % count(read)));
      rest /= count(read);
    }
    const auto left = evaluate_strictly(terms_, a, values);
    const auto right = evaluate_strictly(terms_, b, values);
    if (!left || !right || !same_bits(*left, *right)) return false;
  }
  return true;
}

std::string print_witness(const std::vector<std::pair<std::string, Scalar>>& inputs,
                          const Scalar& left, const Scalar& right) {
  std::string text;
  std::size_t shown = 0;
  std::set<std::string> names;
  for (const auto& [name, value] : inputs) {
    if (++shown > kMostShown) {
      text += ", …";
      break;
    }
    std::string own = name;
    while (!names.insert(own).second) own += "'";
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", own, value.print());
  }
  return fmt::format("for {} the left is {} and the right {}", text, left.print(), right.print());
}

}  // namespace pw::proof
