// Assigns tensors of a file to the inputs of a graph: by equal names, or by a map, for single
// inputs or for all layers at once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/weights.hpp"
#include "tensor/safetensors.hpp"

namespace pw {

/// Names of inputs to names of tensors. `{i}` in a key stands for digits, and in its value for the
/// same: {"l{i}_qkv_w": "layers.{i}.attn.qkv.weight"}. A key without comes first.
class TensorMap {
 public:
  /// PW1273 for what is no JSON object of texts, and a `{` without its end or with no name, or a
  /// value that asks for digits that the key does not have.
  static Result<TensorMap> parse(std::string_view json, const std::string& file);
  /// Nothing where no key fits.
  [[nodiscard]] std::optional<std::string> tensor_of(std::string_view input) const;
  /// Keys that fit none of these inputs.
  [[nodiscard]] std::vector<std::string> unused(const std::vector<std::string>& inputs) const;

 private:
  Status add(const std::string& key, const std::string& value, const std::string& file);
  std::map<std::string, std::string, std::less<>> exact_;
  std::vector<std::pair<std::string, std::string>> patterns_;
};

struct GivenTensors {
  std::size_t inputs = 0;           ///< that were given a tensor
  std::size_t of_seed = 0;          ///< that are none of the model's weights and were not
  std::vector<std::string> unused;  ///< tensors of the file
};
/// Gives weights and other inputs of the graph their tensors. Every weight must have one of its
/// dtype and extents; other inputs where the file has one. PW1272 for each that has not, with the
/// nearest name; PW1273 for a key of the map that no input fits.
Result<GivenTensors> give_tensors(const Graph& graph, const Safetensors& file, const TensorMap& map,
                                  Weights& weights);

}  // namespace pw
