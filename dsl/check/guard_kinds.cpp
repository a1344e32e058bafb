// Guards are boolean, and compare operands of comparable kinds.
#include <algorithm>
#include <map>
#include <optional>

#include "dsl/build/declare_op.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

enum class GuardKind : std::uint8_t { open, number, truth, dtype, text, list, none, tensor };

std::string_view described(GuardKind kind) {
  switch (kind) {
    case GuardKind::open: return "not known";
    case GuardKind::number: return "a number";
    case GuardKind::truth: return "true or false";
    case GuardKind::dtype: return "a dtype";
    case GuardKind::text: return "a string";
    case GuardKind::list: return "a list";
    case GuardKind::none: return "an absent value";
    case GuardKind::tensor: return "a tensor";
  }
  return {};
}

GuardKind kind_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::int_:
    case AttributeKind::float_:
    case AttributeKind::axis: return GuardKind::number;
    case AttributeKind::bool_: return GuardKind::truth;
    case AttributeKind::str: return GuardKind::text;
    case AttributeKind::dtype: return GuardKind::dtype;
    case AttributeKind::ints:
    case AttributeKind::dims:
    case AttributeKind::floats:
    case AttributeKind::strs: return GuardKind::list;
  }
  return GuardKind::open;
}

bool is_number(const Expr& e) {
  return e.kind == Expr::Kind::integer && (e.integer == 0 || e.integer == 1);
}

class GuardKinds {
 public:
  GuardKinds(const CheckedRule& checked, Diagnostics& out) : checked_(checked), out_(out) {
    for (const PatternNode& node : checked.rule->nodes) {
      for (const PatternAttribute& attribute : node.attributes) note(node.op, attribute);
    }
  }

  void guard(const Expr& e) {
    const GuardKind kind = kind_at(e);
    if (kind == GuardKind::open || kind == GuardKind::truth) return;
    say(e,
        in_ticks(print(e)) + " is " + std::string(described(kind)) +
            ", but a guard must be true or false",
        kind == GuardKind::number
            ? "compare it, as in " +
                  in_ticks(print(e) +
                           (print(e).find(" % ") != std::string::npos ? " == 0" : " > 0"))
            : "compare it with something, as in " + in_ticks(print(e) + " == …"));
  }

 private:
  void note(OpId op, const PatternAttribute& attribute) {
    const AttributeDecl* decl = checked_.context.ops[op].attribute(attribute.name);
    const Expr& value = attribute.value;
    if (decl == nullptr || value.kind != Expr::Kind::path) return;
    attributes_.emplace(value.text, decl->nullable ? GuardKind::open : kind_of(decl->kind));
  }

  void say(const Expr& e, std::string message, std::string help) {
    out_.push_back(error_at(e.span, "PW0279", std::move(message), std::move(help)));
  }

  // ---- the kind of an expression; its parts are checked on the way

  GuardKind kind_at(const Expr& e) {
    using K = Expr::Kind;
    if (is_cell(e)) return GuardKind::open;
    switch (e.kind) {
      case K::integer:
      case K::real: return GuardKind::number;
      case K::string: return GuardKind::text;
      case K::boolean: return GuardKind::truth;
      case K::none: return GuardKind::none;
      case K::path: return of_name(e);
      case K::list:
        for (const Expr& arg : e.args) kind_at(arg);
        return GuardKind::list;
      case K::call: return of_call(e);
      case K::negate: return number(e.args.front(), "`-`"), GuardKind::number;
      case K::not_: return condition(e.args.front(), "`not`"), GuardKind::truth;
      case K::binary: return of_binary(e);
      case K::in_set: return of_set(e);
      case K::in_range: return of_range(e);
      case K::index: number(e.args.back(), "a place in a list"); return GuardKind::open;
      case K::spread:
      case K::star:
      case K::fuse: break;
    }
    return GuardKind::open;
  }

  /// Returns true for `k.column`: another row may have another kind there.
  [[nodiscard]] bool is_cell(const Expr& e) const {
    const std::string& variable = checked_.outer.table_variable;
    return !variable.empty() && e.args.empty() &&
           checked_.context.sources.text(e.span).starts_with(variable + ".");
  }

  GuardKind of_name(const Expr& e) {
    if (const std::size_t dot = e.text.rfind('.'); dot != std::string::npos) {
      const Name* base = checked_.names.find(std::string_view(e.text).substr(0, dot));
      if (base == nullptr || base->kind != NameKind::value) return GuardKind::open;
      return e.text.substr(dot) == ".shape"   ? GuardKind::list
             : e.text.substr(dot) == ".dtype" ? GuardKind::dtype
                                              : GuardKind::open;
    }
    if (const auto param = checked_.program.params.find(e.text);
        param != checked_.program.params.end()) {
      const auto kind = attribute_kind_named(param->second->kind);
      return kind ? kind_of(*kind) : GuardKind::open;
    }
    const Name* name = checked_.names.find(e.text);
    if (name == nullptr) return dtype_named(e.text) ? GuardKind::dtype : GuardKind::open;
    if (name->list) return GuardKind::list;
    switch (name->kind) {
      case NameKind::dim: return GuardKind::number;
      case NameKind::dtype: return GuardKind::dtype;
      case NameKind::sequence: return GuardKind::list;
      case NameKind::value: return of_value(e.text, *name);
      case NameKind::attribute: break;
    }
    const auto known = attributes_.find(e.text);
    return known == attributes_.end() ? GuardKind::open : known->second;
  }

