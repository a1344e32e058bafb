#include "verify/ties.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "backends/eager/kernels.hpp"
#include "backends/interpreter/kernels.hpp"
#include "base/try.hpp"
#include "exec/observed_run.hpp"
#include "tensor/numerics.hpp"
#include "verify/exact_outputs.hpp"

namespace pw {
namespace {

using P = Primitive;

using Numbers = std::vector<double>;

constexpr int kMostRuns = 48;                               // of the reference
constexpr std::size_t kMostNumbers = std::size_t{1} << 27;  // of stored operands
constexpr std::size_t kMostSites = 4096;                    // of one node

enum class Kind { none, element, row, rounding };

/// The kind of a node's decision: by element, by row, or by rounding, which moves an element by at
/// most one step of its dtype.
Kind kind_of(const Graph& graph, NodeId node) {
  const P op = graph.op_of(node).primitive;
  const auto dtype = [&](ValueId v) { return graph.context().types[graph.type(v)].dtype; };
  const std::vector<ValueId> operands = graph.operands(node);
  const bool real = std::any_of(operands.begin(), operands.end(), [&](ValueId v) {
    return v.valid() && graph.type(v) != Types::unknown() && is_float(dtype(v));
  });
  if (!real) return Kind::none;
  if (among(op, {P::eq, P::ne, P::lt, P::le, P::gt, P::ge, P::floor, P::ceil, P::trunc, P::round}))
    return Kind::element;
  if (among(op, {P::topk, P::keep_topk, P::argmax, P::argmin, P::sort})) return Kind::row;
  if (op != P::cast) return Kind::none;
  return is_float(dtype(graph.result(node))) ? Kind::rounding : Kind::element;
}

/// A node on a rank.
struct CallPlace {
  NodeId node;
  std::int64_t rank = 0;
  friend auto operator<=>(const CallPlace& a, const CallPlace& b) {
    return std::pair(a.node.index, a.rank) <=> std::pair(b.node.index, b.rank);
  }
  friend bool operator==(const CallPlace& a, const CallPlace& b) {
    return a.node.index == b.node.index && a.rank == b.rank;
  }
};

/// Elements of a decision's first operand, and the offsets that change the decision.
struct Site {
  CallPlace at;
  std::vector<std::pair<std::int64_t, double>> moved;
  Tie tie;
};

/// The reference's operands of a decision.
struct Seen {
  std::vector<Numbers> operands, results;
};

/// The operands; for a decision by elements, broadcast to the extents of the result.
Numbers operand_of(const Call& call, std::size_t i, Kind kind) {
  Array x = call.operand(i);
  if (kind != Kind::row) {
    x.strides = broadcast_strides(x, call.extents[0]);
    x.extents = call.extents[0];
  }
  return elements_of<double>(x);
}

Array array_of_numbers(const Numbers& numbers, const Extents& extents) {
  const Array out = make_array(DType::f64, extents);
  std::copy(numbers.begin(), numbers.end(), reinterpret_cast<double*>(out.data));
  return out;
}

/// Runs a kernel of the reference with another first operand.
Result<std::vector<Numbers>> run_with(Kernel kernel, const Call& call, const Numbers& first,
                                      Kind kind) {
  const Array operand =
      array_of_numbers(first, kind == Kind::row ? call.operand(0).extents : call.extents[0]);
  Call other = call;
  other.operands[0] = &operand;
  other.places.clear();
  other.results.assign(call.results.size(), Array{});
  PW_TRY(kernel(other));
  std::vector<Numbers> out;
  for (const Array& result : other.results) out.push_back(elements_of<double>(result));
  return out;
}

void give_results(Call& call, const std::vector<Numbers>& results) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    Array& y = call.result(r);
    store_run(y.dtype, y.data, 1, y.count(), results[r].data());
  }
}

