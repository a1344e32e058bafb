// Captures CUDA graphs: records the launches of each piece, or of each whole step, at every
// captured size, orders them by their memory accesses, and instantiates them. Pieces of a class
// share a recorded form and have executables of their own, since their addresses differ.
//
// Invariant: a captured graph has an edge path between any two nodes of which one writes bytes that
// the other touches (order_nodes). Cost: one instantiation for each captured piece and size;
// ordering is quadratic in the nodes at worst.
#include <chrono>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "backends/sequences.hpp"
#include "base/try.hpp"
#include "cuda/runtime.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {

Result<RecordedGraph> Runtime::record(PieceId piece, std::int64_t tokens) const {
  auto nodes = PW_TRY(nodes_of(piece, tokens));
  RecordedGraph out{fmt::format("{} of {} tokens", stitched_.pieces[piece].name, tokens),
                    std::move(nodes)};
  order_nodes(out);
  return out;
}

Result<std::vector<LaunchNode>> Runtime::attention_of(PieceId piece, std::int64_t tokens,
                                                      std::int64_t query) const {
  const Symbols symbols = symbols_at(plan_, tokens);
  const Piece& p = stitched_.pieces[piece];
  const auto inputs = tensors(p.inputs, symbols);
  if (!inputs) return tl::unexpected(inputs.error());
  const auto output = tensor(p.outputs.front(), symbols);
  if (!output) return tl::unexpected(output.error());
  return pages_.launches(*class_of(piece).attention, layer_name(p.graph, p.graph.first()), *inputs,
                         *output, query);
}

Result<RecordedGraph> Runtime::record_step(std::int64_t tokens, std::int64_t query) const {
  return record_steps(0, plan_.steps.size(), tokens, query);
}

Result<RecordedGraph> Runtime::record_steps(std::size_t first, std::size_t end, std::int64_t tokens,
                                            std::int64_t query) const {
  RecordedGraph out{fmt::format("step of {} tokens", tokens), {}};
  for (std::size_t i = first; i < end; ++i) {
    const Plan::Step& planned = plan_.steps[i];
    auto nodes =
        PW_TRY(class_of(planned.piece).attention ? attention_of(planned.piece, tokens, query)
                                                 : nodes_of(planned.piece, tokens));
    std::move(nodes.begin(), nodes.end(), std::back_inserter(out.nodes));
  }
  order_nodes(out);
  return out;
}

std::vector<Runtime::Segment> Runtime::segments() const {
  std::vector<Segment> out;
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    if (on_host(i)) continue;
    if (out.empty() || out.back().end != i) out.push_back({i, i, {}});
    out.back().end = i + 1;
  }
  return out;
}

std::string Runtime::breaks() const {
  std::string out;
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    if (!on_host(i)) continue;
    const Piece& piece = stitched_.pieces[plan_.steps[i].piece];
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", piece.name,
                       source_.op_of(piece.nodes.back()).name);
  }
  return out;
}

Runtime::Captured Runtime::instantiate(RecordedGraph graph, std::uint64_t addresses) {
  LaunchCounts launches;
  launches.graphs = 1;
  for (const LaunchNode& node : graph.nodes) launches.add(counted(node));
  const std::size_t nodes = graph.nodes.size();
  auto executable = driver_.instantiate(std::move(graph));
  if (!executable) {
    ++counters_.failed_captures;
    note("not captured: " + executable.error().front().message + " (" +
         executable.error().front().place + ")");
    return {};
  }
  ++counters_.executables;
  counters_.graph_nodes += nodes;
  return {std::move(*executable), addresses, launches};
}

Status Runtime::capture_pieces(std::int64_t size) {
  std::vector<bool> recorded(classes_.size());
  for (std::size_t i = 0; i < stitched_.pieces.size(); ++i) {
    const PieceId piece(i);
    if (!captured(piece)) continue;
    auto graph = PW_TRY(record(piece, size));
    Captured made = instantiate(std::move(graph), address_hash(piece));
    if (!made.executable) continue;
    const std::size_t c = stitched_.pieces[piece].piece_class.index;
    counters_.graphs_captured += recorded[c] ? 0 : 1;
    recorded[c] = true;
    graphs_[i][size] = std::move(made);
  }
  return {};
}

Status Runtime::capture_step(std::int64_t size, std::int64_t query) {
  std::vector<Segment> made = segments();
  if (const std::string host = breaks(); !host.empty())
    note(fmt::format("a captured step is split where the host runs: {}", host));
  for (Segment& segment : made) {
    auto graph = PW_TRY(record_steps(segment.first, segment.end, size, query));
    segment.graph = instantiate(std::move(graph), hash_of(segment));
    if (!segment.graph.executable) return {};
  }
  if (made.empty()) return {};
  counters_.graphs_captured += made.size();
  counters_.whole_steps += made.size();
  steps_[size] = std::move(made);
  return {};
}

/// Captures in the plan's order. Besides its size a graph has sequences and adapters; launches
/// depend only on the number of new tokens of each sequence, and only for speed, so one graph of a
/// size serves all.
Status Runtime::capture() {
  if (stepped_)
    return fail(error_in("capture", "PW1255", "a step has already run",
                         "capture before the first step: capturing fixes memory and addresses"));
  std::set<std::pair<DispatchMode, std::int64_t>> known;
  for (const Capture& planned : plan_.captures) {
    const std::int64_t size = planned.key.tokens;
    if (!known.emplace(planned.mode, size).second) continue;
    const auto start = std::chrono::steady_clock::now();
    auto done = planned.mode == DispatchMode::full ? capture_step(size, planned.key.query)
                                                   : capture_pieces(size);
    if (!done) return done;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    capture_times_.push_back({size, taken.count()});
  }
  captured_ = true;
  return {};
}

}  // namespace pw::cuda
