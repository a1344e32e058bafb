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

void run_why(const Options& options, const std::string& key) {
  const Session session(options);
  const Table table = session.need(key.empty() ? explain_kept_kernels() : explain_kept_kernel(key));
  print_out(table.print(options.format));
  if (table.empty()) session.say("the cache has no object");
}

}  // namespace

void add_cache_commands(CLI::App& app, const Options& options) {
  auto* sub = app.add_subcommand("cache",
                                 "Inspect, explain, verify or clear the cache of compiled kernels");
  sub->require_subcommand(1);
  sub->add_subcommand("stats", "Print the size of the cache and its hit counts")
      ->callback([&options] { run_stats(options); });
  sub->add_subcommand("verify",
                      "Check every object; remove damaged ones, and exit with 1 if there are any")
      ->callback([&options] { run_verify(options); });
  const auto key = std::make_shared<std::string>();
  auto* why = sub->add_subcommand(
      "why", "List the 50 objects that were compiled last, and which part of each key was new");
  why->add_option("key", *key, "first digits of a key: list all parts of that key");
  why->callback([&options, key] { run_why(options, *key); });
  sub->add_subcommand("clear", "Remove all objects")->callback([&options] { run_clear(options); });
  sub->footer(
      "The folder is $PWR_CACHE_DIR, else piecewise under $XDG_CACHE_HOME or ~/.cache; you must "
      "own it,\n"
      "and others must have no access. $PWR_CACHE_READ_ONLY_DIR names a second, read-only cache.\n"
      "PWR_DISABLE_CACHE=1 disables both.\n"
      "Examples:\n"
      "  pwr cache stats --format json\n"
      "  pwr cache why\n"
      "  pwr cache why 3f2a");
}

}  // namespace pw::cli
