#include <algorithm>
#include <map>

#include "dsl/build/equivalence.hpp"
#include "dsl/rule_index.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

bool states_direction(std::string_view reference) {
  for (const std::string_view direction : {"[forward", "[backward"}) {
    const std::size_t at = reference.find(direction);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = reference.substr(at + direction.size());
    if (rest.starts_with(']') || rest.starts_with('_')) return true;
  }
  return false;
}

class DirectionCheck {
 public:
  DirectionCheck(const Program& program, const RuleSet& set, Diagnostics& out)
      : set_(set), index_(set), out_(out) {
    for (const RuleDecl& decl : program.rules)
      if (decl.rule->equivalence) equivalences_.emplace(place_of(decl.rule->name_span), decl.rule);
  }

  void strategy(const ast::Strategy& s) {
    const bool runs = s.kind == Kind::greedy || s.kind == Kind::once || s.kind == Kind::walk ||
                      s.kind == Kind::reference;
    for (const auto& [name, span] : s.references) {
      if (runs && !states_direction(name)) reference(name, span);
    }
    for (const ast::Strategy& part : s.parts) strategy(part);
  }

  /// Returns the equivalence among the rules of a reference; null if there is none.
  [[nodiscard]] const ast::Rule* equivalence_in(const std::string& name) const {
    if (equivalences_.empty()) return nullptr;
    for (RuleId id : index_.resolve(name)) {
      const auto found = equivalences_.find(place_of(set_.rules[id].name_span));
      if (found != equivalences_.end()) return found->second;
    }
    return nullptr;
  }

 private:
  void reference(const std::string& name, Span span) {
    const ast::Rule* rule = equivalence_in(name);
    if (rule == nullptr) return;
    Diagnostic d = error_at(
        span, "PW0392", "equivalence " + in_ticks(rule->name) + " would be applied back and forth",
        "name a direction, " + in_ticks(name + "[forward]") + " or " +
            in_ticks(name + "[backward]") + "; only `saturate` can use both directions");
    d.secondary.push_back({rule->name_span, "declared here"});
    out_.push_back(std::move(d));
  }

  static std::pair<std::size_t, std::size_t> place_of(Span span) {
    return {span.source.index, span.begin};
  }

  const RuleSet& set_;
  RuleIndex index_;
  std::map<std::pair<std::size_t, std::size_t>, const ast::Rule*> equivalences_;  // by place
  Diagnostics& out_;
};

}  // namespace

void check_directions(const Program& program, RuleSet& set, Diagnostics& out) {
  DirectionCheck check(program, set, out);
  for (const ast::Pass* pass : program.passes) check.strategy(pass->strategy);
  for (const ast::Pipeline* pipeline : program.pipelines) check.strategy(pipeline->strategy);
  std::erase_if(set.implicit, [&](const auto& entry) {
    return entry.second.builtin.empty() && !states_direction(entry.first) &&
           check.equivalence_in(entry.first) != nullptr;
  });
}

}  // namespace pw
