// Registration of subcommands, one function for each group.
#pragma once

#include "cli/session.hpp"

namespace pw::cli {

void add_graph_commands(CLI::App& app,
                        const Options& options);  ///< import, export, stats, generate
void add_generate_command(CLI::App& app, const Options& options);
void add_rule_commands(CLI::App& app, const Options& options);  ///< check, fmt, test, verify, prove
void add_explain_commands(CLI::App& app, const Options& options);  ///< explain, match
void add_check_command(CLI::App& app, const Options& options);
void add_fuzz_command(CLI::App& app, const Options& options);
void add_verify_command(CLI::App& app, const Options& options);
void add_prove_command(CLI::App& app, const Options& options);
void add_discover_command(CLI::App& app, const Options& options);
void add_test_command(CLI::App& app, const Options& options);
void add_opt_command(CLI::App& app, const Options& options);
void add_diff_command(CLI::App& app, const Options& options);
void add_equal_command(CLI::App& app, const Options& options);
void add_split_command(CLI::App& app, const Options& options);
void add_plan_command(CLI::App& app, const Options& options);
void add_sizes_command(CLI::App& app, const Options& options);
void add_compile_commands(CLI::App& app, const Options& options);  ///< compile, tune
void add_run_commands(CLI::App& app, const Options& options);      ///< run, report
void add_failure_commands(CLI::App& app, const Options& options);  ///< bisect, reduce
void add_explore_command(CLI::App& app, const Options& options);
void add_extract_command(CLI::App& app, const Options& options);
void add_bench_command(CLI::App& app, const Options& options);
void add_cache_commands(CLI::App& app, const Options& options);  ///< cache stats, verify, clear
void add_ops_command(CLI::App& app, const Options& options);
void add_lsp_command(CLI::App& app, const Options& options);
void add_serve_command(CLI::App& app, const Options& options);
void add_grammar_command(CLI::App& app, const Options& options);
void add_doctor_command(CLI::App& app, const Options& options);
void add_trust_command(CLI::App& app, const Options& options);

}  // namespace pw::cli
