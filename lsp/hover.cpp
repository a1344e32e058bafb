#include <algorithm>

#include <fmt/format.h>

#include "base/trim.hpp"
#include "graph/dtype.hpp"
#include "lsp/view.hpp"
#include "rewriter/explain/near_miss_codes.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kMostLines = 40;  // of a declaration that is shown whole

std::string code_block(std::string_view code) {
  // A fence that is longer than any in the code.
  std::string fence = "```";
  while (code.find(fence) != std::string_view::npos) fence += '`';
  return fence + "pwr\n" + std::string(code) + "\n" + fence;
}

/// Escapes markup in comments, because their authors may not intend it.
std::string as_text(std::string_view prose) {
  std::string out;
  for (const char c : prose) {
    if (std::string_view("\\<>[]*_#&!|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string_view clipped(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < kMostLines && end != std::string_view::npos; ++lines)
    end = text.find('\n', end + 1);
  return text.substr(0, end);
}

std::string place_of(const SourceText& text, const OutlineItem& item) {
  return fmt::format("*{}:{}*", as_text(text.name),
                     text.lines.place(item.begin, ColumnUnit::utf8).line + 1);
}

/// Returns the declaration with its body, the comment above it, and its location.
std::string of_item(MentionAt declaration) {
  const OutlineItem* item = item_of(declaration);
  if (item == nullptr) return {};
  const SourceText& text = *declaration.text;
  std::string out = code_block(clipped(text.text_of(item->begin, item->end)));
  if (const std::string comment = comment_above(text, *item); !comment.empty())
    out += "\n\n" + as_text(comment);
  return out + "\n\n" + place_of(text, *item);
}

std::string_view described(const Mention& declared) {
  switch (declared.place) {
    case NamePlace::value: return "value";
    case NamePlace::dim: return "dim";
    case NamePlace::sequence: return "sequence of dims";
    case NamePlace::dtype: return "dtype variable";
    case NamePlace::attribute: return "attribute";
    case NamePlace::guard: return "name in a guard";
  }
  return "";
}

/// Returns the declaration of an attribute, such as `eps: float = 1e-6`.
std::string declared_attribute(MentionAt attribute) {
  const std::vector<Token>& tokens = attribute.text->mentions.tokens;
  std::size_t depth = 0;
  std::uint32_t end = attribute->end;
  for (auto t =
           std::partition_point(tokens.begin(), tokens.end() - 1,
                                [&](const Token& token) { return token.begin < attribute->begin; });
       t->kind != Tok::end; ++t) {
    const bool closes =
        t->kind == Tok::rbrace || t->kind == Tok::rbracket || t->kind == Tok::rparen;
    if (depth == 0 && (t->kind == Tok::comma || closes)) break;
    if (t->kind == Tok::lbrace || t->kind == Tok::lbracket || t->kind == Tok::lparen) ++depth;
    if (closes) --depth;
    end = t->end();
  }
  return std::string(attribute.text->text_of(attribute->begin, end));
}

std::string of_name(const DocumentView& view, const DocumentView::Named& named) {
  const MentionAt at = *named.declaration;
  if (at->kind == MentionKind::param) return of_item(at);
  const OutlineItem* item = item_of(at);
  const std::string name(at.text->text_of(at->begin, at->end));
  std::string line = name;
  const bool op_part = item != nullptr && item->kind == Tok::op;
  if (at->place == NamePlace::attribute && op_part) line = declared_attribute(at);
  std::optional<std::string> type = view.type_of(named.mention);
  if (!type) type = view.type_of(at);
  if (type && at->place == NamePlace::value) line += ": " + *type;
  std::string out = code_block(line) + "\n\n" + std::string(described(*at));
  if (item != nullptr && !item->name.empty())
    out += fmt::format(" of {} `{}`", trimmed(at.text->text_of(item->begin, item->name_begin)),
                       item->name);
  return out;
}

/// Describes dtypes and functions of the language.
std::string of_builtin(const Mention& mention) {
  if (dtype_named(mention.name)) {
    const DType dtype = *dtype_named(mention.name);
    return fmt::format("`{}`: element type of {} bytes", mention.name, size_of(dtype));
  }
  constexpr std::pair<std::string_view, std::string_view> kFunctions[] = {
      {"count",
       "`count(x)`: the number of elements of the list `x`; of an op, the number of nodes"},
      {"size", "`size(x, i)`: the dim `i` of `x`"},
      {"rank", "`rank(x)`: the number of dims of `x`"},
      {"min", "`min(a, b)`: the smaller value"},
      {"max", "`max(a, b)`: the larger value"},
      {"replicated", "`replicated(x, group)`: true if `x` is equal on all ranks of the group"},
  };
  if (mention.kind != MentionKind::callee) return {};
  for (const auto& [name, text] : kFunctions)
    if (name == mention.name) return std::string(text);
  return {};
}

/// Describes N08 in `because N08`.
std::optional<HoverText> of_code(const DocumentView& view, std::uint32_t offset) {
  for (const Token& t : view.text->mentions.tokens) {
    if (t.begin > offset) break;
    if (offset > t.end() || t.kind != Tok::word) continue;
    if (const NearMissCode* code = near_miss_code(view.text->text_of(t.begin, t.end())))
      return HoverText{fmt::format("`{}` {}", code->code, as_text(code->meaning)),
                       view.workspace.range(*view.text, t.begin, t.end())};
  }
  return {};
}

// ---- calls

struct OpenCall {
  std::string callee;
  std::size_t operand = 0;
  std::string attribute;  ///< the one at hand
  bool attributes = false;
};

/// Returns the innermost call whose operands or attributes contain the position.
std::optional<OpenCall> call_around(const SourceText& text, std::uint32_t offset) {
  const std::vector<Token>& tokens = text.mentions.tokens;
  auto end = std::partition_point(tokens.begin(), tokens.end() - 1,
                                  [&](const Token& t) { return t.begin < offset; });
  auto i = end - tokens.begin() - 1;
  OpenCall out;
  std::size_t depth = 0;
  const auto kind = [&](std::ptrdiff_t at) {
    return at < 0 ? Tok::end : tokens[static_cast<std::size_t>(at)].kind;
  };
  const auto word = [&](std::ptrdiff_t at) {
    const Token& t = tokens[static_cast<std::size_t>(at)];
    return std::string(text.text_of(t.begin, t.end()));
  };
  bool first = true;
  for (; i >= 0; --i) {
    const Tok t = kind(i);
    if (t == Tok::rparen || t == Tok::rbrace || t == Tok::rbracket) ++depth;
    if (depth == 0 && t == Tok::comma) ++out.operand, first = false;
    if (depth == 0 && first && out.attribute.empty() && is_word(t) &&
        (kind(i - 1) == Tok::lbrace || kind(i - 1) == Tok::comma))
      out.attribute = word(i);
    if (t != Tok::lparen && t != Tok::lbrace && t != Tok::lbracket) continue;
    if (depth > 0) {
      --depth;
      continue;
    }
    if (t == Tok::lbracket) {  // an index or a type inside an operand
      out = {};
      first = true;
      continue;
    }
    std::ptrdiff_t head = i - 1;
    if (t == Tok::lbrace) {
      if (kind(head) != Tok::rparen) return {};
      out.attributes = true;
      for (; head >= 0; --head) {
        if (kind(head) == Tok::rparen) ++depth;
        if (kind(head) == Tok::lparen && --depth == 0) break;
      }
      --head;
    } else {
      out.attribute.clear();
    }
    if (kind(head) == Tok::question) --head;
    if (!is_name(kind(head))) return {};
    out.callee = word(head);
    for (; kind(head - 1) == Tok::dot && is_word(kind(head - 2)); head -= 2)
      out.callee = word(head - 2) + "." + out.callee;
    return out;
  }
  return {};
}

}  // namespace

std::optional<HoverText> hover(const DocumentView& view, std::uint32_t offset) {
  std::string out;
  std::optional<TextRange> range;
  for (const DocumentView::Named& named : view.named_at(offset)) {
    std::string text;
    if (!named.declaration) {
      text = of_builtin(*named.mention);
    } else if ((*named.declaration)->kind == MentionKind::name) {
      text = of_name(view, named);
    } else {
      text = of_item(*named.declaration);
    }
    if (text.empty()) continue;
    out += (out.empty() ? "" : "\n\n---\n\n") + text;
    range = view.range(named.mention);
  }
  if (!range) return of_code(view, offset);
  return HoverText{std::move(out), *range};
}

std::optional<SignatureText> signature(const DocumentView& view, std::uint32_t offset) {
  const auto call = call_around(*view.text, offset);
  if (!call) return {};
  const auto it = view.symbols.callees().find(call->callee);
  if (it == view.symbols.callees().end()) return {};
  const MentionAt callee = it->second;
  const OutlineItem* item = item_of(callee);
  if (item == nullptr) return {};
  SignatureText out;
  out.label = head_of(*callee.text, *item);
  std::replace(out.label.begin(), out.label.end(), '\n', ' ');
  out.documentation = as_text(comment_above(*callee.text, *item));
  const TextLines label(out.label);
  const auto units = [&](std::uint32_t at) {
    return label.place(at - item->begin, ColumnUnit::utf16).column;
  };
  const auto add = [&](MentionAt part) {
    if (part->begin >= item->begin && part->end <= item->begin + out.label.size())
      out.parameters.emplace_back(units(part->begin), units(part->end));
  };
  const std::vector<MentionAt> operands = SymbolTable::operands(callee);
  const std::vector<MentionAt> attributes = SymbolTable::attributes(callee);
  for (MentionAt operand : operands) add(operand);
  for (MentionAt attribute : attributes) add(attribute);
  std::size_t active = std::min(call->operand, operands.empty() ? 0 : operands.size() - 1);
  if (call->attributes) {
    const auto it_attribute = std::find_if(attributes.begin(), attributes.end(),
                                           [&](MentionAt a) { return a->name == call->attribute; });
    active = operands.size() + static_cast<std::size_t>(it_attribute - attributes.begin());
  }
  out.active = static_cast<std::uint32_t>(active);
  return out;
}

}  // namespace pw::cli
