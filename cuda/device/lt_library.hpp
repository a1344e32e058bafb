// Internal to cuda/: the used functions of cuBLASLt, found by dlopen. Types and numbers follow
// NVIDIA's cublasLt.h (12.0, plus additions of 12.9) under our own names, so that nothing is linked
// or included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw::cuda {

/// Element types: cudaDataType.
enum class LtType : int { f32 = 0, f16 = 2, bf16 = 14, f8e4m3 = 28 };

/// Attributes of an operation: cublasLtMatmulDescAttributes_t.
enum class LtOperation : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias = 8,
  a_scale = 17,
  b_scale = 18,
  bias_type = 26,
  a_scale_mode = 31,
  b_scale_mode = 32,
};

/// Attributes of a search: cublasLtMatmulPreferenceAttributes_t.
enum class LtPreference : int {
  workspace_bytes = 1,
  reductions = 3,
  a_alignment = 5,
  b_alignment = 6,
  c_alignment = 7,
  d_alignment = 8,
};

/// Values of attributes.
namespace lt {
constexpr int kComputeF32 = 68;                ///< CUBLAS_COMPUTE_32F: f32 is not truncated to TF32
constexpr std::int32_t kTransposed = 1;        ///< CUBLAS_OP_T
constexpr std::uint32_t kAddBias = 4;          ///< CUBLASLT_EPILOGUE_BIAS
constexpr std::int32_t kScaleVectors = 3;      ///< CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
constexpr std::uint32_t kReduceInCompute = 3;  ///< in place or in f32, not in the result's type
constexpr int kNotEnoughMemory = 3;            ///< CUBLAS_STATUS_ALLOC_FAILED
constexpr std::size_t kHasScaleVectors = 120900;
}  // namespace lt

struct LtAlgorithm {  ///< cublasLtMatmulAlgo_t
  std::uint64_t data[8] = {};
};
struct LtFound {  ///< cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  int status = 0;
  float waves = 0;
  int reserved[4] = {};
};

/// cuBLASLt functions. Except for `version` and `status_name` each returns a cublasStatus_t, 0 for
/// success.
struct LtFunctions {
  std::size_t (*version)() = nullptr;
  const char* (*status_name)(int) = nullptr;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*operation_create)(void**, int compute, int scale) = nullptr;
  int (*operation_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*operation_destroy)(void*) = nullptr;
  int (*layout_create)(void**, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*preference_create)(void**) = nullptr;
  int (*preference_set)(void*, int, const void*, std::size_t) = nullptr;
  int (*preference_destroy)(void*) = nullptr;
  int (*search)(void* handle, void* operation, void* a, void* b, void* c, void* d, void* preference,
                int wanted, LtFound*, int* found) = nullptr;
  int (*multiply)(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
                  const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                  void* d, void* d_layout, const LtAlgorithm*, void* workspace,
                  std::size_t workspace_bytes, void* stream) = nullptr;
};

class LtLibrary {
 public:
  /// Opens `path`, else $PWR_CUBLASLT, else libcublasLt.so.13, then .12, from the loader's path and
  /// the toolkit's usual folders. None is newer than CUDA `newest` (13; 0: any). Never fails: check
  /// `present`.
  static LtLibrary open(const std::string& path = {}, int newest = 0);

  [[nodiscard]] bool present() const { return functions_ != nullptr; }
  /// Returns "13.1.0 at /…/libcublasLt.so.13", or why the library is absent.
  [[nodiscard]] const std::string& state() const { return state_; }
  [[nodiscard]] const LtFunctions& f() const { return *functions_; }
  [[nodiscard]] std::size_t version() const { return f().version(); }
  /// Fails with PW1250 if memory is short, else with PW1261 and the library's status name.
  [[nodiscard]] Status check(int status, const std::string& what) const;

 private:
  std::shared_ptr<const LtFunctions> functions_;  ///< functions of a library that is never closed
  std::string state_;
};

}  // namespace pw::cuda
