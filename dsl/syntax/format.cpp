#include "dsl/syntax/format.hpp"

#include <algorithm>

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

std::string setting(const FormatContext& context, const AttributeArg& a) {
  return print_word(a.name) + (a.value.empty() ? "" : " = " + print(a.value[0], &context.sources));
}

Layout format_item(const FormatContext&, const ast::Use& use) {
  return {use.span, "use " + quote(use.path)};
}

Layout format_item(const FormatContext& context, const ast::Param& p) {
  std::string text = "param " + print_name(p.name) + ": " + p.kind;
  if (p.value) text += " = " + print(*p.value, &context.sources);
  return {p.span, text};
}

Layout format_item(const FormatContext&, const ast::Extern& e) {
  std::vector<std::string> parameters;
  for (const auto& [name, kind] : e.parameters)
    parameters.push_back(name.empty() ? kind : print_word(name) + ": " + kind);
  std::string text = (e.predicate ? "extern pred " : "extern fn ") + print_name(e.name) + "(" +
                     comma_separated(parameters) + ")";
  if (!e.result.empty()) text += " -> " + e.result;
  return {e.span, text};
}

/// Aligns the cells of each row in columns, and joins them into its first.
void align(std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size() + (i > 0 && i + 1 < row.size() ? 1 : 0));
  }
  for (auto& row : rows) {
    std::string line = row[0];
    for (std::size_t i = 1; i < row.size(); ++i) {
      line.append(widths[i - 1] - row[i - 1].size() - (i > 1 ? 1 : 0) + 1, ' ');
      line += row[i] + (i + 1 < row.size() ? "," : "");
    }
    row[0] = std::move(line);
  }
}

Layout format_item(const FormatContext& context, const ast::Table& t) {
  if (!t.factors.empty()) {
    Layout out{t.span, "table " + print_name(t.name) + " ="};
    for (const auto& [name, span] : t.factors)
      out.text += (out.text.back() == '=' ? " " : " * ") + print_name(name);
    return out;
  }
  std::vector<std::string> columns;
  for (const std::string& c : t.columns) columns.push_back(print_word(c));
  Layout out{t.span, "table " + print_name(t.name) + " (" + comma_separated(columns) + ") {"};
  out.block = true;
  std::vector<std::vector<std::string>> rows;
  for (const ast::Table::Row& row : t.rows) {
    rows.push_back({print_word(row.name) + ":"});
    for (const Expr& e : row.cells) rows.back().push_back(print(e, &context.sources));
  }
  align(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) out.parts.push_back({t.rows[i].span, rows[i][0]});
  return out;
}

// ---- bodies: clauses and statements, in the order of the text

Layout format_clause(const FormatContext& context, const ast::Clause& c) {
  const bool guards = c.kind == ast::Clause::Kind::where || c.kind == ast::Clause::Kind::assume;
  if (!guards) {
    Layout out{c.span, c.kind == ast::Clause::Kind::given ? "given {" : "unless {"};
    out.block = true;
    out.parts = statement_lines(context, c.statements);
    return out;
  }
  std::vector<std::string> parts;
  for (const Expr& e : c.guards) parts.push_back(print(e, &context.sources));
  return {c.span,
          (c.kind == ast::Clause::Kind::where ? "where " : "assume ") + comma_separated(parts)};
}

std::vector<Layout> format_body(const FormatContext& context, const ast::Body& body) {
  std::vector<Layout> out = statement_lines(context, body.statements);
  for (const ast::Clause& c : body.clauses) out.push_back(format_clause(context, c));
  for (const ast::OpVariable& v : body.ops)
    out.push_back({v.span, "op " + print_name(v.name) + ": " + print_name(v.trait)});
  std::stable_sort(out.begin(), out.end(),
                   [](const Layout& a, const Layout& b) { return a.span.begin < b.span.begin; });
  return out;
}

/// Returns the place of the arrow, which the tree does not store: the last one before the right
/// side.
Span arrow_before(const FormatContext& context, Span right, std::string_view arrow) {
  const std::size_t at = context.text.rfind(arrow, right.begin);
  if (at == std::string_view::npos) return {};
  return {right.source, static_cast<std::uint32_t>(at),
          static_cast<std::uint32_t>(at + arrow.size())};
}

Layout format_item(const FormatContext& context, const ast::Rule& r) {
  Layout out{r.span, "rule " + print_name(r.name)};
  if (!r.table.empty()) out.text += " for " + print_name(r.variant) + " in " + print_path(r.table);
  if (!r.over.empty()) out.text += " over " + comma_separated(r.over);
  out.text += " {";
  out.block = true;
  out.parts = format_body(context, r.body);
  const std::string arrow = r.equivalence ? "<=>" : "=>";
  const Span place =
      r.replacement.empty() ? Span() : arrow_before(context, r.replacement[0].span, arrow);
  out.parts.push_back({place, arrow});
  for (Layout& line : statement_lines(context, r.replacement)) out.parts.push_back(std::move(line));
  return out;
}

