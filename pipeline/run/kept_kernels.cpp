#include "pipeline/run/kept_kernels.hpp"

#include <algorithm>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/counted.hpp"
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

constexpr std::size_t kShortKey = 12, kShownWidth = 60, kContext = 12, kNewest = 50;

/// Returns the part of a value's first line from byte `from` on, as wide as a table shows it.
std::string shown(std::string_view value, std::size_t from = 0) {
  const auto inside = [&](std::size_t at) {  // a character of several bytes
    return at < value.size() && (static_cast<unsigned char>(value[at]) & 0xC0) == 0x80;
  };
  while (from > 0 && inside(from)) --from;
  std::size_t end = std::min({value.size(), value.find('\n'), from + kShownWidth});
  while (inside(end)) --end;
  return fmt::format("{}{}{}", from > 0 ? "… " : "", value.substr(from, end - from),
                     end < value.size() ? " …" : "");
}

std::string shown(const KeyChange& change) {
  const auto& [name, before, now, line] = change;
  const std::string part = line == 0 ? name : fmt::format("{}, line {}", name, line);
  if (before.empty()) return fmt::format("{}: `{}` is new", part, shown(now));
  if (now.empty()) return fmt::format("{}: `{}` is gone", part, shown(before));
  const std::size_t length = std::min(before.size(), now.size());
  std::size_t from = 0;
  while (from < length && before[from] == now[from]) ++from;
  from = from < kShownWidth / 2 ? 0 : from - kContext;
  return fmt::format("{}: `{}` became `{}`", part, shown(before, from), shown(now, from));
}

std::string shown_time(std::int64_t nanoseconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                     fmt::gmtime(static_cast<std::time_t>(nanoseconds / 1'000'000'000)));
}

}  // namespace

Result<Table> explain_kept_kernels() {
  const auto cache = PW_TRY(users_cache());
  const std::vector<ObjectOrigin> origins = cache->origins();
  Table table({Column("made at (UTC)", "made_at"), "kind", Column("made for", "subject"), "key",
               Column("what changed", "changes")});
  for (std::size_t i = 0; i < std::min(kNewest, origins.size()); ++i) {
    const ObjectOrigin& origin = origins[i];
    std::vector<std::string> changed;
    const ObjectOrigin* const before = predecessor(origins, i);
    if (before != nullptr)
      for (const KeyChange& change : changes(*before, origin)) changed.push_back(shown(change));
    table.add({shown_time(origin.made_at), origin.kind, origin.subject,
               Cell(origin.key.substr(0, kShortKey), origin.key),
               before == nullptr ? null_cell("the first of its kind")
                                 : list_cell(std::move(changed), "; ")});
  }
  return table;
}

Result<Table> explain_kept_kernel(const std::string& digits) {
  const auto cache = PW_TRY(users_cache());
  const std::vector<ObjectOrigin> origins = cache->origins();
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < origins.size(); ++i)
    if (origins[i].key.starts_with(digits)) found.push_back(i);
  if (found.size() != 1)
    return fail(error_at(
        {}, "PW1447",
        fmt::format("{} in {} {} a key that begins with `{}`", counted(found.size(), "object"),
                    cache->folder(), found.size() == 1 ? "has" : "have", digits),
        "`pwr cache why` lists the keys"));
  const ObjectOrigin& origin = origins[found[0]];
  const ObjectOrigin* const before = predecessor(origins, found[0]);
  Table table({"part", "value", Column("of its predecessor", "before")});
  std::map<std::string, std::vector<KeyChange>> changed;
  if (before != nullptr)
    for (KeyChange& change : changes(*before, origin))
      changed[change.name].push_back(std::move(change));
  for (const KeyPart& part : origin.parts) {
    const auto change = changed.find(part.name);
    table.add({part.name, Cell(shown(part.value), part.value),
               change == changed.end() ? null_cell(before == nullptr ? "" : "the same")
                                       : Cell(shown(change->second.front()))});
  }
  return table;
}

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
