// Compiles all rules of a pass into one program, so that matching at a node costs the shared prefix
// once. Rules become sequences of predicates, these a prefix tree, the tree instructions. This is a
// discrimination tree of terms (McCune 1992) with edges to users besides those to operands, run as
// a backtracking automaton.
//
//   * plan_search (anchor.cpp) chooses each rule's anchor and the order of its nodes by the
//     statistics of the graph.
//   * LineWriter writes the predicates of one rule. Registers are numbered by first use, so that
//     rules with equal beginnings test the same registers.
//   * ProgramWriter inserts each sequence into the tree of its anchor's op. Siblings keep the order
//     of the rules, which are sorted by rank.
//   * Layout is depth first. A failure continues at the next sibling, or at what follows the
//   parent.
//     `users` and `swap` are choice points; failures below them continue at their next choice.
//
// Invariant: on each path one instruction writes a register, so that backtracking undoes nothing.
// Size and time are linear in the predicates of all rules, times the siblings compared.
#include <algorithm>
#include <set>

#include "rewriter/matcher/anchor.hpp"
#include "rewriter/matcher/match_program.hpp"
#include "rewriter/matcher/matcher.hpp"

namespace pw {
namespace {

struct Question {
  Instruction ask;
  Origin origin;
};

/// Writer of the predicates of one rule, in order. Registers are numbered in the order of their
/// first use, so that rules with a common prefix use the same ones.
class LineWriter {
 public:
  LineWriter(const RuleSet& rules, const RuleLayout& layout, const SearchPlan& plan)
      : context_(*rules.context), rule_(*layout.rule), layout_(layout), plan_(plan) {
    out_.layout = &layout;
    out_.anchor = plan.anchor;
    out_.nodes.assign(rule_.nodes.size(), ProgramRule::kNone);
    out_.values.assign(rule_.values.size(), ProgramRule::kNone);
    out_.constants.assign(rule_.values.size(), ProgramRule::kNone);
    out_.swaps.assign(rule_.nodes.size(), ProgramRule::kNone);
  }

  std::vector<Question> run(std::uint32_t index, ProgramRule& rule) {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) write(plan_.steps[i], i);
    for (PatternNodeId id : late_) write_exchangeable(id);
    Instruction done;
    done.code = Code::accept;
    done.number = index;
    ask(done, "", rule_.name_span);
    rule = std::move(out_);
    return std::move(line_);
  }

  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  [[nodiscard]] std::size_t values() const { return values_; }
  [[nodiscard]] std::size_t swaps() const { return swaps_; }

 private:
  void ask(const Instruction& in, const char* reason, Span span) {
    line_.push_back({in, {reason, span}});
  }

  Instruction make(Code code, PatternNodeId node) const {
    Instruction in;
    in.code = code;
    in.node = out_.nodes[node.index];
    return in;
  }

  void write(const SearchStep& step, std::size_t position) {
    const PatternNode& node = rule_.nodes[step.node];
    through_ = way_to(step);
    find(step, node);
    write_distinct(step.node, node);
    write_arity(step.node, node);
    for (std::size_t i = 0; i < node.results.size(); ++i) write_result(step.node, node, i);
    if (is_exchangeable(node) && may_wait(node, position))
      late_.push_back(step.node);
    else
      write_exchangeable(step.node);
    for (std::size_t slot = 2; slot < node.operands.size(); ++slot)
      write_operand(step.node, node, slot);
    for (PatternValueId v : node.results) write_few_uses(step.node, node, v);
  }

  /// Returns the value through which a step finds its node; invalid for the anchor.
  [[nodiscard]] PatternValueId way_to(const SearchStep& step) const {
    if (step.from == SearchStep::From::anchor) return {};
    if (step.from == SearchStep::From::producer) return step.via;
    return rule_.nodes[step.node].operands[static_cast<std::size_t>(step.connectors.front())];
  }

  /// Returns true if the operands can be read later. Unbound operands decide nothing, so they are
  /// read after all nodes are found, and no predicate is evaluated again for the exchanged order.
  /// Exception: a later node is found through them.
  [[nodiscard]] bool may_wait(const PatternNode& node, std::size_t position) const {
    for (std::size_t slot = 0; slot < 2; ++slot) {
      const PatternValueId v = node.operands[slot];
      if (out_.values[v.index] != ProgramRule::kNone || rule_.values[v].list) return false;
      for (std::size_t i = position + 1; i < plan_.steps.size(); ++i)
        if (way_to(plan_.steps[i]) == v) return false;
    }
    return true;
  }

