// Checks parsed files and returns a RuleSet: one function a stage, one file a check. rule_stage.cpp
// lists the checks of a rule.
#pragma once

#include "dsl/program.hpp"
#include "dsl/syntax/names.hpp"

namespace pw {

struct InferredType;

/// Checks files in load order, used ones first; `root` marks those that were named. Declares ops in
/// the context.
Result<RuleSet> check_files(const ContextPtr& context, std::vector<ast::File> files,
                            const std::vector<bool>& root);
/// Returns all rules that passed, whatever errors others have. Types of the rules of named files
/// are added to `types`, unless it is null.
RuleSet check_files(const ContextPtr& context, std::vector<ast::File> files,
                    const std::vector<bool>& root, Diagnostics& out,
                    std::vector<InferredType>* types);

/// Input of a check of one rule. `rule` is null in checks of the text, which run even if no Rule
/// could be built.
struct CheckedRule {
  const ContextPtr& shared;
  const Context& context;
  const Program& program;
  const ast::Rule& ast;
  const RuleNames& names;
  const OuterNames& outer;
  const Rule* rule = nullptr;
};

// Checks of the text of one rule.
void check_guards(const CheckedRule& checked,
                  Diagnostics& out);  ///< names and functions of `where` are known
void check_replacement(const CheckedRule& checked,
                       Diagnostics& out);  ///< names, ops and attributes of the right side
void check_lists(const CheckedRule& checked,
                 Diagnostics& out);  ///< where `...` is allowed, and where it is required
void check_pattern_types(const CheckedRule& checked,
                         Diagnostics& out);  ///< one unbound variable a dim, one sequence a shape
// Checks of one built rule without other errors.
void check_rule_shape(const CheckedRule& checked,
                      Diagnostics& out);  ///< something is matched, something is rebound
void check_guard_kinds(const CheckedRule& checked,
                       Diagnostics& out);  ///< guards compare comparable operands
void check_never(const CheckedRule& checked, Diagnostics& out);  ///< guards that no match satisfies
void check_equal_nodes(const CheckedRule& checked,
                       Diagnostics& out);                            ///< no node is required twice
void check_connected(const CheckedRule& checked, Diagnostics& out);  ///< the pattern is one piece
void check_members(const CheckedRule& checked,
                   Diagnostics& out);  ///< members of `many` have a value in common
void check_dropped(const CheckedRule& checked,
                   Diagnostics& out);  ///< an attribute captured, then dropped
void check_unused(const CheckedRule& checked, Diagnostics& out);  ///< a value bound and never used
void check_opened(const CheckedRule& checked,
                  Diagnostics& out);  ///< `..` on the right has one source
void check_output_types(const CheckedRule& checked,
                        Diagnostics& out);  ///< an output keeps its type, if that is decidable
// Checks of the whole program.
void check_dtype_names(const Program& program,
                       Diagnostics& out);  ///< no variable has the name of a dtype of other systems
void check_over(const Program& program, RuleSet& set,
                Diagnostics& out);  ///< resolves precedence; closes it; no cycle
void check_reach(const Program& program, const RuleSet& set,
                 Diagnostics& out);  ///< a rule that no pipeline reaches
void check_tests(const Program& program, const RuleSet& set,
                 Diagnostics& out);  ///< names in tests, reachable counters

/// Returns the functions that attributes and guards may call.
[[nodiscard]] const std::vector<std::string>& known_functions();

}  // namespace pw
