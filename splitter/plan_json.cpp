// Exports plan_to_json: the text form of a plan, described in docs/formats.md.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "splitter/plan.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t x) {
  char text[19];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
  return text;
}

Json names_of(const Graph& source, const std::vector<ValueId>& values) {
  Json names = Json::array();
  for (const ValueId v : values) names.push_back(source.value_name(v));
  return names;
}

Json step_json(const Plan::Step& step, const StitchedGraph& stitched) {
  const Piece& piece = stitched.pieces[step.piece];
  Json out = {{"piece", piece.name},
              {"class", stitched.classes[step.piece_class].name},
              {"captured", step.captured}};
  if (!step.reason.empty()) out["reason"] = step.reason;
  out["nodes"] = piece.graph.node_count();
  out["inputs"] = names_of(piece.graph, piece.graph.inputs());
  out["outputs"] = names_of(piece.graph, piece.graph.outputs());
  return out;
}

Json class_json(const PieceClass& c, const StitchedGraph& stitched) {
  Json members = Json::array();
  for (const PieceId p : c.members) members.push_back(stitched.pieces[p].name);
  return {{"name", c.name}, {"hash", hex(c.hash)}, {"splitting", c.splitting}, {"pieces", members}};
}

Json slot_json(const Slot& slot, const std::string& storage) {
  Json out = {{"value", slot.name},
              {"offset", slot.offset},
              {"bytes", slot.bytes},
              {"steps", {slot.first, slot.last}},
              {"nodes", {slot.begin, slot.end}},
              {"crossing", slot.crossing}};
  if (slot.storage != slot.value) out["storage"] = storage;
  return out;
}

Json memory_json(const MemoryPlan& memory) {
  std::map<ValueId, std::string> names;
  for (const Slot& slot : memory.slots) names.emplace(slot.value, slot.name);
  Json slots = Json::array();
  for (const Slot& slot : memory.slots) slots.push_back(slot_json(slot, names[slot.storage]));
  return {{"arena_bytes", memory.arena_bytes},
          {"live_bytes", memory.live_bytes},
          {"crossing_bytes", memory.crossing_bytes},
          {"input_bytes", memory.input_bytes},
          {"weight_bytes", memory.weight_bytes},
          {"buffer_bytes", memory.buffer_bytes},
          {"slots", std::move(slots)}};
}

bool is_flat(const Json& value) {
  if (!value.is_structured()) return true;
  for (const Json& part : value)
    if (part.is_structured() && !(part.is_array() && is_flat(part))) return false;
  return true;
}

/// What holds no object stands on one line, so that a slot or a list of sizes is a line of a diff.
void write(std::string& out, const Json& value, std::size_t depth) {
  if (is_flat(value) && (depth >= 2 || !value.is_object())) {
    out += value.dump();
    return;
  }
  const bool object = value.is_object();
  const std::string indent(2 * (depth + 1), ' ');
  out += object ? "{" : "[";
  bool first = true;
  for (auto item = value.begin(); item != value.end(); ++item) {
    out += first ? "\n" : ",\n";
    first = false;
    out += indent;
    if (object) out += Json(item.key()).dump() + ": ";
    write(out, item.value(), depth + 1);
  }
  out += "\n" + std::string(2 * depth, ' ') + (object ? "}" : "]");
}

}  // namespace

std::string plan_to_json(const Plan& plan, const StitchedGraph& pieces) {
  Json out;
  out["format"] = "piecewise.plan/1";
  out["graph"] = plan.graph;
  out["mode"] = plan.mode;
  if (!plan.mode_reason.empty()) out["mode_reason"] = plan.mode_reason;
  out["tokens"] =
      plan.tokens.empty() ? Json(nullptr) : Json{{"symbol", plan.tokens}, {"max", plan.max_tokens}};
  if (!plan.bound.empty()) out["bound"] = plan.bound;
  out["ranges"] = Json::array();
  for (const Range& range : plan.ranges) out["ranges"].push_back({range.begin, range.end});
  out["compile_sizes"] = plan.compile_sizes;
  out["capture_sizes"] = plan.capture.sizes;
  if (plan.eager_multiple > 1) out["eager_multiple"] = plan.eager_multiple;
  if (!plan.notes.empty()) out["notes"] = plan.notes;
  out["steps"] = Json::array();
  for (const Plan::Step& step : plan.steps) out["steps"].push_back(step_json(step, pieces));
  out["classes"] = Json::array();
  for (const PieceClass& c : pieces.classes) out["classes"].push_back(class_json(c, pieces));
  out["memory"] = memory_json(plan.memory);
  std::string text;
  write(text, out, 0);
  return text + "\n";
}

}  // namespace pw
