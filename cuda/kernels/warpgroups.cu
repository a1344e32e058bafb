#ifndef PW_WARPGROUPS
#define PW_WARPGROUPS
// Warpgroup products of sm_90: four warps start a product together and wait for it later (`wgmma`
// of the PTX ISA). Follows tensor_cores.cu. NVRTC compiles it for sm_90a, and a C++ compiler for
// host runs.
//
// A matrix in shared memory consists of pieces of 1024 bytes, each with eight rows of 128 bytes.
// Within a piece, words of 16 bytes are permuted like pw_word<8> ("128-byte swizzle": by bits of
// their address).
//
// * Along: a row of a piece holds 64 elements of k of one matrix row; the next eight rows form the
//   next piece.
// * Down: a row of a piece holds 64 matrix rows at one k; the next eight of k form the next piece,
//   and the next 64 rows are `panel` words on.
//
// Warps of different roles synchronise by phases (`mbarrier`): a phase is complete when a number of
// warps have arrived, and the next begins. Arrivals do not wait.
//
// Invariant: registers and shared memory of a started product must not be changed before the wait
// for its group. Writes to shared memory need a proxy fence and a barrier before a product reads
// them.

/// A matrix descriptor: bits 0 to 13 hold its first word, 16 to 29 the words between groups of 64
/// rows, 32 to 45 the words between pieces, 62 and 63 the swizzle.
typedef unsigned long long pw_matrix;
PW_FUNCTION pw_matrix pw_matrix_of(unsigned word, int panel) {
  return word | (pw_matrix)panel << 16 | 64ull << 32 | 1ull << 62;
}
/// Returns the descriptor `words` words on; the offset must not overflow the low half.
PW_FUNCTION pw_matrix pw_matrix_on(pw_matrix m, int words) {
  return m >> 32 << 32 | ((unsigned)m + (unsigned)words);
}

#if defined(__CUDA_ARCH__)

template <class S>
PW_FUNCTION pw_matrix pw_matrix_at(S& shared, int word, int panel) {
  return pw_matrix_of(pw_shared_address(shared, word) / 16, panel);
}
template <class B>
PW_FUNCTION unsigned pw_address_of_phases(B& barriers, int i) {
  return pw_shared_address(barriers, 0) + 8u * (unsigned)i;
}
/// Prepares a barrier whose phases are complete after `warps` arrivals. One thread prepares it, and
/// __syncthreads() precedes its use.
template <class B>
PW_FUNCTION void pw_prepare_phases(B& barriers, int i, int warps) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(pw_address_of_phases(barriers, i)),
               "r"(warps)
               : "memory");
}
/// All lanes of a warp together arrive once; what they did before is visible to those who await
/// the phase.
template <class B>
PW_FUNCTION void pw_arrive(B& barriers, int i) {
  __syncwarp();
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, %1, 0; @p mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(
          pw_address_of_phases(barriers, i)),
      "r"(threadIdx.x % 32)
      : "memory");
}
/// Waits until the phase of this number is complete; phase -1 is. The number may be at most one
/// below the current phase's, because only its parity counts.
template <class B>
PW_FUNCTION void pw_await(B& barriers, int i, int phase) {
  unsigned done = 0;
  do {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(pw_address_of_phases(barriers, i)), "r"((unsigned)phase & 1u)
        : "memory");
  } while (done == 0);
}
/// Returns a number that is equal in all lanes of a warp, so that the compiler keeps it once for
/// the warp.
PW_FUNCTION int pw_of_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }
/// Makes this thread's writes to shared memory visible to products that start after the next
/// barrier.
PW_FUNCTION void pw_show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Fence before the first product, and after changing registers that products use.
PW_FUNCTION void pw_begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Ends a group of products.
PW_FUNCTION void pw_commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until all but the last N groups are complete.
template <int N>
PW_FUNCTION void pw_wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/// Orders accesses to the sums: earlier code cannot move after this point, nor later code before
/// it. The wait instruction does not have the sums as operands.
template <int J>
PW_FUNCTION void pw_hold(float (&d)[J][4]) {
#pragma unroll
  for (int j = 0; j < J; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
}
/// Marks registers that products read as modified from here on.
template <int J>
PW_FUNCTION void pw_hold(pw_fragment (&a)[J]) {
#pragma unroll
  for (int j = 0; j < J; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[j].r[i])::"memory");
}
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// All warps of a warpgroup give up registers, or wait for some, until each thread has N.
template <int N>
PW_FUNCTION void pw_fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
PW_FUNCTION void pw_more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
#define PW_NAMES_32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define PW_NAMES_48 \
  PW_NAMES_32       \
  ", "              \
  "%16, %17, %18, %19, %20, %21, %22, %23"
