#include <nlohmann/json.hpp>

#include "cuda/compile.hpp"

namespace pw::cuda {
namespace {

using Json = nlohmann::ordered_json;

Json target_json(const KernelReport& k, const TargetReport& target) {
  Json out{{"arch", target.arch}};
  if (!target.error.empty()) out["error"] = target.error;
  if (!target.cubin) return out;
  const Usage& u = target.cubin->usage;
  const Traffic& t = target.cubin->traffic;
  out["cubin"] = k.folder + "/" + k.kernel.name + "." + target.arch + ".cubin";
  out["bytes"] = target.cubin->bytes.size();
  out["registers"] = u.registers;
  out["stack"] = u.stack;
  out["spill_stores"] = u.spill_stores;
  out["spill_loads"] = u.spill_loads;
  out["wide_reads"] = t.wide_reads;
  out["narrow_reads"] = t.narrow_reads;
  out["wide_writes"] = t.wide_writes;
  out["narrow_writes"] = t.narrow_writes;
  return out;
}

Json kernel_json(const CompileReport& report, const KernelReport& k) {
  Json types = Json::array(), params = Json::array();
  for (TypeId t : k.kernel.arguments) types.push_back(report.context->types.print(t));
  for (DimId d : k.kernel.params) params.push_back(report.context->dims.print(d));
  Json out{{"name", k.kernel.name},
           {"op", k.kernel.op},
           {"source", k.folder + "/" + k.kernel.name + ".cu"},
           {"arguments", types},
           {"results", k.kernel.results},
           {"params", params},
           {"uses", k.uses}};
  out["threads"] = k.kernel.threads;
  out["rows_per_block"] = k.kernel.rows_per_block;
  out["column_blocks"] = k.kernel.column_blocks;
  out["shared_bytes"] = k.kernel.shared_bytes;
  out["schedule"] = {{"block", k.kernel.schedule.block},
                     {"passes", k.kernel.schedule.passes},
                     {"resident", k.kernel.schedule.resident},
                     {"kept_words", k.kernel.schedule.kept_words}};
  Json elements = Json::array(), targets = Json::array();
  for (const ElementAccess& e : k.kernel.elements)
    elements.push_back(
        {{"argument", e.argument}, {"access", e.store ? "write" : "read"}, {"reason", e.why}});
  out["by_element"] = elements;
  for (const TargetReport& target : k.targets) targets.push_back(target_json(k, target));
  out["targets"] = targets;
  return out;
}

Json node_json(const CompileReport& report, const NodeReport& n) {
  Json out{{"node", n.node}, {"op", n.op}, {"kind", std::string(name(n.kind))}};
  if (n.kernel) out["kernel"] = report.kernels[*n.kernel].kernel.name;
  if (!n.reason.empty()) out["reason"] = n.reason;
  return out;
}

}  // namespace

std::string to_json(const CompileReport& report) {
  Json kernels = Json::array(), classes = Json::array();
  for (const KernelReport& k : report.kernels) kernels.push_back(kernel_json(report, k));
  for (const ClassReport& c : report.classes) {
    Json nodes = Json::array();
    for (const NodeReport& n : c.nodes) nodes.push_back(node_json(report, n));
    classes.push_back(
        {{"name", c.name}, {"members", c.members}, {"splitting", c.splitting}, {"nodes", nodes}});
  }
  const Json out{{"format", "piecewise.compile/1"},
                 {"archs", report.archs},
                 {"strict", report.strict},
                 {"nvrtc", report.nvrtc},
                 {"compiled", report.compiled},
                 {"kernels", kernels},
                 {"classes", classes}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pw::cuda
