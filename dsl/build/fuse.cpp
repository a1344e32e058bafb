#include "dsl/build/fuse.hpp"

#include <algorithm>

#include "base/characters.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/build/unroll.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/same_op.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

bool holds_fuse(const Expr& e) {
  return e.kind == Expr::Kind::fuse || std::any_of(e.args.begin(), e.args.end(), holds_fuse);
}

/// Renaming to plain names: names that patterns made distinct contain a `#`.
class PlainNames {
 public:
  const std::string& of(const std::string& name) {
    auto [it, fresh] = plain_.try_emplace(name);
    if (!fresh) return it->second;
    const std::string base = as_name(name);
    std::string text = base;
    for (int i = 1; !taken_.insert(text).second; ++i) text = base + "_" + std::to_string(i);
    return it->second = text;
  }

  /// Returns the renaming of every name in the pattern to a plain one.
  Rename renaming() const {
    Rename rename;
    for (const auto& [name, text] : plain_) rename.put(name, path_expr(text, {}));
    return rename;
  }

 private:
  std::map<std::string, std::string> plain_;
  std::set<std::string> taken_;
};

AttributeKind element_of(AttributeKind kind) {
  if (kind == AttributeKind::floats) return AttributeKind::float_;
  if (kind == AttributeKind::strs) return AttributeKind::str;
  return kind == AttributeKind::dims || kind == AttributeKind::ints ? AttributeKind::int_ : kind;
}

class Fusion {
 public:
  Fusion(Context& context, const std::set<std::string>& params, Rule& rule, Diagnostics& out)
      : context_(context), params_(params), rule_(rule), out_(out) {}

  /// Sets the order of the op's operands; by default the order of first use.
  void order_operands(std::vector<std::string> names) { order_ = std::move(names); }

  /// Builds the op and the call. `declares`: declares the op; otherwise the right side calls an op
  /// that does not exist yet.
  bool run(bool declares = true) {
    const std::size_t before = out_.size();
    check_shape();
    if (out_.size() != before) return false;
    name_values();
    capture_attributes();
    add_operands();
    add_results();
    if (out_.size() != before) return false;
    add_attributes();
    add_body();
    add_traits();
    op_.name = rule_.name;
    if (declares && !declare()) return false;
    call_it();
    return true;
  }

  /// Captures attributes that the pattern leaves open, since the op must store their values.
  void capture_attributes() {
    int made = 0;
    for (PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      const auto fresh = [&](const std::string& name) {
        return path_expr(name + "#a" + std::to_string(made++), node.span);
      };
      for (PatternAttribute& a : node.attributes) {
        if (a.value.kind == Expr::Kind::path && a.value.text == "_") a.value = fresh(a.name);
      }
      for (const AttributeDecl& decl : context_.ops[node.op].attributes) {
        const bool written = std::any_of(node.attributes.begin(), node.attributes.end(),
                                         [&](const auto& a) { return a.name == decl.name; });
        if (node.open && !written)
          node.attributes.push_back({decl.name, node.span, fresh(decl.name)});
      }
      node.open = false;
    }
  }

 private:
  void refuse(Span span, std::string_view code, std::string message, std::string help = {}) {
    out_.push_back(error_at(span, code, std::move(message), std::move(help)));
  }

  void check_shape() {
    const Statement& s = rule_.replacement.front();
    if (rule_.replacement.size() != 1 || s.value.kind != Expr::Kind::fuse)
      refuse(s.span, "PW0390", "`fuse` must be the whole right side of a rule",
             "write only `q, r = fuse`; reshape its results in another rule");
  }

  static bool anonymous(const std::string& name) { return name.empty() || name == "_"; }

  [[nodiscard]] bool inside(PatternValueId id) const {
    const PatternNodeId producer = rule_.values[id].producer;
    return producer.valid() && rule_.nodes[producer].own();
  }

