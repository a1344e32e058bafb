// Attributes and numbers that have several spellings are brought into one, so that equal nodes
// compare equal. Each attribute is normalised on its own; numbers of a whole graph are settled in
// one pass over its nodes.
#include "graph/compare/canonical.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "graph/passes/writes.hpp"

namespace pw {
namespace {

constexpr std::int64_t kToTheEnd = std::int64_t{1} << 40;  // dumps write 2^63 - 1

Attribute* value_of(Context& context, AttributeList& list, std::string_view name) {
  const NameId key = context.strings.intern(name);
  const auto it =
      std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == key; });
  return it == list.end() ? nullptr : &it->second;
}

/// Sorts two axes. With an unknown rank, only if both count from the same side.
void sort_axes(Attribute* a, Attribute* b) {
  auto* first = a == nullptr ? nullptr : std::get_if<std::int64_t>(a);
  auto* second = b == nullptr ? nullptr : std::get_if<std::int64_t>(b);
  if (first == nullptr || second == nullptr || (*first < 0) != (*second < 0)) return;
  if (*second < *first) std::swap(*first, *second);
}

bool is_slice_bound(const Op& op, std::string_view attribute) {
  return op.primitive == Primitive::slice && (attribute == "start" || attribute == "end");
}

/// Clamps a bound to the extent, if their order is known.
Attribute slice_bound(Dims& dims, DimId size, const Attribute& bound) {
  const auto* at = std::get_if<std::int64_t>(&bound);
  if (at == nullptr) return bound;
  const std::optional<std::int64_t> extent = dims.value(size);
  if (!extent) return *at >= kToTheEnd ? Attribute(size) : bound;
  return *at < 0 ? std::max<std::int64_t>(*extent + *at, 0) : std::min(*at, *extent);
}

std::optional<DimId> extent_at(const Context& context, TypeId type, const Attribute* axis) {
  const auto* at = axis == nullptr ? nullptr : std::get_if<std::int64_t>(axis);
  if (at == nullptr || !type.valid() || type == Types::unknown()) return std::nullopt;
  const Shape& shape = context.types[type].shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (*at < 0 || *at >= rank) return std::nullopt;
  return shape[static_cast<std::size_t>(*at)];
}

struct Format {
  DType dtype;
  int digits;    ///< of the significand
  int smallest;  ///< exponent of the smallest positive number
};
/// The formats that do not hold every double.
constexpr std::array<Format, 5> kFormats{{{DType::f8e4m3, 4, -9},
                                          {DType::f8e5m2, 3, -16},
                                          {DType::f16, 11, -24},
                                          {DType::bf16, 8, -133},
                                          {DType::f32, 24, -149}}};

bool is_pointwise_primitive(const Op& op) { return op.traits.pointwise && !op.has_body(); }

// ---- numbers of a whole graph

/// Returns the values whose memory some node writes, and the values that these are views of.
std::set<ValueId> written_values(const Graph& graph) {
  std::set<ValueId> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    for (const OperandWrite& write : writes_of(graph, n))
      for (ValueId v = write.written; v.valid() && out.insert(v).second;) {
        const NodeId maker = graph.producer(v);
        const bool is_view = maker.valid() && graph.op_of(maker).traits.view;
        v = is_view && graph.operand_count(maker) > 0 ? graph.operand(maker, 0) : ValueId();
      }
  return out;
}

class NumberSettler {
 public:
  NumberSettler(Graph& graph, OpId full, OpId constant)
      : graph_(graph), full_(full), constant_(constant), written_(written_values(graph)) {}

  void run() {
    for (NodeId n = graph_.first(); n.valid();) {
      const NodeId next = graph_.next(n);
      if (graph_.op(n) == full_ && is_one_number(n)) settle(n);
      n = next;
    }
  }

 private:
  [[nodiscard]] const Shape& shape(ValueId v) const {
    return graph_.context().types[graph_.type(v)].shape;
  }

  [[nodiscard]] bool is_one_number(NodeId n) const {
    const ValueId v = graph_.result(n);
    if (graph_.type(v) == Types::unknown() || written_.contains(v)) return false;
    const Dims& dims = graph_.context().dims;
    return std::all_of(shape(v).begin(), shape(v).end(),
                       [&](DimId d) { return dims.value(d) == 1; });
  }

  [[nodiscard]] AttributesId attributes_of(NodeId n) const {
    Attributes& attributes = graph_.context().attributes;
    AttributeList list = attributes[graph_.attributes(n)];
    const NameId key = graph_.context().strings.intern("shape");
    std::erase_if(list, [&](const auto& entry) { return entry.first == key; });
    return attributes.intern(std::move(list));
  }

  void settle(NodeId n) {
    const ValueId v = graph_.result(n);
    if (shape(v).empty()) {
      if (graph_.is_output(v)) return;
      graph_.set_attributes(n, attributes_of(n));
      graph_.set_op(n, constant_);
      return;
    }
    ValueId number;
    for (const NodeId user : graph_.users(v))
      for (std::size_t i = 0; i < graph_.operand_count(user); ++i)
        if (graph_.operand(user, i) == v && may_be_rank_0(user, i)) {
          if (!number.valid()) number = number_before(n);
          graph_.set_operand(user, i, number);
        }
    if (graph_.unused(v)) graph_.erase(n);
  }

