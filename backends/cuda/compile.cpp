// Exports compile_pieces.
#include "backends/cuda/compile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "graph/build.hpp"

namespace pw::cuda {
namespace {

using Kind = NodeReport::Kind;

bool is_library(const Op& op) {
  constexpr std::array kCalls{"mm", "addmm", "scaled_mm", "unified_attention"};
  return !op.has_body() &&
         (op.traits.collective || std::find(kCalls.begin(), kCalls.end(), op.name) != kCalls.end());
}

/// Result 0 is the operand, byte for byte.
bool keeps_bytes(const Graph& graph, NodeId n) {
  const Op& op = graph.op_of(n);
  if (!op.traits.view || graph.operand_count(n) != 1) return false;
  if (op.name == "reshape") return true;
  return graph.attributes(n) == Attributes::empty() &&
         graph.type(graph.operand(n, 0)) == graph.type(graph.result(n));
}

class Compiler {
 public:
  explicit Compiler(CompileReport& report) : report_(report) {}

  void add(const StitchedGraph& pieces, const PieceClass& piece_class) {
    ClassReport entry{piece_class.name, piece_class.members.size(), piece_class.splitting, {}};
    class_ = &entry;
    Graph graph = pieces.pieces[piece_class.members.front()].graph.compact();
    for (NodeId n : graph.order()) node(graph, n, 0);
    report_.classes.push_back(std::move(entry));
  }

 private:
  void node(Graph& graph, NodeId n, int depth) {
    const Op op = graph.op_of(n);  // a copy: taking apart interns
    NodeReport entry{std::string(graph.node_name(n)), op.name, Kind::opaque, {}, {}};
    if (op.name == "constant") {
      entry.kind = Kind::literal;
    } else if (keeps_bytes(graph, n)) {
      entry.kind = Kind::view;
    } else if (is_library(op)) {
      entry.kind = Kind::library;
    } else if (auto program = rows::lower_node(graph, n)) {
      entry.kind = Kind::kernel;
      entry.kernel = kernel(*program);
    } else {
      entry.reason = program.error().reason;
      if (program.error().call && op.has_body() && depth < kMaxDepth)
        return take_apart(graph, n, std::move(entry), depth);
    }
    class_->nodes.push_back(std::move(entry));
  }

  void take_apart(Graph& graph, NodeId n, NodeReport entry, int depth) {
    auto made = inline_node(graph, n);
    entry.kind = made ? Kind::parts : Kind::opaque;
    class_->nodes.push_back(std::move(entry));
    if (!made) return;
    for (NodeId part : *made) node(graph, part, depth + 1);
  }

  std::size_t kernel(const rows::RowProgram& program) {
    Kernel emitted = emit(program);
    const auto [found, fresh] = by_name_.emplace(emitted.name, report_.kernels.size());
    if (fresh)
      report_.kernels.push_back(
          {std::move(emitted), rows::print(program), class_->name, 0, {}, {}});
    report_.kernels[found->second].uses += class_->members;
    return found->second;
  }

  static constexpr int kMaxDepth = 8;
  CompileReport& report_;
  ClassReport* class_ = nullptr;
  std::map<std::string, std::size_t> by_name_;
};

void compile_kernels(CompileReport& report, const CompileOptions& options, const Nvrtc& nvrtc) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < report.kernels.size(); i = next++) {
      KernelReport& k = report.kernels[i];
      auto cubin = nvrtc.compile(source_file(k.kernel), k.kernel.name, options.arch);
      if (cubin)
        k.cubin = std::move(*cubin);
      else
        k.error = cubin.error().front().message;
    }
  };
  std::vector<std::thread> others;
  const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(std::max(options.threads, 1)),
                                            std::max<std::size_t>(report.kernels.size(), 1));
  for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
}

}  // namespace

std::size_t CompileReport::count(Kind kind) const {
  std::size_t n = 0;
  for (const ClassReport& c : classes)
    n += static_cast<std::size_t>(std::count_if(
        c.nodes.begin(), c.nodes.end(), [&](const NodeReport& r) { return r.kind == kind; }));
  return n;
}
std::size_t CompileReport::failed() const {
  return static_cast<std::size_t>(std::count_if(
      kernels.begin(), kernels.end(), [](const KernelReport& k) { return !k.error.empty(); }));
}
std::size_t CompileReport::spilling() const {
  return static_cast<std::size_t>(
      std::count_if(kernels.begin(), kernels.end(),
                    [](const KernelReport& k) { return k.cubin && k.cubin->usage.spills(); }));
}

CompileReport compile_pieces(const StitchedGraph& pieces, const CompileOptions& options,
                             const Nvrtc& nvrtc) {
  CompileReport report;
  report.context = pieces.stitch.context_ptr();
  report.arch = options.arch;
  report.nvrtc = nvrtc.state();
  report.compiled = !options.sources_only && nvrtc.present();
  Compiler compiler(report);
  for (const PieceClass& c : pieces.classes) compiler.add(pieces, c);
  if (report.compiled) compile_kernels(report, options, nvrtc);
  return report;
}

}  // namespace pw::cuda
