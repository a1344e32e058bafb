// Reduces crossings by the barycenter heuristic: a sweep sorts each rank by the mean position of
// its neighbours in the rank before, down and up in turn. Finding the least number of crossings is
// NP-hard, so the number of sweeps is fixed. Cost: O(n log n) for each sweep, in vertices and
// joins.
#include <algorithm>
#include <numeric>
#include <utility>

#include "viz/layered/rows.hpp"

namespace pw::viz {
namespace {

/// Sorting is stable, so vertices with equal barycenters keep the order of the text. Crossings are
/// never counted: more sweeps usually help, but no sweep is guaranteed to.
class RowOrder {
 public:
  explicit RowOrder(const LaneGraph& graph) : graph_(graph) {}

  Rows run(std::uint32_t ranks, std::size_t sweeps) {
    rows_.resize(ranks);
    // By the node of a lane, so that the initial order is that of the text.
    std::vector<std::uint32_t> by_owner(graph_.width.size());
    std::iota(by_owner.begin(), by_owner.end(), 0);
    std::stable_sort(by_owner.begin(), by_owner.end(), [&](std::uint32_t a, std::uint32_t b) {
      return graph_.owner[a] < graph_.owner[b];
    });
    for (const std::uint32_t i : by_owner) rows_[graph_.rank[i]].push_back(i);
    at_.resize(graph_.width.size());
    for (const auto& row : rows_) number(row);
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
      if (sweep % 2 == 0)
        for (std::size_t r = 1; r < rows_.size(); ++r)
          sort_row(rows_[r], graph_.up_begin, graph_.up);
      else
        for (std::size_t r = rows_.size() - 1; r-- > 0;)
          sort_row(rows_[r], graph_.down_begin, graph_.down);
    }
    return std::move(rows_);
  }

 private:
  void number(const std::vector<std::uint32_t>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) at_[row[i]] = static_cast<double>(i);
  }

  /// A vertex without a neighbour there keeps its position.
  void sort_row(std::vector<std::uint32_t>& row, const std::vector<std::uint32_t>& begin,
                const std::vector<std::uint32_t>& list) {
    if (row.size() < 2) return;
    keys_.clear();
    for (const std::uint32_t i : row) {
      double sum = 0;
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k) sum += at_[list[k]];
      const auto count = static_cast<double>(begin[i + 1] - begin[i]);
      keys_.push_back({count > 0 ? sum / count : at_[i], i});
    }
    std::stable_sort(keys_.begin(), keys_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keys_[i].second;
    number(row);
  }

  const LaneGraph& graph_;
  Rows rows_;
  std::vector<double> at_;  // by vertex: position in its row
  std::vector<std::pair<double, std::uint32_t>> keys_;
};

}  // namespace

Rows order_rows(const LaneGraph& graph, std::uint32_t ranks, std::size_t sweeps) {
  return RowOrder(graph).run(ranks, sweeps);
}

}  // namespace pw::viz
