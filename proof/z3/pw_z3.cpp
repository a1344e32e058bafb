// The implementation of libpw_z3.so: translates queries to Z3's theories of bit vectors, floating
// point, and nonlinear integers. Only `unsat` is a proof; a query beyond the effort limit is
// `unknown`.
// Soundness depends on the encoding: a node whose exact semantics has no counterpart in Z3 throws
// Unsupported, and the query is unknown. Effort is counted by Z3's rlimit rather than by time, so
// that answers do not depend on the machine.
#include "proof/z3/pw_z3.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include <z3++.h>

namespace pw::proof {

namespace {

constexpr unsigned kEffort = 200000;        // of a query about integers
constexpr unsigned kFloatEffort = 2000000;  // of a query about floats

/// Thrown for an op or dtype without an encoding: fp8, fmod of floats, and integers that round
/// twice.
struct Unsupported {};

/// Duplicated because this library does not link the project.
bool is_whole(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8;
}

unsigned bits_of(DType dtype) { return dtype == DType::i64 ? 64 : dtype == DType::i32 ? 32 : 8; }

/// The meaning of scalar nodes in IEEE arithmetic and modulo 2^k: bf16 and f16 are computed in f32
/// and rounded once.
class Floats {
 public:
  Floats(z3::context& context, const FloatQuestion& question) : c_(context), question_(question) {
    c_.set_rounding_mode(z3::RNE);
    for (const FloatNode& node : question.nodes) values_.push_back(of(node));
  }
  [[nodiscard]] const z3::expr& value(std::size_t node) const { return values_[node]; }
  [[nodiscard]] const std::map<std::string, z3::expr>& inputs() const { return inputs_; }

 private:
  z3::sort sort(DType dtype) {
    switch (dtype) {
      case DType::f16: return c_.fpa_sort(5, 11);
      case DType::bf16: return c_.fpa_sort(8, 8);
      case DType::f32: return c_.fpa_sort(8, 24);
      case DType::f64: return c_.fpa_sort(11, 53);
      case DType::b8: return c_.bool_sort();
      case DType::i8:
      case DType::i32:
      case DType::i64:
      case DType::u8: return c_.bv_sort(bits_of(dtype));
      case DType::f8e4m3:
      case DType::f8e5m2: break;
    }
    throw Unsupported{};
  }
  // The interpreter computes f16 and bf16 in f32 and rounds once to the result's dtype. The double
  // rounding is part of the semantics, so it is encoded as well.
  static DType computed_in(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
  }
  // Between floats only; rounds to nearest even.
  z3::expr converted(const z3::expr& x, DType to) {
    const z3::sort target = sort(to);
    if (z3::eq(x.get_sort(), target)) return x;
    if (x.is_bool()) {
      if (to == DType::b8) return x;
      return z3::ite(x, number(1, to), number(0, to));
    }
    if (to == DType::b8 || x.is_bv() || is_whole(to)) throw Unsupported{};
    return z3::fpa_to_fpa(x, target);
  }
  /// Converts an integer or boolean to a bit vector of this width.
  z3::expr resized(const z3::expr& x, DType from, unsigned bits) {
    if (x.is_bool()) return z3::ite(x, c_.bv_val(1, bits), c_.bv_val(0, bits));
    if (!x.is_bv()) throw Unsupported{};
    const unsigned own = x.get_sort().bv_size();
    if (own == bits) return x;
    if (own > bits) return x.extract(bits - 1, 0);
    return from == DType::u8 ? z3::zext(x, bits - own) : z3::sext(x, bits - own);
  }
  z3::expr to_float(const z3::expr& x, DType from, DType to) {
    if (!x.is_bv()) return converted(x, to);
    if (from == DType::i64 && to != DType::f64) throw Unsupported{};  // which rounds twice
    return from == DType::u8 ? z3::ubv_to_fpa(x, sort(to)) : z3::sbv_to_fpa(x, sort(to));
  }
  // A literal is rounded to its dtype, as the interpreter stores it.
  z3::expr number(double value, DType dtype) {
    if (dtype == DType::b8) return c_.bool_val(value != 0);
    return z3::fpa_to_fpa(c_.fpa_val(value), sort(dtype));
  }

