#ifndef PW_TENSOR_CORES
#define PW_TENSOR_CORES
// Warp-level tensor-core instructions and asynchronous copies: mma.sync, ldmatrix, cp.async, and
// counters between blocks. Precedes its users (tensor_product.cu, tensor_attention.cu). NVRTC
// compiles it for sm_80 and later. For host runs a C++ compiler compiles it, and each instruction
// is emulated from the fragment layout in the PTX ISA. Shared memory is an array of 16-byte words.
//
// Invariant: words are placed with an XOR swizzle (pw_word), so that the 8 rows of an ldmatrix
// matrix are in different banks.

struct pw_bf16 {
  typedef unsigned short stored;
  enum : int { each = 2, zeros = (int)0x80008000u };
  PW_FUNCTION float widen(unsigned bits) { return pw_from_bf16((unsigned short)bits); }
  PW_FUNCTION unsigned narrow(float x) { return pw_to_bf16(x); }
};
struct pw_f16 {
  typedef unsigned short stored;
  enum : int { each = 2, zeros = (int)0x80008000u };
  PW_FUNCTION float widen(unsigned bits) { return pw_from_f16((unsigned short)bits); }
  PW_FUNCTION unsigned narrow(float x) { return pw_to_f16(x); }
};
struct pw_f8e4m3 {
  typedef unsigned char stored;
  enum : int { each = 1, zeros = (int)0x80808080u };
  PW_FUNCTION float widen(unsigned bits) { return pw_from_f8e4m3((unsigned char)bits); }
};
struct pw_f8e5m2 {
  typedef unsigned char stored;
  enum : int { each = 1, zeros = (int)0x80808080u };
  PW_FUNCTION float widen(unsigned bits) { return pw_from_f8e5m2((unsigned char)bits); }
};

struct pw_fragment {
  unsigned r[4];
};

#if defined(__CUDA_ARCH__)

/// Returns the address of a word in 32 bits, so that addresses that differ by a lane's bits need
/// one register each.
template <class S>
PW_FUNCTION unsigned pw_shared_address(S& shared, int i) {
  unsigned first;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
      : "=r"(first)
      : "l"((const void*)&shared[0]));
  return first + 16u * (unsigned)i;
}
/// A word's place in shared memory for reads, in bytes: constant offsets become part of the
/// instruction.
typedef unsigned pw_place;
enum : int { pw_of_word = 16 };
template <class S>
PW_FUNCTION pw_place pw_place_of(S& shared, int i) {
  return pw_shared_address(shared, i);
}
/// ldmatrix: reads four matrices of 8 rows of 16 bytes. Lane l provides the address of row l % 8 of
/// matrix l / 8, and receives bytes 4 (l % 4) to 4 (l % 4) + 3 of row l / 4 of each.
template <class S>
PW_FUNCTION pw_fragment pw_rows(S&, pw_place place) {
  pw_fragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(place)
               : "memory");
  return f;
}
/// ldmatrix.trans: the same, with each matrix transposed as 16-bit elements.
template <class S>
PW_FUNCTION pw_fragment pw_columns(S&, pw_place place) {
  pw_fragment f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(place)
               : "memory");
  return f;
}
/// Starts an asynchronous copy of 16 bytes, or of zeros; the data is valid after a wait for its
/// group.
template <class S>
PW_FUNCTION void pw_copy_async(S& shared, int i, const void* from, bool take) {
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %1; cp.async.cg.shared.global [%0], [g], 16, %2; }" ::
          "r"(pw_shared_address(shared, i)),
      "l"(from), "r"(take ? 16 : 0)
      : "memory");
}
/// Ends a group of copies.
PW_FUNCTION void pw_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all but this thread's last N groups have arrived.
template <int N>
PW_FUNCTION void pw_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
/// Adds to a counter and returns its previous value. Earlier writes of this block are visible to
/// blocks that add or read later.
PW_FUNCTION long long pw_add_to(long long* p, long long n) {
  long long before;
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %1; atom.acq_rel.gpu.global.add.u64 %0, [g], %2; }"
      : "=l"(before)
      : "l"(p), "l"(n)
      : "memory");
  return before;
}
PW_FUNCTION long long pw_see(const long long* p) {
  long long x;
  asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %1; ld.acquire.gpu.global.u64 %0, [g]; }"
               : "=l"(x)
               : "l"(p)
               : "memory");
  return x;
}
/// Number of times that a block polls for others: a few microseconds.
enum : int { pw_looks = 16 };
/// Reads 16 bytes that another block has written and announced. Reads from the second-level cache,
/// and is not moved before earlier reads.
PW_FUNCTION uint4 pw_read_written(const uint4* p) {
  uint4 x;
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %4; ld.global.cg.v4.u32 {%0, %1, %2, %3}, [g]; }"
      : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
      : "l"(p)
      : "memory");
  return x;
}
#define PW_MMA(type, shape, name)                                                               \
  PW_FUNCTION void pw_mma(type, float(&c)[4], const pw_fragment& a, unsigned b0, unsigned b1) { \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." name "." name                        \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"         \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                               \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));       \
  }
