// Checks parsed files and returns a RuleSet: one function a stage, one file a check. rule_stage.cpp
// lists the checks of a rule.
#pragma once

#include <cstdint>

#include "dsl/program.hpp"
#include "dsl/syntax/names.hpp"

namespace pw {

struct InferredType;

/// Whether the bodies of ops are checked, or known to be sound.
enum class OpBodies : std::uint8_t { checked, sound };

/// Checks files in load order, used ones first; `root` marks those that were named. Declares ops in
/// the context.
Result<RuleSet> check_files(const ContextPtr& context, std::vector<ast::File> files,
                            const std::vector<bool>& root, OpBodies bodies = OpBodies::checked);
/// Returns all rules that passed, whatever errors others have. Types of the rules of named files
/// are added to `types`, unless it is null.
RuleSet check_files(const ContextPtr& context, std::vector<ast::File> files,
                    const std::vector<bool>& root, Diagnostics& out,
                    std::vector<InferredType>* types, OpBodies bodies = OpBodies::checked);

/// Checks the embedded op library, including the bodies of its ops, which load_op_library trusts.
Status check_op_library();

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

using CheckFunction = void(const CheckedRule& checked, Diagnostics& out);
// Checks of the text of one rule.
CheckFunction check_guards;         ///< names and functions of `where` are known
CheckFunction check_replacement;    ///< names, ops and attributes of the right side
CheckFunction check_lists;          ///< where `...` is allowed, and where it is required
CheckFunction check_pattern_types;  ///< one unbound variable a dim, one sequence a shape
// Checks of one built rule without other errors.
CheckFunction check_rule_shape;    ///< something is matched, something is rebound
CheckFunction check_guard_kinds;   ///< guards compare comparable operands
CheckFunction check_never;         ///< guards that no match satisfies
CheckFunction check_equal_nodes;   ///< no node is required twice
CheckFunction check_connected;     ///< the pattern is one piece
CheckFunction check_members;       ///< members of `many` have a value in common
CheckFunction check_dropped;       ///< an attribute captured, then dropped
CheckFunction check_unused;        ///< a value bound and never used
CheckFunction check_opened;        ///< `..` on the right has one source
CheckFunction check_output_types;  ///< an output keeps its type, if that is decidable
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
