// Evaluates terms on concrete inputs, in the declared dtypes, with a running error analysis
// (Wilkinson 1963; Higham, "Accuracy and Stability of Numerical Algorithms", section 3.3). Each
// result has two bounds: one for rounding and one for underflow. Operand errors are propagated by
// evaluating the op at the ends of the operands' intervals. Invariant: in strict mode the value has
// the bits that the interpreter computes. Cost is linear in the evaluated elements and bounded;
// larger terms give no result.
#include "proof/machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include "graph/ops/scalar_functions.hpp"
#include "proof/index_levels.hpp"
#include "tensor/numerics.hpp"

namespace pw::proof {
namespace {

constexpr std::size_t kMostEvaluated = 40000;  // of one evaluation
constexpr std::int64_t kMostAddends = 512;     // of one sum

// ---- scalar functions

using FloatKernel = float (*)(const float*);
using DoubleKernel = double (*)(const double*);
using WholeKernel = std::int64_t (*)(const std::int64_t*);
struct Kernel {
  std::size_t operands = 0;
  FloatKernel in_float = nullptr;
  DoubleKernel in_double = nullptr;
  WholeKernel in_whole = nullptr;
};

template <class F, std::size_t N, class T>
T applied_to(const T* x) {
  if constexpr (N == 1) return F::of(x[0]);
  if constexpr (N == 2) return F::of(x[0], x[1]);
  if constexpr (N == 3) return F::of(x[0], x[1], x[2]);
}

const Kernel* kernel_of(Function function) {
#define PW_NUMBER(name, n)                                                      \
  {Function::name,                                                              \
   {n, applied_to<scalar::name, n, float>, applied_to<scalar::name, n, double>, \
    applied_to<scalar::name, n, std::int64_t>}},
#define PW_INTEGER(name, n) \
  {Function::name, {n, nullptr, nullptr, applied_to<scalar::name, n, std::int64_t>}},
#define PW_REAL(name) \
  {Function::name,    \
   {1, applied_to<scalar::name, 1, float>, applied_to<scalar::name, 1, double>, nullptr}},
  static const std::map<Function, Kernel> kKernels = {PW_NUMBER_PRIMITIVES(
      PW_NUMBER) PW_INTEGER_PRIMITIVES(PW_INTEGER) PW_REAL_PRIMITIVES(PW_REAL)};
#undef PW_NUMBER
#undef PW_INTEGER
#undef PW_REAL
  const auto found = kKernels.find(function);
  return found == kKernels.end() ? nullptr : &found->second;
}

std::int64_t wrapped_around(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::b8: return value != 0 ? 1 : 0;
    case DType::i8: return static_cast<std::int8_t>(value);
    case DType::u8: return static_cast<std::uint8_t>(value);
    case DType::i32: return static_cast<std::int32_t>(value);
    case DType::i64:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: break;
  }
  return value;
}

std::int64_t saturated(DType dtype, double value) {
  if (dtype != DType::i64) return static_cast<std::int64_t>(rounded(dtype, value));
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value <= -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

/// Error bound of every function of the C library, in ulp.
constexpr double kFunctionUlps = 4;

double unit(DType dtype) { return std::ldexp(1.0, -mantissa_bits(dtype)); }

bool adds(Function op) {
  return among(op,
               {Function::add, Function::sub, Function::neg, Function::addmm, Function::join_sum});
}

}  // namespace

Scalar Scalar::of(DType dtype, double value) {
  Scalar out;
  out.dtype = dtype;
  if (is_float(dtype))
    out.real = rounded(dtype, value);
  else
    out.whole = dtype == DType::b8 ? (value != 0 ? 1 : 0) : saturated(dtype, value);
  return out;
}

std::string Scalar::print() const {
  if (dtype == DType::b8) return whole != 0 ? "true" : "false";
  if (!is_float(dtype)) return fmt::format("{}", whole);
  if (std::isnan(real)) return "NaN";
  return dtype == DType::f64 ? fmt::format("{}", real)
                             : fmt::format("{}", static_cast<float>(real));
}

bool same_bits(const Scalar& a, const Scalar& b) {
  if (!is_float(a.dtype) || !is_float(b.dtype)) return a.whole == b.whole;
  if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
  return a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
}

bool alike(const Scalar& a, const Scalar& b) {
  const double x = a.number(), y = b.number();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

std::optional<Machine::Result> Machine::run(TermId term) {
  auto out = number(term);
  if (!out) return std::nullopt;
  if (mode_ == Mode::granted && is_sum(term)) out = rounded_sum(*out, terms_[term].dtype);
  return Result{out->scalar, out->error, out->underflow};
}

// ---- indices

std::optional<std::int64_t> Machine::index(Ix at) {
  return terms_.integers().evaluate(
      at, [&](const Integers::Unknown& unknown) -> std::optional<std::int64_t> {
        using Kind = Integers::Unknown::Kind;
        if (unknown.kind == Kind::value) {
          const auto held = number(TermId(std::size_t{unknown.number}));
          return held ? std::optional(held->scalar.whole) : std::nullopt;
        }
        if (unknown.kind == Kind::variable) {
          const auto bound = bound_.find(unknown.number);
          if (bound != bound_.end()) return bound->second;
          if (unknown.number < kAxisLevel) return std::nullopt;
        }
        return inputs_.size(unknown);
      });
}

std::optional<std::vector<std::int64_t>> Machine::places(const Term& term) {
  std::vector<std::int64_t> out;
  for (Ix at : term.at) {
    const auto place = index(at);
    if (!place) return std::nullopt;
    out.push_back(*place);
  }
  return out;
}

/// Returns the levels of sums around it that it depends on.
const std::vector<std::uint32_t>& Machine::bound_levels(TermId id) {
  const auto known = levels_.find(id);
  if (known != levels_.end()) return known->second;
  const Term term = terms_[id];
  std::set<std::uint32_t> levels, values;
  for (TermId arg : term.args) {
    const auto& of_arg = bound_levels(arg);
    levels.insert(of_arg.begin(), of_arg.end());
  }
  if (term.kind == Term::Kind::reduce) levels.erase(term.level);
  for (Ix at : term.at) {
    terms_.integers().collect_levels(at, levels);
    terms_.integers().collect_values(at, values);
  }
  for (std::uint32_t value : values) {
    const auto& of_value = bound_levels(TermId(std::size_t{value}));
    levels.insert(of_value.begin(), of_value.end());
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t level : levels)
    if (level < kAxisLevel) out.push_back(level);
  return levels_.emplace(id, std::move(out)).first->second;
}

// ---- terms

std::optional<Machine::Number> Machine::number(TermId id) {
  std::vector<std::int64_t> bound;
  for (std::uint32_t level : bound_levels(id)) {
    const auto value = bound_.find(level);
    if (value == bound_.end()) return std::nullopt;
    bound.push_back(value->second);
  }
  std::pair key(id, std::move(bound));
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (++steps_ > kMostEvaluated) return std::nullopt;
  auto out = made(id);
  if (!out) return std::nullopt;
  known_.emplace(std::move(key), *out);
  return out;
}

std::optional<Machine::Number> Machine::made(TermId id) {
  const Term term = terms_[id];
  Number out;
  const auto given = [&](const std::optional<Scalar>& scalar) -> std::optional<Number> {
    if (!scalar) return std::nullopt;
    out.scalar = *scalar;
    return out;
  };
  switch (term.kind) {
    case Term::Kind::number: {
      const bool real = mode_ == Mode::reals && is_float(term.dtype);
      out.scalar = Scalar::of(real ? DType::f64 : term.dtype, term.number);
      if (std::rint(term.number) != term.number)
        out.error = kConstantRounding * std::abs(term.number);
      return out;
    }
    case Term::Kind::index: {
      const auto at = index(term.at[0]);
      if (!at) return std::nullopt;
      out.scalar = Scalar::of(term.dtype, static_cast<double>(*at));
      if (!is_float(term.dtype)) out.scalar.whole = wrapped_around(term.dtype, *at);
      return out;
    }
    case Term::Kind::read:
    case Term::Kind::opaque: {
      const auto at = places(term);
      if (!at) return std::nullopt;
      return given(term.kind == Term::Kind::read ? inputs_.read(id, *at) : inputs_.opaque(id, *at));
    }
    case Term::Kind::call: return call(id);
    case Term::Kind::reduce: return reduce(term);
    case Term::Kind::lambda: break;
  }
  return std::nullopt;
}

bool Machine::is_sum(TermId id) const {
  const Term& term = terms_[id];
  if (!is_float(term.dtype)) return false;
  if (term.kind == Term::Kind::reduce)
    return among(term.function, {Function::sum, Function::dot, Function::ranks, Function::mean});
  return term.kind == Term::Kind::call && adds(term.function);
}

Machine::Number Machine::rounded_sum(const Number& sum, DType dtype) const {
  Number out = sum;
  out.scalar.dtype = mode_ == Mode::reals ? DType::f64 : dtype;
  out.scalar.real = rounded(out.scalar.dtype, static_cast<double>(sum.wide));
  return out;
}

/// Evaluates a sum in `granted` mode: partial sums have unlimited range.
std::optional<Machine::Number> Machine::sum_of_terms(const Term& term) {
  Number out;
  out.scalar.dtype = term.dtype;
  long double sizes = 0;
  for (std::size_t i = 0; i < term.args.size(); ++i) {
    const auto x = number(term.args[i]);
    if (!x) return std::nullopt;
    const long double sign =
        term.function == Function::neg || (term.function == Function::sub && i == 1) ? -1 : 1;
    const bool one_sum = is_sum(term.args[i]) && terms_[term.args[i]].dtype == term.dtype;
    Number part = is_sum(term.args[i]) ? rounded_sum(*x, terms_[term.args[i]].dtype) : *x;
    const long double value = one_sum ? x->wide : static_cast<long double>(part.scalar.number());
    out.wide += sign * value;
    sizes += std::abs(value);
    out.error += x->error;
    out.underflow += x->underflow;
  }
  out.error += 2 * unit(term.dtype) * static_cast<double>(sizes);
  return out;
}

std::optional<Machine::Number> Machine::call(TermId id) {
  const Term term = terms_[id];
  if (mode_ == Mode::granted && is_sum(id)) return sum_of_terms(term);
  std::vector<Number> x;
  std::vector<bool> literal;
  for (TermId arg : term.args) {
    auto value = number(arg);
    if (!value) return std::nullopt;
    if (mode_ == Mode::granted && is_sum(arg)) value = rounded_sum(*value, terms_[arg].dtype);
    x.push_back(*value);
    literal.push_back(terms_[arg].kind == Term::Kind::number);
  }
  const bool real = mode_ == Mode::reals && is_float(term.dtype);
  if (const double most = saturation(term.dtype);
      real && term.function == Function::cast && most > 0)
    x[0].scalar = Scalar::of(DType::f64, std::clamp(x[0].scalar.number(), -most, most));
  return applied(term.function, real ? DType::f64 : term.dtype, x, literal);
}

namespace {

/// Returns true if the common dtype of the operands from `first` on is f64; a literal adopts
/// another float dtype.
template <class Numbers>
bool computes_in_double(const Numbers& x, const std::vector<bool>& literal, std::size_t first) {
  bool strong = false, doubles = false;
  for (std::size_t i = first; i < x.size(); ++i)
    strong = strong || (is_float(x[i].scalar.dtype) && !literal[i]);
  for (std::size_t i = first; i < x.size(); ++i)
    doubles = doubles || (x[i].scalar.dtype == DType::f64 && (!literal[i] || !strong));
  return doubles;
}

/// Returns the largest distance of the results at the ends of the operands' intervals from the
/// computed result. `part` is the half of an interval, `at` their centers.
template <class Numbers, class Part, class Distance>
double spread(const Numbers& x, Part part, const std::vector<double>& at,
              const Distance& distance) {
  double most = 0;
  std::vector<std::size_t> loose;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i].*part > 0) loose.push_back(i);
  for (std::size_t corner = 0; !loose.empty() && corner < (std::size_t{1} << loose.size());
       ++corner) {
    std::vector<double> end = at;
    for (std::size_t k = 0; k < loose.size(); ++k)
      end[loose[k]] += ((corner >> k) & 1 ? -1 : 1) * (x[loose[k]].*part);
    double far = distance(end);
    if (std::isnan(far)) far = std::numeric_limits<double>::infinity();
    most = std::max(most, far);
  }
  return most;
}

}  // namespace

