// Exports Checksums.
#include "backends/checksums.hpp"

#include <algorithm>
#include <cstring>

#include "backends/parallel.hpp"

namespace pw {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 17;

/// Of eight words at a time, each with a factor of its own place, so that words that change places
/// are noticed.
std::uint64_t sum_of(const std::byte* data, std::int64_t bytes) {
  constexpr std::size_t kWords = 8;
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  std::uint64_t sums[kWords] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (; bytes > 0; bytes -= static_cast<std::int64_t>(sizeof sums), data += sizeof sums) {
    std::uint64_t words[kWords] = {};
    std::memcpy(words, data, std::min(sizeof sums, static_cast<std::size_t>(bytes)));
    for (std::size_t i = 0; i < kWords; ++i) sums[i] = (sums[i] ^ words[i]) * kFactor;
  }
  std::uint64_t out = 0;
  for (const std::uint64_t sum : sums) out = (out ^ (sum >> 29) ^ sum) * kFactor;
  return out;
}

std::int64_t bytes_of(const TensorView& view) { return static_cast<std::int64_t>(view.bytes()); }
std::int64_t pieces_of(const TensorView& view) {
  return (bytes_of(view) + kPieceBytes - 1) / kPieceBytes;
}

std::uint64_t sum_of_piece(const TensorView& view, std::int64_t piece) {
  const std::int64_t begin = piece * kPieceBytes;
  return sum_of(view.data + begin, std::min(kPieceBytes, bytes_of(view) - begin));
}

}  // namespace

void Checksums::keep(std::size_t tensor, const TensorView& view) {
  if (sums_.size() <= tensor) sums_.resize(tensor + 1);
  std::vector<std::uint64_t>& sums = sums_[tensor];
  sums.resize(static_cast<std::size_t>(pieces_of(view)));
  parallel_for(pieces_of(view), 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      sums[static_cast<std::size_t>(i)] = sum_of_piece(view, i);
  });
}

std::optional<std::size_t> Checksums::changed_next(std::span<const TensorView> tensors) {
  constexpr int kPieces = 2;  // about 20 µs
  int compared = 0;
  // At most once around, where few tensors are kept.
  for (std::size_t steps = 0; compared < kPieces && steps <= sums_.size();) {
    if (tensor_ >= sums_.size()) tensor_ = piece_ = 0;
    if (tensor_ >= sums_.size()) break;
    if (piece_ >= sums_[tensor_].size()) {
      ++tensor_, ++steps;
      piece_ = 0;
      continue;
    }
    const auto piece = static_cast<std::int64_t>(piece_);
    if (sum_of_piece(tensors[tensor_], piece) != sums_[tensor_][piece_]) return tensor_;
    ++piece_;
    ++compared;
  }
  return std::nullopt;
}

bool Checksums::changed(std::size_t tensor, const TensorView& view) const {
  if (tensor >= sums_.size()) return false;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(sums_[tensor].size()); ++i)
    if (sum_of_piece(view, i) != sums_[tensor][static_cast<std::size_t>(i)]) return true;
  return false;
}

}  // namespace pw
