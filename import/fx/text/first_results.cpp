// Core ATen has no layer_norm and no rms_norm: its norms also return statistics, which only
// training reads. Where nothing reads them, the call becomes that of the op with one result, which
// programs of torch.export have before decomposition, so that both import as one op.
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOps{{
    {"torch.ops.aten.native_layer_norm.default", "torch.ops.aten.layer_norm.default"},
    {"torch.ops.aten._fused_rms_norm.default", "torch.ops.aten.rms_norm.default"},
}};

/// Returns the op with one result; empty for other calls.
std::string_view single(const Expr& e) {
  if (e.kind != Expr::Kind::call) return {};
  for (const auto& [several, one] : kOps)
    if (e.text == several) return one;
  return {};
}

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

struct Uses {
  std::size_t call = kNowhere;   // statement that computes the tuple
  std::size_t first = kNowhere;  // that takes the first result
  std::size_t count = 0;         // of the tuple
};
using Tuples = std::map<std::string, Uses, std::less<>>;  // by name

void count_uses(const Expr& e, Tuples& tuples) {
  if (e.kind == Expr::Kind::name)
    if (const auto found = tuples.find(e.text); found != tuples.end()) ++found->second.count;
  for (const Expr& part : e.args) count_uses(part, tuples);
}

/// Returns true for `a = t[0]`.
bool takes_first(const Statement& s) {
  const Expr& e = s.value;
  const bool item =
      e.kind == Expr::Kind::index || (e.kind == Expr::Kind::call && e.text == "operator.getitem");
  return s.kind == Statement::Kind::assign && s.targets.size() == 1 && item && e.args.size() == 2 &&
         e.args[0].kind == Expr::Kind::name && e.args[1].kind == Expr::Kind::integer &&
         e.args[1].integer == 0;
}

}  // namespace

void name_first_results(Function& function) {
  std::vector<Statement>& all = function.statements;
  Tuples tuples;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].kind == Statement::Kind::assign && all[i].targets.size() == 1 &&
        !single(all[i].value).empty())
      tuples[all[i].targets[0].text].call = i;
  if (tuples.empty()) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    count_uses(all[i].value, tuples);
    if (!takes_first(all[i])) continue;
    const auto tuple = tuples.find(all[i].value.args[0].text);
    if (tuple != tuples.end()) tuple->second.first = i;
  }
  std::vector<bool> taken(all.size());
  for (const auto& [name, tuple] : tuples) {
    if (tuple.first == kNowhere || tuple.count != 1) continue;
    Statement &call = all[tuple.call], &first = all[tuple.first];
    call.first_of = {call.value.text, call.targets[0].text};
    call.value.text = single(call.value);
    call.targets = std::move(first.targets);
    call.type = std::move(first.type);
    call.type_span = first.type_span;
    taken[tuple.first] = true;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (taken[i]) continue;
    if (kept != i) all[kept] = std::move(all[i]);
    ++kept;
  }
  all.resize(kept);
}

}  // namespace pw::fx
