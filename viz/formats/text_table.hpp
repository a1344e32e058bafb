// Deduplicated texts of a page. Names in a model differ mostly in their numbers, so a text is
// stored as a template and its numbers: "layers.\x01.mlp", 12.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pw::viz {

class TextTable {
 public:
  /// Returns the number of a text; the empty text is 0. Replaces invalid UTF-8.
  std::uint32_t add(std::string_view text);
  [[nodiscard]] const std::vector<std::string>& templates() const { return templates_; }
  /// Returns the codes of all texts in order: the template, then one number for each of its
  /// placeholders.
  [[nodiscard]] const std::vector<std::int64_t>& codes() const { return codes_; }
  [[nodiscard]] std::size_t size() const { return known_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> known_, templates_known_;
  std::vector<std::string> templates_;
  std::vector<std::int64_t> codes_;
};

}  // namespace pw::viz
