// The tree under construction. The grammar calls an action only after its alternative is decided,
// so that no action is ever undone; after an error the whole builder is discarded.
#pragma once

#include <bitset>
#include <tuple>

#include "dsl/actions/declarations.hpp"
#include "dsl/actions/expressions.hpp"
#include "dsl/actions/graphs.hpp"
#include "dsl/actions/ops.hpp"
#include "dsl/actions/plans.hpp"
#include "dsl/actions/rules.hpp"
#include "dsl/actions/statements.hpp"

namespace pw {

class Builder {
 public:
  Builder(std::string_view text, SourceId source, const Token* begin)
      : cursor_(text, source, begin), furthest_(begin) {}
  Builder(const Builder&) = delete;  // the actions refer to the cursor and the stacks

  // ---- for the grammar: the place of an action, and the expected tokens that were not found
  void missing(const Token* at, Tok kind) {
    if (at < furthest_) return;
    if (at > furthest_) expected_.reset();
    furthest_ = at;
    expected_.set(static_cast<std::size_t>(kind));
  }
  [[nodiscard]] const Token* furthest() const { return furthest_; }
  using Expected = std::bitset<static_cast<std::size_t>(Tok::count)>;
  [[nodiscard]] const Expected& expected() const { return expected_; }

  template <class Group>
  void act(void (Group::*action)(), const Token* next) {
    cursor_.move_to(next);
    (std::get<Group>(groups_).*action)();
  }
  void act(void (ValueStacks::*action)(), const Token* next) {
    cursor_.move_to(next);
    (stacks_.*action)();
  }

  [[nodiscard]] std::vector<ast::Item>& items() { return stacks_.items; }  ///< none or one

 private:
  template <class... Group>
  struct Groups : std::tuple<Group...> {
    Groups(const TokenCursor& cursor, ValueStacks& stacks)
        : std::tuple<Group...>(Group(cursor, stacks)...) {}
  };

  TokenCursor cursor_;
  ValueStacks stacks_{cursor_};
  Groups<NameActions, OperandActions, OperatorActions, AttributeActions, TypeActions,
         StatementActions, ClauseActions, UseActions, ParamActions, ExternActions, TableActions,
         OpActions, ForeignActions, PatternActions, RuleActions, StrategyActions, PassActions,
         PipelineActions, SplitActions, CaptureActions, ExploreActions, GraphActions,
         ExpectationActions, TestActions>
      groups_{cursor_, stacks_};
  const Token* furthest_;
  Expected expected_;
};

}  // namespace pw