  /// An integer literal that is compared with a float. Up to 256, every float dtype holds it.
  z3::expr exact_literal(const FloatNode& node) {
    if (node.kind != FloatNode::Kind::number || std::abs(node.number) > 256) throw Unsupported{};
    return number(node.number, DType::f64);
  }

  // Inputs are free constants. Two inputs of one name are one constant, so the caller makes names
  // unique.
  z3::expr of(const FloatNode& node) {
    if (node.kind == FloatNode::Kind::input) {
      const z3::expr input = c_.constant(node.name.c_str(), sort(node.dtype));
      inputs_.emplace(node.name, input);
      return input;
    }
    if (node.kind == FloatNode::Kind::number) {
      if (!is_whole(node.dtype)) return number(node.number, node.dtype);
      // Integers beyond 2^53 are not exact in the double that holds them.
      const double most =
          std::min(std::ldexp(1.0, static_cast<int>(bits_of(node.dtype)) - 1), 0x1p53);
      const bool natural = node.dtype == DType::u8;
      if (std::rint(node.number) != node.number || node.number >= (natural ? 256 : most) ||
          node.number < (natural ? 0 : -most))
        throw Unsupported{};
      return c_.bv_val(static_cast<std::int64_t>(node.number), bits_of(node.dtype));
    }
    std::vector<z3::expr> x;
    std::vector<DType> from;
    bool integers = false, floats = false;
    for (std::size_t i : node.operands) {
      x.push_back(values_[i]);
      from.push_back(question_.nodes[i].dtype);
      integers = integers || x.back().is_bv();
      floats = floats || x.back().is_fpa();
    }
    if (is_whole(node.dtype)) return whole(node, x, from);
    if (integers && floats && node.dtype == DType::b8) {
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i].is_bv()) x[i] = exact_literal(question_.nodes[node.operands[i]]);
      return truth(node, x);
    }
    if (integers && node.dtype == DType::b8) return order(node, x, from);
    if (integers && !(node.function == Function::cast || floats)) throw Unsupported{};
    if (integers) {
      if (node.function == Function::cast) return to_float(x[0], from[0], node.dtype);
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i].is_bv()) x[i] = to_float(x[i], from[i], computed_in(node.dtype));
    }
    return node.dtype == DType::b8 ? truth(node, x) : arithmetic(node, x);
  }

  /// Computes integers in 64 bits and wraps on store; for a single dtype its own bits suffice.
  z3::expr whole(const FloatNode& node, const std::vector<z3::expr>& x,
                 const std::vector<DType>& from) {
    const unsigned bits = bits_of(node.dtype);
    if (node.function == Function::cast) return resized(x[0], from[0], bits);
    if (node.function == Function::select) {
      if (!x[0].is_bool()) throw Unsupported{};
      return z3::ite(x[0], resized(x[1], from[1], bits), resized(x[2], from[2], bits));
    }
    // For ring operations the low bits of a result depend on the low bits of the operands only.
    // Order and division need all 64 bits if dtypes differ.
    const bool ring =
        among(node.function,
              {Function::add, Function::sub, Function::mul, Function::neg, Function::bitwise_and,
               Function::bitwise_or, Function::bitwise_xor, Function::bitwise_not});
    bool one_dtype = true;
    for (DType dtype : from) one_dtype = one_dtype && dtype == node.dtype;
    const unsigned in = ring || one_dtype ? bits : 64;
    std::vector<z3::expr> y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(resized(x[i], from[i], in));
    const bool natural = one_dtype && node.dtype == DType::u8;
    const z3::expr out = ring ? in_ring(node.function, y) : ordered(node.function, y, natural, in);
    return resized(out, DType::i64, bits);
  }
  // Bit vectors wrap around, as the machine does.
  static z3::expr in_ring(Function op, const std::vector<z3::expr>& y) {
    if (op == Function::add) return y[0] + y[1];
    if (op == Function::sub) return y[0] - y[1];
    if (op == Function::mul) return y[0] * y[1];
    if (op == Function::neg) return -y[0];
    if (op == Function::bitwise_and) return y[0] & y[1];
    if (op == Function::bitwise_or) return y[0] | y[1];
    if (op == Function::bitwise_xor) return y[0] ^ y[1];
    return ~y[0];
  }
  static z3::expr below(const z3::expr& a, const z3::expr& b, bool natural) {
    return natural ? z3::ult(a, b) : z3::slt(a, b);
  }
  // `natural` selects unsigned comparison and division, for u8. Division by 0 gives 0 here, where
  // Z3 defines another value. `remainder` corrects the truncated rest to the sign of the divisor.
  z3::expr ordered(Function op, const std::vector<z3::expr>& y, bool natural, unsigned bits) {
    const z3::expr zero = c_.bv_val(0, bits);
    if (op == Function::maximum) return z3::ite(below(y[1], y[0], natural), y[0], y[1]);
    if (op == Function::minimum) return z3::ite(below(y[0], y[1], natural), y[0], y[1]);
    if (op == Function::abs) return natural ? y[0] : z3::ite(y[0] < zero, -y[0], y[0]);
    // A count below 0 or beyond the width shifts out all bits, in Z3 as well.
    if (op == Function::shift_left) return z3::shl(y[0], y[1]);
    if (op == Function::shift_right) return natural ? z3::lshr(y[0], y[1]) : z3::ashr(y[0], y[1]);
    if (op == Function::div)
      return z3::ite(y[1] == zero, zero, natural ? z3::udiv(y[0], y[1]) : y[0] / y[1]);
    if (!among(op, {Function::fmod, Function::remainder})) throw Unsupported{};
    const z3::expr rest =
        z3::ite(y[1] == zero, zero, natural ? z3::urem(y[0], y[1]) : z3::srem(y[0], y[1]));
    if (op == Function::fmod || natural) return rest;
    return z3::ite(rest != zero && (rest < zero) != (y[1] < zero), rest + y[1], rest);
  }
  /// Translates a comparison of integers or booleans.
  z3::expr order(const FloatNode& node, const std::vector<z3::expr>& x,
                 const std::vector<DType>& from) {
    if (node.function == Function::cast) return x[0] != c_.bv_val(0, x[0].get_sort().bv_size());
    if (x.size() != 2) throw Unsupported{};
    const bool one_dtype = from[0] == from[1];
    const unsigned bits = one_dtype ? bits_of(from[0]) : 64;
    const z3::expr a = resized(x[0], from[0], bits), b = resized(x[1], from[1], bits);
    const bool natural = one_dtype && from[0] == DType::u8;
    if (node.function == Function::lt) return below(a, b, natural);
    if (node.function == Function::le) return !below(b, a, natural);
    if (node.function == Function::eq) return a == b;
    if (node.function == Function::ne) return a != b;
    throw Unsupported{};
  }

  // Operands of two dtypes are compared in f64, which holds every value of the narrower floats.
  z3::expr truth(const FloatNode& node, std::vector<z3::expr>& x) {
    if (node.function == Function::bitwise_not) return !x[0];
    if (node.function == Function::cast && x[0].is_fpa()) return !x[0].mk_is_zero();
    if (x.size() == 2 && x[0].is_bool() && x[1].is_bool()) {
      if (node.function == Function::bitwise_and) return x[0] && x[1];
      if (node.function == Function::bitwise_or) return x[0] || x[1];
      if (among(node.function, {Function::bitwise_xor, Function::ne})) return x[0] != x[1];
      if (node.function == Function::eq) return x[0] == x[1];
    }
    if (node.function == Function::select && x[0].is_bool() && x[1].is_bool() && x[2].is_bool())
      return z3::ite(x[0], x[1], x[2]);
    if (x.size() != 2 || x[0].is_bool() || x[1].is_bool()) throw Unsupported{};
    const bool one_dtype = z3::eq(x[0].get_sort(), x[1].get_sort());
    const z3::expr a = one_dtype ? x[0] : converted(x[0], DType::f64);
    const z3::expr b = one_dtype ? x[1] : converted(x[1], DType::f64);
    if (node.function == Function::lt) return a < b;
    if (node.function == Function::le) return a <= b;
    if (node.function == Function::eq) return z3::fp_eq(a, b);
    if (node.function == Function::ne) return !z3::fp_eq(a, b);
    throw Unsupported{};
  }

  z3::expr arithmetic(const FloatNode& node, std::vector<z3::expr>& x) {
    if (node.function == Function::cast) return converted(x[0], node.dtype);
    if (node.function == Function::select)
      return z3::ite(x[0], converted(x[1], node.dtype), converted(x[2], node.dtype));
    const DType in = computed_in(node.dtype);
    for (z3::expr& operand : x) operand = converted(operand, in);
    return converted(in_full(node, x, in), node.dtype);
  }

  // fp.max of SMT-LIB leaves zeros of different signs open, so extremes are written out as in the
  // interpreter, with NaN first. Functions such as exp are uninterpreted: equal arguments give
  // equal results, and nothing else is known.
  z3::expr in_full(const FloatNode& node, const std::vector<z3::expr>& x, DType in) {
    if (node.function == Function::add) return x[0] + x[1];
    if (node.function == Function::mul) return x[0] * x[1];
    if (node.function == Function::div) return x[0] / x[1];
    if (node.function == Function::neg) return -x[0];
    if (node.function == Function::abs) return z3::abs(x[0]);
    if (node.function == Function::sqrt) return z3::sqrt(x[0], c_.fpa_rounding_mode());
    if (among(node.function, {Function::maximum, Function::minimum})) {
      const z3::expr nan = c_.fpa_nan(sort(in));
      const z3::expr first = node.function == Function::maximum ? x[0] > x[1] : x[0] < x[1];
      return z3::ite(x[0].mk_is_nan() || x[1].mk_is_nan(), nan, z3::ite(first, x[0], x[1]));
    }
    if (x.size() == 1) {  // an uninterpreted function
      const z3::sort s = sort(in);
      const z3::func_decl f = c_.function(
          (std::string(name(node.function)) + std::to_string(static_cast<int>(in))).c_str(), s, s);
      return f(x[0]);
    }
    throw Unsupported{};
  }

  z3::context& c_;
  const FloatQuestion& question_;
  std::vector<z3::expr> values_;
  std::map<std::string, z3::expr> inputs_;
};

