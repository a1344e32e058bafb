// Decides which neighbours of a product run in its kernel. Invariant: the kernel is launched in
// place of the last of its units, and moving the others there passes no reader of their results.
#include "cuda/joined_products.hpp"

#include <algorithm>
#include <utility>

#include "graph/ops/product.hpp"

namespace pw::cuda {

using UnitKind = rows::RunUnit::Kind;

bool is_read_whole(const Graph& graph, ValueId weight) {
  if (graph.context().types[graph.type(weight)].shape.size() < 2) return true;
  const std::vector<NodeId> users = graph.users(weight);
  return std::all_of(users.begin(), users.end(), [&](NodeId user) {
    if (graph.op_of(user).primitive == Primitive::transpose)
      return is_read_whole(graph, graph.result(user));
    return product_of(graph.op_of(user)).has_value();
  });
}

ProductJoiner::ProductJoiner(const Graph& graph, const std::vector<rows::RunUnit>& units,
                             std::function<ValueId(ValueId)> root)
    : graph_(graph),
      units_(units),
      root_(std::move(root)),
      unit_of_(graph.node_bound()),
      readers_(graph.value_bound()),
      returned_(graph.value_bound()),
      taken_(units.size()) {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (units_[i].kind == UnitKind::view) continue;
    for (NodeId n : units_[i].nodes) {
      unit_of_[n.index] = i;
      for (ValueId v : graph_.operands(n)) {
        if (!v.valid()) continue;
        std::vector<std::size_t>& all = readers_[root_(v).index];
        if (all.empty() || all.back() != i) all.push_back(i);
      }
    }
  }
  for (ValueId v : graph_.outputs()) returned_[root_(v).index] = 1;
}

/// Returns the group that computes a for this product alone.
std::optional<std::size_t> ProductJoiner::before(std::size_t unit, ValueId a) const {
  const ValueId from = root_(a);
  if (graph_.is_input(from) || returned_[from.index] != 0) return std::nullopt;
  const std::size_t maker = unit_of_[graph_.producer(from).index];
  const bool alone = readers_[from.index] == std::vector<std::size_t>{unit};
  if (!alone || taken_[maker] != 0 || units_[maker].kind != UnitKind::rows ||
      !place(units_[maker].outputs, from))
    return std::nullopt;
  return maker;
}

/// Returns the group that alone reads y.
std::optional<std::size_t> ProductJoiner::after(std::size_t unit, ValueId y) const {
  const std::vector<std::size_t>& readers = readers_[y.index];
  if (returned_[y.index] != 0 || readers.size() != 1 || readers[0] <= unit) return std::nullopt;
  const rows::RunUnit& reader = units_[readers[0]];
  const auto shows_y = [&](ValueId v) { return root_(v) == y; };
  if (taken_[readers[0]] != 0 || reader.kind != UnitKind::rows ||
      std::count_if(reader.inputs.begin(), reader.inputs.end(), shows_y) != 1)
    return std::nullopt;
  return readers[0];
}

/// Returns true if no unit up to `to` reads what the group before the product leaves in memory.
bool ProductJoiner::may_move(std::size_t before, ValueId a, std::size_t to) const {
  const std::vector<ValueId>& results = units_[before].outputs;
  return std::all_of(results.begin(), results.end(), [&](ValueId v) {
    if (v == root_(a)) return true;
    const std::vector<std::size_t>& all = readers_[root_(v).index];
    return std::all_of(all.begin(), all.end(),
                       [&](std::size_t reader) { return reader == before || reader > to; });
  });
}

std::optional<std::size_t> ProductJoiner::place(const std::vector<ValueId>& values,
                                                ValueId v) const {
  const auto at =
      std::find_if(values.begin(), values.end(), [&](ValueId x) { return root_(x) == v; });
  if (at == values.end()) return std::nullopt;
  return static_cast<std::size_t>(at - values.begin());
}

/// Returns true if a group computes the keys and values, with a row for each of the product.
bool ProductJoiner::computes(std::size_t unit, const TensorProduct& product,
                             const CachedValues& cached) const {
  const auto is_computed = [&](ValueId v) {
    const auto& type = graph_.context().types[graph_.type(v)];
    return place(units_[unit].outputs, root_(v)) && !type.shape.empty() &&
           type.shape[0] == product.rows &&
           type.dtype == graph_.context().types[graph_.type(root_(v))].dtype;
  };
  return is_computed(cached.k) && is_computed(cached.v);
}

std::vector<std::size_t> ProductJoiner::units_of(std::size_t unit, const Neighbours& with) {
  std::vector<std::size_t> out{unit};
  for (const auto& other : {with.before, with.after})
    if (other) out.push_back(*other);
  std::sort(out.begin(), out.end());
  return out;
}

