#include "import/fx/calls/torch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "import/fx/torch_schemas.hpp"

namespace pw::fx {
namespace {

using Words = std::set<std::string_view>;

bool holds_tensor(const Value& v) { return v.kind == Value::Kind::tensor; }
bool is_none(const Value& v) { return v.kind == Value::Kind::none; }

bool holds_tensors(const Value& v) {
  return v.kind == Value::Kind::list && !v.items.empty() &&
         std::ranges::all_of(
             v.items, [](const Value& item) { return holds_tensor(item) || is_none(item); }) &&
         std::ranges::any_of(v.items, holds_tensor);
}

Value dtype_value(DType dtype) {
  Value out;
  out.kind = Value::Kind::dtype;
  out.dtype = dtype;
  return out;
}

// Methods whose sizes may be separate arguments: view(-1, 8). The number is the position of the
// first.
const std::map<std::string_view, std::size_t> kVariadic = {
    {"view", 1},  {"reshape", 1}, {"expand", 1},    {"repeat", 1},   {"permute", 1},
    {"tile", 1},  {"flip", 1},    {"new_zeros", 1}, {"new_ones", 1}, {"new_empty", 1},
    {"zeros", 0}, {"ones", 0},    {"empty", 0},     {"rand", 0},     {"randn", 0},
};

// Methods that only convert.
const std::map<std::string_view, DType> kCasts = {
    {"float", DType::f32},     {"double", DType::f64}, {"half", DType::f16},
    {"bfloat16", DType::bf16}, {"int", DType::i32},    {"long", DType::i64},
    {"bool", DType::b8},       {"char", DType::i8},    {"byte", DType::u8},
};

// Methods that return the tensor itself.
const Words kSame = {"cpu",      "cuda",     "pin_memory",    "requires_grad_", "data_ptr",
                     "coalesce", "to_dense", "resolve_conj",  "resolve_neg",    "detach",
                     "alias",    "detach_",  "_get_data_attr"};

// Other names for the same.
const std::map<std::string_view, std::string_view> kOtherNames = {
    {"multiply", "mul"},
    {"divide", "div"},
    {"true_divide", "div"},
    {"subtract", "sub"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"greater", "gt"},
    {"less", "lt"},
    {"greater_equal", "ge"},
    {"less_equal", "le"},
    {"not_equal", "ne"},
    {"negative", "neg"},
    {"absolute", "abs"},
    {"clip", "clamp"},
    {"swapaxes", "transpose"},
    {"swapdims", "transpose"},
    {"special_expit", "sigmoid"},
    {"special_softmax", "softmax"},
    {"conv2d_", "conv2d"},
    {"square_", "square"},
    {"multiply_", "mul_"},
    {"divide_", "div_"},
    {"subtract_", "sub_"},
    {"clip_", "clamp_"},
};

// Keywords of torch.nn.functional that ATen lacks, with the values at which they have no effect.
bool says_nothing(const std::string& name, const Value& value) {
  if (name == "_stacklevel") return true;
  const bool off = value.kind == Value::Kind::boolean && !value.boolean;
  return (name == "inplace" || name == "return_indices" || name == "sparse" ||
          name == "scale_grad_by_freq" || name == "requires_grad" || name == "out") &&
         (off || is_none(value));
}

bool fits(const Schema::Argument& argument, const Value& value) {
  if (argument.tensor) return holds_tensor(value) || is_none(value);
  if (argument.list) return holds_tensors(value) || is_none(value);
  return !holds_tensor(value) && !holds_tensors(value);
}

bool fits(const Schema& schema, const Arguments& arguments) {
  std::size_t positional = 0;
  for (const Schema::Argument& a : schema.arguments) positional += !a.keyword_only;
  if (arguments.positional.size() > positional) return false;
  for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
    const Schema::Argument& a = schema.arguments[i];
    if (i < arguments.positional.size()) {
      if (!fits(a, arguments.positional[i])) return false;
      continue;
    }
    auto given = std::ranges::find_if(arguments.keywords,
                                      [&](const auto& pair) { return pair.first == a.name; });
    if (given == arguments.keywords.end()) {
      if (!a.optional) return false;
    } else if (!fits(a, given->second)) {
      return false;
    }
  }
  return std::ranges::all_of(arguments.keywords, [&](const auto& pair) {
    return std::ranges::any_of(schema.arguments,
                               [&](const Schema::Argument& a) { return a.name == pair.first; });
  });
}

// The lines of the table for aten.NAME and aten.NAME.OVERLOAD.
std::vector<std::string_view> overloads(const std::string& name) {
  const std::string_view table = schema_table();
  const std::string lead = "\naten." + name;
  std::vector<std::string_view> out;
  for (std::size_t at = table.find(lead); at != std::string_view::npos;
       at = table.find(lead, at + 1)) {
    const char next = at + lead.size() < table.size() ? table[at + lead.size()] : '\0';
    if (next != ' ' && next != '.') continue;
    const std::string_view target =
        table.substr(at + 1, table.find_first_of(" \n", at + 1) - at - 1);
    if (target.find("name") == std::string_view::npos) out.push_back(target);  // Dimname, names
  }
  return out;
}

std::optional<Value> take_keyword(Arguments& arguments, std::string_view name) {
  auto it = std::ranges::find_if(arguments.keywords,
                                 [&](const auto& pair) { return pair.first == name; });
  if (it == arguments.keywords.end()) return std::nullopt;
  Value out = std::move(it->second);
  arguments.keywords.erase(it);
  return out;
}

// Removes and returns the argument at a position, or by its name; later positions move up.
std::optional<Value> pull_argument(Arguments& arguments, std::size_t place, std::string_view name) {
  if (place >= arguments.positional.size()) return take_keyword(arguments, name);
  Value out = std::move(arguments.positional[place]);
  arguments.positional.erase(arguments.positional.begin() + static_cast<std::ptrdiff_t>(place));
  return out;
}

Value as_list(std::vector<Value> items) {
  Value out;
  out.kind = Value::Kind::list;
  out.items = std::move(items);
  return out;
}

// Functions of torch/functional.py whose tensors may be written one by one. The number is the place
// of the first.
const std::map<std::string_view, std::size_t> kOfTensors = {
    {"einsum", 1}, {"meshgrid", 0}, {"broadcast_tensors", 0}};

// From a place on, tensors are one list.
void gather_tensors(Arguments& arguments, std::size_t place) {
  std::vector<Value>& args = arguments.positional;
  if (place >= args.size() || !holds_tensor(args[place])) return;
  const auto from = args.begin() + static_cast<std::ptrdiff_t>(place);
  Value list = as_list({from, args.end()});
  args.resize(place);
  args.push_back(std::move(list));
}

// From a place on, whole numbers are one list.
void gather_sizes(Arguments& arguments, std::size_t place) {
  std::vector<Value>& args = arguments.positional;
  if (place >= args.size() || args[place].kind != Value::Kind::integer) return;
  Value list;
  list.kind = Value::Kind::list;
  list.items.assign(args.begin() + static_cast<std::ptrdiff_t>(place), args.end());
  args.resize(place);
  args.push_back(std::move(list));
}

}  // namespace

