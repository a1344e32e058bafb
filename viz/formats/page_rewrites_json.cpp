// Writes what changed the graph: steps, rewrites, the rules of each pass, and near misses.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/io/shown_path.hpp"
#include "dsl/embedded_rules.hpp"
#include "rewriter/egraph/cost.hpp"
#include "rewriter/explain/near_miss_codes.hpp"
#include "rewriter/rewriter.hpp"
#include "viz/formats/page_writer.hpp"
#include "viz/label.hpp"

namespace pw::viz {
namespace {

using Json = nlohmann::ordered_json;

Json step_json(const Step& step) {
  Json out = {{"pass", step.pass},       {"nodes", step.nodes},     {"added", step.added},
              {"removed", step.removed}, {"changed", step.changed}, {"hidden", step.hidden}};
  if (step.matches) out["matches"] = *step.matches;
  if (step.seconds >= 0) out["ms"] = step.seconds * 1000;
  if (!step.rules.empty()) out["rules"] = step.rules;
  return out;
}

/// Returns the number of nodes of a version that are drawn inside their readers.
std::size_t constants_of(const PageParts& in, std::size_t version) {
  if (version >= in.graph.versions.size()) return 0;
  const Graph& graph = in.graph.versions[version]->graph;
  const auto nodes = graph.order();
  return static_cast<std::size_t>(
      std::count_if(nodes.begin(), nodes.end(), [&](NodeId n) { return is_inlined(graph, n); }));
}

/// Returns the rule of this name if its place in a file is known, otherwise null.
const Rule* rule_named(const PageParts& in, const std::string& name) {
  if (in.input.rules == nullptr) return nullptr;
  const auto& rules = in.input.rules->rules;
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == name; });
  return rule == rules.end() || !rule->name_span.valid() ? nullptr : &*rule;
}

/// Returns true for a rule of a file that is neither the library's nor a copy of one of its files.
bool is_own(const PageParts& in, const std::string& name) {
  const Rule* rule = rule_named(in, name);
  if (rule == nullptr) return false;
  const SourceMap& sources = in.input.rules->context->sources;
  if (is_of_library(sources.name(rule->name_span.source))) return false;
  const std::string_view text = sources.text(rule->name_span.source);
  const std::span<const EmbeddedFile> library = embedded_rules();
  return std::none_of(library.begin(), library.end(),
                      [&](const EmbeddedFile& file) { return file.text == text; });
}

Json rule_json(const PageParts& in, const std::string& name) {
  Json out = {{"name", clean(name)}};
  const Rule* rule = rule_named(in, name);
  if (rule == nullptr) return out;
  const SourceMap& sources = in.input.rules->context->sources;
  const Span span = rule->span.valid() ? rule->span : rule->name_span;
  out["file"] = clean(shown_path(sources.name(span.source)));
  out["line"] = sources.position(span.source, span.begin).line;
  out["text"] =
      clean(rule->span.valid() ? sources.text(span) : sources.line(span.source, span.begin));
  return out;
}

/// A flat list: rule or −1, version, then each list with its length before it.
void put_rewrites(PageWriter& page, ValueNumbers& references, const PageParts& in) {
  Json rules = Json::array();
  std::map<std::string, std::int64_t> number;
  Ints all;
  const auto nodes = [&](const std::vector<Touched>& list) {
    all.push_back(static_cast<std::int64_t>(list.size()));
    for (const Touched& one : list)
      all.push_back(one.at != kNobody ? static_cast<std::int64_t>(one.at)
                                      : -1 - static_cast<std::int64_t>(one.id.index));
  };
  for (const Rewrite& rewrite : in.timeline.rewrites) {
    std::int64_t rule = -1;
    if (!rewrite.rule.empty()) {
      const auto [known, fresh] =
          number.try_emplace(rewrite.rule, static_cast<std::int64_t>(rules.size()));
      if (fresh) rules.push_back(rule_json(in, rewrite.rule));
      rule = known->second;
    }
    all.insert(all.end(), {rule, rewrite.version});
    nodes(rewrite.matched);
    nodes(rewrite.created);
    nodes(rewrite.erased);
    all.push_back(static_cast<std::int64_t>(rewrite.bindings.size()));
    for (const auto& [name, source] : rewrite.bindings)
      all.insert(all.end(),
                 {page.text(name),
                  source.kind == Source::Kind::none ? -1 : references.of(source, rewrite.version)});
  }
  page.put("rules", dump(rules));
  page.put("rewrites", all);
}

