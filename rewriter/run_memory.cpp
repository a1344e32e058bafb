// Exports RunMemory and fingerprint.
#include "rewriter/run_memory.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "graph/text.hpp"

namespace pw {
namespace {

bool same_facts(const Facts& a, const Facts& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.min == y.second.min && x.second.max == y.second.max &&
           x.second.multiple == y.second.multiple && x.second.role == y.second.role;
  };
  return std::ranges::equal(a.symbols, b.symbols, same);
}

/// Adds texts and numbers to a hash, so that no two lists of them run together.
class Print {
 public:
  explicit Print(const RunRules& rules) : rules_(rules), context_(*rules.set().context) {}

  std::uint64_t rule(RuleId id) {
    const Rule& rule = rules_[id];
    add(rule.name);
    for (const PatternValue& value : rule.values) add(value);
    for (const PatternNode& node : rule.nodes) add(node);
    add(rule.members.size());
    for (const Members& members : rule.members) add(members);
    add(rule.unless.size());
    for (const Negation& negation : rule.unless)
      for (PatternNodeId n : negation.nodes) add(n.index);
    for (const std::string& list : rule.lists) add(list);
    add(rule.where);
    add(rule.assume);
    add(rule.replacement.size());
    for (const Statement& statement : rule.replacement) add(print(statement));
    for (const std::string& output : rule.outputs) add(output);
    for (PatternValueId v : rule.consumed) add(v.index);
    for (RuleId under : rule.over) add(rules_[under].name);
    for (const auto& [name, binding] : rule.constants) {
      add(name);
      add(binding);
    }
    add((rule.frontier ? 1u : 0u) | (rule.fused ? 2u : 0u));
    return hash_;
  }

 private:
  void add(std::uint64_t number) { hash_ = combine(hash_, number); }
  void add(std::string_view text) { add(hash_text(text)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  void add(const std::vector<Expr>& all) {
    add(all.size());
    for (const Expr& expr : all) add(print(expr));
  }
  void add(const PatternValue& value) {
    add(value.name);
    add(value.producer.index);
    add(static_cast<std::uint64_t>(value.result));
    add(value.literal ? context_.attributes.print(*value.literal) : std::string());
    add((value.optional ? 1u : 0u) | (value.literal_none ? 2u : 0u) |
        (value.attribute_variable ? 4u : 0u) | (value.list ? 8u : 0u) | (value.literal ? 16u : 0u));
    add(value.types.size());
    for (const TypeExpr& type : value.types) add(print(type));
  }
  void add(const PatternNode& node) {
    add(context_.ops[node.op].name);
    for (PatternValueId v : node.operands) add(v.index);
    add(node.results.size());
    for (PatternValueId v : node.results) add(v.index);
    add(node.attributes.size());
    for (const PatternAttribute& attribute : node.attributes) {
      add(attribute.name);
      add(print(attribute.value));
    }
    add((node.open ? 1u : 0u) | (node.given ? 2u : 0u));
    add(node.members.index);
    add(static_cast<std::uint64_t>(node.negation));
  }
  void add(const Members& members) {
    add(static_cast<std::uint64_t>(members.kind));
    for (PatternNodeId n : members.nodes) add(n.index);
    add(members.root.index);
    add(members.reader.index);
  }

 public:
  std::uint64_t environment(const Env& env) {
    for (const auto& [name, binding] : env) {
      add(name);
      add(binding);
    }
    return hash_;
  }

 private:
  void add(const Binding& binding) {
    add(binding.index());
    if (const auto* value = std::get_if<ValueId>(&binding)) add(value->index);
    if (const auto* dtype = std::get_if<DTypeBinding>(&binding))
      add(2 * static_cast<std::uint64_t>(dtype->dtype) + (dtype->weak ? 1 : 0));
    if (const auto* dim = std::get_if<DimId>(&binding)) add(context_.dims.print(*dim));
    if (const auto* shape = std::get_if<Shape>(&binding)) add(context_.types.print(*shape));
    if (const auto* attribute = std::get_if<Attribute>(&binding))
      add(context_.attributes.print(*attribute));
    if (const auto* list = std::get_if<std::vector<ValueId>>(&binding))
      for (ValueId v : *list) add(v.index);
  }

  const RunRules& rules_;
  Context& context_;
  std::uint64_t hash_ = 1;
};

}  // namespace

std::uint64_t fingerprint(const RunRules& rules, RuleId id) { return Print(rules).rule(id); }

std::uint64_t fingerprint(const RunRules& rules, const Env& params) {
  return Print(rules).environment(params);
}

void RunMemory::begin(std::shared_ptr<const Graph> input) {
  if (turn_ > 0) before_ = std::move(now_);
  now_.clear();
  turn_ = 0;
  start_ = std::move(input);
  doubtful = false;
  asked = recalled = 0;
}

void RunMemory::forget() {
  before_.clear();
  now_.clear();
  turn_ = 0;
  compared_old_.reset();
  compared_now_.reset();
}

const PassMemory* RunMemory::next(const std::string& label, const Graph& graph) {
  if (!start_ || start_->edition() != graph.edition())
    start_ = std::make_shared<const Graph>(graph);
  const std::size_t turn = turn_++;
  now_.emplace_back();
  if (turn >= before_.size() || !before_[turn]) return nullptr;
  const PassMemory& old = *before_[turn];
  const bool same = old.usable && old.label == label &&
                    old.start->context_ptr() == graph.context_ptr() &&
                    same_facts(old.start->facts, graph.facts);
  return same ? &old : nullptr;
}

void RunMemory::keep(std::unique_ptr<PassMemory> pass) { now_.back() = std::move(pass); }

const Correspondence& RunMemory::corresponding(const PassMemory& old) {
  if (compared_old_ != old.start || compared_now_ != start_) {
    corresponding_ = correspond(*old.start, *start_);
    compared_old_ = old.start;
    compared_now_ = start_;
  }
  return corresponding_;
}

std::uint64_t RunMemory::meaning_of(const RunRules& rules, RuleId id) {
  if (id.index >= rules.set().rules.size()) return fingerprint(rules, id);
  if (meanings_of_ != &rules.set()) {
    meanings_of_ = &rules.set();
    meanings_.assign(rules.set().rules.size(), 0);
  }
  std::uint64_t& meaning = meanings_[id.index];
  if (meaning == 0) meaning = fingerprint(rules, id);
  return meaning;
}

}  // namespace pw
