// Attention on a device with a paged key-value cache. The keys and values of each layer stay on the
// device in pages (PagedAttention, Kwon et al. 2023). The step's KvCache maps tokens to pages on
// the host, once for all layers; before the launches a step's lengths and pages are written to
// tables in device memory. Each layer has two kernels: one stores a step's rows into their pages,
// and one computes attention with a block for each row and head. Their grids depend only on the
// number of rows, so a captured graph may contain them. The bits equal the interpreter's. The plain
// kernel favours correctness over speed; attention on tensor cores replaces it.
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

/// Kernels shared by all pieces of a class: each launch receives its layer's pages.
struct AttentionKernels {
  Kernel put, attend;
  std::optional<AttentionForms> forms;  ///< replaces `attend`; the step selects the form
  std::vector<std::size_t> operands;    ///< inputs of the piece: q, k, v, and the divisor if any
  DimId rows;                           ///< rows of the step
  std::int64_t page_tokens = 0;
  std::int64_t heads = 0, groups = 0, width = 0;
  std::int64_t row = 0;  ///< elements of a token's keys, and of its values
  DType k = DType::f32, v = DType::f32;
};

/// Returns the kernels of a piece that is one unified_attention, with or without the cache write,
/// over floats of at most 32 bits with fixed heads and widths; nothing for other pieces.
/// `page_tokens` is the cache's page size. If `arch` has tensor-core instructions for the operands,
/// the kernels use them and sum in their order, not the interpreter's. `tiles` are the tiles; null:
/// the model's choice for steps of `query` new tokens of each sequence, and for others.
[[nodiscard]] std::optional<AttentionKernels> attention_kernels(
    const Graph& piece, std::int64_t page_tokens, std::string_view arch = {},
    const AttentionTiles* tiles = nullptr, std::int64_t query = 1);

/// The tables of a step: for each row its slot, the start of its sequence's pages, and the number
/// of keys it sees; and the pages of all sequences.
struct DeviceTables {
  DeviceTensor slots, starts, seen, pages;
};

/// The device memory of attention, and its launches.
class DeviceAttention {
 public:
  /// Allocates memory that its owner releases; called with twice the pages when pages run out.
  using Allocate = std::function<Result<Address>(std::int64_t bytes, const std::string& what)>;
  DeviceAttention(Driver& driver, Allocate allocate)
      : driver_(driver), allocate_(std::move(allocate)) {}

  /// Adds a layer, before reserve(). All layers have equal rows and page sizes.
  void add(const AttentionKernels& kernels, const std::string& layer);
  [[nodiscard]] bool empty() const { return pools_.empty(); }
  /// Returns the bytes that reserve() allocates.
  [[nodiscard]] std::int64_t bytes(std::int64_t pages, std::int64_t rows) const;
  /// Reserves memory for `pages` pages in each layer and steps of `rows` rows.
  Status reserve(std::int64_t pages, std::int64_t rows);
  /// Prepares a step before its launches: pages for its tokens, and the tables. `rows` includes
  /// padding. Pages are reserved for `ahead` new tokens of each sequence, if that is more than it
  /// has. Fails with PW1209 like KvCache::extend(), and if the cache has another page size.
  Status begin(const Step& step, std::int64_t rows, std::int64_t ahead = 0);
  /// Returns the launches for the piece's tensors, padding rows included: of the kernel that puts
  /// keys and values into pages, and of attention. They are tuned for
  /// `query` new tokens of each sequence (0: they differ), and correct for any step.
  [[nodiscard]] std::vector<LaunchNode> launches(const AttentionKernels& kernels,
                                                 const std::string& layer,
                                                 std::span<const DeviceTensor> inputs,
                                                 const DeviceTensor& output,
                                                 std::int64_t query) const;
  [[nodiscard]] DeviceTables tables(std::int64_t rows) const;
  /// Keeps `tokens` new tokens of a sequence of the step, of those for which pages were reserved.
  static Status keep(const Step& step, const Sequence& sequence, std::int64_t tokens);
  [[nodiscard]] std::int64_t page_tokens() const { return page_tokens_; }
  /// Returns the places of the step's rows in the pages; -1: padding.
  [[nodiscard]] DeviceTensor slots(std::int64_t rows) const;
  [[nodiscard]] DeviceTensor keys(const std::string& layer) const;
  [[nodiscard]] DeviceTensor values(const std::string& layer) const;
  /// Returns a hash of all device addresses of the launches other than their tensors; it changes
  /// when pages run out.
  [[nodiscard]] std::uint64_t address_hash() const;

 private:
  struct Pool {
    DType k = DType::f32, v = DType::f32;
    std::int64_t row = 0;
    Address k_pages = 0, v_pages = 0;
  };
  [[nodiscard]] std::int64_t page_bytes(const Pool& pool, DType dtype) const;
  /// Returns the bytes of the partial sums of split-KV kernels.
  [[nodiscard]] std::int64_t sums_bytes(std::int64_t rows) const;
  /// Returns the bytes of the arrival counters of split-KV kernels.
  [[nodiscard]] std::int64_t arrived_bytes(std::int64_t rows) const;
  [[nodiscard]] static std::int64_t table_bytes(std::int64_t pages, std::int64_t rows);
  Status grow(Address& address, std::int64_t old_bytes, std::int64_t bytes,
              const std::string& what);
  /// Returns the step's tables, one after another.
  Result<std::vector<std::int64_t>> table_of(const Step& step, std::int64_t rows,
                                             std::int64_t ahead);
  /// Returns the device index of a cache's page.
  std::int64_t place(const KvCache& cache, std::size_t page);

  Driver& driver_;
  Allocate allocate_;
  std::map<std::string, Pool> pools_;  ///< by layer
  std::int64_t page_tokens_ = 0;
  std::int64_t pages_ = 0, taken_ = 0;  ///< in each pool
  std::map<const KvCache*, std::vector<std::int64_t>> places_;
  KvCache once_;  ///< cache of a step that has none
  Address table_ = 0;
  std::int64_t table_bytes_ = 0;
  std::vector<AttentionForms> forms_;  ///< of the layers that have them
  Address sums_ = 0, arrived_ = 0;
  std::int64_t sums_bytes_ = 0, arrived_bytes_ = 0;
};

}  // namespace pw::cuda
