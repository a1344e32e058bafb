// Coordinates by isotonic regression: each vertex wants the median of its neighbours, and the row
// takes the nearest positions (least squares) that keep order and distance. Pooling adjacent
// violators finds them in linear time. Rounds go down and up; lanes weigh more than boxes, so that
// they stay straight. Invariant: vertices of a row never overlap. Cost: O(n log n) for each round.
#include <algorithm>
#include <utility>

#include "viz/layered/rows.hpp"

namespace pw::viz {
namespace {

constexpr double kStraight = 8;  // times a box's
constexpr double kLongRow = 8;   // boxes and lanes
constexpr double kPull = 0.1;
constexpr std::size_t kLongChain = 60;  // ranks

class Coordinates {
 public:
  Coordinates(const LaneGraph& graph, const Rows& rows, const std::vector<LayeredNode>& nodes,
              const LayeredOptions& options)
      : graph_(graph), rows_(rows), nodes_(nodes), options_(options) {}

  // Rows begin packed and centered at 0. Each round reads the neighbors above, then those below;
  // the last pass reads both, which centers boxes between them.
  std::vector<double> run() {
    x_.assign(graph_.width.size(), 0);
    for (const auto& row : rows_) {
      double left = 0;
      for (const std::uint32_t i : row) {
        x_[i] = left + graph_.width[i] / 2;
        left += graph_.width[i] + (graph_.is_lane(i) ? options_.between : gap(nodes_[i], options_));
      }
      for (const std::uint32_t i : row) x_[i] -= (left - options_.between) / 2;
    }
    constexpr int kRounds = 6;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t r = 1; r < rows_.size(); ++r)
        settle(rows_[r], graph_.up_begin, graph_.up, {}, {});
      for (std::size_t r = rows_.size(); r-- > 1;)
        settle(rows_[r - 1], graph_.down_begin, graph_.down, {}, {});
    }
    for (std::size_t r = 0; r < rows_.size(); ++r)
      settle(rows_[r], graph_.up_begin, graph_.up, graph_.down_begin, graph_.down);
    return std::move(x_);
  }

 private:
  struct Pool {
    double sum = 0, weight = 0;
    std::size_t count = 0;
    [[nodiscard]] double mean() const { return sum / weight; }
  };

  /// Returns the coordinates nearest to the desired ones, in order and without overlap: neighbours
  /// that would pass each other are pooled.
  /// With the offsets subtracted, "in order and without overlap" becomes "nondecreasing", which is
  /// isotonic regression. Each vertex is pushed and pooled at most once, so a row costs O(n).
  void settle(const std::vector<std::uint32_t>& row, const std::vector<std::uint32_t>& begin,
              const std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& begin2,
              const std::vector<std::uint32_t>& list2) {
    // A lane stays straight even if many boxes of its row want its position.
    const auto count = static_cast<double>(row.size());
    const double lane_weight =
        std::max(kStraight, count > kLongRow ? kStraight * count * count : 0);
    pools_.clear();
    double offset = 0;
    offsets_.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0)
        offset += (graph_.width[row[i - 1]] + graph_.width[row[i]]) / 2 +
                  (close(row[i - 1]) && close(row[i]) ? options_.between / 2 : options_.between);
      offsets_.push_back(offset);
      const double weight = graph_.is_lane(row[i]) ? lane_weight : 1;
      pools_.push_back({(wish(row[i], begin, list, begin2, list2) - offset) * weight, weight, 1});
      while (pools_.size() > 1 && pools_[pools_.size() - 2].mean() > pools_.back().mean()) {
        Pool& before = pools_[pools_.size() - 2];
        before.sum += pools_.back().sum;
        before.weight += pools_.back().weight;
        before.count += pools_.back().count;
        pools_.pop_back();
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools_)
      for (std::size_t k = 0; k < pool.count; ++k, ++i) x_[row[i]] = pool.mean() + offsets_[i];
  }

  /// Lanes and ports may be close to each other.
  [[nodiscard]] bool close(std::uint32_t i) const {
    return graph_.is_lane(i) || nodes_[i].pin != LayeredNode::Pin::none;
  }

  /// Returns the median of the neighbours.
  /// The median ignores distant neighbors, unlike the mean: a box below three aligned ones stays
  /// aligned.
  double wish(std::uint32_t i, const std::vector<std::uint32_t>& begin,
              const std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& begin2,
              const std::vector<std::uint32_t>& list2) {
    wishes_.clear();
    // A chain of lanes is straight, regardless of edges that join or leave it.
    if (graph_.is_lane(i))
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k)
        if (graph_.is_lane(list[k]) && graph_.owner[list[k]] == graph_.owner[i]) return x_[list[k]];
    // In the last round a lane follows only its lower neighbour: the mean of both would bend it.
    if (begin2.empty() || !graph_.is_lane(i))
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k) wishes_.push_back(x_[list[k]]);
    if (!begin2.empty())
      for (std::uint32_t k = begin2[i]; k < begin2[i + 1]; ++k) wishes_.push_back(x_[list2[k]]);
    if (wishes_.empty()) return x_[i];
    std::sort(wishes_.begin(), wishes_.end());
    const std::size_t n = wishes_.size();
    const double median = n % 2 == 1 ? wishes_[n / 2] : (wishes_[n / 2 - 1] + wishes_[n / 2]) / 2;
    // Pulls rows towards 0: otherwise a long chain of equal parts drifts to one side.
    const bool pulled = rows_.size() > kLongChain && !graph_.is_lane(i);
    return pulled ? median * (1 - kPull) : median;
  }

  const LaneGraph& graph_;
  const Rows& rows_;
  const std::vector<LayeredNode>& nodes_;
  const LayeredOptions& options_;
  std::vector<double> x_;
  std::vector<Pool> pools_;
  std::vector<double> offsets_, wishes_;
};

}  // namespace

std::vector<double> place_rows(const LaneGraph& graph, const Rows& rows,
                               const std::vector<LayeredNode>& nodes,
                               const LayeredOptions& options) {
  return Coordinates(graph, rows, nodes, options).run();
}

}  // namespace pw::viz
