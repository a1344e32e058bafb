#include "codegen/rowprogram/loop_cuts.hpp"

namespace pw::rows {
namespace {

constexpr std::int64_t kMinGroup = 4;  // narrower groups would split the 8-column accesses
constexpr std::int64_t kMinPart = 2;   // of a loop that exists only for a condition

}  // namespace

void LoopCuts::tile(VarId var, std::int64_t offset, std::int64_t size) {
  const auto found = cut_of_.find(var);
  if (!cutting_ || found == cut_of_.end() || size < 2 || offset % size != 0) return;
  const std::int64_t extent = program_.indices.interval(program_.indices.extent(var)).high;
  if (extent % size != 0 || extent == size) return;
  found->second->tile = size;
  found->second->first = std::make_unique<Cut>();
  throw Recut{};
}

void LoopCuts::cut_at(IndexId place, std::int64_t bound) {
  std::int64_t modulus = 0, divisor = 1;  // place is ((var + …) / divisor) % modulus
  for (;;) {
    const Index node = program_.indices[place];
    const bool by_number = node.b.valid() && program_.indices[node.b].kind == Index::Kind::constant;
    const std::int64_t number = by_number ? program_.indices[node.b].constant : 0;
    if (node.kind == Index::Kind::variable) {
      const VarId var(static_cast<std::size_t>(node.constant));
      if (modulus != 0) {
        if (modulus >= kMinGroup) tile(var, 0, modulus);
        return;
      }
      const auto found = cut_of_.find(var);
      if (!cutting_ || found == cut_of_.end()) return;
      const std::int64_t extent = program_.indices.interval(program_.indices.extent(var)).high;
      if (bound < kMinPart || extent - bound < kMinPart) return;
      found->second->at = bound;
      found->second->first = std::make_unique<Cut>();
      found->second->second = std::make_unique<Cut>();
      throw Recut{};
    }
    if (!by_number || number > (std::int64_t{1} << 40)) return;
    place = node.a;
    if (node.kind == Index::Kind::add) {
      if (modulus != 0 && number % modulus != 0) return;
      bound -= number;
    } else if (node.kind == Index::Kind::div) {
      if (modulus != 0) modulus *= number;
      divisor *= number;
      bound *= number;
    } else if (node.kind == Index::Kind::mod && modulus == 0) {
      modulus = number * divisor;
    } else {
      return;
    }
    if (divisor > (std::int64_t{1} << 40) || std::abs(bound) > (std::int64_t{1} << 50)) return;
  }
}

void LoopCuts::cut_into_groups(IndexId place) {
  const auto terms = program_.indices.terms(place);
  if (!terms) return;
  for (const auto& [atom, factor] : terms->factors) {
    const Index node = program_.indices[atom];
    if (!node.b.valid()) continue;
    if (node.kind == Index::Kind::div && program_.indices[node.b].kind == Index::Kind::constant) {
      const auto inner = program_.indices.terms(node.a);
      if (inner && inner->factors.size() == 1) {
        const Index var = program_.indices[inner->factors.begin()->first];
        if (var.kind == Index::Kind::variable && inner->factors.begin()->second == 1)
          tile(VarId(static_cast<std::size_t>(var.constant)), inner->constant,
               program_.indices[node.b].constant);
      }
    }
    cut_into_groups(node.a);
  }
}

}  // namespace pw::rows
