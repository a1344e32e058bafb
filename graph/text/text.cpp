#include "graph/text/text.hpp"

#include <algorithm>
#include <array>

#include "base/characters.hpp"
#include "base/parse_number.hpp"

namespace pw {
namespace {

// Words that the grammar reserves, and the two words that are numbers.
constexpr std::array<std::string_view, 15> kReserved = {
    "where", "assume", "given", "unless", "many", "and", "or", "not",
    "in",    "out",    "true",  "false",  "none", "inf", "nan"};

bool is_word(std::string_view text) {
  if (text == "inf" || text == "nan") return false;  // read as numbers
  return is_name(text);
}
bool is_plain_name(std::string_view text) {
  return is_word(text) && std::find(kReserved.begin(), kReserved.end(), text) == kReserved.end();
}
std::string backquoted(std::string_view text) {
  std::string out = quote(text);
  out.front() = out.back() = '`';
  for (std::size_t i = 1; i + 1 < out.size(); ++i) {
    if (out[i] == '\\' && out[i + 1] == '"')
      out.erase(i, 1);
    else if (out[i] == '\\')
      ++i;
    else if (out[i] == '`')
      out.insert(i++, 1, '\\');
  }
  return out;
}

template <class List, class Print>
std::string joined(const List& list, Print&& print_one) {
  std::string out;
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ", ";
    first = false;
    out += print_one(item);
  }
  return out;
}

// Levels of binding, as the grammar nests them.
constexpr int kOr = 1, kAnd = 2, kNot = 3, kCompare = 4, kSum = 5, kTerm = 6, kUnary = 7,
              kSpread = 8, kIndex = 9, kPrimary = 10;

int level_of(std::string_view op) {
  if (op == "or") return kOr;
  if (op == "and") return kAnd;
  if (op == "+" || op == "-") return kSum;
  return op == "*" || op == "/" || op == "%" || op == "//" ? kTerm : kCompare;
}
int level_of(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::binary: return level_of(e.text);
    case Expr::Kind::in_set:
    case Expr::Kind::in_range: return kCompare;
    case Expr::Kind::not_: return kNot;
    case Expr::Kind::negate: return kUnary;
    case Expr::Kind::integer: return e.integer < 0 ? kUnary : kPrimary;
    case Expr::Kind::real: return print_real(e.real)[0] == '-' ? kUnary : kPrimary;
    case Expr::Kind::spread: return kSpread;
    case Expr::Kind::index: return kIndex;
    case Expr::Kind::string:
    case Expr::Kind::boolean:
    case Expr::Kind::none:
    case Expr::Kind::path:
    case Expr::Kind::list:
    case Expr::Kind::call:
    case Expr::Kind::star:
    case Expr::Kind::fuse: break;
  }
  return kPrimary;
}

/// Printer of trees; with sources, real numbers keep their original spelling.
class Printer {
 public:
  explicit Printer(const SourceMap* sources = nullptr) : sources_(sources) {}

  [[nodiscard]] std::string at_level(const Expr& e, int least) const {
    return level_of(e) < least ? "(" + bare(e) + ")" : bare(e);
  }
  [[nodiscard]] std::string expression(const Expr& e) const { return at_level(e, kOr); }
  [[nodiscard]] std::string type(const TypeExpr& type) const {
    if (type.dtype.empty() && type.any_shape) return "?";
    std::string out = type.dtype.empty() ? "" : expression(type.dtype[0]);
    if (!type.any_shape) out += "[" + arguments(type.dims) + "]";
    return out;
  }
  [[nodiscard]] std::string statement(const Statement& s) const {
    if (s.binders.empty()) return expression(s.value);
    return (s.many ? "many " : "") + joined(s.binders, [&](const Binder& b) { return binder(b); }) +
           " = " + expression(s.value);
  }

