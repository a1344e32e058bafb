// Value numbering across loops. Two slots of different loops are equal if they are computed by the
// same operations of the same elements, up to the loop variables.
#include "backends/cpu/phases.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace pw::cpu {
namespace {

using rows::Block;
using rows::SlotId;
using rows::Statement;
using StatementKind = Statement::Kind;

/// Returns true if recomputing costs no more than keeping.
bool cheap(const Statement& s) {
  if (s.kind != StatementKind::compute) return true;
  return s.operation == Primitive::cast || s.operation == Primitive::neg ||
         s.operation == Primitive::abs;
}

class Sharing {
 public:
  explicit Sharing(const rows::RowProgram& program) : program_(program) {}

  void add(const Statement& loop) {
    const rows::Indices& indices = program_.indices;
    const rows::IndexId extent = indices.extent(loop.var);
    if (indices[extent].kind != rows::Index::Kind::constant || !is_flat(loop.first)) return;
    const std::int64_t size = indices[extent].constant;
    if (size > kMostKept) return;
    keys_.clear();
    statements_.clear();
    for (const Statement& s : loop.first) {
      if (!s.slot.valid()) continue;
      statements_[s.slot] = &s;
      keys_[s.slot] = key(s, loop.var, size);
    }
    std::set<SlotId> needed;
    for (const Statement& s : loop.first) {
      if (s.kind != StatementKind::store && s.kind != StatementKind::check) continue;
      need(s.operands[0], needed, size);
      if (s.kind == StatementKind::store) need_address(s.index, needed, size);
    }
    if (loop.kind == StatementKind::reduce) need(loop.operands[0], needed, size);
    for (const Statement& s : loop.first) {
      if (s.kind == StatementKind::store) find_result(s, loop.var);
    }
    for (const auto& [slot, statement] : statements_) {
      if (needed.count(slot) == 0) out_.idle.insert(slot);
      if (needed.count(slot) != 0 && out_.read.count(slot) == 0) first_.emplace(keys_[slot], slot);
    }
  }

  Phases take() { return std::move(out_); }

 private:
  std::string key(const Statement& s, rows::VarId var, std::int64_t extent) const {
    const auto operand = [&](SlotId slot) {
      const auto found = keys_.find(slot);
      return found == keys_.end() ? fmt::format("v{}", slot.index) : found->second;
    };
    std::string out = fmt::format("{} {}:", extent, name(program_.slots[s.slot]));
    if (s.kind == StatementKind::constant) return out + fmt::format("{:a}", s.real);
    if (s.kind == StatementKind::place) return out + address(s.index, var);
    if (s.kind == StatementKind::load)
      return out + fmt::format("p{}[{}]", s.argument, address(s.index, var));
    out += fmt::format("{} {}(", name(s.operation), name(s.unit));
    for (SlotId o : s.operands) out += operand(o) + ",";
    return out + ")";
  }

  /// Returns the printed address with the loop's variable as `#`; an element that a slot of the
  /// loop selects is unique.
  std::string address(rows::IndexId id, rows::VarId var) const {
    const rows::Index& node = program_.indices[id];
    using K = rows::Index::Kind;
    switch (node.kind) {
      case K::constant: return std::to_string(node.constant);
      case K::variable:
        return node.constant == static_cast<std::int64_t>(var.index)
                   ? "#"
                   : "i" + std::to_string(node.constant);
      case K::param: return "d" + std::to_string(node.constant);
      case K::slot: {
        const SlotId slot(static_cast<std::size_t>(node.constant));
        const auto found = keys_.find(slot);
        return found == keys_.end() ? fmt::format("v{}", slot.index) : "{" + found->second + "}";
      }
      case K::add:
      case K::sub:
      case K::mul:
      case K::div:
      case K::mod:
      case K::clamp:
        return fmt::format("({} {} {})", address(node.a, var), static_cast<int>(node.kind),
                           address(node.b, var));
    }
    return "";
  }

  void find_result(const Statement& store, rows::VarId var) {
    const auto read = out_.read.find(store.operands[0]);
    if (read == out_.read.end() || program_.indices.reads_slot(store.index)) return;
    const DType dtype = program_.type(store.argument).dtype;
    Phases::Shared& shared = out_.kept.at(read->second);
    const bool same = dtype == program_.slots[shared.first] && size_of(dtype) >= 4;
    if (same && shared.store == nullptr) shared.store = &store, shared.var = var;
  }

  void need(SlotId slot, std::set<SlotId>& needed, std::int64_t extent) {
    const auto found = statements_.find(slot);
    if (found == statements_.end() || !needed.insert(slot).second) return;
    const Statement& s = *found->second;
    if (const auto known = first_.find(keys_[slot]); known != first_.end() && !cheap(s)) {
      out_.kept.emplace(known->second, Phases::Shared{known->second, extent, nullptr, {}});
      out_.read.emplace(slot, known->second);
      return;
    }
    for (SlotId o : s.operands) need(o, needed, extent);
    if (s.kind == StatementKind::load || s.kind == StatementKind::place)
      need_address(s.index, needed, extent);
  }

  void need_address(rows::IndexId id, std::set<SlotId>& needed, std::int64_t extent) {
    const rows::Index& node = program_.indices[id];
    if (node.kind == rows::Index::Kind::slot)
      need(SlotId(static_cast<std::size_t>(node.constant)), needed, extent);
    if (node.a.valid()) need_address(node.a, needed, extent);
    if (node.b.valid()) need_address(node.b, needed, extent);
  }

  const rows::RowProgram& program_;
  std::map<SlotId, std::string> keys_;             // of the current loop
  std::map<SlotId, const Statement*> statements_;  // of the current loop
  std::map<std::string, SlotId> first_;            // computed by an earlier loop
  Phases out_;
};

}  // namespace

bool is_flat(const Block& block) {
  for (const Statement& s : block) {
    if (s.kind == StatementKind::reduce || s.kind == StatementKind::branch ||
        s.kind == StatementKind::loop)
      return false;
  }
  return true;
}

std::string simd_loop(const Block& body) {
  const bool checks = std::any_of(body.begin(), body.end(), [](const Statement& s) {
    return s.kind == Statement::Kind::check;
  });
  return checks ? "#pragma omp simd reduction(|:bad)" : "#pragma omp simd";
}

Phases share_phases(const rows::RowProgram& program, const Block& block) {
  Sharing sharing(program);
  for (const Statement& s : block) {
    if (s.kind == StatementKind::reduce || s.kind == StatementKind::loop) sharing.add(s);
  }
  return sharing.take();
}

}  // namespace pw::cpu
