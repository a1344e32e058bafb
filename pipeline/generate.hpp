// Graphs of model families, from options as `pwr generate` takes them, from their text, or from
// names and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "models/families.hpp"

namespace pw {

struct ModelRequest {
  /// Its `family` may also be `llama`, or `moe` with experts in its feed-forward layers: decoders
  /// before any fusion, written with plain ops.
  FamilyOptions model;
  std::optional<std::int64_t> max_tokens, tp, rank, group;
  std::optional<std::uint64_t> shuffle;  ///< another topological order, drawn by this seed
  bool separate = false;                 ///< of llama and moe: see LlamaOptions
};

/// A whole number of a request, by the name of its option.
struct ModelNumber {
  std::string_view name;  ///< "kv-heads"
  std::int64_t least = 1, most = 1;
  std::optional<std::int64_t>* (*place)(ModelRequest&);
};
[[nodiscard]] const std::vector<ModelNumber>& model_numbers();
/// What `--family` may be, with a line about each.
struct FamilyName {
  std::string name, what;
};
[[nodiscard]] const std::vector<FamilyName>& model_families();
[[nodiscard]] const std::vector<std::string>& model_quantisations();

/// The layers of the model that is asked for, of a family that there is.
[[nodiscard]] std::int64_t model_layers(const ModelRequest& request);
/// PW1430 for a family, a number or a quantisation that there is not, PW0801 for numbers that do
/// not fit the family or each other.
Result<Graph> generate_model(const ContextPtr& context, const ModelRequest& request);
/// `llama --layers 2 --tp 2`. PW1430 where `pwr generate` would not take it.
Result<ModelRequest> parse_model(const std::string& options);

}  // namespace pw
