// Exports the command cache: what is kept of compiled kernels.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backends/cache/cache.hpp"
#include "cli/commands.hpp"

namespace pw::cli {
namespace {

/// The user's cache, or the end of the program where it is refused.
void need_folder(const Session& session, const CompileCache& cache) {
  if (cache.folder().empty())
    session.die("there is no compile cache: " + cache.problem(),
                "set PWR_CACHE_DIR to a folder of your own", kInvalidInput);
}

void run_stats(const Options& options) {
  const Session session(options);
  CompileCache cache(CacheOptions::from_environment());
  need_folder(session, cache);
  const CacheContents contents = cache.inspect(false);
  const CacheCounts counts = cache.totals();
  Table table({"what", "number", "bytes"});
  for (const auto& [kind, held] : contents.kinds)
    table.add({"objects of " + kind, std::to_string(held.objects), std::to_string(held.bytes)});
  table.add({"damaged objects", std::to_string(contents.bad), ""});
  table.add({"unfinished files", std::to_string(contents.leftovers), ""});
  table.add({"found, over all runs", std::to_string(counts.found), ""});
  table.add({"compiled, over all runs", std::to_string(counts.made), ""});
  table.add({"thrown away as damaged", std::to_string(counts.evicted), ""});
  table.add({"could not be written", std::to_string(counts.unwritten), ""});
  print_out(table.print(options.format));
  session.say("folder: " + cache.folder());
}

void run_verify(const Options& options) {
  const Session session(options);
  CompileCache cache(CacheOptions::from_environment());
  need_folder(session, cache);
  const CacheContents contents = cache.inspect(true);
  std::size_t good = 0;
  for (const auto& [kind, held] : contents.kinds) good += held.objects;
  Table table({"what", "number"});
  table.add({"good objects", std::to_string(good)});
  table.add({"damaged objects, thrown away", std::to_string(contents.bad)});
  table.add({"unfinished files, thrown away", std::to_string(contents.leftovers)});
  print_out(table.print(options.format));
  if (contents.bad > 0) throw Exit{kNegative};
}

void run_clear(const Options& options) {
  const Session session(options);
  CompileCache cache(CacheOptions::from_environment());
  need_folder(session, cache);
  Table table({"what", "number"});
  table.add({"objects removed", std::to_string(cache.clear())});
  print_out(table.print(options.format));
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
