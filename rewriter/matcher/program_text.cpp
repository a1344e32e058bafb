// Prints one line per instruction: its branch on failure, its reason, and the rules that use it.
#include <fmt/format.h>

#include "base/counted.hpp"
#include "rewriter/matcher/match_program.hpp"

namespace pw {
namespace {

std::string registers(std::uint32_t first, std::uint32_t count) {
  return count == 1 ? fmt::format("v{}", first)
                    : fmt::format("v{} to v{}", first, first + count - 1);
}

std::string question(const Instruction& in, const OpTable& ops, const MatchProgram& program) {
  const auto op = [&] { return ops[OpId(in.number)].name; };
  const std::string slot = fmt::format(
      "{}{}", in.slot, in.swap == Instruction::kNoSwap ? "" : fmt::format("^s{}", in.swap));
  switch (in.code) {
    case Code::producer: return fmt::format("n{} := producer v{}, `{}`", in.node, in.value, op());
    case Code::result: return fmt::format("v{} is result {} of n{}", in.value, in.slot, in.node);
    case Code::users: return fmt::format("n{} := first user of v{}, `{}`", in.node, in.value, op());
    case Code::next_user:
      return fmt::format("n{} := next user of v{}, `{}`", in.node, in.value, op());
    case Code::swap: return fmt::format("s{} := as written, of n{}", in.swap, in.node);
    case Code::next_swap: return fmt::format("s{} := exchanged, of n{}", in.swap, in.node);
    case Code::arity:
      return fmt::format("n{} has {} operands, {} results", in.node, in.number, in.slot) +
             (in.more > 0 ? fmt::format(": {}", registers(in.second, in.more)) : "");
    case Code::operands:
      return in.more == 0 ? fmt::format("v{} := operand {} of n{}", in.value, slot, in.node)
                          : fmt::format("{} := operands of n{} from {} on",
                                        registers(in.value, in.more + 1u), in.node, slot);
    case Code::operand: return fmt::format("v{} := operand {} of n{}", in.value, slot, in.node);
    case Code::operand_or_none:
      return fmt::format("v{} := operand {} of n{}, or none", in.value, slot, in.node);
    case Code::same: return fmt::format("operand {} of n{} is v{}", slot, in.node, in.value);
    case Code::none: return fmt::format("operand {} of n{} is `none`", slot, in.node);
    case Code::constant:
      return fmt::format("n{} := constant, operand {} of n{}", in.second, slot, in.node);
    case Code::bind_result:
      return fmt::format("v{} := result {} of n{}", in.value, in.slot, in.node);
    case Code::few_uses: return fmt::format("v{} has at most {} uses", in.value, in.number);
    case Code::distinct: return fmt::format("n{} is not n{}", in.node, in.second);
    case Code::accept:
      return fmt::format("accept `{}`{}", program.rules[in.number].layout->rule->name,
                         program.rules[in.number].from_first ? ", in order" : "");
  }
  return {};
}

void print_passes(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                  std::string& out) {
  for (const Strategy& part : strategy.parts) print_passes(graph, rules, part, out);
  if (strategy.rules.empty()) return;
  std::vector<RuleLayout> layouts;
  for (RuleId id : strategy.rules) layouts.push_back(lay_out(rules, id));
  std::vector<const RuleLayout*> pointers;
  for (const RuleLayout& layout : layouts) pointers.push_back(&layout);
  const MatchProgram program = compile_program(rules, pointers, gather_statistics(graph),
                                               {anchoring_of(strategy.kind), true});
  out += fmt::format("pass {}: {}", strategy.label, print(program, rules));
}

}  // namespace

std::string print_programs(const Graph& graph, const RuleSet& rules, const Strategy& strategy) {
  std::string out;
  print_passes(graph, rules, strategy, out);
  return out;
}

std::string print(const MatchProgram& program, const RuleSet& rules) {
  const OpTable& ops = rules.context->ops;
  std::vector<std::size_t> users(program.code.size(), 0);
  for (const ProgramRule& rule : program.rules)
    for (std::uint32_t pc : rule.path) ++users[pc];
  std::vector<std::string> heads(program.code.size());
  for (std::size_t op = 0; op < program.entry.size(); ++op)
    if (program.entry[op] != Instruction::kNowhere)
      heads[program.entry[op]] = fmt::format("at `{}`:\n", ops[OpId(op)].name);
  std::string out = fmt::format("{}, {}\n", counted(program.rules.size(), "rule"),
                                counted(program.code.size(), "instruction"));
  for (const ProgramRule& rule : program.rules)
    if (rule.lacks.valid())
      out += fmt::format("`{}` is left out: the graph has no `{}`\n", rule.layout->rule->name,
                         ops[rule.lacks].name);
  for (std::size_t pc = 0; pc < program.code.size(); ++pc) {
    const Instruction& in = program.code[pc];
    const std::string otherwise =
        in.fail == Instruction::kNowhere ? "done" : fmt::format("{}", in.fail);
    out += heads[pc];
    out += fmt::format("{:>5}  {:<44} else {:<6}{:<4} {} rule{}\n", pc, question(in, ops, program),
                       otherwise, program.origins[pc].reason, users[pc], users[pc] == 1 ? "" : "s");
  }
  return out;
}

}  // namespace pw
