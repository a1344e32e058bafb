// Keys and values of earlier tokens for attention, by rank, layer and sequence, in pages of a fixed
// number of tokens. Pages of ended sequences are reused.
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
  /// Stores rows of k and v (row-major, [tokens, heads, width]) as the sequence's tokens from
  /// `past` on. Earlier contents from there on are dropped, so a step may be repeated. Fails with
  /// PW1209 if the sequence has fewer than `past` tokens, or if the size or type of rows changed.
  Status put(const Layer& layer, std::int64_t sequence, std::int64_t past, const Array& k,
             const Array& v);
  /// Reserves pages for the sequence's tokens, `count` of them from `past` on, for an engine that
  /// stores the rows elsewhere. Fails like put().
  Status extend(const Layer& layer, std::int64_t sequence, std::int64_t past, std::int64_t count);
  /// Returns the pages of the sequence's tokens in order; each is below pages(layer).
  [[nodiscard]] const std::vector<std::size_t>& table(const Layer& layer,
                                                      std::int64_t sequence) const {
    return pools_.at(layer).sequences.at(sequence).pages;
  }
  [[nodiscard]] std::int64_t page_tokens() const { return page_tokens_; }
  /// Copies the first `tokens` rows, contiguously; the sequence must have as many.
  void get(const Layer& layer, std::int64_t sequence, std::int64_t tokens, std::byte* k,
           std::byte* v) const;
  /// Ends a sequence in all layers of all ranks.
  void end(std::int64_t sequence);
  [[nodiscard]] std::int64_t tokens(const Layer& layer, std::int64_t sequence) const;
  /// Returns the number of pages ever created, free pages included.
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
