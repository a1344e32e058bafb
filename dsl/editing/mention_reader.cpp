// Derives a name's role from its neighbours: no expression continues with a bare name, so
// statements need no terminator.
#include "dsl/editing/mention_reader.hpp"

#include <algorithm>

#include "dsl/syntax/grammar.hpp"

namespace pw {

MentionReader::MentionReader(std::string_view text) : text_(text) {
  out_.tokens = lex(text, SourceId()).tokens;
  if (out_.tokens.empty()) out_.tokens.push_back({});
}

// ---- tokens

Tok MentionReader::kind(std::size_t i) const {
  return i < end_limit() ? out_.tokens[i].kind : Tok::end;
}

std::string_view MentionReader::spelling(std::size_t i) const {
  return text_.substr(out_.tokens[i].begin, out_.tokens[i].length);
}

std::string MentionReader::word(std::size_t i) const {
  return kind(i) == Tok::quoted ? unescape(spelling(i)) : std::string(spelling(i));
}

std::uint32_t MentionReader::column_of(const Token& t) const {
  const std::size_t line = t.begin == 0 ? std::string_view::npos : text_.rfind('\n', t.begin - 1);
  return t.begin - static_cast<std::uint32_t>(line == std::string_view::npos ? 0 : line + 1);
}

bool MentionReader::ends_expression(Tok t) {
  return is_name(t) || closes(t) || t == Tok::integer || t == Tok::real || t == Tok::string ||
         t == Tok::true_ || t == Tok::false_ || t == Tok::none || t == Tok::ellipsis ||
         t == Tok::question;
}

std::size_t MentionReader::behind(std::size_t i) const {
  std::size_t depth = 0;
  for (; i < end_; ++i) {
    if (opens(kind(i))) ++depth;
    if (closes(kind(i)) && --depth == 0) return i + 1;
  }
  return end_;
}

// ---- mentions

Mention& MentionReader::put(std::size_t i, MentionKind k) {
  Mention& m = out_.all.emplace_back();
  m.begin = out_.tokens[i].begin;
  m.end = out_.tokens[i].end();
  m.kind = k;
  m.scope = scope_;
  m.name = word(i);
  return m;
}

Mention& MentionReader::put_name(std::size_t i, NamePlace place, bool declares) {
  Mention& m = put(i, MentionKind::name);
  m.place = place;
  m.declares = declares;
  return m;
}

void MentionReader::declare(std::size_t i, MentionKind k) {
  if (i >= end_ || !is_word(kind(i))) return;
  Mention& m = put(i, k);
  m.declares = true;
  OutlineItem& item = out_.items[item_];
  if (item.group >= 0) m.of = out_.items[static_cast<std::size_t>(item.group)].name;
  name_item(i);
}

void MentionReader::name_item(std::size_t i) {
  OutlineItem& item = out_.items[item_];
  if (!item.name.empty()) return;
  item.name = word(i);
  item.name_begin = out_.tokens[i].begin;
  item.name_end = out_.tokens[i].end();
}

void MentionReader::open_scope(std::size_t begin, std::size_t end) {
  scope_ = static_cast<std::uint32_t>(out_.scopes.size());
  out_.scopes.push_back({out_.tokens[begin].begin, out_.tokens[end - 1].end(), item_, {}});
}

std::size_t MentionReader::put_path(std::size_t i, MentionKind k, bool declares) {
  const std::size_t end = path_end(i);
  Mention& m = put(i, k);
  m.declares = declares;
  for (std::size_t j = i + 1; j + 1 < end; j += 2) m.name += "." + word(j + 1);
  m.end = out_.tokens[end - 1].end();
  return end;
}

std::size_t MentionReader::path_end(std::size_t i) const {
  for (++i; kind(i) == Tok::dot && (is_word(kind(i + 1)) || kind(i + 1) == Tok::star);) i += 2;
  return i;
}

void MentionReader::code(std::size_t i, std::size_t end, In outer, NamePlace place, bool graph,
                         bool type) {
  Reading at{{Frame{outer, {}, i}}, place, graph, Lines::statements, {}, type};
  while (i < end) i = step(i, at);
}

std::size_t MentionReader::step(std::size_t i, Reading& at) {
  const Tok t = kind(i);
  Frame& top = at.stack.back();
  if (opens(t)) return enter(i, at);
  if (closes(t)) return leave(i, at);
  if (t == Tok::colon) at.type_next = top.in != In::attributes;
  if (t == Tok::question) at.type_next = false;  // the unknown type
  if (top.in == In::block) mark_clause(t, top);
  if (top.in == In::block && !at.graph && is_op_variable(i)) return op_variable(i, top);
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

bool MentionReader::is_op_variable(std::size_t i) const {
  return kind(i) == Tok::op && is_name(kind(i + 1)) && kind(i + 2) == Tok::colon;
}

std::size_t MentionReader::op_variable(std::size_t i, Frame& block) {
  block.guard = block.binding = false;
  put(i + 1, MentionKind::callee);
  if (!is_name(kind(i + 3))) return i + 3;
  put(i + 3, MentionKind::trait);
  return i + 4;
}

void MentionReader::mark_clause(Tok t, Frame& block) {
  if (t == Tok::where || t == Tok::assume) block.guard = true;
  if (t == Tok::implies || t == Tok::equivalent || t == Tok::bar || t == Tok::given ||
      t == Tok::unless || t == Tok::many)
    block.guard = false;
  if (t == Tok::assign) block.binding = false;
}

std::size_t MentionReader::enter(std::size_t i, Reading& at) {
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

std::size_t MentionReader::leave(std::size_t i, Reading& at) {
  at.callee.clear();
  at.type_next = false;
  if (at.stack.size() < 2) return i + 1;
  if (at.stack.back().in == In::call) at.callee = at.stack.back().callee;
  if (at.stack.back().type) at.type_end = i + 1;
  at.stack.pop_back();
  return i + 1;
}

std::size_t MentionReader::named(std::size_t i, Reading& at) {
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
  const bool operand =
      top.in == In::operands && (starts_element(i, top) || modifier(i - 1)) && !modifies(i);
  const bool input = at.lines == Lines::inputs && at.stack.size() == 1;
  const bool binds = !type && ((top.in == In::block && top.binding) || operand || input);
  if (!modifies(i) && !is_fuse(i)) put_name(i, binds ? NamePlace::value : place, binds);
  return end;
}

std::size_t MentionReader::callee(std::size_t i, std::size_t end, bool optional, Reading& at) {
  at.callee = word(i);
  for (std::size_t j = i + 1; j + 1 < end; j += 2) at.callee += "." + word(j + 1);
  if (end > i + 1 && word(i) == variable_)
    head_and_tail(i, end, NamePlace::value);
  else
    put_path(i, MentionKind::callee);
  return optional ? end + 1 : end;
}

bool MentionReader::modifier(std::size_t i) const {
  return kind(i) == Tok::mut || kind(i) == Tok::out;
}

bool MentionReader::modifies(std::size_t i) const {
  return kind(i) == Tok::mut && is_name(kind(i + 1)) && out_.items[item_].kind == Tok::op;
}

bool MentionReader::is_fuse(std::size_t i) const {
  return kind(i - 1) == Tok::assign && spelling(i) == "fuse";
}

std::size_t MentionReader::head_and_tail(std::size_t i, std::size_t end, NamePlace place) {
  // A row's column may be a dtype; the row is not.
  put_name(i, place == NamePlace::dtype ? NamePlace::value : place);
  if (kind(i + 2) != Tok::star) put(i + 2, MentionKind::property).of = word(i);
  return end;
}

NamePlace MentionReader::place_in(const Reading& at) {
  for (auto frame = at.stack.rbegin(); frame != at.stack.rend(); ++frame) {
    if (frame->in == In::dims) return NamePlace::dim;
    if (frame->in == In::attributes) return NamePlace::attribute;
    if (frame->in == In::block) return frame->guard ? NamePlace::guard : at.place;
    if (frame->type) return NamePlace::dtype;
  }
  return at.place;
}

bool MentionReader::starts_element(std::size_t i, const Frame& top) const {
  return i == top.begin || kind(i - 1) == Tok::comma;
}

bool MentionReader::starts_statement(std::size_t i, const Frame& top) const {
  if (i == top.begin) return true;
  const Tok before = kind(i - 1);
  if (before == Tok::implies || before == Tok::equivalent || before == Tok::bar ||
      before == Tok::many)
    return true;
  return ends_expression(before) && !top.binding;
}

std::size_t MentionReader::attribute(std::size_t i, const std::string& of) {
  const bool alone = kind(i + 1) != Tok::assign;
  Mention& m = put(i, MentionKind::attribute);
  m.of = of;
  m.shorthand = alone;
  if (alone && (is_name(kind(i)) || kind(i) == Tok::out))
    put_name(i, NamePlace::attribute).shorthand = true;
  return i + 1;
}

// ---- graphs

std::size_t MentionReader::graph_line(std::size_t i, Lines& lines) {
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

bool MentionReader::input_kind(std::size_t i) const {
  return (kind(i) == Tok::weight || kind(i) == Tok::buffer) && is_name(kind(i + 1));
}

std::size_t MentionReader::symbol(std::size_t i) {
  put_name(i + 1, NamePlace::dim, true);
  i += 3;
  while (kind(i) == Tok::integer || kind(i) == Tok::minus || kind(i) == Tok::dotdot) ++i;
  if (kind(i) == Tok::by) i += 2;
  if (kind(i) == Tok::tokens && kind(i + 1) != Tok::assign) ++i;
  if (kind(i) == Tok::role && kind(i + 1) == Tok::string) i += 2;
  return i;
}

std::size_t MentionReader::local_op(std::size_t i) {
  const std::uint32_t outer = scope_;
  open_scope(i);
  const std::size_t end = op(i + 1);
  out_.scopes[scope_].end = out_.tokens[end - 1].end();
  scope_ = outer;
  return end;
}

std::size_t MentionReader::graph(std::size_t i) {
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

std::size_t MentionReader::op(std::size_t i) {
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

void MentionReader::attribute_declarations(std::size_t i, std::size_t end) {
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

std::size_t MentionReader::results(std::size_t i) {
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

std::size_t MentionReader::type(std::size_t i, std::size_t end) {
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

}  // namespace pw
