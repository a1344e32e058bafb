// Generates graphs of model families, from options of `pwr generate`, from their text, or from
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
  /// `family` may also be `llama` or `moe` (experts in the feed-forward layers): unfused decoders
  /// of plain ops.
  FamilyOptions model;
  std::optional<std::int64_t> max_tokens, tp, rank, group;
  std::optional<std::uint64_t> shuffle;  ///< seed of another topological order
  bool separate = false;                 ///< for llama and moe; see LlamaOptions
};

/// An integer of a request, by the name of its option.
struct ModelNumber {
  std::string_view name;  ///< "kv-heads"
  std::int64_t least = 1, most = 1;
  std::optional<std::int64_t>* (*place)(ModelRequest&);
};
[[nodiscard]] const std::vector<ModelNumber>& model_numbers();
/// A value of `--family` with its description.
struct FamilyName {
  std::string name, what;
};
[[nodiscard]] const std::vector<FamilyName>& model_families();
[[nodiscard]] const std::vector<std::string>& model_quantisations();

/// Returns the number of layers of the requested model; the family must be valid.
[[nodiscard]] std::int64_t model_layers(const ModelRequest& request);
/// Generates a model. Fails with PW1430 for an unknown family, number, or quantisation, PW0801 for
/// numbers that do not fit the family or each other.
Result<Graph> generate_model(const ContextPtr& context, const ModelRequest& request);
/// Parses `llama --layers 2 --tp 2`. Fails with PW1430 if `pwr generate` would reject it.
Result<ModelRequest> parse_model(const std::string& options);

}  // namespace pw
