// Whether rules make two forms equal: both stand in one graph, on which the rules are saturated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "discover/form.hpp"
#include "dsl/ruleset.hpp"

namespace pw::discover {

class Derivations {
 public:
  explicit Derivations(ContextPtr context) : context_(std::move(context)) {}
  /// One rule, as a text for each direction in which it can be written; its own first.
  void add(const std::vector<std::string>& directions);
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  /// Whether a rule is not used, by the order in which they were added.
  void leave_out(std::size_t rule, bool out);
  [[nodiscard]] std::size_t left_out() const;
  /// Types without symbols.
  [[nodiscard]] bool derives(const Pair& pair);
  /// The outputs are all before, then all after.
  [[nodiscard]] bool derives(Graph graph, std::size_t pairs);

 private:
  struct Known {
    std::vector<std::string> names;
    std::string text;
    bool out = false;
  };
  [[nodiscard]] bool joined(Graph graph, std::size_t pairs, const char* pass) const;
  /// Loads the rules that are used, if they are others than before.
  bool load();

  ContextPtr context_;
  std::vector<Known> rules_;
  std::size_t names_ = 0, editions_ = 0;
  RuleSet set_;
  Env params_;
  bool stale_ = false;
};

}  // namespace pw::discover
