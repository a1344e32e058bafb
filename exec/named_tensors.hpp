// Assigns tensors of a file to the inputs of a graph: by equal names, or by a map for single inputs
// or for all layers at once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/weights.hpp"
#include "tensor/safetensors.hpp"

namespace pw {

/// Map from input names to tensor names. `{i}` in a key matches digits, and its value repeats them:
/// {"l{i}_qkv_w": "layers.{i}.attn.qkv.weight"}. Keys without placeholders take precedence.
class TensorMap {
 public:
  /// Parses a map. Fails with PW1273 if the text is not a JSON object of strings, if a placeholder
  /// is unclosed or unnamed, or if a value uses a placeholder that its key lacks.
  static Result<TensorMap> parse(std::string_view json, const std::string& file);
  /// Returns the tensor name for an input, or nothing if no key matches.
  [[nodiscard]] std::optional<std::string> tensor_of(std::string_view input) const;
  /// Returns the keys that match none of these inputs.
  [[nodiscard]] std::vector<std::string> unused(const std::vector<std::string>& inputs) const;

 private:
  Status add(const std::string& key, const std::string& value, const std::string& file);
  std::map<std::string, std::string, std::less<>> exact_;
  std::vector<std::pair<std::string, std::string>> patterns_;
};

struct GivenTensors {
  std::size_t inputs = 0;           ///< inputs with a tensor from the file
  std::size_t of_seed = 0;          ///< non-weight inputs without one, generated from the seed
  std::vector<std::string> unused;  ///< tensors of the file
};
/// Assigns tensors to weights and other inputs of the graph. Every weight needs a tensor of its
/// dtype and extents; other inputs are optional. Fails with PW1272 for each missing weight, with
/// the nearest name, and with PW1273 for a key of the map that matches no input.
Result<GivenTensors> give_tensors(const Graph& graph, const Safetensors& file, const TensorMap& map,
                                  Weights& weights);

}  // namespace pw
