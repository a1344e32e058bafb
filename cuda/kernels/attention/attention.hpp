// Attention on a device: the keys and values of each layer stay there in pages. Which page holds
// which tokens is kept on the host by the step's KvCache, once for all layers; a step's lengths and
// pages are written to tables in device memory before its launches. These are two kernels a layer,
// one that puts a step's rows into their pages, and one with a block for each row and head: their
// grids depend on the number of rows only, so that they may stand in a captured graph. The bits are
// the interpreter's. Made to be right first.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda/device/driver.hpp"
#include "cuda/kernels/attention/tensor_attention.hpp"
#include "tensor/kv_cache.hpp"

namespace pw::cuda {

/// Shared by all pieces of a class: each launch gets the layer whose pages it reads.
struct AttentionKernels {
  Kernel put, attend;
  std::optional<AttentionForms> forms;  ///< in place of `attend`: one of them by the step
  std::vector<std::size_t> operands;    ///< inputs of the piece: q, k, v, and the divisor if any
  DimId rows;                           ///< of the step
  std::int64_t page_tokens = 0;
  std::int64_t heads = 0, groups = 0, width = 0;
  std::int64_t row = 0;  ///< elements of a token's keys, and of its values
  DType k = DType::f32, v = DType::f32;
};

/// Of a piece that is one unified_attention of floats of at most 32 bits, whose heads and widths
/// are fixed, with or without the write of its keys and values to the cache; none for any other.
/// `page_tokens` is the cache's. On the tensor cores of `arch`, where that names an architecture
/// with products for its operands: in their order of sums, not the interpreter's, and with these
/// tiles; null: those that the model chooses, for steps of `query` new tokens of each sequence, and
/// for others.
[[nodiscard]] std::optional<AttentionKernels> attention_kernels(
    const Graph& piece, std::int64_t page_tokens, std::string_view arch = {},
    const AttentionTiles* tiles = nullptr, std::int64_t query = 1);

/// The memory that attention has on a device, and its launches.
class DeviceAttention {
 public:
  /// Allocates memory that its owner releases; called when pages run out, for twice as many.
  using Allocate = std::function<Result<Address>(std::int64_t bytes, const std::string& what)>;
  DeviceAttention(Driver& driver, Allocate allocate)
      : driver_(driver), allocate_(std::move(allocate)) {}

  /// A layer more, before reserve(). All layers have the same rows and tokens a page.
  void add(const AttentionKernels& kernels, const std::string& layer);
  [[nodiscard]] bool empty() const { return pools_.empty(); }
  /// What reserve() takes.
  [[nodiscard]] std::int64_t bytes(std::int64_t pages, std::int64_t rows) const;
  /// Memory for so many pages in each layer, and for steps of so many rows.
  Status reserve(std::int64_t pages, std::int64_t rows);
  /// Before the launches of a step: pages for its tokens, and the tables. `rows` with padding.
  /// PW1209 as KvCache::extend(), and where the cache's pages are of another size.
  Status begin(const Step& step, std::int64_t rows);
  /// Tensors as the piece has them, rows of padding included. For steps of `query` new tokens of
  /// each sequence; 0: not equally many. Others are right as well.
  [[nodiscard]] std::vector<LaunchNode> launches(const AttentionKernels& kernels,
                                                 const std::string& layer,
                                                 std::span<const DeviceTensor> inputs,
                                                 const DeviceTensor& output,
                                                 std::int64_t query) const;
  /// Of all memory that launches touch besides their tensors; another after pages ran out.
  [[nodiscard]] std::uint64_t address_hash() const;

 private:
  struct Pool {
    DType k = DType::f32, v = DType::f32;
    std::int64_t row = 0;
    Address k_pages = 0, v_pages = 0;
  };
  [[nodiscard]] std::int64_t page_bytes(const Pool& pool, DType dtype) const;
  /// Of what kernels add up that share out parts of the keys.
  [[nodiscard]] std::int64_t sums_bytes(std::int64_t rows) const;
  /// Of the numbers by which they know who is the last.
  [[nodiscard]] std::int64_t arrived_bytes(std::int64_t rows) const;
  [[nodiscard]] static std::int64_t table_bytes(std::int64_t pages, std::int64_t rows);
  Status grow(Address& address, std::int64_t old_bytes, std::int64_t bytes,
              const std::string& what);
  /// What the kernels read of the step: for each row its slot, where its sequence's pages begin and
  /// how many keys it sees; then the pages of all sequences.
  Result<std::vector<std::int64_t>> table_of(const Step& step, std::int64_t rows);
  /// Where a page of a cache is here.
  std::int64_t place(const KvCache& cache, std::size_t page);

  Driver& driver_;
  Allocate allocate_;
  std::map<std::string, Pool> pools_;  ///< by layer
  std::int64_t page_tokens_ = 0;
  std::int64_t pages_ = 0, taken_ = 0;  ///< of each pool
  std::map<const KvCache*, std::vector<std::int64_t>> places_;
  KvCache once_;  ///< of a step without a cache
  Address table_ = 0;
  std::int64_t table_bytes_ = 0;
  std::vector<AttentionForms> forms_;  ///< of the layers that have them
  Address sums_ = 0, arrived_ = 0;
  std::int64_t sums_bytes_ = 0, arrived_bytes_ = 0;
};

}  // namespace pw::cuda
