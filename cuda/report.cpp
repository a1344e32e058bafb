#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cuda/compile.hpp"

namespace pw::cuda {
namespace {

std::string signature(const CompileReport& report, const Kernel& kernel) {
  std::vector<std::string> in, out;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    (i + kernel.results < kernel.arguments.size() ? in : out)
        .push_back(report.context->types.print(kernel.arguments[i]));
  }
  return fmt::format("({}) -> ({})", fmt::join(in, ", "), fmt::join(out, ", "));
}

std::string cost(const TargetReport& target) {
  if (!target.error.empty()) return "NVRTC rejected it: " + target.error;
  const Usage& u = target.cubin->usage;
  const Traffic& t = target.cubin->traffic;
  return fmt::format(
      "{} registers, {} bytes stack, {} bytes spilled; {} wide and {} narrow reads, {} wide and {} "
      "narrow writes; cubin of {} bytes",
      u.registers, u.stack, u.spill_stores + u.spill_loads, t.wide_reads, t.narrow_reads,
      t.wide_writes, t.narrow_writes, target.cubin->bytes.size());
}

std::string shape(const Kernel& k) {
  std::string out = fmt::format("{} thread{} a row", k.team, k.team == 1 ? "" : "s");
  if (k.rows_per_block > 1)
    out += fmt::format(", {} a block", pw::counted(k.rows_per_block, "row"));
  if (k.column_blocks > 1) out += fmt::format(", in {}", pw::counted(k.column_blocks, "block"));
  if (k.kept_words > 0)
    out += fmt::format(", {} kept in registers", pw::counted(k.kept_words, "word"));
  if (!(k.schedule == Schedule()))
    out += fmt::format(", tuned ({}, {} resident)",
                       k.schedule.passes == 1 ? "1 pass" : pw::counted(k.schedule.passes, "pass"),
                       k.schedule.resident);
  if (k.shared_bytes > 0) out += fmt::format(", {} bytes kept in shared memory", k.shared_bytes);
  return out;
}

/// Returns the number of nodes of each kind, and the reasons for opaque ones.
std::string summary(const CompileReport& report) {
  using NodeKind = NodeReport::Kind;
  std::string out =
      fmt::format("Nodes of the classes: {} in kernels, {}, {}, {}, {} decomposed, {} opaque.\n",
                  report.count(NodeKind::kernel), pw::counted(report.count(NodeKind::view), "view"),
                  pw::counted(report.count(NodeKind::literal), "literal"),
                  pw::counted(report.count(NodeKind::library), "library call"),
                  report.count(NodeKind::parts), report.count(NodeKind::opaque));
  std::map<std::string, std::size_t> reasons;
  for (const ClassReport& c : report.classes) {
    for (const NodeReport& n : c.nodes) {
      if (n.kind == NodeKind::opaque) ++reasons[fmt::format("{}: {}", n.op, n.reason)];
    }
  }
  for (const auto& [reason, times] : reasons) out += fmt::format("  {} × {}\n", times, reason);
  return out;
}

}  // namespace

std::string_view name(NodeReport::Kind kind) {
  switch (kind) {
    case NodeReport::Kind::kernel: return "kernel";
    case NodeReport::Kind::view: return "view";
    case NodeReport::Kind::literal: return "literal";
    case NodeReport::Kind::library: return "library call";
    case NodeReport::Kind::parts: return "decomposed";
    case NodeReport::Kind::opaque: return "opaque";
  }
  return "";
}

std::string print(const CompileReport& report) {
  std::string out = fmt::format(
      "{} for {}, {}. NVRTC: {}.\n", pw::counted(report.kernels.size(), "kernel"),
      fmt::join(report.archs, ", "), pw::counted(report.classes.size(), "class"), report.nvrtc);
  if (!report.compiled) out += "No cubins were compiled: sources only.\n";
  if (report.compiled)
    out += fmt::format("{} refused, {} with spills.\n", report.failed(), report.spilling());
  out += summary(report);
  if (!report.kernels.empty()) out += "\nkernels\n";
  for (const KernelReport& k : report.kernels) {
    out += fmt::format("  {} {}{}\n    {}, used {} time{}; {}\n", k.kernel.name, k.kernel.op,
                       signature(report, k.kernel), k.folder, k.uses, k.uses == 1 ? "" : "s",
                       shape(k.kernel));
    for (const TargetReport& target : k.targets)
      out += fmt::format("    {}: {}\n", target.arch, cost(target));
    for (const ElementAccess& e : k.kernel.elements)
      out += fmt::format("    p{} is {} element by element: {}\n", e.argument,
                         e.store ? "written" : "read", e.why);
  }
  for (const ClassReport& c : report.classes) {
    out += fmt::format("\n{} ({} piece{}{})\n", c.name, c.members, c.members == 1 ? "" : "s",
                       c.splitting ? ", splitting: runs eagerly" : "");
    for (const NodeReport& n : c.nodes) {
      out += fmt::format("  {} = {}: {}", n.node, n.op, name(n.kind));
      if (n.kernel) out += " " + report.kernels[*n.kernel].kernel.name;
      out += n.reason.empty() ? "\n" : ", " + n.reason + "\n";
    }
  }
  return out;
}

Status write_compiled(const CompileReport& report, const std::string& folder,
                      const std::string& plan_json) {
  const auto make = [](const std::string& path) -> Status {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error)
      return fail(error_in(path, "PW1224", "the folder cannot be created: " + error.message()));
    return {};
  };
  std::vector<std::pair<std::string, std::string>> files;
  if (auto made = make(folder); !made) return made;
  for (const KernelReport& k : report.kernels) {
    const std::string base = folder + "/" + k.folder;
    if (auto made = make(base); !made) return made;
    files.emplace_back(base + "/" + k.kernel.name + ".cu", source_file(k.kernel));
    if (k.program) files.emplace_back(base + "/" + k.kernel.name + ".txt", rows::print(*k.program));
    for (const TargetReport& target : k.targets) {
      if (target.cubin)
        files.emplace_back(fmt::format("{}/{}.{}.cubin", base, k.kernel.name, target.arch),
                           target.cubin->bytes);
    }
  }
  files.emplace_back(folder + "/report.json", to_json(report));
  files.emplace_back(folder + "/report.txt", print(report));
  if (!plan_json.empty()) files.emplace_back(folder + "/plan.json", plan_json);
  for (const auto& [path, text] : files) {
    if (auto written = write_file(path, text); !written) return written;
  }
  return {};
}

}  // namespace pw::cuda
