// Exports native_text: each instruction of a match program as a labelled statement, and `goto`
// where the interpreter sets its counter. One function for each op of an anchor; registers are
// local variables, which a match that is accepted writes out.
#include <algorithm>

#include <fmt/format.h>

#include "rewriter/machine.hpp"
#include "rewriter/native_matcher.hpp"

namespace pw {
namespace {

constexpr const char* kState = R"(
struct Guess {
  const u32* keys;
  const u32* followers;
  const u8* kinds;
  u32 last, count;
};
struct State {
  Graph graph;
  u32* nodes;
  u32* values;
  u8* swaps;
  void* engine;
  u32 (*accept)(void*, u32 rule, u32 anchor, u32 gate);
  Guess* const* guesses;
  u64* counted;
  u32 (*finish)(void*, u32 anchor);
  u64 steps, until, asked;
  u32 stopped;
  u8 phase, counting, careful, barriers, found;
};
enum { kUnasked, kUnknown, kNo, kYes };
enum { kAny, kSeeding, kSweeping };

// The operand as the rule writes it; none past the end.
PW_INLINE u32 slot_of(const Graph& g, u32 n, u32 i) {
  return i < operand_count(g, n) ? operand(g, n, i) : kNone;
}
PW_INLINE bool fits(const Graph& g, u32 n, u32 results, u32 operands, u32 required) {
  if (result_count(g, n) != results) return false;
  const u32 there = operand_count(g, n);
  if (there == operands) return true;
  for (u32 i = operands; i < there; ++i)
    if (operand(g, n, i) != kNone) return false;
  return there >= required;
}
// From `use` on: the next user with the op, at its first use of the value.
PW_INLINE u32 find_use(const Graph& g, u32 v, u32 use, bool single, u32 wanted) {
  for (; use != kNone; use = next_use(g, use)) {
    const u32 n = user(g, use);
    if (op(g, n) == wanted) {
      u32 i = 0, end = slot(g, use);
      while (i < end && operand(g, n, i) != v) ++i;
      if (i == end) return use;
    }
    if (single) return kNone;
  }
  return kNone;
}
)";

class TextWriter {
 public:
  TextWriter(const MatchProgram& program, const std::vector<NativeGates>& gates, OpId constant)
      : program_(program), gates_(gates), constant_(constant) {}

