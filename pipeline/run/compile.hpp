// The kernels of a planned graph as CUDA sources and cubins, and the search for their schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cache/cache.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/step_schedule.hpp"
#include "cuda/tuning.hpp"
#include "pipeline/plan.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

/// Returns the supported architectures: sm_80, sm_90, sm_100, sm_120.
[[nodiscard]] const std::vector<std::string>& cuda_architectures();
/// Fails with PW1429 for an unsupported architecture or an empty list.
Status check_architectures(const std::vector<std::string>& archs);

struct CompileRequest {
  PlanRequest plan;
  std::vector<std::string> archs{"sm_90"};
  bool fuse = true;     ///< fuse neighboring row ops into one kernel
  bool strict = false;  ///< reproduce the interpreter's bits
  bool sources_only = false;
  std::string schedules;    ///< see ScheduleTable::named
  std::int64_t tokens = 0;  ///< token count for schedules; 0: the plan's largest capture size
  std::string output;       ///< the folder for sources, cubins, plan.json and the report
  bool schedule = false;    ///< also record the step of `tokens` tokens, see CompiledGraph
  bool stream_weights = false, programmatic_edges = false;  ///< of that step: cuda::RuntimeOptions
};

struct CompiledGraph {
  cuda::CompileReport report;
  std::string tokens_symbol;
  std::int64_t tokens = 1;    ///< that schedules were selected for
  std::string nvrtc_version;  ///< empty: absent
  /// The contents of a dump: passes if the variant has versions, pieces, and the plan.
  RunRecord record;
  std::optional<cuda::StepSchedule> schedule;  ///< of a step, for the first architecture
  std::optional<CacheCounts> cache;            ///< if cubins were requested and NVRTC is available
  std::string cache_problem;                   ///< why cubins are not cached; empty if they are
};
/// Compiles the kernels. Without NVRTC, writes sources only and logs that. Fails with PW1429 for an
/// unsupported architecture.
Result<CompiledGraph> compile_graph(GraphVariant& variant, const LoadedRules& rules,
                                    const CompileRequest& request, const Log& log);

struct TuneRequest {
  std::vector<std::int64_t> tokens{1, 16, 256, 4096};  ///< each tuned for
  std::vector<std::string> archs{"sm_90"};
  bool strict = false;   ///< the kernels of strict compilations
  bool measure = false;  ///< measure on the local device; otherwise use a device model
  std::string output;    ///< output table, which keeps entries of other kernels; none if empty
};

struct TunedGraph {
  struct Row {
    std::string arch;
    cuda::Tuned tuned;
  };
  std::vector<Row> rows;
  cuda::ScheduleTable schedules;  ///< includes those from the output file
  std::size_t gains = 0;          ///< entries that improve on the default schedule
};

/// The tuner's resources, opened before anything is loaded.
class Tuner {
 public:
  /// Fails with PW1429 as above, PW1450 without NVRTC, PW1260 without a device to measure on.
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