// torch.norm(x, p, dim, keepdim, out, dtype), where it is one of vectors: 'fro' is 2, and an axis a
// list.
void TorchCalls::as_vector_norm(Arguments& arguments, std::string& target) {
  const Value* order =
      arguments.positional.size() > 1 ? &arguments.positional[1] : keyword(arguments, "p");
  if (order && order->kind == Value::Kind::string && order->text != "fro") return;
  Value p = pull_argument(arguments, 1, "p").value_or(Value()),
        dim = pull_argument(arguments, 1, "dim").value_or(Value()),
        keepdim = pull_argument(arguments, 1, "keepdim").value_or(Value());
  const std::optional<Value> out = pull_argument(arguments, 1, "out"),
                             dtype = pull_argument(arguments, 1, "dtype");
  const bool frobenius = p.kind == Value::Kind::string && p.text == "fro";
  if (is_none(p) || frobenius) p = integer(context_.dims, 2);
  if (keepdim.kind != Value::Kind::boolean) keepdim.kind = Value::Kind::boolean;
  std::vector<Value>& args = arguments.positional;
  args.insert(args.end(), {std::move(p), std::move(dim), std::move(keepdim)});
  if (dtype) arguments.keywords.emplace_back("dtype", *dtype);
  if (out) arguments.keywords.emplace_back("out", *out);
  target = "aten.linalg_vector_norm.default";
}