/// Stores the result of an op on whole numbers. `parity`: a boolean is the lowest bit.
Machine::Number Machine::of_whole(std::int64_t value, DType dtype, bool parity,
                                  const std::vector<Number>& x) {
  Number out;
  out.scalar.dtype = dtype;
  if (is_float(dtype))
    out.scalar.real = rounded(dtype, static_cast<double>(value));
  else
    out.scalar.whole = parity ? value & 1 : wrapped_around(dtype, value);
  for (const Number& part : x)
    if (part.error > 0) out.error = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) out.error += unit(dtype) * std::abs(out.scalar.real);
  return out;
}

/// Evaluates one op and rounds once.
std::optional<Machine::Number> Machine::applied(Function named, DType dtype,
                                                const std::vector<Number>& x,
                                                const std::vector<bool>& literal) {
  const Function op = among(named, {Function::addmm, Function::join_sum}) ? Function::add
                      : named == Function::join_product                   ? Function::mul
                                                                          : named;
  Number out;
  out.scalar.dtype = dtype;
  const auto stored = [&](double value) {
    if (!is_float(dtype))
      out.scalar.whole = dtype == DType::b8 ? value != 0 : saturated(dtype, value);
    else
      out.scalar.real = rounded(dtype, value);
  };
  const bool is_cast = op == Function::cast;
  const Kernel* kernel = is_cast ? nullptr : kernel_of(op);
  if (!is_cast && (kernel == nullptr || kernel->operands != x.size())) return std::nullopt;
  const std::size_t first = op == Function::select ? 1 : 0;
  const bool floats = std::any_of(x.begin() + static_cast<std::ptrdiff_t>(first), x.end(),
                                  [](const Number& part) { return is_float(part.scalar.dtype); });
  double center = 0, ulps = 1;
  const auto in_double = [&](const std::vector<double>& at) {
    return is_cast ? at[0] : kernel->in_double(at.data());
  };
  std::vector<double> at;
  for (const Number& part : x) at.push_back(part.scalar.number());
  if (!floats && (is_cast || kernel->in_whole != nullptr)) {
    std::vector<std::int64_t> whole;
    for (const Number& part : x) whole.push_back(part.scalar.whole);
    const std::int64_t value = is_cast ? whole[0] : kernel->in_whole(whole.data());
    const bool parity = dtype == DType::b8 && kernel != nullptr && kernel->in_float == nullptr;
    return of_whole(value, dtype, parity, x);
  }
  if (!is_cast && kernel->in_double == nullptr) return std::nullopt;
  center = in_double(at);
  if (is_cast || computes_in_double(x, literal, first)) {
    stored(center);
  } else {
    std::vector<float> narrow(at.begin(), at.end());
    stored(static_cast<double>(kernel->in_float(narrow.data())));
  }
  if (!is_cast && kernel->in_whole == nullptr && op != Function::sqrt) ulps = kFunctionUlps;
  const auto distance = [&](const std::vector<double>& end) {
    if (is_cast && !is_float(dtype))
      return std::abs(Scalar::of(dtype, end[0]).number() - Scalar::of(dtype, center).number());
    return std::abs(in_double(end) - center);
  };
  if (decided_ && dtype == DType::b8) return out;
  out.error = spread(x, &Number::error, at, distance);
  out.underflow = spread(x, &Number::underflow, at, distance);
  if (!is_float(dtype)) return out;
  const double value = std::abs(out.scalar.real);
  const bool kept = among(op, {Function::neg, Function::abs, Function::maximum, Function::minimum,
                               Function::select}) ||
                    out.scalar.real == center;
  if (!kept && std::isfinite(value)) {
    out.error += 2 * ulps * unit(dtype) * value;
    if (value < std::ldexp(1.0, pw::format_of(dtype).smallest)) out.underflow += smallest_of(dtype);
  }
  return out;
}

