// Emits the statements of one thread. Inside a column loop, an access to a vectorised group becomes
// an access to a register of that group; any other access is to memory. Every emitted access is
// recorded in the kernel's access tree, so that the prediction and the text cannot diverge.
#include "cuda/kernels/thread_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::cuda {

using rows::Statement;
using StatementKind = rows::Statement::Kind;

std::string ThreadText::variable(rows::VarId id) { return fmt::format("i{}", id.index); }
std::string ThreadText::width(rows::VarId var) const { return index(program_.indices.extent(var)); }

std::int64_t ThreadText::columns(rows::VarId var) const {
  const rows::Interval extent = program_.indices.interval(program_.indices.extent(var));
  return extent.low == extent.high ? extent.high : -1;
}

std::string ThreadText::function(const Statement& s) {
  return fmt::format("pw_{}<{}>", s.operation == Primitive::mean ? "sum" : name(s.operation),
                     type_of(s.unit));
}

void ThreadText::accumulate(const Statement& s, int depth) {
  block(s.first, depth);
  text_.line(depth, fmt::format("a{0} = {1}::of(a{0}, {2});", s.slot.index, function(s),
                                expressions_.in_unit(s.operands[0], s.unit)));
}

/// Emits the total. An empty mean of integers divides by zero, for which pw_div defines the result.
void ThreadText::total(const Statement& s, const std::string& text, int depth) {
  const std::string value =
      s.operation == Primitive::mean
          ? fmt::format("pw_div({}, ({})({}))", text, type_of(s.unit), width(s.var))
          : text;
  text_.line(depth, expressions_.rounded(s.slot, value, s.unit));
}

/// Emits a statement that every thread executes for itself; loops over columns are emitted by the
/// team.
void ThreadText::statement(const Statement& s, int depth) {
  switch (s.kind) {
    case StatementKind::constant:
    case StatementKind::compute: return text_.line(depth, expressions_.defined(s));
    case StatementKind::place: return text_.line(depth, expressions_.given(s.slot, index(s.index)));
    case StatementKind::load: return text_.line(depth, load(s));
    case StatementKind::store: return text_.line(depth, store(s));
    case StatementKind::check: return;  // device programs have no checks
    case StatementKind::branch: return branch(s, depth);
    case StatementKind::loop:
      text_.line(depth, fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", variable(s.var),
                                    width(s.var)));
      text_.accesses.loop(passes(s.var), [&] { block(s.first, depth + 1); });
      return text_.line(depth, "}");
    case StatementKind::reduce: return reduce(s, depth);
  }
}

const Access* ThreadText::access(const Statement& s) const {
  if (!place.loop) return nullptr;
  const auto found = place.loop->accesses.find(&s);
  return found == place.loop->accesses.end() ? nullptr : &found->second;
}

/// Returns the load of an element: from a group in registers, or from memory with a record of the
/// access.
std::string ThreadText::load(const Statement& s) {
  const Access* how = access(s);
  if (how && how->kind == Access::Kind::groups) {
    return expressions_.loaded(s.slot, taken(s, *how));
  }
  if (how && how->kind == Access::Kind::element) note({s.argument, false, how->why});
  record(s, how == nullptr || how->kind == Access::Kind::same);
  return expressions_.loaded(s.slot, fmt::format("pw_load(p{}, {})", s.argument, index(s.index)));
}

/// Records the access of one element.
void ThreadText::record(const Statement& s, bool uniform) {
  AccessNode access;
  access.argument = s.argument;
  access.write = s.kind == StatementKind::store;
  access.live = access.write;
  access.bytes = static_cast<int>(size_of(program_.type(s.argument).dtype));
  access.one_of = one_of;
  access.uniform = uniform;
  text_.accesses.add(access);
}

AccessNode ThreadText::passes(rows::VarId var) {
  AccessNode loop;
  loop.var = var;
  return loop;
}

/// Returns the element of a group that column e reads.
std::string ThreadText::taken(const Statement& s, const Access& how) const {
  const auto table = [](const auto& numbers) {
    std::uint64_t bits = 0;
    bool rising = true, equal = true;
    for (std::size_t e = 0; e < numbers.size(); ++e) {
      bits |= static_cast<std::uint64_t>(numbers[e]) << 4 * e;
      rising = rising && static_cast<std::size_t>(numbers[e]) == e;
      equal = equal && numbers[e] == numbers[0];
    }
    if (rising) return std::string("e");
    if (equal) return std::to_string(numbers[0]);
    return fmt::format("(int)(0x{:08x}u >> 4 * e & 15)", bits);
  };
  const std::string_view type = storage(program_.type(s.argument).dtype);
  const auto take = [&](std::size_t group) {
    return fmt::format("pw_take<{}>({}, {})", type, place.groups + std::to_string(group),
                       table(how.places));
  };
  const std::size_t first = how.groups.front();
  const auto other =
      std::find_if(how.groups.begin(), how.groups.end(), [&](std::size_t g) { return g != first; });
  if (other == how.groups.end()) return take(first);
  std::vector<int> which;
  for (std::size_t g : how.groups) which.push_back(g == first ? 0 : 1);
  return fmt::format("({} ? {} : {})", table(which), take(*other), take(first));
}

