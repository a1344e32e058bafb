#include "pipeline/report/plan_tables.hpp"

#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"

namespace pw {

Table memory_table(const Plan& plan) {
  Table table({"mode",
               "key",
               "graphs",
               "nodes",
               {"inputs", "inputs_bytes"},
               {"live", "live_bytes"},
               {"arena", "arena_bytes"},
               {"weights", "weights_bytes"},
               {"workspace", "workspace_bytes"}});
  const MemoryPlan& memory = plan.memory;
  const auto add = [&](const std::string& mode, const std::string& key, const Capture& capture) {
    table.add({mode, key, capture.graphs, capture.nodes, capture.input_bytes, capture.live_bytes,
               memory.arena_bytes, memory.weight_bytes, memory.workspace_bytes});
  };
  for (const Capture& capture : plan.captures)
    add(std::string(name(capture.mode)), print(capture.key), capture);
  Capture largest;
  largest.input_bytes = memory.input_bytes;
  largest.live_bytes = memory.live_bytes;
  add("none", plan.tokens.empty() ? "static" : counted(plan.max_tokens, "token"), largest);
  return table;
}

namespace {

/// Returns its name in vLLM's `compilation_counter` (vllm/compilation/counter.py, 0.33).
std::string name_in_vllm(const std::string& counter) {
  static const std::map<std::string, std::string> kNames{
      {"graphs_seen", "num_graphs_seen"},
      {"pieces", "num_piecewise_graphs_seen"},
      {"capturable_pieces", "num_piecewise_capturable_graphs_seen"},
      {"backend_compilations", "num_backend_compilations"},
      {"graphs_captured", "num_cudagraph_captured"}};
  const auto found = kNames.find(counter);
  return found == kNames.end() ? "" : found->second;
}

}  // namespace

Table counter_table(const Counters& counters) {
  Table table({"counter", "number", {"in vLLM", "vllm"}});
  for (const auto& [name, number] : counters.list()) table.add({name, number, name_in_vllm(name)});
  return table;
}

}  // namespace pw
