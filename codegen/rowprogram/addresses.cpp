#include "codegen/rowprogram/addresses.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::rows {
namespace {

constexpr std::uint64_t kMaxAddress = 1000;  // maximum operators of one address

}  // namespace

IndexId Addresses::extent(DimId dim) {
  if (!dim.valid()) throw Opaque{"a dim exceeds 64 bits"};
  if (const auto value = context_.dims.value(dim)) return program_.indices.constant(*value);
  const std::int64_t low = context_.dims.bounds(dim, graph_.facts).min.value_or(0);
  auto found = std::find(program_.params.begin(), program_.params.end(), dim);
  if (found == program_.params.end()) found = program_.params.insert(found, dim);
  return program_.indices.param(ParamId(static_cast<std::size_t>(found - program_.params.begin())),
                                low);
}

IndexId Addresses::linear(const Shape& shape, const Position& at) {
  IndexId offset = program_.indices.constant(0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    offset = program_.indices.add(program_.indices.mul(offset, extent(shape[i])), at[i]);
  }
  if (program_.indices.size(offset) > kMaxAddress)
    throw Opaque{"its layout needs addresses that are too long"};
  return offset;
}

std::size_t Addresses::axis(NodeId node, std::string_view name, std::size_t rank) const {
  const Attribute* attribute = graph_.attribute(node, name);
  const auto* value = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
  if (!value) throw Opaque{fmt::format("op {} does not name an axis", graph_.op_of(node).name)};
  const std::int64_t a = *value < 0 ? *value + static_cast<std::int64_t>(rank) : *value;
  if (a < 0 || a >= static_cast<std::int64_t>(rank))
    throw Opaque{
        fmt::format("op {} names an axis that its operand does not have", graph_.op_of(node).name)};
  return static_cast<std::size_t>(a);
}

std::vector<VarId> Addresses::vars_of(const Position& at) const {
  std::vector<VarId> vars;
  for (IndexId i : at) vars = union_of(vars, program_.indices.vars(i));
  return vars;
}

/// Matches dims at equal products of leading extents, so that only dims that are split or joined
/// need division.
Position Addresses::reshaped(const Shape& from, const Shape& to, const Position& at) {
  const auto products = [&](const Shape& s) {
    std::vector<DimId> out{context_.dims.constant(1)};
    for (DimId d : s)
      out.push_back(out.back().valid() ? context_.dims.mul(out.back(), d) : out.back());
    return out;
  };
  const std::vector<DimId> before = products(from), after = products(to);
  Indices& indices = program_.indices;
  Position inner(from.size());
  for (std::size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    std::size_t i2 = from.size(),
                j2 = to.size();  // the whole rest, unless a nearer match is found
    for (std::size_t a = i + 1; a < from.size() && i2 == from.size(); ++a) {
      for (std::size_t b = j + 1; b < to.size(); ++b) {
        if (before[a].valid() && before[a] == after[b]) {
          i2 = a, j2 = b;
          break;
        }
      }
    }
    IndexId rest = indices.constant(0);
    for (; j < j2; ++j) rest = indices.add(indices.mul(rest, extent(to[j])), at[j]);
    for (std::size_t k = i2; k-- > i;) {
      inner[k] = k == i ? rest : indices.mod(rest, extent(from[k]));
      if (k != i) rest = indices.div(rest, extent(from[k]));
    }
    i = i2;
  }
  return inner;
}

}  // namespace pw::rows
