#include "verify/samples/sample_space.hpp"

#include <algorithm>

#include "backends/program.hpp"

namespace pw {
namespace {

enum Feature : int { kDType, kRank, kSize, kBroadcast };
constexpr int kNoBroadcast = 2;

/// Checks which operands of an op with several are smaller than its result: the first or another.
std::array<bool, 2> smaller_operands(const Graph& graph, NodeId node, const Symbols& symbols) {
  std::array<bool, 2> out = {};
  if (graph.operand_count(node) < 2 || graph.result_count(node) == 0) return out;
  if (!graph.op_of(node).traits.pointwise) return out;
  const auto whole = extents_of(graph, graph.result(node), symbols);
  for (std::size_t i = 0; whole && i < graph.operand_count(node); ++i) {
    const ValueId value = graph.operand(node, i);
    const auto part = value.valid() ? extents_of(graph, value, symbols) : whole;
    if (part && *part != *whole) out.at(i == 0 ? 0 : 1) = true;
  }
  return out;
}

std::int64_t kind_of(std::int64_t extent) { return std::min<std::int64_t>(extent, 2); }

}  // namespace

bool SampleSpace::add(const Graph& graph, const Symbols& symbols) {
  std::vector<int> broadcasts;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    const std::array<bool, 2> smaller = smaller_operands(graph, node, symbols);
    for (int i = 0; i < 2; ++i)
      if (smaller.at(static_cast<std::size_t>(i))) broadcasts.push_back(i);
  }
  for (const int i : broadcasts) (i == 0 ? drawn_.first_smaller : drawn_.others_smaller) = true;
  if (broadcasts.empty()) broadcasts.push_back(kNoBroadcast);
  bool fresh = false;
  for (ValueId input : graph.inputs()) {
    if (graph.type(input) == Types::unknown()) continue;
    const auto extents = extents_of(graph, input, symbols);
    if (!extents) continue;
    const DType dtype = graph.context().types[graph.type(input)].dtype;
    drawn_.dtypes.insert(dtype);
    drawn_.ranks.insert(extents->size());
    std::vector<std::pair<int, int>> own = {{kDType, static_cast<int>(dtype)},
                                            {kRank, static_cast<int>(extents->size())}};
    std::int64_t least = 2;
    for (std::int64_t extent : *extents) {
      drawn_.sizes.insert(kind_of(extent));
      least = std::min(least, kind_of(extent));
    }
    own.emplace_back(kSize, static_cast<int>(least));
    for (const int i : broadcasts) own.emplace_back(kBroadcast, i);
    for (const auto& a : own)
      for (const auto& b : own)
        if (a.first < b.first)
          fresh = pairs_.insert({a.first, a.second, b.first, b.second}).second || fresh;
  }
  return fresh;
}

void SampleSpace::add(std::size_t position, const Tensor& tensor, Contents contents) {
  const std::vector<ElementBits>& values = special_values(tensor.dtype(), contents);
  if (values.empty()) return;
  std::set<ElementBits>& seen = seen_[{position, tensor.dtype(), contents}];
  const std::int64_t count = tensor.view().count();
  for (std::int64_t i = 0; i < count && seen.size() < values.size(); ++i) {
    const ElementBits bits = load_bits(tensor, i);
    if (std::find(values.begin(), values.end(), bits) != values.end()) seen.insert(bits);
  }
}

bool SampleSpace::complete(std::size_t position, DType dtype, Contents contents) const {
  const std::size_t all = special_values(dtype, contents).size();
  const auto found = seen_.find({position, dtype, contents});
  return all == 0 || (found != seen_.end() && found->second.size() == all);
}

DrawnSamples SampleSpace::drawn() const {
  DrawnSamples out = drawn_;
  for (const DType dtype : drawn_.dtypes) out.refused.erase(dtype);
  std::map<std::pair<std::size_t, DType>, DrawnSamples::Share> inputs;
  for (const auto& [input, values] : seen_) {
    const auto& [position, dtype, contents] = input;
    DrawnSamples::Share& share = inputs[{position, dtype}];
    share.least += values.size();
    share.of += special_values(dtype, contents).size();
  }
  for (const auto& [input, share] : inputs) {
    const auto [entry, first] = out.special.emplace(input.second, share);
    if (!first && share.least * entry->second.of < entry->second.least * share.of)
      entry->second = share;
  }
  return out;
}

}  // namespace pw
