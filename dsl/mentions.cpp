// Exports find_mentions. An item begins as the parser's error recovery has it; inside, a name's part
// is told by its neighbours: no expression goes on with a bare name, so that statements end by
// themselves.
#include "dsl/mentions.hpp"

#include <algorithm>
#include <array>

#include "dsl/grammar.hpp"

namespace pw {
namespace {

class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {
    out_.tokens = lex(text, SourceId()).tokens;
    if (out_.tokens.empty()) out_.tokens.push_back({});
  }

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
    std::uint32_t column = 0;  // of the item at hand
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
    constexpr std::pair<Tok, void (Finder::*)(std::size_t)> kReaders[] = {
        {Tok::use, &Finder::use},           {Tok::param, &Finder::param},
        {Tok::extern_, &Finder::extern_item}, {Tok::op, &Finder::op_item},
        {Tok::foreign, &Finder::foreign},   {Tok::table, &Finder::table},
        {Tok::pattern, &Finder::pattern},   {Tok::rule, &Finder::rule},
        {Tok::group, &Finder::group},       {Tok::pass, &Finder::pass},
        {Tok::pipeline, &Finder::pipeline}, {Tok::split, &Finder::split},
        {Tok::test, &Finder::test},         {Tok::graph, &Finder::graph_item},
    };  // a capture has no names
    for (const auto& [word, read] : kReaders)
      if (word == first) (this->*read)(i + 1);
    scope_ = kNoScope;
  }

  // ---- tokens

  [[nodiscard]] Tok kind(std::size_t i) const {
    return i < end_limit() ? out_.tokens[i].kind : Tok::end;
  }
  [[nodiscard]] std::size_t end_limit() const {
    return end_ == 0 ? out_.tokens.size() : end_;
  }
  [[nodiscard]] std::string_view spelling(std::size_t i) const {
    return text_.substr(out_.tokens[i].begin, out_.tokens[i].length);
  }
  [[nodiscard]] std::string word(std::size_t i) const {
    return kind(i) == Tok::quoted ? unescape(spelling(i)) : std::string(spelling(i));
  }
  [[nodiscard]] std::uint32_t column_of(const Token& t) const {
    const std::size_t line = t.begin == 0 ? std::string_view::npos : text_.rfind('\n', t.begin - 1);
    return t.begin - static_cast<std::uint32_t>(line == std::string_view::npos ? 0 : line + 1);
  }
  static bool opens(Tok t) {
    return t == Tok::lparen || t == Tok::lbracket || t == Tok::lbrace;
  }
  static bool closes(Tok t) {
    return t == Tok::rparen || t == Tok::rbracket || t == Tok::rbrace;
  }
  /// What an expression may end with: a name behind it begins something else.
  static bool ends_expression(Tok t) {
    return is_name(t) || closes(t) || t == Tok::integer || t == Tok::real || t == Tok::string ||
           t == Tok::true_ || t == Tok::false_ || t == Tok::none || t == Tok::ellipsis ||
           t == Tok::question;
  }
  /// The token behind the bracket that closes the one at `i`; the end of the item without one.
  [[nodiscard]] std::size_t behind(std::size_t i) const {
    std::size_t depth = 0;
    for (; i < end_; ++i) {
      if (opens(kind(i))) ++depth;
      if (closes(kind(i)) && --depth == 0) return i + 1;
    }
    return end_;
  }

  // ---- mentions

