#include "dsl/editing/plan_reader.hpp"

#include <algorithm>
#include <array>

namespace pw {

std::size_t PlanReader::reference(std::size_t i) {
  item_.put(i, MentionKind::reference);
  const std::string head = item_.word(i);
  ++i;
  if (item_.kind(i) == Tok::dot && is_word(item_.kind(i + 1))) {
    Mention& m = item_.put(i + 1, MentionKind::reference);
    m.of = head;
    m.name = head + "." + m.name;
  }
  while (item_.kind(i) == Tok::dot) i += 2;
  if (item_.kind(i) != Tok::lbracket) return i;
  if (is_word(item_.kind(i + 1))) {
    Mention& m = item_.put(i + 1, MentionKind::row);
    m.of = head;
  }
  return item_.after(i);
}

bool PlanReader::is_strategy_word(Tok t) {
  constexpr std::array<Tok, 15> kWords{Tok::greedy, Tok::once,   Tok::walk,   Tok::saturate,
                                       Tok::atomic, Tok::repeat, Tok::best,   Tok::of,
                                       Tok::fuel,   Tok::by,     Tok::nodes,  Tok::rounds,
                                       Tok::cost,   Tok::when,   Tok::ensures};
  return std::find(kWords.begin(), kWords.end(), t) != kWords.end();
}

bool PlanReader::strategy_word(std::size_t i) const {
  const Tok t = item_.kind(i), next = item_.kind(i + 1);
  if (!is_strategy_word(t)) return false;
  if (t == Tok::greedy || t == Tok::once || t == Tok::walk || t == Tok::saturate)
    return next == Tok::lbrace;
  if (t == Tok::fuel || t == Tok::nodes || t == Tok::rounds) return next == Tok::integer;
  return is_name(next) || next == Tok::lparen || next == Tok::lbrace || next == Tok::not_ ||
         next == Tok::minus || next == Tok::integer;
}

void PlanReader::strategy(std::size_t i) {
  while (i < item_.end()) {
    if (strategy_word(i)) {
      const Tok t = item_.kind(i++);
      if (t == Tok::when || t == Tok::ensures) i = guard(i);
      if (t == Tok::by || t == Tok::cost) ++i;
    } else {
      i = is_name(item_.kind(i)) ? reference(i) : i + 1;
    }
  }
}

std::size_t PlanReader::guard(std::size_t i) {
  const std::size_t begin = i;
  std::size_t depth = 0;
  for (; i < item_.end(); ++i) {
    const Tok t = item_.kind(i);
    if (depth == 0 && i > begin && is_name(t) && ends_expression(item_.kind(i - 1))) break;
    if (depth == 0 && (t == Tok::semicolon || t == Tok::bar || t == Tok::comma)) break;
    if (opens(t)) ++depth;
    if (closes(t) && depth-- == 0) break;
  }
  code_.read(begin, i, CodeReader::In::parens, NamePlace::guard);
  return i;
}

void PlanReader::pipeline(std::size_t i) {
  item_.declare(i++, MentionKind::pipeline);
  if (item_.kind(i) != Tok::lbrace) return;
  ++i;
  if (item_.kind(i) == Tok::for_ && item_.kind(i + 2) == Tok::in &&
      item_.kind(i + 3) == Tok::ranges)
    i = item_.after(i + 4);
  strategy(i);
}

void PlanReader::split(std::size_t i) {
  item_.declare(i++, MentionKind::split);
  while (i < item_.end()) {
    if (item_.kind(i) == Tok::when)
      i = guard(i + 1);
    else if (is_name(item_.kind(i)) &&
             (item_.kind(i) != Tok::at || item_.kind(i - 1) == Tok::comma))
      i = item_.put_path(i, MentionKind::callee);
    else
      ++i;
  }
}

bool PlanReader::explore_clause(std::size_t i) const {
  const Tok before = item_.kind(i - 1);
  return before != Tok::comma && before != Tok::colon && before != Tok::of &&
         before != Tok::orders && before != Tok::before && before != Tok::over &&
         before != Tok::with && before != Tok::by;
}

void PlanReader::explore(std::size_t i) {
  item_.declare(i++, MentionKind::explore);
  if (item_.kind(i) != Tok::lbrace) return;
  Tok clause = Tok::end;
  for (++i; i < item_.end();) {
    if (!is_name(item_.kind(i))) {
      ++i;
    } else if (explore_clause(i)) {
      clause = item_.kind(i++);
    } else if (clause == Tok::with) {
      item_.put(i, MentionKind::param);
      i = item_.kind(i + 1) == Tok::in ? explore_values(i + 2) : i + 1;
    } else {
      i = clause == Tok::by ? i + 1 : reference(i);
    }
  }
}

std::size_t PlanReader::explore_values(std::size_t i) {
  while (i < item_.end() && item_.kind(i) != Tok::rbrace) {
    i = guard(i);
    if (item_.kind(i) != Tok::comma) break;
    ++i;
  }
  return i;
}

void PlanReader::test(std::size_t i) {
  item_.declare(i++, MentionKind::test);
  if (item_.kind(i) != Tok::lbrace) return;
  for (++i; i < item_.end();) {
    const Tok t = item_.kind(i);
    if (t == Tok::graph)
      i = item_.kind(i + 1) == Tok::string ? i + 2 : code_.graph(i);
    else if (t == Tok::apply)
      i = apply(i + 1);
    else if (t == Tok::expect)
      i = expect(i + 1);
    else
      ++i;
  }
}

std::size_t PlanReader::apply(std::size_t i) {
  while (is_name(item_.kind(i)) || item_.kind(i) == Tok::comma) {
    if (item_.kind(i - 1) != Tok::comma && item_.kind(i) == Tok::with) break;
    if (item_.kind(i - 1) != Tok::comma && item_.kind(i - 1) != Tok::apply) return i;
    i = is_name(item_.kind(i)) ? reference(i) : i + 1;
    if (item_.kind(i) == Tok::comma) ++i;
  }
  if (item_.kind(i) != Tok::with) return i;
  for (++i; is_name(item_.kind(i)) && item_.kind(i + 1) == Tok::assign;) {
    item_.put(i, MentionKind::param);
    i = guard(i + 2);
    if (item_.kind(i) == Tok::comma) ++i;
  }
  return i;
}

std::size_t PlanReader::expect(std::size_t i) {
  if (item_.kind(i) == Tok::graph && item_.kind(i + 1) != Tok::eq) return code_.graph(i);
  if (item_.kind(i) == Tok::numeric && item_.kind(i + 1) == Tok::within) return because(i + 3);
  if (item_.kind(i) == Tok::error && item_.kind(i + 1) == Tok::string) return because(i + 2);
  for (bool more = true; more && i < item_.end();) {
    i = count(i);
    more = item_.kind(i) == Tok::comma;
    if (more) ++i;
  }
  return because(i);
}

std::size_t PlanReader::count(std::size_t i) {
  const std::size_t begin = i;
  while (i < item_.end()) {
    const Tok t = item_.kind(i);
    if (t == Tok::comma || t == Tok::rbrace) break;
    if (is_name(t)) {
      if (i > begin && ends_expression(item_.kind(i - 1))) break;
      if (item_.kind(i + 1) != Tok::lparen) {
        i = reference(i);
        continue;
      }
      const std::size_t next = item_.after(i + 1);
      item_.put(i, MentionKind::callee);
      for (i += 2; i + 1 < next; ++i)
        if (is_name(item_.kind(i))) i = item_.put_path(i, MentionKind::callee) - 1;
      i = next;
      continue;
    }
    ++i;
  }
  return i;
}

std::size_t PlanReader::because(std::size_t i) {
  if (item_.kind(i) != Tok::because) return i;
  ++i;
  if (item_.kind(i) == Tok::word) ++i;
  return item_.kind(i) == Tok::string ? i + 1 : i;
}

}  // namespace pw
