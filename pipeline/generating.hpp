// Graphs of model families, from options as `pwr generate` takes them, from their text, or from
// names and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/generate.hpp"

namespace pw {

struct ModelRequest {
  std::string family;  ///< llama, or moe: with experts in its feed-forward layers
  LlamaOptions llama;  ///< its `experts` are those of `experts`, of the family moe
  std::int64_t experts = 8;
  std::optional<std::uint64_t> shuffle;  ///< another topological order, drawn by this seed
};

/// A whole number of a request, by the name of its option.
struct ModelNumber {
  std::string_view name;  ///< "kv-heads"
  std::int64_t least = 1, most = 1;
  std::int64_t* (*place)(ModelRequest&);
};
[[nodiscard]] const std::vector<ModelNumber>& model_numbers();
[[nodiscard]] const std::vector<std::string>& model_families();
[[nodiscard]] const std::vector<std::string>& model_quantisations();

/// PW1430 for a family, a number or a quantisation that there is not.
Result<Graph> generate_model(const ContextPtr& context, const ModelRequest& request);
/// `llama --layers 2 --tp 2`. PW1430 where `pwr generate` would not take it.
Result<ModelRequest> parse_model(const std::string& options);

}  // namespace pw
