// Collectives. An all-reduce makes a partial sum whole, a gather joins the parts, and a shard or a
// reduce-scatter cuts.
// A collective is correct for any layout if each rank's value is known: an all_gather is then a
// concatenation, and an all_reduce a sum of the ranks' values.
#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {
namespace {

/// Opaque collectives, and their reductions.
std::optional<Primitive> foreign_join(const Graph& graph, NodeId node) {
  if (graph.op_of(node).name.rfind("_c10d_functional.all_reduce", 0) != 0) return std::nullopt;
  const auto* how = std::get_if<std::string>(graph.attribute(node, "arg1"));
  if (how == nullptr) return std::nullopt;
  if (*how == "sum") return Primitive::sum;
  if (*how == "max") return Primitive::amax;
  if (*how == "min") return Primitive::amin;
  return std::nullopt;
}

}  // namespace

Found CollectiveTransfer::collective() {
  if (is(Primitive::all_reduce)) return all_reduce(Primitive::sum);
  if (is(Primitive::all_gather)) return all_gather();
  if (is(Primitive::reduce_scatter)) return reduce_scatter();
  if (is(Primitive::shard)) return shard();
  if (const auto join = foreign_join(graph(), nodes_[0])) return all_reduce(*join);
  if (op_.name.rfind("_c10d_functional.broadcast", 0) == 0 && in_.size() == 1) {
    const auto each = spreader_.each_of(*in_[0]);
    return each ? one(replicated_as(each->front())) : std::nullopt;
  }
  return std::nullopt;
}

/// Returns the layout of a reduction over the ranks that is not a sum of the single device.
std::optional<Wholes::Values> CollectiveTransfer::joined_sum(const Spread& spread) {
  const auto each = spreader_.each_of(spread);
  if (!each) return std::nullopt;
  ValueId sum = each->front();
  for (std::size_t r = 1; r < each->size() && sum.valid(); ++r)
    sum = wholes_.one(Primitive::add, {sum, (*each)[r]}, {});
  if (!sum.valid()) return std::nullopt;
  return Wholes::Values{sum};
}

/// A maximum of equal values is that value; their sum is not.
Found CollectiveTransfer::all_reduce(Primitive join) {
  const Spread& x = *in_[0];
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  if (x.kind == Spread::Kind::partial && x.join == join) {
    if (join == Primitive::sum) reorders_sums();
    return one(replicated_as(x.whole));
  }
  if (join != Primitive::sum) {
    if (x.kind == Spread::Kind::whole) return one(replicated_as(x.whole));
    return std::nullopt;
  }
  const auto sum = joined_sum(x);
  return sum ? one(replicated_as(sum->front())) : std::nullopt;
}

/// A cut of several parts is not whole after a gather, since the parts of all ranks alternate. It
/// becomes the concatenation of all ranks' values.
Found CollectiveTransfer::all_gather() {
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  if (x.kind == Spread::Kind::cut && x.axis == *at && x.parts.size() == 1)
    return one(replicated_as(x.whole));
  const auto each = spreader_.each_of(x);
  return each ? one(replicated_as(wholes_.cat(*each, *at))) : std::nullopt;
}

Found CollectiveTransfer::reduce_scatter() {
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  ValueId sum = x.whole;
  if (x.kind == Spread::Kind::partial && x.join == Primitive::sum) {
    reorders_sums();
  } else {
    const auto joined = joined_sum(x);
    if (!joined) return std::nullopt;
    sum = joined->front();
  }
  return one(cut(sum, *at, {local_result()[*at]}));
}

/// Each rank takes its slice of a replicated value.
Found CollectiveTransfer::shard() {
  const auto at = axis();
  if (!at || in_[0]->kind != Spread::Kind::whole) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(in_[0]->whole));
  return one(cut(in_[0]->whole, *at, {local_result()[*at]}));
}

}  // namespace pw::proof
