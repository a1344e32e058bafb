#include "dsl/syntax/format.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

/// Prints a path if it reads back as one, else in quotes.
std::string target(const FormatContext& context, const ast::ForeignItem& f) {
  const std::string_view written =
      context.text.substr(f.name_span.begin, f.name_span.end - f.name_span.begin);
  return written.starts_with("\"") ? quote(f.target) : print_path(f.target);
}

std::string parameter(const FormatContext& context, const ast::ForeignItem::Parameter& p) {
  std::string out = p.mut ? "mut " : p.out ? "out " : "";
  for (std::size_t i = 0; i < p.names.size(); ++i)
    out += i == 0 ? print_name(p.names[i].first) : "|" + print_word(p.names[i].first);
  if (p.type) out += ": " + print(*p.type, &context.sources);
  if (p.value) out += " = " + print(*p.value, &context.sources);
  return out;
}

}  // namespace

Layout format_item(const FormatContext& context, const ast::ForeignItem& f) {
  std::vector<std::string> parameters, guards;
  for (const auto& p : f.parameters) parameters.push_back(parameter(context, p));
  for (const Expr& guard : f.where) guards.push_back(print(guard, &context.sources));
  Layout out{f.span, "foreign " + target(context, f) + "(" + comma_separated(parameters) + ")"};
  const std::string where = guards.empty() ? "" : kBreak + ("where " + comma_separated(guards));
  if (!f.block) {
    out.text += kBreak + ("= " + print(f.body.front().value, &context.sources)) + where;
    return out;
  }
  if (!f.returns.empty()) out.text += " -> " + comma_separated(f.returns);
  out.text += where + " {";
  out.block = true;
  out.parts = statement_lines(context, f.body);
  return out;
}

}  // namespace pw
