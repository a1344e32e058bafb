// Cooperative operations of a team's threads: shared memory, reductions across lanes, and vector
// accesses. Follows the prelude. NVRTC compiles it, and a C++ compiler for host runs.
//
// Invariant: a reduction combines lanes pairwise, the farthest first, with the lower lane as the
// left operand. This is a fixed binary tree, so its bits do not depend on the schedule. Cost:
// log2(lanes) exchanges, of which those 32 and more apart use shared memory.

// Memory accesses and shared memory declarations use these names, so that a host run can count
// accesses and detect races.
#ifndef PW_SHARED
template <class T>
PW_FUNCTION T pw_load(const T* p, long long i) {
  return p[i];
}
template <class T, class V>
PW_FUNCTION void pw_store(T* p, long long i, V x) {
  p[i] = (T)x;
}
// Brings bytes into the second-level cache, each line by one thread of the grid. It is a hint: it
// neither reads nor writes what the kernel computes with.
PW_FUNCTION void pw_prefetch(const void* p, long long bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const long long block = blockIdx.x + (long long)gridDim.x * blockIdx.y;
  const long long threads = (long long)gridDim.x * gridDim.y * blockDim.x;
  for (long long line = block * blockDim.x + threadIdx.x; 128 * line < bytes; line += threads)
    asm volatile("prefetch.global.L2 [%0];" ::"l"((const char*)p + 128 * line));
#endif
}
// Lets the next kernel start, and waits until earlier ones have ended and their writes are visible.
// Does nothing in a launch without programmatic edges. PTX ISA, griddepcontrol.
PW_FUNCTION void pw_wait_for_earlier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Returns the pointer, which the compiler must take for another one: no access through it moves
// before an earlier wait.
template <class T>
PW_FUNCTION T* pw_after_wait(T* p) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(p)::"memory");
#endif
  return p;
}
#define PW_SHARED(type, name, count) __shared__ type name[count]
#define PW_KEPT(name) extern __shared__ __align__(1024) uint4 name[]
#define PW_ALIGNED(p, bytes)
template <class S, class T>
PW_FUNCTION void pw_put(S& shared, int i, T x) {
  shared[i] = x;
}
template <class T>
PW_FUNCTION T pw_at(T* shared, int i) {
  return shared[i];
}
#endif

// Combines lanes `distance` apart. All threads of a warp must take part. The lower lane is the left
// operand.
template <class T, class F>
PW_FUNCTION T pw_pair(T mine, int distance, int t) {
  const T other = __shfl_xor_sync(0xffffffffu, mine, distance);
  return t & distance ? F::of(other, mine) : F::of(mine, other);
}
// Combines the values that `lanes` threads have stored, for distances of 32 and more, farthest
// first. One value for each lane of a warp remains.
template <class T, class F, class S>
PW_FUNCTION T pw_meet(S& shared, int t, int lanes) {
  T x[8];
  const int first = t - t % lanes + t % 32, count = lanes / 32;
#pragma unroll
  for (int m = 0; m < 8; ++m) {
    if (m < count) x[m] = pw_at(shared, first + 32 * m);
  }
#pragma unroll
  for (int d = 4; d > 0; d /= 2) {
#pragma unroll
    for (int m = 0; m < d; ++m) {
      if (d < count) x[m] = F::of(x[m], x[m + d]);
    }
  }
  return x[0];
}

// ---- groups of adjacent elements, moved as one: N words of 4 bytes, aligned to min(4 N, 16)
// bytes.

template <int N>
struct pw_words {
  unsigned w[N];
};

// Returns the same words, opaque to the compiler: derived values are recomputed in a later phase
// instead of kept in more registers.
template <int N>
PW_FUNCTION pw_words<N> pw_again(pw_words<N> v) {
#if defined(__CUDA_ARCH__)
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+r"(v.w[i]));
#endif
  return v;
}
// Returns the words of the thread whose number differs in one bit. All threads of a warp must take
// part.
template <int N>
PW_FUNCTION pw_words<N> pw_swapped(pw_words<N> v, int distance) {
#pragma unroll
  for (int i = 0; i < N; ++i) v.w[i] = __shfl_xor_sync(0xffffffffu, v.w[i], distance);
  return v;
}
template <int N>
PW_FUNCTION pw_words<N> pw_read(const void* p) {
  PW_ALIGNED(p, N < 4 ? 4 * N : 16);
  pw_words<N> v;
  if constexpr (N == 1) {
    v.w[0] = __ldg((const unsigned*)p);
  } else if constexpr (N == 2) {
    const uint2 q = __ldg((const uint2*)p);
    v.w[0] = q.x, v.w[1] = q.y;
  } else {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      const uint4 q = __ldg((const uint4*)p + i);
      v.w[4 * i] = q.x, v.w[4 * i + 1] = q.y, v.w[4 * i + 2] = q.z, v.w[4 * i + 3] = q.w;
    }
  }
  return v;
}
// Stores 16 bytes. On a device it is inline assembly, because the compiler splits a conditional
// 16-byte store.
PW_FUNCTION void pw_write4(void* p, unsigned a, unsigned b, unsigned c, unsigned d) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %0; st.global.v4.u32 [g], {%1, %2, %3, %4}; }" ::"l"(p),
      "r"(a), "r"(b), "r"(c), "r"(d));
