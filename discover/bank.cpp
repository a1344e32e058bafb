// Bottom-up enumeration with pruning by observational equivalence. Values are grouped by
// fingerprint, a hash of their elements over the prime field at random inputs. Only the first value
// of a class is used as an operand, so the number of values grows with the classes and not with the
// graphs. Shared operands count once in the size of a graph. Invariant: level n is complete before
// level n + 1 begins.
#include "discover/bank.hpp"

#include <algorithm>
#include <set>

namespace pw::discover {
namespace {

Attribute of_sizes(Context& context, const std::vector<std::int64_t>& sizes) {
  std::vector<DimId> dims;
  for (std::int64_t size : sizes) dims.push_back(context.dims.constant(size));
  return dims;
}

}  // namespace

Bank::Bank(const ContextPtr& context, Evaluator& evaluator, const Vocabulary& vocabulary,
           std::vector<TypeId> inputs, std::uint64_t seed)
    : context_(context),
      evaluator_(evaluator),
      vocabulary_(vocabulary),
      inputs_(std::move(inputs)) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Value value;
    value.node = kInput;
    value.type = inputs_[i];
    value.tensor = random_tensor(*context_, inputs_[i], seed, i);
    value.fingerprint = combine(value.tensor.hash(), inputs_[i].index);
    known_.emplace(value.fingerprint, static_cast<std::uint32_t>(i));
    values_.push_back(std::move(value));
  }
  for (const Choice& choice : vocabulary_.choices) {
    const Op& op = context_->ops[choice.op];
    const bool variadic = !op.operands.empty() && op.operands.back().variadic;
    arity_ = std::max(arity_, variadic ? vocabulary_.variadic : op.operands.size());
  }
}

bool Bank::takes(const Op& op, std::size_t operands) const {
  if (!op.operands.empty() && op.operands.back().variadic)
    return operands >= 2 && operands <= vocabulary_.variadic;
  return op.operands.size() == operands;
}

void Bank::grow(std::size_t nodes, bool last, const Found& found) {
  level_ = nodes;
  bound_ = values_.size();
  found_ = &found;
  ended_ = false;
  std::vector<std::uint32_t> operands;
  for (std::size_t arity = 1; arity <= arity_; ++arity) choose(operands, {}, 0, arity, last);
}

/// Operands with `level_ - 1` nodes in total.
void Bank::choose(std::vector<std::uint32_t>& operands, const Cone& cone, std::size_t size,
                  std::size_t wanted, bool last) {
  if (ended_) return;
  if (operands.size() == wanted) {
    if (size + 1 == level_) make(operands, cone, size, last);
    return;
  }
  const auto take = [&](std::uint32_t value) {
    const Value& operand = values_[value];
    Cone joined = cone;
    std::size_t count = size;
    for (std::size_t i = 0; i < operand.size; ++i) {
      const auto end = joined.begin() + static_cast<std::ptrdiff_t>(count);
      if (std::find(joined.begin(), end, operand.cone[i]) != end) continue;
      if (count + 1 >= level_) return;
      joined[count++] = operand.cone[i];
    }
    operands.push_back(value);
    choose(operands, joined, count, wanted, last);
    operands.pop_back();
  };
  if (size + 1 == level_) {  // only inputs and existing values
    for (std::uint32_t i = 0; i < inputs_.size(); ++i) take(i);
    Cone sorted = cone;
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(size));
    for (std::size_t i = 0; i < size; ++i) {
      const Made node = nodes_[sorted[i]];
      for (std::uint32_t r = 0; r < node.results; ++r) take(node.first + r);
    }
    return;
  }
  for (std::uint32_t i = 0; i < bound_ && !ended_; ++i) take(i);
}