#define PW_NAMES_64 \
  PW_NAMES_48       \
  ", "              \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define PW_NAMES_96                                                             \
  PW_NAMES_64                                                                   \
  ", "                                                                          \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47"
#define PW_NAMES_128                                                            \
  PW_NAMES_96                                                                   \
  ", "                                                                          \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, " \
  "%63"
#define PW_NAMES_192                                                            \
  PW_NAMES_128                                                                  \
  ", "                                                                          \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, " \
  "%79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, " \
  "%94, %95"
#define PW_NAMES_256                                                           \
  PW_NAMES_192                                                                 \
  ", "                                                                         \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, " \
  "%109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "   \
  "%121, %122, %123, %124, %125, %126, %127"
#define PW_SUMS_8(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define PW_SUMS_16(j) PW_SUMS_8(j), PW_SUMS_8(j + 1)
#define PW_SUMS_32(j) PW_SUMS_16(j), PW_SUMS_16(j + 2)
#define PW_SUMS_48(j) PW_SUMS_32(j), PW_SUMS_16(j + 4)
#define PW_SUMS_64(j) PW_SUMS_32(j), PW_SUMS_32(j + 4)
#define PW_SUMS_96(j) PW_SUMS_64(j), PW_SUMS_32(j + 8)
#define PW_SUMS_128(j) PW_SUMS_64(j), PW_SUMS_64(j + 8)
#define PW_SUMS_192(j) PW_SUMS_128(j), PW_SUMS_64(j + 16)
#define PW_SUMS_256(j) PW_SUMS_192(j), PW_SUMS_64(j + 24)
#define PW_BEGUN(N, name, adds)                                                        \
  "{ .reg .pred p; setp.ne.u32 p, %" #adds ", 0; wgmma.mma_async.sync.aligned.m64n" #N \
  "k16.f32." name "." name " {" PW_NAMES_##N "}, "
// Computes d += a b for 64 rows, N columns and 16 of k, or d = a b without addition. a is in shared
// memory, or in registers in pw_mma's layout. The operands follow the N / 2 sums and are given by
// number.
#define PW_GROUP(type, name, N, n0, n1, n2, n3, n4, n5, n6)                                       \
  template <bool DOWN, class S>                                                                   \
  PW_FUNCTION void pw_multiply(type, S&, float(&d)[N / 8][4], pw_matrix a, pw_matrix b,           \
                               bool adds = true) {                                                \
    asm volatile(PW_BEGUN(N, name, n3) "%" #n0 ", %" #n1 ", p, 1, 1, 0, %" #n2 "; }"              \
                 : PW_SUMS_##N(0)                                                                 \
                 : "l"(a), "l"(b), "n"(DOWN ? 1 : 0), "r"(adds ? 1 : 0)                           \
                 : "memory");                                                                     \
  }                                                                                               \
  template <bool DOWN, class S>                                                                   \
  PW_FUNCTION void pw_multiply(type, S&, float(&d)[N / 8][4], const pw_fragment& a, pw_matrix b,  \
                               bool adds = true) {                                                \
    asm volatile(PW_BEGUN(N, name, n6) "{%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 "}, %" #n4          \
                                       ", p, 1, 1, %" #n5 "; }"                                   \
                 : PW_SUMS_##N(0)                                                                 \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "n"(DOWN ? 1 : 0), \
                   "r"(adds ? 1 : 0)                                                              \
                 : "memory");                                                                     \
  }
