#include "dsl/syntax/expected_words.hpp"

#include <algorithm>

#include "dsl/syntax/grammar.hpp"

namespace pw {
namespace {

constexpr Tok kItemTokens[] = {Tok::use,     Tok::param,   Tok::extern_,  Tok::op,
                               Tok::foreign, Tok::table,   Tok::pattern,  Tok::rule,
                               Tok::group,   Tok::pass,    Tok::pipeline, Tok::split,
                               Tok::capture, Tok::explore, Tok::test,     Tok::graph};

std::string spelt(Tok t) {
  const std::string described = describe(t);  // in backquotes
  return described.substr(1, described.size() - 2);
}

bool is_language_word(Tok t) { return is_word(t) && t != Tok::quoted && t != Tok::word; }

/// Returns the last item that begins before the place: an unclosed item continues to the next one.
const OutlineItem* item_before(const SourceText& text, std::uint32_t offset) {
  const OutlineItem* out = nullptr;
  for (const OutlineItem& item : text.mentions.items) {
    if (item.begin >= offset) break;
    out = &item;
  }
  return out;
}

void add_items(std::vector<std::string>& out) {
  for (Tok t : kItemTokens) out.push_back(spelt(t));
}

void add_expected(const Builder& builder, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < builder.expected().size(); ++i) {
    const Tok t = static_cast<Tok>(i);
    if (builder.expected().test(i) && is_language_word(t)) out.push_back(spelt(t));
  }
}

}  // namespace

std::vector<std::string> expected_words(const SourceText& text, std::uint32_t offset) {
  const std::vector<Token>& tokens = text.mentions.tokens;
  std::vector<std::string> out;
  const OutlineItem* item = item_before(text, offset);
  const auto last_token = tokens.end() - 1;
  const auto end = std::partition_point(tokens.begin(), last_token, [&](const Token& t) {
    return t.end() < offset || (t.end() == offset && !is_word(t.kind));
  });
  const auto begin = std::partition_point(tokens.begin(), last_token, [&](const Token& t) {
    return item != nullptr && t.begin < item->begin;
  });
  if (item == nullptr || begin >= end) {
    add_items(out);
    return out;
  }
  if (item->kind == Tok::group) {
    out.push_back(spelt(Tok::rule));
    return out;
  }
  std::vector<Token> before(begin, end);
  before.push_back({offset, 0, Tok::end, true});
  const Token* stop = &before.back();
  Builder builder(text.text, SourceId(), before.data());
  const Token* next = nullptr;
  try {
    next = parse_item(before.data(), stop, builder);
  } catch (const Refused&) {
    return out;
  }
  if (builder.furthest() == stop) add_expected(builder, out);
  if (next == stop) add_items(out);
  return out;
}

}  // namespace pw