  /// Returns true if a rank-0 operand keeps the result's type, and the dtype in which every number
  /// is read.
  [[nodiscard]] bool may_be_rank_0(NodeId user, std::size_t slot) const {
    if (!is_pointwise_primitive(graph_.op_of(user))) return false;
    const ValueId own = graph_.operand(user, slot);
    const DType dtype = graph_.context().types[graph_.type(own)].dtype;
    bool wide_enough = false;
    for (std::size_t i = 0; i < graph_.operand_count(user); ++i) {
      const ValueId other = graph_.operand(user, i);
      if (i == slot) continue;
      if (!other.valid() || graph_.type(other) == Types::unknown()) return false;
      if (graph_.context().types[graph_.type(other)].dtype != dtype) return false;
      wide_enough = wide_enough || shape(other).size() >= shape(own).size();
    }
    return wide_enough;
  }

  ValueId number_before(NodeId n) {
    const ValueId v = graph_.result(n);
    const DType dtype = graph_.context().types[graph_.type(v)].dtype;
    NodeSpec spec;
    spec.op = constant_;
    spec.attributes = attributes_of(n);
    spec.results = {{graph_.context().types.get(dtype, {}),
                     graph_.fresh_name(std::string(graph_.value_name(v)) + "_number")}};
    spec.group = graph_.group(n);
    spec.source = graph_.source(n);
    const NodeId before = graph_.insertion_point();
    graph_.insert_before(n);
    const ValueId number = graph_.result(graph_.add_node(spec));
    graph_.insert_before(before);
    return number;
  }

  Graph& graph_;
  OpId full_, constant_;
  std::set<ValueId> written_;
};

}  // namespace

void make_canonical(Context& context, const Op& op, AttributeList& attributes,
                    std::span<const TypeId> operands) {
  if (op.primitive == Primitive::transpose)
    return sort_axes(value_of(context, attributes, "dim0"), value_of(context, attributes, "dim1"));
  if (op.primitive != Primitive::slice || operands.empty()) return;
  const auto size = extent_at(context, operands[0], value_of(context, attributes, "dim"));
  for (const std::string_view bound : {"start", "end"})
    if (Attribute* value = value_of(context, attributes, bound); value != nullptr && size)
      *value = slice_bound(context.dims, *size, *value);
}

std::string_view twin_axis(const Op& op, std::string_view attribute) {
  if (op.primitive != Primitive::transpose) return {};
  return attribute == "dim0" ? "dim1" : attribute == "dim1" ? "dim0" : std::string_view();
}

Attribute as_in_node(const Graph& graph, NodeId node, std::string_view attribute, Attribute value) {
  const Op& op = graph.op_of(node);
  const ValueId first = graph.operand_count(node) > 0 ? graph.operand(node, 0) : ValueId();
  if (!first.valid() || graph.type(first) == Types::unknown()) return value;
  if (is_slice_bound(op, attribute)) {
    const auto size = extent_at(graph.context(), graph.type(first), graph.attribute(node, "dim"));
    return size ? slice_bound(graph.context().dims, *size, value) : value;
  }
  const AttributeDecl* decl = op.attribute(attribute);
  const auto* axis = std::get_if<std::int64_t>(&value);
  if (decl == nullptr || decl->kind != AttributeKind::axis || axis == nullptr || *axis >= 0)
    return value;
  return *axis + static_cast<std::int64_t>(graph.context().types[graph.type(first)].shape.size());
}

void settle_numbers(Graph& graph) {
  const OpId full = graph.context().ops.find(Primitive::full);
  const OpId constant = graph.context().ops.find(Primitive::constant);
  if (!full.valid() || !constant.valid() || graph.node_count(full) == 0) return;
  NumberSettler(graph, full, constant).run();
}

double as_held(DType dtype, double value) {
  const auto format = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const Format& f) { return f.dtype == dtype; });
  if (format == kFormats.end() || value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - format->digits, format->smallest);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

DType number_dtype(const Graph& graph, NodeId user, std::size_t slot) {
  const Types& types = graph.context().types;
  const TypeId own = graph.type(graph.operand(user, slot));
  const DType dtype = own == Types::unknown() ? DType::f64 : types[own].dtype;
  if (!is_pointwise_primitive(graph.op_of(user))) return dtype;
  std::optional<DType> all;
  bool weak = true;
  for (std::size_t i = 0; i < graph.operand_count(user); ++i) {
    const ValueId v = graph.operand(user, i);
    if (!v.valid()) continue;
    if (graph.type(v) == Types::unknown()) return dtype;
    const Type& type = types[graph.type(v)];
    all = all ? promote(*all, weak, type.dtype, type.shape.empty()) : type.dtype;
    weak = weak && type.shape.empty();
  }
  return is_float(*all) && *all != DType::f64 ? DType::f32 : *all;
}

double number_read(const Graph& graph, NodeId user, std::size_t slot, NodeId number) {
  const auto* value = std::get_if<double>(graph.attribute(number, "value"));
  const auto* own = std::get_if<DType>(graph.attribute(number, "dtype"));
  const double held = as_held(own == nullptr ? DType::f64 : *own, value == nullptr ? 0 : *value);
  return as_held(number_dtype(graph, user, slot), held);
}

}  // namespace pw
