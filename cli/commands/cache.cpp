#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "pipeline/run/kept_kernels.hpp"

namespace pw::cli {
namespace {

void run_stats(const Options& options) {
  const Session session(options);
  const KeptKernels kept = session.need(kept_kernels());
  print_out(kept_table(kept).print(options.format));
  session.say("folder: " + kept.folder);
}

void run_verify(const Options& options) {
  const Session session(options);
  const CacheContents contents = session.need(verify_kept_kernels());
  print_out(verified_table(contents).print(options.format));
  if (contents.bad > 0) throw Exit{kNegative};
}

void run_clear(const Options& options) {
  const Session session(options);
  print_out(cleared_table(session.need(clear_kept_kernels())).print(options.format));
}

}  // namespace

void add_cache_commands(CLI::App& app, const Options& options) {
  auto* sub =
      app.add_subcommand("cache", "What is kept of compiled kernels, by what they were made from");
  sub->require_subcommand(1);
  sub->add_subcommand("stats", "How much there is, and how often it was of use")
      ->callback([&options] { run_stats(options); });
  sub->add_subcommand("verify", "Check every object; throw damaged ones away, and then exit with 1")
      ->callback([&options] { run_verify(options); });
  sub->add_subcommand("clear", "Remove all objects")->callback([&options] { run_clear(options); });
  sub->footer(
      "The folder is $PWR_CACHE_DIR, else piecewise under $XDG_CACHE_HOME or ~/.cache; it must be\n"
      "your own, and closed to others. $PWR_CACHE_READ_ONLY_DIR names one more, which is only "
      "read.\n"
      "Example:\n  pwr cache stats --format json");
}

}  // namespace pw::cli