  Mention& put(std::size_t i, MentionKind k) {
    Mention& m = out_.all.emplace_back();
    m.begin = out_.tokens[i].begin;
    m.end = out_.tokens[i].end();
    m.kind = k;
    m.scope = scope_;
    m.name = word(i);
    return m;
  }
  Mention& put_name(std::size_t i, NamePlace place, bool declares = false) {
    Mention& m = put(i, MentionKind::name);
    m.place = place;
    m.declares = declares;
    return m;
  }
  void declare(std::size_t i, MentionKind k) {
    if (i >= end_ || !is_word(kind(i))) return;
    Mention& m = put(i, k);
    m.declares = true;
    OutlineItem& item = out_.items[item_];
    if (item.group >= 0) m.of = out_.items[static_cast<std::size_t>(item.group)].name;
    name_item(i);
  }
  void name_item(std::size_t i) {
    OutlineItem& item = out_.items[item_];
    if (!item.name.empty()) return;
    item.name = word(i);
    item.name_begin = out_.tokens[i].begin;
    item.name_end = out_.tokens[i].end();
  }
  void open_scope(std::size_t begin) { open_scope(begin, end_); }
  void open_scope(std::size_t begin, std::size_t end) {
    scope_ = static_cast<std::uint32_t>(out_.scopes.size());
    out_.scopes.push_back({out_.tokens[begin].begin, out_.tokens[end - 1].end(), item_, {}});
  }
  /// A path from `i` on as one mention; returns the token behind it.
  std::size_t put_path(std::size_t i, MentionKind k, bool declares = false) {
    const std::size_t end = path_end(i);
    Mention& m = put(i, k);
    m.declares = declares;
    for (std::size_t j = i + 1; j + 1 < end; j += 2) m.name += "." + word(j + 1);
    m.end = out_.tokens[end - 1].end();
    return end;
  }
  [[nodiscard]] std::size_t path_end(std::size_t i) const {
    for (++i; kind(i) == Tok::dot && (is_word(kind(i + 1)) || kind(i + 1) == Tok::star);) i += 2;
    return i;
  }

  // ---- code: statements, patterns, expressions, types

  enum class In : std::uint8_t { block, call, operands, parens, attributes, dims, index, list, set };
  struct Frame {
    In in = In::block;
    std::string callee;      // of a call and of attributes
    std::size_t begin = 0;   // the first token inside
    bool guard = false;      // of a block: in `where` or `assume`
    bool binding = false;    // of a block: left of `=`
    bool type = false;       // of a call: it is the dtype of a type
  };
  enum class Lines : std::uint8_t { statements, inputs, outputs };
  struct Reading {
    std::vector<Frame> stack;
    NamePlace place = NamePlace::value;  // of a name that nothing else places
    bool graph = false;
    Lines lines = Lines::statements;
    std::string callee;        // of the call that comes, or has just ended
    bool type_next = false;    // behind a colon
    std::size_t type_end = 0;  // behind a dtype: a `[` there opens dims
  };

  /// The tokens from `i` to `end`, which stand inside of `outer`. `type`: they begin with one.
  void code(std::size_t i, std::size_t end, In outer, NamePlace place, bool graph = false,
            bool type = false) {
    Reading at{{Frame{outer, {}, i}}, place, graph, Lines::statements, {}, type};
    while (i < end) i = step(i, at);
  }

  std::size_t step(std::size_t i, Reading& at) {
    const Tok t = kind(i);
    Frame& top = at.stack.back();
    if (opens(t)) return enter(i, at);
    if (closes(t)) return leave(i, at);
    if (t == Tok::colon) at.type_next = top.in != In::attributes;
    if (top.in == In::block) mark_clause(t, top);
    if (at.graph && at.stack.size() == 1)
      if (const std::size_t next = graph_line(i, at.lines); next != i) return next;
    if (top.in == In::attributes && is_word(t) && starts_element(i, top))
      return attribute(i, top.callee);
    if (t == Tok::star && is_name(kind(i + 1)) && starts_element(i, top)) {
      put_name(i + 1, NamePlace::sequence);
      return i + 2;
    }
    return is_name(t) || (t == Tok::out && top.in != In::operands) ? named(i, at) : i + 1;
  }

  static void mark_clause(Tok t, Frame& block) {
    if (t == Tok::where || t == Tok::assume) block.guard = true;
    if (t == Tok::implies || t == Tok::equivalent || t == Tok::bar || t == Tok::given ||
        t == Tok::unless || t == Tok::many)
      block.guard = false;
    if (t == Tok::assign) block.binding = false;
  }

