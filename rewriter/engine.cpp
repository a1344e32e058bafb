// Exports run_rules, and RuleEngine's seeding and taking. Legality, replacing, requeueing and rules
// with lists are in engine_*.cpp.
#include "rewriter/engine.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "dsl/frontier.hpp"
#include "rewriter/anchor.hpp"
#include "rewriter/legality.hpp"
#include "rewriter/naive_driver.hpp"

namespace pw {
namespace {

/// Whether an expression asks about more than types and attributes.
bool looks_around(const Expr& expr) {
  if (expr.kind == Expr::Kind::call && expr.text == "replicated") return true;
  return std::any_of(expr.args.begin(), expr.args.end(), looks_around);
}

std::map<std::uint32_t, std::size_t> own_ops(const Rule& rule) {
  std::map<std::uint32_t, std::size_t> out;
  for (const PatternNode& node : rule.nodes)
    if (node.own()) ++out[node.op.index];
  return out;
}

using OpCounts = std::map<std::uint32_t, std::size_t>;

/// Whether a match of one rule, with these ops, may hold all nodes of a match of another, and more.
bool may_nest(const OpCounts& outer, const OpCounts& inner, bool lists) {
  std::size_t more = 0;
  for (const auto& [op, count] : outer) more += count;
  for (const auto& [op, count] : inner) {
    const auto there = outer.find(op);
    if (there == outer.end() || (!lists && there->second < count)) return false;
    more -= std::min(more, count);
  }
  return more > 0 || lists;
}

}  // namespace

RuleEngine::RuleEngine(RunState& run, const Strategy& strategy, PassStats& stats)
    : run_(run),
      graph_(run.graph),
      strategy_(strategy),
      stats_(stats),
      constant_(run.graph.context().ops.find("constant")) {
  once_ = strategy.kind == ast::Strategy::Kind::once;
  walk_ = strategy.kind == ast::Strategy::Kind::walk;
  limit_ = 10'000 + run.options.limits.per_node * graph_.node_count();
}

/// Opens what is asked for, prepares, compiles and seeds, until nothing more is asked for.
void RuleEngine::start() {
  do {
    for (RuleId id : frontiers_) open_frontier(run_.rules, id);
    if (!frontiers_.empty()) run_.prepared.clear();
    frontiers_.clear();
    finish_stats();
    rules_.clear();
    heap_.clear();
    seeds_.clear();
    parked_.clear();
    pool_.clear();
    listed_.clear();
    queued_.clear();
    searches_.clear();
    waiters_.clear();
    prepare();
    compile();
    seed();
  } while (!frontiers_.empty());
  note_first();
}

void RuleEngine::note_first() {
  first_.clear();
  if (!once_ || std::all_of(rules_.begin(), rules_.end(),
                            [](const Prepared& rule) { return rule.above.empty(); }))
    return;
  for (const Entry& entry : seeds_) {
    if (rules_[entry.rule].lists)
      first_.insert(identity(entry.rule, all_nodes(listed_[entry.at].match)));
    else if (rebind(entry.rule, entry, taken_))
      first_.insert(identity(entry.rule, taken_.nodes));
  }
}

/// A frontier that was opened stands for its variants.
void RuleEngine::collect(const std::vector<RuleId>& ids, std::vector<RuleId>& out) const {
  for (RuleId id : ids) {
    const auto opened = run_.rules.opened.find(id);
    if (opened == run_.rules.opened.end())
      out.push_back(id);
    else
      collect(opened->second, out);
  }
}

void RuleEngine::prepare() {
  std::vector<RuleId> ids;
  collect(strategy_.rules, ids);
  sort_by_rank(run_.rules, ids);
  for (RuleId id : ids) {
    Prepared out;
    out.rule = &run_.prepare(id);
    const RuleLayout& layout = out.layout();
    const Rule& rule = out.ast();
    out.verdicts = std::make_unique<Verdicts>(graph_, layout, out.rule->base);
    out.stats = rule.frontier ? nullptr : &stats_.rules[rule.name];
    out.memo = std::none_of(rule.where.begin(), rule.where.end(), looks_around) &&
               std::none_of(rule.assume.begin(), rule.assume.end(), looks_around);
    out.lists = !layout.plain();
    follow_erased_ = follow_erased_ || out.lists;
    std::set<OpId> ops;
    for (const PatternNode& node : rule.nodes)
      out.ambiguous = out.ambiguous || !ops.insert(node.op).second ||
                      graph_.context().ops[node.op].traits.commutative;
    for (PatternValueId v : layout.consumed) {
      std::uint32_t uses = 0;
      for (PatternNodeId n : layout.own)
        for (PatternValueId operand : rule.nodes[n].operands) uses += operand == v ? 1 : 0;
      out.uses_inside.push_back(uses);
    }
    for (const std::string& name : layout.reads) out.reads.push_back(rule.value_named(name));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < rule.values.size(); ++i) {
      const PatternValue& value = rule.values[PatternValueId(i)];
      if (value.name.empty() || value.name == "_" || value.list || value.literal_none ||
          value.literal || value.attribute_variable)
        continue;
      names.push_back(value.name);
      out.named.push_back(PatternValueId(i));
    }
    out.names = run_.report.journal.register_names(std::move(names));
    rules_.push_back(std::move(out));
  }
  find_rules_above();
}

