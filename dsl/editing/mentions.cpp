#include "dsl/editing/mentions.hpp"

#include <algorithm>
#include <utility>

#include "dsl/editing/plan_reader.hpp"
#include "dsl/syntax/grammar.hpp"

namespace pw {
namespace {

struct ItemPart {
  std::size_t begin = 0, end = 0;  // tokens
};

/// Splitter of the tokens into items. An item ends where the next begins, also in an open bracket
/// if the line is not indented further.
class ItemFinder {
 public:
  ItemFinder(std::string_view text, Mentions& out) : text_(text), out_(out) {}

  std::vector<ItemPart> run() {
    std::size_t depth = 0;
    std::int32_t group = -1;
    std::uint32_t column = 0;  // of the current item
    const std::size_t last = out_.tokens.size() - 1;
    for (std::size_t i = 0; i < last; ++i) {
      const Token& t = out_.tokens[i];
      const bool again = t.first_on_line && column_of(t) <= column;
      if ((depth == 0 || again) && starts_item(&t)) {
        if (group >= 0 && (t.kind != Tok::rule || column_of(t) < group_column_)) {
          close_item(i);
          group = -1;
        }
        close_item(i);
        depth = 0;
        column = t.first_on_line ? column_of(t) : 0;
        parts_.push_back({i, last});
        OutlineItem item{t.kind, {}, t.begin, t.end(), 0, 0, group};
        out_.items.push_back(std::move(item));
        if (t.kind == Tok::group) {
          group = static_cast<std::int32_t>(out_.items.size()) - 1;
          group_column_ = column;
          i += i + 2 < last && out_.tokens[i + 2].kind == Tok::lbrace ? 2 : 1;
        }
      } else if (opens(t.kind)) {
        ++depth;
      } else if (closes(t.kind) && depth > 0) {
        --depth;
      } else if (t.kind == Tok::rbrace && group >= 0) {
        close_item(i);
        out_.items[static_cast<std::size_t>(group)].end = t.end();
        group = -1;
      }
    }
    close_item(last);
    return std::move(parts_);
  }

 private:
  void close_item(std::size_t at) {
    if (parts_.empty() || at <= parts_.back().begin) return;
    ItemPart& part = parts_.back();
    part.end = std::min(part.end, at);
    OutlineItem& item = out_.items.back();
    item.end = std::max(item.end, out_.tokens[part.end - 1].end());
    if (item.group >= 0) {
      OutlineItem& group = out_.items[static_cast<std::size_t>(item.group)];
      group.end = std::max(group.end, item.end);
    }
  }

  std::uint32_t column_of(const Token& t) const {
    const std::size_t line = t.begin == 0 ? std::string_view::npos : text_.rfind('\n', t.begin - 1);
    return t.begin - static_cast<std::uint32_t>(line == std::string_view::npos ? 0 : line + 1);
  }

  std::string_view text_;
  Mentions& out_;
  std::vector<ItemPart> parts_;
  std::uint32_t group_column_ = 0;
};

class ItemReader {
 public:
  ItemReader(std::string_view text, Mentions& out) : item_(text, out) {}

  void read(std::size_t number, const ItemPart& part) {
    const std::size_t i = part.begin;
    item_.begin_item(number, part.end);
    const Tok first = item_.kind(i);
    if (first == Tok::op || first == Tok::foreign || first == Tok::pattern || first == Tok::rule)
      item_.open_scope(i, item_.end());
    constexpr std::pair<Tok, void (ItemReader::*)(std::size_t)> kReaders[] = {
        {Tok::use, &ItemReader::use},
        {Tok::param, &ItemReader::param},
        {Tok::extern_, &ItemReader::extern_item},
        {Tok::op, &ItemReader::op_item},
        {Tok::foreign, &ItemReader::foreign},
        {Tok::table, &ItemReader::table},
        {Tok::pattern, &ItemReader::pattern},
        {Tok::rule, &ItemReader::rule},
        {Tok::group, &ItemReader::group},
        {Tok::pass, &ItemReader::pass},
        {Tok::graph, &ItemReader::graph_item},
    };  // a capture has no names
    constexpr std::pair<Tok, void (PlanReader::*)(std::size_t)> kPlanReaders[] = {
        {Tok::pipeline, &PlanReader::pipeline},
        {Tok::split, &PlanReader::split},
        {Tok::explore, &PlanReader::explore},
        {Tok::test, &PlanReader::test},
    };
    for (const auto& [word, reader] : kReaders)
      if (word == first) (this->*reader)(i + 1);
    for (const auto& [word, reader] : kPlanReaders)
      if (word == first) (plan_.*reader)(i + 1);
  }