// torch.tensordot(a, b, dims): lists of both, or how many of the last and the first.
void TorchCalls::as_axes_of_tensordot(Arguments& arguments, std::size_t rank) {
  std::optional<Value> dims = pull_argument(arguments, 2, "dims");
  if (!dims)
    dims =
        keyword(arguments, "dims_self") ? std::nullopt : std::optional(integer(context_.dims, 2));
  if (!dims) return;
  std::vector<Value>& args = arguments.positional;
  if (dims->kind == Value::Kind::list && dims->items.size() == 2) {
    for (Value& axes : dims->items) {
      if (axes.kind == Value::Kind::integer) axes = as_list({axes});
      args.push_back(axes);
    }
    return;
  }
  if (dims->kind == Value::Kind::list && args.size() == 2) {  // ATen's own: two lists
    args.push_back(*dims);
    return;
  }
  const auto count = as_int(context_.dims, *dims);
  if (!count || *count < 0 || *count > static_cast<std::int64_t>(rank)) return;
  Value last = as_list({}), first = as_list({});
  for (std::int64_t i = 0; i < *count; ++i) {
    last.items.push_back(integer(context_.dims, static_cast<std::int64_t>(rank) - *count + i));
    first.items.push_back(integer(context_.dims, i));
  }
  args.insert(args.end(), {std::move(last), std::move(first)});
}

// chain_matmul(a, b, c, …): from left to right.
Result<Value> TorchCalls::chain_of_products(const Arguments& arguments, const Site& site) {
  Value out = arguments.positional[0];
  for (std::size_t i = 1; i < arguments.positional.size(); ++i) {
    const bool last = i + 1 == arguments.positional.size();
    Result<Value> product = call("matmul", false, {{out, arguments.positional[i]}, {}},
                                 last ? site : Site{site.span, site.source, true, {}, {}});
    if (!product) return product;
    out = *product;
  }
  return out;
}

// Returns the first overload that accepts these arguments; empty if PyTorch has none.
std::string TorchCalls::overload_of(const std::string& name, const Arguments& arguments) {
  auto [known, fresh] = overloads_.try_emplace(name);
  if (fresh) known->second = overloads(name);
  for (std::string_view target : known->second) {
    std::optional<Schema> schema = find_schema(target);
    if (!schema || !fits(*schema, arguments)) continue;
    const bool out = std::ranges::any_of(
        schema->arguments, [](const Schema::Argument& a) { return a.keyword_only && a.written; });
    if (!out) return std::string(target);
  }
  return "";
}

