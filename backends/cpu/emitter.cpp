#include "backends/cpu/emitter.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/element_text.hpp"
#include "backends/cpu/pairs.hpp"
#include "backends/cpu/phases.hpp"
#include "backends/cpu/strips.hpp"
#include "backends/cpu/turned.hpp"
#include "codegen/rowprogram/cxx.hpp"

namespace pw::cpu {
namespace {

using rows::Block;
using rows::SlotId;
using rows::Statement;
using namespace rows::cxx;

constexpr std::int64_t kChunk = 8;  // consecutive columns added by a lane of the tree
constexpr int kRow = 2;             // indentation of code that runs once per row

class Emitter {
 public:
  Emitter(const rows::RowProgram& program, const EmitOptions& options)
      : program_(program),
        indices_(program.indices),
        options_(options),
        elements_(program, options, text_) {}

  /// Returns the loop over rows, and how they may be divided.
  std::string body(RowParts& parts) {
    const Block* const rest = strips(program_.body, program_.row, "begin", "end", 1);
    if (rest == nullptr) return std::move(text_.out);
    if (const auto turned = turned_operands(program_, *rest)) {
      parts = {turned->inside, turned->rows};
      tiles(*turned, *rest);
      return std::move(text_.out);
    }
    simd(1, *rest);
    line(1, "for (long long row = begin; row < end; ++row) {");
    block(*rest, kRow);
    line(1, "}");
    return std::move(text_.out);
  }

 private:
  void tiles(const Turned& turned, const Block& body) {
    for (const auto& [load, one] : turned.loads) elements_.place(load, element_of(turned, load));
    emit_tiles(program_, turned, text_,
               [&](int depth, const std::string& from, const std::string& to) {
                 if (turned.loop != nullptr) bounds_[turned.loop->var] = {from, to};
                 block(body, depth);
               });
  }

  std::string index(rows::IndexId id) const { return indices_.print(id); }
  DType dtype(SlotId id) const { return program_.slots[id]; }
  void line(int depth, const std::string& text) { text_.line(depth, text); }

  void block(const Block& statements, int depth) {
    const Phases phases = share_phases(program_, statements);
    for (const auto& [read, kept] : phases.read) elements_.share(read, kept);
    for (const auto& [slot, shared] : phases.kept) elements_.keep(slot);
    if (!options_.strict) paired_.merge(loops_in_pairs(program_, statements));
    for (const auto& [slot, shared] : phases.kept) {
      if (!in_result(shared))
        line(depth,
             fmt::format("alignas(64) {} k{}[{}];", held(dtype(slot)), slot.index, shared.extent));
    }
    for (const Statement& s : statements) {
      statement(s, depth, phases);
      elements_.define_reciprocal(s, depth);
    }
  }

  /// Returns true if the buffer of a kept value is the result that it is stored to.
  [[nodiscard]] bool in_result(const Phases::Shared& shared) const {
    return shared.store != nullptr && paired_.count(shared.var) == 0;
  }

  /// Returns the place of the current column's kept value; in pairs, even columns come first.
  std::string kept(const Phases::Shared& shared, rows::VarId var) {
    if (in_result(shared))
      return fmt::format(
          "p{}[{}]", shared.store->argument,
          index(indices_.substitute(shared.store->index, shared.var, indices_.use(var))));
    if (!elements_.half) return fmt::format("k{}[{}]", shared.first.index, variable(var));
    const std::string half = *elements_.half == 0 ? "" : fmt::format("{} + ", shared.extent / 2);
    return fmt::format("k{}[{}h{}]", shared.first.index, half, var.index);
  }

  /// Emits the body of a loop; stores or reads values shared by phases at the place of `var`.
  void inner(const Block& statements, int depth, const Phases& phases, rows::VarId var) {
    if (!is_flat(statements)) return block(statements, depth);
    for (const Statement& s : statements) {
      if (s.slot.valid() && phases.idle.count(s.slot) != 0) continue;
      if (const auto read = phases.read.find(s.slot); s.slot.valid() && read != phases.read.end()) {
        elements_.define_kept(s, kept(phases.kept.at(read->second), var), depth);
        continue;
      }
      if (s.kind == Statement::Kind::store && is_done(s, phases)) continue;
      statement(s, depth, phases);
      if (const auto own = phases.kept.find(s.slot); s.slot.valid() && own != phases.kept.end())
        line(depth, fmt::format("{} = {};", kept(own->second, var), slot(s.slot)));
    }
  }

  /// Keeping it has stored it.
  [[nodiscard]] bool is_done(const Statement& store, const Phases& phases) const {
    const auto read = phases.read.find(store.operands[0]);
    if (read == phases.read.end()) return false;
    const Phases::Shared& shared = phases.kept.at(read->second);
    return shared.store == &store && in_result(shared);
  }

