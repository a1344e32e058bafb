#include "import/fx/calls/subscript.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::fx {
namespace {

bool is_slice(const Value& v) { return v.kind == Value::Kind::other && v.text == "slice"; }
bool is_ellipsis(const Value& v) {
  return v.kind == Value::Kind::other && (v.text == "Ellipsis" || v.text == "...");
}
bool is_full(const Value& v) {
  return is_slice(v) && std::ranges::all_of(v.items, [](const Value& part) {
           return part.kind == Value::Kind::none;
         });
}
// Returns true if the index consumes a dim of the indexed value.
bool takes_dim(const Value& v) { return v.kind != Value::Kind::none && !is_ellipsis(v); }

std::vector<Value> items_of(const Value& at) {
  const bool tuple = at.kind == Value::Kind::list && at.keys.empty() &&
                     std::ranges::any_of(at.items, [](const Value& v) {
                       return v.kind != Value::Kind::integer && v.kind != Value::Kind::boolean;
                     });
  if (tuple) return at.items;
  // x[1, 2] is a tuple, x[[1, 2]] a list; both are lists here. Dumps write the former.
  if (at.kind == Value::Kind::list) return at.items;
  return {at};
}

struct Step {
  std::string target;
  Arguments arguments;  // without the tensor, which comes first
};

Value list_of(std::vector<Value> items) {
  Value out;
  out.kind = Value::Kind::list;
  out.items = std::move(items);
  return out;
}

}  // namespace

// The steps are views; what is left to tensors is gathered at the end.
Result<Value> Subscripts::get(const Value& x, const Value& at, const Site& site) {
  std::vector<Value> items = items_of(at);
  const Type* type = emitter_.type_of(x.tensor);
  const auto taken = static_cast<std::size_t>(std::ranges::count_if(items, takes_dim));
  const auto ellipsis = std::ranges::find_if(items, is_ellipsis);
  const bool odd = std::ranges::any_of(items, [](const Value& v) {
    return v.kind == Value::Kind::string || v.kind == Value::Kind::real ||
           (v.kind == Value::Kind::other && !is_slice(v) && !is_ellipsis(v)) ||
           v.kind == Value::Kind::boolean;
  });
  const std::size_t rank = type ? type->shape.size() : 0;
  if (odd || (!type && ellipsis != items.end()) || (type && taken > rank))
    return unknown_.keep("getitem", {{x, at}, {}}, site);

  std::vector<Step> steps;
  std::vector<Value> gathered;
  std::int64_t dim = 0;
  bool gathers = false;
  auto skip = [&] {
    gathered.emplace_back();
    ++dim;
  };
  for (const Value& item : items) {
    if (is_ellipsis(item)) {
      for (std::size_t i = taken; i < rank; ++i) skip();
    } else if (item.kind == Value::Kind::none) {
      steps.push_back({"aten.unsqueeze.default", {{integer(context_.dims, dim)}, {}}});
      skip();
    } else if (item.kind == Value::Kind::integer) {
      steps.push_back({"aten.select.int", {{integer(context_.dims, dim), item}, {}}});
    } else if (is_slice(item)) {
      if (!is_full(item)) {
        Arguments arguments{{integer(context_.dims, dim), item.items[0], item.items[1]}, {}};
        if (item.items[2].kind != Value::Kind::none) arguments.positional.push_back(item.items[2]);
        steps.push_back({"aten.slice.Tensor", std::move(arguments)});
      }
      skip();
    } else {
      gathers = true;
      gathered.push_back(item);
      ++dim;
    }
  }
  if (gathers) {
    while (gathered.back().kind == Value::Kind::none) gathered.pop_back();
    steps.push_back({"aten.index.Tensor", {{list_of(std::move(gathered))}, {}}});
  }
  if (steps.empty()) steps.push_back({"aten.alias.default", {}});
  Value value = x;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Arguments arguments = std::move(steps[i].arguments);
    arguments.positional.insert(arguments.positional.begin(), value);
    const bool last = i + 1 == steps.size();
    Result<Value> next = calls_.call(steps[i].target, arguments,
                                     last ? site : Site{site.span, site.source, true, {}, {}});
    if (!next) return next;
    value = *next;
    if (value.kind != Value::Kind::tensor) break;
  }
  return value;
}

Result<Value> Subscripts::set(const Value& x, const Value& at, const Value& to, const Site& site) {
  const Site plain{site.span, site.source, true, {}, {}};
  std::vector<Value> items = items_of(at);
  const bool gathers = std::ranges::any_of(items, [](const Value& v) {
    return v.kind == Value::Kind::tensor || v.kind == Value::Kind::list;
  });
  if (x.kind != Value::Kind::tensor)
    return fail(site.span, "PW0508", "only items of tensors can be assigned");
  const bool plain_gather = std::ranges::all_of(
      items, [](const Value& v) { return v.kind == Value::Kind::tensor || is_full(v); });
  if (gathers && plain_gather && to.kind == Value::Kind::tensor) {
    for (Value& item : items)
      if (is_slice(item)) item = Value();
    return calls_.call("aten.index_put_.default", {{x, list_of(std::move(items)), to}, {}}, plain);
  }
  if (gathers) return unknown_.keep("operator.setitem", {{x, at, to}, {}}, plain);
  Result<Value> part = get(x, at, plain);
  if (!part) return part;
  if (to.kind == Value::Kind::tensor)
    return calls_.call("aten.copy_.default", {{*part, to}, {}}, plain);
  return calls_.call("aten.fill_.Scalar", {{*part, to}, {}}, plain);
}

}  // namespace pw::fx
