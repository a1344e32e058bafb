// Derives a name's role from its neighbours: no expression continues with a bare name, so
// statements need no terminator.
#include "dsl/editing/code_reader.hpp"

#include <algorithm>

#include "dsl/syntax/grammar.hpp"

namespace pw {

void CodeReader::read(std::size_t i, std::size_t end, In outer, NamePlace place, bool graph,
                      bool type) {
  Reading at{{Frame{outer, {}, i}}, place, graph, Lines::statements, {}, type};
  while (i < end) i = step(i, at);
}

std::size_t CodeReader::step(std::size_t i, Reading& at) {
  const Tok t = item_.kind(i);
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
  if (t == Tok::star && is_name(item_.kind(i + 1)) && starts_element(i, top)) {
    item_.put_name(i + 1, NamePlace::sequence);
    return i + 2;
  }
  return is_name(t) || (t == Tok::out && top.in != In::operands) ? named(i, at) : i + 1;
}

bool CodeReader::is_op_variable(std::size_t i) const {
  return item_.kind(i) == Tok::op && is_name(item_.kind(i + 1)) && item_.kind(i + 2) == Tok::colon;
}

std::size_t CodeReader::op_variable(std::size_t i, Frame& block) {
  block.guard = block.binding = false;
  item_.put(i + 1, MentionKind::callee);
  if (!is_name(item_.kind(i + 3))) return i + 3;
  item_.put(i + 3, MentionKind::trait);
  return i + 4;
}

void CodeReader::mark_clause(Tok t, Frame& block) {
  if (t == Tok::where || t == Tok::assume) block.guard = true;
  if (t == Tok::implies || t == Tok::equivalent || t == Tok::bar || t == Tok::given ||
      t == Tok::unless || t == Tok::many)
    block.guard = false;
  if (t == Tok::assign) block.binding = false;
}

std::size_t CodeReader::enter(std::size_t i, Reading& at) {
  const Tok t = item_.kind(i), before = i == 0 ? Tok::end : item_.kind(i - 1);
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

std::size_t CodeReader::leave(std::size_t i, Reading& at) {
  at.callee.clear();
  at.type_next = false;
  if (at.stack.size() < 2) return i + 1;
  if (at.stack.back().in == In::call) at.callee = at.stack.back().callee;
  if (at.stack.back().type) at.type_end = i + 1;
  at.stack.pop_back();
  return i + 1;
}

std::size_t CodeReader::named(std::size_t i, Reading& at) {
  Frame& top = at.stack.back();
  const std::size_t end = item_.path_end(i);
  const bool optional = item_.kind(end) == Tok::question;
  const bool called = item_.kind(optional ? end + 1 : end) == Tok::lparen;
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
      top.in == In::operands && (starts_element(i, top) || item_.modifier(i - 1)) && !modifies(i);
  const bool input = at.lines == Lines::inputs && at.stack.size() == 1;
  const bool binds = !type && ((top.in == In::block && top.binding) || operand || input);
  if (!modifies(i) && !is_fuse(i)) item_.put_name(i, binds ? NamePlace::value : place, binds);
  return end;
}

std::size_t CodeReader::callee(std::size_t i, std::size_t end, bool optional, Reading& at) {
  at.callee = item_.word(i);
  for (std::size_t j = i + 1; j + 1 < end; j += 2) at.callee += "." + item_.word(j + 1);
  if (end > i + 1 && item_.word(i) == row_)
    head_and_tail(i, end, NamePlace::value);
  else
    item_.put_path(i, MentionKind::callee);
  return optional ? end + 1 : end;
}

bool CodeReader::modifies(std::size_t i) const {
  return item_.kind(i) == Tok::mut && is_name(item_.kind(i + 1)) && item_.outline().kind == Tok::op;
}

bool CodeReader::is_fuse(std::size_t i) const {
  return item_.kind(i - 1) == Tok::assign && item_.spelling(i) == "fuse";
}

std::size_t CodeReader::head_and_tail(std::size_t i, std::size_t end, NamePlace place) {
  // A row's column may be a dtype; the row is not.
  item_.put_name(i, place == NamePlace::dtype ? NamePlace::value : place);
  if (item_.kind(i + 2) != Tok::star) item_.put(i + 2, MentionKind::property).of = item_.word(i);
  return end;
}

NamePlace CodeReader::place_in(const Reading& at) {
  for (auto frame = at.stack.rbegin(); frame != at.stack.rend(); ++frame) {
    if (frame->in == In::dims) return NamePlace::dim;
    if (frame->in == In::attributes) return NamePlace::attribute;
    if (frame->in == In::block) return frame->guard ? NamePlace::guard : at.place;
    if (frame->type) return NamePlace::dtype;
  }
  return at.place;
}

bool CodeReader::starts_element(std::size_t i, const Frame& top) const {
  return i == top.begin || item_.kind(i - 1) == Tok::comma;
}

bool CodeReader::starts_statement(std::size_t i, const Frame& top) const {
  if (i == top.begin) return true;
  const Tok before = item_.kind(i - 1);
  if (before == Tok::implies || before == Tok::equivalent || before == Tok::bar ||
      before == Tok::many)
    return true;
  return ends_expression(before) && !top.binding;
}

std::size_t CodeReader::attribute(std::size_t i, const std::string& of) {
  const bool alone = item_.kind(i + 1) != Tok::assign;
  Mention& m = item_.put(i, MentionKind::attribute);
  m.of = of;
  m.shorthand = alone;
  if (alone && (is_name(item_.kind(i)) || item_.kind(i) == Tok::out))
    item_.put_name(i, NamePlace::attribute).shorthand = true;
  return i + 1;
}

// ---- graphs

std::size_t CodeReader::graph_line(std::size_t i, Lines& lines) {
  const Tok t = item_.kind(i);
  if (t == Tok::in) return lines = Lines::inputs, i + (input_kind(i + 1) ? 2 : 1);
  if (t == Tok::out) return lines = Lines::outputs, i + 1;
  if (t == Tok::at_sign) return i + 1;
  if (t == Tok::replicated && item_.kind(i + 1) == Tok::string) return i + 2;
  if (t == Tok::write && is_name(item_.kind(i + 1)) && item_.kind(i + 2) == Tok::assign) {
    item_.put_name(i + 1, NamePlace::value);
    if (is_name(item_.kind(i + 3))) item_.put_name(i + 3, NamePlace::value);
    return i + 4;
  }
  if (t == Tok::symbol && is_name(item_.kind(i + 1)) && item_.kind(i + 2) == Tok::in)
    return symbol(i);
  if (t == Tok::op && is_name(item_.kind(i + 1)) && item_.kind(i + 2) == Tok::lparen)
    return local_op(i);
  if (lines == Lines::inputs && is_name(t) && ends_expression(item_.kind(i - 1)) &&
      !input_kind(i - 1))
    lines = Lines::statements;
  return i;
}

bool CodeReader::input_kind(std::size_t i) const {
  return (item_.kind(i) == Tok::weight || item_.kind(i) == Tok::buffer) &&
         is_name(item_.kind(i + 1));
}

std::size_t CodeReader::symbol(std::size_t i) {
  item_.put_name(i + 1, NamePlace::dim, true);
  i += 3;
  while (item_.kind(i) == Tok::integer || item_.kind(i) == Tok::minus ||
         item_.kind(i) == Tok::dotdot)
    ++i;
  if (item_.kind(i) == Tok::by) i += 2;
  if (item_.kind(i) == Tok::tokens && item_.kind(i + 1) != Tok::assign) ++i;
  if (item_.kind(i) == Tok::role && item_.kind(i + 1) == Tok::string) i += 2;
  return i;
}

std::size_t CodeReader::local_op(std::size_t i) {
  const std::uint32_t outer = item_.open_scope(i, item_.end());
  const std::size_t end = op(i + 1);
  item_.scope().end = item_.token(end - 1).end();
  item_.restore_scope(outer);
  return end;
}

std::size_t CodeReader::graph(std::size_t i) {
  std::size_t brace = i + 1;
  if (is_name(item_.kind(brace))) {
    if (!item_.in_scope() && item_.outline().kind == Tok::graph) item_.name_item(brace);
    ++brace;
  }
  if (item_.kind(brace) != Tok::lbrace) return brace;
  const std::size_t end = item_.after(brace);
  const std::uint32_t outer = item_.open_scope(i, end);
  read(brace + 1, end == item_.end() && item_.kind(end - 1) != Tok::rbrace ? end : end - 1,
       In::block, NamePlace::value, true);
  item_.restore_scope(outer);
  return end;
}

std::size_t CodeReader::op(std::size_t i) {
  if (!is_name(item_.kind(i))) return i;
  if (item_.outline().kind == Tok::op) item_.name_item(i);
  i = item_.put_path(i, MentionKind::op, true);
  if (item_.outline().kind == Tok::op) item_.name_item_by_last();
  if (item_.kind(i) != Tok::lparen) return i;
  std::size_t next = item_.after(i);
  read(i + 1, next - 1, In::operands, NamePlace::value);
  i = next;
  if (item_.kind(i) == Tok::lbrace) {
    next = item_.after(i);
    attribute_declarations(i + 1, next - 1);
    i = next;
  }
  if (item_.kind(i) == Tok::arrow) i = results(i + 1);
  while (is_name(item_.kind(i)) && !starts_item(&item_.token(i)))
    item_.put(i++, MentionKind::trait);
  if (item_.kind(i) != Tok::lbrace) return i;
  next = item_.after(i);
  read(i + 1, item_.kind(next - 1) == Tok::rbrace ? next - 1 : next, In::block, NamePlace::value);
  return next;
}

void CodeReader::attribute_declarations(std::size_t i, std::size_t end) {
  while (i < end) {
    if (is_word(item_.kind(i))) item_.put_name(i, NamePlace::attribute, true);
    if (item_.kind(i + 1) == Tok::colon && is_word(item_.kind(i + 2)))
      item_.put(i + 2, MentionKind::kind);
    std::size_t depth = 0;
    for (; i < end && (item_.kind(i) != Tok::comma || depth > 0); ++i) {
      if (opens(item_.kind(i))) ++depth;
      if (closes(item_.kind(i)) && depth > 0) --depth;
    }
    ++i;
  }
}

std::size_t CodeReader::results(std::size_t i) {
  const bool many = item_.kind(i) == Tok::lparen;
  const std::size_t end = many ? item_.after(i) - 1 : item_.end();
  if (many) ++i;
  while (i < end) {
    if (is_name(item_.kind(i)) &&
        (item_.kind(i + 1) == Tok::colon || item_.kind(i + 1) == Tok::ellipsis)) {
      item_.put_name(i++, NamePlace::value, true);
      if (item_.kind(i) == Tok::ellipsis) ++i;
      if (item_.kind(i) == Tok::colon) ++i;
    }
    i = type(i, end);
    if (item_.kind(i) == Tok::from && is_name(item_.kind(i + 1))) {
      item_.put_name(i + 1, NamePlace::value);
      i += 2;
    }
    if (item_.kind(i) != Tok::comma || !many) break;
    ++i;
  }
  return many ? end + 1 : i;
}

std::size_t CodeReader::type(std::size_t i, std::size_t end) {
  std::size_t next = i;
  if (is_name(item_.kind(next)) || item_.kind(next) == Tok::out) {
    next = item_.path_end(next);
    if (item_.kind(next) == Tok::lparen) next = item_.after(next);
  }
  if (item_.kind(next) == Tok::lbracket) next = item_.after(next);
  next = std::min(std::max(next, i + 1), end);
  read(i, next, In::parens, NamePlace::dtype, false, true);
  return next;
}

}  // namespace pw
