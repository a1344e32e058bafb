#include "pipeline/run/kept_kernels.hpp"

#include "base/try.hpp"

namespace pw {
namespace {

Result<std::unique_ptr<CompileCache>> users_cache() {
  auto cache = std::make_unique<CompileCache>(CacheOptions::from_environment());
  if (cache->folder().empty())
    return fail(error_at({}, "PW1434", "there is no compile cache: " + cache->problem(),
                         "set PWR_CACHE_DIR to a folder that you own"));
  return cache;
}

}  // namespace

Result<KeptKernels> kept_kernels() {
  const auto cache = PW_TRY(users_cache());
  KeptKernels out{cache->folder(), cache->inspect(false), {}};
  out.totals = cache->totals();
  return out;
}

Result<CacheContents> verify_kept_kernels() {
  const auto cache = PW_TRY(users_cache());
  return cache->inspect(true);
}

Result<std::size_t> clear_kept_kernels() {
  const auto cache = PW_TRY(users_cache());
  return cache->clear();
}

Table kept_table(const KeptKernels& kept) {
  Table table({"what", "number", "bytes"});
  for (const auto& [kind, held] : kept.contents.kinds)
    table.add({"objects of " + kind, held.objects, held.bytes});
  const auto add = [&](const char* what, std::uint64_t number) {
    table.add({what, number, null_cell()});
  };
  add("damaged objects", kept.contents.bad);
  add("unfinished files", kept.contents.leftovers);
  add("found, over all runs", kept.totals.found);
  add("compiled, over all runs", kept.totals.made);
  add("removed as damaged", kept.totals.evicted);
  add("could not be written", kept.totals.unwritten);
  return table;
}

Table verified_table(const CacheContents& contents) {
  std::size_t good = 0;
  for (const auto& [kind, held] : contents.kinds) good += held.objects;
  Table table({"what", "number"});
  table.add({"good objects", good});
  table.add({"damaged objects, removed", contents.bad});
  table.add({"unfinished files, removed", contents.leftovers});
  return table;
}

Table cleared_table(std::size_t removed) {
  Table table({"what", "number"});
  table.add({"objects removed", removed});
  return table;
}

}  // namespace pw
