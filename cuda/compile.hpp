// Compiles pieces to kernels: each fusion group of a piece class becomes a kernel, equal ones once;
// all other nodes are listed with a reason. With NVRTC the sources become cubins; without it they
// stay sources, and the report says so.
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

/// Whether a node of this op runs on CUDA as it is, without looking into a body.
[[nodiscard]] bool has_kernel(const Op& op);

struct CompileOptions {
  std::vector<std::string> archs{"sm_90"};
  bool strict = false;  ///< see Target
  int threads = 2;      ///< that compile at the same time
  bool sources_only = false;
  CompileCache* cache = nullptr;  ///< of cubins; null: each is compiled
  rows::GroupingOptions grouping;
  /// A kernel gets the schedule that was tuned for the first architecture; null: the usual one.
  const ScheduleTable* schedules = nullptr;
  std::int64_t tokens = 1;  ///< that it is taken for
};

/// One node of a piece class, of its first member. A node whose body is no row program as a whole
/// is taken apart: its parts follow.
struct NodeReport {
  enum class Kind {
    kernel,
    view,     ///< the operand's bytes as they are: nothing runs
    literal,  ///< a constant, folded into the kernels that read it
    library,  ///< GEMM, attention, collectives
    parts,    ///< taken apart
    opaque,   ///< nothing runs it on CUDA yet; `reason` says why
  };
  std::string node, op;
  Kind kind = Kind::opaque;
  std::optional<std::size_t> kernel;  ///< index into CompileReport::kernels
  std::string reason;                 ///< of opaque and parts
};

/// A kernel compiled for one architecture.
struct TargetReport {
  std::string arch;
  std::optional<Cubin> cubin;
  std::string error;  ///< NVRTC's, when it failed
};

struct KernelReport {
  Kernel kernel;
  std::optional<rows::RowProgram> program;  ///< absent: the text is this op's own
  std::string folder;                       ///< the first class that has it
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
  bool compiled = false;  ///< cubins were asked for and NVRTC is present
  std::vector<KernelReport> kernels;
  std::vector<ClassReport> classes;
  [[nodiscard]] std::size_t count(NodeReport::Kind kind) const;  ///< over classes, a class once
  [[nodiscard]] std::size_t failed() const;  ///< targets of kernels that NVRTC refused
  [[nodiscard]] std::size_t spilling() const;
};

[[nodiscard]] std::string_view name(NodeReport::Kind kind);

/// Inlines the ops whose bodies are no row programs, recursively. `note` is called for each, with
/// the reason, before it is replaced.
void take_apart(Graph& graph, const std::function<void(NodeId, const std::string& reason)>& note);

/// Never fails as a whole: what cannot be compiled is in the report.
CompileReport compile_pieces(const StitchedGraph& pieces, const CompileOptions& options,
                             const Nvrtc& nvrtc);

/// Writes CLASS/k_….cu, .txt (the row program) and .sm_….cubin, report.json, report.txt, and
/// plan.json if its text is given. Each file is complete or absent.
Status write_compiled(const CompileReport& report, const std::string& folder,
                      const std::string& plan_json = {});

/// For people: kernels with registers and spills, library calls, what is opaque and why.
[[nodiscard]] std::string print(const CompileReport& report);
[[nodiscard]] std::string to_json(const CompileReport& report);

}  // namespace pw::cuda
