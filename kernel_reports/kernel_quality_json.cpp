#include <array>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/try.hpp"
#include "kernel_reports/kernel_quality.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

// Members that the emitter decides alone, and members that the compiler affects.
constexpr std::array kOfEmitter{"threads", "wide_share", "input_passes", "least_bytes",
                                "moved_bytes"};
constexpr std::array kOfCompiler{"registers", "spill_bytes",  "stack_bytes",    "shared_bytes",
                                 "occupancy", "instructions", "reads_by_width", "writes_by_width",
                                 "barriers",  "classes"};

std::string key_of(const Json& row) {
  return fmt::format("{} {} {}", row.value("function", ""), row.value("width", Json()).dump(),
                     row.value("arch", ""));
}

bool is_row(const Json& row) {
  return row.is_object() && row.contains("function") && row["function"].is_string() &&
         row.contains("arch") && row["arch"].is_string();
}

Result<Json> parse_baseline(const std::string& text, const std::string& file) {
  Json out = Json::parse(text, nullptr, false);
  if (!out.is_object() || !out.contains("kernels") || !out["kernels"].is_array())
    return fail(error_in(file, "PW1438", "it is not a JSON object with a list of `kernels`"));
  for (const Json& row : out["kernels"])
    if (!is_row(row))
      return fail(error_in(file, "PW1438", "a kernel lacks its `function` or `arch`"));
  return out;
}

/// Lists the changed members of a row; members that one side lacks are skipped.
template <std::size_t N>
void compare(const Json& was, const Json& is, const std::array<const char*, N>& members,
             std::vector<std::string>& out) {
  for (const char* member : members) {
    const Json before = was.value(member, Json()), now = is.value(member, Json());
    if (before.is_null() || now.is_null() || before == now) continue;
    out.push_back(
        fmt::format("{}: {} was {}, is {}", key_of(is), member, before.dump(), now.dump()));
  }
}

}  // namespace

Result<std::vector<std::string>> quality_changes(const QualityReport& report,
                                                 const std::string& baseline,
                                                 const std::string& file, const Log& log) {
  const Json was = PW_TRY(parse_baseline(baseline, file));
  const Json is = Json::parse(to_json(quality_answer(report)));
  std::map<std::string, Json> rows;
  for (const Json& row : was["kernels"]) rows[key_of(row)] = row;
  const bool same = was.value("nvrtc", Json()) == is["nvrtc"] && !is["nvrtc"].is_null();
  if (!same)
    log.say(
        fmt::format("registers and instructions are not compared: the baseline is of NVRTC {}, "
                    "and here it is {}",
                    was.value("nvrtc", Json()).dump(), is["nvrtc"].dump()));
  std::vector<std::string> out;
  for (const Json& row : is["kernels"]) {
    const auto found = rows.find(key_of(row));
    if (found == rows.end()) {
      out.push_back(key_of(row) + ": the baseline does not have it");
      continue;
    }
    compare(found->second, row, kOfEmitter, out);
    if (same) compare(found->second, row, kOfCompiler, out);
  }
  return out;
}

}  // namespace pw