// x.to(…): a dtype, a tensor whose dtype it is, or a device only, which gives the tensor itself.
Result<Value> TorchCalls::to_method(const Arguments& arguments, const Site& site) {
  const Value& x = arguments.positional[0];
  std::optional<Value> dtype;
  bool copies = false;
  auto look = [&](const Value& v) {
    if (v.kind == Value::Kind::dtype ||
        (v.kind == Value::Kind::other && v.text.starts_with("torch.") &&
         v.text.find("device") == std::string::npos))
      dtype = v;
    if (holds_tensor(v))
      if (const Type* type = emitter_.type_of(v.tensor)) dtype = dtype_value(type->dtype);
  };
  for (std::size_t i = 1; i < arguments.positional.size(); ++i) look(arguments.positional[i]);
  for (const auto& [name, value] : arguments.keywords) {
    if (name == "dtype" || name == "other") look(value);
    copies = copies || (name == "copy" && value.kind == Value::Kind::boolean && value.boolean);
  }
  if (dtype && dtype->kind == Value::Kind::other)  // a dtype that the library lacks
    return calls_.call("aten.to.dtype", {{x, *dtype}, {}}, site);
  const Type* type = emitter_.type_of(x.tensor);
  const bool same = !dtype || (type && type->dtype == dtype->dtype);
  if (same)
    return copies ? calls_.call("aten.clone.default", {{x}, {}}, site) : itself("to", x, site);
  return calls_.call("aten.to.dtype", {{x, *dtype}, {}}, site);
}

// Returns the result of a method that returns the tensor, or a view of all its elements.
Result<Value> TorchCalls::itself(const std::string& method, const Value& x, const Site& site) {
  Result<Value> out = calls_.call("aten.detach.default", {{x}, {}}, site);
  if (out && out->handle.valid() && method != "detach" && method != "alias")
    memory_.tensors[out->handle].perhaps_itself = method;
  return out;
}

namespace {

// Sets the overload of split, and makes the sizes its second argument.
void target_of_split(Arguments& arguments, std::string& target) {
  std::vector<Value>& args = arguments.positional;
  if (args.size() >= 2) {
    target =
        args[1].kind == Value::Kind::list ? "aten.split_with_sizes.default" : "aten.split.Tensor";
    return;
  }
  for (std::string_view word : {"split_size_or_sections", "split_size"})
    if (std::optional<Value> sizes = take_keyword(arguments, word)) {
      args.push_back(*sizes);
      target =
          sizes->kind == Value::Kind::list ? "aten.split_with_sizes.default" : "aten.split.Tensor";
      break;
    }
}

// Sets the op of a product of two or of three dims; others have none.
void target_of_matmul(const Shape& x, const Shape& y, std::string& target) {
  if (x.size() == 2 && y.size() == 2) target = "aten.mm.default";
  if (x.size() == 3 && y.size() == 3 && x[0] == y[0]) target = "aten.bmm.default";
}

// Makes the arguments of a function of torch.nn.functional those of its ATen op.
void adapt_functional(std::string& name, bool method, std::vector<Value>& args) {
  if (name == "batch_norm" && !method && args.size() >= 5) {  // F.batch_norm(x, mean, var, w, b, …)
    std::swap(args[1], args[3]);
    std::swap(args[2], args[4]);
    Value on;
    on.kind = Value::Kind::boolean;
    on.boolean = true;
    if (args.size() == 8) args.push_back(on);
  }
  if (args.size() > 1 && (name == "relu" || name == "silu" || name == "dropout_") &&
      args[1].kind == Value::Kind::boolean) {
    if (args[1].boolean) name += "_";
    args.resize(1);
  }
  if (name == "softmax" || name == "log_softmax") {  // F.softmax(x, dim, _stacklevel, dtype)
    if (!method && args.size() >= 3) args.erase(args.begin() + 2);
  }
}

}  // namespace

// Returns a size, the rank or the number of elements. Sets the target for the size of an axis.
std::optional<Value> TorchCalls::size_call(const std::string& name, const Shape& shape,
                                           Arguments& arguments, std::string& target) {
  if (name == "dim" || name == "ndimension")
    return integer(context_.dims, static_cast<std::int64_t>(shape.size()));
  Value out;
  if (name == "numel") {
    out = integer(context_.dims, 1);
    for (DimId d : shape) out.dim = context_.dims.mul(out.dim, d);
    return out.dim.valid() ? std::optional(out) : std::nullopt;
  }
  std::optional<Value> axis = pull_argument(arguments, 1, "dim");
  if (axis) {
    target = "aten.sym_size.int";
    arguments.positional.push_back(*axis);
    return std::nullopt;
  }
  out.kind = Value::Kind::list;
  for (DimId d : shape) {
    out.items.push_back(integer(context_.dims, 0));
    out.items.back().dim = d;
  }
  return out;
}

