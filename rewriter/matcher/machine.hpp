// Runs a match program at one anchor: a loop over instructions with one backtracking target each.
// Nothing is copied or undone on failure, since the instruction that owns a register writes it
// again. Exponential in the worst case (each commutative node doubles the orders to try), therefore
// bounded by StepBudget. The tracer is a policy: NoTrace costs nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rewriter/matcher/match_program.hpp"

namespace pw {

/// Registers of a run. The last of each kind is not used by the program, and stays invalid.
struct Registers {
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;
  std::vector<UseId> uses;  ///< position of `users`, by node register
  std::vector<std::uint8_t> swaps;

  explicit Registers(const MatchProgram& program)
      : nodes(std::max<std::size_t>(program.nodes, 1) + 1),  // the anchor has one
        values(program.values + 1),
        uses(program.nodes + 1),
        swaps(Instruction::kNoSwap + 1) {}  // the last one is what kNoSwap names
};

struct NoTrace {
  void executed(std::uint32_t) {}
  void failed(std::uint32_t) {}
};

/// Trace that counts how often each instruction was executed, and how often it failed.
struct CountingTrace {
  std::vector<std::uint64_t> executions, fails;
  explicit CountingTrace(const MatchProgram& program)
      : executions(program.code.size(), 0), fails(program.code.size(), 0) {}
  void executed(std::uint32_t pc) { ++executions[pc]; }
  void failed(std::uint32_t pc) { ++fails[pc]; }
};

/// Limit on the steps at one anchor. Orders of operands multiply, so a pattern of many commutative
/// ops could otherwise run practically for ever.
struct StepBudget {
  std::uint64_t left = std::uint64_t{1} << 22;
  std::optional<std::uint32_t> stopped =
      {};  ///< the index of the rule that was tried when the budget was spent

