#include "tensor/checksums.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 17;

std::int64_t bytes_of(const TensorView& view) { return static_cast<std::int64_t>(view.bytes()); }
std::int64_t pieces_of(const TensorView& view) {
  return (bytes_of(view) + kPieceBytes - 1) / kPieceBytes;
}

std::uint64_t sum_of_piece(const TensorView& view, std::int64_t piece) {
  const std::int64_t begin = piece * kPieceBytes;
  const std::int64_t size = std::min(kPieceBytes, bytes_of(view) - begin);
  return checksum(
      {reinterpret_cast<const char*>(view.data) + begin, static_cast<std::size_t>(size)});
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