// Turns a dropout into its ATen op, or into the tensor itself if it is off.
void TorchCalls::take_dropout(const std::string& name, Arguments& arguments, std::string& target) {
  std::vector<Value>& args = arguments.positional;
  std::optional<Value> p = pull_argument(arguments, 1, "p"),
                       training = pull_argument(arguments, 1, "training"),
                       train = take_keyword(arguments, "train");
  if (!training) training = train;
  const bool off = (training && training->kind == Value::Kind::boolean && !training->boolean) ||
                   (p && p->kind == Value::Kind::real && p->real == 0);
  args.resize(1);
  arguments.keywords.clear();
  if (off) {
    target = "aten.detach.default";
    return;
  }
  args.push_back(p.value_or(Value()));
  args.push_back(training.value_or(Value()));
  target = "aten." + name;
}

// Replaces the second tensor of a call such as view_as by its shape.
void TorchCalls::take_shape_of(const std::string& name, std::vector<Value>& args,
                               std::string& target) {
  const Type* like =
      args.size() == 2 && holds_tensor(args[1]) ? emitter_.type_of(args[1].tensor) : nullptr;
  if (!like) return;
  Value shape;
  shape.kind = Value::Kind::list;
  for (DimId d : like->shape) {
    shape.items.push_back(integer(context_.dims, 0));
    shape.items.back().dim = d;
  }
  args[1] = std::move(shape);
  target = name == "expand_as" ? "aten.expand.default" : "aten.view.default";
  if (name == "reshape_as") target = "aten.reshape.default";
}

// Rewrites calls whose arguments are not ATen's. Returns a value if the call has one; otherwise
// sets the target, if it applies, and makes the arguments ATen's.
std::optional<Value> TorchCalls::rewritten(const std::string& name, Arguments& arguments,
                                           std::string& target) {
  std::vector<Value>& args = arguments.positional;
  const Type* type =
      !args.empty() && holds_tensor(args[0]) ? emitter_.type_of(args[0].tensor) : nullptr;
  if ((name == "size" || name == "dim" || name == "ndimension" || name == "numel") && type)
    return size_call(name, type->shape, arguments, target);
  if ((name == "dropout" || name == "feature_dropout" || name == "alpha_dropout") &&
      !args.empty()) {
    take_dropout(name, arguments, target);
    return std::nullopt;
  }
  if (name == "expand_as" || name == "view_as" || name == "reshape_as") {
    take_shape_of(name, args, target);
    return std::nullopt;
  }
  if (name == "type_as" && args.size() == 2 && holds_tensor(args[1])) {
    if (const Type* like = emitter_.type_of(args[1].tensor)) {
      args[1] = dtype_value(like->dtype);
      target = "aten.to.dtype";
      if (type && type->dtype == like->dtype) {
        args.pop_back();
        target = "aten.detach.default";
      }
    }
    return std::nullopt;
  }
  if (name == "split" && !args.empty()) {
    target_of_split(arguments, target);
    return std::nullopt;
  }
  if (name == "view" && args.size() == 2 && args[1].kind == Value::Kind::dtype) {
    target = "aten.view.dtype";
    if (type && type->dtype == args[1].dtype) {
      args.pop_back();
      target = "aten.detach.default";
    }
    return std::nullopt;
  }
  if (name == "norm" && !args.empty()) {
    as_vector_norm(arguments, target);
    return std::nullopt;
  }
  if (name == "tensordot" && args.size() >= 2 && type) {
    as_axes_of_tensordot(arguments, type->shape.size());
    return std::nullopt;
  }
  if (name == "flatten") target = "aten.flatten.using_ints";
  if (name == "transpose") target = "aten.transpose.int";
  if (name == "numpy_T" && type && type->shape.size() == 2) target = "aten.t.default";
  if (name == "mT" && type && type->shape.size() >= 2) {
    args.push_back(integer(context_.dims, -2));
    args.push_back(integer(context_.dims, -1));
    target = "aten.transpose.int";
  }
  if (name == "matmul" && args.size() == 2) {
    const Type* other = holds_tensor(args[1]) ? emitter_.type_of(args[1].tensor) : nullptr;
    if (type && other) target_of_matmul(type->shape, other->shape, target);
  }
  return std::nullopt;
}