  /// Emits a statement for two neighbouring columns, the pair `h`; `after` follows each of them.
  /// Narrow elements are read as one word before, and written as one word afterwards.
  void inner_pair(const Block& statements, int depth, const Phases& phases, rows::VarId var,
                  const std::function<void(int half)>& after) {
    const auto word = [&](const Statement& s) {
      return size_of(program_.type(s.argument).dtype) == 2 ? "unsigned" : "unsigned short";
    };
    const auto moved = [&](const Statement& s, Statement::Kind kind) {
      const bool made =
          !s.slot.valid() || (phases.idle.count(s.slot) == 0 && phases.read.count(s.slot) == 0);
      return s.kind == kind && made && is_packed(program_, s, var);
    };
    line(depth, fmt::format("const long long {} = 2 * h{};", variable(var), var.index));
    for (const Statement& s : statements) {
      const bool store = moved(s, Statement::Kind::store);
      if (!store && !moved(s, Statement::Kind::load)) continue;
      const std::string name = elements_.add_word(s);
      line(depth, store ? fmt::format("{} {};", word(s), name)
                        : fmt::format("const {0} {1} = pw_word<{0}>(p{2} + {3});", word(s), name,
                                      s.argument, index(s.index)));
    }
    for (const int half : {0, 1}) {
      elements_.half = half;
      line(depth, "{");
      if (half == 1)
        line(depth + 1, fmt::format("const long long {} = 2 * h{} + 1;", variable(var), var.index));
      inner(statements, depth + 1, phases, var);
      after(half);
      line(depth, "}");
    }
    elements_.half.reset();
    for (const Statement& s : statements) {
      if (moved(s, Statement::Kind::store))
        line(depth, fmt::format("pw_put_word(p{} + {}, {});", s.argument, index(s.index),
                                elements_.word(s)));
    }
  }

  /// Emits what suits strips of a loop; returns the rest of its body, or null if nothing is left.
  const Block* strips(const Block& body, rows::VarId var, const std::string& from,
                      const std::string& to, int depth) {
    if (options_.strict) return &body;
    DividedLoop parts = divide(program_, body, var);
    if (parts.strips.empty()) return &body;
    const auto inside = [this](const Block& statements, int at, const Phases& phases,
                               rows::VarId over) { inner(statements, at, phases, over); };
    blocks_.push_back(std::move(parts.strips));
    Strips(program_, elements_, text_, inside).emit(blocks_.back(), var, from, to, depth);
    if (parts.rest.empty()) return nullptr;
    return &blocks_.emplace_back(std::move(parts.rest));
  }

  void simd(int depth, const Block& body) {
    if (is_flat(body)) line(depth, simd_loop(body));
  }

  /// A negative index becomes too large as an unsigned number.
  void check(const Statement& s, int depth) {
    line(depth, fmt::format("bad |= (unsigned long long)(long long){} >= (unsigned long long)({});",
                            slot(s.operands[0]), index(s.bound)));
  }

  void loop(rows::VarId var, const std::string& from, const std::string& to, int depth) {
    line(depth,
         fmt::format("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", variable(var), from, to));
  }

  void reduce(const Statement& s, int depth, const Phases& phases) {
    const std::string id = std::to_string(s.slot.index), type(type_of(s.unit));
    const bool mean = s.operation == Primitive::mean;
    const std::string function = fmt::format("pw_{}", mean ? "sum" : name(s.operation));
    const rows::IndexId extent = program_.indices.extent(s.var);
    const std::string width = index(extent);
    line(depth, fmt::format("{} v{};", held(dtype(s.slot)), id));
    line(depth, "{");
    line(depth + 1, fmt::format("{} a{} = {}<{}>::start();", type, id, function, type));
    const auto accumulate = [&](int at) {
      inner(s.first, at, phases, s.var);
      line(at, fmt::format("a{0} = {1}<{2}>::of(a{0}, {3});", id, function, type,
                           in_unit(program_, s.operands[0], s.unit)));
    };
    const std::int64_t most = program_.indices.interval(extent).high;
    const std::int64_t side = options_.strict ? 0 : lanes_beside(program_, s);
    if (side > 0) {
      side_by_side(s, depth + 1, side, id, type, function, phases);
    } else if (!options_.strict || most <= kChunk) {
      loop(s.var, "0", width, depth + 1);
      accumulate(depth + 2);
      line(depth + 1, "}");
    } else if (most <= kMostKept) {
      line(depth + 1, fmt::format("alignas(64) {} e{}[{}];", type, id, most));
      simd(depth + 1, s.first);
      loop(s.var, "0", width, depth + 1);
      inner(s.first, depth + 2, phases, s.var);
      line(depth + 2, fmt::format("e{}[{}] = {};", id, variable(s.var),
                                  in_unit(program_, s.operands[0], s.unit)));
      line(depth + 1, "}");
      line(depth + 1,
           fmt::format("a{0} = pw_reduced<{1}, {2}<{1}>>(e{0}, {3});", id, type, function, width));
    } else {
      in_lanes(s, depth + 1, id, type, function, width, accumulate);
    }
    const std::string total =
        mean ? fmt::format("pw_div(a{}, ({})({}))", id, type, width) : "a" + id;
    line(depth + 1, fmt::format("v{} = {};", id, rounded(total, s.unit, dtype(s.slot))));
    line(depth, "}");
  }

