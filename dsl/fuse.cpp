// Exports has_fuse, lower_fuse.
#include "dsl/fuse.hpp"

#include <algorithm>
#include <cctype>

#include "dsl/declare_op.hpp"
#include "dsl/rename.hpp"
#include "dsl/suggest.hpp"
#include "dsl/walk.hpp"
#include "graph/text.hpp"

namespace pw {
namespace {

bool holds_fuse(const Expr& e) {
  return e.kind == Expr::Kind::fuse || std::any_of(e.args.begin(), e.args.end(), holds_fuse);
}

/// Names that read back as plain names: those that patterns made apart have a `#`.
class PlainNames {
 public:
  const std::string& of(const std::string& name) {
    auto [it, fresh] = plain_.try_emplace(name);
    if (!fresh) return it->second;
    std::string base;
    for (char c : name) base += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    std::string text = base;
    for (int i = 1; !taken_.insert(text).second; ++i) text = base + "_" + std::to_string(i);
    return it->second = text;
  }

  /// Of every name in the pattern, the renaming to plain ones.
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
  Fusion(Context& context, const Program& program, Rule& rule, Diagnostics& out)
      : context_(context), program_(program), rule_(rule), out_(out) {}

  bool run() {
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
    return declare();
  }

 private:
  void refuse(Span span, std::string_view code, std::string message, std::string help = {}) {
    out_.push_back(error_at(span, code, std::move(message), std::move(help)));
  }

  void check_shape() {
    const Statement& s = rule_.replacement.front();
    if (rule_.replacement.size() != 1 || s.value.kind != Expr::Kind::fuse)
      refuse(s.span, "PW0390", "`fuse` is the whole right side of a rule",
             "write `q, r = fuse` and nothing else; shape its results in another rule");
    if (!rule_.members.empty() || !rule_.lists.empty())
      refuse(s.value.span, "PW0391", "a rule with `many` or a spread has no one op to fuse to",
             "write the op, or a rule for a fixed number of siblings");
  }

  static bool anonymous(const std::string& name) { return name.empty() || name == "_"; }

  [[nodiscard]] bool inside(PatternValueId id) const {
    const PatternNodeId producer = rule_.values[id].producer;
    return producer.valid() && rule_.nodes[producer].own();
  }

  /// Everything that the op's operands and statements refer to has a name.
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

  /// A name of a shared pattern, put into place, looks alike.
  [[nodiscard]] std::string free_name(std::string name) const {
    while (rule_.value_named(name).valid()) name += "#";
    return name;
  }

  [[nodiscard]] bool is_read(PatternValueId id) const {
    return std::any_of(rule_.nodes.begin(), rule_.nodes.end(), [&](const PatternNode& node) {
      return std::find(node.operands.begin(), node.operands.end(), id) != node.operands.end();
    });
  }

  /// What the pattern leaves open may be anything, and the op must know what it was.
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

  // ---- the signature

  void add_operands() {
    for (const PatternNode& node : rule_.nodes) {
      if (!node.own()) continue;
      for (PatternValueId id : node.operands) {
        const PatternValue& value = rule_.values[id];
        if (value.literal || value.literal_none || value.attribute_variable || inside(id) ||
            std::find(operands_.begin(), operands_.end(), id) != operands_.end())
          continue;
        operands_.push_back(id);
        OperandDecl decl;
        decl.name = plain_.of(value.name);
        decl.span = value.span;
        decl.optional = value.optional;
        decl.type = type_of(value);
        op_.operands.push_back(std::move(decl));
      }
    }
  }

  /// The annotation that says most, if it can be solved with what the operands before it bind.
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
      params = params || program_.params.contains(o.name);
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
                   " is no result of the pattern, so the fused op has none "
                   "for it",
               "`fuse` gives what the left side computes, under the names it has there");
        continue;
      }
      ResultDecl decl;
      decl.name = plain_.of(binder.name);
      decl.span = binder.span;
      op_.results.push_back(std::move(decl));
    }
  }

  /// Every variable of the body that no operand's type binds.
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
    auto capturable = Capturable::always;  // as the part that allows least
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
    op_.name = rule_.name;
    op_.span = rule_.name_span;
    op_.local = true;
    const OpId known = context_.ops.find(op_.name);
    if (known.valid() && print_declaration(context_.ops[known], context_.attributes, " ") !=
                             print_declaration(op_, context_.attributes, " ")) {
      Diagnostic d = error_at(op_.span, "PW0204",
                              "`fuse` makes the op " + in_ticks(op_.name) +
                                  ", which is already declared with another meaning",
                              "give the rule another name");
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
    call_it();
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
  const Program& program_;
  Rule& rule_;
  Diagnostics& out_;
  PlainNames plain_;
  Op op_;
  std::vector<PatternValueId> operands_;
  std::vector<std::string> captured_;         ///< variables, as the attributes of the op
  std::set<std::string, std::less<>> bound_;  ///< by types of operands, or captured
};

}  // namespace

bool has_fuse(const ast::Rule& rule) {
  return std::any_of(rule.replacement.begin(), rule.replacement.end(),
                     [](const Statement& s) { return holds_fuse(s.value); });
}

bool lower_fuse(Context& context, const Program& program, Rule& rule, Diagnostics& out) {
  return Fusion(context, program, rule, out).run();
}

}  // namespace pw