 private:
  [[nodiscard]] std::string arguments(const std::vector<Expr>& list) const {
    return joined(list, [&](const Expr& e) {
      return e.type.empty() ? expression(e) : typed(e) + ": " + type(e.type[0]);
    });
  }
  /// Prints an expression with its type. After an operation without parentheses, the type would
  /// apply to its last operand.
  [[nodiscard]] std::string typed(const Expr& e) const {
    const bool number = e.kind == Expr::Kind::integer || e.kind == Expr::Kind::real;
    return number ? bare(e) : at_level(e, kSpread);
  }
  [[nodiscard]] std::string binder(const Binder& b) const {
    return print_name(b.name) + (b.spread ? "..." : "") +
           (b.type.empty() ? "" : ": " + type(b.type[0]));
  }

  [[nodiscard]] std::string settings(const Expr& e) const {
    if (!e.braces && e.attributes.empty() && !e.open) return "";
    std::string out = joined(e.attributes, [&](const AttributeArg& a) {
      const std::string name = print_word(a.name);
      return a.value.empty() ? name : name + " = " + expression(a.value[0]);
    });
    if (e.open) out += out.empty() ? ".." : ", ..";
    return "{" + out + "}";
  }

  [[nodiscard]] std::string binary(const Expr& e) const {
    const int level = level_of(e.text);
    const int left = level == kCompare ? kSum : level;
    return at_level(e.args.at(0), left) + " " + e.text + " " + at_level(e.args.at(1), level + 1);
  }
  [[nodiscard]] std::string membership(const Expr& e) const {
    const std::string left = at_level(e.args.at(0), kSum) + " in ";
    if (e.kind == Expr::Kind::in_set)
      return left + "{" + arguments({e.args.begin() + 1, e.args.end()}) + "}";
    return left + at_level(e.args.at(1), kSum) +
           (e.args.size() > 2 ? ".." + at_level(e.args[2], kSum) : "");
  }

  [[nodiscard]] std::string real(const Expr& e) const {
    const std::string_view written =
        sources_ && e.span.valid() ? sources_->text(e.span) : std::string_view();
    const bool faithful = parse_number<double>(written) == e.real && is_real(written);
    return faithful ? std::string(written) : print_real(e.real);
  }
  static bool is_real(std::string_view text) {
    return text.find_first_not_of("-+.eE0123456789") == std::string_view::npos &&
           text.find_first_of(".eE") != std::string_view::npos;
  }

  [[nodiscard]] std::string bare(const Expr& e) const {
    switch (e.kind) {
      case Expr::Kind::integer: return std::to_string(e.integer);
      case Expr::Kind::real: return real(e);
      case Expr::Kind::string: return quote(e.text);
      case Expr::Kind::boolean: return e.integer != 0 ? "true" : "false";
      case Expr::Kind::none: return "none";
      case Expr::Kind::path: return print_path(e.text) + (e.optional ? "?" : "");
      case Expr::Kind::list: return "[" + arguments(e.args) + "]";
      case Expr::Kind::call:
        return print_path(e.text) + (e.optional ? "?(" : "(") + arguments(e.args) + ")" +
               settings(e);
      case Expr::Kind::negate: return "-" + at_level(e.args.at(0), kUnary);
      case Expr::Kind::not_: return "not " + at_level(e.args.at(0), kNot);
      case Expr::Kind::binary: return binary(e);
      case Expr::Kind::in_set:
      case Expr::Kind::in_range: return membership(e);
      case Expr::Kind::index:
        return at_level(e.args.at(0), kIndex) + "[" + expression(e.args.at(1)) + "]";
      case Expr::Kind::spread: return at_level(e.args.at(0), kIndex) + "...";
      case Expr::Kind::star: return "*" + (e.text.empty() ? "" : print_name(e.text));
      case Expr::Kind::fuse: return "fuse";
    }
    return "";
  }

  const SourceMap* sources_;
};

// ---- op declarations