// ---- reductions

std::optional<Machine::Number> Machine::reduce(const Term& term) {
  const auto extent = index(term.at[0]);
  if (!extent || *extent < 0 || *extent > kMostAddends) return std::nullopt;
  const bool sum = among(term.function, {Function::sum, Function::dot, Function::ranks});
  const auto before = bound_.find(term.level);
  if (before != bound_.end()) return std::nullopt;
  std::optional<Number> out;
  if (sum && !is_float(term.dtype))
    out = whole_sum(term, *extent);
  else if (sum || (term.function == Function::mean && is_float(term.dtype)))
    out = float_sum(term, *extent);
  else
    out = fold(term, *extent);
  bound_.erase(term.level);
  return out;
}

std::optional<Machine::Number> Machine::whole_sum(const Term& term, std::int64_t extent) {
  Number out;
  out.scalar.dtype = term.dtype;
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < extent; ++i) {
    bound_[term.level] = i;
    std::uint64_t product = 1;
    for (TermId arg : term.args) {
      const auto x = number(arg);
      if (!x || is_float(x->scalar.dtype)) return std::nullopt;
      product *= static_cast<std::uint64_t>(x->scalar.whole);
    }
    sum += product;
  }
  out.scalar.whole = wrapped_around(term.dtype, static_cast<std::int64_t>(sum));
  return out;
}

