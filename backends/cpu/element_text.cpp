#include "backends/cpu/element_text.hpp"

#include <fmt/format.h>

#include "backends/cpu/tables.hpp"

namespace pw::cpu {

using rows::SlotId;
using rows::Statement;
using namespace rows::cxx;

ElementText::ElementText(const rows::RowProgram& program, const EmitOptions& options, CppText& text)
    : program_(program), indices_(program.indices), options_(options), text_(text) {
  find_uses(program.body, stored_, read_);
  if (!options.strict && !options.exact) find_divisions(program, program.body, divisions_);
}

std::string variable(rows::VarId id) { return fmt::format("i{}", id.index); }

void ElementText::define(int depth, const Statement& s, const std::string& value) {
  line(depth, fmt::format("const {} {} = {};", held(dtype(s.slot)), slot(s.slot), value));
}

/// The slot's bits in memory and the value they mean, so that a store need not convert again.
void ElementText::define_bits(int depth, const Statement& s, const std::string& bits) {
  const DType to = dtype(s.slot);
  line(depth, fmt::format("const {} b{} = {};", storage(to), s.slot.index, bits));
  define(depth, s, fmt::format("pw_from_{}(b{})", name(to), s.slot.index));
  with_bits_.insert(s.slot);
}

void ElementText::load(const Statement& s, int depth) {
  const DType from = program_.type(s.argument).dtype;
  const auto place = places_.find(s.slot);
  const std::string element =
      place != places_.end() ? place->second : fmt::format("p{}[{}]", s.argument, index(s.index));
  if (const auto table = tables_.find(&s); table != tables_.end())
    return define(depth, s, of_table(table->second));
  if (const auto word = words_.find(&s); word != words_.end())
    return load_from_word(s, word->second, depth);
  if (is_narrow(from)) return define_bits(depth, s, element);
  define(depth, s, loaded(from, element));
}

/// A word holds the first column of the pair in its lower half.
void ElementText::load_from_word(const Statement& s, const std::string& word, int depth) {
  const DType from = program_.type(s.argument).dtype;
  const int shift = *half * 8 * static_cast<int>(size_of(from));
  line(depth, fmt::format("const {} b{} = {} >> {};", storage(from), s.slot.index, word, shift));
  with_bits_.insert(s.slot);
  if (from == DType::bf16)
    return define(depth, s,
                  fmt::format("pw_float({} {})", word, *half == 0 ? "<< 16" : "& 0xffff0000u"));
  if (from == DType::f16)
    return define(depth, s,
                  fmt::format("pw_widened_f16({} {})", word, *half == 0 ? "& 0xffffu" : ">> 16"));
  return define(depth, s, fmt::format("pw_from_{}(b{})", name(from), s.slot.index));
}

/// Emits a division by a loop invariant as a product with its reciprocal.
std::string ElementText::value_of(const Statement& s) const {
  if (divisions_.quotients.count(s.slot) == 0 || reciprocals_.count(s.operands[1]) == 0)
    return computed(program_, s);
  return fmt::format("pw_mul({}, r{})", in_unit(program_, s.operands[0], s.unit),
                     s.operands[1].index);
}

void ElementText::compute(const Statement& s, int depth) {
  const std::string value = value_of(s);
  const DType to = dtype(s.slot);
  if (is_truth(program_, s)) return define(depth, s, value);
  if (!is_narrow(to)) return define(depth, s, rounded(value, s.unit, to));
  const bool wide = to == DType::bf16 || to == DType::f16;
  const bool stated = s.operation == Primitive::cast;
  const bool keep =
      options_.strict || options_.exact || stated || !wide || stored_.count(s.slot) != 0;
  if (keep && to == DType::bf16 && read_.count(s.slot) != 0) {  // its bits: the value's upper half
    exact_.insert(s.slot);
    return define(depth, s, rounded(value, s.unit, to));
  }
  if (keep && to == DType::bf16 && half) {  // rounded when its bits are joined with others
    late_.insert(s.slot);
    return define(depth, s, before_rounding(value, s.unit));
  }
  if (keep)
    return define_bits(depth, s,
                       fmt::format("pw_to_{}({})", name(to), before_rounding(value, s.unit)));
  define(depth, s, s.unit == rows::Unit::f32 ? value : "(float)(" + value + ")");
}

void ElementText::store(const Statement& s, int depth) {
  const DType to = program_.type(s.argument).dtype;
  const SlotId from = s.operands[0];
  std::string value = slot(from);
  const bool upper = to == DType::bf16 && exact_.count(from) != 0;  // it is rounded already
  if (with_bits_.count(from) != 0)
    value = fmt::format("b{}", from.index);
  else if (upper)
    value = fmt::format("(unsigned short)(pw_bits({}) >> 16)", value);
  else if (is_narrow(to))
    value = fmt::format("pw_to_{}({})", name(to), value);
  const auto word = words_.find(&s);
  if (word == words_.end())
    return line(depth, fmt::format("p{}[{}] = {};", s.argument, index(s.index), value));
  if (late_.count(from) != 0)
    return line(depth, *half == 0
                           ? fmt::format("{} = pw_above_bf16({}) >> 16;", word->second, slot(from))
                           : fmt::format("{} |= pw_above_bf16({}) & 0xffff0000u;", word->second,
                                         slot(from)));
  if (*half == 0) return line(depth, fmt::format("{} = {};", word->second, value));
  line(depth, upper
                  ? fmt::format("{} |= pw_bits({});", word->second, slot(from))
                  : fmt::format("{} |= (unsigned){} << {};", word->second, value, 8 * size_of(to)));
}

/// Returns the element of the current column of a pair.
std::string ElementText::of_table(const Table& table) const {
  const std::string start = *half == 0 ? "" : fmt::format("{} + ", table.columns / 2);
  return fmt::format("f{}[{}h{}]", table.number, start, table.var.index);
}

void ElementText::make_tables(const Statement& outer, int depth) {
  for (const auto& [loop, load] : read_each_turn(program_, outer)) {
    const std::int64_t columns = indices_.interval(indices_.extent(loop->var)).high;
    const rows::IndexId first = indices_.substitute(load->index, loop->var, indices_.constant(0));
    const auto [known, fresh] =
        table_numbers_.try_emplace({load->argument, first, columns}, table_numbers_.size());
    const Table table{known->second, columns, loop->var};
    tables_.emplace(load, table);
    if (!fresh) continue;
    line(depth, fmt::format("alignas(64) float f{}[{}];", table.number, columns));
    line(depth, "#pragma omp simd");
    line(depth, fmt::format("for (long long h{0} = 0; h{0} < {1}; ++h{0}) {{", loop->var.index,
                            columns / 2));
    for (const int column : {0, 1}) {
      half = column;
      line(depth + 1, "{");
      line(depth + 2, fmt::format("const long long {} = 2 * h{}{};", variable(loop->var),
                                  loop->var.index, column == 0 ? "" : " + 1"));
      line(depth + 2,
           fmt::format("{} = p{}[{}];", of_table(table), load->argument, index(load->index)));
      line(depth + 1, "}");
    }
    half.reset();
    line(depth, "}");
  }
}

void ElementText::define_kept(const Statement& s, const std::string& kept, int depth) {
  define(depth, s, kept);
  exact_.insert(s.slot);
}

void ElementText::share(SlotId read, SlotId kept) {
  if (stored_.count(read) != 0) stored_.insert(kept);
}

void ElementText::define_reciprocal(const Statement& s, int depth) {
  if (!s.slot.valid() || divisions_.divisors.count(s.slot) == 0) return;
  line(depth, fmt::format("const float r{} = pw_reciprocal({});", s.slot.index,
                          in_unit(program_, s.slot, rows::Unit::f32)));
  reciprocals_.insert(s.slot);
}

std::string ElementText::add_word(const Statement& s) {
  std::string name = fmt::format("w{}", words_.size());
  words_.emplace(&s, name);
  return name;
}

}  // namespace pw::cpu
