// Reads and writes the table of tuned schedules (piecewise.schedules/1). Invariant: a table that
// was written reads back equal, and every value that is read is in the range of its Schedule field
// or in the list of tiles. Errors name the file, the entry and the field; only the first one of an
// entry is reported.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cuda/kernels/matmul/schedules.hpp"

namespace pw::cuda {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "piecewise.schedules/1";

/// Reads the fields of one entry; reports the first one that is missing or out of range.
class EntryReader {
 public:
  EntryReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  TunedSchedule run() {
    TunedSchedule out;
    out.program = text(json_, "program");
    out.op = text(json_, "op");
    out.arch = text(json_, "arch");
    out.rows = number(json_, "rows", 1, std::int64_t{1} << 40);
    if (json_.is_object() && json_.contains("product"))
      out.product = product(json_["product"]);
    else
      out.schedule = schedule();
    out.seconds = seconds("seconds");
    out.default_seconds = seconds("default_seconds");
    out.by = text(json_, "by");
    return out;
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  Schedule schedule() {
    Schedule out;
    static const Json nothing = Json::object();
    const bool there = json_.is_object() && json_.contains("schedule");
    const Json& s = there ? json_["schedule"] : nothing;
    const auto field = [&](const char* name, int least, int most) {
      return static_cast<int>(number(s, name, least, most));
    };
    out.block = field("block", 32, 1024);
    out.passes = field("passes", 1, 64);
    out.resident = field("resident", 0, 32);
    out.kept_words = field("kept_words", 0, 128);
    if ((out.block & (out.block - 1)) != 0) wrong("block", "not a power of two");
    return out;
  }

  /// Reads a tile that kernels are made with, with any number of shares.
  TunedProduct product(const Json& from) {
    TunedProduct out;
    ProductTile& t = out.tile;
    const auto field = [&](const char* name, int most) {
      return static_cast<int>(number(from, name, 1, most));
    };
    t.rows = field("rows", 1024);
    t.columns = field("columns", 1024);
    t.down = field("down", 32);
    t.across = field("across", 32);
    t.stages = field("stages", 16);
    t.grouped = from.is_object() && from.value("grouped", Json(false)) == Json(true);
    const int shares = static_cast<int>(number(from, "shares", 0, 65535));
    const std::vector<ProductTile>& known = product_tiles();
    if (std::find(known.begin(), known.end(), t) == known.end())
      wrong("product", "not a tile that kernels support");
    t.shares = shares;
    const std::string by = text(from, "by");
    if (by != "own" && by != "library") wrong("by", "neither \"own\" nor \"library\"");
    out.library = by == "library";
    return out;
  }

  void wrong(const char* name, const std::string& why) {
    if (problem_.empty()) problem_ = fmt::format("{}: `{}` is {}", place_, name, why);
  }
  const Json* field(const Json& from, const char* name) {
    if (from.is_object() && from.contains(name)) return &from[name];
    wrong(name, "missing");
    return nullptr;
  }
  std::string text(const Json& from, const char* name) {
    const Json* f = field(from, name);
    if (f == nullptr) return {};
    if (f->is_string()) return f->get<std::string>();
    return wrong(name, "not a string"), std::string();
  }
  std::int64_t number(const Json& from, const char* name, std::int64_t least, std::int64_t most) {
    const Json* f = field(from, name);
    if (f == nullptr) return least;
    const bool whole = f->is_number_integer();
    const auto n = whole ? f->get<std::int64_t>() : least;
    if (!whole || n < least || n > most)
      wrong(name, fmt::format("not an integer from {} to {}", least, most));
    return n;
  }
  double seconds(const char* name) {
    const Json* f = field(json_, name);
    if (f == nullptr) return 0;
    const double s = f->is_number() ? f->get<double>() : -1;
    if (!(s >= 0 && s < 1e6)) wrong(name, "not a time in seconds");
    return s;
  }

  const Json& json_;
  std::string place_, problem_;
};

}  // namespace

Result<ScheduleTable> ScheduleTable::parse(std::string_view text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return fail(error_in(file, "PW1240", "a table of schedules must be a JSON object"));
  if (!json.contains("format") || json["format"] != kFormat)
    return fail(error_in(file, "PW1241", fmt::format("`format` is not \"{}\"", kFormat)));
  if (!json.contains("schedules") || !json["schedules"].is_array())
    return fail(error_in(file, "PW1242", "`schedules` is missing or not a list"));
  ScheduleTable out;
  for (std::size_t i = 0; i < json["schedules"].size(); ++i) {
    EntryReader reader(json["schedules"][i], fmt::format("schedules[{}]", i));
    TunedSchedule entry = reader.run();
    if (!reader.problem().empty()) return fail(error_in(file, "PW1242", reader.problem()));
    out.put(std::move(entry));
  }
  return out;
}

namespace {

Json product_json(const TunedProduct& p) {
  Json out{{"by", p.library ? "library" : "own"},
           {"rows", p.tile.rows},
           {"columns", p.tile.columns},
           {"down", p.tile.down},
           {"across", p.tile.across},
           {"stages", p.tile.stages},
           {"shares", p.tile.shares}};
  if (p.tile.grouped) out["grouped"] = true;
  return out;
}

}  // namespace

std::string ScheduleTable::to_json() const {
  std::vector<std::string> lines;  // one entry a line, for readable diffs
  const auto rounded = [](double s) { return std::round(s * 1e9) / 1e9; };
  for (const TunedSchedule& t : entries_) {
    Json entry{{"program", t.program}, {"op", t.op}, {"arch", t.arch}, {"rows", t.rows}};
    if (t.product)
      entry["product"] = product_json(*t.product);
    else
      entry["schedule"] = {{"block", t.schedule.block},
                           {"passes", t.schedule.passes},
                           {"resident", t.schedule.resident},
                           {"kept_words", t.schedule.kept_words}};
    entry["seconds"] = rounded(t.seconds);
    entry["default_seconds"] = rounded(t.default_seconds);
    entry["by"] = t.by;
    lines.push_back(
        fmt::format("  {}", entry.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  return fmt::format("{{\n  \"format\": \"{}\",\n  \"schedules\": [{}{}{}]\n}}\n", kFormat,
                     lines.empty() ? "" : "\n", fmt::join(lines, ",\n"), lines.empty() ? "" : "\n");
}

}  // namespace pw::cuda