std::string ThreadText::store(const Statement& s) {
  const Access* how = access(s);
  const DType to = program_.type(s.argument).dtype;
  const std::string value = expressions_.stored(s.operands[0]);
  if (how && how->kind == Access::Kind::groups && place.packed.count(s.argument) != 0)
    return fmt::format("x{}{}[e] = {};", place.groups, how->groups[0],
                       Expressions::unrounded(s.operands[0]));
  if (how && how->kind == Access::Kind::groups) {
    return fmt::format("pw_insert<{}>({}, e, {});", storage(to),
                       place.groups + std::to_string(how->groups[0]), value);
  }
  if (how) note({s.argument, true, how->why});
  record(s, false);
  return fmt::format("{}pw_store(p{}, {}, {});",
                     place.live.empty() ? "" : fmt::format("if ({}) ", place.live), s.argument,
                     index(s.index), value);
}

void ThreadText::note(ElementAccess access) {
  auto& all = kernel_.elements;
  if (std::find(all.begin(), all.end(), access) == all.end()) all.push_back(std::move(access));
}

/// Emits a branch. Its result is declared first and assigned on both sides.
void ThreadText::branch(const Statement& s, int depth) {
  const DType to = expressions_.dtype(s.slot);
  const std::string own = "u" + std::to_string(s.slot.index);
  text_.line(depth, fmt::format("{} {};", held(to), own));
  text_.line(depth, fmt::format("if ({} < {}) {{", index(s.index), index(s.bound)));
  const auto side = [&](const rows::Block& body, std::size_t operand) {
    block(body, depth + 1);
    text_.line(depth + 1, fmt::format("{} = {};", own, Expressions::slot(s.operands[operand])));
  };
  text_.accesses.branch(
      s.index, s.bound, [&] { side(s.first, 0); },
      [&] {
        text_.line(depth, "} else {");
        side(s.second, 1);
      });
  text_.line(depth, "}");
  text_.line(depth, expressions_.given(s.slot, own));
}

void ThreadText::reduce(const Statement& s, int depth) {
  text_.accesses.loop(passes(s.var), [&] { reduce_alone(s, depth); });
  total(s, fmt::format("r{}", s.slot.index), depth);
}

/// Emits a reduction in one thread, which leaves the result in r.
/// Follows the fixed tree in one thread; up to 8 columns form a single lane, which is added in
/// order.
void ThreadText::reduce_alone(const Statement& s, int depth) {
  const std::string type(type_of(s.unit)), id = std::to_string(s.slot.index);
  const std::string of = function(s), size = width(s.var), var = variable(s.var);
  text_.line(depth, fmt::format("{} r{};", type, id));
  text_.line(depth, "{");
  const std::int64_t n = columns(s.var);
  if (n >= 0 && n <= kColumns) {
    text_.line(depth + 1, fmt::format("{} a{} = {}::start();", type, id, of));
    text_.line(depth + 1, fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", var, size));
    accumulate(s, depth + 2);
    text_.line(depth + 1, "}");
    text_.line(depth + 1, fmt::format("r{0} = a{0};", id));
  } else {
    text_.line(depth + 1, fmt::format("pw_tree<{}, {}> t{};", type, of, id));
    text_.line(depth + 1, fmt::format("const long long l{} = pw_lanes({});", id, size));
    text_.line(depth + 1, fmt::format("for (long long q{0} = 0; q{0} < l{0}; ++q{0}) {{", id));
    text_.line(depth + 2, fmt::format("{} a{} = {}::start();", type, id, of));
    text_.line(
        depth + 2,
        fmt::format(
            "for (long long c{0} = pw_lane(q{0}, l{0}) * {1}; c{0} < {2}; c{0} += l{0} * {1}) {{",
            id, kColumns, size));
    text_.line(depth + 3, fmt::format("const long long e{0} = c{0} + {1} < {2} ? c{0} + {1} : {2};",
                                      id, kColumns, size));
    text_.line(depth + 3, fmt::format("for (long long {0} = c{1}; {0} < e{1}; ++{0}) {{", var, id));
    accumulate(s, depth + 4);
    text_.line(depth + 3, "}");
    text_.line(depth + 2, "}");
    text_.line(depth + 2, fmt::format("t{0}.push(q{0}, a{0});", id));
    text_.line(depth + 1, "}");
    text_.line(depth + 1, fmt::format("r{0} = t{0}.total;", id));
  }
  text_.line(depth, "}");
}

}  // namespace pw::cuda