Result<Value> TorchCalls::call(const std::string& given, bool method, Arguments arguments,
                               const Site& site) {
  std::string name = given;
  if (auto it = kOtherNames.find(name); it != kOtherNames.end()) name = it->second;
  std::vector<Value>& args = arguments.positional;
  const std::string kept = fmt::format("{}.{}", method ? "method" : "torch", given);
  if (method && args.empty()) return calls_.call(kept, arguments, site);
  if (method && args[0].kind == Value::Kind::other)  // of a device, a stream, a module …
    return calls_.call(kept, arguments, site);
  std::erase_if(arguments.keywords,
                [](const auto& pair) { return says_nothing(pair.first, pair.second); });
  if (std::optional<Value> in_place = take_keyword(arguments, "inplace")) name += "_";
  for (auto& [word, value] : arguments.keywords)
    if (word == "input") word = "self";
  if (name == "embedding" && !method && args.size() >= 2) {  // F.embedding(ids, table, …)
    const bool renorm = args.size() > 3 && !is_none(args[3]);
    if (!renorm) {
      std::swap(args[0], args[1]);
      args.resize(2);
      std::erase_if(arguments.keywords, [](const auto& pair) {
        return pair.first == "padding_idx" || pair.first == "norm_type" ||
               (pair.first == "max_norm" && is_none(pair.second));
      });
    }
    return calls_.call("aten.embedding.default", arguments, site);
  }
  adapt_functional(name, method, args);
  if (!args.empty() && holds_tensor(args[0])) {
    if (kSame.contains(name)) return itself(name, args[0], site);
    if (auto it = kCasts.find(name); it != kCasts.end() && method)
      return to_method({{args[0], dtype_value(it->second)}, {}}, site);
    if (name == "to" || (name == "type" && args.size() > 1)) return to_method(arguments, site);
  }
  if (auto it = kVariadic.find(name); it != kVariadic.end())
    gather_sizes(arguments, method ? std::max<std::size_t>(it->second, 1) : it->second);
  if (auto it = kOfTensors.find(name); it != kOfTensors.end() && !method)
    gather_tensors(arguments, it->second);
  if (name == "meshgrid" || name == "norm")
    std::erase_if(arguments.keywords, [](const auto& pair) { return is_none(pair.second); });
  if (name == "chain_matmul" && args.size() > 1 && std::ranges::all_of(args, holds_tensor))
    return chain_of_products(arguments, site);
  if (name == "squeeze" && args.size() == 2 && args[1].kind == Value::Kind::list)
    return calls_.call("aten.squeeze.dims", arguments, site);

  std::string target;
  if (std::optional<Value> value = rewritten(name, arguments, target)) return *value;
  if (target.empty()) target = overload_of(name, arguments);
  if (target.empty() && !arguments.keywords.empty()) {  // ATen's first argument has its own name
    for (auto& [word, value] : arguments.keywords)
      if (word == "self") word = "input";
    target = overload_of(name, arguments);
  }
  if (target.empty()) return calls_.call(kept, arguments, site);
  return calls_.call(target, arguments, site);
}

}  // namespace pw::fx
