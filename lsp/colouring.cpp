#include <algorithm>

#include "dsl/syntax/lexical.hpp"
#include "graph/dtype.hpp"
#include "lsp/view.hpp"

namespace pw::cli {
namespace {

constexpr std::uint32_t type_number(std::string_view type) {
  for (std::uint32_t i = 0; i < std::size(kTokenTypes); ++i)
    if (kTokenTypes[i] == type) return i;
  return 0;
}
constexpr std::uint32_t kNoType = 0xffffffffu;
constexpr std::uint32_t kDeclaration = 1, kOfLibrary = 2;  // bits in the order of kTokenModifiers

std::uint32_t type_of(const Mention& m) {
  switch (m.kind) {
    case MentionKind::op:
    case MentionKind::pattern:
    case MentionKind::extern_:
    case MentionKind::foreign: return type_number("function");
    case MentionKind::callee: return type_number(dtype_named(m.name) ? "type" : "function");
    case MentionKind::rule:
    case MentionKind::group:
    case MentionKind::pass:
    case MentionKind::pipeline:
    case MentionKind::split:
    case MentionKind::explore:
    case MentionKind::table:
    case MentionKind::test:
    case MentionKind::reference: return type_number("class");
    case MentionKind::row:
    case MentionKind::column: return type_number("enumMember");
    case MentionKind::param: return type_number("macro");
    case MentionKind::attribute:
    case MentionKind::property: return type_number("property");
    case MentionKind::trait: return type_number("decorator");
    case MentionKind::kind: return type_number("type");
    case MentionKind::name: break;
  }
  if (m.place == NamePlace::dtype || dtype_named(m.name)) return type_number("type");
  if (m.place == NamePlace::dim || m.place == NamePlace::sequence) return type_number("parameter");
  return type_number(m.place == NamePlace::attribute && m.declares ? "property" : "variable");
}

std::uint32_t type_of(LexicalClass kind) {
  switch (kind) {
    case LexicalClass::comment: return type_number("comment");
    case LexicalClass::string:
    case LexicalClass::escape: return type_number("string");
    case LexicalClass::number: return type_number("number");
    case LexicalClass::literal:
    case LexicalClass::reserved:
    case LexicalClass::contextual:
    case LexicalClass::call:
    case LexicalClass::name: return type_number("keyword");  // an unresolved name is a plain word
    case LexicalClass::dtype: return type_number("type");
    case LexicalClass::operation: return type_number("operator");
    case LexicalClass::quoted: return type_number("variable");
    case LexicalClass::bracket:
    case LexicalClass::invalid: return kNoType;
  }
  return kNoType;
}

std::uint32_t units_of(std::string_view text, ColumnUnit unit) {
  return TextLines(text).place(text.size(), unit).column;
}

}  // namespace

std::vector<std::uint32_t> semantic_tokens(const DocumentView& view, std::uint32_t begin,
                                           std::uint32_t end) {
  const SourceText& text = *view.text;
  const ColumnUnit unit = view.workspace.unit;
  std::vector<std::uint32_t> out;
  auto mention = text.mentions.all.begin();
  const auto last = text.mentions.all.end();
  TextPlace before;                     // of the previous token
  std::size_t line = 0, column_at = 0;  // current line, and offset of its last column
  std::uint32_t column = 0;
  for (const LexicalSpan& span : lexical_spans(text.text)) {
    while (mention != last && mention->end <= span.begin) ++mention;
    if (span.end <= begin) continue;
    if (span.begin >= end) break;
    std::uint32_t type = type_of(span.kind), modifiers = 0;
    const bool named = mention != last && mention->begin <= span.begin &&
                       span.end <= mention->end && span.kind != LexicalClass::operation;
    if (named) {
      type = type_of(*mention);
      if (mention->declares) modifiers |= kDeclaration;
      if (mention->kind == MentionKind::callee) {
        const auto it = view.symbols.callees().find(mention->name);
        if (it != view.symbols.callees().end() && it->second.text != &text &&
            it->second.text->name.starts_with("<"))
          modifiers |= kOfLibrary;
      }
    }
    if (type == kNoType) continue;
    // Columns continue from the previous token, because a line may be as long as the text.
    for (std::size_t i = column_at; i < span.begin; ++i) {
      const bool carriage = text.text[i] == '\r' && i + 1 < span.begin && text.text[i + 1] == '\n';
      if ((text.text[i] != '\n' && text.text[i] != '\r') || carriage) continue;
      ++line;
      column_at = i + 1;
      column = 0;
    }
    column += units_of(std::string_view(text.text).substr(column_at, span.begin - column_at), unit);
    column_at = span.begin;
    const auto number = static_cast<std::uint32_t>(line);
    const std::uint32_t length = units_of(text.text_of(span.begin, span.end), unit);
    out.insert(out.end(),
               {number - before.line, number == before.line ? column - before.column : column,
                length, type, modifiers});
    before = {number, column};
  }
  return out;
}

std::vector<TypeHint> type_hints(const DocumentView& view, std::uint32_t begin, std::uint32_t end) {
  std::vector<TypeHint> out;
  const std::vector<Mention>& all = view.text->mentions.all;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const Mention& m = all[i];
    if (m.kind != MentionKind::name || !m.declares || m.end < begin || m.begin > end) continue;
    const std::string_view rest = std::string_view(view.text->text).substr(m.end);
    const std::size_t next = rest.find_first_not_of(" \t");
    if (next != std::string_view::npos && (rest[next] == ':' || rest[next] == '.')) continue;
    if (const auto type = view.type_of({view.text.get(), i}))
      out.push_back({view.text->lines.place(m.end, view.workspace.unit), ": " + *type});
  }
  return out;
}

}  // namespace pw::cli