  /// Names every value that the op's operands and statements refer to.
  void name_values() {
    for (std::size_t i = 0; i < rule_.values.size(); ++i) {
      PatternValue& value = rule_.values[PatternValueId(i)];
      if (value.literal || value.literal_none || !anonymous(value.name)) continue;
      const bool made = value.producer.valid();
      if (!made || !rule_.nodes[value.producer].own() || is_read(PatternValueId(i)))
        value.name = free_name((made ? "h#" : "x#") + std::to_string(i));
    }
    for (const PatternValue& value : rule_.values) {
      if (!anonymous(value.name)) plain_.of(value.name);
    }
  }

  /// Returns a name that is free. A name of a shared pattern looks the same after inlining.
  [[nodiscard]] std::string free_name(std::string name) const {
    while (rule_.value_named(name).valid()) name += "#";
    return name;
  }

  [[nodiscard]] bool is_read(PatternValueId id) const {
    return std::any_of(rule_.nodes.begin(), rule_.nodes.end(), [&](const PatternNode& node) {
      return std::find(node.operands.begin(), node.operands.end(), id) != node.operands.end();
    });
  }

  // ---- the signature

  void add_operands() {
    for (const std::string& name : order_) operands_.push_back(rule_.value_named(name));
    for (const PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      for (PatternValueId id : node.operands) {
        const PatternValue& value = rule_.values[id];
        if (value.literal || value.literal_none || value.attribute_variable || inside(id) ||
            std::find(operands_.begin(), operands_.end(), id) != operands_.end())
          continue;
        operands_.push_back(id);
      }
    }
    for (PatternValueId id : operands_) {
      const PatternValue& value = rule_.values[id];
      OperandDecl decl;
      decl.name = plain_.of(value.name);
      decl.span = value.span;
      decl.optional = value.optional;
      decl.type = type_of(value);
      op_.operands.push_back(std::move(decl));
    }
  }

  /// Returns the most specific annotation that can be solved with the bindings of earlier operands.
  std::optional<TypeExpr> type_of(const PatternValue& value) {
    const TypeExpr* best = nullptr;
    for (const TypeExpr& type : value.types) {
      if (best == nullptr || (best->any_shape && !type.any_shape)) best = &type;
    }
    if (best == nullptr || !is_solvable(*best)) return {};
    visit_type(*best, [&](const Occurrence& o) {
      if (!anonymous(std::string(o.name))) bound_.insert(std::string(o.name));
    });
    return *best;
  }

  bool is_solvable(const TypeExpr& type) const {
    std::set<std::string, std::less<>> bare(bound_.begin(), bound_.end());
    bool params = false;
    const auto note = [&](const Occurrence& o) {
      params = params || params_.contains(std::string(o.name));
      if (o.bare) bare.insert(std::string(o.name));
    };
    visit_type(type, note);
    for (const Expr& dim : type.dims) {
      std::set<std::string_view> open;
      visit_scalar(dim, Place::dim, [&](const Occurrence& o) {
        if (!bare.contains(o.name)) open.insert(o.name);
      });
      if (open.size() > 1) return false;
    }
    return !params;
  }

  void add_results() {
    for (const Binder& binder : rule_.replacement.front().binders) {
      const PatternValueId id = rule_.value_named(binder.name);
      if (!id.valid() || !inside(id)) {
        refuse(binder.span, "PW0390",
               in_ticks(binder.name) +
                   " is not a result of the pattern, so the fused op does not compute it",
               "`fuse` returns what the left side computes, with the same names");
        continue;
      }
      ResultDecl decl;
      decl.name = plain_.of(binder.name);
      decl.span = binder.span;
      op_.results.push_back(std::move(decl));
    }
  }

  /// Adds every variable of the body that no operand's type binds as an attribute.
  void add_attributes() {
    for (const PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      for (const PatternAttribute& a : node.attributes) {
        if (const AttributeDecl* decl = context_.ops[node.op].attribute(a.name))
          captured(a.value, decl->kind, decl->nullable);
      }
      for (PatternValueId id : node.operands) {
        const PatternValue& value = rule_.values[id];
        if (value.attribute_variable) capture(value.name, AttributeKind::float_, false, value.span);
      }
    }
  }

