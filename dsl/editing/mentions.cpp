#include "dsl/editing/mentions.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dsl/editing/mention_reader.hpp"
#include "dsl/syntax/grammar.hpp"

namespace pw {
namespace {

class ItemReader : MentionReader {
 public:
  explicit ItemReader(std::string_view text) : MentionReader(text) {}

  Mentions run() {
    find_items();
    for (std::size_t i = 0; i < parts_.size(); ++i) item(i);
    std::stable_sort(out_.all.begin(), out_.all.end(),
                     [](const Mention& a, const Mention& b) { return a.begin < b.begin; });
    return std::move(out_);
  }

 private:
  // ---- items

  struct Part {
    std::size_t begin = 0, end = 0;  // tokens
  };

  void find_items() {
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
          i += kind(i + 2) == Tok::lbrace ? 2 : 1;
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
  }

  void close_item(std::size_t at) {
    if (parts_.empty() || at <= parts_.back().begin) return;
    Part& part = parts_.back();
    part.end = std::min(part.end, at);
    OutlineItem& item = out_.items.back();
    item.end = std::max(item.end, out_.tokens[part.end - 1].end());
    if (item.group >= 0) {
      OutlineItem& group = out_.items[static_cast<std::size_t>(item.group)];
      group.end = std::max(group.end, item.end);
    }
  }

  void item(std::size_t number) {
    const Part part = parts_[number];
    item_ = static_cast<std::uint32_t>(number);
    end_ = part.end;
    const std::size_t i = part.begin;
    const Tok first = kind(i);
    if (first == Tok::op || first == Tok::foreign || first == Tok::pattern || first == Tok::rule)
      open_scope(i);
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
        {Tok::pipeline, &ItemReader::pipeline},
        {Tok::split, &ItemReader::split},
        {Tok::explore, &ItemReader::explore},
        {Tok::test, &ItemReader::test},
        {Tok::graph, &ItemReader::graph_item},
    };  // a capture has no names
    for (const auto& [word, read] : kReaders)
      if (word == first) (this->*read)(i + 1);
    scope_ = kNoScope;
  }

  // ---- one function an item; each begins after the item's first word

  void group(std::size_t i) { declare(i, MentionKind::group); }
  void pass(std::size_t i) {
    declare(i, MentionKind::pass);
    strategy(i + 2);
  }
  void op_item(std::size_t i) { op(i); }
  void graph_item(std::size_t i) { graph(i - 1); }

  void use(std::size_t i) {
    if (kind(i) != Tok::string) return;
    out_.uses.push_back({out_.tokens[i].begin, out_.tokens[i].end(), unescape(spelling(i))});
  }

  void param(std::size_t i) {
    declare(i, MentionKind::param);
    if (is_word(kind(i + 2))) put(i + 2, MentionKind::kind);
    if (i + 4 < end_) code(i + 4, end_, In::parens, NamePlace::guard);
  }

  void extern_item(std::size_t i) {
    declare(i + 1, MentionKind::extern_);
    for (i += 2; i < end_; ++i)
      if (is_word(kind(i)) && kind(i + 1) != Tok::colon) put(i, MentionKind::kind);
  }

  void foreign(std::size_t i) {
    if (kind(i) == Tok::string) {
      name_item(i);
      out_.items[item_].name = unescape(spelling(i));
      ++i;
    } else if (is_name(kind(i))) {
      const std::size_t first = i;
      i = put_path(i, MentionKind::foreign, true);
      name_item(first);
      out_.items[item_].name = out_.all.back().name;
      out_.items[item_].name_end = out_.all.back().end;
    }
    if (kind(i) != Tok::lparen) return;
    std::size_t next = behind(i);
    foreign_parameters(i + 1, next - 1);
    i = next;
    if (kind(i) == Tok::assign) return code(i + 1, end_, In::parens, NamePlace::value);
    if (kind(i) == Tok::arrow) {
      for (++i; is_name(kind(i)) || kind(i) == Tok::comma; ++i)
        if (is_name(kind(i))) put_name(i, NamePlace::value);
    }
    std::size_t brace = i;
    while (brace < end_ && kind(brace) != Tok::lbrace) ++brace;
    if (kind(i) == Tok::where) {
      // A set, `in {1, 2}`, opens a brace as well.
      while (brace < end_ && kind(brace - 1) == Tok::in) {
        brace = behind(brace);
        while (brace < end_ && kind(brace) != Tok::lbrace) ++brace;
      }
      code(i + 1, brace, In::parens, NamePlace::guard);
    }
    if (brace < end_) code(brace + 1, behind(brace) - 1, In::block, NamePlace::value);
  }

