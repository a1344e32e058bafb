// Decides whether rules derive the equality of two forms: puts both into one graph and saturates
// it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "discover/form.hpp"
#include "dsl/ruleset.hpp"

namespace pw::discover {

class Derivations {
 public:
  explicit Derivations(ContextPtr context) : context_(std::move(context)) {}
  /// Adds one rule, as one text for each direction, its own first. `ops` are the ops of both sides.
  void add(const std::vector<std::string>& directions, std::vector<OpId> ops);
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  /// Excludes or includes a rule, by the order of addition.
  void leave_out(std::size_t rule, bool out);
  [[nodiscard]] std::size_t left_out() const;
  /// Returns true if the rules derive the pair, whose types must have no symbols. Uses only rules
  /// whose ops all occur in the forms; with all rules, saturation would reach its limits too early.
  [[nodiscard]] bool derives(const Pair& pair);
  /// Returns true if the outputs become equal; the left sides' outputs come first. Rules of other
  /// ops are tried last.
  [[nodiscard]] bool derives(Graph graph, std::size_t pairs);

 private:
  struct Known {
    std::vector<std::string> names;
    std::string text;
    std::vector<OpId> ops;  ///< sorted
    bool out = false;
  };
  /// The loaded rules whose ops are all in a given set.
  struct Edition {
    std::vector<std::size_t> rules;
    RuleSet set;
    Env params;
    bool loads = false;
  };
  [[nodiscard]] bool joined(const Graph& graph, std::size_t pairs, const std::vector<OpId>& ops);
  /// Returns the rules, reloaded if the selection changed; null if none apply.
  const Edition* edition(const std::vector<OpId>& ops);

  ContextPtr context_;
  std::vector<Known> rules_;
  std::size_t names_ = 0, texts_ = 0;
  std::map<std::vector<OpId>, Edition> editions_;
};

}  // namespace pw::discover
