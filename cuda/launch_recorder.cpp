#include "cuda/launch_recorder.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "backends/sequences.hpp"
#include "base/try.hpp"
#include "cuda/edge_choice.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {

Result<std::vector<LaunchNode>> LaunchRecorder::launches(PieceId piece, std::int64_t tokens,
                                                         std::int64_t query) const {
  return pieces_.class_of(piece).attention ? attention(piece, tokens, query)
                                           : program(piece, tokens);
}

Result<std::vector<LaunchNode>> LaunchRecorder::attention(PieceId piece, std::int64_t tokens,
                                                          std::int64_t query) const {
  const Symbols symbols = symbols_at(task_.plan, tokens);
  const Piece& p = task_.stitched.pieces[piece];
  const auto inputs = memory_.tensors(p.inputs, symbols);
  if (!inputs) return tl::unexpected(inputs.error());
  const auto output = memory_.tensor(p.outputs.front(), symbols);
  if (!output) return tl::unexpected(output.error());
  return pages_.launches(*pieces_.class_of(piece).attention, layer_name(p.graph, p.graph.first()),
                         *inputs, *output, query);
}

Result<std::vector<LaunchNode>> LaunchRecorder::program(PieceId piece, std::int64_t tokens) const {
  const Symbols symbols = symbols_at(task_.plan, tokens);
  std::vector<LaunchNode> out;
  for (const ProgramLaunch& launch : pieces_.class_of(piece).program.launches_for(tokens)) {
    auto made = PW_TRY(node(piece, launch, symbols, tokens));
    const bool nowhere =
        launch.kind == LaunchNode::Kind::copy && made.reads[0].address == made.writes[0].address;
    if (!nowhere) out.push_back(std::move(made));  // else a view that shares its operand's place
  }
  return out;
}

Result<LaunchNode> LaunchRecorder::node(PieceId piece, const ProgramLaunch& launch,
                                        const Symbols& symbols, std::int64_t tokens) const {
  LaunchNode node =
      PW_TRY(launch_node(launch, task_.source.context(), RunContext{symbols, nullptr, tokens},
                         task_.stitched.pieces[piece].name));
  std::vector<Address> addresses;
  for (const auto* places : {&launch.reads, &launch.writes})
    for (const Place& place : *places) addresses.push_back(memory_.address(piece, place));
  node = at_addresses(std::move(node), addresses);
  use_pages(piece, launch, node);
  if (launch.product && memory_.workspace().address != 0)
    node.writes.push_back(memory_.workspace());
  return node;
}

void LaunchRecorder::use_pages(PieceId piece, const ProgramLaunch& launch, LaunchNode& node) const {
  const auto replace = [&](const Place& place, DeviceTensor& tensor) {
    if (place.kind == Place::Kind::slots) tensor = pages_.slots(tensor.extents[0]);
    if (place.kind != Place::Kind::keys && place.kind != Place::Kind::values) return;
    const Graph& attention = task_.stitched.pieces[pieces_.next(piece)].graph;
    const std::string layer = layer_name(attention, attention.first());
    tensor = place.kind == Place::Kind::keys ? pages_.keys(layer) : pages_.values(layer);
  };
  for (std::size_t i = 0; i < launch.reads.size(); ++i) replace(launch.reads[i], node.reads[i]);
  for (std::size_t i = 0; i < launch.writes.size(); ++i) replace(launch.writes[i], node.writes[i]);
}

Result<std::vector<LaunchNode>> LaunchRecorder::in_step(std::size_t step, std::int64_t tokens,
                                                        std::int64_t query) const {
  const PieceId piece = task_.plan.steps[step].piece;
  auto out = PW_TRY(launches(piece, tokens, query));
  if (step == 0 || !pieces_.class_of(piece).attention) return out;
  const PieceProgram& before = pieces_.class_of(task_.plan.steps[step - 1].piece).program;
  if (before.fills_pages_for(tokens)) out.erase(out.begin());
  return out;
}

Result<std::vector<LaunchNode>> LaunchRecorder::next_inputs(std::int64_t tokens) const {
  const Graph& graph = task_.source;
  const Symbols symbols = symbols_at(task_.plan, tokens);
  const auto outputs = PW_TRY(memory_.tensors(graph.outputs(), symbols));
  std::vector<LaunchNode> out;
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i) {
    const ValueId input = graph.written_inputs()[i];
    if (!task_.continues(input)) continue;
    LaunchNode copy;
    copy.kind = LaunchNode::Kind::copy;
    copy.name = fmt::format("next {}", graph.value_name(input));
    copy.reads = {outputs[graph.returned_count() + i]};
    copy.writes = {PW_TRY(memory_.tensor(input, symbols))};
    const MemoryRange own = copy.writes[0].range();
    const bool shared = std::any_of(outputs.begin(), outputs.end(), [&](const DeviceTensor& other) {
      return other.range().meets(own);
    });
    if (!shared) out.push_back(std::move(copy));
  }
  return out;
}

void LaunchRecorder::connect(RecordedGraph& graph) const {
  order_nodes(graph);
  start_early(graph, pieces_.waiting());
  if (task_.starts_early() && !task_.options.early_at_a_loss)
    EdgeChooser(task_.driver.arch(), pieces_.kernels()).choose(graph);
}

Result<RecordedGraph> LaunchRecorder::record(PieceId piece, std::int64_t tokens) const {
  auto nodes = PW_TRY(program(piece, tokens));
  RecordedGraph out{fmt::format("{} of {} tokens", task_.stitched.pieces[piece].name, tokens),
                    std::move(nodes)};
  connect(out);
  return out;
}

Result<RecordedGraph> LaunchRecorder::record_steps(std::size_t first, std::size_t end,
                                                   std::int64_t tokens, std::int64_t query) const {
  RecordedGraph out{fmt::format("step of {} tokens", tokens), {}};
  for (std::size_t i = first; i < end; ++i) {
    // A graph that begins at attention has not put its rows.
    auto nodes = PW_TRY(i == first ? launches(task_.plan.steps[i].piece, tokens, query)
                                   : in_step(i, tokens, query));
    std::move(nodes.begin(), nodes.end(), std::back_inserter(out.nodes));
  }
  if (end == task_.plan.steps.size()) {
    auto nodes = PW_TRY(next_inputs(tokens));
    std::move(nodes.begin(), nodes.end(), std::back_inserter(out.nodes));
  }
  connect(out);
  return out;
}

Result<RecordedGraph> LaunchRecorder::record_loop(std::int64_t tokens, std::int64_t query,
                                                  LaunchNode end) const {
  auto out = PW_TRY(record_steps(0, task_.plan.steps.size(), tokens, query));
  out.name = fmt::format("steps of {} tokens", tokens);
  out.condition = out.nodes.size();
  out.nodes.push_back(std::move(end));
  connect(out);
  return out;
}

}  // namespace pw::cuda
