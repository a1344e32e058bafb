// Kernels judged without a device: those of a compiled graph, or of functions that models are made
// of at chosen widths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_reports/quality.hpp"
#include "kernel_reports/tensor_report.hpp"
#include "pipeline/report/table.hpp"
#include "pipeline/run/compile.hpp"

namespace pw {

/// A function over rows of some width, as the text of a graph with `D` in the width's place.
struct QualityFunction {
  std::string_view name, text;
  std::int64_t whole = 1;  ///< it has widths that this divides
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
  std::string function;    ///< or the ops of a kernel of a plan
  std::int64_t width = 0;  ///< 0: of a plan
  std::size_t uses = 1;    ///< launches of a step
  cuda::Quality quality;
};

/// What the kernels of a step come to; library calls are none of them.
struct QualityStep {
  std::int64_t tokens = 0;
  std::size_t nodes = 0, launches = 0;  ///< nodes that kernels do, and the kernels
  std::int64_t least = 0, moved = 0;    ///< bytes, as of a launch
};

struct QualityReport {
  std::string nvrtc, disassembler;  ///< states
  std::string nvrtc_version;        ///< instructions are comparable where it is the same
  std::vector<QualityRow> rows;
  std::optional<QualityStep> step;
  std::vector<cuda::TensorReport> tensor = {};  ///< of a plan: in place of library calls
  [[nodiscard]] std::size_t short_rows() const;
};

/// PW1429 for an architecture, PW1437 for a function that there is not. Without NVRTC and nvdisasm
/// what needs them is left out, and said.
Result<QualityReport> judge_functions(const QualityRequest& request, const Log& log);
/// The kernels of a compilation, at so many tokens.
QualityReport judge_compiled(const CompiledGraph& compiled, std::int64_t tokens, const Log& log);

/// As JSON: `kernels`, `shortcomings`, `step`, and what they were found with.
[[nodiscard]] Answer quality_answer(const QualityReport& report);
/// One HTML file that needs nothing else; the same report gives the same bytes.
[[nodiscard]] std::string quality_page(const QualityReport& report, const std::string& title);
/// Where a report's rows and those of a baseline, the text of what quality_answer gives as JSON,
/// differ, a line each. The compiler's figures are compared only where its version is the same.
/// PW1438, at `file`, for a text that is no baseline.
Result<std::vector<std::string>> quality_changes(const QualityReport& report,
                                                 const std::string& baseline,
                                                 const std::string& file, const Log& log);

}  // namespace pw
