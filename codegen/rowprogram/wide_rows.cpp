#include "codegen/rowprogram/wide_rows.hpp"

#include <algorithm>

namespace pw::rows {
namespace {

constexpr std::int64_t kNarrow = 32, kFewRows = 16;

/// Returns the result's shape with as many of its last dims joined as is worth it.
Shape joined(Context& context, Shape shape) {
  const auto last = [&](std::size_t back) {
    return context.dims.value(shape[shape.size() - back]).value_or(0);
  };
  const auto rows = [&] {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 2 < shape.size() && count < kFewRows; ++i)
      count *= std::max<std::int64_t>(context.dims.value(shape[i]).value_or(kFewRows), 1);
    return count;
  };
  while (shape.size() > 2 && last(1) > 0 && last(1) < kNarrow && last(2) > 0 &&
         rows() >= kFewRows) {
    const std::int64_t size = last(1) * last(2);
    shape.pop_back();
    shape.back() = context.dims.constant(size);
  }
  return shape;
}

bool divides(const Indices& indices, IndexId id, const std::vector<VarId>& loops) {
  if (!id.valid()) return false;
  const Index& index = indices[id];
  const bool inside =
      std::any_of(loops.begin(), loops.end(), [&](VarId var) { return indices.depends(id, var); });
  if (!inside) return false;
  if (index.kind == Index::Kind::div || index.kind == Index::Kind::mod) return true;
  return divides(indices, index.a, loops) || divides(indices, index.b, loops);
}

bool divides(const RowProgram& program, const Block& block, std::vector<VarId>& loops) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    if (divides(program.indices, s.index, loops)) return true;
    const bool opens = s.var.valid();
    if (opens) loops.push_back(s.var);
    const bool found = divides(program, s.first, loops) || divides(program, s.second, loops);
    if (opens) loops.pop_back();
    return found;
  });
}

}  // namespace

bool join_narrow_rows(Graph& alone) {
  Context& context = alone.context();
  const OpId reshape = context.ops.find(Primitive::reshape);
  bool any = false;
  for (std::size_t i = 0; i < alone.outputs().size(); ++i) {
    const ValueId v = alone.outputs()[i];
    const Type type = context.types[alone.type(v)];
    const Shape shape = joined(context, type.shape);
    if (shape == type.shape) continue;
    NodeSpec spec;
    spec.op = reshape;
    spec.operands = {v};
    spec.attributes = context.attributes.intern({{context.strings.intern("shape"), shape}});
    spec.results = {{context.types.get(type.dtype, shape), ""}};
    alone.set_output(i, alone.result(alone.add_node(spec)));
    any = true;
  }
  return any;
}

bool divides_in_loops(const RowProgram& program) {
  std::vector<VarId> loops;
  return divides(program, program.body, loops);
}

}  // namespace pw::rows
