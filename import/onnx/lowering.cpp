#include "import/onnx/lowering.hpp"

#include <map>

namespace pw::onnx {

const Lowering* find_lowering(std::string_view op, std::int64_t version) {
  using Rows = std::map<std::string_view, std::map<std::int64_t, const Lowering*>>;
  static const Rows rows = [] {
    Rows out;
    for (const auto table :
         {layout_lowerings(), index_lowerings(), arithmetic_lowerings(), reduction_lowerings(),
          product_lowerings(), window_lowerings(), norm_lowerings(), resize_lowerings(),
          signal_lowerings(), loss_lowerings(), ngram_lowerings()})
      for (const Lowering& row : table) out[row.op][row.since] = &row;
    return out;
  }();
  const auto found = rows.find(op);
  if (found == rows.end()) return nullptr;
  const auto after = found->second.upper_bound(version);
  return after == found->second.begin() ? nullptr : std::prev(after)->second;
}

}  // namespace pw::onnx