#define PW_GROUPS(type, name)                              \
  PW_GROUP(type, name, 32, 16, 17, 18, 19, 20, 21, 22)     \
  PW_GROUP(type, name, 48, 24, 25, 26, 27, 28, 29, 30)     \
  PW_GROUP(type, name, 64, 32, 33, 34, 35, 36, 37, 38)     \
  PW_GROUP(type, name, 96, 48, 49, 50, 51, 52, 53, 54)     \
  PW_GROUP(type, name, 128, 64, 65, 66, 67, 68, 69, 70)    \
  PW_GROUP(type, name, 192, 96, 97, 98, 99, 100, 101, 102) \
  PW_GROUP(type, name, 256, 128, 129, 130, 131, 132, 133, 134)
PW_GROUPS(pw_bf16, "bf16")
PW_GROUPS(pw_f16, "f16")
#undef PW_GROUPS
#undef PW_GROUP
#undef PW_BEGUN
#else
template <int N>
PW_FUNCTION void pw_fewer_registers();
template <int N>
PW_FUNCTION void pw_more_registers();
template <bool DOWN, class T, class S, class A, int J>
PW_FUNCTION void pw_multiply(T, S&, float (&)[J][4], A, pw_matrix, bool adds = true);
#endif

#else  // emulation on the host

