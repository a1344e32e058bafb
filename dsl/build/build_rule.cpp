#include "dsl/build/build_rule.hpp"

#include <algorithm>

#include "dsl/check/call.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/build.hpp"

namespace pw {
namespace {

std::optional<Attribute> number(const Expr& expr) {
  if (expr.kind == Expr::Kind::integer) return Attribute(expr.integer);
  if (expr.kind == Expr::Kind::real) return Attribute(expr.real);
  if (expr.kind != Expr::Kind::negate) return {};
  const Expr& inner = expr.args.front();
  if (inner.kind == Expr::Kind::integer) return Attribute(-inner.integer);
  if (inner.kind == Expr::Kind::real) return Attribute(-inner.real);
  return {};
}

class RuleBuilder {
 public:
  RuleBuilder(const Context& context, const RuleNames& names, Diagnostics& out)
      : context_(context), names_(names), out_(out) {}

  std::optional<Rule> run(const ast::Rule& ast) {
    const std::size_t before = out_.size();
    for (const PatternStatement& p : pattern_statements(ast.body)) statement(p);
    for (const ast::Clause& clause : ast.body.clauses) {
      if (clause.kind == ast::Clause::Kind::unless) negation(clause);
    }
    rule_.name = rule_.base_name = ast.name;
    rule_.span = ast.span;
    rule_.name_span = ast.name_span;
    copy_guards(ast);
    copy_replacement(ast);
    sort_values();
    name_sequences();
    ask_for_elements();
    if (out_.size() != before) return {};
    return std::move(rule_);
  }

 private:
  void statement(const PatternStatement& p) {
    given_ = p.given;
    const Statement& s = *p.statement;
    if (s.many) open_members(Members::Kind::many, s.span);
    PatternNodeId node = lower_node(s.value, s.binders.size());
    if (s.many) close_members(node);
    if (!node.valid()) return;
    const OpId op = rule_.nodes[node].op;
    check_result_count(context_.ops[op], s.binders.size(), has_spread(s), s.span, out_);
    for (std::size_t i = 0; i < s.binders.size() && i < rule_.nodes[node].results.size(); ++i)
      bind(rule_.nodes[node].results[i], s.binders[i]);
  }

  static bool has_spread(const Statement& s) {
    return !s.binders.empty() && s.binders.back().spread;
  }

  /// Lowers a negation. Names that the clause binds are local to it; results may be values of the
  /// pattern.
  void negation(const ast::Clause& clause) {
    const auto outer = by_name_;
    negation_ = static_cast<int>(rule_.unless.size());
    rule_.unless.push_back({clause.span, {}});
    for (const Statement& s : clause.statements) statement({&s, false});
    negation_ = -1;
    by_name_ = outer;
  }

  void open_members(Members::Kind kind, Span span) {
    Members members;
    members.kind = kind;
    members.span = span;
    members_ = rule_.members.push_back(std::move(members));
  }

  MembersId close_members(PatternNodeId root) {
    const MembersId done = members_;
    rule_.members[done].root = root;
    members_ = {};
    return done;
  }

  void bind(PatternValueId id, const Binder& binder) {
    if (const auto known = by_name_.find(binder.name);
        negation_ >= 0 && known != by_name_.end() && binder.name != "_") {
      PatternNode& node = rule_.nodes[rule_.values[id].producer];
      node.results[static_cast<std::size_t>(rule_.values[id].result)] = known->second;
      return;
    }
    PatternValue& value = rule_.values[id];
    value.span = binder.span;
    value.list = binder.spread || rule_.nodes[value.producer].members.valid();
    if (binder.name != "_") {
      value.name = binder.name;
      by_name_[binder.name] = id;
    }
    for (const TypeExpr& type : binder.type) value.types.push_back(type);
  }

