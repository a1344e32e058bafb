// Alias analysis over views: decides how a write to one tensor affects another of the same storage.
// Tensors form a forest, in which each view has a base and the steps that lead to it. For a write
// and a read, the paths up to their common ancestor are compared. An empty path means that one
// contains the other; otherwise the first steps are disjoint if they take different parts of a
// split, or disjoint constant intervals of one axis. Every other case counts as overlapping.
//
// Invariant: the result is conservative. `none` is returned only if the tensors cannot share an
// element; `unsure` if it is not known whether they share memory. Cost: linear in the depth of the
// views.
#include "import/fx/emit/memory.hpp"

#include <algorithm>

namespace pw::fx {
namespace {

const Attribute* attribute_of(const Context& context, const ViewStep& step, std::string_view name) {
  return context.attributes.find(step.attributes, name);
}

std::optional<std::int64_t> constant_of(const Context& context, const Attribute* a) {
  if (a == nullptr) return std::nullopt;
  if (auto i = std::get_if<std::int64_t>(a)) return *i;
  if (auto d = std::get_if<DimId>(a)) return context.dims.value(*d);
  return std::nullopt;
}

/// Interval [begin, end) of one axis that a first step takes of its base.
struct Interval {
  std::int64_t axis = 0, begin = 0, end = 0;
};

std::optional<Interval> interval_of(const Context& context, const ViewStep& step) {
  const std::string& op = context.ops[step.op].name;
  std::optional<std::int64_t> axis = constant_of(context, attribute_of(context, step, "dim"));
  if (!axis) return std::nullopt;
  if (op == "slice") {
    std::optional<std::int64_t> begin = constant_of(context, attribute_of(context, step, "start")),
                                end = constant_of(context, attribute_of(context, step, "end"));
    if (!begin || !end) return std::nullopt;
    return Interval{*axis, *begin, *end};
  }
  if (op != "split") return std::nullopt;
  const Attribute* sizes = attribute_of(context, step, "sizes");
  auto parts = sizes == nullptr ? nullptr : std::get_if<std::vector<DimId>>(sizes);
  if (parts == nullptr || step.result >= parts->size()) return std::nullopt;
  Interval out{*axis, 0, 0};
  for (std::size_t i = 0; i <= step.result; ++i) {
    std::optional<std::int64_t> size = context.dims.value((*parts)[i]);
    if (!size) return std::nullopt;
    out.begin = out.end;
    out.end += *size;
  }
  return out;
}

/// Returns true if two views of one base have no element in common for certain.
bool disjoint(const Context& context, const Tensor& a, const Tensor& b) {
  if (a.steps.empty() || b.steps.empty()) return false;
  const ViewStep &x = a.steps.front(), &y = b.steps.front();
  if (x.op == y.op && x.attributes == y.attributes && x.result != y.result &&
      context.ops[x.op].name == "split")
    return true;
  std::optional<Interval> i = interval_of(context, x), j = interval_of(context, y);
  return i && j && i->axis == j->axis && (i->end <= j->begin || j->end <= i->begin);
}

}  // namespace

TensorId Memory::add_storage(ValueId value, std::optional<Shape> strides) {
  Tensor t;
  t.storage = static_cast<std::uint32_t>(storages.size());
  t.value = value;
  t.strides = std::move(strides);
  const TensorId id = tensors.push_back(std::move(t));
  storages.push_back({id, {}, {}});
  return id;
}

TensorId Memory::add_view(TensorId base, std::vector<ViewStep> steps, ValueId value,
                          std::optional<Shape> strides) {
  Tensor t;
  t.base = base;
  t.storage = tensors[base].storage;
  t.steps = std::move(steps);
  t.value = value;
  t.seen = storages[t.storage].writes.size();
  t.strides = std::move(strides);
  return tensors.push_back(std::move(t));
}

TensorId Memory::now(TensorId t) const {
  while (tensors[t].now.valid()) t = tensors[t].now;
  return t;
}

std::string Memory::perhaps_several_names(TensorId t) const {
  if (!tensors[t].perhaps_itself.empty()) return tensors[t].perhaps_itself;
  for (const Tensor& other : tensors)
    if (other.base == t && !other.perhaps_itself.empty()) return other.perhaps_itself;
  return {};
}

Touch Memory::touch(const Context& context, TensorId written, TensorId read) const {
  if (written == read) return Touch::all;
  // Paths upward from both, to the common ancestor.
  std::vector<TensorId> up{written}, other{read};
  while (tensors[up.back()].base.valid()) up.push_back(tensors[up.back()].base);
  while (tensors[other.back()].base.valid()) other.push_back(tensors[other.back()].base);
  while (up.size() > 1 && other.size() > 1 && up[up.size() - 2] == other[other.size() - 2]) {
    up.pop_back();
    other.pop_back();
  }
  // The last of both is now the common ancestor.
  if (up.size() > 1 && other.size() > 1 &&
      disjoint(context, tensors[up[up.size() - 2]], tensors[other[other.size() - 2]]))
    return Touch::none;
  for (const std::vector<TensorId>& way : {up, other})
    for (std::size_t i = 0; i + 1 < way.size(); ++i)
      if (!tensors[way[i]].unsure.empty()) return Touch::unsure;
  return other.size() == 1 ? Touch::within : Touch::around;
}

bool Memory::may_overlap(const Context& context, TensorId a, TensorId b) const {
  return tensors[a].storage == tensors[b].storage && touch(context, a, b) != Touch::none;
}

std::optional<Shape> dense_strides(Dims& dims, const Shape& shape) {
  Shape out(shape.size());
  DimId next = dims.constant(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (!next.valid()) return std::nullopt;
    out[i] = next;
    next = dims.mul(next, shape[i]);
  }
  return out;
}

bool is_dense(Dims& dims, const Shape& shape, const Shape& strides) {
  std::optional<Shape> dense = dense_strides(dims, shape);
  if (!dense) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (dims.value(shape[i]) != 1 && strides[i] != (*dense)[i]) return false;
  return true;
}

// Axes that are densely nested form a run, which can be divided differently; runs stay separate.
std::optional<Shape> viewed_strides(Dims& dims, const Shape& from, const Shape& strides,
                                    const Shape& to, bool& sure) {
  sure = true;
  if (is_dense(dims, from, strides)) return dense_strides(dims, to);
  struct Run {
    DimId extent, stride;  // elements, and the distance of neighbours
  };
  std::vector<Run> runs;  // the innermost first
  DimId next;             // the stride of an axis that would continue the run
  for (std::size_t i = from.size(); i-- > 0;) {
    if (dims.value(from[i]) == 1) continue;
    if (runs.empty() || strides[i] != next) runs.push_back({dims.constant(1), strides[i]});
    runs.back().extent = dims.mul(runs.back().extent, from[i]);
    next = dims.mul(strides[i], from[i]);
    if (!next.valid() || !runs.back().extent.valid()) return sure = false, std::nullopt;
  }
  Shape out(to.size(), dims.constant(1));
  std::size_t left = to.size();
  for (const Run& run : runs) {
    DimId covered = dims.constant(1);
    while (covered != run.extent) {
      if (left == 0) return std::nullopt;
      --left;
      out[left] = dims.mul(run.stride, covered);
      covered = dims.mul(covered, to[left]);
      if (!covered.valid() || !out[left].valid()) return sure = false, std::nullopt;
      const auto have = dims.value(covered), want = dims.value(run.extent);
      if (have && want && *have > *want) return std::nullopt;
      if (left == 0 && covered != run.extent) return sure = have && want, std::nullopt;
    }
  }
  while (left > 0)
    if (dims.value(to[--left]) != 1) return sure = false, std::nullopt;
  return out;
}

}  // namespace pw::fx
