#include "import/fx/emit/put_back.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {

Result<ValueId> fit(Emitter& emitter, ValueId value, ValueId like, const Site& site) {
  if (emitter.graph().type(value) == emitter.graph().type(like) || !emitter.type_of(value) ||
      !emitter.type_of(like))
    return value;
  const Type wanted = *emitter.type_of(like);
  if (emitter.type_of(value)->dtype != wanted.dtype) {
    value =
        PW_TRY(emitter.emit("cast", {value}, {{"dtype", wanted.dtype}}, kUnnamed, site)).front();
  }
  const Shape given = emitter.type_of(value)->shape;
  if (given == wanted.shape || (emitter.effects().is_maker(like) && emitter.symbols().in(given)))
    return value;
  const bool same_count = count_of(emitter.dims(), given).valid() &&
                          count_of(emitter.dims(), given) == count_of(emitter.dims(), wanted.shape);
  return PW_TRY(emitter.emit(same_count ? "reshape" : "expand", {value}, {{"shape", wanted.shape}},
                             kUnnamed, site))
      .front();
}

DimId count_of(Dims& dims, const Shape& shape) {
  DimId out = dims.constant(1);
  for (std::size_t i = 0; i < shape.size() && out.valid(); ++i) out = dims.mul(out, shape[i]);
  return out;
}

Result<ValueId> derive_step(Emitter& emitter, ValueId value, const ViewStep& step,
                            const Site& site) {
  Outputs wanted(step.results.size());
  const bool imported = emitter.context().ops[step.op].imported;
  for (std::size_t i = 0; imported && i < wanted.size(); ++i) wanted[i].type = step.results[i];
  Results results = PW_TRY(
      emitter.emit(step.op, {value}, emitter.context().attributes[step.attributes], wanted, site));
  return results[step.result];
}

namespace {

// Without types the extents of what was viewed are not known: the write is kept as an op of its
// own, which can be drawn and rewritten around, and which nothing runs.
Result<ValueId> put_back_unknown(Emitter& emitter, ValueId part, const Site& site) {
  constexpr std::string_view kName = "write_through_view";
  if (!emitter.context().ops.find(kName).valid()) {
    Op declared;
    declared.name = kName;
    declared.imported = true;
    declared.traits.effect = true;
    PW_TRY(emitter.context().ops.declare(declared));
  }
  emitter.effects().once();
  emitter.effects().add_opaque(std::string(kName),
                               "a write through a view of a tensor of unknown shape");
  return PW_TRY(emitter.emit(kName, {part}, {}, kUnnamed, site)).front();
}

Result<ValueId> put_back_slice(Emitter& emitter, const ViewStep& step, ValueId old, ValueId part,
                               const Site& site) {
  const auto attribute = [&](std::string_view name) {
    return *emitter.context().attributes.find(step.attributes, name);
  };
  const auto dim = [&](const Attribute& a) {
    auto i = std::get_if<std::int64_t>(&a);
    return i != nullptr ? emitter.dims().constant(*i) : std::get<DimId>(a);
  };
  DimId start = emitter.dims().constant(0), end;
  std::int64_t stride = 1;
  if (emitter.context().ops[step.op].name == "split") {
    const Attribute sizes = attribute("sizes");
    const auto& parts = std::get<std::vector<DimId>>(sizes);
    for (std::size_t i = 0; i < step.result; ++i) start = emitter.dims().add(start, parts[i]);
    end = emitter.dims().add(start, parts[step.result]);
  } else {
    start = dim(attribute("start"));
    end = dim(attribute("end"));
    const Attribute given = attribute("step");
    stride = std::get<std::int64_t>(given);
  }
  const std::int64_t axis = std::get<std::int64_t>(attribute("dim"));
  if (stride != 1) return put_back_strided(emitter, old, part, axis, start, stride, site);
  return PW_TRY(emitter.emit("slice_scatter", {old, part},
                             {{"dim", axis},
                              {"start", bound_of(emitter.dims(), start)},
                              {"end", bound_of(emitter.dims(), end)}},
                             kUnnamed, site))
      .front();
}

}  // namespace

