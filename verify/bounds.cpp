// Running error analysis (Wilkinson 1963) of whole graphs: each value stores its exact elements and
// a bound on the error of each. Ops that move elements move their bounds. Pointwise ops are
// evaluated at the ends of their operands' intervals. Sums and products use the classical bound by
// the sum of the magnitudes of their terms. All other ops are run on perturbed operands.
#include "verify/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/interpreter/kernels.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "graph/build.hpp"
#include "tensor/numerics.hpp"
#include "verify/pointwise_bounds.hpp"

namespace pw {
namespace {

using P = Primitive;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

enum class StepKind : std::uint8_t { move, pointwise, sum, product, extreme, other };

StepKind kind_of(Primitive op) {
  const PrimitiveClass of = class_of(op);
  if (of == PrimitiveClass::layout || of == PrimitiveClass::source ||
      among(op, {P::embedding, P::index, P::all_gather, P::shard, P::upsample_nearest}))
    return StepKind::move;
  if (among(op, {P::sum, P::mean, P::cumsum, P::avg_pool, P::adaptive_avg_pool, P::upsample_linear,
                 P::all_reduce, P::reduce_scatter}))
    return StepKind::sum;
  if (of == PrimitiveClass::product || among(op, {P::prod, P::cumprod})) return StepKind::product;
  if (among(op, {P::amax, P::amin, P::sort, P::topk, P::max_pool})) return StepKind::extreme;
  return is_pointwise(op) ? StepKind::pointwise : StepKind::other;
}

/// The element type of an engine's accumulators.
DType accumulator_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Array array_of(const Numbers& numbers, const Extents& extents) {
  Array array = make_array(DType::f64, extents);
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<double*>(array.data));
  return array;
}

}  // namespace

/// A value of one rank. Empty vectors mean: no error, the magnitudes of `exact`, all elements
/// inside.
struct Traced {
  Array exact;
  Numbers error;
  Numbers sum;  ///< sum of the magnitudes of the element's terms
  std::vector<RangeState> reach;

  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(exact.count()); }
  [[nodiscard]] Numbers errors() const { return error.empty() ? Numbers(count(), 0) : error; }
  [[nodiscard]] Numbers magnitudes() const {
    Numbers out = elements_of<double>(exact);
    for (double& x : out) x = std::fabs(x);
    return out;
  }
  [[nodiscard]] Numbers sums() const { return sum.empty() ? magnitudes() : sum; }
  [[nodiscard]] Numbers reaches() const {
    Numbers out(count(), 0);
    for (std::size_t i = 0; i < reach.size(); ++i) out[i] = static_cast<double>(reach[i]);
    return out;
  }
  [[nodiscard]] bool plain() const { return error.empty() && sum.empty() && reach.empty(); }
};

namespace {

RangeState reach_of(double number) {
  return static_cast<RangeState>(static_cast<std::uint8_t>(number));
}

}  // namespace

double unit_of(DType dtype) {
  return is_float(dtype) ? std::ldexp(1.0, -format_of(dtype).mantissa - 1) : 0;
}
/// One evaluation of a program. Above the size of other classes for a reason: each primitive has an
/// error bound of its own, a few lines that read the bounds of its operands.
class BoundedRun {
 public:
  BoundedRun(const BoundedProgram& program, const RunContext& context, const BoundOptions& options,
             std::size_t ranks)
      : program_(program),
        graph_(program.graph_),
        context_(context),
        options_(options),
        values_(ranks, std::vector<Traced>(graph_.value_bound())) {}

