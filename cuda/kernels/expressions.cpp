// Text of the expressions of a row program. A narrow float has up to three names: its value as a
// rounded float, its bits in memory, and the float before rounding. The compiler drops those that
// are not used, so emitting them costs nothing at run time.
#include "cuda/kernels/expressions.hpp"

#include <fmt/format.h>

namespace pw::cuda {

using rows::SlotId;
using rows::Statement;
using rows::Unit;
namespace cxx = rows::cxx;

std::string Expressions::slot(SlotId id) { return cxx::slot(id); }
std::string Expressions::unrounded(SlotId id) { return fmt::format("x{}", id.index); }
std::string Expressions::bits(SlotId id) { return fmt::format("b{}", id.index); }

std::string Expressions::in_unit(SlotId id, Unit unit) const {
  return cxx::in_unit(program_, id, unit);
}

std::string Expressions::given(SlotId id, const std::string& text) const {
  const DType to = dtype(id);
  std::string out = fmt::format("const {} {} = {};", held(to), slot(id), text);
  if (is_narrow(to))
    out += fmt::format(" const {} {} = pw_to_{}({});", storage(to), bits(id), name(to), slot(id));
  return out;
}

std::string Expressions::loaded(SlotId id, const std::string& element) const {
  const DType from = dtype(id);
  if (!is_narrow(from)) return given(id, cxx::loaded(from, element));
  return fmt::format("const {} {} = {}; const float {} = pw_from_{}({});", storage(from), bits(id),
                     element, slot(id), name(from), bits(id));
}

/// The only place at which narrow values are rounded: declares the unrounded float, its bits in
/// memory, and the rounded value.
std::string Expressions::rounded(SlotId id, const std::string& text, Unit unit) const {
  const DType to = dtype(id);
  if (!is_narrow(to)) return given(id, cxx::rounded(text, unit, to));
  const std::string before = cxx::before_rounding(text, unit);
  if (to == DType::bf16)  // each is one instruction; most values need only one of them
    return fmt::format(
        "const float {0} = {1}; const {2} {3} = pw_to_bf16({0}); const float {4} = "
        "pw_round_bf16({0});",
        unrounded(id), before, storage(to), bits(id), slot(id));
  if (to == DType::f8e4m3)
    return fmt::format("const float {} = {}; ", unrounded(id), before) +
           loaded(id, fmt::format("pw_to_{}({})", name(to), unrounded(id)));
  return loaded(id, fmt::format("pw_to_{}({})", name(to), cxx::before_rounding(text, unit)));
}

std::string Expressions::stored(SlotId id) const {
  return is_narrow(dtype(id)) ? bits(id) : slot(id);
}

std::string Expressions::defined(const Statement& s) const {
  if (s.kind == Statement::Kind::constant)
    return given(s.slot, cxx::literal(s.real, dtype(s.slot)));
  const std::string text = cxx::computed(program_, s);
  return cxx::is_truth(program_, s) ? given(s.slot, text) : rounded(s.slot, text, s.unit);
}

}  // namespace pw::cuda