Result<ValueId> put_back_step(Emitter& emitter, const ViewStep& step, ValueId old, ValueId part,
                              const Site& site) {
  const std::string op = emitter.context().ops[step.op].name;
  const auto first = [](Result<Results> results) -> Result<ValueId> {
    if (!results) return forward(results);
    return results->front();
  };
  if (op == "detach") return part;
  if (op == "transpose")
    return first(emitter.emit(step.op, {part}, emitter.context().attributes[step.attributes],
                              kUnnamed, site));
  if (op == "reshape" && step.from != Types::unknown())
    return first(emitter.emit(
        "reshape", {part}, {{"shape", emitter.context().types[step.from].shape}}, kUnnamed, site));
  if (op == "slice" || op == "split") return put_back_slice(emitter, step, old, part, site);
  if (op == "reshape") return put_back_unknown(emitter, part, site);
  return fail(site.span, "PW0516",
              op == "expand"
                  ? std::string("a write to elements that `expand` repeats")
                  : fmt::format("a write through a view that `{}` creates cannot be expressed", op),
              "dump the graph after functionalisation (AOT autograd)");
}

// All but the last element are the first of a group of `stride` elements, so that they are replaced
// as a column; the last may have fewer after it.
Result<ValueId> put_back_strided(Emitter& emitter, ValueId old, ValueId part, std::int64_t axis,
                                 DimId start, std::int64_t stride, const Site& site) {
  Dims& dims = emitter.dims();
  const Shape whole = emitter.type_of(old)->shape, taken = emitter.type_of(part)->shape;
  const auto at = static_cast<std::size_t>(axis);
  const DimId groups = dims.sub(taken[at], dims.constant(1));
  const DimId grouped = dims.mul(groups, dims.constant(stride));
  const DimId last = dims.add(start, grouped);
  const DimId next = dims.add(last, dims.constant(1));
  if (!next.valid() || dims.value(taken[at]) == 0) return old;
  Diagnostics failure;
  const auto one = [&](std::string_view op, std::vector<ValueId> operands,
                       NamedAttributes attributes) {
    if (!failure.empty()) return ValueId();
    Result<Results> results = emitter.emit(op, operands, std::move(attributes), kUnnamed, site);
    if (results) return results->front();
    failure = std::move(results.error());
    return ValueId();
  };
  const auto slice = [&](ValueId x, std::int64_t along, DimId begin, DimId end) {
    return one("slice", {x},
               {{"dim", along},
                {"start", bound_of(dims, begin)},
                {"end", bound_of(dims, end)},
                {"step", std::int64_t{1}}});
  };
  const auto split_axis = [&](Shape shape, DimId outer, DimId inner) {
    shape[at] = outer;
    shape.insert(shape.begin() + axis + 1, inner);
    return shape;
  };
  const auto reshape = [&](ValueId x, Shape shape) {
    return one("reshape", {x}, {{"shape", std::move(shape)}});
  };
  const DimId zero = dims.constant(0), unit = dims.constant(1);
  const ValueId rows =
      reshape(slice(old, axis, start, last), split_axis(whole, groups, dims.constant(stride)));
  const ValueId column = reshape(slice(part, axis, zero, groups), split_axis(whole, groups, unit));
  const ValueId rest = slice(rows, axis + 1, unit, dims.constant(stride));
  Shape flat = whole;
  flat[at] = grouped;
  const ValueId middle = reshape(one("cat", {column, rest}, {{"dim", axis + 1}}), std::move(flat));
  const ValueId result =
      one("cat",
          {slice(old, axis, zero, start), middle, slice(part, axis, groups, taken[at]),
           slice(old, axis, next, whole[at])},
          {{"dim", axis}});
  if (!failure.empty()) return tl::unexpected<Diagnostics>(std::move(failure));
  return result;
}

}  // namespace pw::fx
