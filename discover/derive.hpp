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
  /// Texts of rules, each in the directions in which it can be written.
  void add(std::vector<std::string> rules);
  /// Types without symbols.
  [[nodiscard]] bool derives(const Pair& pair);
  /// The outputs are all before, then all after.
  [[nodiscard]] bool derives(Graph graph, std::size_t pairs);

 private:
  ContextPtr context_;
  std::string text_, names_;
  std::size_t rules_ = 0, editions_ = 0;
  RuleSet set_;
  Env params_;
  bool stale_ = false;
};

}  // namespace pw::discover