  /// Returns the node that an expression makes, or an invalid id with a diagnostic.
  PatternNodeId lower_node(const Expr& expr, std::size_t results) {
    switch (expr.kind) {
      case Expr::Kind::call: return lower_call(expr, results);
      case Expr::Kind::binary: return lower_primitive(primitive_of_infix(expr.text), expr);
      case Expr::Kind::negate: return lower_primitive("neg", expr);
      case Expr::Kind::integer:
      case Expr::Kind::real:
      case Expr::Kind::string:
      case Expr::Kind::boolean:
      case Expr::Kind::none:
      case Expr::Kind::path:
      case Expr::Kind::list:
      case Expr::Kind::not_:
      case Expr::Kind::in_set:
      case Expr::Kind::in_range:
      case Expr::Kind::index:
      case Expr::Kind::spread:
      case Expr::Kind::star:
      case Expr::Kind::fuse: break;
    }
    out_.push_back(
        error_at(expr.span, "PW0250", "a pattern consists of ops, and this is not an op",
                 "write `y = op(operands){attributes}`, or an infix expression of values"));
    return {};
  }

  PatternNodeId lower_primitive(std::string_view name, const Expr& expr) {
    const OpId op = context_.ops.find(name);
    if (name.empty() || !op.valid()) {
      out_.push_back(error_at(
          expr.span, "PW0251",
          name.empty() ? in_ticks(expr.text) + " is not an op on values"
                       : "infix needs the op " + in_ticks(name) + ", which is not declared",
          name.empty() ? "patterns may use + - * /; write conditions in `where`"
                       : "use \"ops/primitive.pwr\""));
      return {};
    }
    PatternNode node;
    node.op = op;
    for (const Expr& arg : expr.args) node.operands.push_back(lower_operand(arg));
    return add(std::move(node), expr, 1);
  }

  PatternNodeId lower_call(const Expr& call, std::size_t results) {
    const OpId op = context_.ops.find(call.text);
    if (!op.valid()) return lower_cast(call);
    check_call(context_, context_.ops[op], call, Side::pattern, out_);
    PatternNode node;
    node.op = op;
    node.open = call.open;
    std::vector<MembersId> spreads;
    for (const Expr& arg : call.args)
      node.operands.push_back(arg.kind == Expr::Kind::spread ? lower_spread(arg, spreads)
                                                             : lower_operand(arg));
    for (const AttributeArg& argument : call.attributes)
      node.attributes.push_back(attribute(argument));
    const PatternNodeId reader = add(std::move(node), call, results);
    for (MembersId members : spreads) rule_.members[members].reader = reader;
    return reader;
  }

  /// Lowers a spread: `xs...` is the list itself; `relu(x)...` makes a node for each of its
  /// elements.
  PatternValueId lower_spread(const Expr& spread, std::vector<MembersId>& opened) {
    const Expr& inner = spread.args.front();
    PatternValueId id;
    if (!is_member_spread(spread)) {
      id = named(inner);
      if (const MembersId many = many_read_here(id); many.valid()) {
        rule_.members[many].kind = Members::Kind::operands;
        opened.push_back(many);
      }
    } else if (members_.valid()) {
      return {};  // check_lists has reported it
    } else {
      open_members(Members::Kind::operands, spread.span);
      const PatternNodeId root = lower_node(inner, 1);
      opened.push_back(close_members(root));
      if (!root.valid()) return {};
      id = rule_.nodes[root].results.front();
    }
    if (!id.valid()) return id;
    rule_.values[id].list = true;
    for (const TypeExpr& type : spread.type) rule_.values[id].types.push_back(type);
    return id;
  }

  /// Returns the members of a `many` that are read here. `many p = mm(x, w)  y = cat(p...)` is `y =
  /// cat(mm(x, w)...)` with a name. The first node that reads the results determines the members
  /// and their order.
  [[nodiscard]] MembersId many_read_here(PatternValueId id) const {
    if (!id.valid() || negation_ >= 0 || members_.valid()) return {};
    const PatternNodeId root = rule_.values[id].producer;
    const MembersId members = root.valid() ? rule_.nodes[root].members : MembersId();
    if (!members.valid() || rule_.members[members].kind != Members::Kind::many) return {};
    const bool survives = given_ && rule_.nodes[root].own();
    return survives ? MembersId() : members;
  }

