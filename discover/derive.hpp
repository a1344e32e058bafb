// Whether rules make two forms equal: both stand in one graph, on which the rules are saturated.
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
  /// One rule, as a text for each direction in which it can be written, its own first; `ops` are
  /// those of both sides.
  void add(const std::vector<std::string>& directions, std::vector<OpId> ops);
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  /// Whether a rule is not used, by the order in which they were added.
  void leave_out(std::size_t rule, bool out);
  [[nodiscard]] std::size_t left_out() const;
  /// Types without symbols. Only rules of ops that the forms have are tried: with those of all ops
  /// the limits of saturation are reached before the step that is needed.
  [[nodiscard]] bool derives(const Pair& pair);
  /// The outputs are all before, then all after. Rules of other ops are tried last.
  [[nodiscard]] bool derives(Graph graph, std::size_t pairs);

 private:
  struct Known {
    std::vector<std::string> names;
    std::string text;
    std::vector<OpId> ops;  ///< sorted
    bool out = false;
  };
  /// The rules whose ops are all of some ops, loaded.
  struct Edition {
    std::vector<std::size_t> rules;
    RuleSet set;
    Env params;
    bool loads = false;
  };
  [[nodiscard]] bool joined(const Graph& graph, std::size_t pairs, const std::vector<OpId>& ops);
  /// Anew if the rules are others than before; null where there are none.
  const Edition* edition(const std::vector<OpId>& ops);

  ContextPtr context_;
  std::vector<Known> rules_;
  std::size_t names_ = 0, texts_ = 0;
  std::map<std::vector<OpId>, Edition> editions_;
};

}  // namespace pw::discover