double farthest(const Numbers& a, const Numbers& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (std::isfinite(a[i]) && std::isfinite(b[i])) out = std::max(out, std::fabs(a[i] - b[i]));
  return out;
}

/// The rows along an axis of a row-major array.
struct Rows {
  std::int64_t count = 1, width = 1, step = 1;
  [[nodiscard]] std::int64_t element(std::int64_t row, std::int64_t i) const {
    return row / step * step * width + row % step + i * step;
  }
};

Rows rows_of(const Call& call) {
  const Extents& extents = call.operand(0).extents;
  const bool last = call.graph.op_of(call.node).primitive == Primitive::keep_topk;
  const auto rank = static_cast<std::int64_t>(extents.size());
  const std::size_t axis = last ? extents.size() - 1 : call.axis("dim", -1, rank);
  Rows out;
  out.width = extents[axis];
  for (std::size_t i = axis + 1; i < extents.size(); ++i) out.step *= extents[i];
  out.count = out.width == 0 ? 0 : element_count(extents) / out.width;
  return out;
}

class Ties {
 public:
  Ties(const CheckedRun& run, const Yardstick& yardstick, const RankOutputs& after,
       const NumericLimits& limits, std::vector<NumericReport> reports)
      : run_(run),
        yardstick_(yardstick),
        after_(after),
        limits_(limits),
        plain_(std::move(reports)),
        best_(plain_),
        least_(distance(plain_)) {}

  Result<std::vector<NumericReport>> settle() {
    PW_TRY(reference([this](Call& call, Kind kind) { return note(call, kind); }));
    PW_TRY(measure());
    PW_TRY(reference([this](Call& call, Kind kind) { return find(call, kind); }));
    seen_.clear();
    if (sites_.empty() && roundings_.empty()) return plain_;
    PW_TRY(find_leeway());
    accept(compared(yardstick_.reference), {});  // the unrewritten run may resolve a tie
    PW_TRY(search());
    if (!passed(best_)) best_ = plain_;
    // The cache keeps the values of the accepted run.
    if (run_.caches != nullptr) PW_TRY(run_settled(settled_));
    return best_;
  }

 private:
  using Visit = std::function<Status(Call&, Kind)>;

  [[nodiscard]] static bool passed(const std::vector<NumericReport>& reports) {
    return std::all_of(reports.begin(), reports.end(),
                       [](const NumericReport& report) { return report.passed(); });
  }

  /// The distance of a run from the run it is compared with.
  [[nodiscard]] static double distance(const std::vector<NumericReport>& reports) {
    double out = 0;
    for (const NumericReport& report : reports)
      for (const OutputCheck& o : report.outputs) {
        const double unit = std::max(o.bound, std::numeric_limits<double>::min());
        out += o.passed ? 0
                        : std::min(1 + o.after_error / unit, 1e18) +
                              static_cast<double>(o.non_finite + o.more_steps);
      }
    return out;
  }

  Result<RankOutputs> run_engine(Engine engine, KernelTable table, KvCache* cache,
                                 const Visit& visit) {
    engine.special = [table, visit](const Graph& graph, NodeId node) {
      const Kind kind = kind_of(graph, node);
      const Kernel kernel = find_kernel(table, graph.op_of(node).primitive);
      if (kind == Kind::none || kernel == nullptr) return RunCall();
      return RunCall([kernel, kind, visit](Call& call) -> Status {
        PW_TRY(kernel(call));
        return visit(call, kind);
      });
    };
    Step step = run_.step;
    step.cache = cache;
    return run_observed(run_.original, engine, run_.ranks, step, run_.symbols);
  }

  Result<RankOutputs> reference(const Visit& visit) {
    ++runs_;
    const auto storage = [](DType declared) { return is_float(declared) ? DType::f64 : declared; };
    return run_engine({"interpreter", stated_kernels(), storage}, stated_kernels(),
                      run_.caches == nullptr ? nullptr : &run_.caches->reference, visit);
  }

