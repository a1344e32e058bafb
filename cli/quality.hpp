// The options with which `pwr compile` judges kernels without a device.
#pragma once

#include <string>
#include <vector>

#include "cli/session.hpp"
#include "kernel_reports/kernel_quality.hpp"

namespace pw::cli {

struct QualityArgs {
  bool wanted = false;
  std::vector<std::string> functions{"all"};
  std::vector<std::int64_t> widths = quality_widths();
  std::string baseline;
  void add_to(CLI::App& app);
};

/// Functions of the library at chosen widths; `output`: a page or the JSON, or empty.
void judge_named(const Session& session, const QualityArgs& args, const CompileRequest& compile,
                 const std::string& output, const std::string& dump);
/// The kernels of a compilation, with quality.json and quality.html into its folder.
void judge_plan(const Session& session, const QualityArgs& args, const CompiledGraph& compiled,
                const std::string& folder);

}  // namespace pw::cli
