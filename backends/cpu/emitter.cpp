// Exports emit and compiler_flags.
#include "backends/cpu/emitter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/phases.hpp"
#include "backends/rowprogram/cxx.hpp"

namespace pw::cpu {
namespace {

using rows::Block;
using rows::Operation;
using rows::SlotId;
using rows::Statement;
using namespace rows::cxx;

constexpr std::int64_t kChunk = 8;  // columns that a lane of the tree adds in a row

void find_stored(const Block& block, std::set<SlotId>& stored) {
  for (const Statement& s : block) {
    if (s.kind == Statement::Kind::store) stored.insert(s.operands[0]);
    find_stored(s.first, stored);
    find_stored(s.second, stored);
  }
}

class Emitter {
 public:
  Emitter(const rows::RowProgram& program, const EmitOptions& options)
      : program_(program), options_(options) {
    find_stored(program.body, stored_);
  }

  std::string body() {
    block(program_.body, 2);
    return std::move(out_);
  }

 private:
  std::string index(rows::IndexId id) const { return program_.indices.print(id); }
  static std::string variable(rows::VarId id) { return fmt::format("i{}", id.index); }
  DType dtype(SlotId id) const { return program_.slots[id]; }
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }

  void block(const Block& statements, int depth) {
    const Phases phases = share_phases(program_, statements);
    // What is stored as it is read must have been rounded as it was kept.
    for (const auto& [read, kept] : phases.read) {
      if (stored_.count(read) != 0) stored_.insert(kept);
    }
    for (const auto& [slot, shared] : phases.kept)
      line(depth,
           fmt::format("alignas(64) {} k{}[{}];", held(dtype(slot)), slot.index, shared.extent));
    for (const Statement& s : statements) statement(s, depth, phases);
  }

  /// The body of a loop: what phases share is kept or read at the place of `var`.
  void inner(const Block& statements, int depth, const Phases& phases, rows::VarId var) {
    if (!is_flat(statements)) return block(statements, depth);
    for (const Statement& s : statements) {
      if (s.slot.valid() && phases.idle.count(s.slot) != 0) continue;
      if (const auto kept = phases.read.find(s.slot); s.slot.valid() && kept != phases.read.end()) {
        line(depth, fmt::format("const {} {} = k{}[{}];", held(dtype(s.slot)), slot(s.slot),
                                kept->second.index, variable(var)));
        exact_.insert(s.slot);
        continue;
      }
      statement(s, depth, phases);
      if (s.slot.valid() && phases.kept.count(s.slot) != 0)
        line(depth, fmt::format("k{}[{}] = {};", s.slot.index, variable(var), slot(s.slot)));
    }
  }

  void define(int depth, const Statement& s, const std::string& value) {
    line(depth, fmt::format("const {} {} = {};", held(dtype(s.slot)), slot(s.slot), value));
  }

  /// The slot's bits in memory and the value they mean, so that a store need not convert again.
  void define_bits(int depth, const Statement& s, const std::string& bits) {
    const DType to = dtype(s.slot);
    line(depth, fmt::format("const {} b{} = {};", storage(to), s.slot.index, bits));
    define(depth, s, fmt::format("pw_from_{}(b{})", name(to), s.slot.index));
    with_bits_.insert(s.slot);
  }

  void load(const Statement& s, int depth) {
    const DType from = program_.type(s.argument).dtype;
    const std::string element = fmt::format("p{}[{}]", s.argument, index(s.index));
    if (is_narrow(from)) return define_bits(depth, s, element);
    define(depth, s, loaded(from, element));
  }

  void compute(const Statement& s, int depth) {
    const std::string value = computed(program_, s);
    const DType to = dtype(s.slot);
    if (is_truth(program_, s)) return define(depth, s, value);
    if (!is_narrow(to)) return define(depth, s, rounded(value, s.unit, to));
    const bool wide = to == DType::bf16 || to == DType::f16;
    const bool keep = options_.strict || !wide || stored_.count(s.slot) != 0;
    if (keep && to == DType::bf16) {  // the bits are the upper half of the value's
      exact_.insert(s.slot);
      return define(depth, s, rounded(value, s.unit, to));
    }
    if (keep)
      return define_bits(depth, s,
                         fmt::format("pw_to_{}({})", name(to), before_rounding(value, s.unit)));
    define(depth, s, s.unit == rows::Unit::f32 ? value : "(float)(" + value + ")");
  }

  void store(const Statement& s, int depth) {
    const DType to = program_.type(s.argument).dtype;
    const SlotId from = s.operands[0];
    std::string value = slot(from);
    if (with_bits_.count(from) != 0)
      value = fmt::format("b{}", from.index);
    else if (to == DType::bf16 && exact_.count(from) != 0)
      value = fmt::format("(unsigned short)(pw_bits({}) >> 16)", value);  // it is rounded already
    else if (is_narrow(to))
      value = fmt::format("pw_to_{}({})", name(to), value);
    line(depth, fmt::format("p{}[{}] = {};", s.argument, index(s.index), value));
  }

  void simd(int depth, const Block& body, const std::string& clause = {}) {
    if (is_flat(body)) line(depth, "#pragma omp simd" + clause);
  }

  void loop(rows::VarId var, const std::string& from, const std::string& to, int depth) {
    line(depth,
         fmt::format("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", variable(var), from, to));
  }

  void reduce(const Statement& s, int depth, const Phases& phases) {
    const std::string id = std::to_string(s.slot.index), type(type_of(s.unit));
    const bool mean = s.operation == Operation::mean;
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
    if (!options_.strict || most <= kChunk) {
      if (!options_.strict)
        simd(depth + 1, s.first, fmt::format(" reduction({}:a{})", function, id));
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

  /// The tree without a buffer, for rows of any length.
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
      case Statement::Kind::constant: return define(depth, s, literal(s.real, dtype(s.slot)));
      case Statement::Kind::load: return load(s, depth);
      case Statement::Kind::compute: return compute(s, depth);
      case Statement::Kind::reduce: return reduce(s, depth, phases);
      case Statement::Kind::branch: return branch(s, depth);
      case Statement::Kind::store: return store(s, depth);
      case Statement::Kind::loop:
        simd(depth, s.first);
        loop(s.var, "0", index(program_.indices.extent(s.var)), depth);
        inner(s.first, depth + 1, phases, s.var);
        return line(depth, "}");
    }
  }

  const rows::RowProgram& program_;
  const EmitOptions& options_;
  std::set<SlotId> stored_, with_bits_, exact_;
  std::string out_;
};

}  // namespace

std::string emit(const rows::RowProgram& program, const EmitOptions& options) {
  std::string out = fmt::format(
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
  if (is_flat(program.body)) out += "#pragma omp simd\n";
  out += "  for (long long row = begin; row < end; ++row) {\n";
  out += Emitter(program, options).body();
  return out + "  }\n}\n";
}

std::vector<std::string> compiler_flags(const EmitOptions& options, bool native) {
  std::vector<std::string> flags{"-std=c++17",
                                 "-O3",
                                 "-w",
                                 "-fopenmp-simd",
                                 "-fno-math-errno",
                                 "-fno-trapping-math",
                                 "-fno-exceptions",
                                 "-fno-rtti",
                                 "-ffp-contract=off"};
  if (!options.strict) flags.back() = "-ffp-contract=fast";
  if (native) flags.emplace_back("-march=native");
#if defined(__x86_64__)
  if (native) flags.emplace_back("-mprefer-vector-width=512");
#endif
  return flags;
}

}  // namespace pw::cpu