  void captured(const Expr& e, AttributeKind kind, bool nullable) {
    if (e.kind == Expr::Kind::path) {
      if (e.text.find('.') == std::string::npos && !dtype_named(e.text))
        capture(e.text, kind, nullable, e.span);
    } else if (e.kind == Expr::Kind::star) {
      capture(e.text, AttributeKind::dims, false, e.span);
    } else if (e.kind == Expr::Kind::index) {
      captured(e.args[0], AttributeKind::dims, false);
      captured(e.args[1], AttributeKind::int_, false);
    } else if (e.kind == Expr::Kind::call && (e.text == "size" || e.text == "rank")) {
      for (std::size_t i = 1; i < e.args.size(); ++i)
        captured(e.args[i], AttributeKind::int_, false);
    } else {
      for (const Expr& arg : e.args) captured(arg, element_of(kind), false);
    }
  }

  void capture(const std::string& name, AttributeKind kind, bool nullable, Span span) {
    if (anonymous(name) || bound_.contains(name)) return;
    bound_.insert(name);
    AttributeDecl decl;
    decl.name = plain_.of(name);
    decl.span = span;
    decl.kind = kind;
    decl.nullable = nullable;
    op_.attributes.push_back(std::move(decl));
    captured_.push_back(name);
  }

  // ---- the body

  void add_body() {
    for (const PatternNode& node : rule_.nodes) {
      for (const PatternAttribute& a : node.attributes) {
        visit_scalar(a.value, Place::attribute, [&](const Occurrence& o) {
          if (o.place != Place::function && !dtype_named(o.name)) plain_.of(std::string(o.name));
        });
      }
    }
    for (const OperandDecl& operand : op_.operands) {
      if (!operand.type) continue;
      visit_type(*operand.type, [&](const Occurrence& o) {
        if (o.name != "_" && !dtype_named(o.name)) plain_.of(std::string(o.name));
      });
    }
    Rename rename = plain_.renaming();
    for (const PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      Statement s;
      s.span = node.span;
      for (PatternValueId id : node.results) s.binders.push_back(binder(id));
      s.value = call(node);
      for (AttributeArg& a : s.value.attributes) rename.apply(a.value.front());
      op_.body.push_back(std::move(s));
    }
    for (OperandDecl& operand : op_.operands) {
      if (operand.type) rename.apply(*operand.type);
    }
  }

  Binder binder(PatternValueId id) {
    const PatternValue& value = rule_.values[id];
    return {anonymous(value.name) ? "_" : plain_.of(value.name), value.span, false, {}};
  }

  Expr call(const PatternNode& node) {
    Expr call;
    call.kind = Expr::Kind::call;
    call.span = node.span;
    call.text = context_.ops[node.op].name;
    for (PatternValueId id : node.operands) call.args.push_back(operand(rule_.values[id]));
    for (const PatternAttribute& a : node.attributes)
      call.attributes.push_back({a.name, a.span, {a.value}});
    call.braces = !call.attributes.empty();
    return call;
  }

  Expr operand(const PatternValue& value) {
    Expr e;
    e.span = value.span;
    if (value.literal_none) return e;
    if (!value.literal) return path_expr(plain_.of(value.name), value.span);
    if (const auto* integer = std::get_if<std::int64_t>(&*value.literal)) {
      e.kind = Expr::Kind::integer;
      e.integer = *integer;
    } else {
      e.kind = Expr::Kind::real;
      e.real = std::get<double>(*value.literal);
    }
    return e;
  }

  void add_traits() {
    auto capturable = Capturable::always;  // the part that allows least decides
    for (const PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      const Traits& traits = context_.ops[node.op].traits;
      op_.traits.collective = op_.traits.collective || traits.collective;
      op_.traits.effect = op_.traits.effect || traits.effect;
      op_.traits.splitting = op_.traits.splitting || traits.splitting;
      if (traits.splitting) capturable = std::min(capturable, traits.capturable);
    }
    if (op_.traits.splitting) op_.traits.capturable = capturable;
  }

