// Runs a match program at one anchor: a loop over instructions with one backtracking target each.
// Nothing is copied or undone on failure, since a register is written again by the instruction that
// owns it. Exponential in the worst case (each commutative node doubles the orders to try),
// therefore bounded by StepBudget. The tracer is a policy: NoTrace costs nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "rewriter/match_program.hpp"

namespace pw {

struct Registers {
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;
  std::vector<UseId> uses;  ///< where `users` stands, by node register
  std::vector<std::uint8_t> swaps;

  explicit Registers(const MatchProgram& program)
      : nodes(program.nodes + 1),
        values(program.values + 1),
        uses(program.nodes + 1),
        swaps(program.swaps + 1) {}
};

struct NoTrace {
  void asked(std::uint32_t) {}
  void failed(std::uint32_t) {}
};

/// How often each instruction was executed, and how often it failed.
struct CountingTrace {
  std::vector<std::uint64_t> asks, fails;
  explicit CountingTrace(const MatchProgram& program)
      : asks(program.code.size(), 0), fails(program.code.size(), 0) {}
  void asked(std::uint32_t pc) { ++asks[pc]; }
  void failed(std::uint32_t pc) { ++fails[pc]; }
};

/// Steps that may be spent at one anchor. Orders of operands multiply, so that a pattern of many
/// commutative ops could take longer than anybody waits.
struct StepBudget {
  std::uint64_t left = std::uint64_t{1} << 22;
  std::optional<std::uint32_t> stopped =
      {};  ///< the index of the rule that was tried when it was spent

  static constexpr std::uint64_t kAccept = 64;  ///< guards cost more than a look at the graph
  bool spend(std::uint64_t steps) {
    const bool enough = left >= steps;
    left -= enough ? steps : left;
    return enough;
  }
};

/// The rule that an instruction leads to.
inline std::uint32_t rule_behind(const MatchProgram& program, std::uint32_t pc) {
  while (pc + 1 < program.code.size() && program.code[pc].code != Code::accept) ++pc;
  return program.code[pc].number;
}

/// The operand in a slot, as the rule writes them; absent past the end.
inline ValueId operand_at(const Graph& graph, NodeId node, std::size_t slot, bool swapped) {
  const std::size_t at = swapped && slot < 2 ? 1 - slot : slot;
  return at < graph.operand_count(node) ? graph.operand(node, at) : ValueId();
}

inline bool arity_fits(const Graph& graph, NodeId node, std::size_t operands, std::size_t required,
                       std::size_t results) {
  if (graph.result_count(node) != results) return false;
  const std::size_t there = graph.operand_count(node);
  if (there == operands) return true;
  for (std::size_t i = operands; i < there; ++i)
    if (graph.operand(node, i).valid()) return false;
  return there >= required;
}

/// Whether this use is the first of its user's that reads the value.
inline bool first_of_user(const Graph& graph, UseId use, NodeId user, ValueId value) {
  const std::size_t slot = graph.use_operand(use);
  for (std::size_t i = 0; i < slot; ++i)
    if (graph.operand(user, i) == value) return false;
  return true;
}

/// Calls `accept(rule index)` for each rule and each way it matches structurally at the anchor;
/// where it returns true, other ways that differ in exchanged operands alone are left out. Ends
/// early where the budget is spent.
template <class Trace, class Accept>
void execute(const MatchProgram& program, const Graph& graph, NodeId anchor, OpId constant,
             Registers& r, Trace& trace, StepBudget& budget, Accept&& accept) {
  std::uint32_t pc = program.entry_of(graph.op(anchor));
  if (pc == Instruction::kNowhere) return;
  r.nodes[0] = anchor;
  const Instruction* code = program.code.data();
  while (pc != Instruction::kNowhere) {
    const Instruction& in = code[pc];
    if (!budget.spend(in.code == Code::accept ? StepBudget::kAccept : 1)) {
      budget.stopped = rule_behind(program, pc);
      return;
    }
    trace.asked(pc);
    bool yes = true;
    switch (in.code) {
      case Code::producer: {
        const NodeId node = graph.producer(r.values[in.value]);
        yes = node.valid() && graph.op(node).index == in.number;
        r.nodes[in.node] = node;
        break;
      }
      case Code::result: yes = graph.result(r.nodes[in.node], in.slot) == r.values[in.value]; break;
      case Code::users: r.uses[in.node] = UseId(); [[fallthrough]];
      case Code::next_user: {
        const ValueId value = r.values[in.value];
        UseId use = r.uses[in.node];
        yes = false;
        if (!value.valid()) break;
        use = use.valid() ? graph.next_use(use) : graph.first_use(value);
        for (; use.valid(); use = graph.next_use(use)) {
          const NodeId user = graph.user(use);
          if (graph.op(user).index != in.number || !first_of_user(graph, use, user, value))
            continue;
          yes = true;
          r.nodes[in.node] = user;
          r.uses[in.node] = use;
          break;
        }
        if (yes && in.code == Code::users) ++pc;  // over next_user
        break;
      }
      case Code::swap:
        r.swaps[in.swap] = 0;
        ++pc;
        break;
      case Code::next_swap: {
        const NodeId node = r.nodes[in.node];
        yes = r.swaps[in.swap] == 0 && graph.operand_count(node) >= 2 &&
              graph.operand(node, 0) != graph.operand(node, 1);
        r.swaps[in.swap] = 1;
        break;
      }
      case Code::arity:
        yes = arity_fits(graph, r.nodes[in.node], in.number, in.value, in.slot);
        break;
      case Code::operand:
      case Code::operand_or_none: {
        const bool swapped = in.swap != Instruction::kNoSwap && r.swaps[in.swap] != 0;
        const ValueId value = operand_at(graph, r.nodes[in.node], in.slot, swapped);
        r.values[in.value] = value;
        yes = value.valid() || in.code == Code::operand_or_none;
        break;
      }
      case Code::same: {
        const bool swapped = in.swap != Instruction::kNoSwap && r.swaps[in.swap] != 0;
        yes = operand_at(graph, r.nodes[in.node], in.slot, swapped) == r.values[in.value];
        break;
      }
      case Code::none: {
        const bool swapped = in.swap != Instruction::kNoSwap && r.swaps[in.swap] != 0;
        yes = !operand_at(graph, r.nodes[in.node], in.slot, swapped).valid();
        break;
      }
      case Code::constant: {
        const bool swapped = in.swap != Instruction::kNoSwap && r.swaps[in.swap] != 0;
        const ValueId value = operand_at(graph, r.nodes[in.node], in.slot, swapped);
        const NodeId node = value.valid() ? graph.producer(value) : NodeId();
        yes = node.valid() && graph.op(node) == constant;
        r.nodes[in.second] = node;
        break;
      }
      case Code::bind_result: r.values[in.value] = graph.result(r.nodes[in.node], in.slot); break;
      case Code::distinct: yes = r.nodes[in.node] != r.nodes[in.second]; break;
      case Code::accept:
        if (accept(in.number)) {
          for (pc = in.fail; pc != Instruction::kNowhere && code[pc].last_choice;)
            pc = code[pc].fail;
          continue;
        }
        yes = false;
        break;
    }
    if (yes) {
      ++pc;
    } else {
      if (in.code != Code::accept) trace.failed(pc);
      pc = in.fail;
    }
  }
}

}  // namespace pw
