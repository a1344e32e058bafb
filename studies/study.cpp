#include "studies/study.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "codegen/cache/digest.hpp"
#include "graph/text/text.hpp"
#include "rewriter/analysis/orders/order_numbers.hpp"
#include "studies/objectives.hpp"

namespace pw {
namespace {

constexpr std::uint64_t kMostUnits = 1'000'000;  ///< of a block
constexpr std::uint64_t kSlice = 128;            ///< units that one process does in a row
constexpr std::size_t kMostRuns = 1'000'000;     ///< of a pass, on one graph
constexpr const char* kRest = "(rest)";          ///< pass that stands for what follows each order

std::string short_digest(const KeyParts& parts) { return parts.digest().substr(0, 16); }
std::string state_name(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

/// Digest of the texts of all loaded files, including the library's.
std::string rules_digest(const LoadedRules& rules) {
  KeyParts parts;
  for (const ast::File& file : rules.set.files)
    parts.add("file", rules.set.context->sources.text(file.source));
  return short_digest(parts);
}

void add_strategies(KeyParts& parts, std::string_view name, const std::vector<Strategy>& list) {
  for (const Strategy& each : list) parts.add(name, each.label);
}

/// Digest of everything that determines the orders and the data recorded for each.
std::string space_digest(const ExploreSpace& space, const ExploreRequest& request) {
  KeyParts parts;
  add_strategies(parts, "first", space.first.parts);
  add_strategies(parts, "pass", space.passes);
  add_strategies(parts, "last", space.last.parts);
  for (const auto& [first, second] : space.before)
    parts.add("before", fmt::format("{}:{}", first, second));
  for (const Objective by : space.by)
    parts.add("by", kObjectiveNames[static_cast<std::size_t>(by)]);
  parts.add("subsets", space.subsets ? "1" : "0");
  parts.add("sample", fmt::format("{} of {}", space.sample, space.seed));
  const bool runs = std::any_of(space.by.begin(), space.by.end(),
                                [](Objective each) { return each >= Objective::modelled_us; });
  if (runs) parts.add("run", fmt::format("{} {}", request.backend, request.rows));
  return short_digest(parts);
}

std::string params_text(const Env& params, const Attributes& attributes) {
  std::string out;
  for (const auto& [name, value] : params) {
    out += name + "=";
    if (const auto* attribute = std::get_if<Attribute>(&value))
      out += attributes.print(*attribute);
    else if (const auto* dtype = std::get_if<DTypeBinding>(&value))
      out += std::string(pw::name(dtype->dtype));
    out += ";";
  }
  return out;
}

/// The explored part of one graph under one setting.
class Block {
 public:
  Block(const ExploreSpace& space, const LoadedRules& rules, const StudyRequest& request,
        StudyStore& store, const Log& log)
      : space_(space),
        own_(rules),
        request_(request),
        store_(store),
        log_(log),
        start_(rules.set.context) {}

  Status begin(const StudyGraph& graph, const ExploreSetting& setting, const OrderNumbers& numbers,
               const std::vector<std::uint64_t>& units) {
    const Graph start = PW_TRY(setting_start(graph.graph, space_, setting, own_));
    own_.set = rules_of(setting, own_);
    own_.params = setting.params;
    start_ = start;
    std::vector<Strategy> passes = space_.passes;
    passes.push_back(space_.last);
    states_ =
        std::make_unique<PassStates>(start, own_.set, own_.params, std::move(passes), kMostRuns);
    std::vector<std::size_t> written(space_.passes.size());
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = i;
    const std::size_t end = PW_TRY(walk(written));
    block_.graph = graph.name;
    block_.setting = setting.name;
    block_.rules = rules_digest(own_);
    block_.space = space_digest(space_, request_.space);
    block_.passes = space_.names;
    for (const Objective by : space_.by)
      block_.objectives.emplace_back(kObjectiveNames[static_cast<std::size_t>(by)]);
    block_.orders = numbers.count();
    block_.units = units.size();
    block_.start = state_name(states_->seen().front().hash);
    block_.written = state_name(states_->seen()[end].hash);
    KeyParts parts;
    parts.add("graph", graph.name).add("text", print_pwg(graph.graph));
    parts.add("rules", block_.rules).add("space", block_.space);
    parts.add("setting", setting.name)
        .add("params", params_text(setting.params, graph.graph.context().attributes));
    block_.key = short_digest(parts);
    PW_TRY(store_.add_block(block_));
    done_ = PW_TRY(store_.done(block_.key));
    judged_ = PW_TRY(store_.ends(block_.key));
    return {};
  }

  [[nodiscard]] std::size_t runs() const { return states_->runs(); }
  [[nodiscard]] bool has(std::uint64_t number) const { return done_.contains(number); }

  /// Computes the missing units of a slice and the states of the written order.
  Status add(const OrderNumbers& numbers, std::span<const std::uint64_t> units) {
    StudyRows rows;
    std::set<std::size_t> ends{written_end_};
    for (const std::uint64_t number : units) {
      if (has(number)) continue;
      const std::vector<std::size_t> order = numbers.order(number);
      const std::size_t end = PW_TRY(walk(order));
      ends.insert(end);
      StudyUnit unit{number, {}, state_name(states_->seen()[end].hash)};
      for (const std::size_t pass : order) unit.order.push_back(space_.names[pass]);
      rows.units.push_back(std::move(unit));
    }
    add_states(rows);
    PW_TRY(add_ends(ends, rows));
    return store_.add(block_.key, rows);
  }

  Status add_thefts() {
    if (PW_TRY(store_.has_thefts(block_.key))) return {};
    std::vector<StudyTheft> out;
    const auto called = [&](const std::vector<std::size_t>& order) {
      std::vector<std::string> names;
      for (const std::size_t pass : order) names.push_back(space_.names[pass]);
      return names;
    };
    for (const Theft& theft :
         PW_TRY(find_thefts(start_, own_.set, own_.params, order_space(space_))))
      out.push_back({space_.names[theft.thief], theft.thief_rule, space_.names[theft.victim],
                     theft.victim_rule, theft.lost, theft.node, called(theft.losing),
                     called(theft.keeping)});
    return store_.add_thefts(block_.key, out);
  }

 private:
  /// Returns the final state of an order and records its steps.
  Result<std::size_t> walk(const std::vector<std::size_t>& order) {
    std::size_t at = 0;
    const auto go = [&](std::size_t pass) -> Status {
      const std::size_t next = PW_TRY(states_->step(at, pass));
      if (walked_.insert({at, pass}).second) fresh_.emplace_back(at, pass);
      at = next;
      return {};
    };
    for (const std::size_t pass : order) PW_TRY(go(pass));
    if (!space_.last.parts.empty()) PW_TRY(go(space_.passes.size()));
    if (order.size() == space_.passes.size() && std::is_sorted(order.begin(), order.end()))
      written_end_ = at;
    return at;
  }

  /// The states visited since the last call.
  void add_states(StudyRows& rows) {
    std::set<std::size_t> states{0};
    for (const auto& [at, pass] : fresh_) {
      const SeenGraph& from = states_->seen()[at];
      const std::size_t next = from.next.at(pass);
      states.insert({at, next});
      rows.steps.push_back({state_name(from.hash),
                            pass == space_.names.size() ? kRest : space_.names[pass],
                            state_name(states_->seen()[next].hash), from.rewrites.at(pass)});
    }
    fresh_.clear();
    for (const std::size_t at : states)
      rows.states.push_back({state_name(states_->seen()[at].hash), states_->seen()[at].costs});
  }

  Status add_ends(const std::set<std::size_t>& ends, StudyRows& rows) {
    std::vector<Objective> by;
    for (const Objective each : space_.by)
      if (static_cast<std::size_t>(each) >= kCostNames.size()) by.push_back(each);
    std::vector<const Graph*> graphs;
    std::vector<std::string> names;
    for (const std::size_t end : ends) {
      const std::string name = state_name(states_->seen()[end].hash);
      if (!judged_.insert(name).second) continue;
      names.push_back(name);
      graphs.push_back(&states_->graph(end));
    }
    if (by.empty() || graphs.empty()) return {};
    const auto costs = PW_TRY(objectives_of(graphs, start_, by, own_, request_.space, log_));
    for (std::size_t i = 0; i < names.size(); ++i) {
      StudyEnd end{names[i], {}};
      end.measured.resize(kObjectiveNames.size() - kCostNames.size());
      for (std::size_t c = 0; c < by.size(); ++c)
        end.measured[static_cast<std::size_t>(by[c]) - kCostNames.size()] = costs[i][c];
      rows.ends.push_back(std::move(end));
    }
    return {};
  }

  const ExploreSpace& space_;
  LoadedRules own_;
  const StudyRequest& request_;
  StudyStore& store_;
  const Log& log_;
  Graph start_;
  StudyBlock block_;
  std::unique_ptr<PassStates> states_;
  std::set<std::uint64_t> done_;
  std::set<std::string> judged_;  ///< ends
  std::set<std::pair<std::size_t, std::size_t>> walked_;
  std::vector<std::pair<std::size_t, std::size_t>> fresh_;  ///< of `walked_`, not yet written
  std::size_t written_end_ = 0;
};

/// Selects the shard's slices, counted over all blocks. They are adjacent, so that their orders
/// share prefixes.
struct Share {
  std::uint64_t begin = 0, end = 0;
  [[nodiscard]] bool has(std::uint64_t slice) const { return begin <= slice && slice < end; }
};

Share share_of(const Shard& shard, std::uint64_t slices) {
  return {slices * (shard.number - 1) / shard.of, slices * shard.number / shard.of};
}

class Study {
 public:
  Study(const std::vector<StudyGraph>& graphs, const LoadedRules& rules,
        const StudyRequest& request, const Log& log)
      : graphs_(graphs), rules_(rules), request_(request), log_(log) {}

  Result<StudyProgress> run() {
    StudyStore store = PW_TRY(StudyStore::open(request_.file, true));
    return run(store);
  }
  Result<StudyProgress> run(StudyStore& store) {
    space_ = PW_TRY(explore_space(rules_, request_.space));
    const OrderNumbers numbers =
        PW_TRY(OrderNumbers::of(space_.passes.size(), space_.before, space_.subsets));
    if (space_.sample == 0 && numbers.count() > kMostUnits)
      return fail(
          error_in("study", "PW1114",
                   fmt::format("a graph has {} orders, but a study stores at most {} per graph",
                               numbers.count(), kMostUnits),
                   "study a sample: --sample 5000"));
    units_ = numbers.sample(space_.sample == 0 ? numbers.count() : space_.sample, space_.seed);
    const std::uint64_t each = (units_.size() + kSlice - 1) / kSlice;
    const Share share = share_of(request_.shard, each * graphs_.size() * space_.settings.size());
    std::uint64_t slice = 0;
    for (const StudyGraph& graph : graphs_)
      for (const ExploreSetting& setting : space_.settings) {
        if (slice < share.end && slice + each > share.begin)
          PW_TRY(block(store, numbers, graph, setting, {share.begin, share.end}, slice));
        slice += each;
      }
    return progress_;
  }

 private:
  Status block(StudyStore& store, const OrderNumbers& numbers, const StudyGraph& graph,
               const ExploreSetting& setting, Share share, std::uint64_t slice) {
    Block block(space_, rules_, request_, store, log_);
    PW_TRY(block.begin(graph, setting, numbers, units_));
    const bool whole = share.has(slice);  // the first slice includes the data of the whole block
    for (std::size_t i = 0; i < units_.size(); i += kSlice, ++slice) {
      if (!share.has(slice)) continue;
      const std::span<const std::uint64_t> units(units_.data() + i,
                                                 std::min<std::size_t>(kSlice, units_.size() - i));
      const auto there = static_cast<std::uint64_t>(std::count_if(
          units.begin(), units.end(), [&](std::uint64_t unit) { return block.has(unit); }));
      progress_.units += units.size();
      progress_.done += there;
      log_.progress({"studying " + graph.name, i, units_.size(), "orders"});
      if (there < units.size()) PW_TRY(block.add(numbers, units));
    }
    if (whole) PW_TRY(block.add_thefts());
    progress_.runs += block.runs();
    return {};
  }

  const std::vector<StudyGraph>& graphs_;
  const LoadedRules& rules_;
  const StudyRequest& request_;
  const Log& log_;
  ExploreSpace space_;
  std::vector<std::uint64_t> units_;  ///< numbers of orders
  StudyProgress progress_;
};

}  // namespace

Result<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto number = [](const std::string& digits) { return parse_numbers(digits, 1, 1'000'000); };
  auto first = number(text.substr(0, slash));
  auto of = number(slash == std::string::npos ? "" : text.substr(slash + 1));
  if (!first || !of || first->size() != 1 || of->size() != 1 || first->front() > of->front())
    return fail(error_in("shard", "PW1462", "`" + text + "` is not a shard",
                         "write the second of eight as 2/8"));
  return Shard{static_cast<std::uint64_t>(first->front()), static_cast<std::uint64_t>(of->front())};
}

Result<StudyProgress> run_study(const std::vector<StudyGraph>& graphs, const LoadedRules& rules,
                                const StudyRequest& request, const Log& log) {
  return Study(graphs, rules, request, log).run();
}

Result<StudySummary> study_in_memory(const std::vector<StudyGraph>& graphs,
                                     const LoadedRules& rules, const ExploreRequest& space,
                                     std::size_t most, const Log& log) {
  StudyStore store = PW_TRY(StudyStore::open(":memory:", true));
  PW_TRY(Study(graphs, rules, {space, {}, {}}, log).run(store));
  return summarize(store, most);
}

Status merge_studies(const std::string& file, const std::vector<std::string>& from) {
  StudyStore store = PW_TRY(StudyStore::open(":memory:", true));
  if (std::filesystem::exists(file)) PW_TRY(store.merge(file));
  for (const std::string& path : from) PW_TRY(store.merge(path));
  return store.write_to(file);
}

}  // namespace pw
