#include "cuda/compile.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/kernel.hpp"
#include "codegen/rowprogram/decisions.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "cuda/kernels/topk.hpp"
#include "graph/build.hpp"
#include "tensor/parallel.hpp"

namespace pw::cuda {
namespace {

using ReportKind = NodeReport::Kind;

constexpr int kMaxDepth = 8;  // limit of nested bodies

/// Returns true for ops that libraries implement: matrix products, attention, collectives.
bool is_library(const Op& op) {
  return is_library_call(op) || (!op.has_body() && op.traits.collective);
}

void take_one_apart(Graph& graph, NodeId n, int depth,
                    const std::function<void(NodeId, const std::string&)>& note) {
  const Op op = graph.op_of(n);  // a copy, because inlining interns
  if (!op.has_body() || depth >= kMaxDepth) return;
  const auto program = rows::lower_node(graph, n);
  if (program) return;
  note(n, program.error().reason);
  auto made = inline_node(graph, n);
  if (!made) return;
  for (NodeId part : *made) take_one_apart(graph, part, depth + 1, note);
}

class Compiler {
 public:
  Compiler(CompileReport& report, const CompileOptions& options, std::string tokens_symbol)
      : report_(report), options_(options) {
    if (options.archs.empty()) return;
    schedules_ = {options.schedules, options.archs.front(), std::move(tokens_symbol),
                  options.tokens};
  }

  void add(const StitchedGraph& pieces, const PieceClass& piece_class) {
    ClassReport entry{piece_class.name, piece_class.members.size(), piece_class.splitting, {}};
    class_ = &entry;
    Graph graph = pieces.pieces[piece_class.members.front()].graph.compact();
    decompose(graph, [&](NodeId n, const std::string& reason) {
      entry.nodes.push_back({std::string(graph.node_name(n)), graph.op_of(n).name,
                             ReportKind::parts, std::nullopt, reason});
    });
    const std::vector<rows::RunUnit> units = rows::group_rows(graph, options_.grouping);
    exact_ = rows::any_decides(units);
    for (const rows::RunUnit& unit : units) {
      for (const NodeReport& n : reports(graph, unit)) class_->nodes.push_back(n);
    }
    report_.classes.push_back(std::move(entry));
  }

 private:
  std::vector<NodeReport> reports(const Graph& graph, const rows::RunUnit& unit) {
    std::optional<std::size_t> index;
    if (unit.kind == rows::RunUnit::Kind::rows) {
      Kernel kernel = emit(unit.program, schedules_.of(unit.program));
      index = known(exact_ ? exact(std::move(kernel)) : std::move(kernel), unit.program);
    } else if (unit.kind == rows::RunUnit::Kind::opaque) {
      if (auto own = topk_kernel(graph, unit.nodes.front()))
        index = known(std::move(*own), std::nullopt);
    }
    std::vector<NodeReport> out;
    for (NodeId n : unit.nodes) {
      NodeReport entry{
          std::string(graph.node_name(n)), graph.op_of(n).name, ReportKind::opaque, index, {}};
      switch (unit.kind) {
        case rows::RunUnit::Kind::rows: entry.kind = ReportKind::kernel; break;
        case rows::RunUnit::Kind::view: entry.kind = ReportKind::view; break;
        case rows::RunUnit::Kind::literal: entry.kind = ReportKind::literal; break;
        case rows::RunUnit::Kind::opaque:
          if (index)
            entry.kind = ReportKind::kernel;
          else if (is_library(graph.op_of(n)))
            entry.kind = ReportKind::library;
          else
            entry.reason = unit.why.reason;
      }
      out.push_back(std::move(entry));
    }
    return out;
  }

  std::size_t known(Kernel emitted, std::optional<rows::RowProgram> program) {
    const auto [found, fresh] = by_name_.emplace(emitted.name, report_.kernels.size());
    if (fresh)
      report_.kernels.push_back({std::move(emitted), std::move(program), class_->name, 0, {}});
    report_.kernels[found->second].uses += class_->members;
    return found->second;
  }

  CompileReport& report_;
  const CompileOptions& options_;
  ScheduleChoice schedules_;
  ClassReport* class_ = nullptr;
  bool exact_ = false;  ///< the class decides by computed numbers
  std::map<std::string, std::size_t> by_name_;
};

void compile_kernels(CompileReport& report, const CompileOptions& options, const Nvrtc& nvrtc) {
  for (KernelReport& k : report.kernels) {
    for (const std::string& arch : options.archs) k.targets.push_back({arch, {}, {}});
  }
  // Compile the longest sources first, so that none is left for the end.
  std::vector<std::pair<KernelReport*, TargetReport*>> jobs;
  for (KernelReport& k : report.kernels) {
    for (TargetReport& target : k.targets) jobs.emplace_back(&k, &target);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.first->kernel.source.size() > b.first->kernel.source.size();
  });
  parallel_jobs(
      jobs.size(), static_cast<std::size_t>(std::max(options.threads, 1)), [&](std::size_t i) {
        const Kernel& kernel = jobs[i].first->kernel;
        TargetReport& target = *jobs[i].second;
        auto cubin = cubin_of(nvrtc, options.cache, kernel, {target.arch, options.strict});
        if (cubin)
          target.cubin = std::move(*cubin);
        else
          target.error = cubin.error().front().message;
      });
}

}  // namespace

bool has_kernel(const Op& op) {
  return rows::is_row_primitive(op.primitive) || is_library_call(op) ||
         among(op.primitive, {Primitive::keep_topk, Primitive::argmax}) ||
         find_collective(op.primitive) != nullptr;
}

void decompose(Graph& graph, const std::function<void(NodeId, const std::string&)>& note) {
  for (NodeId n : graph.order()) take_one_apart(graph, n, 0, note);
}

std::size_t CompileReport::count(ReportKind kind) const {
  std::size_t n = 0;
  for (const ClassReport& c : classes)
    n += static_cast<std::size_t>(std::count_if(
        c.nodes.begin(), c.nodes.end(), [&](const NodeReport& r) { return r.kind == kind; }));
  return n;
}
std::size_t CompileReport::failed() const {
  std::size_t n = 0;
  for (const KernelReport& k : kernels)
    n += static_cast<std::size_t>(
        std::count_if(k.targets.begin(), k.targets.end(),
                      [](const TargetReport& target) { return !target.error.empty(); }));
  return n;
}
std::size_t CompileReport::spilling() const {
  std::size_t n = 0;
  for (const KernelReport& k : kernels)
    n += static_cast<std::size_t>(std::count_if(
        k.targets.begin(), k.targets.end(),
        [](const TargetReport& target) { return target.cubin && target.cubin->usage.spills(); }));
  return n;
}

CompileReport compile_pieces(const StitchedGraph& pieces, const CompileOptions& options,
                             const Nvrtc& nvrtc) {
  CompileReport report;
  report.context = pieces.stitch.context_ptr();
  report.archs = options.archs;
  report.strict = options.strict;
  report.nvrtc = nvrtc.state();
  report.compiled = !options.sources_only && nvrtc.present();
  Compiler compiler(report, options, pieces.stitch.facts.tokens());
  for (const PieceClass& c : pieces.classes) compiler.add(pieces, c);
  if (report.compiled) compile_kernels(report, options, nvrtc);
  return report;
}

}  // namespace pw::cuda