  bool declare() {
    op_.span = rule_.name_span;
    op_.local = true;
    OpId known = context_.ops.find(op_.name);
    if (known.valid() && is_in_library(context_, context_.ops[known].span)) {
      const std::string& file = context_.sources.name(rule_.name_span.source);
      const std::string name = name_beside_library(context_, file, op_);
      out_.push_back(shadows_library("op", op_.name, op_.span, context_.ops[known].span,
                                     "the op that the rule makes is called " + in_ticks(name)));
      op_.name = name;
      known = context_.ops.find(op_.name);
    }
    if (known.valid() && print_declaration(context_.ops[known], context_.attributes, " ") !=
                             print_declaration(op_, context_.attributes, " ")) {
      Diagnostic d = error_at(op_.span, "PW0204",
                              "`fuse` makes the op " + in_ticks(op_.name) +
                                  ", which is already declared with a different meaning",
                              "rename the rule");
      if (context_.ops[known].span.valid())
        d.secondary.push_back({context_.ops[known].span, "first declared here"});
      out_.push_back(std::move(d));
      return false;
    }
    if (!known.valid()) {
      if (auto declared = context_.ops.declare(op_); !declared) {
        append(out_, std::move(declared.error()));
        return false;
      }
    }
    return true;
  }

  void call_it() {
    Statement& s = rule_.replacement.front();
    Expr call;
    call.kind = Expr::Kind::call;
    call.span = s.value.span;
    call.text = op_.name;
    for (PatternValueId id : operands_)
      call.args.push_back(path_expr(rule_.values[id].name, s.value.span));
    for (std::size_t i = 0; i < captured_.size(); ++i)
      call.attributes.push_back(
          {op_.attributes[i].name, s.value.span, {path_expr(captured_[i], s.value.span)}});
    call.braces = !call.attributes.empty();
    s.value = std::move(call);
  }

  Context& context_;
  const std::set<std::string>& params_;
  Rule& rule_;
  Diagnostics& out_;
  std::vector<std::string> order_;
  PlainNames plain_;
  Op op_;
  std::vector<PatternValueId> operands_;
  std::vector<std::string> captured_;         ///< variables, as the attributes of the op
  std::set<std::string, std::less<>> bound_;  ///< by types of operands, or captured
};

/// Returns the list `w` of the element `w#1`.
std::string list_of(const Rule& rule, const std::string& element) {
  const std::string list = element.substr(0, element.rfind('#'));
  return rule.lists.contains(list) && element != list ? list : std::string();
}

std::string name_for(const std::string& rule, std::size_t count) {
  return rule + "*" + std::to_string(count);
}

/// Fuses the pattern with lists of the given length, as a rule whose right side is one new op.
/// `operands`: lists by their own names; without them nothing is declared.
bool fuse_unrolled(Context& context, const FusedLists& lists, std::size_t count, Rule& unrolled,
                   Diagnostics& out) {
  unrolled = unroll(lists.pattern, count);
  unrolled.name = name_for(lists.pattern.name, count);
  std::vector<Binder>& binders = unrolled.replacement.front().binders;
  if (binders.front().spread) {
    const Binder list = binders.front();
    binders.assign(count, list);
    for (std::size_t i = 0; i < count; ++i) {
      binders[i].name = element_name(list.name, i);
      binders[i].spread = false;
    }
  }
  Fusion fusion(context, lists.params, unrolled, out);
  std::vector<std::string> order;
  for (const std::string& operand : lists.operands) {
    if (!lists.pattern.lists.contains(operand)) {
      order.push_back(operand);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) order.push_back(element_name(operand, i));
  }
  fusion.order_operands(std::move(order));
  return fusion.run(!lists.operands.empty());
}

/// Returns true if all lists of a rule have one length: they belong to one `many`, or there is only
/// one.
bool has_one_length(const Rule& rule) {
  std::set<PatternValueId> of_members;
  for (const PatternNode& node : rule.nodes) {
    if (!node.members.valid()) continue;
    of_members.insert(node.operands.begin(), node.operands.end());
    of_members.insert(node.results.begin(), node.results.end());
  }
  std::size_t apart = 0;
  for (std::size_t i = 0; i < rule.values.size(); ++i)
    if (const PatternValueId id(i); rule.values[id].list && !of_members.contains(id)) ++apart;
  return rule.members.size() + apart == 1;
}

