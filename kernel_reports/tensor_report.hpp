// Report on the tensor-core kernels of a plan that replace library calls: static figures, lower
// bounds by bytes and multiplications, and modeled times.
#pragma once

#include <string>
#include <vector>

#include "codegen/cache/cache.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/matmul/schedules.hpp"
#include "kernel_reports/sass.hpp"
#include "splitter/splitter.hpp"

namespace pw::cuda {

struct TensorReport {
  std::string op, arch;
  std::string work;    ///< "4096x4096x6144", or "4096 tokens, 32 heads in 8 groups of 128"
  std::string kernel;  ///< kernel name
  std::string tile;    ///< "128x256, 3 stages"
  int parts = 1;       ///< maximum number of splits of k or of the keys
  std::size_t uses = 0;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  std::optional<Usage> usage;  ///< nothing if not compiled
  int resident = 0;            ///< blocks on a multiprocessor
  double occupancy = 0;
  std::optional<SassCounts> sass;
  double bound_seconds = 0, seconds = 0;  ///< lower bound, and modeled time
  double adding = 0;                      ///< modeled time to combine partial tiles or key splits
  std::string bound_by;                   ///< the dominating term of the model
  /// Lower bound over all tiles, by kind: see ProductFloor and AttentionFloor.
  std::optional<double> floor_seconds = std::nullopt;
  std::string floor_by = {};
  /// Exact counts over its launches for this work; nothing if they are not known statically.
  std::optional<AccessCounts> accesses;
  std::string error;  ///< error of the compiler or the disassembler
};

struct TensorRequest {
  std::vector<std::string> archs;
  std::string tokens_symbol;
  std::int64_t tokens = 1;
  std::int64_t query = 1;                    ///< new tokens of each sequence in a decode
  const ScheduleTable* schedules = nullptr;  ///< tuned tiles; null: the model's choice
  const Nvrtc* nvrtc = nullptr;              ///< null or absent: not compiled
  CompileCache* cache = nullptr;
};

/// Returns reports by piece class, node, and architecture; omits those unknown to the models. An
/// attention step of up to 256 tokens has that many sequences with 4096 keys each; a longer one is
/// the prefill of one sequence. Decodes with as many tokens follow if they use another kernel.
[[nodiscard]] std::vector<TensorReport> tensor_reports(const StitchedGraph& pieces,
                                                       const TensorRequest& request,
                                                       const Disassembler& disassembler);

}  // namespace pw::cuda
