// Selects among functions that are compiled once for each instruction set, by namespace (see
// pw_gemm_variant in CMakeLists.txt). If the compiler lacks a set, its name refers to the next
// smaller one.
#pragma once

#include <cstdint>

#ifdef PW_HAVE_AVX2
#define PW_IN_AVX2(function) avx2::function
#else
#define PW_IN_AVX2(function) portable::function
#endif
#ifdef PW_HAVE_AVX512
#define PW_IN_AVX512(function) avx512::function
#else
#define PW_IN_AVX512(function) PW_IN_AVX2(function)
#endif
/// Arguments of for_this_machine().
#define PW_VARIANTS(function) portable::function, PW_IN_AVX2(function), PW_IN_AVX512(function)

namespace pw {

/// Returns the variant for the widest instruction set of this machine.
template <class Function>
Function* for_this_machine(Function* portable, [[maybe_unused]] Function* avx2,
                           [[maybe_unused]] Function* avx512) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return portable;
}

}  // namespace pw
