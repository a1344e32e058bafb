// Look-up in the table of tuned schedules. Entries are sorted by program, architecture and rows, so
// that a scan finds the fewest tuned rows that cover a step, else the most. The table has few
// entries, and each kernel is looked up once.
#include "cuda/kernels/matmul/schedules.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/hash.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "cuda/kernels/matmul/builtin_schedules.hpp"

namespace pw::cuda {
namespace {

auto key_of(const TunedSchedule& t) { return std::tie(t.program, t.arch, t.rows); }

}  // namespace

Result<ScheduleTable> ScheduleTable::read(const std::string& file) {
  std::string text = PW_TRY(read_file(file));
  return parse(text, file);
}

Result<std::shared_ptr<const ScheduleTable>> ScheduleTable::named(const std::string& name) {
  using Shared = std::shared_ptr<const ScheduleTable>;
  if (name == "none") return Shared();
  if (name.empty()) return Shared(Shared(), &builtin());  // without an owner
  return std::make_shared<const ScheduleTable>(PW_TRY(read(name)));
}

const ScheduleTable& ScheduleTable::builtin() {
  static const ScheduleTable table = [] {
    Result<ScheduleTable> parsed = parse(builtin_schedules(), "the schedules of the binary");
    PW_ASSERT(parsed, "the table in the binary cannot be read");
    return std::move(*parsed);
  }();
  return table;
}

void ScheduleTable::put(TunedSchedule entry) {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), entry,
      [](const TunedSchedule& a, const TunedSchedule& b) { return key_of(a) < key_of(b); });
  if (at != entries_.end() && key_of(*at) == key_of(entry))
    *at = std::move(entry);
  else
    entries_.insert(at, std::move(entry));
}

const TunedSchedule* ScheduleTable::find(std::string_view program, std::string_view arch,
                                         std::int64_t rows) const {
  const TunedSchedule* most = nullptr;
  for (const TunedSchedule& t : entries_) {
    if (t.program != program || t.arch != arch) continue;
    most = &t;
    if (t.rows >= rows) break;
  }
  return most;
}

Schedule ScheduleChoice::of(const rows::RowProgram& program) const {
  if (table == nullptr) return {};
  const std::map<std::string, std::int64_t, std::less<>> symbols{{tokens_symbol, tokens}};
  const auto rows = program.context->dims.evaluate(program.params.front(), symbols);
  const TunedSchedule* tuned = table->find(program_key(program), arch, rows.value_or(1));
  return tuned == nullptr ? Schedule() : tuned->schedule;
}

std::string program_key(const rows::RowProgram& program) {
  const std::string text = rows::print(program);
  const std::string_view behind_name = std::string_view(text).substr(text.find('\n') + 1);
  return fmt::format("{:016x}", hash_text(behind_name));
}

}  // namespace pw::cuda
