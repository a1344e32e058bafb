// Vectors of floats as wide as the instruction set that a file is compiled for: PW_GEMM names the
// variant, as in gemm_kernel.cpp.
#pragma once

#include <cstdint>

namespace pw::PW_GEMM {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::int64_t kLanes = 8;
#else
constexpr std::int64_t kLanes = 4;
#endif

typedef float Vector __attribute__((vector_size(kLanes * 4)));
typedef float Loose __attribute__((vector_size(kLanes * 4), aligned(4)));

inline Vector load(const float* p) { return *reinterpret_cast<const Loose*>(p); }
inline void store(float* p, Vector v) { *reinterpret_cast<Loose*>(p) = v; }

}  // namespace
}  // namespace pw::PW_GEMM
