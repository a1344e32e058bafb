// Families of decoders as data: which parts each has, and the sizes of one published model. Graphs
// are made from these, op for op as vLLM compiles the models; see families.cpp for where a graph
// of open form differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

enum class NormKind : std::uint8_t {
  rms,
  rms_plus_one,  ///< by 1 + w in f32
  layer,         ///< written out, with weight and bias
};
/// RMSNorm of each head of queries and keys.
enum class HeadNorm : std::uint8_t {
  none,
  before_rope,
  after_rope,  ///< without weights, in f32
};
enum class Activation : std::uint8_t { silu, gelu_tanh, relu };
/// Where the experts' logits come from.
enum class Router : std::uint8_t {
  none,     ///< no experts
  product,  ///< of a matrix, beside the mixture
  inside,   ///< the mixture makes them of its rows
};

/// What a family's layers are made of.
struct ModelParts {
  NormKind norm = NormKind::rms;
  double eps = 1e-5;
  bool norm_results = false;  ///< of attention and feed-forward layer, before they are added
  bool scaled_embedding = false;
  std::int64_t position_offset = -1;  ///< of a learned table; negative: rotary embedding
  bool neox = true;                   ///< the layout of its pairs
  std::int64_t plain_every = 0;       ///< each such layer turns nothing, but scales its queries
  HeadNorm head_norm = HeadNorm::none;
  bool latent = false;  ///< multi-head latent attention
  bool qkv_bias = false, out_bias = false, ffn_bias = false;
  Activation activation = Activation::silu;
  bool gated = true;  ///< by a second half of the first product
  Router router = Router::none;
  bool router_bias = false, sigmoid = false;  ///< sigmoid: of the logits, in softmax's place
  bool whole_weights = true;                  ///< the weights of the chosen experts add up to 1
};

/// The sizes of a model of all ranks. A width of 0 is a part that there is not.
struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0;
  std::int64_t head = 0;  ///< width; of latent attention without the part that is turned
  std::int64_t ffn = 0, vocab = 0;
  std::int64_t experts = 0, topk = 0, expert_ffn = 0;
  std::int64_t shared = 0;        ///< experts that take every row
  std::int64_t dense_layers = 0;  ///< the first ones, without experts
  std::int64_t q_rank = 0, kv_rank = 0;
};

struct ModelFamily {
  std::string_view name, what;
  ModelParts parts;
  ModelSizes sizes;
};

[[nodiscard]] const std::vector<ModelFamily>& decoder_families();
/// none, fp8, fp8-token, fp8-group, nvfp4.
[[nodiscard]] const std::vector<std::string>& family_quantisations();
/// Null where there is none of that name.
[[nodiscard]] const ModelFamily* find_family(std::string_view name);

struct FamilyOptions {
  std::string family;
  /// What is left out is the family's: heads / kv_heads stay in proportion, a head is hidden /
  /// heads where one of these is given, an expert as wide as a given ffn.
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, head, ffn, vocab, experts, topk,
      expert_ffn, q_rank, kv_rank;
  std::optional<double> eps;   ///< of all norms
  std::string quant = "none";  ///< one of family_quantisations(): of each linear layer
  std::int64_t group = 128;    ///< of fp8-group: neighbours with one scale
  /// Ranks of tensor parallelism, and which of them the graph is for: local widths, all_reduce over
  /// the group "tp:0", rows of the vocabulary. Rank 0 alone has the biases of what is added up.
  std::int64_t tp = 1, rank = 0;
  /// A mixture of experts, and latent attention, are one op whose weights are its own: no engine
  /// runs it.
  bool opaque = false;
  std::int64_t positions = 8192, max_tokens = 8192;
};

/// The sizes that the options ask for. PW0801 for a family that there is not, and for a size of a
/// part that it does not have.
Result<ModelSizes> family_sizes(const FamilyOptions& options);

/// From token ids and positions to the last hidden state, over the symbol `n`. PW0801 for sizes
/// that do not divide, or a graph of more than about a million nodes.
Result<Graph> generate_family(const ContextPtr& context, const FamilyOptions& options);

}  // namespace pw