 private:
  // ---- one function an item; each begins after the item's first word

  void group(std::size_t i) { item_.declare(i, MentionKind::group); }
  void pass(std::size_t i) {
    item_.declare(i, MentionKind::pass);
    plan_.strategy(i + 2);
  }
  void op_item(std::size_t i) { code_.op(i); }
  void graph_item(std::size_t i) { code_.graph(i - 1); }

  void use(std::size_t i) {
    if (item_.kind(i) == Tok::string) item_.add_use(i);
  }

  void param(std::size_t i) {
    item_.declare(i, MentionKind::param);
    if (is_word(item_.kind(i + 2))) item_.put(i + 2, MentionKind::kind);
    if (i + 4 < item_.end())
      code_.read(i + 4, item_.end(), CodeReader::In::parens, NamePlace::guard);
  }

  void extern_item(std::size_t i) {
    item_.declare(i + 1, MentionKind::extern_);
    for (i += 2; i < item_.end(); ++i)
      if (is_word(item_.kind(i)) && item_.kind(i + 1) != Tok::colon)
        item_.put(i, MentionKind::kind);
  }

  void foreign(std::size_t i) {
    if (item_.kind(i) == Tok::string) {
      item_.name_item(i);
      item_.outline().name = unescape(item_.spelling(i));
      ++i;
    } else if (is_name(item_.kind(i))) {
      const std::size_t first = i;
      i = item_.put_path(i, MentionKind::foreign, true);
      item_.name_item(first);
      item_.name_item_by_last();
    }
    if (item_.kind(i) != Tok::lparen) return;
    std::size_t next = item_.after(i);
    foreign_parameters(i + 1, next - 1);
    i = next;
    if (item_.kind(i) == Tok::assign)
      return code_.read(i + 1, item_.end(), CodeReader::In::parens, NamePlace::value);
    if (item_.kind(i) == Tok::arrow) {
      for (++i; is_name(item_.kind(i)) || item_.kind(i) == Tok::comma; ++i)
        if (is_name(item_.kind(i))) item_.put_name(i, NamePlace::value);
    }
    std::size_t brace = i;
    while (brace < item_.end() && item_.kind(brace) != Tok::lbrace) ++brace;
    if (item_.kind(i) == Tok::where) {
      // A set, `in {1, 2}`, opens a brace as well.
      while (brace < item_.end() && item_.kind(brace - 1) == Tok::in) {
        brace = item_.after(brace);
        while (brace < item_.end() && item_.kind(brace) != Tok::lbrace) ++brace;
      }
      code_.read(i + 1, brace, CodeReader::In::parens, NamePlace::guard);
    }
    if (brace < item_.end())
      code_.read(brace + 1, item_.after(brace) - 1, CodeReader::In::block, NamePlace::value);
  }

  /// Reads `self`, `dim | axis: T = 1`, `mut x`.
  void foreign_parameters(std::size_t i, std::size_t end) {
    while (i < end) {
      if (item_.modifier(i) && is_name(item_.kind(i + 1))) ++i;
      if (is_name(item_.kind(i))) item_.put_name(i++, NamePlace::value, true);
      while (item_.kind(i) == Tok::bar) {
        if (is_word(item_.kind(i + 1))) item_.put_name(i + 1, NamePlace::value, true);
        i += 2;
      }
      if (item_.kind(i) == Tok::colon) i = code_.type(i + 1, end);
      std::size_t next = i, depth = 0;
      for (; next < end && (item_.kind(next) != Tok::comma || depth > 0); ++next) {
        if (opens(item_.kind(next))) ++depth;
        if (closes(item_.kind(next)) && depth > 0) --depth;
      }
      if (item_.kind(i) == Tok::assign)
        code_.read(i + 1, next, CodeReader::In::parens, NamePlace::attribute);
      i = next + 1;
    }
  }