  /// Writes the first two operands, which a commutative op may have exchanged.
  void write_exchangeable(PatternNodeId id) {
    const PatternNode& node = rule_.nodes[id];
    write_swap(id, node);
    for (std::size_t slot = 0; slot < std::min<std::size_t>(2, node.operands.size()); ++slot)
      write_operand(id, node, slot);
  }

  void find(const SearchStep& step, const PatternNode& node) {
    const auto reg = static_cast<std::uint16_t>(nodes_++);
    out_.nodes[step.node.index] = reg;
    if (step.from == SearchStep::From::anchor) return;
    Instruction in =
        make(step.from == SearchStep::From::producer ? Code::producer : Code::users, step.node);
    in.number = node.op.index;
    in.value = out_.values[way_to(step).index];
    ask(in, "N01", node.span);
  }

  void write_distinct(PatternNodeId id, const PatternNode& node) {
    for (const SearchStep& other : plan_.steps) {
      if (other.node == id) return;
      if (rule_.nodes[other.node].op != node.op) continue;
      Instruction in = make(Code::distinct, id);
      in.second = out_.nodes[other.node.index];
      ask(in, "N07", node.span);
    }
  }

  [[nodiscard]] bool has_list(const PatternNode& node) const {
    const auto is_list = [&](PatternValueId v) { return rule_.values[v].list; };
    return std::any_of(node.operands.begin(), node.operands.end(), is_list) ||
           std::any_of(node.results.begin(), node.results.end(), is_list);
  }

  void write_arity(PatternNodeId id, const PatternNode& node) {
    if (has_list(node)) return;
    Instruction in = make(Code::arity, id);
    in.slot = static_cast<std::uint16_t>(node.results.size());
    in.number = static_cast<std::uint32_t>(node.operands.size());
    in.value = static_cast<std::uint16_t>(required_of(node));
    ask(in, "N02", node.span);
  }

  /// Returns the number of operands without the tail that may be absent.
  [[nodiscard]] std::size_t required_of(const PatternNode& node) const {
    std::size_t required = node.operands.size();
    while (required > 0) {
      const PatternValue& v = rule_.values[node.operands[required - 1]];
      if (!v.literal_none && !v.optional) break;
      --required;
    }
    return required;
  }

  [[nodiscard]] bool is_exchangeable(const PatternNode& node) const {
    return context_.ops[node.op].traits.commutative && node.operands.size() >= 2 &&
           node.operands[0] != node.operands[1];
  }

  void write_swap(PatternNodeId id, const PatternNode& node) {
    if (!is_exchangeable(node) || swaps_ >= Instruction::kNoSwap) return;
    const auto reg = static_cast<std::uint16_t>(swaps_++);
    out_.swaps[id.index] = reg;
    Instruction in = make(Code::swap, id);
    in.swap = static_cast<std::uint8_t>(reg);
    ask(in, "N03", node.span);
  }

  void write_operand(PatternNodeId id, const PatternNode& node, std::size_t slot) {
    const PatternValueId v = node.operands[slot];
    const PatternValue& value = rule_.values[v];
    for (std::size_t i = 0; i <= slot; ++i)  // after a list a slot is unknown
      if (rule_.values[node.operands[i]].list) return;
    Instruction in = make(Code::operand, id);
    in.slot = static_cast<std::uint16_t>(slot);
    if (slot < 2 && out_.swaps[id.index] != ProgramRule::kNone)
      in.swap = static_cast<std::uint8_t>(out_.swaps[id.index]);
    const Span span = value.span.valid() ? value.span : node.span;
    if (value.literal_none) {
      in.code = Code::none;
      return ask(in, "N02", span);
    }
    std::uint16_t& reg = out_.values[v.index];
    if (reg != ProgramRule::kNone) {
      if (v == through_ && node.operands.size() == 1) return;  // it is a user of the value
      in.code = Code::same;
      in.value = reg;
      return ask(in, "N07", span);
    }
    if (value.literal || value.attribute_variable) {
      in.code = Code::constant;
      out_.constants[v.index] = static_cast<std::uint16_t>(nodes_++);
      in.second = out_.constants[v.index];
      return ask(in, "N01", span);
    }
    const bool exchanged = in.swap != Instruction::kNoSwap;
    if (value.optional)
      in.code = Code::operand_or_none;
    else if (!has_list(node) && required_of(node) > (exchanged ? 1 : slot))
      in.code = Code::operands;
    reg = static_cast<std::uint16_t>(values_++);
    in.value = reg;
    ask(in, "N02", span);
  }

