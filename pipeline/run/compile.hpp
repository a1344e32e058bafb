// The kernels of a planned graph as CUDA sources and cubins, and the search for their schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cache/cache.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/tuning.hpp"
#include "pipeline/plan.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

/// That kernels are made for: sm_80, sm_90, sm_100, sm_120.
[[nodiscard]] const std::vector<std::string>& cuda_architectures();
/// PW1429 where one is none of these, or there is none.
Status check_architectures(const std::vector<std::string>& archs);

struct CompileRequest {
  PlanRequest plan;
  std::vector<std::string> archs{"sm_90"};
  bool fuse = true;     ///< neighbouring row ops are one kernel
  bool strict = false;  ///< the interpreter's bits
  bool sources_only = false;
  std::string schedules;    ///< see ScheduleTable::named
  std::int64_t tokens = 0;  ///< that schedules are taken for; 0: the plan's largest capture size
  std::string output;       ///< the folder for sources, cubins, plan.json and the report
};

struct CompiledGraph {
  cuda::CompileReport report;
  std::string tokens_symbol;
  std::int64_t tokens = 1;    ///< that schedules were taken for
  std::string nvrtc_version;  ///< empty: absent
  /// What a dump of it holds: passes where the variant has versions, pieces and the plan.
  RunRecord record;
  std::optional<CacheCounts> cache;  ///< where cubins were asked for and NVRTC is there
  std::string cache_problem;         ///< why cubins are not kept; empty: they are
};
/// Without NVRTC sources are written, and it is said. PW1429 for an architecture that kernels are
/// not made for.
Result<CompiledGraph> compile_graph(GraphVariant& variant, const LoadedRules& rules,
                                    const CompileRequest& request, const Log& log);

struct TuneRequest {
  std::vector<std::int64_t> tokens{1, 16, 256, 4096};  ///< each tuned for
  std::vector<std::string> archs{"sm_90"};
  bool strict = false;   ///< the kernels of strict compilations
  bool measure = false;  ///< on the device that is here; else by the model of one
  std::string output;    ///< a table: its entries of other kernels stay; empty, or absent: none
};

struct TunedGraph {
  struct Row {
    std::string arch;
    cuda::Tuned tuned;
  };
  std::vector<Row> rows;
  cuda::ScheduleTable schedules;  ///< with those that were in the output
  std::size_t gains = 0;          ///< that are not the usual schedule
};

/// What tuning needs of the machine, opened before anything is loaded.
class Tuner {
 public:
  /// PW1429 as above, PW1450 without NVRTC, PW1260 where there is no device to measure on.
  static Result<Tuner> open(const TuneRequest& request);
  Result<TunedGraph> tune(const CutGraph& cut, const Log& log);

 private:
  explicit Tuner(TuneRequest request, cuda::Nvrtc nvrtc)
      : request_(std::move(request)), nvrtc_(std::move(nvrtc)) {}
  TuneRequest request_;
  cuda::Nvrtc nvrtc_;
  std::unique_ptr<CompileCache> cache_;
  std::unique_ptr<cuda::CudaDriver> device_;
  cuda::ScheduleTable found_;
};
[[nodiscard]] Table schedule_table(const TunedGraph& tuned);

}  // namespace pw
