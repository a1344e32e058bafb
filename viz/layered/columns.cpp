// Column breaking for tall layouts: ranks are distributed over columns of similar height, in order.
// A rank is never divided, so a few high ranks limit the balance. Linear in nodes and ranks.
#include "viz/layered/columns.hpp"

#include <algorithm>
#include <cmath>

namespace pw::viz {
namespace {

constexpr double kTall = 4;  // times as tall as wide
constexpr double kLeastWidth = 600, kGap = 60;
constexpr double kWider = 1.6;  // than tall, after breaking into columns
constexpr double kWorth = 0.7;  // of its height, at most, is that of the columns

/// With c columns, a layout of width w and height h becomes c w wide and h / c high. The ratio
/// kWider = c w / (h / c) gives the square root.
std::size_t columns_of(const Layered& layout) {
  const double wide = layout.width + kGap;
  if (layout.total < kTall * std::max(wide, kLeastWidth)) return 1;
  return std::max<std::size_t>(1,
                               static_cast<std::size_t>(std::sqrt(kWider * layout.total / wide)));
}

}  // namespace

std::vector<std::uint32_t> stand_in_columns(Layered& layout, const std::vector<LayeredNode>& nodes,
                                            const std::vector<LayeredEdge>& edges, double below) {
  std::vector<std::uint32_t> column(layout.top.size(), 0);
  const std::size_t count = columns_of(layout);
  if (count < 2) return column;
  // Fills columns greedily up to the mean height; the last one takes the rest.
  const double wide = layout.width + kGap, each = layout.total / static_cast<double>(count);
  std::vector<double> top(column.size());
  std::uint32_t at = 0;
  double y = 0, total = 0;
  for (std::size_t rank = 0; rank < column.size(); ++rank) {
    if (y >= each && at + 1 < count) {
      ++at;
      y = 0;
    }
    column[rank] = at;
    top[rank] = y;
    total = std::max(total, y + layout.height[rank]);
    y += layout.height[rank] + below;
  }
  // A few high ranks cannot be distributed evenly.
  if (total > kWorth * layout.total) return std::vector<std::uint32_t>(column.size(), 0);
  layout.top = std::move(top);
  layout.total = total;
  layout.width += at * wide;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t rank = layout.rank[i];
    layout.x[i] += column[rank] * wide;
    layout.y[i] = layout.top[rank] + layout.height[rank] / 2;
  }
  for (std::size_t e = 0; e < edges.size(); ++e)
    for (double& x : layout.lanes[e]) x += column[layout.rank[edges[e].from]] * wide;
  return column;
}

}  // namespace pw::viz