  void side_by_side(const Statement& s, int depth, std::int64_t lanes, const std::string& id,
                    const std::string& type, std::string function, const Phases& phases) {
    if (s.operation == Primitive::amax && s.unit == rows::Unit::f32 && of_magnitudes(program_, s))
      function = "pw_most";  // by their bits, among which NaN is the largest
    const auto extent = program_.indices.interval(program_.indices.extent(s.var));
    const std::string width = index(program_.indices.extent(s.var));
    line(depth, fmt::format("alignas(64) {} l{}[{}];", type, id, lanes));
    line(depth,
         fmt::format("for (int q{0} = 0; q{0} < {1}; ++q{0}) l{0}[q{0}] = a{0};", id, lanes));
    line(depth, fmt::format("long long c{} = 0;", id));
    const bool pairs = paired_.count(s.var) != 0;
    const auto lane = [&](int at, const std::string& first) {
      line(at, fmt::format("l{0}[{1}q{0}] = {2}<{3}>::of(l{0}[{1}q{0}], {4});", id, first, function,
                           type, in_unit(program_, s.operands[0], s.unit)));
    };
    // With pairs, c counts pairs: after a division GCC no longer recognises consecutive addresses,
    // and emits gathers.
    const std::int64_t step = pairs ? lanes / 2 : lanes;
    const std::string steps = pairs ? fmt::format("({}) / 2", width) : width;
    const auto lanes_of_a_chunk = [&](int at, const std::string& count) {
      line(at, simd_loop(s.first));
      line(at, fmt::format("for (long long q{0} = 0; q{0} < {1}; ++q{0}) {{", id, count));
      if (pairs) {
        line(at + 1, fmt::format("const long long h{} = c{} + q{};", s.var.index, id, id));
        inner_pair(s.first, at + 1, phases, s.var, [&](int half) {
          lane(at + 2, half == 0 ? "" : fmt::format("{} + ", lanes / 2));
        });
      } else {
        line(at + 1, fmt::format("const long long {} = c{} + q{};", variable(s.var), id, id));
        inner(s.first, at + 1, phases, s.var);
        lane(at + 1, "");
      }
      line(at, "}");
    };
    line(depth, fmt::format("for (; c{0} + {1} <= {2}; c{0} += {1}) {{", id, step, steps));
    lanes_of_a_chunk(depth + 1, std::to_string(step));
    line(depth, "}");
    if (extent.low != extent.high || extent.high % lanes != 0)
      lanes_of_a_chunk(depth, fmt::format("{} - c{}", steps, id));
    line(depth, fmt::format("a{0} = pw_met<{1}, {2}<{1}>, {3}>(l{0});", id, type, function, lanes));
  }

  /// Emits the reduction tree without a buffer, for rows of any length.
  template <class Accumulate>
  void in_lanes(const Statement& s, int depth, const std::string& id, const std::string& type,
                const std::string& function, const std::string& width, Accumulate accumulate) {
    line(depth, fmt::format("{} t{}[256];", type, id));
    line(depth, fmt::format("const long long l{} = pw_lanes({});", id, width));
    line(depth, fmt::format("for (long long q{0} = 0; q{0} < l{0}; ++q{0}) {{", id));
    line(depth + 1, fmt::format("a{} = {}<{}>::start();", id, function, type));
    line(depth + 1,
         fmt::format("for (long long c{0} = q{0} * {1}; c{0} < {2}; c{0} += l{0} * {1}) {{", id,
                     kChunk, width));
    line(depth + 2, fmt::format("const long long x{0} = c{0} + {1} < {2} ? c{0} + {1} : {2};", id,
                                kChunk, width));
    loop(s.var, "c" + id, "x" + id, depth + 2);
    accumulate(depth + 3);
    line(depth + 2, "}");
    line(depth + 1, "}");
    line(depth + 1, fmt::format("t{0}[q{0}] = a{0};", id));
    line(depth, "}");
    line(depth, fmt::format("a{0} = pw_folded<{1}, {2}<{1}>>(t{0}, l{0});", id, type, function));
  }