/// Evaluates a matmul: products are rounded, and summed sequentially in f32 if the dtype is
/// narrower.
std::optional<Machine::Number> Machine::float_sum(const Term& term, std::int64_t extent) {
  const DType added = mode_ == Mode::reals || term.dtype == DType::f64 ? DType::f64 : DType::f32;
  Number out;
  out.scalar.dtype = mode_ == Mode::reals ? DType::f64 : term.dtype;
  double sum = 0;
  long double sizes = 0;
  for (std::int64_t i = 0; i < extent; ++i) {
    bound_[term.level] = i;
    std::vector<Number> x;
    for (TermId arg : term.args) {
      auto value = number(arg);
      if (!value) return std::nullopt;
      const bool part = mode_ == Mode::granted && is_sum(arg);
      const bool one_sum = part && term.args.size() == 1 && terms_[arg].dtype == term.dtype;
      if (part && !one_sum) value = rounded_sum(*value, terms_[arg].dtype);
      if (!one_sum) value->wide = static_cast<long double>(value->scalar.number());
      x.push_back(*value);
    }
    long double product = x[0].wide;
    double error = x[0].error, underflow = x[0].underflow;
    if (x.size() == 2) {
      const double a = std::abs(x[0].scalar.number()), b = std::abs(x[1].scalar.number());
      product = rounded(added, x[0].scalar.number() * x[1].scalar.number());
      error = a * x[1].error + b * x[0].error + x[0].error * x[1].error;
      underflow = a * x[1].underflow + b * x[0].underflow + smallest_of(added);
    }
    sum = rounded(added, sum + static_cast<double>(product));
    out.wide += product;
    sizes += std::abs(product);
    out.error += error;
    out.underflow += underflow;
  }
  const auto count = static_cast<double>(extent);
  if (mode_ != Mode::granted && std::isfinite(sum)) sizes = std::max<long double>(sizes, sum);
  out.error += (count + 1) * 2 * unit(added) * static_cast<double>(sizes);
  if (term.function == Function::mean) {
    sum /= count;
    out.wide /= static_cast<long double>(extent);
    out.error /= count;
    out.underflow = out.underflow / count + smallest_of(added);
  }
  out.error += 2 * unit(out.scalar.dtype) * static_cast<double>(std::abs(out.wide));
  out.scalar.real = rounded(out.scalar.dtype, sum);
  return out;
}

