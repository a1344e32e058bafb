// Exports memory_table and counter_table.
#include "pipeline/plan_tables.hpp"

#include <fmt/format.h>

namespace pw {

Table memory_table(const Plan& plan) {
  Table table(
      {"mode", "key", "graphs", "nodes", "inputs", "live", "arena", "weights", "workspace"});
  const MemoryPlan& memory = plan.memory;
  const auto add = [&](const std::string& mode, const std::string& key, const Capture& capture) {
    table.add({mode, key, std::to_string(capture.graphs), std::to_string(capture.nodes),
               std::to_string(capture.input_bytes), std::to_string(capture.live_bytes),
               std::to_string(memory.arena_bytes), std::to_string(memory.weight_bytes),
               std::to_string(memory.workspace_bytes)});
  };
  for (const Capture& capture : plan.captures)
    add(std::string(name(capture.mode)), print(capture.key), capture);
  Capture largest;
  largest.input_bytes = memory.input_bytes;
  largest.live_bytes = memory.live_bytes;
  add("none", plan.tokens.empty() ? "static" : fmt::format("{} tokens", plan.max_tokens), largest);
  return table;
}

Table counter_table(const Counters& counters) {
  Table table({"counter", "number"});
  for (const auto& [name, number] : counters.list()) table.add({name, std::to_string(number)});
  return table;
}

}  // namespace pw