  std::size_t enter(std::size_t i, Reading& at) {
    const Tok t = kind(i), before = i == 0 ? Tok::end : kind(i - 1);
    Frame frame{In::list, at.callee, i + 1};
    if (t == Tok::lparen) {
      frame.in = at.callee.empty() ? In::parens : In::call;
      frame.type = at.type_next;
    } else if (t == Tok::lbrace) {
      frame.in = before == Tok::rparen && !at.callee.empty() ? In::attributes
                 : before == Tok::in                         ? In::set
                                                             : In::block;
    } else if (at.type_next || at.type_end == i) {
      frame.in = In::dims;
    } else if (ends_expression(before)) {
      frame.in = In::index;
    }
    at.type_next = false;
    at.callee.clear();
    at.stack.push_back(std::move(frame));
    return i + 1;
  }

  std::size_t leave(std::size_t i, Reading& at) {
    at.callee.clear();
    at.type_next = false;
    if (at.stack.size() < 2) return i + 1;
    if (at.stack.back().in == In::call) at.callee = at.stack.back().callee;
    if (at.stack.back().type) at.type_end = i + 1;
    at.stack.pop_back();
    return i + 1;
  }

  /// A name, or a path, at `i`; returns the token behind it.
  std::size_t named(std::size_t i, Reading& at) {
    Frame& top = at.stack.back();
    const std::size_t end = path_end(i);
    const bool optional = kind(end) == Tok::question;
    const bool called = kind(optional ? end + 1 : end) == Tok::lparen;
    if (top.in == In::block && !at.type_next && starts_statement(i, top)) {
      top.guard = false;
      top.binding = !called;
    }
    if (called) return callee(i, end, optional, at);
    at.callee.clear();
    const bool type = at.type_next;
    at.type_next = false;
    if (type) at.type_end = end;
    const NamePlace place = type ? NamePlace::dtype : place_in(at);
    if (end > i + 1) return head_and_tail(i, end, place);
    const bool operand = top.in == In::operands &&
                         (starts_element(i, top) || modifier(i - 1)) && !modifies(i);
    const bool input = at.lines == Lines::inputs && at.stack.size() == 1;
    const bool binds = !type && ((top.in == In::block && top.binding) || operand || input);
    if (!modifies(i) && !is_fuse(i)) put_name(i, binds ? NamePlace::value : place, binds);
    return end;
  }

  std::size_t callee(std::size_t i, std::size_t end, bool optional, Reading& at) {
    at.callee = word(i);
    for (std::size_t j = i + 1; j + 1 < end; j += 2) at.callee += "." + word(j + 1);
    if (end > i + 1 && word(i) == variable_)
      head_and_tail(i, end, NamePlace::value);
    else
      put_path(i, MentionKind::callee);
    return optional ? end + 1 : end;
  }

  [[nodiscard]] bool modifier(std::size_t i) const {
    return kind(i) == Tok::mut || kind(i) == Tok::out;
  }
  /// `mut x` in an op's declaration: no name.
  [[nodiscard]] bool modifies(std::size_t i) const {
    return kind(i) == Tok::mut && is_name(kind(i + 1)) && out_.items[item_].kind == Tok::op;
  }
  /// The right side of a rule that is one new op.
  [[nodiscard]] bool is_fuse(std::size_t i) const {
    return kind(i - 1) == Tok::assign && spelling(i) == "fuse";
  }
  std::size_t head_and_tail(std::size_t i, std::size_t end, NamePlace place) {
    put_name(i, place);
    if (kind(i + 2) != Tok::star) put(i + 2, MentionKind::property).of = word(i);
    return end;
  }

  static NamePlace place_in(const Reading& at) {
    for (auto frame = at.stack.rbegin(); frame != at.stack.rend(); ++frame) {
      if (frame->in == In::dims) return NamePlace::dim;
      if (frame->in == In::attributes) return NamePlace::attribute;
      if (frame->in == In::block) return frame->guard ? NamePlace::guard : at.place;
      if (frame->type) return NamePlace::dtype;
    }
    return at.place;
  }

  [[nodiscard]] bool starts_element(std::size_t i, const Frame& top) const {
    return i == top.begin || kind(i - 1) == Tok::comma;
  }
  [[nodiscard]] bool starts_statement(std::size_t i, const Frame& top) const {
    if (i == top.begin) return true;
    const Tok before = kind(i - 1);
    if (before == Tok::implies || before == Tok::equivalent || before == Tok::bar ||
        before == Tok::many)
      return true;
    return ends_expression(before) && !top.binding;
  }