  void write_result(PatternNodeId id, const PatternNode& node, std::size_t i) {
    if (rule_.values[node.results[i]].list) return;
    const PatternValueId v = node.results[i];
    std::uint16_t& reg = out_.values[v.index];
    Instruction in = make(Code::bind_result, id);
    in.slot = static_cast<std::uint16_t>(i);
    if (reg != ProgramRule::kNone) {
      in.code = Code::result;
      in.value = reg;
      const bool only_one = v == through_ && node.results.size() == 1;  // it is the producer
      if (!only_one) ask(in, "N07", node.span);
      return;
    }
    reg = static_cast<std::uint16_t>(values_++);
    in.value = reg;
    ask(in, "", node.span);
  }

  /// Writes a bound on the uses of a consumed value. All of its uses are in the match; if it has
  /// more than the pattern allows, none of its users need be tried. Lists and opened frontiers may
  /// use it any number of times.
  void write_few_uses(PatternNodeId id, const PatternNode& node, PatternValueId v) {
    if (!layout_.plain() || rule_.frontier) return;
    const std::vector<PatternValueId>& consumed = layout_.consumed;
    if (std::find(consumed.begin(), consumed.end(), v) == consumed.end()) return;
    Instruction in = make(Code::few_uses, id);
    in.value = out_.values[v.index];
    in.number = most_uses(id, v);
    ask(in, "N08", node.span);
  }

  /// Returns the number of operands of replaced nodes that are the value, or that come from outside
  /// the pattern and so may be the same value. Omits the nodes that its producer reads from.
  [[nodiscard]] std::uint32_t most_uses(PatternNodeId producer, PatternValueId v) const {
    std::set<PatternNodeId> before{producer};
    std::vector<PatternNodeId> open{producer};
    while (!open.empty()) {
      const PatternNode& node = rule_.nodes[open.back()];
      open.pop_back();
      for (PatternValueId operand : node.operands)
        if (const PatternNodeId p = rule_.values[operand].producer;
            p.valid() && before.insert(p).second)
          open.push_back(p);
    }
    std::uint32_t out = 0;
    for (PatternNodeId n : layout_.own) {
      if (before.contains(n)) continue;
      for (PatternValueId operand : rule_.nodes[n].operands)
        out += operand == v || !rule_.values[operand].producer.valid() ? 1 : 0;
    }
    return out;
  }

  const Context& context_;
  const Rule& rule_;
  const RuleLayout& layout_;
  const SearchPlan& plan_;
  ProgramRule out_;
  std::vector<Question> line_;
  PatternValueId through_;           ///< that the node at hand was found through
  std::vector<PatternNodeId> late_;  ///< whose exchangeable operands are read at the end
  std::size_t nodes_ = 0, values_ = 0, swaps_ = 0;
};

class ProgramWriter {
 public:
  ProgramWriter(const RuleSet& rules, const GraphStatistics& statistics, ProgramOptions options)
      : rules_(rules), statistics_(statistics), options_(std::move(options)) {}

  MatchProgram run(const std::vector<const RuleLayout*>& layouts) {
    for (const RuleLayout* layout : layouts)
      for (const Statement& statement : layout->rule->replacement) note_made(statement.value);
    program_.rules.resize(layouts.size());
    program_.entry.assign(rules_.context->ops.size(), Instruction::kNowhere);
    program_.ways.resize(rules_.context->ops.size());
    program_.finds.assign(rules_.context->ops.size(), MatchProgram::kNothing);
    program_.awaits.assign(rules_.context->ops.size(), 0);
    for (std::size_t i = 0; i < layouts.size(); ++i)
      add(*layouts[i], static_cast<std::uint32_t>(i));
    for (std::size_t op = 0; op < roots_.size(); ++op) {
      if (roots_[op].empty()) continue;
      program_.entry[op] = static_cast<std::uint32_t>(program_.code.size());
      write_all(roots_[op], Instruction::kNowhere);
    }
    bind_at_once();
    for (ProgramRule& rule : program_.rules) rule.first_way = first_way(rule);
    return std::move(program_);
  }

