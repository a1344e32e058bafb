#include "exec/piece_hook.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "base/try.hpp"
#include "exec/dispatch.hpp"

namespace pw {
namespace {

std::vector<std::string> value_names(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> out;
  for (const ValueId v : values) out.emplace_back(graph.value_name(v));
  return out;
}

tl::unexpected<Diagnostics> refused(const Piece& piece, std::string message, std::string help) {
  return fail(error_in(piece.name, "PW1216", std::move(message), std::move(help)));
}

std::string shape_of(DType dtype, const Extents& extents) {
  return fmt::format("{}[{}]", name(dtype), fmt::join(extents, ", "));
}

}  // namespace

std::vector<std::string> PieceCall::inputs() const { return value_names(source_, piece_.inputs); }

std::vector<std::string> PieceCall::outputs() const { return value_names(source_, piece_.outputs); }

std::vector<std::pair<std::string, std::string>> PieceCall::names_of(std::string_view op) const {
  std::vector<std::pair<std::string, std::string>> out;
  const auto node = std::find_if(piece_.nodes.begin(), piece_.nodes.end(),
                                 [&](NodeId n) { return source_.op_of(n).name == op; });
  if (node == piece_.nodes.end()) return out;
  const Op& declared = source_.op_of(*node);
  for (std::size_t i = 0; i < source_.operand_count(*node) && i < declared.operands.size(); ++i)
    if (const ValueId v = source_.operand(*node, i); v.valid())
      out.emplace_back(declared.operands[i].name, source_.value_name(v));
  for (std::size_t i = 0; i < source_.result_count(*node) && i < declared.results.size(); ++i)
    out.emplace_back(declared.results[i].name, source_.value_name(source_.result(*node, i)));
  return out;
}

Result<ValueId> PieceCall::find(std::string_view value) const {
  for (const auto* some : {&piece_.inputs, &piece_.outputs})
    for (const ValueId v : *some)
      if (source_.value_name(v) == value && !has_no_tensor(source_, v)) return v;
  std::vector<std::string> names = inputs();
  for (std::string& output : outputs()) names.push_back(std::move(output));
  return refused(piece_, fmt::format("it does not read or write a tensor `{}`", value),
                 fmt::format("it has {}", fmt::join(names, ", ")));
}

Result<Tensor> PieceCall::read(std::string_view value) {
  const ValueId v = PW_TRY(find(value));
  const Extents extents = PW_TRY(extents_of(source_, v, valid_));
  const Tensor whole = PW_TRY(read_all(v));
  return cut(whole.view(), extents);
}

Status PieceCall::write(std::string_view value, const TensorView& contents) {
  const ValueId v = PW_TRY(find(value));
  if (source_.is_input(v))
    return refused(piece_, fmt::format("`{}` is an input of the graph", value),
                   "pass other contents for it to the step");
  const Extents extents = PW_TRY(extents_of(source_, v, valid_));
  const DType dtype = source_.context().types[source_.type(v)].dtype;
  if (contents.dtype != dtype || contents.extents != extents)
    return refused(piece_,
                   fmt::format("`{}` is {}, but {} is written", value, shape_of(dtype, extents),
                               shape_of(contents.dtype, contents.extents)),
                   "write a tensor of the same dtype and shape");
  const Extents all = PW_TRY(padded_extents(v));
  return write_all(v, padded(cut(contents, extents), all, false));
}

Status PieceHook::before(PieceCall& /*call*/) { return {}; }
Status PieceHook::after(PieceCall& /*call*/) { return {}; }

}  // namespace pw