#else
  pw_store((uint4*)p, 0, uint4{a, b, c, d});
#endif
}
PW_FUNCTION void pw_write2(void* p, unsigned a, unsigned b) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %0; st.global.v2.u32 [g], {%1, %2}; }" ::"l"(p), "r"(a),
      "r"(b));
#else
  pw_store((uint2*)p, 0, uint2{a, b});
#endif
}
template <int N>
PW_FUNCTION void pw_write(void* p, const pw_words<N>& v) {
  PW_ALIGNED(p, N < 4 ? 4 * N : 16);
  if constexpr (N == 1) {
    pw_store((unsigned*)p, 0, v.w[0]);
  } else if constexpr (N == 2) {
    pw_write2(p, v.w[0], v.w[1]);
  } else {
#pragma unroll
    for (int i = 0; i < N / 4; ++i)
      pw_write4((uint4*)p + i, v.w[4 * i], v.w[4 * i + 1], v.w[4 * i + 2], v.w[4 * i + 3]);
  }
}
// Stores the 8 bytes of two neighbouring threads; the even one writes both, aligned to 16. All
// threads of a warp must take part.
PW_FUNCTION void pw_write_pair(void* p, const pw_words<2>& v, int t, bool live) {
  const unsigned a = __shfl_xor_sync(0xffffffffu, v.w[0], 1);
  const unsigned b = __shfl_xor_sync(0xffffffffu, v.w[1], 1);
  if (live && t % 2 == 0) {
    PW_ALIGNED(p, 16);
    pw_write4(p, v.w[0], v.w[1], a, b);
  }
}
// Stores words in shared memory for the same thread to read again.
template <int N, class S>
PW_FUNCTION void pw_keep(S& shared, int at, int step, const pw_words<N>& v) {
#pragma unroll
  for (int i = 0; i < (N + 3) / 4; ++i)
    pw_put(shared, at + i * step,
           uint4{v.w[4 * i], N > 1 ? v.w[4 * i + 1] : 0u, N > 2 ? v.w[4 * i + 2] : 0u,
                 N > 2 ? v.w[4 * i + 3] : 0u});
}
template <int N, class S>
PW_FUNCTION pw_words<N> pw_kept(S& shared, int at, int step) {
  pw_words<N> v;
#pragma unroll
  for (int i = 0; i < (N + 3) / 4; ++i) {
    const uint4 q = pw_at(shared, at + i * step);
    v.w[4 * i] = q.x;
    if constexpr (N > 1) v.w[4 * i + 1] = q.y;
    if constexpr (N > 2) v.w[4 * i + 2] = q.z, v.w[4 * i + 3] = q.w;
  }
  return v;
}

template <class T>
struct pw_as {
  PW_FUNCTION T from(unsigned long long bits) { return (T)bits; }
  PW_FUNCTION unsigned long long to(T x) {
    return (unsigned long long)x & (sizeof(T) == 8 ? ~0ull : (1ull << 8 * (sizeof(T) & 7)) - 1);
  }
};
template <>
struct pw_as<float> {
  PW_FUNCTION float from(unsigned long long bits) { return pw_float((unsigned)bits); }
  PW_FUNCTION unsigned long long to(float x) { return pw_bits(x); }
};
template <>
struct pw_as<double> {
  PW_FUNCTION double from(unsigned long long bits) { return __longlong_as_double((long long)bits); }
  PW_FUNCTION unsigned long long to(double x) {
    return (unsigned long long)__double_as_longlong(x);
  }
};
/// Returns element e.
template <class T, int N>
PW_FUNCTION T pw_take(const pw_words<N>& v, int e) {
  if constexpr (sizeof(T) == 8) {
    return pw_as<T>::from((unsigned long long)v.w[2 * e + 1] << 32 | v.w[2 * e]);
  } else {
    constexpr int each = 4 / sizeof(T);
    return pw_as<T>::from(v.w[e / each] >> (e % each) * (32 / each) &
                          (0xffffffffu >> (32 - 32 / each)));
  }
}
/// Sets element e, which must be 0 before.
template <class T, int N>
PW_FUNCTION void pw_insert(pw_words<N>& v, int e, T x) {
  const unsigned long long bits = pw_as<T>::to(x);
  if constexpr (sizeof(T) == 8) {
    v.w[2 * e] = (unsigned)bits, v.w[2 * e + 1] = (unsigned)(bits >> 32);
  } else {
    constexpr int each = 4 / sizeof(T);
    v.w[e / each] |= (unsigned)bits << (e % each) * (32 / each);
  }
}
// Rounds eight numbers, two at a time if there is an instruction for it.
template <int N>
PW_FUNCTION void pw_pack_f8e4m3(pw_words<N>& v, const float* x) {
#pragma unroll
  for (int e = 0; e < 4 * N; e += 2) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    unsigned short y;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(x[e + 1]), "f"(x[e]));
    v.w[e / 4] |= (unsigned)y << (e % 4) * 8;
#else
    v.w[e / 4] |= (unsigned)pw_to_f8e4m3(x[e]) << (e % 4) * 8 | (unsigned)pw_to_f8e4m3(x[e + 1])
                                                                    << (e % 4) * 8 + 8;
#endif
  }
}
