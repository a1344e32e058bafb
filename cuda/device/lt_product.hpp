// Internal to cuda/: matrix products by cuBLASLt. The library's matrices are column-major, so a
// row-major y = a · b is asked for as yᵀ = bᵀ · aᵀ: the library's A is our b, its B our a, and a
// row of ours is a column of its own.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <span>

#include "cuda/device/driver.hpp"
#include "cuda/device/lt_library.hpp"

namespace pw::cuda {

/// All that an algorithm is chosen by.
struct LtProduct {
  enum class Scales : std::uint8_t {
    none,
    tensors,  ///< one of a, one of b
    vectors,  ///< one a row of a, one a column of b
  };
  DType in = DType::f32, out = DType::f32;
  std::int64_t rows = 0, depth = 0, columns = 0;
  bool b_transposed = false, biased = false;
  Scales scales = Scales::none;
  std::array<std::uint32_t, 4> alignment{};  ///< of a, b, the bias and y: bytes, at most 256
  std::int64_t workspace_bytes = 0;          ///< that it may write besides
  friend auto operator<=>(const LtProduct&, const LtProduct&) = default;
};

/// A product of tensors, as the library has it, or why it has none: f32, f16 and bf16 with a bias
/// of their own dtype; f8e4m3 where b is stored transposed, multiples of 16 deep and wide, with
/// scales. Scales of rows and columns are known from `version` 12.9 on.
[[nodiscard]] tl::expected<LtProduct, std::string> lt_product(const ProductCall& call,
                                                              std::span<const DeviceTensor> reads,
                                                              const DeviceTensor& result,
                                                              std::size_t version);

/// Where a product's tensors are; 0 for those that it has not.
struct LtAddresses {
  Address a = 0, b = 0, bias = 0, a_scale = 0, b_scale = 0, y = 0, workspace = 0;
};
[[nodiscard]] LtAddresses addresses_of(const ProductCall& call, std::span<const DeviceTensor> reads,
                                       const DeviceTensor& result);

/// Destroys itself by a function of the library's.
using LtDescriptor = std::unique_ptr<void, int (*)(void*)>;

/// The descriptors of one product. They need no device.
class LtDescriptors {
 public:
  /// PW1261 where the library refuses one of them.
  static Result<LtDescriptors> make(const LtLibrary& library, const LtProduct& product,
                                    const LtAddresses& at);
  [[nodiscard]] void* operation() const { return operation_.get(); }
  [[nodiscard]] void* a() const { return a_.get(); }  ///< the library's A: our b
  [[nodiscard]] void* b() const { return b_.get(); }  ///< its B: our a
  [[nodiscard]] void* y() const { return y_.get(); }

 private:
  explicit LtDescriptors(const LtFunctions& f)
      : operation_(nullptr, f.operation_destroy),
        a_(nullptr, f.layout_destroy),
        b_(nullptr, f.layout_destroy),
        y_(nullptr, f.layout_destroy) {}
  LtDescriptor operation_, a_, b_, y_;
};

/// What algorithms for a product may use. PW1261 where the library refuses it.
Result<LtDescriptor> lt_preference(const LtLibrary& library, const LtProduct& product);

/// The library on one device, with the algorithms that were chosen so far.
class LtProducts {
 public:
  /// PW1261 where the library does not start: no device, or one that it does not know.
  static Result<std::unique_ptr<LtProducts>> start(LtLibrary library);
  ~LtProducts();
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  [[nodiscard]] const LtLibrary& library() const { return library_; }
  /// The library's first choice, cached. PW1261 where it has none.
  Result<LtAlgorithm> algorithm(const LtProduct& product);
  /// Launches the matmul on a stream.
  Status multiply(const LtProduct& product, const LtAddresses& at, const LtAlgorithm& algorithm,
                  void* stream);

 private:
  LtProducts(LtLibrary library, void* handle) : library_(std::move(library)), handle_(handle) {}
  Result<LtAlgorithm> search(const LtProduct& product);

  LtLibrary library_;
  void* handle_;
  std::map<LtProduct, Result<LtAlgorithm>> algorithms_;
};

}  // namespace pw::cuda
