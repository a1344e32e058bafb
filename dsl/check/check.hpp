// From parsed files to a checked RuleSet: one function a stage, one file a check. The list of
// a rule's checks stands in rule_stage.cpp.
#pragma once

#include "dsl/program.hpp"
#include "dsl/syntax/names.hpp"

namespace pw {

struct InferredType;

/// Files in load order, used ones first; `root` tells those that were named. Declares ops into the
/// context.
Result<RuleSet> check_files(const ContextPtr& context, std::vector<ast::File> files,
                            const std::vector<bool>& root);
/// The same with all rules that passed, whatever is wrong elsewhere. Types of the rules of files
/// that were named go into `types`, unless it is null.
RuleSet check_files(const ContextPtr& context, std::vector<ast::File> files,
                    const std::vector<bool>& root, Diagnostics& out,
                    std::vector<InferredType>* types);

/// What a check of one rule sees. `rule` is null in checks of the text, which run even where no
/// Rule could be built.
struct CheckedRule {
  const ContextPtr& shared;
  const Context& context;
  const Program& program;
  const ast::Rule& ast;
  const RuleNames& names;
  const OuterNames& outer;
  const Rule* rule = nullptr;
};

// Of the text of one rule.
void check_guards(const CheckedRule& checked,
                  Diagnostics& out);  ///< names and functions of `where` are known
void check_replacement(const CheckedRule& checked,
                       Diagnostics& out);  ///< names, ops and attributes of the right side
void check_lists(const CheckedRule& checked,
                 Diagnostics& out);  ///< where `...` may stand, and where it must
void check_pattern_types(const CheckedRule& checked,
                         Diagnostics& out);  ///< one unbound variable a dim, one sequence a shape
// Of one built rule, in which nothing else is wrong.
void check_rule_shape(const CheckedRule& checked,
                      Diagnostics& out);  ///< something is matched, something is rebound
void check_guard_kinds(const CheckedRule& checked,
                       Diagnostics& out);  ///< guards compare what can be alike
void check_never(const CheckedRule& checked, Diagnostics& out);  ///< guards that no match meets
void check_equal_nodes(const CheckedRule& checked,
                       Diagnostics& out);                            ///< no node is asked for twice
void check_connected(const CheckedRule& checked, Diagnostics& out);  ///< the pattern is one piece
void check_members(const CheckedRule& checked,
                   Diagnostics& out);  ///< members of `many` have a value in common
void check_dropped(const CheckedRule& checked,
                   Diagnostics& out);  ///< an attribute captured, then dropped
void check_unused(const CheckedRule& checked, Diagnostics& out);  ///< a value bound and never used
void check_opened(const CheckedRule& checked,
                  Diagnostics& out);  ///< `..` on the right has one source
void check_output_types(const CheckedRule& checked,
                        Diagnostics& out);  ///< an output keeps its type, where that can be told
// Of the whole.
void check_dtype_names(const Program& program,
                       Diagnostics& out);  ///< no variable is called like a dtype of other systems
void check_over(const Program& program, RuleSet& set,
                Diagnostics& out);  ///< resolves precedence; closes it; no circle
void check_reach(const Program& program, const RuleSet& set,
                 Diagnostics& out);  ///< a rule that no pipeline reaches
void check_tests(const Program& program, const RuleSet& set,
                 Diagnostics& out);  ///< names in tests, reachable counters

/// Functions that attributes and guards may call.
[[nodiscard]] const std::vector<std::string>& known_functions();

}  // namespace pw