  /// Returns the kind of a free operand in a guard: a constant's number, unless its type excludes
  /// that.
  [[nodiscard]] GuardKind of_value(const std::string& text, const Name& name) const {
    if (!name.attribute_variable) return GuardKind::open;
    const PatternValueId id = checked_.rule->value_named(text);
    if (!id.valid()) return GuardKind::open;
    for (const TypeExpr& type : checked_.rule->values[id].types) {
      const bool dims = std::any_of(type.dims.begin(), type.dims.end(),
                                    [](const Expr& d) { return d.kind != Expr::Kind::star; });
      if (dims) return GuardKind::tensor;
    }
    return GuardKind::number;
  }

  GuardKind of_call(const Expr& e) {
    if (const auto it = checked_.program.externs.find(e.text);
        it != checked_.program.externs.end()) {
      for (const Expr& arg : e.args) kind_at(arg);
      if (it->second->predicate) return GuardKind::truth;
      const auto kind = attribute_kind_named(it->second->result);
      return kind ? kind_of(*kind) : GuardKind::open;
    }
    if (e.text == "replicated" || e.text == "weight" || e.text == "constant")
      return GuardKind::truth;
    if (e.text == "min" || e.text == "max")
      for (const Expr& arg : e.args) number(arg, in_ticks(e.text));
    const bool known = e.text == "min" || e.text == "max" || e.text == "size" || e.text == "rank" ||
                       e.text == "count" || e.text == "users";
    return known ? GuardKind::number : GuardKind::open;
  }

  GuardKind of_binary(const Expr& e) {
    const Expr &left = e.args.front(), &right = e.args.back();
    if (e.text == "and" || e.text == "or") {
      condition(left, in_ticks(e.text));
      condition(right, in_ticks(e.text));
      return GuardKind::truth;
    }
    if (e.text == "==" || e.text == "!=") {
      alike(e, left, right);
      return GuardKind::truth;
    }
    const bool order = e.text.front() == '<' || e.text.front() == '>';
    number(left, in_ticks(e.text));
    number(right, in_ticks(e.text));
    return order ? GuardKind::truth : GuardKind::number;
  }

  GuardKind of_set(const Expr& e) {
    for (std::size_t i = 1; i < e.args.size(); ++i)
      if (!alike(e, e.args.front(), e.args[i])) break;
    return GuardKind::truth;
  }

  GuardKind of_range(const Expr& e) {
    if (e.args.size() == 3) {
      for (const Expr& arg : e.args) number(arg, "a range");
      return GuardKind::truth;
    }
    kind_at(e.args.front());
    const GuardKind all = kind_at(e.args.back());
    if (all != GuardKind::open && all != GuardKind::list)
      say(e.args.back(), "`in` needs a list, and " + what(e.args.back(), all),
          "write a set, as in " +
              in_ticks(print(e.args.front()) + " in {" + print(e.args.back()) + "}"));
    return GuardKind::truth;
  }

  // ---- the required kind

  static std::string what(const Expr& e, GuardKind kind) {
    return in_ticks(print(e)) + " is " + std::string(described(kind));
  }

  void number(const Expr& e, const std::string& by) {
    const GuardKind kind = kind_at(e);
    if (kind == GuardKind::open || kind == GuardKind::number) return;
    say(e, by + " takes numbers, and " + what(e, kind), hint(e, kind, GuardKind::number));
  }

  void condition(const Expr& e, const std::string& by) {
    const GuardKind kind = kind_at(e);
    if (kind == GuardKind::open || kind == GuardKind::truth) return;
    say(e, by + " takes conditions, and " + what(e, kind), "compare it with something");
  }

  bool alike(const Expr& e, const Expr& left, const Expr& right) {
    const GuardKind a = kind_at(left), b = kind_at(right);
    if (a == b || a == GuardKind::open || b == GuardKind::open) return true;
    // A boolean is 0 or 1; a value that may be none has no kind here.
    if ((a == GuardKind::truth && is_number(right)) || (b == GuardKind::truth && is_number(left)))
      return true;
    const bool bound = left.kind == Expr::Kind::path;
    say(e, what(left, a) + ", and " + what(right, b) + ": they are never equal",
        hint(bound ? left : right, bound ? a : b, bound ? b : a));
    return false;
  }

  static std::string hint(const Expr& e, GuardKind is, GuardKind wanted) {
    const std::string text = print(e);
    if (is == GuardKind::dtype)
      return "compare a dtype with dtypes, as in " + in_ticks(text + " == bf16");
    if (is == GuardKind::tensor)
      return "`size(" + text + ", axis)`, `rank(" + text + ")` and `" + text +
             ".dtype` are of a tensor";
    if (is == GuardKind::list)
      return wanted == GuardKind::number
                 ? "`count(" + text + ")` is its length, and " + in_ticks(text + "[0]") +
                       " an element"
                 : "compare a list with a list, as in " + in_ticks(text + " == [1, 2]");
    if (is == GuardKind::number && wanted == GuardKind::none)
      return "only what is written with `?` may be none";
    if (is == GuardKind::truth) return "use it as it is, or with `not`";
    return "compare " + std::string(described(is)) + " with " + std::string(described(is));
  }

  const CheckedRule& checked_;
  Diagnostics& out_;
  std::map<std::string, GuardKind, std::less<>> attributes_;  // by the name that is bound
};

}  // namespace

void check_guard_kinds(const CheckedRule& checked, Diagnostics& out) {
  GuardKinds check(checked, out);
  for (const auto* guards : {&checked.rule->where, &checked.rule->assume})
    for (const Expr& guard : *guards) check.guard(guard);
}

}  // namespace pw
