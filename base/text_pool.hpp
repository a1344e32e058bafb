// Texts stored consecutively in large blocks: some four bytes a text beyond its characters. A text
// stays in place for the life of the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace pw {

class TextPool {
 public:
  TextPool() = default;
  /// Copies the pool. A text has the same place in the copy.
  TextPool(const TextPool& other);
  TextPool& operator=(const TextPool&) = delete;
  TextPool(TextPool&&) = default;
  TextPool& operator=(TextPool&&) = default;
  ~TextPool() = default;
  /// Adds a text and returns its place; nothing if the place does not fit into `bits` bits.
  std::optional<std::uint32_t> add(std::string_view text, unsigned bits = 32);
  [[nodiscard]] std::string_view text(std::uint32_t place) const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;
  };
  std::vector<Block> blocks_;  // of kBlock bytes; a longer text has a block to itself
  std::size_t used_ = 0;       // of the last block
};

}  // namespace pw
