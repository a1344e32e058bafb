// Writes the classes of pieces, and a plan: its steps, memory, and sizes by tokens.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "viz/formats/page_writer.hpp"
#include "viz/label.hpp"

namespace pw::viz {
namespace {

using Json = nlohmann::ordered_json;

/// Returns each op of a graph with the number of its nodes, in order, without constants.
Json ops_json(const Graph& graph) {
  Json out = Json::array();
  std::map<std::string, std::size_t> known;
  for (const NodeId n : graph.order()) {
    if (is_inlined(graph, n)) continue;
    const std::string op = clean(graph.op_of(n).name);
    const auto [found, fresh] = known.try_emplace(op, out.size());
    if (fresh) out.push_back({op, 0});
    Json& count = out[found->second][1];
    count = count.get<std::size_t>() + 1;
  }
  return out;
}

Json classes_json(const StitchedGraph& stitched) {
  Json out = Json::array();
  for (const PieceClass& c : stitched.classes) {
    const Piece& first = stitched.pieces[c.members.front()];
    out.push_back({{"name", c.name},
                   {"first", first.name},
                   {"count", c.members.size()},
                   {"nodes", first.graph.node_count()},
                   {"ops", ops_json(first.graph)},
                   {"captured", c.capturable()}});
  }
  return out;
}

/// The name and the class of each piece, in order.
void put_class_of(PageWriter& page, const StitchedGraph& stitched) {
  Ints out;
  for (const Piece& piece : stitched.pieces)
    out.insert(out.end(),
               {page.text(piece.name), static_cast<std::int64_t>(piece.piece_class.index)});
  page.put("classOf", out);
}

void put_steps(PageWriter& page, const PageParts& in, const Plan& plan) {
  Json reasons = Json::array();
  Ints captured;
  for (const Plan::Step& step : plan.steps) {
    captured.push_back(step.captured ? 1 : 0);
    reasons.push_back(step.reason);
  }
  page.put("stepCaptured", captured);
  if (in.input.pieces != nullptr) {
    Ints names;
    for (const Plan::Step& step : plan.steps)
      names.push_back(page.text(in.input.pieces->pieces[step.piece].name));
    page.put("stepName", names);
  }
}

/// Once for each storage: name, first step, further steps, begin in the schedule, further nodes,
/// and the places of its bytes and its offset in their lists, which are short.
void put_slots(PageWriter& page, const MemoryPlan& memory) {
  Ints out, sizes, offsets;
  std::map<std::int64_t, std::int64_t> known_sizes, known_offsets;
  const auto place = [](std::map<std::int64_t, std::int64_t>& known, Ints& list,
                        std::int64_t number) {
    const auto next = static_cast<std::int64_t>(list.size());
    const auto [found, fresh] = known.try_emplace(number, next);
    if (fresh) list.push_back(number);
    return found->second;
  };
  for (const Slot& slot : memory.slots) {
    if (slot.storage.valid() && slot.storage != slot.value) continue;
    out.insert(
        out.end(),
        {page.text(slot.name), static_cast<std::int64_t>(slot.first),
         static_cast<std::int64_t>(slot.last - slot.first), static_cast<std::int64_t>(slot.begin),
         static_cast<std::int64_t>(slot.end - slot.begin), place(known_sizes, sizes, slot.bytes),
         place(known_offsets, offsets, slot.offset)});
  }
  page.put("slots", out);
  page.put("slotBytes", sizes);
  page.put("slotOffsets", offsets);
}

/// The size of each token count: first, last, rows, mode; one range a line. Rows 0: as many as
/// tokens, rounded up to the plan's multiple. Above the largest size all steps are alike.
void put_padding(PageWriter& page, const Plan& plan) {
  if (plan.tokens.empty()) return;
  const Dispatcher dispatcher(plan);
  const std::int64_t largest = plan.capture.sizes.empty() ? 0 : plan.capture.sizes.back();
  struct Run {
    std::int64_t first = 1, last = 1, rows = 0, mode = 0;
  };
  std::vector<Run> runs;
  for (std::int64_t tokens = 1; tokens <= std::min(plan.max_tokens, largest + 1); ++tokens) {
    const Dispatch found = dispatcher.dispatch({tokens, 1, tokens, 0});
    const bool alone = found.mode == DispatchMode::none &&
                       found.key.tokens == round_up(tokens, plan.eager_multiple);
    const Run run{tokens, tokens, alone ? 0 : found.key.tokens,
                  static_cast<std::int64_t>(found.mode)};
    if (!runs.empty() && runs.back().rows == run.rows && runs.back().mode == run.mode)
      runs.back().last = tokens;
    else
      runs.push_back(run);
  }
  if (!runs.empty() && runs.back().last > largest) runs.back().last = plan.max_tokens;
  Ints out;
  for (const Run& run : runs) out.insert(out.end(), {run.first, run.last, run.rows, run.mode});
  page.put("padding", out);
}

void put_plan(PageWriter& page, const PageParts& in, const Plan& plan) {
  Json ranges = Json::array(), captures = Json::array();
  for (const Range& range : plan.ranges) ranges.push_back({range.begin, range.end});
  for (const Capture& capture : plan.captures)
    captures.push_back({{"mode", std::string(name(capture.mode))},
                        {"key", print(capture.key)},
                        {"tokens", capture.key.tokens},
                        {"graphs", capture.graphs},
                        {"nodes", capture.nodes},
                        {"input", capture.input_bytes},
                        {"live", capture.live_bytes}});
  page.put("plan", dump(Json{{"mode", plan.mode},
                             {"reason", plan.mode_reason},
                             {"tokens", clean(plan.tokens)},
                             {"max", plan.max_tokens},
                             {"multiple", plan.eager_multiple},
                             {"ranges", ranges},
                             {"sizes", plan.capture.sizes},
                             {"captures", captures},
                             {"notes", plan.notes},
                             {"arena", plan.memory.arena_bytes},
                             {"live", plan.memory.live_bytes},
                             {"workspace", plan.memory.workspace_bytes},
                             {"weights", plan.memory.weight_bytes}}));
  put_steps(page, in, plan);
  put_slots(page, plan.memory);
  put_padding(page, plan);
}

}  // namespace

void put_pieces_and_plan(PageWriter& page, const PageParts& parts) {
  if (parts.input.pieces != nullptr) {
    page.put("classes", dump(classes_json(*parts.input.pieces)));
    put_class_of(page, *parts.input.pieces);
  }
  if (parts.input.plan != nullptr) put_plan(page, parts, *parts.input.plan);
}

}  // namespace pw::viz
