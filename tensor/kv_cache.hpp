// Keys and values of the tokens that sequences have had in earlier steps, for attention: by rank,
// layer and sequence, in pages of a fixed number of tokens. Pages of an ended sequence are used
// again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "tensor/array.hpp"

namespace pw {

class KvCache {
 public:
  static constexpr std::int64_t kPageTokens = 16;
  explicit KvCache(std::int64_t page_tokens = kPageTokens) : page_tokens_(page_tokens) {}

  struct Layer {
    std::int64_t rank = 0;
    std::string name;
    friend auto operator<=>(const Layer&, const Layer&) = default;
  };
  /// Rows of k and v (row-major, [tokens, heads, width]) become the sequence's tokens from `past`
  /// on; what it had from there on is forgotten, so that a step may be run again. PW1209 where the
  /// sequence has fewer than `past` tokens here, or rows are of another size or type than before.
  Status put(const Layer& layer, std::int64_t sequence, std::int64_t past, const Array& k,
             const Array& v);
  /// The same without rows, for an engine that keeps them elsewhere: pages for all the sequence's
  /// tokens, `count` of them from `past` on.
  Status extend(const Layer& layer, std::int64_t sequence, std::int64_t past, std::int64_t count);
  /// The pages of its tokens, in order; each below pages(layer).
  [[nodiscard]] const std::vector<std::size_t>& table(const Layer& layer,
                                                      std::int64_t sequence) const {
    return pools_.at(layer).sequences.at(sequence).pages;
  }
  [[nodiscard]] std::int64_t page_tokens() const { return page_tokens_; }
  /// The first `tokens` rows, one after the other; the sequence has as many.
  void get(const Layer& layer, std::int64_t sequence, std::int64_t tokens, std::byte* k,
           std::byte* v) const;
  /// In all layers of all ranks.
  void end(std::int64_t sequence);
  [[nodiscard]] std::int64_t tokens(const Layer& layer, std::int64_t sequence) const;
  /// Pages ever made, and those that no sequence has.
  [[nodiscard]] std::size_t pages() const;
  [[nodiscard]] std::size_t pages(const Layer& layer) const {
    return pools_.at(layer).pages.size();
  }
  [[nodiscard]] std::size_t free_pages() const;

 private:
  struct Sequence {
    std::vector<std::size_t> pages;  ///< the block table
    std::int64_t tokens = 0;
  };
  struct Pool {
    DType k_type = DType::f32, v_type = DType::f32;
    std::size_t k_row = 0, v_row = 0;           ///< bytes
    std::vector<std::vector<std::byte>> pages;  ///< keys of its tokens, then values
    std::vector<std::size_t> free;
    std::map<std::int64_t, Sequence> sequences;
  };
  std::int64_t page_tokens_;
  std::map<Layer, Pool> pools_;
};

}  // namespace pw