/// Prints a model's value as `verify` prints numbers: NaN, -0, inf, or the shortest distinguishing
/// digits.
/// Integers are printed as signed; the caller converts those of u8.
std::string written(z3::context& c, const z3::expr& value) {
  if (value.is_bv() && value.is_numeral()) {
    const unsigned unused = 64 - value.get_sort().bv_size();
    const std::uint64_t bits = value.get_numeral_uint64() << unused;
    return std::to_string(static_cast<std::int64_t>(bits) >> unused);
  }
  if (!value.is_fpa()) return value.to_string();
  if (Z3_fpa_is_numeral_nan(c, value)) return "NaN";
  const bool negative = Z3_fpa_is_numeral_negative(c, value);
  if (Z3_fpa_is_numeral_inf(c, value)) return negative ? "-inf" : "inf";
  if (Z3_fpa_is_numeral_zero(c, value)) return negative ? "-0" : "0";
  const z3::sort wide = c.fpa_sort(11, 53);
  const bool is_wide = z3::eq(value.get_sort(), wide);
  const z3::expr exact = is_wide ? value : z3::fpa_to_fpa(value, wide);
  const z3::expr bits = exact.mk_to_ieee_bv().simplify();
  if (!bits.is_numeral()) return value.to_string();
  const std::uint64_t image = bits.get_numeral_uint64();
  double number = 0;
  std::memcpy(&number, &image, sizeof number);
  char text[40];
  const auto end =
      is_wide ? std::to_chars(std::begin(text), std::end(text), number)
              : std::to_chars(std::begin(text), std::end(text), static_cast<float>(number));
  return {std::begin(text), end.ptr};
}