  /// `{eps}`, `{eps = least}`: the name of an attribute at `i`.
  std::size_t attribute(std::size_t i, const std::string& of) {
    const bool alone = kind(i + 1) != Tok::assign;
    Mention& m = put(i, MentionKind::attribute);
    m.of = of;
    m.shorthand = alone;
    if (alone && (is_name(kind(i)) || kind(i) == Tok::out))
      put_name(i, NamePlace::attribute).shorthand = true;
    return i + 1;
  }

  // ---- graphs

  /// What begins a line of a graph's text other than a statement; returns the token to go on with.
  std::size_t graph_line(std::size_t i, Lines& lines) {
    const Tok t = kind(i);
    if (t == Tok::in) return lines = Lines::inputs, i + (input_kind(i + 1) ? 2 : 1);
    if (t == Tok::out) return lines = Lines::outputs, i + 1;
    if (t == Tok::at_sign) return i + 1;
    if (t == Tok::replicated && kind(i + 1) == Tok::string) return i + 2;
    if (t == Tok::write && is_name(kind(i + 1)) && kind(i + 2) == Tok::assign) {
      put_name(i + 1, NamePlace::value);
      if (is_name(kind(i + 3))) put_name(i + 3, NamePlace::value);
      return i + 4;
    }
    if (t == Tok::symbol && is_name(kind(i + 1)) && kind(i + 2) == Tok::in) return symbol(i);
    if (t == Tok::op && is_name(kind(i + 1)) && kind(i + 2) == Tok::lparen) return local_op(i);
    if (lines == Lines::inputs && is_name(t) && ends_expression(kind(i - 1)) && !input_kind(i - 1))
      lines = Lines::statements;
    return i;
  }
  [[nodiscard]] bool input_kind(std::size_t i) const {
    return (kind(i) == Tok::weight || kind(i) == Tok::buffer) && is_name(kind(i + 1));
  }
  std::size_t symbol(std::size_t i) {
    put_name(i + 1, NamePlace::dim, true);
    i += 3;
    while (kind(i) == Tok::integer || kind(i) == Tok::minus || kind(i) == Tok::dotdot) ++i;
    if (kind(i) == Tok::by) i += 2;
    if (kind(i) == Tok::tokens && kind(i + 1) != Tok::assign) ++i;
    if (kind(i) == Tok::role && kind(i + 1) == Tok::string) i += 2;
    return i;
  }
  std::size_t local_op(std::size_t i) {
    const std::uint32_t outer = scope_;
    open_scope(i);
    const std::size_t end = op(i + 1);
    out_.scopes[scope_].end = out_.tokens[end - 1].end();
    scope_ = outer;
    return end;
  }
  /// `graph name {`; returns the token behind it.
  std::size_t graph(std::size_t i) {
    const std::uint32_t outer = scope_;
    std::size_t brace = i + 1;
    if (is_name(kind(brace))) {
      if (outer == kNoScope && out_.items[item_].kind == Tok::graph) name_item(brace);
      ++brace;
    }
    if (kind(brace) != Tok::lbrace) return brace;
    const std::size_t end = behind(brace);
    open_scope(i, end);
    code(brace + 1, end == end_ && kind(end - 1) != Tok::rbrace ? end : end - 1, In::block,
         NamePlace::value, true);
    scope_ = outer;
    return end;
  }

  // ---- one function an item; each begins behind the item's first word

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

  /// Returns the token behind it.
  std::size_t op(std::size_t i) {
    if (!is_name(kind(i))) return i;
    if (out_.items[item_].kind == Tok::op) name_item(i);
    i = put_path(i, MentionKind::op, true);
    if (out_.items[item_].kind == Tok::op) {
      out_.items[item_].name = out_.all.back().name;
      out_.items[item_].name_end = out_.all.back().end;
    }
    if (kind(i) != Tok::lparen) return i;
    std::size_t next = behind(i);
    code(i + 1, next - 1, In::operands, NamePlace::value);
    i = next;
    if (kind(i) == Tok::lbrace) {
      next = behind(i);
      attribute_declarations(i + 1, next - 1);
      i = next;
    }
    if (kind(i) == Tok::arrow) i = results(i + 1);
    while (is_name(kind(i)) && !starts_item(&out_.tokens[i])) put(i++, MentionKind::trait);
    if (kind(i) != Tok::lbrace) return i;
    next = behind(i);
    code(i + 1, kind(next - 1) == Tok::rbrace ? next - 1 : next, In::block, NamePlace::value);
    return next;
  }