std::vector<AttributeList> Bank::attribute_lists(const Choice& choice,
                                                 const std::vector<TypeId>& types) const {
  const Op& op = context_->ops[choice.op];
  std::vector<AttributeList> lists{{}};
  const auto each = [&](NameId name, const std::vector<Attribute>& values) {
    std::vector<AttributeList> next;
    for (const AttributeList& list : lists)
      for (const Attribute& value : values) {
        next.push_back(list);
        next.back().emplace_back(name, value);
      }
    lists = std::move(next);
  };
  const Shape& shape = context_->types[types[0]].shape;
  const bool takes_apart = !op.results.empty() && op.results.back().variadic;
  for (const AttributeDecl& attribute : op.attributes) {
    const NameId name = context_->strings.intern(attribute.name);
    const auto given = std::find_if(choice.given.begin(), choice.given.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    std::vector<Attribute> values;
    if (given != choice.given.end()) {
      values.push_back(given->second);
    } else if (attribute.kind == AttributeKind::axis) {
      for (std::size_t i = 0; i < shape.size(); ++i) values.emplace_back(std::int64_t(i));
    } else if (takes_apart && attribute.kind == AttributeKind::dims) {
      std::set<std::int64_t> extents;
      for (DimId dim : shape) extents.insert(context_->dims.value(dim).value_or(0));
      for (std::int64_t extent : extents)
        if (const auto parts = vocabulary_.parts.find(extent); parts != vocabulary_.parts.end())
          for (const auto& sizes : parts->second) values.push_back(of_sizes(*context_, sizes));
    } else {
      continue;
    }
    each(name, values);
  }
  return lists;
}

const Bank::Inferred& Bank::inferred(std::size_t choice, const std::vector<TypeId>& types) {
  const auto [at, fresh] = inferred_.try_emplace({choice, types});
  if (!fresh) return at->second;
  const Choice& chosen = vocabulary_.choices[choice];
  const Op& op = context_->ops[chosen.op];
  std::set<AttributesId> seen;
  for (const AttributeList& list : attribute_lists(chosen, types)) {
    // Choose two swapped axes only once.
    std::vector<std::int64_t> axes;
    for (const AttributeDecl& attribute : op.attributes)
      if (attribute.kind == AttributeKind::axis)
        for (const auto& [name, value] : list)
          if (context_->strings.text(name) == attribute.name)
            axes.push_back(std::get<std::int64_t>(value));
    if (axes.size() == 2 && axes[0] >= axes[1]) continue;
    const auto complete = complete_attributes(*context_, op, list, types);
    if (!complete || !seen.insert(*complete).second) continue;
    const auto results = infer_types(*context_, chosen.op, types, *complete);
    if (!results || results->empty()) continue;
    at->second.attributes.push_back(*complete);
    at->second.results.push_back(*results);
  }
  return at->second;
}

void Bank::make(const std::vector<std::uint32_t>& operands, const Cone& cone, std::size_t size,
                bool last) {
  std::vector<TypeId> types;
  for (std::uint32_t operand : operands) types.push_back(values_[operand].type);
  for (std::size_t c = 0; c < vocabulary_.choices.size() && !ended_; ++c) {
    const Op& op = context_->ops[vocabulary_.choices[c].op];
    if (!takes(op, operands.size())) continue;
    if (op.traits.commutative && operands.size() >= 2 && operands[0] > operands[1]) continue;
    const Inferred& known = inferred(c, types);
    for (std::size_t i = 0; i < known.attributes.size() && !ended_; ++i) {
      std::vector<const Tensor*> in;
      for (std::uint32_t operand : operands) in.push_back(&values_[operand].tensor);
      ++tried_;
      auto results = evaluator_.run(vocabulary_.choices[c].op, in, types, known.attributes[i],
                                    known.results[i]);
      if (!results) continue;
      Made node{vocabulary_.choices[c].op, known.attributes[i], operands,
                static_cast<std::uint32_t>(values_.size()),
                static_cast<std::uint32_t>(results->size())};
      add(node, known.results[i], std::move(*results), cone, size, last);
    }
  }
}

void Bank::add(const Made& node, const std::vector<TypeId>& types, std::vector<Tensor> results,
               const Cone& cone, std::size_t size, bool last) {
  std::vector<std::uint32_t> equal;
  fresh_.clear();
  bool keep = false;
  for (std::uint32_t i = 0; i < node.results; ++i) {
    fresh_.push_back(combine(results[i].hash(), types[i].index));
    const auto known = known_.find(fresh_.back());
    equal.push_back(known == known_.end() ? node.first + i : known->second);
    keep = keep || known == known_.end();
  }
  if (!(*found_)(node, equal)) ended_ = true;
  if (!keep) return;
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  for (std::uint32_t i = 0; i < node.results; ++i) {
    Value value;
    value.node = id;
    value.type = types[i];
    value.fingerprint = fresh_[i];
    value.cone = cone;
    value.cone[size] = id;
    value.size = static_cast<std::uint8_t>(size + 1);
    if (!last) value.tensor = std::move(results[i]);
    known_.emplace(value.fingerprint, node.first + i);
    values_.push_back(std::move(value));
  }
  nodes_.push_back(node);
}

std::optional<std::vector<std::uint32_t>> Bank::covering(
    const std::vector<std::uint64_t>& fingerprints, const Made& node) const {
  std::set<std::uint32_t> inner;
  for (std::uint32_t operand : node.operands) {
    const Value& value = values_[operand];
    for (std::size_t i = 0; i < value.size; ++i)
      for (std::uint32_t r = 0; r < nodes_[value.cone[i]].results; ++r)
        inner.insert(nodes_[value.cone[i]].first + r);
  }
  std::vector<std::uint32_t> out;
  bool own = false;
  for (std::uint64_t wanted : fingerprints) {
    const auto result = std::find(fresh_.begin(), fresh_.end(), wanted);
    if (result != fresh_.end()) {
      out.push_back(node.first + static_cast<std::uint32_t>(result - fresh_.begin()));
      own = true;
      continue;
    }
    const auto within = std::find_if(inner.begin(), inner.end(), [&](std::uint32_t value) {
      return values_[value].fingerprint == wanted;
    });
    if (within == inner.end()) return std::nullopt;
    out.push_back(*within);
  }
  return own ? std::optional(out) : std::nullopt;
}

Form Bank::form(const std::vector<std::uint32_t>& outputs, const Made* extra) const {
  std::map<std::uint32_t, std::size_t> place;  // of values
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) place[i] = i;
  Form out;
  std::size_t next = inputs_.size();
  const auto put = [&](const Made& node) {
    Step step{node.op, {}, node.attributes, node.results};
    for (std::uint32_t operand : node.operands) step.operands.push_back(place.at(operand));
    for (std::uint32_t i = 0; i < node.results; ++i) place[node.first + i] = next++;
    out.steps.push_back(std::move(step));
  };
  std::set<std::uint32_t> needed;
  const auto need = [&](std::uint32_t value) {
    const Value& v = values_[value];
    needed.insert(v.cone.begin(), v.cone.begin() + v.size);
  };
  const auto of_extra = [&](std::uint32_t value) {
    return extra && value >= extra->first && value < extra->first + extra->results;
  };
  for (std::uint32_t value : outputs)
    if (!of_extra(value)) need(value);
  if (extra)
    for (std::uint32_t operand : extra->operands) need(operand);
  for (std::uint32_t node : needed) put(nodes_[node]);
  if (extra) put(*extra);
  for (std::uint32_t value : outputs) out.outputs.push_back(place.at(value));
  return out;
}

}  // namespace pw::discover