  void bind(std::size_t rank, std::span<const TensorView> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].data != nullptr || inputs[i].count() == 0)
        values_[rank][graph_.inputs()[i].index].exact = pw::array_of(inputs[i]);
  }

  Status run() {
    for (const BoundedProgram::Step& step : program_.steps_) PW_TRY(run(step));
    return {};
  }

  [[nodiscard]] BoundedOutputs outputs(std::size_t rank) const {
    BoundedOutputs out;
    for (ValueId output : graph_.outputs()) {
      const Traced& value = values_[rank][output.index];
      BoundedTensor bounded{Tensor(DType::f64, value.exact.extents), value.errors(), value.reach};
      copy(value.exact, pw::array_of(bounded.exact.view()));
      bounded.reach.resize(value.count(), RangeState::inside);
      out.push_back(std::move(bounded));
    }
    return out;
  }

 private:
  using Operands = std::vector<std::vector<const Array*>>;  ///< by rank
  using Results = std::vector<std::vector<Array>>;          ///< by rank
  using ByRank = std::vector<std::vector<Numbers>>;         ///< of each operand or result

  /// Runs the step on these operands, in f64 or as the interpreter stores them.
  Result<Results> evaluate(const BoundedProgram::Step& step, const Operands& operands) const {
    std::vector<Call> calls;
    for (std::size_t rank = 0; rank < operands.size(); ++rank) {
      const Graph& graph = program_.unrounded_;
      Call call{graph, step.node, context_, operands[rank], {}, {}, &stored_as, {}, 0};
      for (std::size_t r = 0; r < graph_.result_count(step.node); ++r)
        call.extents.push_back(
            PW_TRY(extents_of(graph_, graph_.result(step.node, r), context_.symbols)));
      call.results.resize(call.extents.size());
      call.on_rank = static_cast<std::int64_t>(rank);
      calls.push_back(std::move(call));
    }
    if (step.collective != nullptr) PW_TRY(run_collective(step.collective, calls, group_in(step)));
    Results out;
    for (Call& call : calls) {
      if (step.kernel != nullptr) PW_TRY(step.kernel(call));
      out.push_back(std::move(call.results));
    }
    return out;
  }

  static DType stored_as(DType declared) { return is_float(declared) ? DType::f64 : declared; }

  [[nodiscard]] RankGroup group_in(const BoundedProgram::Step& step) const {
    const std::string* name = group_name(graph_, step.node);
    if (name == nullptr || context_.step == nullptr || context_.step->groups == nullptr)
      return step.group;
    const auto found = context_.step->groups->find(*name);
    return found == context_.step->groups->end() ? step.group : found->second;
  }

  [[nodiscard]] const Traced* operand(const BoundedProgram::Step& step, std::size_t rank,
                                      std::size_t i) const {
    const ValueId value = graph_.operand(step.node, i);
    return value.valid() ? &values_[rank][value.index] : nullptr;
  }
  [[nodiscard]] DType dtype_of(ValueId value) const {
    return graph_.context().types[graph_.type(value)].dtype;
  }
  /// Returns true if an operand contributes numbers to the result, unlike an index or a mask.
  [[nodiscard]] bool is_data(const BoundedProgram::Step& step, std::size_t i) const {
    const ValueId value = graph_.operand(step.node, i);
    if (!value.valid()) return false;
    const Primitive op = graph_.op_of(step.node).primitive;
    if (kind_of(op) == StepKind::move)
      return i == 0 || !among(op, {Primitive::embedding, Primitive::index});
    return is_float(dtype_of(value));
  }
  /// Returns true if an operand is a literal, which a step that gives this dtype converts to f32 or
  /// a narrower float.
  [[nodiscard]] bool converts_literal(const BoundedProgram::Step& step, std::size_t i,
                                      DType to) const {
    if (!is_float(to) || to == DType::f64) return false;
    const NodeId producer = graph_.producer(graph_.operand(step.node, i));
    return producer.valid() && graph_.op_of(producer).is_literal();
  }
  static void add_conversion(const Numbers& literals, Numbers& errors) {
    for (std::size_t k = 0; k < literals.size(); ++k)
      if (std::isfinite(literals[k]))
        errors[k] += std::fabs(literals[k] - static_cast<double>(static_cast<float>(literals[k])));
  }
  [[nodiscard]] bool of_integers(const BoundedProgram::Step& step) const {
    return graph_.operand_count(step.node) > 0 && graph_.operand(step.node, 0).valid() &&
           !is_float(dtype_of(graph_.operand(step.node, 0)));
  }

  /// Runs the step with other numbers for the operands that contribute numbers.
  template <class Of>
  Result<ByRank> apply(const BoundedProgram::Step& step, const Of& of) const {
    const std::size_t count = graph_.operand_count(step.node);
    std::vector<std::vector<Array>> arrays(values_.size(), std::vector<Array>(count));
    Operands operands(values_.size(), std::vector<const Array*>(count, nullptr));
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t i = 0; i < count; ++i) {
        const Traced* value = operand(step, rank, i);
        if (value == nullptr) continue;
        operands[rank][i] = &value->exact;
        if (!is_data(step, i)) continue;
        arrays[rank][i] = array_of(of(*value, i), value->exact.extents);
        operands[rank][i] = &arrays[rank][i];
      }
    const Results results = PW_TRY(evaluate(step, operands));
    ByRank out;
    for (const std::vector<Array>& of_rank : results) {
      std::vector<Numbers>& numbers = out.emplace_back();
      for (const Array& array : of_rank) numbers.push_back(elements_of<double>(array));
    }
    return out;
  }

  Status run(const BoundedProgram::Step& step) {
    Operands operands;
    bool plain = true;
    for (std::size_t rank = 0; rank < values_.size(); ++rank) {
      std::vector<const Array*>& of_rank = operands.emplace_back();
      for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i) {
        const Traced* value = operand(step, rank, i);
        of_rank.push_back(value == nullptr ? nullptr : &value->exact);
        plain = plain && (value == nullptr || value->plain());
      }
    }
    Results results = PW_TRY(evaluate(step, operands));
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t r = 0; r < results[rank].size(); ++r)
        values_[rank][graph_.result(step.node, r).index].exact = std::move(results[rank][r]);
    const StepKind kind = kind_of(graph_.op_of(step.node).primitive);
    if (of_integers(step) && kind != StepKind::move && kind != StepKind::pointwise)
      return integers(step);
    switch (kind) {
      case StepKind::move: return plain ? std::monostate{} : move(step);
      case StepKind::pointwise: pointwise(step); return {};
      case StepKind::sum: return sum(step);
      case StepKind::product: return product(step);
      case StepKind::extreme: return plain ? std::monostate{} : extreme(step);
      case StepKind::other: return disturbed(step);
    }
    return {};
  }

  [[nodiscard]] Traced& result(const BoundedProgram::Step& step, std::size_t rank, std::size_t r) {
    return values_[rank][graph_.result(step.node, r).index];
  }

  Status move(const BoundedProgram::Step& step) {
    const auto of = [&](const auto& take) {
      return apply(step, [&](const Traced& x, std::size_t) { return take(x); });
    };
    const ByRank errors = PW_TRY(of([](const Traced& x) { return x.errors(); })),
                 sums = PW_TRY(of([](const Traced& x) { return x.sums(); })),
                 reaches = PW_TRY(of([](const Traced& x) { return x.reaches(); }));
    each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
      y.error = errors[rank][r];
      y.sum = sums[rank][r];
      for (double reach : reaches[rank][r]) y.reach.push_back(reach_of(reach));
    });
    return {};
  }

  template <class Visit>
  void each_result(const BoundedProgram::Step& step, const Visit& visit) {
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t r = 0; r < graph_.result_count(step.node); ++r)
        visit(result(step, rank, r), rank, r);
  }

  /// The dtype whose range a step in this dtype may leave.
  [[nodiscard]] DType ranged(DType dtype) const {
    return options_.exact && !is_fp8(dtype) ? DType::f64 : dtype;
  }
  /// The relative rounding of a step that gives this dtype.
  [[nodiscard]] double unit(const BoundedProgram::Step& step, DType dtype) const {
    if (!is_float(dtype)) return 0;
    if (options_.exact && !is_fp8(dtype)) return unit_of(DType::f64);
    return step.output ? unit_of(dtype) : std::min(unit_of(dtype), options_.coarsest);
  }

  /// Integers are exact; the results of uncertain ones are unknown.
  Status integers(const BoundedProgram::Step& step) {
    PW_TRY(spread_reach(step, true));
    bool exact = true;
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i)
        if (const Traced* x = operand(step, rank, i))
          exact = exact && std::all_of(x->error.begin(), x->error.end(),
                                       [](double error) { return error == 0; });
    each_result(step, [&](Traced& y, std::size_t, std::size_t) {
      if (!exact) y.error.assign(y.count(), kInfinity);
    });
    return {};
  }

  void pointwise(const BoundedProgram::Step& step) {
    const DType to = dtype_of(graph_.result(step.node));
    std::vector<DType> from;
    for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i)
      from.push_back(dtype_of(graph_.operand(step.node, i)));
    const PointwiseStep p(graph_.op_of(step.node).primitive, from, to, unit(step, to),
                          options_.exact);
    for (std::size_t rank = 0; rank < values_.size(); ++rank) pointwise(step, p, rank);
  }

  void pointwise(const BoundedProgram::Step& step, const PointwiseStep& p, std::size_t rank) {
    Traced& y = result(step, rank, 0);
    const std::size_t operands = graph_.operand_count(step.node);
    std::vector<Numbers> exact, errors, sums;
    std::vector<const Traced*> values;
    std::vector<Extents> strides;
    const DType dtype = dtype_of(graph_.result(step.node));
    for (std::size_t i = 0; i < operands; ++i) {
      const Traced& x = *values.emplace_back(operand(step, rank, i));
      exact.push_back(elements_of<double>(x.exact));
      errors.push_back(x.errors());
      if (converts_literal(step, i, dtype)) add_conversion(exact[i], errors[i]);
      sums.push_back(x.sums());
      Array packed = x.exact;
      packed.strides = row_major(packed.extents);
      strides.push_back(broadcast_strides(packed, y.exact.extents));
    }
    strides.push_back(row_major(y.exact.extents));
    const Numbers results = elements_of<double>(y.exact);
    y.error.assign(results.size(), 0);
    y.sum.assign(results.size(), 0);
    y.reach.assign(results.size(), RangeState::inside);
    for_each_run(y.exact.extents, strides, std::int64_t{1} << 60, [&](const Run& run) {
      PointwiseElement e;
      for (std::int64_t k = 0; k < run.length; ++k) {
        for (std::size_t i = 0; i < operands; ++i) {
          const auto at = static_cast<std::size_t>(run.offsets[i] + k * run.steps[i]);
          const std::vector<RangeState>& reach = values[i]->reach;
          e.x[i] = exact[i][at];
          e.error[i] = errors[i][at];
          e.sum[i] = sums[i][at];
          e.reach[i] = reach.empty() ? RangeState::inside : reach[at];
        }
        const auto to = static_cast<std::size_t>(run.offsets[operands] + k * run.steps[operands]);
        e.result = results[to];
        p.bound(e);
        y.error[to] = e.bound;
        y.sum[to] = e.magnitude;
        y.reach[to] = e.reached;
      }
    });
  }

  /// Bounds a result that is a sum of terms: their magnitudes add up to `sum`, there are `terms` of
  /// them, and their own errors to `error`.
  void finish_sum(const BoundedProgram::Step& step, Traced& y, std::size_t r, const Numbers& error,
                  Numbers sum, const Numbers& terms, bool products) const {
    const DType dtype = dtype_of(graph_.result(step.node, r));
    const DType accumulator = accumulator_of(dtype);
    const double u = unit(step, dtype), inner = unit_of(options_.exact ? DType::f64 : accumulator);
    const double largest = format_of(ranged(dtype)).largest,
                 end = format_of(ranged(accumulator)).largest,
                 normal = std::ldexp(1.0, format_of(ranged(accumulator)).smallest),
                 smallest_result = std::ldexp(1.0, format_of(ranged(dtype)).smallest);
    const bool divides =
        among(graph_.op_of(step.node).primitive,
              {Primitive::mean, Primitive::avg_pool, Primitive::adaptive_avg_pool});
    const Numbers exact = elements_of<double>(y.exact);
    y.error.assign(exact.size(), 0);
    if (y.reach.empty()) y.reach.assign(exact.size(), RangeState::inside);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double size = std::fabs(exact[i]);
      const double steps = (std::max(terms[i], 1.0) + 1) * inner;
      double raw = error[i] + steps * sum[i] + (dtype == accumulator ? 0 : u * size);
      if (is_fp8(dtype)) raw += smallest_of(dtype) / 2;
      y.error[i] = known_error(exact[i], raw);
      const double total = divides ? sum[i] * terms[i] : sum[i];
      if (!(total + raw <= end && size + raw <= largest))
        y.reach[i] =
            std::max(y.reach[i], size + raw <= largest ? RangeState::inner : RangeState::partial);
      const bool vanishes = (sum[i] > 0 && sum[i] < normal) ||
                            (size > 0 && size < smallest_result && dtype != accumulator);
      if (products && vanishes) y.reach[i] = RangeState::left;
    }
    y.sum = std::move(sum);
  }

  /// The worst reach of the operands of each element; of products, over all elements.
  Status spread_reach(const BoundedProgram::Step& step, bool everywhere) {
    RangeState most = RangeState::inside;
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i)
        if (const Traced* x = operand(step, rank, i))
          most = std::max(most, everywhere ? consumed(step, *x, i) : worst(*x));
    if (most == RangeState::inside) return {};
    if (everywhere) {
      each_result(step,
                  [&](Traced& y, std::size_t, std::size_t) { y.reach.assign(y.count(), most); });
      return {};
    }
    for (const RangeState level : {RangeState::partial, RangeState::inner, RangeState::left}) {
      if (level > most) break;
      const ByRank part = PW_TRY(apply(step, [&](const Traced& x, std::size_t) {
        Numbers out(x.count(), 0);
        for (std::size_t i = 0; i < x.reach.size(); ++i) out[i] = x.reach[i] == level ? 1 : 0;
        return out;
      }));
      each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
        y.reach.resize(y.count(), RangeState::inside);
        for (std::size_t i = 0; i < y.reach.size(); ++i)
          if (part[rank][r][i] > 0) y.reach[i] = level;
      });
    }
    return {};
  }

  static RangeState worst(const Traced& x) {
    return x.reach.empty() ? RangeState::inside : *std::max_element(x.reach.begin(), x.reach.end());
  }
  /// Marks a sum beyond the range as having left it if an op other than a sum reads it.
  [[nodiscard]] RangeState consumed(const BoundedProgram::Step& step, const Traced& x,
                                    std::size_t i) const {
    RangeState most = worst(x);
    if (most != RangeState::partial) return most;
    const double largest = format_of(ranged(dtype_of(graph_.operand(step.node, i)))).largest;
    const Numbers sizes = x.magnitudes();
    for (std::size_t k = 0; k < x.reach.size(); ++k)
      if (x.reach[k] == RangeState::partial && !(sizes[k] <= largest)) return RangeState::left;
    return most;
  }

  Status sum(const BoundedProgram::Step& step) {
    PW_TRY(spread_reach(step, false));
    const ByRank errors =
                     PW_TRY(apply(step, [](const Traced& x, std::size_t) { return x.errors(); })),
                 sums = PW_TRY(apply(step, [](const Traced& x, std::size_t) { return x.sums(); }));
    each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
      finish_sum(step, y, r, errors[rank][r], sums[rank][r],
                 Numbers(y.count(), terms_of(step, rank, y)), false);
    });
    return {};
  }

  /// The largest number of terms in an element of a sum.
  [[nodiscard]] double terms_of(const BoundedProgram::Step& step, std::size_t rank,
                                const Traced& y) const {
    const Traced& x = *operand(step, rank, 0);
    if (step.collective != nullptr) return static_cast<double>(values_.size());
    const double all = static_cast<double>(x.count());
    return x.count() == y.count() ? all : all / std::max(1.0, static_cast<double>(y.count())) + 1;
  }

  Status product(const BoundedProgram::Step& step) {
    PW_TRY(spread_reach(step, true));
    const ByRank least = PW_TRY(
                     apply(step, [](const Traced& x, std::size_t) { return x.magnitudes(); })),
                 most = PW_TRY(apply(step,
                                     [](const Traced& x, std::size_t) {
                                       Numbers out = x.magnitudes();
                                       for (std::size_t i = 0; i < x.error.size(); ++i)
                                         out[i] += x.error[i];
                                       return out;
                                     })),
                 terms = PW_TRY(apply(
                     step, [](const Traced& x, std::size_t) { return Numbers(x.count(), 1); }));
    const bool chain =
        among(graph_.op_of(step.node).primitive, {Primitive::prod, Primitive::cumprod});
    each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
      Numbers error = most[rank][r];
      for (std::size_t i = 0; i < error.size(); ++i) error[i] -= least[rank][r][i];
      Numbers count = terms[rank][r];
      if (chain) count.assign(count.size(), static_cast<double>(operand(step, rank, 0)->count()));
      finish_sum(step, y, r, error, most[rank][r], count, true);
      if (!chain) return;
      for (std::size_t i = 0; i < y.reach.size(); ++i)
        if (y.reach[i] != RangeState::inside) y.reach[i] = RangeState::left;
    });
    return {};
  }

  /// Ops whose results never fall as an operand grows. Their indices are treated as for other ops.
  Status extreme(const BoundedProgram::Step& step) {
    PW_TRY(spread_reach(step, true));
    const auto shifted = [&](double sign) {
      return apply(step, [&](const Traced& x, std::size_t) {
        Numbers out = elements_of<double>(x.exact);
        for (std::size_t i = 0; i < x.error.size(); ++i) out[i] += sign * x.error[i];
        return out;
      });
    };
    const ByRank low = PW_TRY(shifted(-1)), high = PW_TRY(shifted(1));
    each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
      const Numbers exact = elements_of<double>(y.exact);
      y.error.assign(exact.size(), 0);
      const bool index = !is_float(dtype_of(graph_.result(step.node, r))) &&
                         graph_.result_count(step.node) > 1 && r == 1;
      for (std::size_t i = 0; i < exact.size(); ++i)
        y.error[i] =
            std::max(distance(low[rank][r][i], exact[i]), distance(high[rank][r][i], exact[i]));
      if (index) y.error.assign(exact.size(), index_error(step, rank));
    });
    return {};
  }
  /// The largest element is unknown if elements are closer than their errors.
  [[nodiscard]] double index_error(const BoundedProgram::Step& step, std::size_t rank) const {
    const Traced& x = *operand(step, rank, 0);
    Numbers all = elements_of<double>(x.exact);
    double most = 0;
    for (double error : x.error) most = std::max(most, error);
    if (most == 0) return 0;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i)
      if (!(all[i] - all[i - 1] > 2 * most)) return kInfinity;
    return 0;
  }

  /// Runs the step on operands shifted by their errors in both directions and returns a multiple of
  /// the largest change. Its own roundings are those of a short sum of its largest numbers.
  Status disturbed(const BoundedProgram::Step& step) {
    constexpr int kTimes = 4;
    constexpr double kMargin = 4, kSteps = 64;
    PW_TRY(spread_reach(step, true));
    std::vector<ByRank> runs;
    const double own = own_disturbance(step);
    bool any = own > 0;
    for (std::size_t rank = 0; rank < values_.size(); ++rank)
      for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i)
        if (const Traced* x = operand(step, rank, i)) any = any || !x->error.empty();
    Random random(step.node.index + 1);
    for (int time = 0; any && time < kTimes; ++time)
      runs.push_back(PW_TRY(apply(step, [&](const Traced& x, std::size_t) {
        Numbers out = elements_of<double>(x.exact);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const double by = own * std::fabs(out[i]) + (x.error.empty() ? 0 : x.error[i]);
          if (by > 0) out[i] += random.below(2) == 0 ? by : -by;
        }
        return out;
      })));
    each_result(step, [&](Traced& y, std::size_t rank, std::size_t r) {
      const ValueId value = graph_.result(step.node, r);
      if (graph_.type(value) == Types::unknown()) return;
      const DType dtype = dtype_of(value);
      const double u = unit(step, dtype),
                   inner = unit_of(options_.exact ? DType::f64 : accumulator_of(dtype));
      const Numbers exact = elements_of<double>(y.exact);
      const double largest = largest_number(step, rank, exact);
      y.error.assign(exact.size(), 0);
      y.reach.resize(exact.size(), RangeState::inside);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        double change = 0;
        for (const ByRank& run : runs)
          change = std::max(change, distance(run[rank][r][i], exact[i]));
        if (!is_float(dtype)) {
          y.error[i] = change > 0 ? kInfinity : 0;
          continue;
        }
        const double raw = kMargin * change + kSteps * inner * largest + u * std::fabs(exact[i]);
        y.error[i] = known_error(exact[i], raw);
        if (is_fp8(dtype)) y.error[i] = rounded_error(dtype, exact[i], y.error[i]);
        if (!(std::fabs(exact[i]) + raw <= format_of(ranged(dtype)).largest))
          y.reach[i] = RangeState::left;
      }
    });
    return {};
  }

  /// Returns how far each operand moves, relative to its size, to account for a step's own
  /// roundings. An attention is backward stable: its run equals an exact run on operands that
  /// differ by a few roundings, and large scores turn that difference into other weights. Other
  /// steps only choose numbers.
  [[nodiscard]] double own_disturbance(const BoundedProgram::Step& step) const {
    constexpr double kRoundings = 4;
    if (class_of(graph_.op_of(step.node).primitive) != PrimitiveClass::attention) return 0;
    return kRoundings * unit_of(options_.exact
                                    ? DType::f64
                                    : accumulator_of(dtype_of(graph_.result(step.node))));
  }

  [[nodiscard]] double largest_number(const BoundedProgram::Step& step, std::size_t rank,
                                      const Numbers& results) const {
    double largest = 0;
    const auto take = [&](const Numbers& numbers) {
      for (double x : numbers)
        if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
    };
    take(results);
    for (std::size_t i = 0; i < graph_.operand_count(step.node); ++i)
      if (const Traced* x = operand(step, rank, i); x != nullptr && is_data(step, i))
        take(x->magnitudes());
    return largest;
  }

  const BoundedProgram& program_;
  const Graph& graph_;
  const RunContext& context_;
  const BoundOptions& options_;
  std::vector<std::vector<Traced>> values_;
};

