#include "dsl/check/call.hpp"

#include <algorithm>
#include <set>

#include "base/counted.hpp"
#include "dsl/check/torch_spelling.hpp"
#include "dsl/syntax/suggest.hpp"
#include "graph/dtype_names.hpp"

namespace pw {
namespace {

Diagnostic with_declaration(Diagnostic d, const Op& op) {
  if (op.span.valid()) d.secondary.push_back({op.span, "declared here"});
  return d;
}

void check_operand_count(const Op& op, const Expr& call, Diagnostics& out) {
  const bool spread = std::any_of(call.args.begin(), call.args.end(),
                                  [](const Expr& arg) { return arg.kind == Expr::Kind::spread; });
  const bool variadic = !op.operands.empty() && op.operands.back().variadic;
  if (spread) return;
  const std::size_t given = call.args.size();
  const std::size_t most = op.operands.size();
  const std::size_t least = variadic ? most - 1 : most;
  if (given >= least && (variadic || given <= most)) return;
  std::string message = in_ticks(op.name) + " takes " + (variadic ? "at least " : "") +
                        counted(variadic ? least : most, "operand") + ", here are " +
                        std::to_string(given);
  std::string help = given < least && !op.operands[given].variadic && op.operands[given].optional
                         ? "write `none` for an operand that is absent"
                     : given > most && !op.attributes.empty()
                         ? "attributes are written in braces after the operands, as in `" +
                               op.name + "(…){" + op.attributes.front().name + " = …}`"
                         : "";
  out.push_back(
      with_declaration(error_at(call.span, "PW0230", std::move(message), std::move(help)), op));
}

void check_none_operands(const Op& op, const Expr& call, Diagnostics& out) {
  for (std::size_t i = 0; i < call.args.size() && i < op.operands.size(); ++i) {
    const Expr& arg = call.args[i];
    const bool absent =
        arg.kind == Expr::Kind::none || (arg.kind == Expr::Kind::path && arg.optional);
    if (absent && !op.operands[i].optional)
      out.push_back(with_declaration(error_at(arg.span, "PW0231",
                                              "operand " + in_ticks(op.operands[i].name) + " of " +
                                                  in_ticks(op.name) + " is not optional",
                                              arg.kind == Expr::Kind::none ? "" : "remove the `?`"),
                                     op));
  }
}

bool may_be(const Expr& value, AttributeKind kind, Side side) {
  using K = Expr::Kind;
  const bool list = kind == AttributeKind::ints || kind == AttributeKind::dims ||
                    kind == AttributeKind::floats || kind == AttributeKind::strs;
  const bool number =
      kind == AttributeKind::int_ || kind == AttributeKind::axis || kind == AttributeKind::float_;
  switch (value.kind) {
    case K::integer: return number;
    case K::real: return kind == AttributeKind::float_;
    case K::string: return kind == AttributeKind::str;
    case K::boolean: return kind == AttributeKind::bool_;
    case K::list: return list;
    case K::negate: return number;
    case K::not_:
    case K::in_set:
    case K::in_range: return kind == AttributeKind::bool_;
    case K::path:  // on the right an unbound name is reported as such
      if (kind != AttributeKind::dtype) return !dtype_named(value.text);
      return side == Side::build || !looks_like_dtype(value.text);
    case K::none:
    case K::call:
    case K::binary:
    case K::index:
    case K::spread:
    case K::star:
    case K::fuse: return true;
  }
  return true;
}

void check_attribute(const Op& op, const AttributeArg& argument, Side side, Diagnostics& out) {
  const AttributeDecl* decl = op.attribute(argument.name);
  if (decl == nullptr) {
    std::vector<std::string> names;
    for (const AttributeDecl& a : op.attributes) names.push_back(a.name);
    out.push_back(with_declaration(
        error_at(argument.span, "PW0232",
                 in_ticks(op.name) + " has no attribute " + in_ticks(argument.name),
                 did_you_mean(argument.name, names, names.empty() ? "it has no attributes" : "")),
        op));
    return;
  }
  if (argument.value.empty()) return;
  const Expr& value = argument.value.front();
  if (value.kind == Expr::Kind::none && !decl->nullable) {
    out.push_back(with_declaration(
        error_at(value.span, "PW0233", "attribute " + in_ticks(argument.name) + " is not optional"),
        op));
  } else if (!may_be(value, decl->kind, side)) {
    out.push_back(
        with_declaration(error_at(value.span, "PW0233",
                                  "attribute " + in_ticks(argument.name) + " is of kind " +
                                      in_ticks(name(decl->kind)) + ", and this is not",
                                  decl->kind == AttributeKind::dtype ? dtype_hint(value.text) : ""),
                         op));
  }
}

Diagnostic missing_attributes(const Op& op, const std::vector<std::string>& names, Span span,
                              Side side) {
  const bool one = names.size() == 1, pattern = side == Side::pattern;
  std::string ticked, written;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ticked += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + in_ticks(names[i]);
    written += (i == 0 ? "" : ", ") + names[i] + (pattern ? "" : " = …");
  }
  return with_declaration(
      error_at(span, "PW0235",
               (one ? "attribute " : "attributes ") + ticked + " of " + in_ticks(op.name) +
                   (one ? " has no default, so it must be written"
                        : " have no default, so they must be written") +
                   (pattern ? " or opened" : ""),
               "write `{" + written + "}`" +
                   (pattern ? " to capture " + std::string(one ? "it" : "them") +
                                  ", or `{..}` to match any"
                            : "")),
      op);
}

void check_attributes(const Op& op, const Expr& call, Side side, Diagnostics& out) {
  std::set<std::string> written;
  for (const AttributeArg& argument : call.attributes) {
    check_attribute(op, argument, side, out);
    if (!written.insert(argument.name).second)
      out.push_back(error_at(argument.span, "PW0234",
                             "attribute " + in_ticks(argument.name) + " is written twice"));
  }
  if (call.open) return;
  std::vector<std::string> missing;
  for (const AttributeDecl& decl : op.attributes)
    if (!decl.default_value && !decl.nullable && !written.contains(decl.name))
      missing.push_back(decl.name);
  if (!missing.empty()) out.push_back(missing_attributes(op, missing, call.span, side));
}

}  // namespace