  std::string run() {
    out_ = std::string(GraphArrays::declarations()) + kState;
    std::vector<std::uint32_t> ops;
    for (std::uint32_t op = 0; op < program_.entry.size(); ++op)
      if (program_.entry[op] != Instruction::kNowhere) ops.push_back(op);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::uint32_t end = i + 1 < ops.size()
                                    ? program_.entry[ops[i + 1]]
                                    : static_cast<std::uint32_t>(program_.code.size());
      write_anchor(ops[i], program_.entry[ops[i]], end);
    }
    write_run(ops);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    out_ += fmt::format(text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void write_run(const std::vector<std::uint32_t>& ops) {
    out_ += "\nextern \"C\" u32 pw_match(State* state, u32 n, u64 count) {\n  State& s = *state;\n";
    out_ +=
        "  for (const u64 end = s.asked + count; n != kNone && s.asked != end; "
        "n = next(s.graph, n)) {\n";
    out_ += "    if (label(s.graph, n) > s.until) break;\n    ++s.asked;\n";
    out_ += "    switch (op(s.graph, n)) {\n";
    for (std::uint32_t op : ops) {
      const char* when = "";
      if (program_.finds[op] == MatchProgram::kElsewhere) when = "if (s.phase != kSweeping) ";
      if (program_.finds[op] == MatchProgram::kFromFirst) when = "if (s.phase != kSeeding) ";
      say("      case {0}: {1}at_{0}(s, n); break;", op, when);
    }
    out_ += "      default: continue;\n    }\n";
    out_ += "    if ((s.found != 0 || s.stopped != kNone) && s.finish(s.engine, n) != 0)\n";
    out_ += "      return next(s.graph, n);\n  }\n  return n;\n}\n";
  }

  void write_anchor(std::uint32_t op, std::uint32_t begin, std::uint32_t end) {
    say("\nstatic void at_{}(State& s, u32 n0) {{", op);
    out_ += "  const Graph& g = s.graph;\n  u64 left = s.steps;\n";
    for (std::size_t i = 0; i < program_.nodes; ++i) {
      if (i > 0) say("  u32 n{} = kNone;", i);
      say("  u32 c{} = kNone;", i);  // a choice among users
    }
    for (std::size_t i = 0; i < program_.values; ++i) say("  u32 v{} = kNone;", i);
    for (std::size_t i = 0; i < program_.swaps; ++i) say("  u32 s{} = 0;", i);
    for (std::uint32_t pc = begin; pc < end; ++pc) {
      say("L{}:", pc);
      say("  if (left-- == 0) {{ s.stopped = {}; return; }}", rule_behind(program_, pc));
      write(pc);
    }
    out_ += "}\n";
  }

  static std::string jump(std::uint32_t to) {
    return to == Instruction::kNowhere ? "return" : fmt::format("goto L{}", to);
  }

  void require(std::uint32_t pc, const std::string& condition) {
    say("  if (!({})) {};", condition, jump(program_.code[pc].fail));
  }

  static std::string operand_of(const Instruction& in) {
    if (in.swap == Instruction::kNoSwap)
      return fmt::format("slot_of(g, n{}, {})", in.node, in.slot);
    return fmt::format("slot_of(g, n{}, {} ^ s{})", in.node, in.slot, in.swap);
  }

  void write(std::uint32_t pc) {
    const Instruction& in = program_.code[pc];
    switch (in.code) {
      case Code::producer:
        say("  n{} = producer(g, v{});", in.node, in.value);
        return require(pc, fmt::format("n{0} != kNone && op(g, n{0}) == {1}", in.node, in.number));
      case Code::result:
        return require(pc, fmt::format("result(g, n{}, {}) == v{}", in.node, in.slot, in.value));
      case Code::users:
        require(pc, fmt::format("v{} != kNone", in.value));
        say("  c{0} = find_use(g, v{1}, first_use(g, v{1}), use_count(g, v{1}) == 1, {2});",
            in.node, in.value, in.number);
        require(pc, fmt::format("c{} != kNone", in.node));
        say("  n{0} = user(g, c{0});", in.node);
        return say("  goto L{};", pc + 2);  // over next_user
      case Code::next_user:
        require(pc, fmt::format("use_count(g, v{}) != 1", in.value));
        say("  c{0} = find_use(g, v{1}, next_use(g, c{0}), false, {2});", in.node, in.value,
            in.number);
        require(pc, fmt::format("c{} != kNone", in.node));
        return say("  n{0} = user(g, c{0});", in.node);
      case Code::swap:
        say("  s{} = 0;", in.swap);
        return say("  goto L{};", pc + 2);  // over next_swap
      case Code::next_swap:
        require(pc, fmt::format("s{1} == 0 && operand_count(g, n{0}) >= 2 && operand(g, n{0}, 0) "
                                "!= operand(g, n{0}, 1)",
                                in.node, in.swap));
        return say("  s{} = 1;", in.swap);
      case Code::arity:
        require(pc, fmt::format("fits(g, n{}, {}, {}, {})", in.node, in.slot, in.number, in.value));
        for (std::uint32_t i = 0; i < in.more; ++i)
          say("  v{} = result(g, n{}, {});", in.second + i, in.node, i);
        return;
      case Code::operands:
        for (std::uint32_t i = 0; i <= in.more; ++i) {
          const std::string swap =
              in.swap == Instruction::kNoSwap ? "" : fmt::format(" ^ s{}", in.swap);
          say("  v{} = operand(g, n{}, {}{});", in.value + i, in.node, in.slot + i, swap);
          require(pc, fmt::format("v{} != kNone", in.value + i));
        }
        return;
      case Code::operand:
        say("  v{} = {};", in.value, operand_of(in));
        return require(pc, fmt::format("v{} != kNone", in.value));
      case Code::operand_or_none: return say("  v{} = {};", in.value, operand_of(in));
      case Code::same: return require(pc, fmt::format("{} == v{}", operand_of(in), in.value));
      case Code::none: return require(pc, operand_of(in) + " == kNone");
      case Code::constant:
        say("  n{} = {};", in.second, operand_of(in));
        say("  if (n{0} != kNone) n{0} = producer(g, n{0});", in.second);
        return require(
            pc, fmt::format("n{0} != kNone && op(g, n{0}) == {1}", in.second, constant_.index));
      case Code::bind_result: return say("  v{} = result(g, n{}, {});", in.value, in.node, in.slot);
      case Code::few_uses:
        return require(pc, fmt::format("use_count(g, v{}) <= {}", in.value, in.number));
      case Code::distinct: return require(pc, fmt::format("n{} != n{}", in.node, in.second));
      case Code::accept: return write_accept(in);
    }
  }

  void write_accept(const Instruction& in) {
    const std::uint32_t rule = in.number;
    say("  if (s.phase == {}) {};", program_.rules[rule].from_first ? "kSeeding" : "kSweeping",
        jump(in.fail));
    say("  if (left < {0}) {{ s.stopped = {1}; return; }}\n  left -= {0};", StepBudget::kAccept,
        rule);
    out_ += "  {\n    u32 gate = kUnasked;\n";
    std::uint32_t next = in.fail;  // of other ways than exchanged operands
    while (next != Instruction::kNowhere && program_.code[next].last_choice)
      next = program_.code[next].fail;
    if (gates_[rule].asked) write_gates(rule, next);
    write_registers(program_.rules[rule]);
    say("    if (s.accept(s.engine, {}, n0, gate)) {};\n  }}", rule, jump(next));
    say("  {};", jump(in.fail));
  }

  void write_registers(const ProgramRule& rule) {
    const auto each = [&](const std::vector<std::uint16_t>& places, const char* array,
                          const char* name) {
      for (const std::uint16_t place : places)
        if (place != ProgramRule::kNone) say("    s.{0}[{1}] = {2}{1};", array, place, name);
    };
    each(rule.nodes, "nodes", "n");
    each(rule.constants, "nodes", "n");
    each(rule.values, "values", "v");
    each(rule.swaps, "swaps", "s");
  }

  [[nodiscard]] std::string node(std::uint16_t place) const {
    return place < program_.nodes ? fmt::format("n{}", place) : "kNone";
  }
  [[nodiscard]] std::string value(std::uint16_t place) const {
    return place < program_.values ? fmt::format("v{}", place) : "kNone";
  }

  /// What RuleEngine::pass_gates asks, in the same order.
  void write_gates(std::uint32_t rule, std::uint32_t next) {
    const NativeGates& gates = gates_[rule];
    out_ += "    gate = kUnknown;\n    do {\n";
    out_ += "      if (s.careful && s.barriers) break;\n";
    write_guess(rule, gates);
    say("      if ({}) {{", gates.permutable ? "true" : "s.careful");
    write_legal(gates);
    out_ += "      }\n      gate = kYes;\n";
    if (gates.only_counted)
      say("      if (gate == kYes && s.counting) {{ ++s.counted[{}]; {}; }}", rule, jump(next));
    out_ += "    } while (false);\n";
  }

  void write_legal(const NativeGates& gates) {
    for (const auto& [place, uses] : gates.consumed)
      say("        if (use_count(g, {0}) != {1} || is_output(g, {0})) break;", value(place), uses);
    out_ += "        u64 first = ~0ull, last = 0;\n";
    for (const std::uint16_t place : gates.own)
      say("        if (label(g, {0}) < first) first = label(g, {0});", node(place));
    std::string own;
    for (const std::uint16_t place : gates.own)
      own += fmt::format("{}p == {}", own.empty() ? "" : " || ", node(place));
    for (const std::uint16_t place : gates.reads) {
      say("        {{ const u32 p = {0} != kNone ? producer(g, {0}) : kNone;", value(place));
      out_ += "          if (p != kNone && label(g, p) >= first) {\n";
      if (!own.empty()) say("            if ({}) break;", own);
      out_ += "            if (label(g, p) > last) last = label(g, p);\n          } }\n";
    }
    if (gates.always_convex) return;
    for (const std::uint16_t place : gates.outputs)
      say("        if (last != 0 && label(g, producer(g, {})) < last) break;", value(place));
  }

  /// As Verdicts::guess: the verdict that followed the last one before, or the last one itself.
  void write_guess(std::uint32_t rule, const NativeGates& gates) {
    say("      Guess& q = *s.guesses[{}];", rule);
    out_ += "      if (q.count == 0) break;\n";
    std::string equal;
    std::size_t width = 0;
    const auto part = [&](const std::string& name, const char* of) {
      say("      const u32 k{} = {} != kNone ? {}(g, {}) : kNone;", width, name, of, name);
      equal += fmt::format("{}k{} == key[{}]", equal.empty() ? "" : " && ", width, width);
      ++width;
    };
    for (const std::uint16_t place : gates.values) part(value(place), "type");
    for (const std::uint16_t place : gates.nodes) part(node(place), "attributes");
    if (equal.empty()) equal = "true";
    out_ += "      u32 found = q.followers[q.last];\n";
    say("      const u32* key = q.keys + found * {}ul;", width);
    say("      if (!({})) {{", equal);
    out_ += "        if (found == q.last) break;\n        found = q.last;\n";
    say("        key = q.keys + found * {}ul;\n        if (!({})) break;\n      }}", width, equal);
    out_ += "      q.last = found;\n      const u8 kind = q.kinds[found];\n";
    out_ += "      if (kind == 0) break;\n      if (kind == 1) { gate = kNo; break; }\n";
    out_ += "      if (kind == 3 && s.careful) break;\n";
  }

  const MatchProgram& program_;
  const std::vector<NativeGates>& gates_;
  OpId constant_;
  std::string out_;
};

static_assert(Guess::unknown == 0 && Guess::no == 1 && Guess::yes == 2 && Guess::yes_perhaps == 3);

}  // namespace

std::string native_text(const MatchProgram& program, const std::vector<NativeGates>& gates,
                        OpId constant) {
  return TextWriter(program, gates, constant).run();
}

}  // namespace pw