  PatternNodeId lower_cast(const Expr& call) {
    const Name* variable = names_.find(call.text);
    const bool is_dtype =
        dtype_named(call.text) || (variable != nullptr && variable->kind == NameKind::dtype);
    const OpId cast = context_.ops.find(Primitive::cast);
    if (!is_dtype || !cast.valid()) {
      out_.push_back(unknown_op(context_, call.text, call.span));
      return {};
    }
    if (call.args.size() != 1 || call.braces) {
      out_.push_back(error_at(call.span, "PW0252", "a cast takes one operand and no attributes"));
      return {};
    }
    PatternNode node;
    node.op = cast;
    node.operands.push_back(lower_operand(call.args.front()));
    node.attributes.push_back({"dtype", call.span, path_expr(call.text, call.span)});
    return add(std::move(node), call, 1);
  }

  static PatternAttribute attribute(const AttributeArg& argument) {
    if (!argument.value.empty()) return {argument.name, argument.span, argument.value.front()};
    return {argument.name, argument.span, path_expr(argument.name, argument.span)};
  }

  PatternNodeId add(PatternNode node, const Expr& expr, std::size_t results) {
    node.span = expr.span;
    node.given = given_;
    node.members = members_;
    node.negation = negation_;
    const Op& op = context_.ops[node.op];
    const bool variadic = op.imported || (!op.results.empty() && op.results.back().variadic);
    const std::size_t count = variadic ? results : op.results.size();
    const PatternNodeId id = rule_.nodes.push_back(std::move(node));
    if (members_.valid()) rule_.members[members_].nodes.push_back(id);
    if (negation_ >= 0) rule_.unless[static_cast<std::size_t>(negation_)].nodes.push_back(id);
    for (std::size_t i = 0; i < count; ++i) {
      PatternValue value;
      value.span = expr.span;
      value.producer = id;
      value.result = static_cast<int>(i);
      rule_.nodes[id].results.push_back(rule_.values.push_back(std::move(value)));
    }
    return id;
  }

  PatternValueId lower_operand(const Expr& expr) {
    PatternValueId id = lower_operand_value(expr);
    if (id.valid()) {
      for (const TypeExpr& type : expr.type) rule_.values[id].types.push_back(type);
    }
    return id;
  }

  PatternValueId lower_operand_value(const Expr& expr) {
    if (auto literal = number(expr)) {
      if (const auto* integer = std::get_if<std::int64_t>(&*literal);
          integer != nullptr && !constant_holds(*integer)) {
        out_.push_back(error_at(expr.span, "PW0336",
                                in_ticks(std::to_string(*integer)) +
                                    " is not the value of any constant: constants are doubles",
                                "match the operand by a name, and compare sizes in a guard"));
        return {};
      }
      PatternValue value;
      value.span = expr.span;
      value.literal = std::move(*literal);
      return rule_.values.push_back(std::move(value));
    }
    if (expr.kind == Expr::Kind::none) {
      PatternValue value;
      value.span = expr.span;
      value.literal_none = true;
      return rule_.values.push_back(std::move(value));
    }
    if (expr.kind == Expr::Kind::path) return named(expr);
    const PatternNodeId node = lower_node(expr, 1);
    if (!node.valid()) return {};
    const auto& results = rule_.nodes[node].results;
    if (results.size() == 1) return results.front();
    const Op& op = context_.ops[rule_.nodes[node].op];
    out_.push_back(error_at(expr.span, "PW0253",
                            in_ticks(op.name) + " has " + std::to_string(results.size()) +
                                " results, so it cannot be used inside an expression",
                            "bind its results in a separate statement"));
    return {};
  }

