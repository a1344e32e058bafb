// Compiles pieces to kernels. Each fusion group of a piece class becomes a kernel, with equal ones
// compiled once; all other nodes are listed with a reason. With NVRTC the sources become cubins;
// without it they stay sources, and the report states this.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cache/cache.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/matmul/schedules.hpp"
#include "splitter/splitter.hpp"

namespace pw::cuda {

/// Returns true if a node of this op runs on CUDA directly, without expanding its body.
[[nodiscard]] bool has_kernel(const Op& op);

struct CompileOptions {
  std::vector<std::string> archs{"sm_90"};
  bool strict = false;  ///< see Target
  int threads = 2;      ///< concurrent compilations
  bool sources_only = false;
  CompileCache* cache = nullptr;  ///< cache of cubins; null: each is compiled
  rows::GroupingOptions grouping;
  /// Schedules for the first architecture; null: default schedules.
  const ScheduleTable* schedules = nullptr;
  std::int64_t tokens = 1;  ///< token count for the choice of schedules
};

/// One node of a piece class, from its first member. A node whose whole body is not a row program
/// is expanded; its parts follow.
struct NodeReport {
  enum class Kind {
    kernel,
    view,     ///< the operand's bytes unchanged: nothing runs
    literal,  ///< a constant, folded into the kernels that read it
    library,  ///< GEMM, attention, collectives
    parts,    ///< expanded
    opaque,   ///< not supported on CUDA; `reason` explains why
  };
  std::string node, op;
  Kind kind = Kind::opaque;
  std::optional<std::size_t> kernel;  ///< index into CompileReport::kernels
  std::string reason;                 ///< for opaque and parts
};

/// A kernel compiled for one architecture.
struct TargetReport {
  std::string arch;
  std::optional<Cubin> cubin;
  std::string error;  ///< NVRTC's message on failure
};

struct KernelReport {
  Kernel kernel;
  std::optional<rows::RowProgram> program;  ///< absent: the text is specific to this op
  std::string folder;                       ///< the first class with the kernel
  std::size_t uses = 0;                     ///< nodes, over all members of all classes
  std::vector<TargetReport> targets;        ///< empty: sources only
};

struct ClassReport {
  std::string name;
  std::size_t members = 0;
  bool splitting = false;
  std::vector<NodeReport> nodes;
};

struct CompileReport {
  ContextPtr context;
  std::vector<std::string> archs;
  bool strict = false;
  std::string nvrtc;      ///< state
  bool compiled = false;  ///< cubins were requested and NVRTC is present
  std::vector<KernelReport> kernels;
  std::vector<ClassReport> classes;
  [[nodiscard]] std::size_t count(NodeReport::Kind kind) const;  ///< over classes, each once
  [[nodiscard]] std::size_t failed() const;  ///< targets of kernels that NVRTC rejected
  [[nodiscard]] std::size_t spilling() const;
};

[[nodiscard]] std::string_view name(NodeReport::Kind kind);

/// Inlines the ops whose bodies are not row programs, recursively. `note` receives each node and
/// the reason before it is replaced.
void decompose(Graph& graph, const std::function<void(NodeId, const std::string& reason)>& note);

/// Compiles the pieces. It never fails as a whole: failures are in the report.
CompileReport compile_pieces(const StitchedGraph& pieces, const CompileOptions& options,
                             const Nvrtc& nvrtc);

/// Writes CLASS/k_….cu, .txt (the row program) and .sm_….cubin, report.json, report.txt, and
/// plan.json if its text is given. Each file is written completely or not at all.
Status write_compiled(const CompileReport& report, const std::string& folder,
                      const std::string& plan_json = {});

/// Returns the report for people: kernels with registers and spills, library calls, opaque nodes
/// and reasons.
[[nodiscard]] std::string print(const CompileReport& report);
[[nodiscard]] std::string to_json(const CompileReport& report);

}  // namespace pw::cuda
