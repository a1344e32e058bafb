// Attention on a device: the keys and values of each layer stay there in pages. Which page holds
// which tokens is kept on the host by the step's KvCache. An op between graphs: two kernels, one
// that puts a step's rows into their pages, and one with a block for each row and head. Made to be
// right first.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "backends/kv_cache.hpp"

namespace pw::cuda {

struct AttentionKernels {
  Kernel put, attend;
  std::vector<std::size_t> operands;  ///< inputs of the piece: q, k, v, and the divisor if any
  std::string layer;                  ///< names the cache
  std::int64_t page_tokens = 0;
  std::int64_t heads = 0;
  std::int64_t row = 0;  ///< elements of a token's keys, and of its values
  DType k = DType::f32, v = DType::f32;
};

/// Of a piece that is one unified_attention of floats of at most 32 bits, whose heads and widths
/// are fixed; none for any other. `page_tokens` is the cache's.
[[nodiscard]] std::optional<AttentionKernels> attention_kernels(const Graph& piece,
                                                                std::int64_t page_tokens);

/// The memory that attention has on a device, and its launches.
class DeviceAttention {
 public:
  /// Gives memory that its owner releases; asked for when pages run out, twice as many each time.
  using Allocate = std::function<Result<Address>(std::int64_t bytes, const std::string& what)>;
  DeviceAttention(Driver& driver, Allocate allocate)
      : driver_(driver), allocate_(std::move(allocate)) {}

  /// Tensors as the piece has them, rows of padding included. PW1209 as KvCache::put().
  Result<std::monostate> run(const AttentionKernels& kernels, std::span<const DeviceTensor> inputs,
                             const DeviceTensor& output, const Step& step);

 private:
  struct Pool {
    Address k = 0, v = 0;
    std::size_t pages = 0;
  };
  /// What the kernels read of the step: for each row its slot, where its sequence's pages begin and
  /// how many keys it sees; then the pages of all sequences.
  struct Rows {
    std::vector<std::int64_t> slots, first, keys, pages;
  };
  Result<Rows> rows_of(KvCache& cache, const KvCache::Layer& layer, const Step& step,
                       std::int64_t rows) const;
  Result<std::monostate> grow(Pool& pool, std::size_t pages, std::int64_t page_tokens,
                              const AttentionKernels& kernels);

  Driver& driver_;
  Allocate allocate_;
  std::map<std::pair<const KvCache*, std::string>, Pool> pools_;  ///< by cache and layer
  KvCache once_;  ///< of steps without a cache; forgotten after each
  Address table_ = 0;
  std::int64_t table_bytes_ = 0;
};

}  // namespace pw::cuda