using ContextOwner = std::unique_ptr<_Z3_context, decltype(&Z3_del_context)>;

/// Makes a context. Throws std::bad_alloc if memory is short, where the constructor of z3::context
/// would pass a null context on to Z3 and crash.
ContextOwner make_context() {
  const std::unique_ptr<_Z3_config, decltype(&Z3_del_config)> config(Z3_mk_config(),
                                                                     &Z3_del_config);
  if (!config) throw std::bad_alloc();
  ContextOwner context(Z3_mk_context_rc(config.get()), &Z3_del_context);
  if (!context) throw std::bad_alloc();
  return context;
}

/// One context for all queries of one solver; each query has a solver and limits of its own.
class Z3 final : public SolverLibrary {
 public:
  // Z3 searches for integers that satisfy all facts and violate the goal; `unsat` proves the
  // implication. Nonlinear integer arithmetic is undecidable, so `unknown` is common.
  Answer implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal) override {
    try {
      z3::context& c = context_;
      std::map<std::string, z3::expr> unknowns;
      const auto term = [&](const SolverTerm& t) {
        z3::expr sum = c.int_val(0);
        for (const SolverTerm::Product& p : t.products) {
          z3::expr product = c.int_val(p.factor);
          for (const std::string& name : p.unknowns)
            product = product * unknowns.emplace(name, c.int_const(name.c_str())).first->second;
          sum = sum + product;
        }
        return sum;
      };
      z3::solver solver(c);
      z3::params params(c);
      params.set("rlimit", kEffort);
      solver.set(params);
      for (const SolverTerm& fact : facts) solver.add(term(fact) >= 0);
      solver.add(term(goal) < 0);
      const z3::check_result result = solver.check();
      if (result == z3::unknown) return Answer::unknown;
      return result == z3::unsat ? Answer::yes : Answer::no;
    } catch (const z3::exception&) {
      return Answer::unknown;
    }
  }

  // Searches for any difference first, then for one at finite inputs with nonzero results. If only
  // the second is impossible, three further queries classify the special values. Structural
  // inequality is meant: all NaN are one value in Z3, and the two zeros differ.
  FloatAnswer same_bits(const FloatQuestion& question) override {
    FloatAnswer answer;
    try {
      z3::context& c = context_;
      Floats floats(c, question);
      const z3::expr a = floats.value(question.left), b = floats.value(question.right);
      if (!z3::eq(a.get_sort(), b.get_sort())) return answer;
      z3::expr nan = c.bool_val(false), infinite = c.bool_val(false);
      for (const auto& [name, input] : floats.inputs()) {
        if (!input.is_fpa()) continue;
        nan = nan || input.mk_is_nan();
        infinite = infinite || input.mk_is_inf();
      }
      std::optional<z3::model> model;
      const auto some = [&](const z3::expr& where) {
        z3::solver solver(c);
        z3::params params(c);
        params.set("rlimit", kFloatEffort);
        solver.set(params);
        solver.add(where);
        const z3::check_result result = solver.check();
        if (result == z3::sat) model = solver.get_model();
        return result;
      };
      const auto show = [&] {
        for (const auto& [name, input] : floats.inputs())
          answer.element.emplace_back(name, written(c, model->eval(input, true)));
        answer.left = written(c, model->eval(a, true));
        answer.right = written(c, model->eval(b, true));
      };
      const z3::expr distinct = a != b;
      const z3::expr zeros = !a.is_fpa() ? c.bool_val(false) : a.mk_is_zero() && b.mk_is_zero();
      const z3::expr finite = !nan && !infinite;
      const z3::check_result all = some(distinct);
      if (all == z3::unsat) {
        answer.kind = FloatAnswer::Kind::same;
        return answer;
      }
      if (all == z3::unknown) return unanswered();
      const z3::check_result values = some(distinct && finite && !zeros);
      if (values == z3::unknown) return unanswered();
      if (values == z3::sat) {
        show();
        answer.kind = FloatAnswer::Kind::differs;
        return answer;
      }
      answer.kind = FloatAnswer::Kind::special;
      const auto for_some = [&](const z3::expr& where) {
        if (some(distinct && where) != z3::sat) return false;
        if (answer.element.empty()) show();  // the first kind is shown
        return true;
      };
      answer.infinity = for_some(!nan && infinite);
      answer.nan = for_some(nan);
      answer.zero_sign = for_some(finite && zeros);
      return answer;
    } catch (const Unsupported&) {
    } catch (const z3::exception&) {
      return unanswered();
    }
    return {};
  }

 private:
  static FloatAnswer unanswered() {
    FloatAnswer out;
    out.unanswered = true;
    return out;
  }
  ContextOwner owner_ = make_context();
  z3::scoped_context scoped_{owner_.get()};
  z3::context& context_ = scoped_();
};

}  // namespace
}  // namespace pw::proof

extern "C" pw::proof::SolverLibrary* pw_z3_solver(int version) {
  return version == pw::proof::kSolverVersion ? new pw::proof::Z3 : nullptr;
}