  static constexpr std::uint64_t kAccept = 64;  ///< guards cost more than a look at the graph
};

/// Returns the rule that an instruction leads to.
inline std::uint32_t rule_behind(const MatchProgram& program, std::uint32_t pc) {
  while (pc + 1 < program.code.size() && program.code[pc].code != Code::accept) ++pc;
  return program.code[pc].number;
}

/// Returns the operand in a slot, in the rule's order; absent past the end.
[[gnu::always_inline]] inline ValueId operand_at(const Graph& graph, NodeId node, std::size_t slot,
                                                 bool swapped) {
  const std::size_t at = swapped && slot < 2 ? 1 - slot : slot;
  return at < graph.operand_count(node) ? graph.operand(node, at) : ValueId();
}

[[gnu::always_inline]] inline bool has_results(const Graph& graph, NodeId node, std::size_t count) {
  return graph.result_count(node) == count;
}

/// Returns true if the node has between `required` and `operands` operands, not counting absent
/// ones at the end.
inline bool operands_fit(const Graph& graph, NodeId node, std::size_t operands,
                         std::size_t required) {
  const std::size_t there = graph.operand_count(node);
  for (std::size_t i = operands; i < there; ++i)
    if (graph.operand(node, i).valid()) return false;
  return there >= required;
}

[[gnu::always_inline]] inline bool used_once(const Graph& graph, ValueId value) {
  return graph.use_count(value) == 1;
}

/// Returns true if this use is the first one by which its user reads the value.
[[gnu::always_inline]] inline bool first_of_user(const Graph& graph, UseId use, NodeId user,
                                                 ValueId value) {
  const std::size_t slot = graph.use_operand(use);
  for (std::size_t i = 0; i < slot; ++i)
    if (graph.operand(user, i) == value) return false;
  return true;
}

/// Calls `accept(rule index)` for each structural match of each rule at the anchor. If it returns
/// true, matches that differ only in exchanged operands are skipped. Ends early when the budget is
/// spent.
template <class Trace, class Accept>
[[gnu::noinline]] void execute(const MatchProgram& program, const Graph& graph, NodeId anchor,
                               OpId constant, Registers& registers, Trace& trace,
                               StepBudget& budget, Accept&& accept) {
  const std::uint32_t entry = program.entry_of(graph.op(anchor));
  if (entry == Instruction::kNowhere) return;
  // Plain pointers: writes through them are known not to move the arrays.
  NodeId* const nodes = registers.nodes.data();
  ValueId* const values = registers.values.data();
  const Instruction* const code = program.code.data();
  const Instruction* at = code + entry;
  const Instruction* run = at;  // sequential since then; counted where they end
  const auto pc = [&] { return static_cast<std::uint32_t>(at - code); };
  std::uint64_t left = budget.left;
  // Returns false if the budget was spent among them.
  const auto count_run = [&] {
    const auto steps = static_cast<std::uint64_t>(at - run) + 1;
    if (steps > left) {
      budget = {0, rule_behind(program, static_cast<std::uint32_t>(run - code + left))};
      return false;
    }
    left -= steps;
    return true;
  };
  nodes[0] = anchor;
  for (;;) {
    const Instruction& in = *at;
    trace.executed(pc());
    const auto operand = [&]() __attribute__((always_inline)) {
      const NodeId node = nodes[in.node];
      const std::size_t slot =
          in.slot ^ registers.swaps[in.swap];  // only slots 0 and 1 can be swapped
      return slot < graph.operand_count(node) ? graph.operand(node, slot) : ValueId();
    };
    bool yes = true;
    switch (in.code) {
      case Code::producer: {
        const NodeId node = graph.producer(values[in.value]);
        yes = node.valid() && graph.op(node).index == in.number;
        nodes[in.node] = node;
        break;
      }
      case Code::result: yes = graph.result(nodes[in.node], in.slot) == values[in.value]; break;
      case Code::users:
        if (const ValueId value = values[in.value]; value.valid() && used_once(graph, value)) {
          const UseId use = graph.first_use(value);  // the only one: without a search
          const NodeId user = graph.user(use);
          yes = graph.op(user).index == in.number;
          nodes[in.node] = user;
          registers.uses[in.node] = use;
          if (yes) ++at, ++run;  // over next_user
          break;
        }
        registers.uses[in.node] = UseId();
        [[fallthrough]];
      case Code::next_user: {
        const ValueId value = values[in.value];
        UseId use = registers.uses[in.node];
        yes = false;
        if (!value.valid() || (use.valid() && used_once(graph, value))) break;
        use = use.valid() ? graph.next_use(use) : graph.first_use(value);
        for (; use.valid(); use = graph.next_use(use)) {
          const NodeId user = graph.user(use);
          if (graph.op(user).index == in.number && first_of_user(graph, use, user, value)) {
            yes = true;
            nodes[in.node] = user;
            registers.uses[in.node] = use;
            break;
          }
        }
        if (yes && in.code == Code::users) ++at, ++run;  // over next_user
        break;
      }
      case Code::swap:
        registers.swaps[in.swap] = 0;
        ++at, ++run;
        break;
      case Code::next_swap: {
        const NodeId node = nodes[in.node];
        yes = registers.swaps[in.swap] == 0 && graph.operand_count(node) >= 2 &&
              graph.operand(node, 0) != graph.operand(node, 1);
        registers.swaps[in.swap] = 1;
        break;
      }
      case Code::arity: {
        const NodeId node = nodes[in.node];
        yes = has_results(graph, node, in.slot) && (graph.operand_count(node) == in.number ||
                                                    operands_fit(graph, node, in.number, in.value));
        for (std::size_t i = 0; yes && i < in.more; ++i)
          values[in.second + i] = graph.result(node, i);
        break;
      }
      case Code::operands: {
        const NodeId node = nodes[in.node];
        const std::size_t slot = in.slot ^ registers.swaps[in.swap];
        values[in.value] = graph.operand(node, slot);
        yes = values[in.value].valid();
        for (std::size_t i = 1; i <= in.more; ++i) {
          values[in.value + i] = graph.operand(node, slot + i);
          yes = yes && values[in.value + i].valid();
        }
        break;
      }
      case Code::operand:
      case Code::operand_or_none: {
        const ValueId value = operand();
        values[in.value] = value;
        yes = value.valid() || in.code == Code::operand_or_none;
        break;
      }
      case Code::same: yes = operand() == values[in.value]; break;
      case Code::none: yes = !operand().valid(); break;
      case Code::constant: {
        const ValueId value = operand();
        const NodeId node = value.valid() ? graph.producer(value) : NodeId();
        yes = node.valid() && graph.op(node) == constant;
        nodes[in.second] = node;
        break;
      }
      case Code::bind_result: values[in.value] = graph.result(nodes[in.node], in.slot); break;
      case Code::few_uses: yes = graph.use_count(values[in.value]) <= in.number; break;
      case Code::distinct: yes = nodes[in.node] != nodes[in.second]; break;
      case Code::accept:
        if (!count_run()) return;
        if (left < StepBudget::kAccept) {
          budget = {0, in.number};
          return;
        }
        left -= StepBudget::kAccept;
        if (accept(in.number)) {
          std::uint32_t next = in.fail;
          while (next != Instruction::kNowhere && code[next].last_choice) next = code[next].fail;
          if (next == Instruction::kNowhere) return;
          run = at = code + next;
          continue;
        }
        yes = false;
        break;
      default: __builtin_unreachable();
    }
    if (yes) {
      ++at;
      continue;
    }
    if (in.code != Code::accept) {
      trace.failed(pc());
      if (!count_run()) return;
    }
    if (in.fail == Instruction::kNowhere) return;
    run = at = code + in.fail;
  }
}

}  // namespace pw