  /// Reads `self`, `dim | axis: T = 1`, `mut x`.
  void foreign_parameters(std::size_t i, std::size_t end) {
    while (i < end) {
      if (modifier(i) && is_name(kind(i + 1))) ++i;
      if (is_name(kind(i))) put_name(i++, NamePlace::value, true);
      while (kind(i) == Tok::bar) {
        if (is_word(kind(i + 1))) put_name(i + 1, NamePlace::value, true);
        i += 2;
      }
      if (kind(i) == Tok::colon) i = type(i + 1, end);
      std::size_t next = i, depth = 0;
      for (; next < end && (kind(next) != Tok::comma || depth > 0); ++next) {
        if (opens(kind(next))) ++depth;
        if (closes(kind(next)) && depth > 0) --depth;
      }
      if (kind(i) == Tok::assign) code(i + 1, next, In::parens, NamePlace::attribute);
      i = next + 1;
    }
  }

  void table(std::size_t i) {
    declare(i, MentionKind::table);
    const std::string name = out_.items[item_].name;
    if (kind(++i) == Tok::assign) {
      for (++i; i < end_; ++i)
        if (is_name(kind(i))) put(i, MentionKind::table);
      return;
    }
    if (kind(i) != Tok::lparen) return;
    const std::size_t close = behind(i) - 1;
    for (++i; i < close; ++i)
      if (is_word(kind(i))) member(i, MentionKind::column, name);
    if (kind(i = close + 1) != Tok::lbrace) return;
    for (++i; i < end_; ++i) {
      if (is_word(kind(i)) && kind(i + 1) == Tok::colon)
        member(i, MentionKind::row, name);
      else if (is_name(kind(i)))
        i = put_path(i, MentionKind::callee) - 1;
    }
  }
  void member(std::size_t i, MentionKind k, const std::string& of) {
    Mention& m = put(i, k);
    m.declares = true;
    m.of = of;
  }

  void pattern(std::size_t i) {
    if (kind(i) == Tok::rec && is_name(kind(i + 1))) ++i;
    declare(i++, MentionKind::pattern);
    if (kind(i) != Tok::lparen) return;
    std::size_t next = behind(i);
    for (++i; i < next; ++i)
      if (is_name(kind(i))) i = typed_name(i, next - 1, true);
    if (kind(i) == Tok::lbrace) {
      next = behind(i);
      for (++i; i < next; ++i)
        if (is_name(kind(i)) && (kind(i - 1) == Tok::comma || kind(i - 1) == Tok::lbrace))
          put_name(i, NamePlace::attribute, true);
    }
    for (; i < end_ && kind(i) != Tok::lbrace; ++i)
      if (is_name(kind(i))) i = typed_name(i, end_, false);
    body(i);
  }
  /// Returns the last token of `x` or `x: T[n]`.
  std::size_t typed_name(std::size_t i, std::size_t end, bool declares) {
    put_name(i, NamePlace::value, declares);
    return kind(i + 1) == Tok::colon ? type(i + 2, end) - 1 : i;
  }

  void rule(std::size_t i) {
    declare(i++, MentionKind::rule);
    if (kind(i) == Tok::for_ && is_name(kind(i + 1))) {
      put_name(i + 1, NamePlace::value, true);
      variable_ = word(i + 1);
      if (kind(i + 2) == Tok::in && is_name(kind(i + 3))) {
        put(i + 3, MentionKind::table);
        out_.scopes[scope_].table = word(i + 3);
      }
      i += 4;
    }
    if (kind(i) == Tok::over) {
      for (++i; i < end_ && kind(i) != Tok::lbrace;) i = is_name(kind(i)) ? reference(i) : i + 1;
    }
    body(i);
    variable_.clear();
  }