  void table(std::size_t i) {
    item_.declare(i, MentionKind::table);
    const std::string name = item_.outline().name;
    if (item_.kind(++i) == Tok::assign) {
      for (++i; i < item_.end(); ++i)
        if (is_name(item_.kind(i))) item_.put(i, MentionKind::table);
      return;
    }
    if (item_.kind(i) != Tok::lparen) return;
    const std::size_t close = item_.after(i) - 1;
    for (++i; i < close; ++i)
      if (is_word(item_.kind(i))) member(i, MentionKind::column, name);
    if (item_.kind(i = close + 1) != Tok::lbrace) return;
    for (++i; i < item_.end(); ++i) {
      if (is_word(item_.kind(i)) && item_.kind(i + 1) == Tok::colon)
        member(i, MentionKind::row, name);
      else if (is_name(item_.kind(i)))
        i = item_.put_path(i, MentionKind::callee) - 1;
    }
  }
  void member(std::size_t i, MentionKind k, const std::string& of) {
    Mention& m = item_.put(i, k);
    m.declares = true;
    m.of = of;
  }

  void pattern(std::size_t i) {
    if (item_.kind(i) == Tok::rec && is_name(item_.kind(i + 1))) ++i;
    item_.declare(i++, MentionKind::pattern);
    if (item_.kind(i) != Tok::lparen) return;
    std::size_t next = item_.after(i);
    for (++i; i < next; ++i)
      if (is_name(item_.kind(i))) i = typed_name(i, next - 1, true);
    if (item_.kind(i) == Tok::lbrace) {
      next = item_.after(i);
      for (++i; i < next; ++i)
        if (is_name(item_.kind(i)) &&
            (item_.kind(i - 1) == Tok::comma || item_.kind(i - 1) == Tok::lbrace))
          item_.put_name(i, NamePlace::attribute, true);
    }
    for (; i < item_.end() && item_.kind(i) != Tok::lbrace; ++i)
      if (is_name(item_.kind(i))) i = typed_name(i, item_.end(), false);
    body(i);
  }
  /// Returns the last token of `x` or `x: T[n]`.
  std::size_t typed_name(std::size_t i, std::size_t end, bool declares) {
    item_.put_name(i, NamePlace::value, declares);
    return item_.kind(i + 1) == Tok::colon ? code_.type(i + 2, end) - 1 : i;
  }

  void rule(std::size_t i) {
    item_.declare(i++, MentionKind::rule);
    if (item_.kind(i) == Tok::for_ && is_name(item_.kind(i + 1))) {
      item_.put_name(i + 1, NamePlace::value, true);
      code_.set_row(item_.word(i + 1));
      if (item_.kind(i + 2) == Tok::in && is_name(item_.kind(i + 3))) {
        item_.put(i + 3, MentionKind::table);
        item_.scope().table = item_.word(i + 3);
      }
      i += 4;
    }
    if (item_.kind(i) == Tok::over) {
      for (++i; i < item_.end() && item_.kind(i) != Tok::lbrace;)
        i = is_name(item_.kind(i)) ? plan_.reference(i) : i + 1;
    }
    body(i);
    code_.set_row({});
  }

  void body(std::size_t brace) {
    if (item_.kind(brace) != Tok::lbrace) return;
    const std::size_t end = item_.after(brace);
    code_.read(brace + 1, item_.kind(end - 1) == Tok::rbrace ? end - 1 : end, CodeReader::In::block,
               NamePlace::value);
  }

  ItemMentions item_;
  CodeReader code_{item_};
  PlanReader plan_{item_, code_};
};

}  // namespace

Mentions find_mentions(std::string_view text) {
  Mentions out;
  out.tokens = lex(text, SourceId()).tokens;
  if (out.tokens.empty()) out.tokens.push_back({});
  const std::vector<ItemPart> parts = ItemFinder(text, out).run();
  ItemReader reader(text, out);
  for (std::size_t i = 0; i < parts.size(); ++i) reader.read(i, parts[i]);
  std::stable_sort(out.all.begin(), out.all.end(),
                   [](const Mention& a, const Mention& b) { return a.begin < b.begin; });
  return out;
}

}  // namespace pw