/// Adds the pages of keys and of values to the results of a kernel.
void ProductJoiner::put_in_pages(const Neighbours& with, StreamedProduct& streamed,
                                 std::vector<TypeId>& results) const {
  const rows::RunUnit& group = units_[*with.after];
  for (const ValueId v : {with.cached->k, with.cached->v}) {
    const std::size_t argument = group.inputs.size() + *place(group.outputs, root_(v));
    streamed.paged->results.push_back({argument, streamed.arguments.size() + results.size()});
    results.push_back(group.program.arguments[argument].type);
  }
}

std::optional<JoinedProduct> ProductJoiner::joined(std::size_t unit, const TensorProduct& product,
                                                   const std::vector<ValueId>& operands,
                                                   const Neighbours& with,
                                                   std::string_view arch) const {
  StreamedProduct streamed;
  streamed.product = product;
  JoinedProduct out;
  std::vector<TypeId> results;
  const ValueId y = graph_.result(units_[unit].nodes.back());
  const auto read = [&](ValueId v, TypeId type) {
    out.reads.push_back(v);
    streamed.arguments.push_back(type);
    return out.reads.size() - 1;
  };
  const auto inputs = [&](std::size_t of, std::optional<ValueId> but) {
    const rows::RunUnit& group = units_[of];
    JoinedProgram joined{&group.program, 0, {}};
    for (std::size_t i = 0; i < group.inputs.size(); ++i) {
      const bool through = but && root_(group.inputs[i]) == *but;
      if (through) joined.through = i;
      joined.arguments.push_back(through ? 0
                                         : read(group.inputs[i], group.program.arguments[i].type));
    }
    return joined;
  };
  if (with.before) streamed.before = inputs(*with.before, std::nullopt);
  for (std::size_t i = 0; i < operands.size(); ++i)
    streamed.operands.push_back(
        with.before && i == product.a ? 0 : read(operands[i], product.operands[i]));
  if (with.after) streamed.after = inputs(*with.after, y);
  if (with.cached) {
    streamed.paged = RowsInPages{out.reads.size(), with.cached->width, {}};
    streamed.arguments.push_back(graph_.context().types.get(DType::i64, {product.rows}));
  }
  const auto write = [&](ValueId v, TypeId type) {
    out.writes.push_back(v);
    results.push_back(type);
    return streamed.arguments.size() + out.writes.size() - 1;
  };
  const auto outputs = [&](std::size_t of, JoinedProgram& joined, std::optional<ValueId> but) {
    const rows::RunUnit& group = units_[of];
    for (std::size_t i = 0; i < group.outputs.size(); ++i) {
      const std::size_t argument = group.inputs.size() + i;
      const bool through = but && group.outputs[i] == *but;
      if (through) joined.through = argument;
      joined.arguments.push_back(
          through ? 0 : write(group.outputs[i], group.program.arguments[argument].type));
    }
  };
  if (with.before) outputs(*with.before, *streamed.before, root_(operands[product.a]));
  if (with.after)
    outputs(*with.after, *streamed.after, std::nullopt);
  else
    streamed.result = write(y, product.result);
  if (with.cached) put_in_pages(with, streamed, results);
  out.fills_pages = with.cached.has_value();
  streamed.results = results.size();
  streamed.arguments.insert(streamed.arguments.end(), results.begin(), results.end());
  auto kernel = streamed_product(streamed, arch, graph_.context());
  if (!kernel) return std::nullopt;
  out.kernel = std::move(*kernel);
  out.streamed = std::move(streamed);
  out.units = units_of(unit, with);
  return out;
}

std::optional<JoinedProduct> ProductJoiner::join(std::size_t unit, const TensorProduct& product,
                                                 const std::vector<ValueId>& operands,
                                                 std::string_view arch,
                                                 const std::optional<CachedValues>& cached) {
  const ValueId a = operands[product.a], y = graph_.result(units_[unit].nodes.back());
  const auto first = before(unit, a), last = after(unit, y);
  std::vector<Neighbours> tries{{first, last}, {{}, last}, {first, {}}, {{}, {}}};
  if (cached && last && computes(*last, product, *cached))
    tries.insert(tries.begin(), {{first, last, cached}, {{}, last, cached}});
  for (const Neighbours& with : tries) {
    if (with.before && !may_move(*with.before, a, with.after.value_or(unit))) continue;
    auto out = joined(unit, product, operands, with, arch);
    if (!out) continue;
    for (std::size_t taken : out->units) taken_[taken] = 1;
    return out;
  }
  return std::nullopt;
}

}  // namespace pw::cuda
