// Static quality reports of kernels, without a device: for a compiled graph, or for typical model
// functions at chosen widths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_reports/quality.hpp"
#include "kernel_reports/tensor_report.hpp"
#include "pipeline/report/table.hpp"
#include "pipeline/run/compile.hpp"

namespace pw {

/// A function over rows of a given width, as a graph's text with `D` for the width.
struct QualityFunction {
  std::string_view name, text;
  std::int64_t whole = 1;  ///< a divisor of all its widths
};
[[nodiscard]] const std::vector<QualityFunction>& quality_functions();
[[nodiscard]] const std::vector<std::int64_t>& quality_widths();

struct QualityRequest {
  std::vector<std::string> functions;  ///< empty: all
  std::vector<std::int64_t> widths = quality_widths();
  std::vector<std::string> archs = cuda_architectures();
  std::int64_t tokens = 4096;
  bool strict = false, sources_only = false;
  std::string dump;  ///< a folder for FUNCTION-WIDTH-ARCH.cubin; empty: none
};

struct QualityRow {
  std::string function;    ///< or the ops of a plan's kernel
  std::int64_t width = 0;  ///< 0 for a plan
  std::size_t uses = 1;    ///< launches in one step
  cuda::Quality quality;
};

/// Totals of a step's kernels, excluding library calls.
struct QualityStep {
  std::int64_t tokens = 0;
  std::size_t nodes = 0, launches = 0;  ///< nodes run by kernels, and the number of kernels
  std::int64_t least = 0, moved = 0;    ///< bytes, as for a launch
};

struct QualityReport {
  std::string nvrtc, disassembler;  ///< status of both tools
  std::string nvrtc_version;  ///< instruction counts are comparable only between equal versions
  std::vector<QualityRow> rows;
  std::optional<QualityStep> step;
  std::optional<cuda::StepSchedule> schedule = {};  ///< for a plan: launches and edges of a step
  std::vector<cuda::TensorReport> tensor = {};  ///< for a plan: kernels that replace library calls
  [[nodiscard]] std::size_t short_rows() const;
};

/// Fails with PW1429 for an unsupported architecture, PW1437 for an unknown function. Without NVRTC
/// or nvdisasm, omits the figures that need them and logs that.
Result<QualityReport> judge_functions(const QualityRequest& request, const Log& log);
/// Reports the kernels of a compilation, at a token count.
QualityReport judge_compiled(const CompiledGraph& compiled, std::int64_t tokens, const Log& log);

/// Returns the JSON answer: `kernels`, `shortcomings`, `step`, and the tools' versions.
[[nodiscard]] Answer quality_answer(const QualityReport& report);
/// Returns a self-contained HTML file; the same report gives the same bytes.
[[nodiscard]] std::string quality_page(const QualityReport& report, const std::string& title);
/// Returns the differences between a report's rows and those of a baseline (quality_answer as
/// JSON), one line each. Compares the compiler's figures only if its version is the same. Fails
/// with PW1438, at `file`, if the text is not a baseline.
Result<std::vector<std::string>> quality_changes(const QualityReport& report,
                                                 const std::string& baseline,
                                                 const std::string& file, const Log& log);

}  // namespace pw