void RuleEngine::find_rules_above() {
  std::vector<OpCounts> ops;
  for (const Prepared& rule : rules_) ops.push_back(own_ops(rule.ast()));
  for (std::uint32_t b = 0; b < rules_.size(); ++b)
    for (std::uint32_t a = 0; a < rules_.size(); ++a) {
      if (rules_[a].ast().frontier) continue;
      const bool lists = !rules_[a].ast().members.empty() || !rules_[b].ast().members.empty();
      if (a == b && !lists) continue;  // one of its matches is as large as another
      const std::vector<RuleId>& over = rules_[a].ast().over;
      const std::vector<RuleId>& under = rules_[b].ast().over;
      const bool declared =
          std::find(over.begin(), over.end(), rules_[b].layout().id) != over.end();
      const bool against =
          std::find(under.begin(), under.end(), rules_[a].layout().id) != under.end();
      rules_[b].under = rules_[b].under || declared;
      if (declared || (!against && may_nest(ops[a], ops[b], lists))) rules_[b].above.push_back(a);
    }
}

void RuleEngine::compile() {
  std::vector<const RuleLayout*> layouts;
  for (const Prepared& rule : rules_) layouts.push_back(&rule.layout());
  program_ = compile_program(run_.rules, layouts, gather_statistics(graph_));
  registers_ = std::make_unique<Registers>(program_);
  if (run_.options.stats) trace_ = std::make_unique<CountingTrace>(program_);
}

StopReason RuleEngine::run() {
  start();
  std::optional<StopReason> stop;
  while (!stop) {
    stop = step();
    const bool opens = !frontiers_.empty() && !once_;
    if (stop || opens || new_facts_ || !heap_.empty() || !seeds_.empty()) continue;
    if (!release_parked() && !ask_refused_again()) stop = StopReason::fixpoint;
  }
  finish_stats();
  return *stop;
}

void RuleEngine::seed() {
  version_ = graph_.renumberings();
  seeding_ = true;
  for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) attempt(n);
  seeding_ = false;
  // Nearly in order already, and taken in order: a sorted list needs no heap.
  seeds_ = std::move(heap_);
  heap_.clear();
  std::sort(seeds_.begin(), seeds_.end(), Later{this});  // the first comes last
}

void RuleEngine::attempt(NodeId anchor) {
  if (program_.entry_of(graph_.op(anchor)) == Instruction::kNowhere) return;
  choices_.clear();
  asked_.clear();
  const auto accepted = [&](std::uint32_t rule) { accept(rule, anchor); };
  if (trace_) {
    execute(program_, graph_, anchor, constant_, *registers_, *trace_, accepted);
  } else {
    NoTrace none;
    execute(program_, graph_, anchor, constant_, *registers_, none, accepted);
  }
  for (const Choice& choice : choices_)
    if (legal(choice.rule, anchor, choice.best)) push(choice.rule, anchor, choice.best);
}

