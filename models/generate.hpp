// Makes graphs of decoders of any size, unfused, for examples, tests and benchmarks. Needs the op
// library in context.ops.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.hpp"

namespace pw {

struct LlamaOptions {
  std::int64_t layers = 32, hidden = 4096, heads = 32, kv_heads = 8, ffn = 14336;
  std::int64_t vocab = 32000, positions = 8192;  ///< rows of the embedding and the rotary table
  std::int64_t max_tokens = 8192;
  std::string quant = "none";    ///< none, fp8: static scales before every product
  std::string lm_head = "none";  ///< parts after the last hidden state, see parse_next_token
  /// Tensor-parallel ranks: local widths, an all_reduce over the group "tp" after each sharded
  /// product, and replication over it declared for the inputs that no product shards.
  std::int64_t tp = 1;
  /// Experts of each feed-forward layer: a mixture with a branch for every expert, summed by the
  /// weights of a router that keeps the best `topk`. 0: one feed-forward layer, without a router.
  std::int64_t experts = 0, topk = 2;
  /// Uses a product each for queries, keys and values, and for gate and up, as in training.
  bool separate = false;
};

/// Generates the graph of one rank, from token ids and positions to the last hidden state, or to
/// the next token, over the symbol `n`. Widths must divide; the graph may have at most about a
/// million nodes.
Result<Graph> generate_llama(const ContextPtr& context, const LlamaOptions& options);

/// Returns the same graph with its nodes in another topological order, drawn by the seed; ids
/// follow the order. Nodes with effects, and collectives, keep their relative order.
Graph shuffled(Graph graph, std::uint64_t seed);

}  // namespace pw
