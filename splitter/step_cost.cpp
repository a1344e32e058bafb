#include "splitter/step_cost.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/division.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/ops/product.hpp"

namespace pw {

StepCost::StepCost(const StitchedGraph& pieces, const Graph& source, Machine machine)
    : context_(source.context_ptr()), tokens_(source.facts.tokens()), machine_(machine) {
  for (const auto& [symbol, fact] : source.facts.symbols) symbols_[symbol] = greatest_value(fact);
  std::map<std::pair<OpId, std::vector<TypeId>>, std::size_t> known;
  for (const PieceClass& c : pieces.classes) {
    if (!c.capturable()) continue;
    const Graph& piece = pieces.pieces[c.members.front()].graph;
    for (NodeId n = piece.first(); n.valid(); n = piece.next(n)) {
      const Op& op = piece.op_of(n);
      if (!op.does_work()) continue;
      std::vector<TypeId> types;
      for (const ValueId v : piece.operands(n))
        types.push_back(v.valid() ? piece.type(v) : Types::unknown());
      const auto product = product_of(op);
      for (std::size_t r = 0; r < piece.result_count(n); ++r)
        types.push_back(piece.type(piece.result(n, r)));
      const auto [at, fresh] = known.try_emplace({piece.op(n), types}, work_.size());
      if (fresh) {
        Work work;
        for (const TypeId type : types) {
          const bool sized = type != Types::unknown();
          work.shapes.push_back(sized ? context_->types[type].shape : std::vector<DimId>{});
          work.item_bytes.push_back(sized ? size_of(context_->types[type].dtype) : 0);
        }
        if (product && product->a < types.size() && product->b < types.size() &&
            work.shapes[product->a].size() >= 2 && work.shapes[product->b].size() == 2) {
          work.a = product->a;
          work.b = product->b;
        }
        work_.push_back(std::move(work));
      }
      work_[at->second].count += static_cast<double>(c.members.size());
    }
  }
}

double StepCost::seconds(const Work& work) const {
  const auto extent = [&](DimId dim) {
    return std::max<std::int64_t>(context_->dims.evaluate(dim, symbols_).value_or(0), 0);
  };
  double bytes = 0;
  for (std::size_t i = 0; i < work.shapes.size(); ++i) {
    double size = static_cast<double>(work.item_bytes[i]);
    for (const DimId dim : work.shapes[i]) size *= static_cast<double>(extent(dim));
    bytes += size;
  }
  const double moving = bytes / machine_.bytes;
  if (work.a == work.b) return moving;
  const std::vector<DimId>&a = work.shapes[work.a], &b = work.shapes[work.b];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) rows *= extent(a[i]);
  const std::int64_t all =
      ceil_div(rows, machine_.tile_rows) * ceil_div(extent(b.back()), machine_.tile_columns);
  const double waves = static_cast<double>(ceil_div(all, machine_.multiprocessors));
  const double tile = 2.0 * static_cast<double>(machine_.tile_rows * machine_.tile_columns) *
                      static_cast<double>(extent(b.front()));
  const double rate = machine_.operations / static_cast<double>(machine_.multiprocessors) * 2 /
                      static_cast<double>(std::max<std::int64_t>(work.item_bytes[work.a], 1));
  return std::max(moving, waves * tile / rate);
}

double StepCost::seconds(std::int64_t tokens, double a_kernel) const {
  if (!tokens_.empty()) symbols_[tokens_] = tokens;
  double sum = 0;
  for (const Work& work : work_) sum += work.count * (seconds(work) + a_kernel);
  return sum;
}

double StepCost::captured(std::int64_t tokens) const { return seconds(tokens, machine_.replayed); }
double StepCost::eager(std::int64_t tokens) const { return seconds(tokens, machine_.launched); }

double interpolated(const std::vector<std::pair<std::int64_t, double>>& times,
                    std::int64_t tokens) {
  PW_ASSERT(!times.empty(), "no times to interpolate");
  if (times.size() == 1 || tokens <= times.front().first) return times.front().second;
  auto right = std::lower_bound(times.begin(), times.end(), tokens,
                                [](const auto& time, std::int64_t t) { return time.first < t; });
  const bool above = right == times.end();
  if (above) --right;
  const auto left = std::prev(right);
  double slope = (right->second - left->second) / static_cast<double>(right->first - left->first);
  if (above) slope = std::max(slope, 0.0);
  const auto& from = above ? *right : *left;
  return from.second + slope * static_cast<double>(tokens - from.first);
}

}  // namespace pw