/// With RewriteOptions::stats: what is spent on one rule, from here to the end of the scope.
class RuleEngine::Timed {
 public:
  Timed(const RuleEngine& engine, RuleStats* stats)
      : stats_(engine.trace_ ? stats : nullptr), start_(now()) {}
  ~Timed() {
    if (stats_ != nullptr) stats_->seconds += std::chrono::duration<double>(now() - start_).count();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Clock::time_point now() const {
    return stats_ == nullptr ? Clock::time_point() : Clock::now();
  }
  RuleStats* stats_;
  Clock::time_point start_;
};

void RuleEngine::accept(std::uint32_t index, NodeId anchor) {
  Prepared& rule = rules_[index];
  const Timed timed(*this, rule.stats);
  if (rule.stats != nullptr) ++rule.stats->hits;
  read_candidate(program_.rules[index], *registers_, found_);
  if (rule.ast().frontier) return accept_frontier(index, found_);
  if (rule.lists) return accept_listed(index, anchor, found_);
  if (rule.ambiguous) return choose(index, anchor, found_);
  if (legal(index, anchor, found_)) push(index, anchor, found_);
}

/// Where a frontier fits, its variants have to be asked.
void RuleEngine::accept_frontier(std::uint32_t index, const Candidate& c) {
  const Prepared& rule = rules_[index];
  if (std::find(frontiers_.begin(), frontiers_.end(), rule.layout().id) != frontiers_.end()) return;
  Search search(graph_, rule.layout(), rule.rule->base, false);
  search.look_for_frontiers();
  search.run_fixed(c.nodes, [&](const Match&) {
    frontiers_.push_back(rule.layout().id);
    return false;
  });
}

/// One match per set of nodes: the smallest labels in pattern order, then the operands as written.
void RuleEngine::choose(std::uint32_t index, NodeId anchor, const Candidate& c) {
  if (!fits(index, anchor, c)) return;  // a way that is forbidden leaves the set to the others
  std::vector<NodeId> set = c.nodes;
  std::sort(set.begin(), set.end());
  for (Choice& known : choices_) {
    if (known.rule != index || known.set != set) continue;
    if (comes_first(c, known.best)) known.best = c;
    return;
  }
  choices_.push_back({index, c, std::move(set)});
}

bool RuleEngine::comes_first(const Candidate& a, const Candidate& b) const {
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (a.nodes[i] != b.nodes[i]) return graph_.label(a.nodes[i]) < graph_.label(b.nodes[i]);
  return a.swaps < b.swaps;
}

void RuleEngine::push(std::uint32_t index, NodeId anchor, const Candidate& c) {
  Entry entry;
  entry.position = position_of(rules_[index], c);
  if (is_behind(entry.position)) return;
  entry.rule = index;
  entry.at = static_cast<std::uint32_t>(pool_.size());
  std::uint32_t swaps = 0;
  for (std::size_t i = 0; i < c.nodes.size(); ++i) {
    pool_.push_back(c.nodes[i].index);
    if (c.swaps[i] != 0 && i < 32) swaps |= 1u << i;
  }
  pool_.push_back(swaps);
  pool_.push_back(anchor.index);
  heap_.push_back(entry);
  if (!seeding_) std::push_heap(heap_.begin(), heap_.end(), Later{this});
}

/// The total order: position, rank, the labels of the nodes in pattern order, then as written.
bool RuleEngine::goes_later(const Entry& a, const Entry& b) const {
  if (a.position != b.position) return a.position > b.position;
  if (a.rule != b.rule) return a.rule > b.rule;
  if (rules_[a.rule].lists) return listed_later(a, b);
  const std::size_t count = rules_[a.rule].ast().nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const NodeId x{std::size_t{pool_[a.at + i]}}, y{std::size_t{pool_[b.at + i]}};
    if (x == y || !x.valid() || !y.valid()) continue;
    return graph_.label(x) > graph_.label(y);
  }
  return pool_[a.at + count] > pool_[b.at + count];
}

