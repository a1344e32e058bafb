#include "rewriter/strategies/verdicts.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "rewriter/explain/near_miss_codes.hpp"

namespace pw {
namespace {

constexpr std::uint32_t kEmpty = 0xffffffff;

/// Returns true if the match reads the operands of each commutative node in the candidate's order.
bool same_order(const Graph& graph, const Rule& rule, const Match& match,
                const Candidate& candidate) {
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    if (!graph.context().ops[node.op].traits.commutative || node.operands.size() < 2 ||
        !candidate.nodes[i].valid())
      continue;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const PatternValue& value = rule.values[node.operands[slot]];
      const auto bound = match.env.find(value.name);
      if (value.name.empty() || value.name == "_" || bound == match.env.end()) continue;
      const auto* held = std::get_if<ValueId>(&bound->second);
      if (held != nullptr && *held != candidate.values[node.operands[slot].index]) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<Match> bind_candidate(const Graph& graph, const RuleLayout& layout, const Env& base,
                                    const Candidate& candidate, Failure* why) {
  Search search(graph, layout, base, false);
  std::optional<Match> out;
  search.run_fixed(candidate.nodes, [&](const Match& match) {
    if (!same_order(graph, *layout.rule, match, candidate)) return true;
    out = match;
    return false;
  });
  if (!out && why != nullptr) *why = search.furthest();
  return out;
}

void Verdict::refuse(const char* code, Span where) {
  reason = code;
  span = where;
  place = near_miss_code(code) != nullptr ? place_of(code) : kNoPlace;
}

Verdicts::Verdicts(const Graph& graph, const RuleLayout& layout, const Env& base)
    : graph_(graph), layout_(&layout), base_(&base) {
  const Rule& rule = *layout.rule;
  for (std::uint32_t i = 0; i < rule.values.size(); ++i) {
    const PatternValue& value = rule.values[PatternValueId(i)];
    if (value.literal || value.attribute_variable) numbers_.push_back(i);
  }
}

void Verdicts::read_key(const Candidate& candidate) {
  key_.resize(candidate.values.size() + candidate.nodes.size() + numbers_.size());
  std::uint32_t* at = key_.data();
  for (ValueId value : candidate.values) {
    if (!value.valid())
      *at++ = kAbsent;
    else if (graph_.type(value) != Types::unknown())
      *at++ = graph_.type(value).index;
    else
      *at++ = kUntyped | value.index;  // facts about its type depend on the value
  }
  for (NodeId node : candidate.nodes)
    *at++ = node.valid() ? graph_.attributes(node).index : kAbsent;
  for (std::uint32_t i : numbers_) {
    const ValueId number = candidate.values[i];
    *at++ = number.valid() && graph_.producer(number).valid()
                ? graph_.attributes(graph_.producer(number)).index
                : kAbsent;
  }
}

std::uint64_t Verdicts::hash_key() const {
  std::uint64_t h = key_.size();
  for (std::uint32_t k : key_) h = (h ^ k) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  return h;
}

/// Returns the table slot of the verdict for key_, or a separate slot if it is the expected one.
std::uint32_t& Verdicts::slot_of_key() {
  const std::size_t width = key_.size();
  const auto equal = [&](std::uint32_t v) {
    return std::equal(key_.begin(), key_.end(),
                      keys_.begin() + static_cast<std::ptrdiff_t>(v * width));
  };
  if (!verdicts_.empty() && equal(followers_[last_])) return followers_[last_];
  if ((verdicts_.size() + 1) * 2 > table_.size()) grow();
  std::size_t at = hash_key() & (table_.size() - 1);
  while (table_[at] != kEmpty && !equal(table_[at])) at = (at + 1) & (table_.size() - 1);
  return table_[at];
}

const Verdict* Verdicts::known(const Candidate& candidate) {
  read_key(candidate);
  const std::uint32_t found = slot_of_key();
  return found == kEmpty ? nullptr : follow(found);
}

const Verdict* Verdicts::follow(std::uint32_t verdict) {
  followers_[last_] = verdict;
  return verdicts_[last_ = verdict].get();
}

const Verdict& Verdicts::ask(const Candidate& candidate) {
  read_key(candidate);
  std::uint32_t& slot = slot_of_key();
  if (slot != kEmpty) return *follow(slot);
  std::unique_ptr<Verdict> verdict = judge(candidate);
  slot = static_cast<std::uint32_t>(verdicts_.size());
  const std::uint32_t number = slot;
  followers_.push_back(number);
  keep(std::move(verdict));
  return *follow(number);
}

/// Stores the verdict for key_.
void Verdicts::keep(std::unique_ptr<Verdict> verdict) {
  keys_.insert(keys_.end(), key_.begin(), key_.end());
  kinds_.push_back(!verdict->refused.empty()            ? Guess::unknown
                   : !verdict->yes()                    ? Guess::no
                   : verdict->recipe.may_change_nothing ? Guess::yes_perhaps
                                                        : Guess::yes);
  verdicts_.push_back(std::move(verdict));
}

void Verdicts::grow() {
  const std::size_t width = key_.size();
  const std::vector<std::uint32_t> key = key_;
  table_.assign(std::max<std::size_t>(16, table_.size() * 2), kEmpty);
  for (std::uint32_t v = 0; v < verdicts_.size(); ++v) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(v * width);
    key_.assign(begin, begin + static_cast<std::ptrdiff_t>(width));
    std::size_t at = hash_key() & (table_.size() - 1);
    while (table_[at] != kEmpty) at = (at + 1) & (table_.size() - 1);
    table_[at] = v;
  }
  key_ = key;
}

std::unique_ptr<Verdict> Verdicts::judge(const Candidate& candidate) {
  auto out = std::make_unique<Verdict>();
  Failure why;
  std::optional<Match> match = bind_candidate(graph_, *layout_, *base_, candidate, &why);
  if (!match) {
    out->refuse(why.any() ? why.code : "N07", why.span);
    return out;
  }
  out->conditions = match->conditions;
  if (Result<Recipe> recipe = make_recipe(graph_, *layout_, *match, candidate)) {
    out->recipe = std::move(*recipe);
  } else {
    const std::string& code = recipe.error().front().code;
    out->refuse(code == "N05" ? "N05" : code == "N06" ? "N06" : "N07", recipe.error().front().span);
    if (code.starts_with("PW")) out->refused = std::move(recipe.error());
  }
  return out;
}

}  // namespace pw