  void attribute_declarations(std::size_t i, std::size_t end) {
    while (i < end) {
      if (is_word(kind(i))) put_name(i, NamePlace::attribute, true);
      if (kind(i + 1) == Tok::colon && is_word(kind(i + 2))) put(i + 2, MentionKind::kind);
      std::size_t depth = 0;
      for (; i < end && (kind(i) != Tok::comma || depth > 0); ++i) {
        if (opens(kind(i))) ++depth;
        if (closes(kind(i)) && depth > 0) --depth;
      }
      ++i;
    }
  }

  /// Named or plain types, in parentheses or alone; returns the token behind them.
  std::size_t results(std::size_t i) {
    const bool many = kind(i) == Tok::lparen;
    const std::size_t end = many ? behind(i) - 1 : end_;
    if (many) ++i;
    while (i < end) {
      if (is_name(kind(i)) && (kind(i + 1) == Tok::colon || kind(i + 1) == Tok::ellipsis)) {
        put_name(i++, NamePlace::value, true);
        if (kind(i) == Tok::ellipsis) ++i;
        if (kind(i) == Tok::colon) ++i;
      }
      i = type(i, end);
      if (kind(i) == Tok::from && is_name(kind(i + 1))) {
        put_name(i + 1, NamePlace::value);
        i += 2;
      }
      if (kind(i) != Tok::comma || !many) break;
      ++i;
    }
    return many ? end + 1 : i;
  }

  /// A type from `i` on; returns the token behind it.
  std::size_t type(std::size_t i, std::size_t end) {
    std::size_t next = i;
    if (is_name(kind(next)) || kind(next) == Tok::out) {
      next = path_end(next);
      if (kind(next) == Tok::lparen) next = behind(next);
    }
    if (kind(next) == Tok::lbracket) next = behind(next);
    next = std::min(std::max(next, i + 1), end);
    code(i, next, In::parens, NamePlace::dtype, false, true);
    return next;
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

  /// `self`, `dim | axis: T = 1`, `mut x`.
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
    if (kind(++i) != Tok::lparen) return;
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
      if (is_name(kind(i))) put_name(i, NamePlace::value, true);
    if (kind(i) == Tok::lbrace) {
      next = behind(i);
      for (++i; i < next; ++i)
        if (is_name(kind(i)) && (kind(i - 1) == Tok::comma || kind(i - 1) == Tok::lbrace))
          put_name(i, NamePlace::attribute, true);
    }
    for (; i < end_ && kind(i) != Tok::lbrace; ++i)
      if (is_name(kind(i))) put_name(i, NamePlace::value);
    body(i);
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

  /// `r`, `noop.*`, `noop.slice_full`, `family[row]`; returns the token behind it.
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
    constexpr std::array<Tok, 15> kWords{
        Tok::greedy, Tok::once,  Tok::walk,   Tok::saturate, Tok::atomic,
        Tok::repeat, Tok::best,  Tok::of,     Tok::fuel,     Tok::by,
        Tok::nodes,  Tok::rounds, Tok::cost,  Tok::when,     Tok::ensures};
    return std::find(kWords.begin(), kWords.end(), t) != kWords.end();
  }
  /// Whether the word at `i` is one of a strategy, and no name of a rule: by what follows.
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

  /// An expression over params and counts; returns the token behind it.
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
  /// `r == 2*80`, `count(add) == 0`, `r == 1 in 1..256`: names are of rules, in `count` of ops.
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

  std::string_view text_;
  Mentions out_;
  std::vector<Part> parts_;
  std::uint32_t group_column_ = 0;
  std::uint32_t item_ = 0, scope_ = kNoScope;
  std::size_t end_ = 0;  // of the item at hand; 0 before the first
  std::string variable_;  // of a family
};

}  // namespace

Mentions find_mentions(std::string_view text) { return Finder(text).run(); }

}  // namespace pw
