// The tensor-core kernels that a plan has where no library is: what is known of each without a
// device, beside the bounds by bytes and multiplications and what the models say of its time.
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
  std::string kernel;  ///< its name
  std::string tile;    ///< "128x256, 3 stages"
  int parts = 1;       ///< of k or of the keys, at most
  std::size_t uses = 0;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  std::optional<Usage> usage;  ///< nothing: not compiled
  int resident = 0;            ///< blocks of a multiprocessor
  double occupancy = 0;
  std::optional<SassCounts> sass;
  double bound_seconds = 0, seconds = 0;  ///< seconds: by the model
  double adding = 0;                      ///< of them: pieces of tiles, or parts of the keys
  std::string bound_by;                   ///< what the model says takes longest
  /// What no tile can beat, and by what: see ProductFloor and AttentionFloor.
  std::optional<double> floor_seconds = std::nullopt;
  std::string floor_by = {};
  /// Of its launches for this work, exact; nothing where they are not known beforehand.
  std::optional<AccessCounts> accesses;
  std::string error;  ///< the compiler's, or the disassembler's
};

struct TensorRequest {
  std::vector<std::string> archs;
  std::string tokens_symbol;
  std::int64_t tokens = 1;
  std::int64_t query = 1;                    ///< new tokens of each sequence of a decode
  const ScheduleTable* schedules = nullptr;  ///< tiles that tuning found; null: the model's
  const Nvrtc* nvrtc = nullptr;              ///< null, or absent: not compiled
  CompileCache* cache = nullptr;
};

/// By class of pieces, node and architecture; those that the models do not know are left out. Of
/// attention a step of up to 256 tokens is one of so many sequences of 4096 keys, and a longer one
/// the beginning of one sequence; decodes with so many tokens follow where they have another
/// kernel.
[[nodiscard]] std::vector<TensorReport> tensor_reports(const StitchedGraph& pieces,
                                                       const TensorRequest& request,
                                                       const Disassembler& disassembler);

}  // namespace pw::cuda
