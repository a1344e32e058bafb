#include "codegen/rowprogram/scopes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::rows {
namespace {

constexpr std::size_t kMaxStatements = 20000;

}  // namespace

Scopes::Scopes(RowProgram& program, VarId row) : program_(program) {
  push(std::make_unique<Scope>());
  innermost().vars = {row};
}

std::size_t Scopes::scope_of(const std::vector<VarId>& vars) const {
  for (std::size_t i = scopes_.size(); i-- > 1;) {
    for (VarId v : scopes_[i]->vars) {
      if (std::binary_search(vars.begin(), vars.end(), v)) return i;
    }
  }
  return 0;
}

SlotId Scopes::emit(Statement statement, DType dtype, const std::vector<VarId>& vars) {
  if (++statements_ > kMaxStatements)
    throw Opaque{fmt::format("its row program has more than {} statements", kMaxStatements)};
  statement.slot = program_.slots.push_back(dtype);
  slot_vars_.push_back(vars);
  const SlotId slot = statement.slot;
  scopes_[scope_of(vars)]->block.push_back(std::move(statement));
  return slot;
}

SlotId Scopes::known(const std::pair<ValueId, Position>& element) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    if (const auto found = scopes_[i]->known.find(element); found != scopes_[i]->known.end())
      return found->second;
  }
  return {};
}

void Scopes::remember(std::pair<ValueId, Position> element, SlotId slot) {
  scopes_[scope_of(slot)]->known.emplace(std::move(element), slot);
}

std::unique_ptr<Scope> Scopes::pop() {
  std::unique_ptr<Scope> scope = std::move(scopes_.back());
  scopes_.pop_back();
  return scope;
}

}  // namespace pw::rows
