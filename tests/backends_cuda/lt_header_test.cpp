// Our own numbers, structures and function types of cuBLASLt against its header, where that is.
#include "cuda/device/lt_library.hpp"
#include "tests/catch.hpp"

#if __has_include(<cublasLt.h>)
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <cublasLt.h>

using namespace pw::cuda;

namespace {

/// How a value is passed: a pointer, the integer under an enumeration, or itself.
template <class T>
auto passed() {
  if constexpr (std::is_pointer_v<T>)
    return static_cast<const void*>(nullptr);
  else if constexpr (std::is_enum_v<T>)
    return int{};
  else
    return T{};
}
template <class F>
struct Passed;
template <class R, class... A>
struct Passed<R (*)(A...)> {
  using type = std::tuple<decltype(passed<R>()), decltype(passed<A>())...>;
};
template <class Ours, class Theirs>
constexpr bool kSame = std::is_same_v<typename Passed<Ours>::type, typename Passed<Theirs>::type>;

#define PW_SAME(field, function) \
  static_assert(kSame<decltype(LtFunctions::field), decltype(&function)>)
PW_SAME(version, cublasLtGetVersion);
PW_SAME(status_name, cublasLtGetStatusName);
PW_SAME(create, cublasLtCreate);
PW_SAME(destroy, cublasLtDestroy);
PW_SAME(operation_create, cublasLtMatmulDescCreate);
PW_SAME(operation_set, cublasLtMatmulDescSetAttribute);
PW_SAME(operation_destroy, cublasLtMatmulDescDestroy);
PW_SAME(layout_create, cublasLtMatrixLayoutCreate);
PW_SAME(layout_destroy, cublasLtMatrixLayoutDestroy);
PW_SAME(preference_create, cublasLtMatmulPreferenceCreate);
PW_SAME(preference_set, cublasLtMatmulPreferenceSetAttribute);
PW_SAME(preference_destroy, cublasLtMatmulPreferenceDestroy);
PW_SAME(search, cublasLtMatmulAlgoGetHeuristic);
PW_SAME(multiply, cublasLtMatmul);
#undef PW_SAME

static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtFound) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtFound, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(LtFound, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtFound, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(LtFound, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

}  // namespace

TEST_CASE("cuBLASLt: our numbers are those of its header", "[cuda]") {
  const auto same = [](auto ours, auto theirs) {
    CHECK(static_cast<long long>(ours) == static_cast<long long>(theirs));
  };
  same(LtType::f32, CUDA_R_32F);
  same(LtType::f16, CUDA_R_16F);
  same(LtType::bf16, CUDA_R_16BF);
  same(LtType::f8e4m3, CUDA_R_8F_E4M3);
  same(LtOperation::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
  same(LtOperation::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
  same(LtOperation::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  same(LtOperation::bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  same(LtOperation::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  same(LtOperation::a_scale, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  same(LtOperation::b_scale, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  same(LtPreference::workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  same(LtPreference::reductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  same(LtPreference::a_alignment, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  same(LtPreference::b_alignment, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  same(LtPreference::c_alignment, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  same(LtPreference::d_alignment, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  same(lt::kComputeF32, CUBLAS_COMPUTE_32F);
  same(lt::kTransposed, CUBLAS_OP_T);
  same(lt::kAddBias, CUBLASLT_EPILOGUE_BIAS);
  same(lt::kReduceInCompute,
       CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  same(lt::kNotEnoughMemory, CUBLAS_STATUS_ALLOC_FAILED);
#if CUBLAS_VERSION >= 120900
  same(LtOperation::a_scale_mode, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
  same(LtOperation::b_scale_mode, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
  same(lt::kScaleVectors, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#endif
}

#else

TEST_CASE("cuBLASLt: our numbers are those of its header", "[cuda]") {
  WARN("SKIPPED: cublasLt.h is not here");
}

#endif
