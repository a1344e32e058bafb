// One function for each op at which a rule's match begins, called in graph order. A rewrite's new
// node and its predecessors are retried at once.
#include "bench/hand_compiled.hpp"

#include <algorithm>

namespace pw::bench {
namespace {

template <class T>
const T* get(const Context& context, AttributesId attributes, NameId name) {
  const Attribute* value = context.attributes.find(attributes, name);
  return value == nullptr ? nullptr : std::get_if<T>(value);
}

}  // namespace

const char* name(HandRule rule) {
  static constexpr const char* kNames[] = {
      "add_rms",         "rms_quant",          "add_rms_quant",
      "rms_quant_dyn",   "add_rms_quant_dyn",  "silu_mul",
      "silu_mul_slices", "silu_mul_quant",     "silu_mul_quant_dyn",
      "all_reduce_rms",  "all_reduce_add_rms", "reshape_chain",
      "reshape_id"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::size_t total(const HandCounts& counts) {
  std::size_t out = 0;
  for (std::size_t count : counts) out += count;
  return out;
}

HandCompiled::HandCompiled(Graph& graph) : graph_(graph), context_(graph.context()) {
  kinds_.resize(context_.ops.size(), Kind::other);
  know(Kind::add, "add", add_);
  know(Kind::rms, "rms_norm", rms_);
  know(Kind::fused, "fused_add_rms_norm", fused_);
  know(Kind::silu, "silu", silu_);
  know(Kind::act, "silu_and_mul", act_);
  know(Kind::reduce, "all_reduce", reduce_);
  know(Kind::reshape, "reshape", reshape_);
  know(Kind::other, "static_scaled_fp8_quant", quant_);
  know(Kind::other, "dynamic_per_token_fp8_quant", dyn_);
  know(Kind::other, "split", split_);
  know(Kind::other, "slice", slice_);
  know(Kind::other, "mul", mul_);
  know(Kind::other, "rms_norm_static_fp8_quant", rms_quant_);
  know(Kind::other, "fused_add_rms_norm_static_fp8_quant", fused_quant_);
  know(Kind::other, "rms_norm_dynamic_per_token_quant", rms_dyn_);
  know(Kind::other, "fused_add_rms_norm_dynamic_per_token_quant", fused_dyn_);
  know(Kind::other, "silu_and_mul_quant", act_quant_);
  know(Kind::other, "silu_and_mul_dynamic_quant", act_dyn_);
  know(Kind::other, "fused_all_reduce_rms_norm", reduce_rms_);
  know(Kind::other, "fused_all_reduce_add_rms_norm", reduce_add_rms_);
  Strings& strings = context_.strings;
  eps_ = strings.intern("eps");
  group_ = strings.intern("group");
  dim_ = strings.intern("dim");
  sizes_ = strings.intern("sizes");
  start_ = strings.intern("start");
  end_ = strings.intern("end");
  step_ = strings.intern("step");
  shape_ = strings.intern("shape");
  wide_ = strings.intern("wide");
  scale_ = context_.types.get(DType::f32, {context_.dims.constant(1)});
}

void HandCompiled::know(Kind kind, const char* op, OpId& id) {
  id = context_.ops.find(op);
  if (kind != Kind::other) kinds_[id.index] = kind;
}

HandCounts HandCompiled::scan() {
  HandCounts counts{};
  for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
    each(n, [&](const Match& match) {
      counts[static_cast<std::size_t>(match.rule)] += legal(match) ? 1 : 0;
      return false;
    });
  return counts;
}

HandCounts HandCompiled::run() {
  counts_ = {};
  for (NodeId n : graph_.order()) {
    if (graph_.alive(n)) visit(n);
    while (!work_.empty()) {
      const NodeId again = work_.back();
      work_.pop_back();
      if (graph_.alive(again)) visit(again);
    }
  }
  return counts_;
}

void HandCompiled::visit(NodeId node) {
  each(node, [&](const Match& match) {
    if (!legal(match)) return false;
    apply(match);
    return true;
  });
}

/// Calls the sink with the structural matches that begin at the node until it returns true.
template <class Sink>
bool HandCompiled::each(NodeId node, Sink&& sink) {
  switch (kinds_[graph_.op(node).index]) {
    case Kind::other: return false;
    case Kind::add: return at_add(node, sink);
    case Kind::rms: return at_rms(node, sink);
    case Kind::fused: return at_fused(node, sink);
    case Kind::silu: return at_silu(node, sink);
    case Kind::act: return at_activation(node, sink);
    case Kind::reduce: return at_reduce(node, sink);
    case Kind::reshape: return at_reshape(node, sink);
  }
  return false;
}

/// The norms of a value, the first one first.
const std::vector<NodeId>& HandCompiled::norms_of(ValueId value) {
  norms_.clear();
  for (UseId u = graph_.first_use(value); u.valid(); u = graph_.next_use(u))
    if (graph_.op(graph_.user(u)) == rms_ && graph_.use_operand(u) == 0)
      norms_.push_back(graph_.user(u));
  if (norms_.size() > 1)
    std::sort(norms_.begin(), norms_.end(),
              [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); });
  return norms_;
}

template <class Sink>
bool HandCompiled::at_add(NodeId add, Sink&& sink) {
  const ValueId x = graph_.operand(add, 0), res = graph_.operand(add, 1), r = graph_.result(add);
  if (!same_type(x, res)) return false;
  for (NodeId rms : norms_of(r)) {
    const ValueId w = graph_.operand(rms, 1);
    if (!is_weight_of(w, x)) continue;
    Match match{HandRule::add_rms, fused_, narrow(graph_.attributes(rms))};
    match.set({add, rms}, {x, res, w}, {graph_.result(rms), r});
    if (sink(match)) return true;
  }
  return false;
}

template <class Sink>
bool HandCompiled::at_rms(NodeId rms, Sink&& sink) {
  const ValueId x = graph_.operand(rms, 0), w = graph_.operand(rms, 1);
  const NodeId quant = only_user(graph_.result(rms));
  if (!quant.valid()) return false;
  if (graph_.op(quant) == quant_) {
    const ValueId s = graph_.operand(quant, 1);
    if (!is_scale(s) || !is_weight_of(w, x)) return false;
    Match match{HandRule::rms_quant, rms_quant_, graph_.attributes(rms)};
    match.set({rms, quant}, {x, w, s}, {graph_.result(quant)});
    return sink(match);
  }
  if (graph_.op(quant) != dyn_ || !is_weight_of(w, x)) return false;
  Match match{HandRule::rms_quant_dyn, rms_dyn_, graph_.attributes(rms)};
  match.set({rms, quant}, {x, w}, {graph_.result(quant, 0), graph_.result(quant, 1)});
  return sink(match);
}

template <class Sink>
bool HandCompiled::at_fused(NodeId fused, Sink&& sink) {
  const ValueId x = graph_.operand(fused, 0), res = graph_.operand(fused, 1),
                w = graph_.operand(fused, 2), y = graph_.result(fused, 0),
                r = graph_.result(fused, 1);
  if (!is_narrow(graph_.attributes(fused))) return false;
  for (const auto& [h, other] : {std::pair(x, res), std::pair(res, x)}) {
    const NodeId reduce = graph_.producer(h);
    if (!reduce.valid() || graph_.op(reduce) != reduce_ || only_user(h) != fused) continue;
    Match match{HandRule::all_reduce_add_rms, reduce_add_rms_, merged(reduce, fused)};
    match.set({reduce, fused}, {graph_.operand(reduce, 0), other, w}, {y, r});
    if (sink(match)) return true;
  }
  const NodeId quant = only_user(y);
  if (!quant.valid()) return false;
  if (graph_.op(quant) == quant_) {
    const ValueId s = graph_.operand(quant, 1);
    if (!is_scale(s) || !is_weight_of(w, x)) return false;
    Match match{HandRule::add_rms_quant, fused_quant_, graph_.attributes(fused)};
    match.set({fused, quant}, {x, res, w, s}, {graph_.result(quant), r});
    return sink(match);
  }
  if (graph_.op(quant) != dyn_ || !is_weight_of(w, x)) return false;
  Match match{HandRule::add_rms_quant_dyn, fused_dyn_, graph_.attributes(fused)};
  match.set({fused, quant}, {x, res, w}, {graph_.result(quant, 0), graph_.result(quant, 1), r});
  return sink(match);
}

template <class Sink>
bool HandCompiled::at_silu(NodeId silu, Sink&& sink) {
  const ValueId g = graph_.operand(silu, 0);
  const NodeId lower = graph_.producer(g), mul = only_user(graph_.result(silu));
  if (!lower.valid() || !mul.valid() || graph_.op(mul) != mul_ || only_user(g) != silu)
    return false;
  const bool first = graph_.operand(mul, 0) == graph_.result(silu);
  const ValueId u = graph_.operand(mul, first ? 1 : 0);
  const NodeId upper = graph_.producer(u);
  if (!upper.valid() || only_user(u) != mul) return false;
  const ValueId both = graph_.operand(lower, 0);
  if (graph_.op(lower) == split_) {
    if (upper != lower || graph_.result(lower, 0) != g || !is_split_in_two(lower)) return false;
    Match match{HandRule::silu_mul, act_, Attributes::empty()};
    match.set({lower, silu, mul}, {both}, {graph_.result(mul)});
    return sink(match);
  }
  if (graph_.op(lower) != slice_ || graph_.op(upper) != slice_ || upper == lower ||
      graph_.operand(upper, 0) != both || !is_half(lower, 0) || !is_half(upper, 1))
    return false;
  Match match{HandRule::silu_mul_slices, act_, Attributes::empty()};
  const bool in_order = graph_.label(lower) < graph_.label(upper);
  match.set({in_order ? lower : upper, in_order ? upper : lower, silu, mul}, {both},
            {graph_.result(mul)});
  return sink(match);
}

template <class Sink>
bool HandCompiled::at_activation(NodeId act, Sink&& sink) {
  const ValueId both = graph_.operand(act, 0);
  const NodeId quant = only_user(graph_.result(act));
  if (!quant.valid()) return false;
  if (graph_.op(quant) == quant_) {
    const ValueId s = graph_.operand(quant, 1);
    if (!is_scale(s)) return false;
    Match match{HandRule::silu_mul_quant, act_quant_, Attributes::empty()};
    match.set({act, quant}, {both, s}, {graph_.result(quant)});
    return sink(match);
  }
  if (graph_.op(quant) != dyn_) return false;
  Match match{HandRule::silu_mul_quant_dyn, act_dyn_, Attributes::empty()};
  match.set({act, quant}, {both}, {graph_.result(quant, 0), graph_.result(quant, 1)});
  return sink(match);
}

template <class Sink>
bool HandCompiled::at_reduce(NodeId reduce, Sink&& sink) {
  const ValueId h = graph_.result(reduce);
  for (NodeId rms : norms_of(h)) {
    Match match{HandRule::all_reduce_rms, reduce_rms_, merged(reduce, rms)};
    match.set({reduce, rms}, {graph_.operand(reduce, 0), graph_.operand(rms, 1)},
              {graph_.result(rms), h});
    if (sink(match)) return true;
  }
  return false;
}

template <class Sink>
bool HandCompiled::at_reshape(NodeId reshape, Sink&& sink) {
  const ValueId x = graph_.operand(reshape, 0), y = graph_.result(reshape);
  const NodeId inner = graph_.producer(x);
  if (inner.valid() && graph_.op(inner) == reshape_ && only_user(x) == reshape) {
    Match match{HandRule::reshape_chain, reshape_, graph_.attributes(reshape)};
    match.set({inner, reshape}, {graph_.operand(inner, 0)}, {y});
    if (sink(match)) return true;
  }
  if (!same_type(x, y)) return false;
  const auto* shape = get<std::vector<DimId>>(context_, graph_.attributes(reshape), shape_);
  if (shape == nullptr || *shape != context_.types[graph_.type(x)].shape) return false;
  Match match{HandRule::reshape_id, OpId(), AttributesId()};
  match.set({reshape}, {x}, {y});
  return sink(match);
}

/// The node that alone reads the value, once; invalid if there are more, or if it is an output.
NodeId HandCompiled::only_user(ValueId value) const {
  if (graph_.use_count(value) != 1 || graph_.is_output(value)) return {};
  return graph_.user(graph_.first_use(value));
}

bool HandCompiled::is_scale(ValueId value) const { return graph_.type(value) == scale_; }

/// rows: T[*b, d], weight: T[d]
bool HandCompiled::is_weight_of(ValueId weight, ValueId rows) {
  const TypeId a = graph_.type(weight), b = graph_.type(rows);
  if (a == weight_ && b == rows_) return true;
  if (a == Types::unknown() || b == Types::unknown()) return false;
  const Type &w = context_.types[a], &x = context_.types[b];
  if (w.dtype != x.dtype || w.shape.size() != 1 || x.shape.empty() ||
      w.shape.front() != x.shape.back())
    return false;
  weight_ = a;
  rows_ = b;
  return true;
}

bool HandCompiled::same_type(ValueId a, ValueId b) const {
  return graph_.type(a) == graph_.type(b) && graph_.type(a) != Types::unknown();
}

bool HandCompiled::is_last_axis(NodeId node) const {
  const auto* dim = get<std::int64_t>(context_, graph_.attributes(node), dim_);
  if (dim == nullptr) return false;
  if (*dim == -1) return true;
  const TypeId type = graph_.type(graph_.operand(node, 0));
  return type != Types::unknown() &&
         *dim + 1 == static_cast<std::int64_t>(context_.types[type].shape.size());
}

bool HandCompiled::is_split_in_two(NodeId split) {
  if (graph_.attributes(split) == halving_) return true;
  if (graph_.result_count(split) != 2 || !is_last_axis(split)) return false;
  const auto* sizes = get<std::vector<DimId>>(context_, graph_.attributes(split), sizes_);
  if (sizes == nullptr || sizes->size() != 2 || (*sizes)[0] != (*sizes)[1]) return false;
  if (*get<std::int64_t>(context_, graph_.attributes(split), dim_) == -1)
    halving_ = graph_.attributes(split);
  return true;
}

/// Half 0 or 1 of the last axis.
bool HandCompiled::is_half(NodeId slice, std::int64_t half) const {
  const TypeId type = graph_.type(graph_.operand(slice, 0));
  if (type == Types::unknown() || !is_last_axis(slice)) return false;
  const auto width = context_.dims.value(context_.types[type].shape.back());
  const AttributesId given = graph_.attributes(slice);
  const auto *start = get<std::int64_t>(context_, given, start_),
             *end = get<std::int64_t>(context_, given, end_),
             *step = get<std::int64_t>(context_, given, step_);
  return width && *width % 2 == 0 && start != nullptr && end != nullptr && step != nullptr &&
         *step == 1 && *start == half * *width / 2 && *end == (half + 1) * *width / 2;
}

/// The group of the one and the attributes of the other.
AttributesId HandCompiled::merged(NodeId reduce, NodeId norm) {
  const std::pair from(graph_.attributes(reduce), graph_.attributes(norm));
  if (from == merged_from_) return merged_;
  AttributeList list = context_.attributes[from.second];
  list.emplace_back(group_, *context_.attributes.find(from.first, group_));
  merged_from_ = from;
  return merged_ = context_.attributes.intern(std::move(list));
}

/// Uses the default of `wide` from the op library.
AttributesId HandCompiled::narrow(AttributesId attributes) {
  if (attributes == plain_) return narrowed_;
  AttributeList list = context_.attributes[attributes];
  list.emplace_back(wide_, false);
  plain_ = attributes;
  return narrowed_ = context_.attributes.intern(std::move(list));
}

bool HandCompiled::is_narrow(AttributesId fused) {
  if (fused == known_narrow_) return true;
  const bool* wide = get<bool>(context_, fused, wide_);
  if (wide != nullptr && *wide) return false;
  known_narrow_ = fused;
  return true;
}

/// The new node takes the place of the first node of the match, if its operands exist there.
bool HandCompiled::reads_stand_before(const Match& match) const {
  const std::uint64_t first = graph_.label(match.own[0]);
  for (std::size_t i = 0; i < match.read_count; ++i) {
    const NodeId producer = graph_.producer(match.reads[i]);
    if (producer.valid() && graph_.label(producer) >= first) return false;
  }
  return true;
}

bool HandCompiled::legal(const Match& match) const {
  return reads_stand_before(match) || !leads_back(match);
}

/// Returns true if a path leads from a user of the match's writes to a producer of its reads.
bool HandCompiled::leads_back(const Match& match) const {
  std::uint64_t last = 0;
  std::vector<NodeId> producers, seen, work;
  for (std::size_t i = 0; i < match.read_count; ++i) {
    const NodeId producer = graph_.producer(match.reads[i]);
    if (!producer.valid()) continue;
    producers.push_back(producer);
    last = std::max(last, graph_.label(producer));
  }
  const auto follow = [&](ValueId value) {
    for (UseId u = graph_.first_use(value); u.valid(); u = graph_.next_use(u)) {
      const NodeId user = graph_.user(u);
      const auto own = match.own.begin() + match.own_count;
      if (graph_.label(user) > last || std::find(match.own.begin(), own, user) != own) continue;
      if (std::find(seen.begin(), seen.end(), user) != seen.end()) continue;
      seen.push_back(user);
      work.push_back(user);
    }
  };
  for (std::size_t i = 0; i < match.write_count; ++i) follow(match.writes[i]);
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    if (std::find(producers.begin(), producers.end(), node) != producers.end()) return true;
    for (std::size_t i = 0; i < graph_.result_count(node); ++i) follow(graph_.result(node, i));
  }
  return false;
}

void HandCompiled::apply(const Match& match) {
  ++counts_[static_cast<std::size_t>(match.rule)];
  const std::span reads(match.reads.data(), match.read_count);
  const std::span writes(match.writes.data(), match.write_count);
  const std::span own(match.own.data(), match.own_count);
  NodeId made;
  if (match.op.valid()) {
    if (reads_stand_before(match))
      graph_.insert_before(own.front());
    else
      graph_.make_room(reads, writes, own);
    made = make(match);
    graph_.insert_before({});
    for (std::size_t i = 0; i < writes.size(); ++i) {
      graph_.replace_uses(writes[i], graph_.result(made, i));
      graph_.take_name(graph_.result(made, i), writes[i]);
    }
  } else {
    graph_.replace_uses(writes[0], reads[0]);
  }
  for (std::size_t i = own.size(); i-- > 0;) graph_.erase(own[i]);
  // An operand may begin a match with its new reader; the new node goes first.
  for (ValueId v : reads)
    if (const NodeId producer = graph_.producer(v); producer.valid()) work_.push_back(producer);
  if (made.valid()) work_.push_back(made);
}

NodeId HandCompiled::make(const Match& match) {
  std::array<TypeId, 4> types;
  for (std::size_t i = 0; i < match.write_count; ++i) types[i] = graph_.type(match.writes[i]);
  return graph_.add_node(match.op, {match.reads.data(), match.read_count}, match.attributes,
                         {types.data(), match.write_count}, match.own[0]);
}

}  // namespace pw::bench