namespace {

/// Marks what outputs are views of, too.
std::vector<bool> returned_values(const Graph& graph) {
  std::vector<bool> out(graph.value_bound(), false);
  for (ValueId output : graph.outputs()) out[output.index] = true;
  const std::vector<NodeId> order = graph.order();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (kind_of(graph.op_of(*node).primitive) != StepKind::move) continue;
    for (std::size_t r = 0; r < graph.result_count(*node); ++r)
      if (out[graph.result(*node, r).index])
        for (ValueId operand : graph.operands(*node))
          if (operand.valid()) out[operand.index] = true;
  }
  return out;
}

/// The graph with f32 for fp8, except in the results of casts and of ops that quantise their
/// result, such as some attentions.
Graph without_fp8(const Graph& graph) {
  Graph out = graph;
  Types& types = graph.context().types;
  for (NodeId node : graph.order()) {
    const Primitive op = graph.op_of(node).primitive;
    if (op == Primitive::cast || kind_of(op) == StepKind::other) continue;
    for (std::size_t r = 0; r < graph.result_count(node); ++r) {
      const ValueId value = graph.result(node, r);
      if (graph.type(value) == Types::unknown()) continue;
      const Type type = types[graph.type(value)];
      if (is_fp8(type.dtype)) out.set_type(value, types.get(DType::f32, type.shape));
    }
  }
  return out;
}

}  // namespace

