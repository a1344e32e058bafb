// Families of decoders as data: the parts of each, and the sizes of one published model. Graphs
// generated from them match vLLM's compiled models op for op; families.cpp states where a graph in
// open form differs.
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
/// Source of the experts' logits.
enum class Router : std::uint8_t {
  none,     ///< no experts
  product,  ///< product with a matrix outside the mixture
  inside,   ///< the mixture computes them from its rows
};

/// Parts of a family's layers.
struct ModelParts {
  NormKind norm = NormKind::rms;
  double eps = 1e-5;
  bool norm_results = false;  ///< of attention and feed-forward layer, before they are added
  bool scaled_embedding = false;
  std::int64_t position_offset = -1;  ///< of a learned table; negative: rotary embedding
  bool neox = true;                   ///< the layout of its pairs
  std::int64_t plain_every = 0;       ///< each such layer rotates nothing, but scales its queries
  HeadNorm head_norm = HeadNorm::none;
  bool latent = false;  ///< multi-head latent attention
  bool qkv_bias = false, out_bias = false, ffn_bias = false;
  Activation activation = Activation::silu;
  bool gated = true;  ///< by a second half of the first product
  Router router = Router::none;
  bool router_bias = false, sigmoid = false;  ///< sigmoid: of the logits, instead of softmax
  bool whole_weights = true;                  ///< the weights of the chosen experts add up to 1
};

/// The sizes of a model over all ranks. A width of 0 means that the part is absent.
struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0;
  std::int64_t head = 0;  ///< width; of latent attention without the rotated part
  std::int64_t ffn = 0, vocab = 0;
  std::int64_t experts = 0, topk = 0, expert_ffn = 0;
  std::int64_t shared = 0;        ///< experts that process every row
  std::int64_t dense_layers = 0;  ///< the first ones, without experts
  std::int64_t q_rank = 0, kv_rank = 0;
};

struct ModelFamily {
  std::string_view name, what;
  ModelParts parts;
  ModelSizes sizes;
};

[[nodiscard]] const std::vector<ModelFamily>& decoder_families();
/// Returns the quantisations: none, fp8, fp8-token, fp8-group, nvfp4.
[[nodiscard]] const std::vector<std::string>& family_quantisations();
/// Returns the family of that name, or null.
[[nodiscard]] const ModelFamily* find_family(std::string_view name);

struct FamilyOptions {
  std::string family;
  /// Sizes; the family's if omitted. heads / kv_heads stay in proportion, a head is hidden / heads
  /// if one of these is given, and an expert is as wide as a given ffn.
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, head, ffn, vocab, experts, topk,
      expert_ffn, q_rank, kv_rank;
  std::optional<double> eps;     ///< of all norms
  std::string quant = "none";    ///< one of family_quantisations(): of each linear layer
  std::string lm_head = "none";  ///< parts after the last hidden state, see parse_next_token
  std::int64_t group = 128;      ///< of fp8-group: neighbours with one scale
  /// Ranks of tensor parallelism, and the rank that the graph is for: local widths, all_reduce over
  /// the group "tp:0", rows of the vocabulary. Only rank 0 has the biases that are added to a sum.
  std::int64_t tp = 1, rank = 0;
  /// Makes a mixture of experts, and latent attention, one op that owns its weights; no engine runs
  /// it.
  bool opaque = false;
  std::int64_t positions = 8192, max_tokens = 8192;
};

/// Returns the sizes that the options select. PW0801 for an unknown family, or for a size of a part
/// that the family lacks.
Result<ModelSizes> family_sizes(const FamilyOptions& options);

/// Generates the graph from token ids and positions to the last hidden state, or to the next token,
/// over the symbol `n`. PW0801 for sizes that do not divide, or a graph of more than about a
/// million nodes.
Result<Graph> generate_family(const ContextPtr& context, const FamilyOptions& options);

}  // namespace pw