/// All labels changed, and not their order; positions are labels, so all are read anew.
void RuleEngine::rekey() {
  version_ = graph_.renumberings();
  heap_.insert(heap_.end(), seeds_.begin(), seeds_.end());
  seeds_.clear();
  std::vector<Entry> kept;
  for (Entry& entry : heap_) {
    if (rules_[entry.rule].lists) {
      kept.push_back(entry);  // found out when it is taken
      continue;
    }
    if (!rebind(entry.rule, entry, taken_)) continue;
    entry.position = position_of(rules_[entry.rule], taken_);
    kept.push_back(entry);
  }
  heap_ = std::move(kept);
  std::make_heap(heap_.begin(), heap_.end(), Later{this});
}

/// The earlier of the next seed and the top of the heap.
RuleEngine::Entry RuleEngine::next_entry() {
  const bool seed = heap_.empty() || (!seeds_.empty() && goes_later(heap_.front(), seeds_.back()));
  if (!seed) std::pop_heap(heap_.begin(), heap_.end(), Later{this});
  std::vector<Entry>& from = seed ? seeds_ : heap_;
  const Entry out = from.back();
  from.pop_back();
  return out;
}

std::optional<StopReason> RuleEngine::step() {
  if (new_facts_) ask_under_new_facts();
  if (!frontiers_.empty() && !once_) start();
  if (version_ != graph_.renumberings()) rekey();
  if (heap_.empty() && seeds_.empty()) return std::nullopt;
  const Entry entry = next_entry();
  return rules_[entry.rule].lists ? take_listed(entry) : take(entry);
}

void RuleEngine::note_conditions(const std::vector<Condition>& conditions) {
  for (const Condition& condition : conditions)
    new_facts_ = run_.note_condition(condition) || new_facts_;
}

/// What an assumption made a fact may prove the guard of a match that was refused, or refute one
/// that is known. It happens a few times a run, so all is asked again.
void RuleEngine::ask_under_new_facts() {
  new_facts_ = false;
  if (!once_) return start();
  for (Prepared& rule : rules_)
    rule.verdicts = std::make_unique<Verdicts>(graph_, rule.layout(), rule.rule->base);
}

std::optional<StopReason> RuleEngine::take(const Entry& entry) {
  if (is_behind(entry.position)) return std::nullopt;
  if (!rebind(entry.rule, entry, taken_)) return std::nullopt;
  Prepared& rule = rules_[entry.rule];
  const Timed timed(*this, rule.stats);
  // Moving nodes only makes labels larger, so a stale position is too small and is seen here.
  if (const std::uint64_t now = position_of(rule, taken_); now != entry.position) {
    heap_.push_back(entry);
    heap_.back().position = now;
    std::push_heap(heap_.begin(), heap_.end(), Later{this});
    return std::nullopt;
  }
  const NodeId anchor{std::size_t{pool_[entry.at + taken_.nodes.size() + 1]}};
  const Verdict* verdict = legal(entry.rule, anchor, taken_);
  if (verdict == nullptr) return std::nullopt;
  if (!force_ && !rule.above.empty()) {
    own_.clear();
    for (PatternNodeId id : rule.layout().own) own_.push_back(taken_.nodes[id.index]);
    if (blocked(entry)) return std::nullopt;
  }
  if (run_.out_of_fuel()) return StopReason::fuel;
  if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
    return StopReason::limit;
  note_conditions(verdict->conditions);
  replace(entry.rule, taken_, verdict->recipe);
  return after_rewrite(entry.rule);
}