/// Returns a value that only the members read, and that has no name.
const PatternValue* nameless_operand(const Rule& rule) {
  for (const PatternNode& node : rule.nodes)
    for (PatternValueId id : node.operands) {
      const PatternValue& value = rule.values[id];
      const bool free = !value.producer.valid() && !value.literal && !value.literal_none;
      if (node.own() && free && (value.name.empty() || value.name == "_")) return &value;
    }
  return nullptr;
}

bool lower_fused_lists(Context& context, std::set<std::string> params, Rule& rule,
                       Diagnostics& out) {
  const Statement& right = rule.replacement.front();
  if (!has_one_length(rule)) {
    out.push_back(error_at(
        right.value.span, "PW0391",
        "the lists of this rule may have several lengths, and each length needs its own fused op",
        "write a rule for one list, or a fixed number of operands"));
    return false;
  }
  if (const PatternValue* value = nameless_operand(rule)) {
    out.push_back(error_at(value->span, "PW0391", "the fused op needs a name for this operand",
                           "write a name instead of `_`"));
    return false;
  }
  Fusion(context, params, rule, out).capture_attributes();
  auto lists = std::make_shared<FusedLists>();
  lists->pattern = rule;
  lists->params = std::move(params);
  Rule two;
  if (!fuse_unrolled(context, *lists, 2, two, out)) return false;
  Expr call = two.replacement.front().value;
  std::vector<Expr> operands;
  for (Expr& arg : call.args) {
    const std::string list = list_of(rule, arg.text);
    const std::string& name = list.empty() ? arg.text : list;
    if (std::find(lists->operands.begin(), lists->operands.end(), name) != lists->operands.end())
      continue;
    lists->operands.push_back(name);
    Expr operand = path_expr(name, arg.span);
    if (!list.empty()) {
      Expr spread;
      spread.kind = Expr::Kind::spread;
      spread.span = arg.span;
      spread.args = {std::move(operand)};
      operand = std::move(spread);
    }
    operands.push_back(std::move(operand));
  }
  for (const AttributeArg& attribute : call.attributes)
    if (attribute.value.empty() || !list_of(rule, attribute.value.front().text).empty()) {
      out.push_back(error_at(right.value.span, "PW0391",
                             in_ticks(list_of(rule, attribute.value.front().text)) +
                                 " is a list of attributes, which the fused op cannot have",
                             "use the same attribute for all members"));
      return false;
    }
  call.args = std::move(operands);
  call.text = name_for(rule.name, 2);
  rule.fused = lists;
  rule.replacement.front().value = std::move(call);
  // Lengths that the checks inspect.
  for (const std::size_t count : {1, 2, 3, 4})
    if (!fuse_unrolled(context, *lists, count, two, out)) return false;
  return true;
}

}  // namespace

Result<std::vector<Statement>> fused_replacement(Context& context, const Rule& rule,
                                                 std::size_t count) {
  std::vector<Statement> out = rule.replacement;
  Expr& call = out.front().value;
  call.text = name_for(rule.fused->pattern.name, count);
  if (context.ops.find(call.text).valid()) return out;
  Rule unrolled;
  Diagnostics wrong;
  if (!fuse_unrolled(context, *rule.fused, count, unrolled, wrong))
    return tl::unexpected<Diagnostics>(std::move(wrong));
  return out;
}

bool has_fuse(const ast::Rule& rule) {
  return std::any_of(rule.replacement.begin(), rule.replacement.end(),
                     [](const Statement& s) { return holds_fuse(s.value); });
}

bool lower_fuse(Context& context, const Program& program, Rule& rule, Diagnostics& out) {
  std::set<std::string> params;
  for (const auto& [name, param] : program.params) params.insert(name);
  if (rule.lists.empty() && rule.members.empty()) return Fusion(context, params, rule, out).run();
  return lower_fused_lists(context, std::move(params), rule, out);
}

}  // namespace pw