  void loop(const Statement& whole, int depth, const Phases& phases) {
    const std::string extent = index(program_.indices.extent(whole.var));
    const Block* const rest = strips(whole.first, whole.var, "0", extent, depth);
    if (rest == nullptr) return;
    if (rest != &whole.first) {
      divided_.push_back(whole);
      divided_.back().first = *rest;
    }
    const Statement& s = rest == &whole.first ? whole : divided_.back();
    if (!options_.strict && depth == kRow) elements_.make_tables(s, depth);
    simd(depth, s.first);
    const auto bounds = bounds_.find(s.var);
    const auto [from, to] =
        bounds != bounds_.end() ? bounds->second : std::pair<std::string, std::string>("0", extent);
    if (paired_.count(s.var) != 0) {
      line(depth, fmt::format("for (long long h{0} = {1} / 2; h{0} < {2} / 2; ++h{0}) {{",
                              s.var.index, from, to));
      inner_pair(s.first, depth + 1, phases, s.var, [](int) {});
      return line(depth, "}");
    }
    loop(s.var, from, to, depth);
    inner(s.first, depth + 1, phases, s.var);
    line(depth, "}");
  }

  void branch(const Statement& s, int depth) {
    line(depth, fmt::format("{} {};", held(dtype(s.slot)), slot(s.slot)));
    line(depth, fmt::format("if ({} < {}) {{", index(s.index), index(s.bound)));
    block(s.first, depth + 1);
    line(depth + 1, fmt::format("{} = {};", slot(s.slot), slot(s.operands[0])));
    line(depth, "} else {");
    block(s.second, depth + 1);
    line(depth + 1, fmt::format("{} = {};", slot(s.slot), slot(s.operands[1])));
    line(depth, "}");
  }

  void statement(const Statement& s, int depth, const Phases& phases) {
    switch (s.kind) {
      case Statement::Kind::constant:
        return elements_.define(depth, s, literal(s.real, dtype(s.slot)));
      case Statement::Kind::place: return elements_.define(depth, s, index(s.index));
      case Statement::Kind::load: return elements_.load(s, depth);
      case Statement::Kind::compute: return elements_.compute(s, depth);
      case Statement::Kind::reduce: return reduce(s, depth, phases);
      case Statement::Kind::branch: return branch(s, depth);
      case Statement::Kind::store: return elements_.store(s, depth);
      case Statement::Kind::check: return check(s, depth);
      case Statement::Kind::loop: return loop(s, depth, phases);
    }
  }

  const rows::RowProgram& program_;
  rows::Indices indices_;  // the program's, and those of places where results keep values
  const EmitOptions& options_;
  CppText text_;
  ElementText elements_;
  std::deque<Block> blocks_;       // parts of divided loops; others hold addresses of statements
  std::deque<Statement> divided_;  // loops over them
  std::set<rows::VarId> paired_;   // loops that take two columns at a time
  std::map<rows::VarId, std::pair<std::string, std::string>> bounds_;  // of loops in tiles
};

constexpr const char* kExact = "#define PW_EXACT 1\n";

}  // namespace

bool is_exact(std::string_view kernel) { return kernel.starts_with(kExact); }

std::string emit(const rows::RowProgram& program, const EmitOptions& options, RowParts* parts) {
  std::string out = options.exact ? kExact : "";
  out += fmt::format(
      "extern \"C\" void {}(void* const* p, const long long* d, long long begin, long long end) "
      "{{\n",
      kEntry);
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    const std::string type = fmt::format("{}{}*", program.arguments[i].result ? "" : "const ",
                                         storage(program.type(i).dtype));
    out += fmt::format("  {0} __restrict__ const p{1} = ({0})p[{1}];\n", type, i);
  }
  for (std::size_t i = 0; i < program.params.size(); ++i)
    out += fmt::format("  const long long {} = d[{}];\n",
                       i == 0 ? std::string("rows") : fmt::format("d{}", i), i);
  out += "  (void)rows;\n";
  if (program.checks) out += "  int bad = 0;\n";
  RowParts divided;
  out += Emitter(program, options).body(divided);
  if (parts != nullptr) *parts = divided;
  if (program.checks)
    out += fmt::format("  if (bad) __atomic_store_n((int*)p[{}], 1, __ATOMIC_RELAXED);\n",
                       program.arguments.size());
  return out + "}\n";
}

}  // namespace pw::cpu