Layout format_item(const FormatContext& context, const ast::Group& g) {
  Layout out{g.span, "group " + print_name(g.name) + " {"};
  out.block = true;
  for (const ast::Rule& r : g.rules) out.parts.push_back(format_item(context, r));
  return out;
}

Layout format_item(const FormatContext& context, const ast::Pattern& p) {
  const auto names = [&](const std::vector<std::string>& list,
                         const std::vector<std::vector<TypeExpr>>& types) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
      out.push_back(print_name(list[i]));
      for (const TypeExpr& type : types[i]) out.back() += ": " + print(type, &context.sources);
    }
    return comma_separated(out);
  };
  Layout out{p.span, std::string("pattern ") + (p.recursive ? "rec " : "") + print_name(p.name) +
                         "(" + names(p.operands, p.operand_types) + ")"};
  std::vector<std::string> settings;
  for (const AttributeArg& a : p.attributes) settings.push_back(setting(context, a));
  if (!settings.empty()) out.text += "{" + comma_separated(settings) + "}";
  out.text += " -> " + names(p.results, p.result_types) + " {";
  out.block = true;
  for (std::size_t i = 0; i < p.alternatives.size(); ++i) {
    std::vector<Layout> lines = format_body(context, p.alternatives[i]);
    for (std::size_t j = 0; j < lines.size() && p.alternatives.size() > 1; ++j)
      lines[j].prefix = i > 0 && j == 0 ? "| " : "  ";
    for (Layout& line : lines) out.parts.push_back(std::move(line));
  }
  return out;
}

// ---- ops

std::string operand(const FormatContext& context, const OperandDecl& o) {
  std::string out = o.mut ? "mut " : o.out ? "out " : "";
  out += print_name(o.name) + (o.variadic ? "..." : "");
  if (o.type) out += ": " + print(*o.type, &context.sources);
  return out + (o.optional ? "?" : "");
}
std::string attribute(const FormatContext& context, const ast::AttributeDecl& a) {
  const std::string out = print_word(a.name) + ": " + a.kind + (a.nullable ? "?" : "");
  return a.value ? out + " = " + print(*a.value, &context.sources) : out;
}
std::string result(const FormatContext& context, const ResultDecl& r, const std::string& from) {
  std::string out = r.name.empty() ? "" : print_name(r.name) + (r.variadic ? "..." : "");
  if (r.type) out += (out.empty() ? "" : ": ") + print(*r.type, &context.sources);
  return from.empty() ? out : out + " from " + print_name(from);
}

template <class T, class Print>
std::string listed(const std::vector<T>& list, Print&& print_one) {
  std::vector<std::string> out;
  for (const T& item : list) out.push_back(print_one(item));
  return comma_separated(out);
}

std::string results(const FormatContext& context, const ast::OpItem& op) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < op.results.size(); ++i)
    out.push_back(result(context, op.results[i], op.result_from[i]));
  const bool plain = op.results.size() == 1 && op.result_from[0].empty();
  return plain ? out[0] : "(" + comma_separated(out) + ")";
}

}  // namespace

Layout format_item(const FormatContext& context, const ast::OpItem& op) {
  const auto operands = [&](const OperandDecl& o) { return operand(context, o); };
  const auto attributes = [&](const ast::AttributeDecl& a) { return attribute(context, a); };
  Layout out{op.span, "op " + print_path(op.name) + "(" +
                          (op.imported ? "..." : listed(op.operands, operands)) + ")"};
  if (!op.attributes.empty()) out.text += kBreak + ("{" + listed(op.attributes, attributes) + "}");
  if (!op.results.empty()) out.text += kBreak + ("-> " + results(context, op));
  for (const auto& [trait, span] : op.traits) out.text += " " + trait;
  if (op.body.empty()) return out;
  out.text += " {";
  out.block = true;
  out.parts = statement_lines(context, op.body);
  return out;
}

std::vector<Layout> statement_lines(const FormatContext& context,
                                    const std::vector<Statement>& statements) {
  std::vector<Layout> out;
  for (const Statement& s : statements) out.push_back({s.span, print(s, &context.sources)});
  return out;
}

std::string comma_separated(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}
std::string comma_separated(const std::vector<std::pair<std::string, Span>>& parts) {
  std::string out;
  for (const auto& [part, span] : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string format_file(const ast::File& file, const SourceMap& sources) {
  const FormatContext context{sources, sources.text(file.source)};
  std::vector<Layout> items;
  for (const ast::Item& item : file.items)
    items.push_back(std::visit([&](const auto& i) { return format_item(context, i); }, item));
  return lay_out(items, file.comments, context.text);
}

}  // namespace pw
