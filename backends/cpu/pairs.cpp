#include "backends/cpu/pairs.hpp"

#include <map>
#include <optional>

#include "backends/cpu/phases.hpp"

namespace pw::cpu {
namespace {

using rows::Block;
using rows::Index;
using rows::IndexId;
using rows::Indices;
using rows::Statement;
using rows::VarId;
using StatementKind = Statement::Kind;

constexpr std::int64_t kShortest = 64;  // minimum number of columns that pays off

/// Returns true if the next column is the next element.
bool is_next(const Indices& indices, IndexId id, VarId var) {
  const auto terms = indices.terms(id);
  if (!terms) return false;
  bool steps = false;
  for (const auto& [atom, factor] : terms->factors) {
    if (!indices.depends(atom, var)) continue;
    if (indices[atom].kind != Index::Kind::variable || factor != 1) return false;
    steps = true;
  }
  return steps;
}

/// Returns the vector operations saved per 32 columns; nothing if the loop cannot use pairs.
std::optional<int> gain(const rows::RowProgram& program, const Block& body, VarId var) {
  int total = 0;
  for (const Statement& s : body) {
    if (s.kind != StatementKind::load && s.kind != StatementKind::store) continue;
    const Indices& indices = program.indices;
    if (!indices.depends(s.index, var)) {
      if (s.kind == StatementKind::store) return std::nullopt;
      continue;
    }
    if (!is_next(indices, s.index, var)) return std::nullopt;
    // Other accesses must be split into even and odd columns, or joined from them.
    if (!is_packed(program, s, var))
      total -= 2;
    else if (size_of(program.type(s.argument).dtype) == 2)
      total += s.kind == StatementKind::load ? 2 : 3;
  }
  return total;
}

}  // namespace

bool is_packed(const rows::RowProgram& program, const Statement& access, VarId var) {
  const DType dtype = program.type(access.argument).dtype;
  return is_float(dtype) && size_of(dtype) <= 2 && program.indices.depends(access.index, var);
}

std::set<VarId> loops_in_pairs(const rows::RowProgram& program, const Block& block) {
  struct Group {
    std::set<VarId> loops;
    int gain = 0;
    bool possible = true;
  };
  std::map<std::int64_t, Group> groups;  // by extent
  for (const Statement& s : block) {
    if (s.kind != StatementKind::reduce && s.kind != StatementKind::loop) continue;
    const rows::Interval extent = program.indices.interval(program.indices.extent(s.var));
    if (extent.low != extent.high || extent.high % 2 != 0 || extent.high < kShortest) continue;
    Group& group = groups[extent.high];
    const auto gained = is_flat(s.first) ? gain(program, s.first, s.var) : std::nullopt;
    group.possible = group.possible && gained;
    group.gain += gained.value_or(0);
    group.loops.insert(s.var);
  }
  std::set<VarId> out;
  for (const auto& [extent, group] : groups) {
    if (group.possible && group.gain > 0) out.insert(group.loops.begin(), group.loops.end());
  }
  return out;
}

}  // namespace pw::cpu