  static CallPlace place_of(const Call& call) { return {call.node, call.on_rank}; }

  Status note(Call& call, Kind kind) {
    Seen seen;
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      seen.operands.push_back(operand_of(call, i, kind));
      numbers_ += seen.operands.back().size();
    }
    for (const Array& result : call.results) seen.results.push_back(elements_of<double>(result));
    if (numbers_ <= kMostNumbers) seen_.emplace(place_of(call), std::move(seen));
    return {};
  }

  /// The rounding of each decision's operands. Runs on eager with the reference's decisions, so
  /// that later operands differ by rounding only.
  Status measure() {
    KvCache cache;
    if (run_.caches != nullptr) cache = run_.caches->before;
    const auto storage = [](DType declared) { return declared; };
    PW_TRY(run_engine({"eager", eager::kernels(), storage}, eager::kernels(),
                      run_.caches == nullptr ? nullptr : &cache,
                      [this](Call& call, Kind kind) -> Status {
                        const auto seen = seen_.find(place_of(call));
                        if (seen == seen_.end()) return {};
                        double sum = 0;
                        for (std::size_t i = 0; i < call.operands.size(); ++i)
                          sum += farthest(operand_of(call, i, kind), seen->second.operands[i]);
                        rounding_[place_of(call)] = limits_.factor * sum;
                        if (kind != Kind::rounding) give_results(call, seen->second.results);
                        return {};
                      }));
    return {};
  }

  Status find(Call& call, Kind kind) {
    const auto seen = seen_.find(place_of(call));
    const double rounding = rounding_[place_of(call)];
    if (seen == seen_.end() || !(rounding > 0)) return {};
    if (kind == Kind::row) {
      find_rows(call, seen->second.operands[0], rounding);
      return {};
    }
    return find_elements(call, kind, seen->second, rounding);
  }

  [[nodiscard]] Site site_of(const Call& call, std::int64_t place, double margin,
                             double rounding) const {
    const Graph& graph = call.graph;
    Tie tie{std::string(graph.node_name(call.node)),
            graph.op_of(call.node).name,
            call.on_rank,
            place,
            1,
            margin,
            rounding};
    return {place_of(call), {}, std::move(tie)};
  }

  /// The elements whose result changes when the first operand moves by its rounding in either
  /// direction.
  Status find_elements(const Call& call, Kind kind, const Seen& seen, double rounding) {
    const Kernel kernel = find_kernel(stated_kernels(), call.graph.op_of(call.node).primitive);
    Site all = site_of(call, -1, rounding, rounding);
    all.tie.count = 0;
    std::size_t found = 0;
    for (const double by : {rounding, -rounding}) {
      Numbers moved = seen.operands[0];
      for (double& x : moved) x += by;
      const std::vector<Numbers> other = PW_TRY(run_with(kernel, call, moved, kind));
      for (std::size_t i = 0; i < other[0].size(); ++i) {
        const double before = seen.results[0][i], after = other[0][i];
        if (before == after || !std::isfinite(before) || !std::isfinite(after)) continue;
        const auto element = static_cast<std::int64_t>(i);
        if (kind == Kind::rounding) {
          if (std::fabs(after - before) <= 2 * rounding) continue;  // only rounding, not a step
          if (all.tie.count++ == 0) all.tie.place = element;
          all.moved.emplace_back(element, by);
        } else if (++found <= kMostSites) {
          const double margin = seen.operands.size() > 1
                                    ? std::fabs(seen.operands[0][i] - seen.operands[1][i])
                                    : margin_of(seen.operands[0][i], before, after);
          sites_.push_back(site_of(call, element, std::min(margin, rounding), rounding));
          sites_.back().moved = {{element, by}};
        }
      }
    }
    if (all.tie.count > 0) roundings_.push_back(std::move(all));
    return {};
  }

  /// The distance of an element from the step between two results.
  static double margin_of(double x, double before, double after) {
    const double step = std::max(before, after);
    return std::min({std::fabs(x - before), std::fabs(x - after), std::fabs(x - step),
                     std::fabs(x - (before + after) / 2)});
  }

  /// Pairs of a row that swap.
  void find_rows(const Call& call, const Numbers& x, double rounding) {
    const P op = call.graph.op_of(call.node).primitive;
    const Rows rows = rows_of(call);
    const bool descends = among(op, {P::keep_topk, P::argmax}) ||
                          (op == P::topk && call.integer("largest", 1) != 0) ||
                          (op == P::sort && call.integer("descending", 0) != 0);
    const std::int64_t kept = op == P::sort                       ? rows.width
                              : among(op, {P::argmax, P::argmin}) ? 1
                                                                  : call.integer("k", 1);
    std::size_t found = 0;
    for (std::int64_t row = 0; row < rows.count && found < kMostSites; ++row) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(rows.width));
      std::iota(order.begin(), order.end(), std::int64_t{0});
      const auto value = [&](std::int64_t i) {
        return x[static_cast<std::size_t>(rows.element(row, i))];
      };
      if (std::any_of(order.begin(), order.end(), [&](auto i) { return !std::isfinite(value(i)); }))
        continue;
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
        return descends ? value(a) > value(b) : value(a) < value(b);
      });
      // Both move to their midpoint and past each other.
      const auto add = [&](std::size_t i, std::size_t j) {
        const double gap = value(order[j]) - value(order[i]), over = rounding * 1e-3,
                     sign = descends ? 1 : -1;
        if (std::fabs(gap) > 2 * rounding) return false;
        Site site = site_of(call, row, std::fabs(gap), 2 * rounding);
        site.moved = {{rows.element(row, order[i]), gap / 2 - sign * over},
                      {rows.element(row, order[j]), -gap / 2 + sign * over}};
        sites_.push_back(std::move(site));
        return ++found < kMostSites;
      };
      const auto width = static_cast<std::size_t>(rows.width);
      const auto bound = std::min(static_cast<std::size_t>(std::max<std::int64_t>(kept, 0)), width);
      for (std::size_t i = bound; i-- > 0;)
        for (std::size_t j = bound; j < width && add(i, j); ++j) {
        }
      if (op != P::keep_topk)
        for (std::size_t i = 0; i + 1 < bound; ++i) add(i, i + 1);
    }
  }

  Result<RankOutputs> run_settled(const std::set<std::size_t>& settled, bool roundings = false) {
    std::map<CallPlace, std::vector<const Site*>> moved;
    for (const std::size_t i : settled) moved[sites_[i].at].push_back(&sites_[i]);
    for (const Site& site : roundings_)
      if (roundings) moved[site.at].push_back(&site);
    return reference([&moved](Call& call, Kind kind) -> Status {
      const auto here = moved.find(place_of(call));
      if (here == moved.end()) return {};
      Numbers first = operand_of(call, 0, kind);
      for (const Site* site : here->second)
        for (const auto& [element, by] : site->moved)
          first[static_cast<std::size_t>(element)] += by;
      const Kernel kernel = find_kernel(stated_kernels(), call.graph.op_of(call.node).primitive);
      give_results(call, PW_TRY(run_with(kernel, call, first, kind)));
      return {};
    });
  }

  [[nodiscard]] std::vector<NumericReport> compared(const RankOutputs& reference) const {
    std::vector<NumericReport> out(after_.size());
    for (std::size_t rank = 0; rank < after_.size(); ++rank)
      for (std::size_t i = 0; i < after_[rank].size(); ++i) {
        const OutputCheck& plain = plain_[rank].outputs[i];
        const double leeway = leeway_.empty() ? 0 : leeway_[rank][i];
        OutputCheck check = check_settled(
            plain.name, yardstick_.reference[rank][i].view(), reference[rank][i].view(),
            yardstick_.before[rank][i].view(), after_[rank][i].view(), leeway, limits_);
        check.tied = check.passed && !plain.passed;
        out[rank].outputs.push_back(std::move(check));
      }
    return out;
  }

  /// Casts whose operands are midway between two numbers. The outputs may differ by their change
  /// when all of these round the other way.
  Status find_leeway() {
    if (roundings_.empty()) return {};
    const RankOutputs other = PW_TRY(run_settled({}, true));
    for (std::size_t rank = 0; rank < other.size(); ++rank) {
      std::vector<double>& own = leeway_.emplace_back();
      for (std::size_t i = 0; i < other[rank].size(); ++i) {
        const TensorView view = other[rank][i].view();
        own.push_back(
            check_output("", yardstick_.reference[rank][i].view(), view, view).before_error);
      }
    }
    return {};
  }

  void accept(std::vector<NumericReport> reports, std::set<std::size_t> settled) {
    least_ = distance(reports);
    settled_ = std::move(settled);
    best_ = std::move(reports);
    for (std::size_t rank = 0; rank < best_.size(); ++rank) {
      for (const std::size_t i : settled_)
        if (sites_[i].tie.rank == static_cast<std::int64_t>(rank) || best_.size() == 1)
          best_[rank].ties.push_back(sites_[i].tie);
      for (const Site& site : roundings_)
        if (site.tie.rank == static_cast<std::int64_t>(rank) || best_.size() == 1)
          best_[rank].ties.push_back(site.tie);
    }
  }

  /// Flips groups of ties, then their halves, while that brings the reference nearer.
  Status search() {
    std::map<CallPlace, std::vector<std::size_t>> by_place;
    for (std::size_t i = 0; i < sites_.size(); ++i) by_place[sites_[i].at].push_back(i);
    std::deque<std::vector<std::size_t>> groups;
    for (auto& [place, group] : by_place) groups.push_back(std::move(group));
    while (!groups.empty() && !passed(best_) && runs_ < kMostRuns) {
      const std::vector<std::size_t> group = std::move(groups.front());
      groups.pop_front();
      std::set<std::size_t> settled = settled_;
      for (const std::size_t i : group)
        if (settled.erase(i) == 0) settled.insert(i);
      auto reports = compared(PW_TRY(run_settled(settled)));
      if (distance(reports) < least_ * (1 - 1e-9)) accept(std::move(reports), std::move(settled));
      if (group.size() == 1) continue;
      const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
      groups.emplace_back(group.begin(), middle);
      groups.emplace_back(middle, group.end());
    }
    return {};
  }

  const CheckedRun& run_;
  const Yardstick& yardstick_;
  const RankOutputs& after_;
  const NumericLimits& limits_;
  std::vector<NumericReport> plain_, best_;
  double least_ = 0;
  int runs_ = 0;
  std::size_t numbers_ = 0;
  std::map<CallPlace, Seen> seen_;
  std::map<CallPlace, double> rounding_;  ///< largest move of an operand
  std::vector<Site> sites_, roundings_;
  std::set<std::size_t> settled_;
  std::vector<std::vector<double>> leeway_;  ///< by rank and output
};

}  // namespace

Result<std::vector<NumericReport>> check_but_for_ties(const CheckedRun& run,
                                                      const Yardstick& yardstick,
                                                      const RankOutputs& after,
                                                      const NumericLimits& limits) {
  auto reports = check_outputs(run.original, yardstick, after, limits);
  const bool passed = std::all_of(reports.begin(), reports.end(),
                                  [](const NumericReport& report) { return report.passed(); });
  // Ranks in separate processes would all have to run the reference equally often.
  if (passed) check_exact_outputs(run, yardstick, reports);
  if (passed || run.step.ranks != nullptr) return reports;
  return Ties(run, yardstick, after, limits, std::move(reports)).settle();
}

}  // namespace pw
