#include "splitter/counters.hpp"

namespace pw {

std::vector<std::pair<std::string, std::size_t>> Counters::list() const {
  return {{"graphs_seen", graphs_seen},
          {"pieces", pieces},
          {"capturable_pieces", capturable_pieces},
          {"piece_classes", piece_classes},
          {"backend_compilations", backend_compilations},
          {"graphs_captured", graphs_captured}};
}

void Counting::add(const StitchedGraph& pieces, const Plan& plan) {
  ++counters_.graphs_seen;
  if (plan.mode == name(CaptureMode::none)) return;  // steps run as they come
  counters_.pieces += pieces.pieces.size();
  counters_.capturable_pieces += pieces.capturable();
  counters_.piece_classes += pieces.capturable_classes();
  // Where a plan's tokens are not cut, its kernels serve any number of them, other graphs' too.
  std::vector<Range> targets;
  if (plan.ranges.size() <= 1)
    targets.push_back({0, 0});
  else
    targets = plan.ranges;
  for (const std::int64_t size : plan.compile_sizes) targets.push_back({size, size});
  std::map<std::uint64_t, std::size_t> equal;
  for (const PieceClass& c : pieces.classes) {
    if (!c.capturable()) continue;
    const std::size_t before = equal[c.hash]++;
    for (const Range& target : targets) compiled_.emplace(c.hash, before, target.begin, target.end);
  }
  counters_.backend_compilations = compiled_.size();
  for (const Capture& capture : plan.captures) counters_.graphs_captured += capture.graphs;
}

}  // namespace pw
