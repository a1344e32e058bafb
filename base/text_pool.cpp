// A place is the number of its block and the offset in it, in units of kUnit bytes. The length is
// stored before the characters.
#include "base/text_pool.hpp"

#include <cstring>

namespace pw {
namespace {

constexpr std::size_t kUnit = 4;
constexpr unsigned kOffsetBits = 14;
constexpr std::size_t kBlock = kUnit << kOffsetBits;

}  // namespace

TextPool::TextPool(const TextPool& other) : used_(other.used_) {
  for (const Block& block : other.blocks_) {
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(block.size), block.size});
    const bool last = blocks_.size() == other.blocks_.size();
    std::memcpy(blocks_.back().bytes.get(), block.bytes.get(), last ? used_ : block.size);
  }
}

std::optional<std::uint32_t> TextPool::add(std::string_view text, unsigned bits) {
  const std::size_t need = (sizeof(std::uint32_t) + text.size() + kUnit - 1) / kUnit * kUnit;
  if (blocks_.empty() || used_ + need > kBlock) {
    if (blocks_.size() >> (bits - kOffsetBits) != 0) return std::nullopt;
    const std::size_t size = need > kBlock ? need : kBlock;
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
    used_ = 0;
  }
  const std::size_t block = blocks_.size() - 1;
  if (block >> (bits - kOffsetBits) != 0) return std::nullopt;
  char* at = blocks_[block].bytes.get() + used_;
  const auto length = static_cast<std::uint32_t>(text.size());
  std::memcpy(at, &length, sizeof length);
  if (!text.empty()) std::memcpy(at + sizeof length, text.data(), text.size());
  const std::size_t place = (block << kOffsetBits) | (used_ / kUnit);
  used_ += need;
  return static_cast<std::uint32_t>(place);
}

std::string_view TextPool::text(std::uint32_t place) const {
  const char* at =
      blocks_[place >> kOffsetBits].bytes.get() + (place & ((1u << kOffsetBits) - 1)) * kUnit;
  std::uint32_t length = 0;
  std::memcpy(&length, at, sizeof length);
  return {at + sizeof length, length};
}

std::size_t TextPool::bytes() const {
  std::size_t sum = 0;
  for (const Block& block : blocks_) sum += block.size;
  return sum;
}

}  // namespace pw