void check_call(const Context&, const Op& op, const Expr& call, Side side, Diagnostics& out) {
  if (op.imported) return;
  check_operand_count(op, call, out);
  check_none_operands(op, call, out);
  check_attributes(op, call, side, out);
}

void check_result_count(const Op& op, std::size_t count, bool spread, Span span, Diagnostics& out) {
  if (op.imported || spread) return;
  const bool variadic = !op.results.empty() && op.results.back().variadic;
  const std::size_t fixed = variadic ? op.results.size() - 1 : op.results.size();
  if (count == fixed || (variadic && count >= fixed)) return;
  std::string help = count < fixed && count > 0
                         ? "bind the others too; use `_` for those that you do not need"
                     : count == 0 ? "name the results, as in `y = " + op.name + "(…)`"
                                  : "";
  out.push_back(with_declaration(
      error_at(span, "PW0236",
               in_ticks(op.name) + " has " + counted(fixed, "result") + ", but " +
                   counted(count, "name") + (count == 1 ? " is given" : " are given"),
               std::move(help)),
      op));
}

Diagnostic unknown_op(const Context& context, std::string_view name, Span span) {
  std::string help = torch_spelling(context, name);
  if (help.empty())
    help = did_you_mean_name(name, context.ops.names(),
                             "declare it: `op " + std::string(name) + "(…) -> …`");
  return error_at(span, "PW0220", "unknown op " + in_ticks(name), std::move(help));
}

}  // namespace pw
