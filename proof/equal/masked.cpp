// Decides masked lookups exactly. The rank's index and mask are computed from one integer index by
// comparisons, sums, and products with constants. They are therefore piecewise affine in it. The
// breakpoints of all comparisons divide the range into intervals; on each interval both functions
// are affine, and an evaluation gives their coefficients. A dtype or operation outside this
// fragment makes the result unknown. Cost is the number of breakpoints times the nodes between
// index and mask.
// Example: base - first is read where base ≥ first and base < last, and 0 elsewhere, with a mask of
// the same comparisons. For 4 ranks of 1000 rows, an exhaustive check would evaluate every row on
// every rank; bisection at sign changes needs a few intervals.
#include "proof/equal/masked.hpp"

#include <cmath>
#include <map>
#include <set>

namespace pw::proof {
namespace {

/// An affine function: factor * base + rest; for b8, rest is 0 or 1.
struct Line {
  std::int64_t factor = 0, rest = 0;
};

/// Casts count as views; `view` treats those to b8 as a comparison with 0.
bool is_view(Primitive op) { return among(op, {Primitive::reshape, Primitive::cast}); }

bool is_bitwise(Primitive op) {
  return among(op, {Primitive::bitwise_and, Primitive::bitwise_or, Primitive::bitwise_xor,
                    Primitive::bitwise_not});
}

/// Excludes sums of booleans, bitwise ops on numbers, and narrow dtypes, which are not supported.
bool keeps_numbers(DType dtype, Primitive op) {
  const bool truth = dtype == DType::b8;
  if (is_bitwise(op)) return truth;
  if (is_float(dtype)) return true;  // of few numbers, see AffineEvaluator
  if (among(op, {Primitive::add, Primitive::sub, Primitive::neg, Primitive::mul}))
    return dtype == DType::i32 || dtype == DType::i64;
  return truth || dtype == DType::i32 || dtype == DType::i64;
}

bool is_supported(Primitive op) {
  return is_bitwise(op) ||
         among(op, {Primitive::add, Primitive::sub, Primitive::mul, Primitive::neg, Primitive::eq,
                    Primitive::ne, Primitive::lt, Primitive::le, Primitive::gt, Primitive::ge,
                    Primitive::select});
}

std::optional<std::int64_t> whole_number(const Wholes& wholes, ValueId value) {
  const auto number = wholes.number_of(value);
  constexpr double kMost = 1LL << 53;
  if (!number || std::abs(*number) > kMost || std::floor(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

DimId count(const Wholes& wholes, ValueId value) {
  DimId product = wholes.dims().constant(1);
  for (DimId d : wholes.shape(value)) product = wholes.dims().mul(product, d);
  return product;
}

/// Collects the leaves: values that are neither constants nor computed by a supported operation.
/// False if an operation repeats elements of a tensor.
/// Both functions must read one leaf element by element: a broadcast would pair a mask with another
/// element's index.
bool collect(const Wholes& wholes, ValueId value, DimId elements, std::set<ValueId>& leaves,
             std::set<ValueId>& seen) {
  if (!value.valid()) return false;
  if (!seen.insert(value).second || whole_number(wholes, value)) return true;
  if (count(wholes, value) != elements) return false;
  const Graph& graph = wholes.graph();
  if (!graph.is_input(value)) {
    const NodeId node = graph.producer(value);
    const Primitive op = graph.op_of(node).primitive;
    if (is_view(op) || is_supported(op)) {
      for (ValueId operand : graph.operands(node))
        if (!collect(wholes, operand, elements, leaves, seen)) return false;
      return true;
    }
  }
  leaves.insert(value);
  return true;
}

/// Evaluates on an interval of the base without breakpoints in its interior.
class AffineEvaluator {
 public:
  AffineEvaluator(const Wholes& wholes, ValueId base, std::int64_t low, std::int64_t high)
      : wholes_(wholes), low_(low), high_(high) {
    known_.emplace(base, Line{1, 0});
  }

  std::optional<Line> line(ValueId value) {
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    const auto line = evaluate(value);
    known_.emplace(value, line);
    return line;
  }
  /// Adds the breakpoint of a comparison.
  [[nodiscard]] bool mixed() const { return mixed_; }

 private:
  std::optional<Line> evaluate(ValueId value) {
    if (const auto number = whole_number(wholes_, value)) return Line{0, *number};
    const Graph& graph = wholes_.graph();
    if (graph.is_input(value)) return std::nullopt;
    const NodeId node = graph.producer(value);
    const Primitive op = graph.op_of(node).primitive;
    if (!is_view(op) && !is_supported(op)) return std::nullopt;
    if (!keeps_numbers(wholes_.dtype(value), op)) return std::nullopt;
    std::vector<Line> in;
    for (ValueId operand : graph.operands(node)) {
      const auto line = this->line(operand);
      if (!line) return std::nullopt;
      in.push_back(*line);
    }
    const auto out = is_view(op) ? view(value, in[0]) : combine(op, in);
    const DType dtype = wholes_.dtype(value);
    const std::int64_t exact =
        size_of(dtype) == 1 ? 8 : 256;  // floats represent integers up to here
    if (out && is_float(dtype) && (out->factor != 0 || out->rest > exact || out->rest < -exact))
      return std::nullopt;
    return out;
  }

  // A cast to b8 is `!= 0`; any other view keeps the number.
  std::optional<Line> view(ValueId value, Line line) {
    if (wholes_.dtype(value) != DType::b8) return line;
    return compare(Primitive::ne, {line, Line{0, 0}});
  }

  std::optional<Line> combine(Primitive op, const std::vector<Line>& in) {
    if (op == Primitive::add) return sum(in[0], in[1], 1);
    if (op == Primitive::sub) return sum(in[0], in[1], -1);
    if (op == Primitive::neg) return sum(Line{}, in[0], -1);
    if (op == Primitive::mul) return product(in[0], in[1]);
    if (op == Primitive::select) {
      // A mask must be constant on the interval.
      if (in[0].factor != 0) return std::nullopt;
      return in[0].rest != 0 ? in[1] : in[2];
    }
    if (is_bitwise(op)) return truths(op, in);
    return compare(op, in);
  }

  // Overflow of 64 bits gives no line.
  static std::optional<Line> sum(Line a, Line b, std::int64_t sign) {
    const auto b_times = product(b, Line{0, sign});
    Line out;
    if (!b_times || __builtin_add_overflow(a.factor, b_times->factor, &out.factor) ||
        __builtin_add_overflow(a.rest, b_times->rest, &out.rest))
      return std::nullopt;
    return out;
  }

  static std::optional<std::int64_t> at(Line line, std::int64_t place) {
    std::int64_t out = 0;
    if (__builtin_mul_overflow(line.factor, place, &out) ||
        __builtin_add_overflow(out, line.rest, &out))
      return std::nullopt;
    return out;
  }

  // A product of two varying factors would be quadratic.
  static std::optional<Line> product(Line a, Line b) {
    if (a.factor != 0 && b.factor != 0) return std::nullopt;
    if (a.factor != 0) std::swap(a, b);
    Line out;
    if (__builtin_mul_overflow(a.rest, b.factor, &out.factor) ||
        __builtin_mul_overflow(a.rest, b.rest, &out.rest))
      return std::nullopt;
    return out;
  }

  /// Restricted to 0 and 1, for which bitwise and arithmetic ops agree.
  static std::optional<Line> truths(Primitive op, const std::vector<Line>& in) {
    for (const Line& line : in)
      if (line.factor != 0 || (line.rest != 0 && line.rest != 1)) return std::nullopt;
    const std::int64_t a = in[0].rest;
    if (op == Primitive::bitwise_not) return Line{0, 1 - a};
    const std::int64_t b = in[1].rest;
    if (op == Primitive::bitwise_and) return Line{0, a & b};
    if (op == Primitive::bitwise_or) return Line{0, a | b};
    return Line{0, a ^ b};
  }

  // The difference of both sides is monotone on the interval, so its signs at the ends bound those
  // between. If they do not decide the comparison, `mixed` makes the caller halve the interval.
  std::optional<Line> compare(Primitive op, const std::vector<Line>& in) {
    const auto d = sum(in[0], in[1], -1);
    const auto first = d ? at(*d, low_) : std::nullopt, last = d ? at(*d, high_) : std::nullopt;
    if (!first || !last) return std::nullopt;
    const auto sign = [](std::int64_t x) { return x < 0 ? -1 : x > 0 ? 1 : 0; };
    const int a = sign(*first), b = sign(*last);
    const auto truth = [&](int s) {
      if (op == Primitive::lt) return s < 0;
      if (op == Primitive::le) return s <= 0;
      if (op == Primitive::gt) return s > 0;
      if (op == Primitive::ge) return s >= 0;
      return (op == Primitive::eq) == (s == 0);
    };
    // If both ends have one sign, all values between have it. A sign that changes, or is 0 at one
    // end only, decides nothing in between.
    const bool steady = a == b && (a != 0 || d->factor == 0);
    const bool ordered = !among(op, {Primitive::eq, Primitive::ne}) && truth(a) == truth(b);
    if (!steady && !ordered) {
      mixed_ = low_ < high_;
      if (mixed_) return std::nullopt;
    }
    return Line{0, truth(a) ? 1 : 0};
  }

  const Wholes& wholes_;
  std::int64_t low_, high_;
  std::map<ValueId, std::optional<Line>> known_;
  bool mixed_ = false;
};

/// Checks one interval of the base. Inside, the mask must count and the index must be base - first.
/// Outside, the mask must not count, and the index is arbitrary. Halving ends at single indices,
/// where every comparison is decided.
bool holds_between(const Wholes& wholes, const MaskedLookup& lookup, ValueId base, std::int64_t low,
                   std::int64_t high, bool inside) {
  if (low > high) return true;
  AffineEvaluator evaluator(wholes, base, low, high);
  const auto mask = evaluator.line(lookup.mask);
  std::optional<Line> index;
  const bool counts = mask && mask->factor == 0 && (mask->rest != 0) == lookup.where;
  if (mask && counts) index = evaluator.line(lookup.index);
  if (evaluator.mixed()) {
    const std::int64_t middle = low + (high - low) / 2;
    return holds_between(wholes, lookup, base, low, middle, inside) &&
           holds_between(wholes, lookup, base, middle + 1, high, inside);
  }
  if (!mask || mask->factor != 0 || counts != inside) return false;
  if (!inside) return true;
  if (!index) return false;
  // For a single index any line through its value works.
  const Line wanted{1, -lookup.first};
  if (low == high && index->factor == 0) return index->rest == low + wanted.rest;
  return index->factor == wanted.factor && index->rest == wanted.rest;
}

/// Returns 0 for an outside interval, otherwise the constant value on it.
/// Outside, the rank still writes: it must change a row that it holds by 0.
std::optional<double> step_between(const Wholes& wholes, const MaskedStep& step, ValueId base,
                                   std::int64_t low, std::int64_t high, bool inside) {
  AffineEvaluator evaluator(wholes, base, low, high);
  const auto index = evaluator.line(step.index), by = evaluator.line(step.step);
  if (evaluator.mixed()) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto a = step_between(wholes, step, base, low, middle, inside);
    const auto b = step_between(wholes, step, base, middle + 1, high, inside);
    return a == b ? a : std::nullopt;
  }
  if (!index || !by || by->factor != 0) return std::nullopt;
  if (!inside) {
    const bool there =
        index->factor == 0 && index->rest >= 0 && index->rest < step.last - step.first;
    return there && by->rest == 0 ? std::optional(0.0) : std::nullopt;
  }
  const bool single = low == high && index->factor == 0 && index->rest == low - step.first;
  if (!single && (index->factor != 1 || index->rest != -step.first)) return std::nullopt;
  return static_cast<double>(by->rest);
}

}  // namespace

/// A table of rank r has rows [first, last); all other indices must change nothing.
std::optional<double> step_of_rows(const Wholes& wholes, const MaskedStep& step, ValueId base) {
  const auto outside = [&](std::int64_t low, std::int64_t high) {
    return low > high || step_between(wholes, step, base, low, high, false).has_value();
  };
  if (!outside(0, step.first - 1) || !outside(step.last, step.rows - 1)) return std::nullopt;
  return step_between(wholes, step, base, step.first, step.last - 1, true);
}

std::optional<ValueId> common_index(const Wholes& wholes, ValueId index, ValueId mask) {
  std::set<ValueId> leaves, seen;
  const DimId elements = count(wholes, index);
  if (!collect(wholes, index, elements, leaves, seen) ||
      !collect(wholes, mask, elements, leaves, seen) || leaves.size() != 1)
    return std::nullopt;
  return *leaves.begin();
}

bool reads_its_rows(const Wholes& wholes, const MaskedLookup& lookup, ValueId base) {
  return holds_between(wholes, lookup, base, 0, lookup.first - 1, false) &&
         holds_between(wholes, lookup, base, lookup.first, lookup.last - 1, true) &&
         holds_between(wholes, lookup, base, lookup.last, lookup.rows - 1, false);
}

}  // namespace pw::proof