 private:
  struct Branch {
    Question question;
    std::vector<std::uint32_t> children;
    std::vector<std::uint32_t> rules;  ///< that share it
  };

  void add(const RuleLayout& layout, std::uint32_t index) {
    const Rule& rule = *layout.rule;
    program_.rules[index].layout = &layout;
    if (options_.leave_out && lacks(rule, program_.rules[index].lacks)) return;
    SearchPlan plan = plan_search(rule, statistics_, begun_);
    if (plan.steps.empty() && !layout.plain()) plan = plan_from_list(rule);
    const bool from_first = options_.anchoring == Anchoring::first && begin_at_first(layout, plan);
    if (!plan.anchor.valid()) return;
    LineWriter writer(rules_, layout, plan);
    std::vector<Question> line = writer.run(index, program_.rules[index]);
    program_.rules[index].from_first = from_first;
    program_.finds[rule.nodes[plan.anchor].op.index] |=
        from_first ? MatchProgram::kFromFirst : MatchProgram::kElsewhere;
    program_.nodes = std::max(program_.nodes, writer.nodes());
    program_.values = std::max(program_.values, writer.values());
    program_.swaps = std::max(program_.swaps, writer.swaps());
    insert(rule.nodes[plan.anchor].op, line, index);
    add_ways(rule, plan.anchor);
    begun_.insert(rule.nodes[plan.anchor].op);
  }

  /// Records the ops that the rules make: nodes of them may appear, whatever the present graph has.
  void note_made(const Expr& expr) {
    if (expr.kind == Expr::Kind::call)
      if (const OpId op = rules_.context->ops.find(expr.text); op.valid()) made_.insert(op);
    for (const Expr& arg : expr.args) note_made(arg);
  }

  /// Returns true if the rule needs an op that the graph lacks, which is recorded.
  bool lacks(const Rule& rule, OpId& op) {
    const auto lacking = std::find_if(rule.nodes.begin(), rule.nodes.end(), [&](const auto& node) {
      return matched_once(node) && statistics_.nodes_of(node.op) == 0 && !made_.contains(node.op) &&
             !options_.expected.contains(node.op);
    });
    if (lacking == rule.nodes.end()) return false;
    op = lacking->op;
    program_.awaits[op.index] = 1;
    return true;
  }

  /// Returns true if the plan begins at the node that precedes all other replaced nodes. Changes
  /// the plan to do so if the cost stays similar.
  bool begin_at_first(const RuleLayout& layout, SearchPlan& plan) const {
    constexpr double kDearer = 4, kMostLooks = 16;  // than the cheapest; from one anchor
    const Rule& rule = *layout.rule;
    if (!layout.plain() || rule.frontier || plan.steps.empty()) return false;
    PatternNodeId first;
    for (PatternNodeId id : layout.own) {
      const std::vector<PatternValueId>& operands = rule.nodes[id].operands;
      if (std::any_of(operands.begin(), operands.end(), [&](PatternValueId v) {
            const PatternNodeId producer = rule.values[v].producer;
            return producer.valid() && rule.nodes[producer].own();
          }))
        continue;
      if (first.valid()) return false;  // either of them may come first
      first = id;
    }
    if (plan.anchor == first) return true;
    SearchPlan other = plan_search_from(rule, first, statistics_);
    const double looks = other.cost / std::max(1.0, statistics_.nodes_of(rule.nodes[first].op));
    const bool made = made_.contains(rule.nodes[plan.anchor].op);
    if (other.steps.empty() || looks > kMostLooks || (!made && other.cost > kDearer * plan.cost))
      return false;
    plan = std::move(other);
    return true;
  }

  /// Returns a plan for a pattern connected only by lists: the search finds all nodes but the
  /// anchor. For a member as the anchor only the op is tested.
  static SearchPlan plan_from_list(const Rule& rule) {
    SearchPlan plan;
    plan.anchor = anchor_of(rule);
    if (plan.anchor.valid() && matched_once(rule.nodes[plan.anchor]))
      plan.steps.push_back({SearchStep::From::anchor, plan.anchor, {}, {}, 0, {}, {}});
    return plan;
  }