template <class S>
PW_FUNCTION pw_matrix pw_matrix_at(S&, int word, int panel) {
  return pw_matrix_of((unsigned)word, panel);
}
template <class B>
PW_FUNCTION void pw_prepare_phases(B& barriers, int i, int warps) {
  pw_host->prepare_phases(barriers.p, i, warps);
}
template <class B>
PW_FUNCTION void pw_arrive(B& barriers, int i) {
  pw_host->arrive(barriers.p, i);
}
template <class B>
PW_FUNCTION void pw_await(B& barriers, int i, int phase) {
  pw_host->await(barriers.p, i, (unsigned)phase & 1u);
}
template <int N>
PW_FUNCTION void pw_fewer_registers() {}
template <int N>
PW_FUNCTION void pw_more_registers() {}
PW_FUNCTION int pw_of_warp(int x) { return x; }
PW_FUNCTION void pw_show_to_products() { pw_host->show_async(); }
PW_FUNCTION void pw_begin_products() {}
template <int J>
PW_FUNCTION void pw_hold(float (&)[J][4]) {}
template <int J>
PW_FUNCTION void pw_hold(pw_fragment (&)[J]) {}
PW_FUNCTION void pw_commit_products() { pw_host->commit_async(); }
template <int N>
PW_FUNCTION void pw_wait_for_products() {
  pw_host->wait_async(N);
}
/// Returns the word with `row` of the matrix and k, counted from `m`.
template <bool DOWN>
PW_FUNCTION int pw_word_of_matrix(pw_matrix m, int row, int k) {
  const int panel = (int)(m >> 16 & 0x3fff), piece = (int)(m >> 32 & 0x3fff);
  const int at =
      (int)(m & 0x3fff) + (DOWN ? row / 64 * panel + k / 8 * piece + k % 8 * 8 + row % 64 / 8
                                : row / 8 * piece + row % 8 * 8 + k / 8);
  if (m >> 62 != 1) pw_host->fault("a matrix that is not moved by 128 bytes");
  return at ^ at / 8 % 8;
}
/// Returns eight elements of a row, from k0 on.
template <bool DOWN, class T, class S>
PW_FUNCTION void pw_elements_of_matrix(T, S& shared, pw_matrix m, int row, int k0, float (&x)[8]) {
  for (int i = 0; i < 8; ++i) {
    const unsigned short* const word = (const unsigned short*)pw_host->word(
        shared.p, pw_word_of_matrix<DOWN>(m, row, k0 + (DOWN ? i : 0)));
    x[i] = T::widen(word[DOWN ? row % 8 : i]);
  }
}
/// Computes d in the order of pw_mma, for as many columns: warp w of a group has rows 16 w to 16 w
/// + 15. Each thread of a group reports a part of the words that are read. `a`: 16 of k of this
/// thread's first row and of the eighth after it.
template <bool DOWN, class T, class S, int J>
PW_FUNCTION void pw_multiply_of_host(T type, S& shared, float (&d)[J][4], const float (&a)[2][16],
                                     pw_matrix b, bool adds) {
  const int own = (int)threadIdx.x % 128, lane = own % 32;
  for (int i = own; i < 8 * J * 2; i += 128) {
    pw_count<uint4>(2);
    pw_host->read_async(shared.p, DOWN ? pw_word_of_matrix<DOWN>(b, i % J * 8, i / J)
                                       : pw_word_of_matrix<DOWN>(b, i / 2, i % 2 * 8));
  }
  float* const sums = (float*)pw_host->sum_async(d, sizeof d);
  for (int i = 0; !adds && i < 4 * J; ++i) sums[i] = 0.0f;
  for (int j = 0; j < J; ++j)
    for (int e = 0; e < 2; ++e) {
      float* const two[2] = {&sums[4 * j + e], &sums[4 * j + 2 + e]};
      for (int k0 = 0; k0 < 16; k0 += 8) {
        float column[8];
        pw_elements_of_matrix<DOWN>(type, shared, b, 8 * j + lane % 4 * 2 + e, k0, column);
        for (int k = 0; k < 8; ++k)
          for (int h = 0; h < 2; ++h) *two[h] = pw_fma(a[h][k0 + k], column[k], *two[h]);
      }
    }
}
template <bool DOWN, class T, class S, int J>
PW_FUNCTION void pw_multiply(T type, S& shared, float (&d)[J][4], pw_matrix a, pw_matrix b,
                             bool adds = true) {
  const int own = (int)threadIdx.x % 128;
  pw_matrix all[32];
  pw_host->gather(&a, all, sizeof a);
  for (const pw_matrix& other : all)
    if (other != a) pw_host->fault("lanes of a warp multiply different matrices");
  pw_count<uint4>(2);  // 64 rows of two words
  pw_host->read_async(shared.p, pw_word_of_matrix<false>(a, own / 2, own % 2 * 8));
  float of_a[2][16];
  for (int i = 0; i < 4; ++i) {
    float eight[8];
    const int row = own / 32 * 16 + i / 2 * 8 + own % 32 / 4;
    pw_elements_of_matrix<false>(type, shared, a, row, i % 2 * 8, eight);
    for (int k = 0; k < 8; ++k) of_a[i / 2][i % 2 * 8 + k] = eight[k];
  }
  pw_multiply_of_host<DOWN>(type, shared, d, of_a, b, adds);
}
template <bool DOWN, class T, class S, int J>
PW_FUNCTION void pw_multiply(T type, S& shared, float (&d)[J][4], const pw_fragment& a, pw_matrix b,
                             bool adds = true) {
  pw_fragment all[32];
  pw_host->gather(&a, all, sizeof a);
  float of_a[2][16];
  for (int h = 0; h < 2; ++h)
    for (int k = 0; k < 16; ++k) {
      const pw_fragment& of = all[threadIdx.x % 32 / 4 * 4 + k / 2 % 4];
      of_a[h][k] = T::widen(of.r[k / 8 * 2 + h] >> 16 * (k % 2) & 0xffffu);
    }
  pw_multiply_of_host<DOWN>(type, shared, d, of_a, b, adds);
}

#endif
#endif