std::string print_operand(const OperandDecl& o) {
  std::string out = o.mut ? "mut " : o.out ? "out " : "";
  out += print_name(o.name) + (o.variadic ? "..." : "");
  if (o.type) out += ": " + print(*o.type);
  return out + (o.optional ? "?" : "");
}
std::string print_result(const ResultDecl& r, const Op& op) {
  std::string out = print_name(r.name);
  if (r.name.empty()) out.clear();
  if (r.variadic) out += "...";
  if (r.type) out += (out.empty() ? "" : ": ") + print(*r.type);
  if (r.from) out += " from " + print_name(op.operands[static_cast<std::size_t>(*r.from)].name);
  return out;
}
std::string print_traits(const Traits& t) {
  std::string out;
  const auto add = [&](bool on, const char* name) { out += on ? std::string(" ") + name : ""; };
  add(t.commutative, "commutative");
  add(t.associative, "associative");
  add(t.view, "view");
  add(t.collective, "collective");
  add(t.effect, "effect");
  add(t.splitting, "splitting");
  add(t.rowwise, "rowwise");
  add(t.pointwise, "pointwise");
  if (t.capturable != Capturable::never) out += " " + std::string(name(t.capturable));
  return out;
}

}  // namespace

std::string print_word(std::string_view name) {
  return is_word(name) ? std::string(name) : backquoted(name);
}
std::string print_name(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : backquoted(name);
}

std::string print_path(std::string_view path) {
  std::size_t begin = 0;
  for (std::size_t dot; (dot = path.find('.', begin)) != std::string_view::npos; begin = dot + 1) {
    const std::string_view part = path.substr(begin, dot - begin);
    if (!(begin == 0 ? is_plain_name(part) || part == "out" : is_word(part)))
      return backquoted(path);
  }
  if (begin == 0 && path == "out") return "out";
  const bool plain = begin == 0 ? is_plain_name(path) : is_word(path.substr(begin));
  return plain ? std::string(path) : backquoted(path);
}

std::string print(const Expr& expr, const SourceMap* sources) {
  return Printer(sources).expression(expr);
}
std::string print(const TypeExpr& type, const SourceMap* sources) {
  return Printer(sources).type(type);
}
std::string print(const Statement& statement, const SourceMap* sources) {
  return Printer(sources).statement(statement);
}

std::string print_signature(const Op& op, const Attributes& attributes) {
  const std::string head = "op " + print_path(op.name);
  if (op.imported) return head + "(...)" + print_traits(op.traits);
  std::string out = head + "(" + joined(op.operands, print_operand) + ")";
  if (!op.attributes.empty()) {
    out +=
        " {" +
        joined(op.attributes,
               [&](const AttributeDecl& a) {
                 const std::string text = print_word(a.name) + ": " + std::string(name(a.kind)) +
                                          (a.nullable ? "?" : "");
                 return a.default_value ? text + " = " + attributes.print(*a.default_value) : text;
               }) +
        "}";
  }
  const bool plain = op.results.size() == 1 && !op.results[0].from;
  const std::string results =
      joined(op.results, [&](const ResultDecl& r) { return print_result(r, op); });
  if (!op.results.empty()) out += " -> " + (plain ? results : "(" + results + ")");
  return out + print_traits(op.traits);
}

std::string print_declaration(const Op& op, const Attributes& attributes,
                              std::string_view separator) {
  std::string out = print_signature(op, attributes);
  if (!op.has_body()) return out;
  out += " {";
  for (const Statement& s : op.body) out += std::string(separator) + print(s);
  const bool lines = separator.starts_with('\n');
  return out + (lines ? std::string(separator.substr(0, separator.size() - 2)) : " ") + "}";
}

std::string print_replicated(const std::vector<std::string>& groups) {
  std::string out = groups.empty() ? "" : " replicated";
  for (const std::string& group : groups) out += " " + quote(group);
  return out;
}

}  // namespace pw
