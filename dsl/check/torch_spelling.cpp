// The tables hold what people type first. All other names of PyTorch are looked up among the
// library's foreign ops.
#include "dsl/check/torch_spelling.hpp"

#include <array>

#include "dsl/syntax/suggest.hpp"
#include "graph/context.hpp"
#include "graph/dtype_names.hpp"
#include "graph/foreign.hpp"

namespace pw {
namespace {

struct Spelling {
  std::string_view names;  ///< separated by spaces
  std::string_view written;
};

constexpr std::string_view kReshape = "`reshape(x){shape = [n, d]}`";
constexpr std::array<Spelling, 21> kOps{{
    {"softmax",
     "`e = exp(x - amax(x){dim = -1, keepdim = true})` and "
     "`y = e / sum(e){dim = -1, keepdim = true}`; dumps compute it in f32 "
     "(`pwr ops softmax`)"},
    {"matmul", "`mm(x, w)` for matrices, `bmm(x, w)` for batches of them"},
    {"linear", "`mm(x, transpose(w){dim0 = 0, dim1 = 1})`, with a bias `addmm(b, x, …)`"},
    {"view view_as reshape_as flatten unflatten ravel squeeze unsqueeze", kReshape},
    {"t T mT permute swapaxes movedim", "`transpose(x){dim0 = 0, dim1 = 1}`"},
    {"float", "`f32(x)`"},
    {"double", "`f64(x)`"},
    {"half", "`f16(x)`"},
    {"bfloat16", "`bf16(x)`"},
    {"int", "`i32(x)`"},
    {"long", "`i64(x)`"},
    {"to type type_as", "`f32(x)`, or `T(x)` for a dtype variable"},
    {"concat concatenate stack", "`cat(x, y){dim = 0}`"},
    {"chunk", "`a, b = split(x){dim = -1, sizes = [n, n]}`"},
    {"where", "`select(mask, x, y)`"},
    {"square", "`mul(x, x)`"},
    {"max", "`maximum(x, y)` for two tensors, `amax(x){dim = -1}` along an axis"},
    {"min", "`minimum(x, y)` for two tensors, `amin(x){dim = -1}` along an axis"},
    {"zeros ones zeros_like ones_like", "`full{shape = [n, d], value = 0.0, dtype = f32}`"},
    {"arange", "`iota{shape = [n]}`"},
    {"contiguous dropout", "as `x` itself: dumps drop it"},
}};

constexpr std::array<Spelling, 7> kGuards{{
    {"ndim dim", "`rank(x)`"},
    {"size", "`size(x, 0)`"},
    {"len", "`count(xs)` for a list, `rank(x)` for the axes of a tensor"},
    {"numel nelement", "`n * d`, with the dims of `x: T[n, d]`"},
    {"isinstance", "`x: f32[n, d]`, as the type of an operand"},
    {"None", "`none`"},
    {"True False", "`true` and `false`"},
}};

template <std::size_t N>
std::string_view written(const std::array<Spelling, N>& table, std::string_view name) {
  const std::string wanted = " " + std::string(name) + " ";
  for (const Spelling& spelling : table)
    if ((" " + std::string(spelling.names) + " ").find(wanted) != std::string::npos)
      return spelling.written;
  return {};
}

/// Returns the part before the last dot; empty if there is none.
std::string_view owner(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

bool is_module(std::string_view name) {
  return name == "F" || name == "nn" || name == "aten" || name.starts_with("torch") ||
         name.starts_with("nn.") || name.starts_with("ops.");
}

}  // namespace

std::string torch_spelling(const Context& context, std::string_view name) {
  const std::string_view plain = torch_name(name), of = owner(foreign_target(name));
  const bool method = !of.empty() && !is_module(of);
  if (const std::string_view text = written(kOps, plain); !text.empty())
    return in_ticks(plain) + " is written " + std::string(text);
  if (context.ops.find(plain).valid())
    return !of.empty() ? (method ? "ops are functions: write " +
                                       in_ticks(std::string(plain) + "(" + std::string(of) + ")")
                                 : "did you mean " + in_ticks(plain) + "?")
                       : std::string();
  if (context.foreign && !context.foreign->called(plain).empty())
    return in_ticks("pwr ops " + std::string(plain)) + " prints the ops that dumps have for it";
  return {};
}

std::string torch_guard_spelling(std::string_view name) {
  const std::string_view plain = name.substr(owner(name).empty() ? 0 : owner(name).size() + 1);
  if (!owner(name).empty() && looks_like_dtype(plain)) return dtype_hint(plain);
  const std::string_view text = written(kGuards, plain);
  return text.empty() ? std::string() : in_ticks(plain) + " is written " + std::string(text);
}

}  // namespace pw
