// All declarations of the loaded files by name: the symbol table of the checks. Refers to the
// files.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

struct RuleDecl {
  const ast::Rule* rule = nullptr;
  std::string group;
  bool root = false;  ///< in a file that was named, not in one that was used
  [[nodiscard]] std::string full_name() const {
    return group.empty() ? rule->name : group + "." + rule->name;
  }
};

struct Program {
  std::vector<const ast::OpItem*> ops;
  std::vector<const ast::ForeignItem*> foreigns;
  std::vector<RuleDecl> rules;
  std::vector<const ast::Group*> groups;
  std::vector<const ast::Pass*> passes;
  std::vector<const ast::Pipeline*> pipelines;
  std::vector<const ast::Split*> splits;
  std::vector<const ast::Capture*> captures;
  std::vector<const ast::Explore*> explores;
  std::vector<const ast::Test*> tests;
  std::vector<const ast::GraphItem*> graphs;
  std::map<std::string, const ast::Table*, std::less<>> tables;
  std::vector<std::shared_ptr<const ast::Table>> products;  ///< `table P = A * B`, multiplied out
  std::map<std::string, const ast::Pattern*, std::less<>> patterns;
  std::vector<std::shared_ptr<const ast::Pattern>> settled;  ///< by settle_patterns()
  std::map<std::string, const ast::Param*, std::less<>> params;
  std::map<std::string, const ast::Extern*, std::less<>> externs;

  /// Returns true if a rule, family or group has this reference, even one that failed its checks.
  [[nodiscard]] bool declares(std::string_view reference) const;
  /// Returns everything a strategy may refer to, for did-you-mean.
  [[nodiscard]] std::vector<std::string> strategy_names() const;
};

[[nodiscard]] bool is_builtin_pass(std::string_view name);  ///< dce, cse
/// Returns "noop" of `noop.*`, "fam" of `fam[*]` and `fam[row]`; otherwise the reference itself.
[[nodiscard]] std::string_view reference_head(std::string_view reference);

/// Collects the declarations, and diagnoses names declared twice.
Program collect_program(const std::vector<ast::File>& files, const std::vector<bool>& root,
                        Diagnostics& out);

}  // namespace pw