  PatternValueId named(const Expr& expr) {
    if (expr.text.find('.') != std::string::npos) {
      out_.push_back(error_at(expr.span, "PW0254",
                              in_ticks(expr.text) + " is not a value, so it cannot be an operand"));
      return {};
    }
    if (auto it = by_name_.find(expr.text); it != by_name_.end() && expr.text != "_") {
      PatternValue& known = rule_.values[it->second];
      known.optional = known.optional && expr.optional;
      return it->second;
    }
    const Name* name = names_.find(expr.text);
    if (name != nullptr && name->result && negation_ < 0) {
      Diagnostic d = error_at(expr.span, "PW0243",
                              in_ticks(expr.text) + " is read before the statement that binds it",
                              "move the statement that binds it up");
      d.secondary.push_back({name->span, "bound here"});
      out_.push_back(std::move(d));
      return {};
    }
    PatternValue value;
    value.span = expr.span;
    value.optional = expr.optional;
    if (expr.text != "_") value.name = expr.text;
    value.attribute_variable = name != nullptr && name->attribute_variable;
    value.list = name != nullptr && name->list;
    const PatternValueId id = rule_.values.push_back(std::move(value));
    if (expr.text != "_") by_name_[expr.text] = id;
    return id;
  }

  void copy_guards(const ast::Rule& ast) {
    for (const ast::Clause& clause : ast.body.clauses) {
      auto& guards = clause.kind == ast::Clause::Kind::assume ? rule_.assume : rule_.where;
      for (const Expr& guard : clause.guards) guards.push_back(guard);
    }
  }

  void copy_replacement(const ast::Rule& ast) {
    for (const Statement& s : ast.replacement) {
      if (!is_drop(s)) rule_.replacement.push_back(s);
    }
  }

  /// Names unnamed sequences, so that they have the same value wherever the shape occurs.
  void name_sequences() {
    int made = 0;
    for (PatternValue& value : rule_.values) {
      for (TypeExpr& type : value.types) {
        const auto is_sequence = [](const Expr& e) { return e.kind == Expr::Kind::star; };
        if (std::count_if(type.dims.begin(), type.dims.end(), is_sequence) < 2) continue;
        for (Expr& dim : type.dims)
          if (is_sequence(dim) && dim.text.empty()) dim.text = "_#" + std::to_string(made++);
      }
    }
  }

  /// Records the least length of lists: `xs[2]` on the right requires three elements.
  void ask_for_elements() {
    for (const Statement& s : rule_.replacement) ask_for_elements(s.value);
  }
  void ask_for_elements(const Expr& e) {
    for (const Expr& arg : e.args) ask_for_elements(arg);
    if (e.kind != Expr::Kind::index || e.args[0].kind != Expr::Kind::path) return;
    const Name* name = names_.find(e.args[0].text);
    const std::optional<std::int64_t> at = element_of(e);
    if (name == nullptr || name->kind != NameKind::value || !name->list || !at) return;
    Expr count = path_expr("count", e.span);
    count.kind = Expr::Kind::call;
    count.args = {e.args[0]};
    count.args[0].type.clear();
    Expr least;
    least.kind = Expr::Kind::integer;
    least.span = e.span;
    least.integer = *at < 0 ? -*at : *at + 1;
    Expr guard;
    guard.kind = Expr::Kind::binary;
    guard.text = ">=";
    guard.span = e.span;
    guard.args = {std::move(count), std::move(least)};
    rule_.where.push_back(std::move(guard));
  }

  void sort_values() {
    for (std::size_t i = 0; i < rule_.values.size(); ++i) {
      const PatternValueId id(i);
      const PatternValue& value = rule_.values[id];
      if (!value.producer.valid() || !rule_.nodes[value.producer].own()) continue;
      const Name* name = names_.find(value.name);
      if (name != nullptr && name->rebound) {
        rule_.outputs.push_back(value.name);
      } else {
        rule_.consumed.push_back(id);
      }
    }
    for (const auto& [text, name] : names_.names) {
      if (name.list) rule_.lists.insert(text);
    }
  }

  const Context& context_;
  const RuleNames& names_;
  Diagnostics& out_;
  Rule rule_;
  std::map<std::string, PatternValueId, std::less<>> by_name_;
  bool given_ = false;
  MembersId members_;  // one copy of the lowered nodes is matched for each of these
  int negation_ = -1;
};

}  // namespace

std::optional<Rule> build_rule(const Context& context, const ast::Rule& rule,
                               const RuleNames& names, Diagnostics& out) {
  return RuleBuilder(context, names, out).run(rule);
}

}  // namespace pw