/// Evaluates maxima, minima, and products sequentially.
std::optional<Machine::Number> Machine::fold(const Term& term, std::int64_t extent) {
  const Function op = term.function == Function::amax   ? Function::maximum
                      : term.function == Function::amin ? Function::minimum
                      : term.function == Function::prod ? Function::mul
                                                        : Function::none;
  if (op == Function::none || extent == 0) return std::nullopt;
  const bool real = mode_ == Mode::reals && is_float(term.dtype);
  const DType dtype = real ? DType::f64 : term.dtype;
  std::optional<Number> out;
  for (std::int64_t i = 0; i < extent; ++i) {
    bound_[term.level] = i;
    auto x = number(term.args[0]);
    if (!x) return std::nullopt;
    if (mode_ == Mode::granted && is_sum(term.args[0]))
      x = rounded_sum(*x, terms_[term.args[0]].dtype);
    out = out ? applied(op, dtype, {*out, *x}, {false, false}) : x;
    if (!out) return std::nullopt;
  }
  return out;
}

namespace {

std::optional<Scalar> evaluated(const Terms& terms, TermId term, Machine::Mode mode,
                                const std::map<TermId, Scalar>& inputs) {
  Machine::Inputs given;
  given.read = [&](TermId read, const std::vector<std::int64_t>&) -> std::optional<Scalar> {
    const auto found = inputs.find(read);
    if (found == inputs.end() && mode == Machine::Mode::strict) return std::nullopt;
    Scalar out = found == inputs.end() ? Scalar::of(terms[read].dtype, 1) : found->second;
    if (is_float(out.dtype) && mode == Machine::Mode::reals) out.dtype = DType::f64;
    return out;
  };
  given.size = [](const Integers::Unknown&) { return std::optional<std::int64_t>(0); };
  given.opaque = [](TermId, const std::vector<std::int64_t>&) { return std::optional<Scalar>(); };
  const auto out = Machine(terms, std::move(given), mode).run(term);
  return out ? std::optional(out->value) : std::nullopt;
}

}  // namespace

std::optional<Scalar> evaluate_strictly(const Terms& terms, TermId term,
                                        const std::map<TermId, Scalar>& inputs) {
  return evaluated(terms, term, Machine::Mode::strict, inputs);
}

std::optional<Scalar> evaluate(const Terms& terms, TermId term,
                               const std::map<TermId, Scalar>& inputs) {
  return evaluated(terms, term, Machine::Mode::reals, inputs);
}

}  // namespace pw::proof
