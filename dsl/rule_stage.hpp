// Turns the text of one rule into its checked variants: families, halves of equivalences, choices,
// fusions. Runs when rules are loaded, and again when a frontier is opened.
#pragma once

#include <memory>
#include <string>

#include "dsl/check/check.hpp"

namespace pw {

/// Parts of the files that opening a frontier needs, kept as long as rules refer to them.
struct PatternScope {
  std::vector<ast::Pattern> patterns;
  std::vector<ast::Param> params;
  std::vector<ast::Extern> externs;
  Program program;  ///< of these only
};

/// A rule with calls of recursive patterns that are still closed, `levels` deep.
struct ClosedRule {
  ast::Rule text;
  std::int64_t levels = 0;
  std::string base_name, group, table_variable;
  Env constants;
  std::shared_ptr<const PatternScope> scope;
};

class RuleStage {
 public:
  /// Creates a stage. Types of the rules of named files are added to `types`, unless it is null.
  RuleStage(const ContextPtr& context, const Program& program, Diagnostics& out,
            std::vector<InferredType>* types = nullptr);

  /// Returns all valid variants of a rule; the others are diagnosed.
  std::vector<Rule> run(const RuleDecl& decl, bool patterns_sound);
  /// Returns the variants one level deeper.
  std::vector<Rule> open(const ClosedRule& closed);

 private:
  struct Origin {
    std::string base_name, group;
    Env constants;
    std::string row;  ///< Rule::row
  };
  std::vector<Rule> variants(const RuleDecl& decl, bool patterns_sound);
  void expand_ops(Origin origin, const ast::Rule& text, std::vector<Rule>& out);
  [[nodiscard]] bool calls_pattern(const ast::Rule& rule) const;
  const ast::Table* find_table(const ast::Rule& rule);
  void expand(const Origin& origin, const ast::Rule& text, std::int64_t levels,
              std::vector<Rule>& out);
  void build(const Origin& origin, const ast::Rule& text, bool thorough, std::vector<Rule>& out);
  void build_frontier(const Origin& origin, const ast::Rule& text, std::int64_t levels,
                      std::vector<Rule>& out);
  static void put(const Origin& origin, Rule rule, std::vector<Rule>& out);
  std::shared_ptr<const PatternScope> scope();

  const ContextPtr& context_;
  const Program& program_;
  Diagnostics& out_;
  std::vector<InferredType>* types_;
  bool typed_ = false;  // of the current rule
  OuterNames outer_;
  std::vector<Diagnostics> useless_;  // why it would not match, by variant
  std::shared_ptr<const PatternScope> scope_;
};

}  // namespace pw