/// What follows a rewrite, whoever made it: counts, the journal's reader, the loop guard, the
/// queue.
std::optional<StopReason> RuleEngine::after_rewrite(std::uint32_t index) {
  Prepared& rule = rules_[index];
  force_ = false;
  for (const std::unique_ptr<Search>& search : searches_)
    if (search) search->graph_changed();
  ++rewrites_;
  ++stats_.rewrites;
  ++rule.stats->matches;
  run_.count_rewrite();
  if (walk_) move_cursor();
  if (once_)
    unpark();
  else
    requeue();
  const std::vector<RuleId> cycle = guard_.after(graph_, rule.layout().id, own_, created_);
  if (cycle.empty()) return std::nullopt;
  Diagnostic warning = error_at(strategy_.span, "PW1103",
                                fmt::format("the rules {} rewrite each other's results for ever",
                                            describe_cycle(run_.rules, cycle)),
                                "make one of them stricter, or leave one out of the pass");
  warning.severity = Severity::warning;
  for (RuleId r : cycle)
    warning.secondary.push_back({run_.rules.rules[r].name_span, "part of the cycle"});
  run_.report.warnings.push_back(std::move(warning));
  return StopReason::cycle;
}

/// The sweep goes on from where the first node stood that was replaced: new nodes behind that place
/// are ahead of it.
void RuleEngine::move_cursor() {
  const NodeId front = first_of(graph_, own_);
  cursor_ = graph_.label(front);
  cursor_version_ = graph_.renumberings();
  cursor_node_ = graph_.next(front);  // a dead node still says what stood behind it
  while (cursor_node_.valid() && !graph_.alive(cursor_node_))
    cursor_node_ = graph_.next(cursor_node_);
}

/// A match that was tried and taken back may leave other labels.
bool RuleEngine::is_behind(std::uint64_t position) {
  if (!walk_) return false;
  if (rewrites_ > 0 && cursor_version_ != graph_.renumberings()) {
    cursor_version_ = graph_.renumberings();
    cursor_ = cursor_node_.valid() ? graph_.label(cursor_node_) : ~std::uint64_t{0};
  }
  return position < cursor_;
}

/// Nothing else is left: matches that waited are asked again, since what they waited for may be
/// gone without a trace. If they wait for each other in a ring, the first of them goes.
bool RuleEngine::release_parked() {
  if (parked_.empty()) return false;
  force_ = rewrites_ == rewrites_at_release_;
  rewrites_at_release_ = rewrites_;
  heap_.insert(heap_.end(), parked_.begin(), parked_.end());
  parked_.clear();
  version_ = graph_.renumberings() - 1;  // their positions may be old
  rekey();
  return !heap_.empty();
}

/// A path or a barrier that forbade a match may be gone since, though no node of the match was
/// touched.
bool RuleEngine::ask_refused_again() {
  if (once_ || walk_ || refused_.empty() || rewrites_ == rewrites_at_retry_) return false;
  rewrites_at_retry_ = rewrites_;
  std::vector<NodeId> again = std::move(refused_);
  refused_.clear();
  std::sort(again.begin(), again.end());
  again.erase(std::unique(again.begin(), again.end()), again.end());
  for (NodeId n : again)
    if (graph_.alive(n)) attempt(n);
  return !heap_.empty();
}

void RuleEngine::finish_stats() {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    Prepared& rule = rules_[i];
    if (rule.stats == nullptr) continue;
    for (std::size_t code = 1; code < std::size(rule.rejections); ++code)
      if (rule.rejections[code] > 0)
        rule.stats->rejections[fmt::format("N{:02}", code)] += rule.rejections[code];
    if (!trace_ || program_.rules[i].path.empty()) continue;
    rule.stats->attempts += trace_->asks[program_.rules[i].path.front()];
    for (std::uint32_t pc : program_.rules[i].path)
      if (trace_->fails[pc] > 0 && *program_.origins[pc].reason != '\0')
        rule.stats->rejections[program_.origins[pc].reason] += trace_->fails[pc];
  }
}

StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats) {
  if (run.options.engine == EngineKind::naive) return run_rules_naive(run, strategy, stats);
  return RuleEngine(run, strategy, stats).run();
}

}  // namespace pw
