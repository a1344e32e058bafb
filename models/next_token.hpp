// The end of a decode step: the choice of the next token from the logits, and the inputs of the
// next step.
#pragma once

#include <string>
#include <string_view>

#include "graph/node_maker.hpp"

namespace pw {

/// The parts that a graph has after the last hidden state.
struct NextToken {
  bool logits = false;  ///< the product with the output embedding; false: no part at all
  bool chosen = false;  ///< the next token; otherwise the graph returns the logits
  /// 0: the largest logit. Otherwise the token is drawn from softmax(logits / temperature).
  double temperature = 0;
  std::int64_t top_k = 0;  ///< draws from the k largest logits; 0: from all
  double top_p = 1;        ///< draws from the largest logits whose probabilities add up to p
};

/// Parses `none`, `logits`, `greedy`, or `temperature=0.8,top_k=50,top_p=0.9` with at least one of
/// these. Fails with PW0801.
Result<NextToken> parse_next_token(std::string_view text);

/// The values that the end of a step reads, and the group of ranks that hold equal logits; empty:
/// there is one rank.
struct StepEnd {
  ValueId logits, ids, positions;
  std::string group;
};
/// Returns the next token, and declares it and the next position as the final contents of `ids` and
/// `positions`. Adds the input `seeds` if the token is drawn.
void add_next_token(NodeMaker& nodes, const NextToken& choice, const StepEnd& end);

}  // namespace pw
