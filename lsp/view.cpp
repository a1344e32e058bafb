#include "lsp/view.hpp"

#include <algorithm>

#include "base/trim.hpp"
#include "lsp/checks.hpp"

namespace pw::cli {
namespace {

std::vector<const SourceText*> pointers(const std::vector<SourceTextPtr>& texts) {
  std::vector<const SourceText*> out;
  for (const SourceTextPtr& text : texts) out.push_back(text.get());
  return out;
}

}  // namespace

DocumentView::DocumentView(const Workspace& of, SourceTextPtr document, const TypesByName& known)
    : workspace(of),
      text(std::move(document)),
      texts(of.loaded_with(text)),
      symbols(pointers(texts)),
      types(known) {}

std::vector<DocumentView::Named> DocumentView::named_at(std::uint32_t offset) const {
  std::vector<Named> out;
  for (const std::uint32_t index : text->at(offset)) {
    const MentionAt mention{text.get(), index};
    out.push_back({mention, symbols.declaration(mention)});
  }
  return out;
}

std::optional<std::string> DocumentView::type_of(MentionAt name) const {
  if (name.text != text.get() || name->kind != MentionKind::name) return {};
  const auto it = types.find(type_key(*text, *name));
  return it == types.end() ? std::nullopt : std::optional(it->second);
}

const OutlineItem* item_of(MentionAt declaration) {
  const std::int32_t number = declaration.text->item_at(declaration->begin);
  return number < 0 ? nullptr : &declaration.text->mentions.items[static_cast<std::size_t>(number)];
}

std::string comment_above(const SourceText& text, const OutlineItem& item) {
  std::size_t line = text.lines.place(item.begin, ColumnUnit::utf8).line;
  std::vector<std::string_view> lines;
  for (; line > 0; --line) {
    const std::string_view above = trimmed(text.lines.line(line - 1));
    if (!above.starts_with("//")) break;
    lines.push_back(trimmed(above.substr(2)));
  }
  std::string out;
  for (auto it = lines.rbegin(); it != lines.rend(); ++it)
    out += (out.empty() ? "" : "\n") + std::string(*it);
  return out;
}

std::string_view head_of(const SourceText& text, const OutlineItem& item) {
  const std::vector<Token>& tokens = text.mentions.tokens;
  std::size_t depth = 0;
  std::uint32_t end = item.end;
  for (auto t = std::partition_point(tokens.begin(), tokens.end() - 1,
                                     [&](const Token& token) { return token.begin < item.begin; });
       t->kind != Tok::end && t->begin < item.end; ++t) {
    // Includes the attributes of an op after its operands, but no body.
    const bool attributes = item.kind == Tok::op && t > tokens.begin() &&
                            t[-1].kind == Tok::rparen && is_word(t[1].kind) &&
                            t[2].kind == Tok::colon;
    if (t->kind == Tok::lbrace && depth == 0 && !attributes) {
      end = t->begin;
      break;
    }
    if (t->kind == Tok::lparen || t->kind == Tok::lbrace || t->kind == Tok::lbracket) ++depth;
    if ((t->kind == Tok::rparen || t->kind == Tok::rbrace || t->kind == Tok::rbracket) && depth > 0)
      --depth;
  }
  return trimmed(text.text_of(item.begin, end));
}

int symbol_kind(Tok item) {
  constexpr std::pair<Tok, int> kKinds[] = {
      {Tok::op, 12},    {Tok::foreign, 12}, {Tok::pattern, 12},  // function
      {Tok::rule, 5},                                            // class
      {Tok::group, 3},  {Tok::pipeline, 2},                      // namespace, module
      {Tok::pass, 6},   {Tok::extern_, 11},                      // method, interface
      {Tok::table, 10}, {Tok::param, 14},                        // enum, constant
      {Tok::test, 24},                                           // event
  };
  for (const auto& [kind, number] : kKinds)
    if (kind == item) return number;
  return 19;  // object: split, capture, explore, graph
}

}  // namespace pw::cli
