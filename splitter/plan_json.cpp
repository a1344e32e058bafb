// The text form of a plan, described in docs/formats.md.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "splitter/plan_text.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t x) {
  char text[19];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
  return text;
}

Json step_json(const Plan::Step& step, const PlanDocument& document, std::size_t i) {
  const PlanDocument::Piece& piece = document.pieces[i];
  Json out = {{"piece", piece.name},
              {"class", document.classes[step.piece_class.index].name},
              {"captured", step.captured}};
  if (!step.reason.empty()) out["reason"] = step.reason;
  out["nodes"] = piece.nodes;
  out["inputs"] = piece.inputs;
  out["outputs"] = piece.outputs;
  return out;
}

Json capture_json(const Capture& capture) {
  const DispatchKey& key = capture.key;
  Json out = {{"mode", name(capture.mode)}, {"tokens", key.tokens}};
  if (key.requests > 0) out["requests"] = key.requests;
  if (key.query > 0) out["query"] = key.query;
  if (key.loras > 0) out["loras"] = key.loras;
  out["graphs"] = capture.graphs;
  out["nodes"] = capture.nodes;
  out["input_bytes"] = capture.input_bytes;
  out["live_bytes"] = capture.live_bytes;
  return out;
}

Json class_json(const PlanDocument::Class& c) {
  return {
      {"name", c.name}, {"hash", hex(c.hash)}, {"splitting", c.splitting}, {"pieces", c.pieces}};
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
  Json out = {{"arena_bytes", memory.arena_bytes},       {"live_bytes", memory.live_bytes},
              {"crossing_bytes", memory.crossing_bytes}, {"input_bytes", memory.input_bytes},
              {"weight_bytes", memory.weight_bytes},     {"buffer_bytes", memory.buffer_bytes}};
  if (memory.cache_bytes > 0) out["cache_bytes"] = memory.cache_bytes;
  if (memory.workspace_bytes > 0)
    out["workspace"] = {{"offset", memory.workspace_offset}, {"bytes", memory.workspace_bytes}};
  out["slots"] = std::move(slots);
  if (!memory.scratch.empty()) {
    out["scratch"] = Json::array();
    for (const std::vector<Scratch>& piece : memory.scratch) {
      out["scratch"].push_back(Json::array());
      for (const Scratch& s : piece)
        out["scratch"].back().push_back({{"value", s.name},
                                         {"offset", s.offset},
                                         {"bytes", s.bytes},
                                         {"launches", {s.first, s.last}}});
    }
  }
  return out;
}

bool is_flat(const Json& value) {
  if (!value.is_structured()) return true;
  for (const Json& part : value)
    if (part.is_structured() && !(part.is_array() && is_flat(part))) return false;
  return true;
}

/// Writes values without objects on one line, so that a slot or a list of sizes is one line of a
/// diff.
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

std::string to_json(const PlanDocument& document) {
  const Plan& plan = document.plan;
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
  out["eager_multiple"] = plan.eager_multiple;
  out["max_requests"] = plan.max_requests;
  out["speculative_tokens"] = plan.speculative_tokens;
  out["loras"] = plan.loras;
  if (!plan.notes.empty()) out["notes"] = plan.notes;
  out["captures"] = Json::array();
  for (const Capture& capture : plan.captures) out["captures"].push_back(capture_json(capture));
  out["steps"] = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    out["steps"].push_back(step_json(plan.steps[i], document, i));
  out["classes"] = Json::array();
  for (const PlanDocument::Class& c : document.classes) out["classes"].push_back(class_json(c));
  out["memory"] = memory_json(plan.memory);
  std::string text;
  write(text, out, 0);
  return text + "\n";
}

std::string plan_to_json(const Plan& plan, const StitchedGraph& pieces) {
  return to_json(describe(plan, pieces));
}

}  // namespace pw
