#include "backends/kernel.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "base/assert.hpp"

namespace pw {
namespace {

std::int64_t number(const Context& context, const Symbols& symbols, DimId dim) {
  const auto value = context.dims.evaluate(dim, symbols);
  PW_ASSERT(value.has_value(),
            "an attribute has a symbol without a value: " + context.dims.print(dim));
  return *value;
}

}  // namespace

bool is_library_call(const Op& op) {
  return !op.has_body() &&
         among(op.primitive, {Primitive::mm, Primitive::addmm, Primitive::scaled_mm,
                              Primitive::unified_attention});
}

DType Call::operand_dtype(std::size_t i) const {
  return graph.context().types[graph.type(graph.operand(node, i))].dtype;
}
bool Call::operand_weak(std::size_t i) const {
  return graph.context().types[graph.type(graph.operand(node, i))].shape.empty();
}
DType Call::result_dtype(std::size_t i) const {
  return graph.context().types[graph.type(graph.result(node, i))].dtype;
}

DType Call::common_dtype(std::size_t first) const {
  DType common = operand_dtype(first);
  bool weak = operand_weak(first);
  for (std::size_t i = first + 1; i < operands.size(); ++i) {
    common = promote(common, weak, operand_dtype(i), operand_weak(i));
    weak = weak && operand_weak(i);
  }
  return common;
}

std::int64_t Call::covered(std::size_t operand, std::size_t axis) const {
  const std::int64_t whole = operands[operand]->extents[axis];
  const DimId dim = graph.context().types[graph.type(graph.operand(node, operand))].shape[axis];
  if (context.valid == 0 || graph.context().dims.value(dim)) return whole;
  const std::string tokens = graph.facts.tokens();
  if (tokens.empty()) return whole;
  Symbols valid = context.symbols;
  valid[tokens] = context.valid;
  return std::clamp<std::int64_t>(number(graph.context(), valid, dim), 0, whole);
}

Array& Call::result(std::size_t i) {
  const DType dtype = storage(result_dtype(i));
  const TensorView* place = i < places.size() ? places[i] : nullptr;
  if (place != nullptr && place->dtype == dtype && place->extents == extents[i])
    results[i] = array_of(*place);
  else
    results[i] = make_array(dtype, extents[i]);
  return results[i];
}

void Call::set_result(Array y, std::size_t i) {
  if (i < places.size() && places[i] != nullptr)
    copy(y, result(i));
  else
    results[i] = std::move(y);
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* attribute = graph.attribute(node, name);
  if (attribute == nullptr) return otherwise;
  if (const auto* value = std::get_if<std::int64_t>(attribute)) return *value;
  if (const auto* value = std::get_if<bool>(attribute)) return *value ? 1 : 0;
  if (const auto* value = std::get_if<DimId>(attribute))
    return number(graph.context(), context.symbols, *value);
  if (const auto* value = std::get_if<double>(attribute)) return static_cast<std::int64_t>(*value);
  return otherwise;
}

double Call::real(std::string_view name, double otherwise) const {
  const Attribute* attribute = graph.attribute(node, name);
  if (attribute == nullptr) return otherwise;
  if (const auto* value = std::get_if<double>(attribute)) return *value;
  return std::holds_alternative<None>(*attribute) ? otherwise
                                                  : static_cast<double>(integer(name, 0));
}

Extents Call::dims(std::string_view name) const {
  Extents values;
  const Attribute* attribute = graph.attribute(node, name);
  if (attribute == nullptr) return values;
  const auto* list = std::get_if<std::vector<DimId>>(attribute);
  if (list == nullptr) return values;
  for (DimId dim : *list) values.push_back(number(graph.context(), context.symbols, dim));
  return values;
}

std::size_t Call::axis(std::string_view name, std::int64_t otherwise, std::int64_t rank) const {
  const std::int64_t axis = integer(name, otherwise);
  PW_ASSERT(axis >= -rank && axis < rank, "an axis is out of range");
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<std::int64_t>> group_ends(const Call& call) {
  auto ends = elements_of<std::int64_t>(call.operand(2));
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (end < begin || end > call.operand(0).extents[0])
      return fail_call(call, "PW1204",
                       fmt::format("a group ends at row {}, outside the remaining rows {} to {}",
                                   end, begin, call.operand(0).extents[0]));
    begin = end;
  }
  return ends;
}

Kernel find_kernel(KernelTable table, Primitive op) {
  for (const KernelEntry& entry : table) {
    if (entry.op == op) return entry.kernel;
  }
  return nullptr;
}

bool runs_op(KernelTable table, const Op& op) {
  return find_kernel(table, op.primitive) != nullptr ||
         find_kernel(layout_kernels(), op.primitive) != nullptr ||
         find_collective(op.primitive) != nullptr;
}

tl::unexpected<Diagnostics> fail_call(const Call& call, std::string_view code, std::string message,
                                      std::string help) {
  const std::string place =
      fmt::format("graph {} at node {} ({})", call.graph.name, call.graph.node_name(call.node),
                  call.graph.op_of(call.node).name);
  return fail(error_in(place, code, std::move(message), std::move(help)));
}

}  // namespace pw
