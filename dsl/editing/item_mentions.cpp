#include "dsl/editing/item_mentions.hpp"

namespace pw {

bool ends_expression(Tok t) {
  return is_name(t) || closes(t) || t == Tok::integer || t == Tok::real || t == Tok::string ||
         t == Tok::true_ || t == Tok::false_ || t == Tok::none || t == Tok::ellipsis ||
         t == Tok::question;
}

void ItemMentions::begin_item(std::size_t item, std::size_t end) {
  item_ = static_cast<std::uint32_t>(item);
  end_ = end;
  scope_ = kNoScope;
}

Tok ItemMentions::kind(std::size_t i) const { return i < end_ ? out_.tokens[i].kind : Tok::end; }

std::string_view ItemMentions::spelling(std::size_t i) const {
  return text_.substr(out_.tokens[i].begin, out_.tokens[i].length);
}

std::string ItemMentions::word(std::size_t i) const {
  return kind(i) == Tok::quoted ? unescape(spelling(i)) : std::string(spelling(i));
}

std::size_t ItemMentions::after(std::size_t i) const {
  std::size_t depth = 0;
  for (; i < end_; ++i) {
    if (opens(kind(i))) ++depth;
    if (closes(kind(i)) && --depth == 0) return i + 1;
  }
  return end_;
}

Mention& ItemMentions::put(std::size_t i, MentionKind k) {
  Mention& m = out_.all.emplace_back();
  m.begin = out_.tokens[i].begin;
  m.end = out_.tokens[i].end();
  m.kind = k;
  m.scope = scope_;
  m.name = word(i);
  return m;
}

Mention& ItemMentions::put_name(std::size_t i, NamePlace place, bool declares) {
  Mention& m = put(i, MentionKind::name);
  m.place = place;
  m.declares = declares;
  return m;
}

void ItemMentions::declare(std::size_t i, MentionKind k) {
  if (i >= end_ || !is_word(kind(i))) return;
  Mention& m = put(i, k);
  m.declares = true;
  OutlineItem& item = outline();
  if (item.group >= 0) m.of = out_.items[static_cast<std::size_t>(item.group)].name;
  name_item(i);
}

void ItemMentions::name_item(std::size_t i) {
  OutlineItem& item = outline();
  if (!item.name.empty()) return;
  item.name = word(i);
  item.name_begin = out_.tokens[i].begin;
  item.name_end = out_.tokens[i].end();
}

void ItemMentions::name_item_by_last() {
  outline().name = out_.all.back().name;
  outline().name_end = out_.all.back().end;
}

void ItemMentions::add_use(std::size_t i) {
  out_.uses.push_back({token(i).begin, token(i).end(), unescape(spelling(i))});
}

std::uint32_t ItemMentions::open_scope(std::size_t begin, std::size_t end) {
  const std::uint32_t outer = scope_;
  scope_ = static_cast<std::uint32_t>(out_.scopes.size());
  out_.scopes.push_back({out_.tokens[begin].begin, out_.tokens[end - 1].end(), item_, {}});
  return outer;
}

std::size_t ItemMentions::put_path(std::size_t i, MentionKind k, bool declares) {
  const std::size_t end = path_end(i);
  Mention& m = put(i, k);
  m.declares = declares;
  for (std::size_t j = i + 1; j + 1 < end; j += 2) m.name += "." + word(j + 1);
  m.end = out_.tokens[end - 1].end();
  return end;
}

std::size_t ItemMentions::path_end(std::size_t i) const {
  for (++i; kind(i) == Tok::dot && (is_word(kind(i + 1)) || kind(i + 1) == Tok::star);) i += 2;
  return i;
}

bool ItemMentions::modifier(std::size_t i) const {
  return kind(i) == Tok::mut || kind(i) == Tok::out;
}

}  // namespace pw