Result<BoundedProgram> BoundedProgram::make(const Graph& graph) {
  Graph inlined = graph.compact();
  PW_TRY(inline_bodies(inlined));
  Graph unrounded = without_fp8(inlined);
  BoundedProgram program(std::move(inlined), std::move(unrounded));
  const Graph& g = program.graph_;
  const RankGroups stated = PW_TRY(stated_groups(g));
  const std::vector<bool> returned = returned_values(g);
  for (NodeId node : g.order()) {
    Step step;
    step.node = node;
    const Primitive op = g.op_of(node).primitive;
    step.collective = find_collective(op);
    if (step.collective != nullptr) step.group = group_of(g, node, stated);
    if (step.collective == nullptr) step.kernel = find_kernel(exact_kernels(), op);
    if (step.collective == nullptr && step.kernel == nullptr)
      step.kernel = find_kernel(layout_kernels(), op);
    if (step.collective == nullptr && step.kernel == nullptr)
      return fail(error_in("graph " + g.name, kNoKernel,
                           "no error bound is known for op " + g.op_of(node).name));
    for (std::size_t r = 0; r < g.result_count(node); ++r)
      step.output = step.output || returned[g.result(node, r).index];
    program.steps_.push_back(step);
  }
  return program;
}

Result<std::vector<BoundedOutputs>> BoundedProgram::run(
    std::span<const std::vector<TensorView>> inputs, const RunContext& context,
    const BoundOptions& options) const {
  BoundedRun run(*this, context, options, inputs.size());
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) run.bind(rank, inputs[rank]);
  PW_TRY(run.run());
  std::vector<BoundedOutputs> out;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) out.push_back(run.outputs(rank));
  return out;
}

double BoundedProgram::coarsest_step() const {
  double coarsest = 0, of_outputs = 0;
  for (const Step& step : steps_) {
    const Primitive op = graph_.op_of(step.node).primitive;
    if (kind_of(op) == StepKind::move) continue;
    for (std::size_t r = 0; r < graph_.result_count(step.node); ++r) {
      const ValueId value = graph_.result(step.node, r);
      if (graph_.type(value) == Types::unknown()) continue;
      const DType dtype = graph_.context().types[graph_.type(value)].dtype;
      if (is_fp8(dtype) && op == Primitive::cast) continue;  // exact values round to it
      double& most = op == Primitive::cast && step.output ? of_outputs : coarsest;
      most = std::max(most, unit_of(dtype));
    }
  }
  return coarsest > 0 ? coarsest : of_outputs > 0 ? of_outputs : 1;
}

}  // namespace pw
