#include "import/fx/made_ops.hpp"

#include <algorithm>
#include <array>

#include "graph/foreign.hpp"
#include "import/fx/calls/conversions.hpp"
#include "import/fx/convert.hpp"
#include "import/fx/ops.hpp"

namespace pw::fx {
namespace {

using Names = MadeOps::Names;

// Ops whose functions call the op of their row, kMoves, and ops that are created anywhere.
constexpr std::array<Conversion*, 23> kPlain = {convert_view,
                                                convert_flatten,
                                                convert_unsqueeze,
                                                convert_squeeze,
                                                convert_t,
                                                convert_permute,
                                                convert_slice,
                                                convert_select,
                                                convert_narrow,
                                                convert_split,
                                                convert_unbind,
                                                convert_cat,
                                                convert_stack,
                                                convert_expand,
                                                convert_make,
                                                convert_scalar,
                                                convert_to_copy,
                                                convert_type_of,
                                                convert_reduce,
                                                convert_copy,
                                                convert_matmul,
                                                convert_unflatten,
                                                convert_repeat_interleave};
constexpr std::array<std::string_view, 7> kMoves = {"cat",   "reshape",   "slice", "slice_scatter",
                                                    "split", "transpose", "full"};

// Returns the op of an operator on tensors; empty if it makes no node.
std::string_view op_of(const pw::Expr& e) {
  if (e.kind == pw::Expr::Kind::call) return e.text;
  if (e.kind == pw::Expr::Kind::negate) return "neg";
  if (e.kind != pw::Expr::Kind::binary) return {};
  return e.text == "+" ? "add" : e.text == "-" ? "sub" : e.text == "*" ? "mul" : "div";
}

void collect_ops(const pw::Expr& e, Names& out) {
  if (const std::string_view op = op_of(e); !op.empty()) out.emplace(op);
  for (const pw::Expr& argument : e.args) collect_ops(argument, out);
}

// The ops that a row makes; nothing: any.
std::optional<Names> made_by(const Mapping& row) {
  Names out;
  if (row.foreign != nullptr) {
    for (const pw::Statement& statement : row.foreign->body) collect_ops(statement.value, out);
    return out;
  }
  out.emplace(row.op);
  if (!row.convert && row.special == Special::none) return out;
  if (std::ranges::find(kPlain, row.convert) == kPlain.end()) return std::nullopt;
  out.insert(kMoves.begin(), kMoves.end());
  return out;
}

}  // namespace

const Names& MadeOps::anywhere() {
  static const Names names{"cast", "clone", "constant", "detach", "expand", "extent"};
  return names;
}

MadeOps::MadeOps(const ContextPtr& context)
    : table_(std::make_unique<Table>(context->foreign.get())) {}
MadeOps::~MadeOps() = default;

std::optional<Names> MadeOps::operator()(std::string_view target) const {
  const std::vector<Mapping>* rows = table_->find(strip(target));
  if (rows == nullptr) return std::nullopt;
  Names out;
  for (const Mapping& row : *rows) {
    std::optional<Names> made = made_by(row);
    if (!made) return std::nullopt;
    out.merge(*made);
  }
  return out;
}

}  // namespace pw::fx
