// The part of `pwr compile` that judges kernels without a device; see Labs.
#pragma once

#include <string>

#include "cli/parts/labs.hpp"

namespace pw::cli {

void add_quality_options(CLI::App& app, QualityArgs& args);
void judge_functions(const Session& session, const QualityArgs& args, const CompileRequest& compile,
                     const std::string& output, const std::string& dump);
void judge_plan(const Session& session, const QualityArgs& args, const CompiledGraph& compiled,
                const std::string& folder);

}  // namespace pw::cli