  void insert(OpId op, const std::vector<Question>& line, std::uint32_t rule) {
    if (roots_.size() <= op.index) roots_.resize(op.index + 1);
    std::uint32_t at = Instruction::kNowhere;
    for (const Question& question : line) {
      std::vector<std::uint32_t>& siblings =
          at == Instruction::kNowhere ? roots_[op.index] : branches_[at].children;
      const auto known = std::find_if(siblings.begin(), siblings.end(), [&](std::uint32_t b) {
        return same_question(branches_[b].question.ask, question.ask);
      });
      std::uint32_t next = 0;
      if (known != siblings.end()) {
        next = *known;
      } else {
        next = static_cast<std::uint32_t>(branches_.size());
        siblings.push_back(next);
        branches_.push_back({question, {}, {}});  // `siblings` must not be used after this
      }
      branches_[next].rules.push_back(rule);
      at = next;
    }
  }

  void write_all(const std::vector<std::uint32_t>& siblings, std::uint32_t after) {
    for (std::size_t i = 0; i < siblings.size(); ++i) {
      std::vector<std::uint32_t> open;  // instructions whose failure goes to the next sibling
      write(siblings[i], i + 1 == siblings.size(), after, open);
      if (i + 1 == siblings.size()) continue;
      for (std::uint32_t pc : open)
        program_.code[pc].fail = static_cast<std::uint32_t>(program_.code.size());
    }
  }

  /// Lays out a branch and its subtree. Failures that leave the branch continue at `after` if it is
  /// the last of its siblings; otherwise they are added to `open`.
  void write(std::uint32_t branch, bool last, std::uint32_t after,
             std::vector<std::uint32_t>& open) {
    const Question question = branches_[branch].question;
    const std::uint32_t pc = emit(branch, question.ask, question.origin);
    leave(pc, last, after, open);
    const Code code = question.ask.code;
    if (code == Code::users || code == Code::swap) {
      Instruction next = question.ask;
      next.code = code == Code::users ? Code::next_user : Code::next_swap;
      next.last_choice = code == Code::swap && decides_no_node(branch);
      const std::uint32_t again = emit(branch, next, question.origin);
      leave(again, last, after, open);
      write_all(branches_[branch].children, again);
      return;
    }
    const std::vector<std::uint32_t>& children = branches_[branch].children;
    for (std::size_t i = 0; i < children.size(); ++i) {
      std::vector<std::uint32_t> below;
      const bool last_child = i + 1 == children.size();
      write(children[i], last_child && last, after, last_child ? open : below);
      if (!last_child)
        for (std::uint32_t p : below)
          program_.code[p].fail = static_cast<std::uint32_t>(program_.code.size());
    }
  }

  /// Returns true if a branch belongs to one rule, and finds no node of the match.
  [[nodiscard]] bool decides_no_node(std::uint32_t branch) const {
    if (branches_[branch].rules.size() != 1) return false;
    const Code code = branches_[branch].question.ask.code;
    if (code == Code::producer || code == Code::users) return false;
    const std::vector<std::uint32_t>& children = branches_[branch].children;
    return std::all_of(children.begin(), children.end(),
                       [&](std::uint32_t child) { return decides_no_node(child); });
  }

  void leave(std::uint32_t pc, bool last, std::uint32_t after, std::vector<std::uint32_t>& open) {
    if (last)
      program_.code[pc].fail = after;
    else
      open.push_back(pc);
  }

  std::uint32_t emit(std::uint32_t branch, const Instruction& in, const Origin& origin) {
    const auto pc = static_cast<std::uint32_t>(program_.code.size());
    program_.code.push_back(in);
    program_.origins.push_back(origin);
    for (std::uint32_t rule : branches_[branch].rules) program_.rules[rule].path.push_back(pc);
    return pc;
  }

