// Internal to cuda/: matrix products by cuBLASLt. The library's matrices are column-major, so a
// row-major y = a · b becomes yᵀ = bᵀ · aᵀ: the library's A is our b, its B is our a, and one of
// our rows is one of its columns.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <span>

#include "cuda/device/driver.hpp"
#include "cuda/device/lt_library.hpp"

namespace pw::cuda {

/// All properties that decide the algorithm.
struct LtProduct {
  enum class Scales : std::uint8_t {
    none,
    tensors,  ///< one for a, one for b
    vectors,  ///< one for each row of a and column of b
  };
  DType in = DType::f32, out = DType::f32;
  std::int64_t rows = 0, depth = 0, columns = 0;
  bool b_transposed = false, biased = false;
  Scales scales = Scales::none;
  /// Alignment of a, b, the bias and y in bytes, at most 256.
  std::array<std::uint32_t, 4> alignment{};
  std::int64_t workspace_bytes = 0;  ///< maximum workspace
  friend auto operator<=>(const LtProduct&, const LtProduct&) = default;
};

/// Returns a product of tensors in the library's form, or why it has none. Supported are f32, f16
/// and bf16 with a bias of the same dtype, and f8e4m3 with scales if b is stored transposed and
/// depth and width are multiples of 16. Row and column scales require `version` 12.9.
[[nodiscard]] tl::expected<LtProduct, std::string> lt_product(const ProductCall& call,
                                                              std::span<const DeviceTensor> reads,
                                                              const DeviceTensor& result,
                                                              std::size_t version);

/// Addresses of a product's tensors; 0 for absent ones.
struct LtAddresses {
  Address a = 0, b = 0, bias = 0, a_scale = 0, b_scale = 0, y = 0, workspace = 0;
};
[[nodiscard]] LtAddresses addresses_of(const ProductCall& call, std::span<const DeviceTensor> reads,
                                       const DeviceTensor& result);

/// A descriptor with the library's function that destroys it.
using LtDescriptor = std::unique_ptr<void, int (*)(void*)>;

/// The descriptors of one product. They require no device.
class LtDescriptors {
 public:
  /// Creates the descriptors. Fails with PW1261 if the library rejects one.
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

/// Returns the constraints on algorithms for a product. Fails with PW1261 if the library rejects
/// them.
Result<LtDescriptor> lt_preference(const LtLibrary& library, const LtProduct& product);

/// The library on one device, with a cache of chosen algorithms.
class LtProducts {
 public:
  /// Starts the library. Fails with PW1261 if there is no device or an unsupported one.
  static Result<std::unique_ptr<LtProducts>> start(LtLibrary library);
  ~LtProducts();
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;

  [[nodiscard]] const LtLibrary& library() const { return library_; }
  /// Returns the library's first choice, cached. Fails with PW1261 if it has none.
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
