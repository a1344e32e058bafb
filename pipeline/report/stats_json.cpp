#include <nlohmann/json.hpp>

#include "pipeline/run/dump.hpp"
#include "splitter/counters.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Json numbers(const std::vector<std::pair<std::string, std::size_t>>& list) {
  Json out = Json::object();
  for (const auto& [name, number] : list) out[name] = number;
  return out;
}

Json rules_json(const RewriteReport& report) {
  Json out = Json::array();
  for (const PassStats& pass : report.passes)
    for (const auto& [rule, stats] : pass.rules)
      if (stats.attempts > 0)
        out.push_back({{"pass", pass.pass},
                       {"rule", rule},
                       {"matches", stats.matches},
                       {"attempts", stats.attempts},
                       {"hits", stats.hits}});
  return out;
}

Json steps_json(const RunRecord& record) {
  Json out = Json::array();
  for (const StepRun& step : record.steps) {
    const StepReport& r = step.report;
    out.push_back({{"tokens", r.tokens},
                   {"rows", r.padded},
                   {"mode", name(r.mode)},
                   {"key", r.key},
                   {"kernels", r.launches.kernels},
                   {"library", r.launches.library},
                   {"graphs", r.launches.graphs}});
  }
  return out;
}

}  // namespace

std::string stats_to_json(const RunRecord& record) {
  Counting counting;
  counting.add(*record.pieces, record.plan);
  Json out{{"format", "piecewise.stats/1"}, {"counters", numbers(counting.counters().list())}};
  out["rules"] = rules_json(record.rewrite);
  if (record.cpu)
    out["cache"] = {{"found", record.cpu->cache.found},
                    {"made", record.cpu->cache.made},
                    {"evicted", record.cpu->cache.evicted}};
  if (!record.device.empty()) out["device"] = numbers(record.device);
  out["steps"] = steps_json(record);
  return out.dump(2) + "\n";
}

}  // namespace pw
