// Captures CUDA graphs: records the launches of each piece, or of each whole step, at every
// captured size, orders them by their memory accesses, and instantiates them. Pieces of a class
// share a recorded form and have executables of their own, since their addresses differ.
//
// Invariant: a captured graph has an edge path between any two nodes of which one writes bytes that
// the other touches (order_nodes). Cost: one instantiation for each captured piece and size, or for
// each piece and topology if sizes share executables; ordering is quadratic in the nodes at worst.
#include "cuda/captured_graphs.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/try.hpp"

namespace pw::cuda {

std::vector<StepSegment> CapturedGraphs::segments() const {
  std::vector<StepSegment> out;
  for (std::size_t i = 0; i < task_.plan.steps.size(); ++i) {
    if (on_host(i)) continue;
    if (out.empty() || out.back().end != i) out.push_back({i, i, {}});
    out.back().end = i + 1;
  }
  return out;
}

std::string CapturedGraphs::breaks() const {
  std::string out;
  for (std::size_t i = 0; i < task_.plan.steps.size(); ++i) {
    if (!on_host(i)) continue;
    const Piece& piece = task_.stitched.pieces[task_.plan.steps[i].piece];
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", piece.name,
                       task_.source.op_of(piece.nodes.back()).name);
  }
  return out;
}

CapturedGraph CapturedGraphs::instantiate(RecordedGraph graph, std::uint64_t addresses,
                                          Executables& others) {
  LaunchCounts launches;
  launches.graphs = 1;
  for (const LaunchNode& node : graph.nodes) launches.add(counted(node));
  graph.shared = task_.options.share_executables;
  if (graph.shared)
    for (const auto& other : others)
      if (const auto number = other->add(graph); number && *number)
        return {other, **number, addresses, launches};
  const std::size_t nodes = graph.nodes.size();
  const auto early = static_cast<std::size_t>(std::count_if(
      graph.nodes.begin(), graph.nodes.end(), [](const LaunchNode& node) { return node.early; }));
  count_full_edges(graph);
  auto executable = task_.driver.instantiate(std::move(graph));
  if (!executable) {
    ++log_.counters.failed_captures;
    log_.note("not captured: " + executable.error().front().message + " (" +
              executable.error().front().place + ")");
    return {};
  }
  ++log_.counters.executables;
  log_.counters.graph_nodes += nodes;
  log_.counters.early_starts += early;
  others.push_back(std::move(*executable));
  return {others.back(), 0, addresses, launches};
}

/// Counts the nodes that start after their predecessors' end, by reason.
void CapturedGraphs::count_full_edges(const RecordedGraph& graph) {
  if (!task_.starts_early()) return;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (std::string why = why_not_early(graph, i, pieces_.waiting()); !graph.nodes[i].early)
      ++full_edges_[why.empty() ? "the model predicts a loss" : why];
}

void CapturedGraphs::note_full_edges() {
  if (!task_.starts_early()) return;
  std::string text = fmt::format("programmatic edges: {} of {} nodes start early",
                                 log_.counters.early_starts, log_.counters.graph_nodes);
  for (const auto& [why, count] : full_edges_) text += fmt::format("; {}: {}", count, why);
  log_.note(text);
}

Status CapturedGraphs::capture_pieces(std::int64_t size) {
  std::vector<bool> recorded(pieces_.classes().size());
  for (std::size_t i = 0; i < task_.stitched.pieces.size(); ++i) {
    const PieceId piece(i);
    if (!pieces_.captured(piece)) continue;
    auto graph = PW_TRY(recorder_.record(piece, size));
    CapturedGraph made = instantiate(std::move(graph), hash_of(piece), of_pieces_[i]);
    if (!made.executable) continue;
    const std::size_t c = task_.stitched.pieces[piece].piece_class.index;
    log_.counters.graphs_captured += recorded[c] ? 0 : 1;
    recorded[c] = true;
    graphs_[i][size] = std::move(made);
  }
  return {};
}

Status CapturedGraphs::capture_step(std::int64_t size, std::int64_t query) {
  std::vector<StepSegment> made = segments();
  if (const std::string host = breaks(); !host.empty())
    log_.note(fmt::format("a captured step is split where the host runs: {}", host));
  for (StepSegment& segment : made) {
    auto graph = PW_TRY(recorder_.record_steps(segment.first, segment.end, size, query));
    segment.graph = instantiate(std::move(graph), hash_of(segment), of_segments_[segment.first]);
    if (!segment.graph.executable) return {};
  }
  if (made.empty()) return {};
  log_.counters.graphs_captured += made.size();
  log_.counters.whole_steps += made.size();
  steps_[size] = std::move(made);
  return {};
}

/// Captures in the plan's order. Besides its size a graph has sequences and adapters; launches
/// depend only on the number of new tokens of each sequence, and only for speed, so one graph of a
/// size serves all.
Status CapturedGraphs::capture() {
  graphs_.resize(task_.stitched.pieces.size());
  std::set<std::pair<DispatchMode, std::int64_t>> known;
  for (const Capture& planned : task_.plan.captures) {
    const std::int64_t size = planned.key.tokens;
    if (!known.emplace(planned.mode, size).second) continue;
    const auto start = std::chrono::steady_clock::now();
    auto done = planned.mode == DispatchMode::full ? capture_step(size, planned.key.query)
                                                   : capture_pieces(size);
    if (!done) return done;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    times_.push_back({size, taken.count()});
  }
  captured_ = true;
  note_full_edges();
  return {};
}

std::uint64_t CapturedGraphs::hash_of(PieceId piece) const {
  const std::uint64_t hash = memory_.address_hash(piece);
  return pieces_.class_of(piece).program.fills_pages ? combine(hash, pages_.address_hash()) : hash;
}

std::uint64_t CapturedGraphs::hash_of(const StepSegment& segment) const {
  std::uint64_t hash = pages_.address_hash();
  for (std::size_t i = segment.first; i < segment.end; ++i)
    hash = combine(hash, memory_.address_hash(task_.plan.steps[i].piece));
  return hash;
}

const std::vector<StepSegment>* CapturedGraphs::step(std::int64_t size) const {
  const auto found = steps_.find(size);
  return found == steps_.end() ? nullptr : &found->second;
}

Result<bool> CapturedGraphs::replay(PieceId piece, std::int64_t size, LaunchCounts& launches) {
  if (graphs_.empty()) return false;
  const auto graph = graphs_[piece.index].find(size);
  if (graph == graphs_[piece.index].end()) return false;
  return replay(graph->second, hash_of(piece), task_.stitched.pieces[piece].name, launches);
}

Result<bool> CapturedGraphs::replay(const StepSegment& segment, LaunchCounts& launches) {
  const bool all = segment.first == 0 && segment.end == task_.plan.steps.size();
  return replay(segment.graph, hash_of(segment), all ? "the whole step" : "a part of the step",
                launches);
}

Result<bool> CapturedGraphs::replay(const CapturedGraph& graph, std::uint64_t addresses,
                                    const std::string& name, LaunchCounts& launches) {
  if (graph.addresses != addresses) {
    ++log_.counters.stale;
    log_.note(name + " is not replayed: its memory has moved since the capture");
    return false;
  }
  ++log_.counters.replays;
  launches.add(graph.launches);
  if (graph.executable->current() != graph.number) ++log_.counters.updates;
  PW_TRY(graph.executable->replay(graph.number));
  return true;
}

}  // namespace pw::cuda