/// Writes, for each version, the rules of its pass that had a node to try, and all own ones. As
/// in the journal, the n-th pass made version n + 1, as long as the names agree.
Json tried_json(const PageParts& in, const std::vector<PassStats>& passes) {
  Json out = Json::object();
  std::size_t version = 0;
  for (const PassStats& pass : passes) {
    const auto& steps = in.timeline.steps;
    if (version + 1 >= steps.size() || clean(pass.pass) != steps[version + 1].pass) continue;
    Json rules = Json::array();
    for (const auto& [rule, stats] : pass.rules) {
      const bool own = is_own(in, rule);
      if (stats.attempts == 0 && !own) continue;
      Json codes = Json::array();
      for (const auto& [code, times] : stats.rejections) codes.push_back({code, times});
      rules.push_back({clean(rule), stats.attempts, stats.hits, stats.matches, codes, own ? 1 : 0});
    }
    out[std::to_string(++version)] = std::move(rules);
  }
  return out;
}

/// A flat list: rule, code, message and help as texts, matched, size, where it stopped or −1, and
/// the nodes that it matched with their number before them.
void put_misses(PageWriter& page, const PageParts& in, const PageMisses& misses) {
  Ints all;
  const std::size_t last = in.graph.versions.size() - 1;
  const auto place = [&](NodeId n) -> std::int64_t {
    const std::uint32_t at = n.valid() ? in.graph.position(last, n) : kNobody;
    return at == kNobody ? -1 : static_cast<std::int64_t>(at);
  };
  for (const PageMiss& miss : misses.all) {
    all.insert(all.end(), {page.text(miss.rule), page.text(miss.code), page.text(miss.message),
                           page.text(miss.help), miss.matched, static_cast<std::int64_t>(miss.size),
                           place(miss.at), static_cast<std::int64_t>(miss.nodes.size())});
    for (const NodeId n : miss.nodes) all.push_back(place(n));
  }
  page.put("misses", all);
  Json stops = Json::object();
  std::set<std::string_view> codes;
  for (const PageMiss& miss : misses.all) codes.insert(miss.code);
  for (const NearMissCode& row : kNearMissCodes)
    if (codes.contains(row.code)) stops[std::string(row.code)] = row.meaning;
  page.put("stops", dump(stops));
  page.put("whyNoMisses", dump(Json(clean(misses.why_none))));
}

/// Writes the ops that compute and the bytes that they read and write, before and after, and the
/// tokens that the bytes are for: as the costs `ops` and `bytes` of strategies count them.
void put_work(PageWriter& page, const Graph& before, const Graph& after) {
  page.put("work", Ints{cost_of(before, Cost::ops), cost_of(after, Cost::ops)});
  const SymbolSizes sizes = representative_sizes(before.facts);
  const auto tokens = sizes.find(before.facts.tokens());
  page.put("traffic", Ints{cost_of(before, Cost::bytes), cost_of(after, Cost::bytes),
                           tokens == sizes.end() ? 0 : tokens->second});
}

}  // namespace

void put_timeline(PageWriter& page, const PageParts& parts) {
  Json steps = Json::array();
  for (std::size_t version = 0; version < parts.timeline.steps.size(); ++version) {
    steps.push_back(step_json(parts.timeline.steps[version]));
    if (const std::size_t count = constants_of(parts, version); count > 0)
      steps.back()["constants"] = count;
  }
  page.put("steps", dump(steps));
}

void put_rules(PageWriter& page, ValueNumbers& references, const PageParts& parts) {
  put_rewrites(page, references, parts);
  if (parts.input.tried != nullptr) page.put("tried", dump(tried_json(parts, *parts.input.tried)));
  put_work(page, parts.graph.versions.front()->graph, parts.graph.versions.back()->graph);
  if (parts.input.misses != nullptr) put_misses(page, parts, *parts.input.misses);
}

}  // namespace pw::viz