PW_MMA(pw_bf16, "m16n8k16", "bf16")
PW_MMA(pw_f16, "m16n8k16", "f16")
#if __CUDA_ARCH__ >= 890
PW_MMA(pw_f8e4m3, "m16n8k32", "e4m3")
PW_MMA(pw_f8e5m2, "m16n8k32", "e5m2")
#endif
#undef PW_MMA
/// Returns the same number, opaque to the compiler: expressions of it are recomputed instead of
/// kept in registers.
PW_FUNCTION int pw_here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
template <class T>
PW_FUNCTION T* pw_here(T* p) {
  asm volatile("" : "+l"(p));
  return p;
}
/// Rounds two floats to nearest even; the first becomes the low half.
PW_FUNCTION unsigned pw_narrow_two(pw_bf16, float low, float high) {
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
PW_FUNCTION unsigned pw_narrow_two(pw_f16, float low, float high) {
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
/// Returns the larger operand, or a NaN.
PW_FUNCTION float pw_larger(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
/// Returns approximately 2 to a power, within 2^-22 (PTX ISA, ex2.approx.ftz.f32); subnormals
/// become 0.
PW_FUNCTION float pw_power2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#else  // emulation on the host

static inline unsigned pw_part(const void* words, int i) {
  unsigned x;
  __builtin_memcpy(&x, (const char*)words + 4 * i, 4);
  return x;
}
typedef int pw_place;
enum : int { pw_of_word = 1 };
template <class S>
PW_FUNCTION pw_place pw_place_of(S&, int i) {
  return i;
}
template <class S>
PW_FUNCTION pw_fragment pw_rows(S& shared, pw_place place) {
  const uint4 own = pw_at(shared, place);
  uint4 all[32];
  pw_host->gather(&own, all, sizeof own);
  const int lane = (int)threadIdx.x % 32;
  pw_fragment f;
  for (int m = 0; m < 4; ++m) f.r[m] = pw_part(&all[8 * m + lane / 4], lane % 4);
  return f;
}
template <class S>
PW_FUNCTION pw_fragment pw_columns(S& shared, pw_place place) {
  const uint4 own = pw_at(shared, place);
  uint4 all[32];
  pw_host->gather(&own, all, sizeof own);
  const int lane = (int)threadIdx.x % 32, column = lane / 4;
  pw_fragment f;
  for (int m = 0; m < 4; ++m) {
    const uint4* two = &all[8 * m + 2 * (lane % 4)];
    const unsigned low = pw_part(two, column / 2) >> 16 * (column % 2) & 0xffffu;
    f.r[m] = low | pw_part(two + 1, column / 2) >> 16 * (column % 2) << 16;
  }
  return f;
}
template <class S>
PW_FUNCTION void pw_copy_async(S& shared, int i, const void* from, bool take) {
  if (take) {
    PW_ALIGNED(from, 16);
    pw_count<uint4>(0);
  }
  pw_count<uint4>(3);
  pw_host->copy_async(shared.p, i, take ? from : 0);
}
PW_FUNCTION long long pw_add_to(long long* p, long long n) {
  pw_count<long long>(0);
  pw_count<long long>(1);
  return __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}
PW_FUNCTION long long pw_see(const long long* p) {
  pw_count<long long>(0);
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
enum : int { pw_looks = 0 };
PW_FUNCTION uint4 pw_read_written(const uint4* p) {
  PW_ALIGNED(p, 16);
  return pw_load(p, 0);
}
PW_FUNCTION void pw_commit() { pw_host->commit(); }
template <int N>
PW_FUNCTION void pw_wait() {
  pw_host->wait(N);
}
/// mma.sync: m16n8k16 of 16-bit elements, m16n8k32 of bytes. With g = lane / 4, t = lane % 4 and n
/// elements a register: register i of A holds row g + 8 (i % 2) from k = n t + 4 n (i / 2) on;
/// register i of B holds column g from k = n t + 4 n i on; c[i] is row g + 8 (i / 2), column 2 t +
/// i % 2.
template <class T>
PW_FUNCTION void pw_mma(T, float (&c)[4], const pw_fragment& a, unsigned b0, unsigned b1) {
  struct {
    pw_fragment a;
    unsigned b[2];
  } const own = {a, {b0, b1}};
  unsigned all[32][6];
  pw_host->gather(&own, all, sizeof own);
  constexpr int n = 4 / T::each, bits = 8 * T::each;
  const auto element = [&](const unsigned* registers, int i, int place) {
    return T::widen(registers[i] >> bits * place & ((1u << bits) - 1u));
  };
  const int lane = (int)threadIdx.x % 32;
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    for (int k = 0; k < 8 * n; ++k) {
      const int t = k / n % 4, half = k / (4 * n);
      c[i] = pw_fma(element(all[row % 8 * 4 + t], 2 * half + row / 8, k % n),
                    element(all[column * 4 + t] + 4, half, k % n), c[i]);
    }
  }
}

template <class X>
PW_FUNCTION X pw_here(X x) {
  return x;
}
template <class T>
PW_FUNCTION unsigned pw_narrow_two(T, float low, float high) {
  return T::narrow(low) | T::narrow(high) << 16;
}
PW_FUNCTION float pw_larger(float a, float b) { return a != a || a > b ? a : b; }
/// Rounds to nearest; subnormals become 0.
PW_FUNCTION float pw_power2(float x) {
  const float y = (float)exp2((double)x);
  return y < 1.17549435e-38f ? 0.0f : y;
}

#endif

/// Returns true in the last of `blocks` blocks to arrive at a counter that is 0 before and after.
/// That block then sees what the others have written. Uses the first word of shared memory.
template <class S>
PW_FUNCTION bool pw_last_to_arrive(S& shared, int* arrived, int blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const int before = pw_count_up(arrived);
    if (before == blocks - 1) pw_store(arrived, 0, 0);
    pw_put(shared, 0, uint4{(unsigned)before, 0, 0, 0});
  }
  __syncthreads();
  return (int)pw_at(shared, 0).x == blocks - 1;
}

// ---- tiles. A row of a tile is C words of 16 bytes; words are moved within rows so that eight
// rows of one column of words lie in different banks.

template <int C>
PW_FUNCTION int pw_word(unsigned row, int word) {
  constexpr unsigned period = C < 8 ? 8 / C : 1;
  return (int)(row * C) + (word ^ (int)(row / period % (C < 8 ? C : 8)));
}

/// Returns the place `words` words on.
PW_FUNCTION pw_place pw_on(pw_place place, int words) { return place + words * pw_of_word; }
/// The place in a row of 8 words whose number differs in these bits. Rows begin at multiples of 8.
PW_FUNCTION pw_place pw_across_row(pw_place place, int words) { return place ^ words * pw_of_word; }
#endif