  void body(std::size_t brace) {
    if (kind(brace) != Tok::lbrace) return;
    const std::size_t end = behind(brace);
    code(brace + 1, kind(end - 1) == Tok::rbrace ? end - 1 : end, In::block, NamePlace::value);
  }

  // ---- strategies, tests

  /// Reads `r`, `noop.*`, `noop.slice_full` or `family[row]`; returns the token after it.
  std::size_t reference(std::size_t i) {
    put(i, MentionKind::reference);
    const std::string head = word(i);
    ++i;
    if (kind(i) == Tok::dot && is_word(kind(i + 1))) {
      Mention& m = put(i + 1, MentionKind::reference);
      m.of = head;
      m.name = head + "." + m.name;
    }
    while (kind(i) == Tok::dot) i += 2;
    if (kind(i) != Tok::lbracket) return i;
    if (is_word(kind(i + 1))) {
      Mention& m = put(i + 1, MentionKind::row);
      m.of = head;
    }
    return behind(i);
  }

  static bool is_strategy_word(Tok t) {
    constexpr std::array<Tok, 15> kWords{Tok::greedy, Tok::once,   Tok::walk,   Tok::saturate,
                                         Tok::atomic, Tok::repeat, Tok::best,   Tok::of,
                                         Tok::fuel,   Tok::by,     Tok::nodes,  Tok::rounds,
                                         Tok::cost,   Tok::when,   Tok::ensures};
    return std::find(kWords.begin(), kWords.end(), t) != kWords.end();
  }
  /// Returns true if the word at `i` belongs to a strategy and is not a rule's name, by what
  /// follows.
  [[nodiscard]] bool strategy_word(std::size_t i) const {
    const Tok t = kind(i), next = kind(i + 1);
    if (!is_strategy_word(t)) return false;
    if (t == Tok::greedy || t == Tok::once || t == Tok::walk || t == Tok::saturate)
      return next == Tok::lbrace;
    if (t == Tok::fuel || t == Tok::nodes || t == Tok::rounds) return next == Tok::integer;
    return is_name(next) || next == Tok::lparen || next == Tok::lbrace || next == Tok::not_ ||
           next == Tok::minus || next == Tok::integer;
  }

  void strategy(std::size_t i) {
    while (i < end_) {
      if (strategy_word(i)) {
        const Tok t = kind(i++);
        if (t == Tok::when || t == Tok::ensures) i = guard(i);
        if (t == Tok::by || t == Tok::cost) ++i;
      } else {
        i = is_name(kind(i)) ? reference(i) : i + 1;
      }
    }
  }

  /// Reads an expression over params and counts; returns the token after it.
  std::size_t guard(std::size_t i) {
    const std::size_t begin = i;
    std::size_t depth = 0;
    for (; i < end_; ++i) {
      const Tok t = kind(i);
      if (depth == 0 && i > begin && is_name(t) && ends_expression(kind(i - 1))) break;
      if (depth == 0 && (t == Tok::semicolon || t == Tok::bar || t == Tok::comma)) break;
      if (opens(t)) ++depth;
      if (closes(t) && depth-- == 0) break;
    }
    code(begin, i, In::parens, NamePlace::guard);
    return i;
  }

  void pipeline(std::size_t i) {
    declare(i++, MentionKind::pipeline);
    if (kind(i) != Tok::lbrace) return;
    ++i;
    if (kind(i) == Tok::for_ && kind(i + 2) == Tok::in && kind(i + 3) == Tok::ranges)
      i = behind(i + 4);
    strategy(i);
  }

  void split(std::size_t i) {
    declare(i++, MentionKind::split);
    while (i < end_) {
      if (kind(i) == Tok::when)
        i = guard(i + 1);
      else if (is_name(kind(i)) && (kind(i) != Tok::at || kind(i - 1) == Tok::comma))
        i = put_path(i, MentionKind::callee);
      else
        ++i;
    }
  }