  /// Merges consecutive instructions that only bind registers into one: the first results of a node
  /// with its arity, and operands.
  void bind_at_once() {
    std::vector<Instruction>& code = program_.code;
    std::vector<char> reached(code.size() + 1, 0);  // by another way than from the one before
    for (const Instruction& in : code)
      if (in.fail != Instruction::kNowhere) reached[in.fail] = 1;
    for (const std::uint32_t pc : program_.entry)
      if (pc != Instruction::kNowhere) reached[pc] = 1;
    std::vector<std::uint32_t> moved(code.size());
    std::vector<Instruction> kept;
    std::vector<Origin> origins;
    for (std::uint32_t pc = 0; pc < code.size(); ++pc) {
      const bool joins = reached[pc] == 0 && !kept.empty() && continues(kept.back(), code[pc]);
      if (joins) {
        if (kept.back().more++ == 0 && code[pc].code == Code::bind_result)
          kept.back().second = code[pc].value;
      } else {
        kept.push_back(code[pc]);
        origins.push_back(program_.origins[pc]);
      }
      moved[pc] = static_cast<std::uint32_t>(kept.size() - 1);
    }
    const auto move = [&](std::uint32_t& pc) {
      if (pc != Instruction::kNowhere) pc = moved[pc];
    };
    for (Instruction& in : kept) move(in.fail);
    for (std::uint32_t& pc : program_.entry) move(pc);
    for (ProgramRule& rule : program_.rules) {
      std::ranges::for_each(rule.path, move);
      rule.path.erase(std::unique(rule.path.begin(), rule.path.end()), rule.path.end());
    }
    code = std::move(kept);
    program_.origins = std::move(origins);
  }

  /// Returns true if `next` binds the register after those of `in`, to the next operand or result.
  [[nodiscard]] static bool continues(const Instruction& in, const Instruction& next) {
    constexpr std::uint8_t kMost = 0xff;
    if (in.node != next.node || in.more == kMost || in.swap != next.swap) return false;
    if (in.code == Code::arity)
      return next.code == Code::bind_result && next.slot == in.more &&
             (in.more == 0 || next.value == in.second + in.more);
    return in.code == Code::operands && next.code == Code::operands &&
           in.swap == Instruction::kNoSwap && in.fail == next.fail &&
           next.slot == in.slot + in.more + 1 && next.value == in.value + in.more + 1;
  }

  /// Returns true if all ops of a rule differ, so that each node of a set has one place, and the
  /// first accepted order of operands suffices.
  [[nodiscard]] bool first_way(const ProgramRule& compiled) const {
    std::set<OpId> ops;
    for (const PatternNode& node : compiled.layout->rule->nodes)
      if (!ops.insert(node.op).second) return false;
    return std::all_of(compiled.path.begin(), compiled.path.end(), [&](std::uint32_t pc) {
      return program_.code[pc].code != Code::next_swap || program_.code[pc].last_choice;
    });
  }

  void add_ways(const Rule& rule, PatternNodeId anchor) {
    const IdVec<PatternNodeId, std::vector<Hop>> ways = find_ways_back(rules_, rule, anchor);
    for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
      const PatternNodeId id(i);
      if (ways[id].empty() && id != anchor) continue;
      WayBack way;
      for (const Hop& hop : ways[id])
        way.steps.push_back({hop.kind, hop.slot, hop.either, rule.nodes[hop.to].op});
      std::vector<WayBack>& known = program_.ways[rule.nodes[id].op.index];
      const bool fresh = std::none_of(known.begin(), known.end(), [&](const WayBack& other) {
        return other.steps == way.steps;
      });
      if (fresh) known.push_back(std::move(way));
    }
  }

  const RuleSet& rules_;
  const GraphStatistics& statistics_;
  ProgramOptions options_;
  std::set<OpId> made_;   ///< by the rules
  std::set<OpId> begun_;  ///< at which rules are anchored
  MatchProgram program_;
  std::vector<Branch> branches_;
  std::vector<std::vector<std::uint32_t>> roots_;  ///< by op of the anchor
};

}  // namespace

/// Returns the anchoring of a strategy: a walk continues from its last rewrite, and `once` finds
/// all matches first.
Anchoring anchoring_of(ast::Strategy::Kind kind) {
  return kind == ast::Strategy::Kind::walk || kind == ast::Strategy::Kind::once
             ? Anchoring::cheapest
             : Anchoring::first;
}

MatchProgram compile_program(const RuleSet& rules, const std::vector<const RuleLayout*>& layouts,
                             const GraphStatistics& statistics, ProgramOptions options) {
  return ProgramWriter(rules, statistics, std::move(options)).run(layouts);
}

}  // namespace pw