  /// Returns true if a clause of `explore` begins here, and not a name of a list, by the preceding
  /// token.
  [[nodiscard]] bool explore_clause(std::size_t i) const {
    const Tok before = kind(i - 1);
    return before != Tok::comma && before != Tok::colon && before != Tok::of &&
           before != Tok::orders && before != Tok::before && before != Tok::over &&
           before != Tok::with && before != Tok::by;
  }
  void explore(std::size_t i) {
    declare(i++, MentionKind::explore);
    if (kind(i) != Tok::lbrace) return;
    Tok clause = Tok::end;
    for (++i; i < end_;) {
      if (!is_name(kind(i))) {
        ++i;
      } else if (explore_clause(i)) {
        clause = kind(i++);
      } else if (clause == Tok::with) {
        put(i, MentionKind::param);
        i = kind(i + 1) == Tok::in ? explore_values(i + 2) : i + 1;
      } else {
        i = clause == Tok::by ? i + 1 : reference(i);
      }
    }
  }
  /// Reads the values after `with tp in`.
  std::size_t explore_values(std::size_t i) {
    while (i < end_ && kind(i) != Tok::rbrace) {
      i = guard(i);
      if (kind(i) != Tok::comma) break;
      ++i;
    }
    return i;
  }

  void test(std::size_t i) {
    declare(i++, MentionKind::test);
    if (kind(i) != Tok::lbrace) return;
    for (++i; i < end_;) {
      const Tok t = kind(i);
      if (t == Tok::graph)
        i = kind(i + 1) == Tok::string ? i + 2 : graph(i);
      else if (t == Tok::apply)
        i = apply(i + 1);
      else if (t == Tok::expect)
        i = expect(i + 1);
      else
        ++i;
    }
  }
  std::size_t apply(std::size_t i) {
    while (is_name(kind(i)) || kind(i) == Tok::comma) {
      if (kind(i - 1) != Tok::comma && kind(i) == Tok::with) break;
      if (kind(i - 1) != Tok::comma && kind(i - 1) != Tok::apply) return i;
      i = is_name(kind(i)) ? reference(i) : i + 1;
      if (kind(i) == Tok::comma) ++i;
    }
    if (kind(i) != Tok::with) return i;
    for (++i; is_name(kind(i)) && kind(i + 1) == Tok::assign;) {
      put(i, MentionKind::param);
      i = guard(i + 2);
      if (kind(i) == Tok::comma) ++i;
    }
    return i;
  }
  std::size_t expect(std::size_t i) {
    if (kind(i) == Tok::graph && kind(i + 1) != Tok::eq) return graph(i);
    if (kind(i) == Tok::numeric && kind(i + 1) == Tok::within) return because(i + 3);
    if (kind(i) == Tok::error && kind(i + 1) == Tok::string) return because(i + 2);
    for (bool more = true; more && i < end_;) {
      i = count(i);
      more = kind(i) == Tok::comma;
      if (more) ++i;
    }
    return because(i);
  }
  /// Reads `r == 2*80`, `count(add) == 0` or `r == 1 in 1..256`: names are rules, in `count` ops.
  std::size_t count(std::size_t i) {
    const std::size_t begin = i;
    while (i < end_) {
      const Tok t = kind(i);
      if (t == Tok::comma || t == Tok::rbrace) break;
      if (is_name(t)) {
        if (i > begin && ends_expression(kind(i - 1))) break;
        if (kind(i + 1) != Tok::lparen) {
          i = reference(i);
          continue;
        }
        const std::size_t next = behind(i + 1);
        put(i, MentionKind::callee);
        for (i += 2; i + 1 < next; ++i)
          if (is_name(kind(i))) i = put_path(i, MentionKind::callee) - 1;
        i = next;
        continue;
      }
      ++i;
    }
    return i;
  }
  std::size_t because(std::size_t i) {
    if (kind(i) != Tok::because) return i;
    ++i;
    if (kind(i) == Tok::word) ++i;
    return kind(i) == Tok::string ? i + 1 : i;
  }

  std::vector<Part> parts_;
  std::uint32_t group_column_ = 0;
};

}  // namespace

Mentions find_mentions(std::string_view text) { return ItemReader(text).run(); }

}  // namespace pw
