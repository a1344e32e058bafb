// What generated kernels are written in: conversions, scalar operations, the order of reductions. No headers. The same text
// is compiled by NVRTC and, with the names of CUDA defined, by a C++ compiler.
#define PW_FUNCTION static __device__ __forceinline__

PW_FUNCTION unsigned pw_bits(float x) { return __float_as_uint(x); }
PW_FUNCTION float pw_float(unsigned bits) { return __uint_as_float(bits); }

// ---- narrow floating types, in software. Rounding is to nearest even; fp8 saturates; NaN stays NaN.

PW_FUNCTION float pw_from_bf16(unsigned short bits) { return pw_float((unsigned)bits << 16); }
PW_FUNCTION unsigned short pw_to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#endif
  const unsigned u = pw_bits(x);
  return (unsigned short)((x != x ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// M mantissa bits, exponent bias B; `bits` without the sign. The product renormalises subnormals exactly.
template <int M, int B>
PW_FUNCTION float pw_widen(unsigned bits, unsigned sign) {
  const float x = pw_float(bits << (23 - M)) * pw_float((unsigned)(254 - B) << 23);
  return pw_float(pw_bits(x) | sign << 31);
}
// Of a magnitude; from `most` on, it is that of `most`. Under the smallest normal number, adding what has that number's unit
// for its own does the rounding. Without branches, for vector units.
template <int M, int B>
PW_FUNCTION unsigned pw_narrow(unsigned u, unsigned most) {
  const unsigned c = u < most ? u : most;
  const unsigned small = pw_bits(pw_float(u) + pw_float((unsigned)(151 - B - M) << 23)) & ((1u << (M + 1)) - 1u);
  const unsigned even = c + ((1u << (22 - M)) - 1u) + ((c >> (23 - M)) & 1u);
  return u < ((unsigned)(128 - B) << 23) ? small : (even >> (23 - M)) - ((unsigned)(127 - B) << M);
}

PW_FUNCTION float pw_from_f16(unsigned short bits) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
  return y;
#endif
  const unsigned u = bits & 0x7fffu, sign = (unsigned)bits >> 15;
  if (u >= 0x7c00u) return pw_float(0x7f800000u | (u & 0x3ffu) << 13 | sign << 31);
  return pw_widen<10, 15>(u, sign);
}
PW_FUNCTION unsigned short pw_to_f16(float x) {
#if defined(__CUDA_ARCH__)
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
#endif
  const unsigned u = pw_bits(x) & 0x7fffffffu, sign = pw_bits(x) >> 31 << 15;
  return (unsigned short)((x != x ? 0x7e00u : pw_narrow<10, 15>(u, 0x477ff000u)) | sign);
}
PW_FUNCTION float pw_from_f8e4m3(unsigned char bits) {
  const unsigned u = bits & 0x7fu, sign = (unsigned)bits >> 7;
  if (u == 0x7fu) return pw_float(0x7ff00000u | sign << 31);
  return pw_widen<3, 7>(u, sign);
}
PW_FUNCTION unsigned char pw_to_f8e4m3(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short y;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return (unsigned char)y;
#endif
  const unsigned char sign = (unsigned char)(pw_bits(x) >> 24 & 0x80u);
  return (unsigned char)((unsigned char)(x != x ? 0x7fu : pw_narrow<3, 7>(pw_bits(x) & 0x7fffffffu, 0x43e00000u)) | sign);
}
PW_FUNCTION float pw_from_f8e5m2(unsigned char bits) { return pw_from_f16((unsigned short)(bits << 8)); }
PW_FUNCTION unsigned char pw_to_f8e5m2(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return (unsigned char)y;
#endif
  const unsigned char sign = (unsigned char)(pw_bits(x) >> 24 & 0x80u);
  return (unsigned char)((unsigned char)(x != x ? 0x7fu : pw_narrow<2, 15>(pw_bits(x) & 0x7fffffffu, 0x47600000u)) | sign);
}

PW_FUNCTION float pw_round_bf16(float x) {
#if defined(__CUDA_ARCH__)
  return pw_from_bf16(pw_to_bf16(x));
#else  // without narrowing, for vector units
  const unsigned u = pw_bits(x);
  return pw_float((x != x ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u);
#endif
}
PW_FUNCTION float pw_round_f16(float x) { return pw_from_f16(pw_to_f16(x)); }
PW_FUNCTION float pw_round_f8e4m3(float x) { return pw_from_f8e4m3(pw_to_f8e4m3(x)); }
PW_FUNCTION float pw_round_f8e5m2(float x) { return pw_from_f8e5m2(pw_to_f8e5m2(x)); }

// From f64 toward a narrow type: the last bit is set when inexact, so that the second rounding is the only one.
PW_FUNCTION float pw_odd(double x) {
  const float f = (float)x;
  if ((double)f == x || x != x) return f;
  unsigned bits = pw_bits(f);
  const double back = (double)f;
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) --bits;
  return pw_float(bits | 1u);
}

// ---- integers: from reals toward zero, saturating, NaN to zero; arithmetic wraps around.

template <class T> struct pw_range;
template <> struct pw_range<signed char> { enum : long long { low = -128, high = 127 }; };
template <> struct pw_range<unsigned char> { enum : long long { low = 0, high = 255 }; };
template <> struct pw_range<int> { enum : long long { low = -2147483647ll - 1, high = 2147483647ll }; };
template <> struct pw_range<long long> { enum : long long { low = -9223372036854775807ll - 1, high = 9223372036854775807ll }; };
template <class T, class R>
PW_FUNCTION T pw_saturate(R x) {
  if (x != x) return (T)0;
  if (x >= (R)(long long)pw_range<T>::high) return (T)pw_range<T>::high;
  if (x <= (R)(long long)pw_range<T>::low) return (T)pw_range<T>::low;
  return (T)x;
}

PW_FUNCTION long long pw_add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
PW_FUNCTION long long pw_sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
PW_FUNCTION long long pw_mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
PW_FUNCTION long long pw_div(long long a, long long b) { return b == 0 ? 0 : b == -1 ? pw_sub(0, a) : a / b; }
PW_FUNCTION float pw_add(float a, float b) { return a + b; }
PW_FUNCTION float pw_sub(float a, float b) { return a - b; }
PW_FUNCTION float pw_mul(float a, float b) { return a * b; }
PW_FUNCTION float pw_div(float a, float b) { return a / b; }
PW_FUNCTION double pw_add(double a, double b) { return a + b; }
PW_FUNCTION double pw_sub(double a, double b) { return a - b; }
PW_FUNCTION double pw_mul(double a, double b) { return a * b; }
PW_FUNCTION double pw_div(double a, double b) { return a / b; }

/// Brings an index read from memory into [0, extent).
PW_FUNCTION long long pw_clamp(long long i, long long extent) { return i < 0 ? 0 : i < extent ? i : extent - 1; }

// ---- one operand. rsqrt is a division by a square root, both correctly rounded.

PW_FUNCTION float pw_neg(float a) { return -a; }
PW_FUNCTION double pw_neg(double a) { return -a; }
PW_FUNCTION long long pw_neg(long long a) { return pw_sub(0, a); }
PW_FUNCTION float pw_abs(float a) { return pw_float(pw_bits(a) & 0x7fffffffu); }
PW_FUNCTION double pw_abs(double a) { return fabs(a); }
PW_FUNCTION long long pw_abs(long long a) { return a < 0 ? pw_sub(0, a) : a; }
PW_FUNCTION float pw_sqrt(float a) { return sqrtf(a); }
PW_FUNCTION double pw_sqrt(double a) { return sqrt(a); }
PW_FUNCTION float pw_rsqrt(float a) { return 1.0f / sqrtf(a); }
PW_FUNCTION double pw_rsqrt(double a) { return 1.0 / sqrt(a); }

// exp, log and tanh in single precision are these polynomials everywhere (the coefficients are those of Moshier's Cephes
// library), so that they give the same bits on every machine and suit vector units; within 2 units in the last place.
PW_FUNCTION float pw_fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
/// Bounds are kept to by comparing bits, which gives compilers no branches to think about.
PW_FUNCTION float pw_exp(float a) {
  const unsigned u = pw_bits(a), least = u < 0xc2d00000u ? u : 0xc2d00000u;               // -104
  const unsigned bounded = (int)least < 0x42b20000 ? least : 0x42b20000u;                 // 89
  const float x = pw_float(bounded), shifted = pw_fma(x, 1.44269504f, 12583038.0f);       // n + 126 in the low bits
  const float n = shifted - 12583038.0f;
  const float r = pw_fma(n, 2.12194440e-4f, pw_fma(n, -0.693359375f, x));
  float y = pw_fma(1.9875691500e-4f, r, 1.3981999507e-3f);
  y = pw_fma(y, r, 8.3334519073e-3f);
  y = pw_fma(y, r, 4.1665795894e-2f);
  y = pw_fma(y, r, 1.6666665459e-1f);
  y = pw_fma(y, r, 5.0000001201e-1f);
  y = pw_fma(y, r * r, r);
  // 2 e^r times 2^(n - 1), so that n may be 128; times 2^-126 and the rest where 2^(n - 1) is no normal number.
  const int i = (int)pw_bits(shifted), k = i > 0x4b400001 ? i : 0x4b400001;
  y = pw_fma(y, 2.0f, 2.0f) * pw_float((unsigned)k << 23) * pw_float(((unsigned)(i - k) << 23) + 0x3f800000u);
  return a != a ? a : y;
}
PW_FUNCTION double pw_exp(double a) { return exp(a); }
PW_FUNCTION float pw_log(float a) {
  const bool small = a < 1.17549435e-38f;
  const unsigned u = pw_bits(small ? a * 8388608.0f : a);
  // a = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const unsigned v = u + (0x3f800000u - 0x3f3504f3u);
  const float e = (float)((int)(v >> 23) - 127 - (small ? 23 : 0));
  const float x = pw_float((v & 0x007fffffu) + 0x3f3504f3u) - 1.0f, z = x * x;
  float y = pw_fma(7.0376836292e-2f, x, -1.1514610310e-1f);
  y = pw_fma(y, x, 1.1676998740e-1f);
  y = pw_fma(y, x, -1.2420140846e-1f);
  y = pw_fma(y, x, 1.4249322787e-1f);
  y = pw_fma(y, x, -1.6668057665e-1f);
  y = pw_fma(y, x, 2.0000714765e-1f);
  y = pw_fma(y, x, -2.4999993993e-1f);
  y = pw_fma(y, x, 3.3333331174e-1f);
  y = pw_fma(y * x, z, pw_fma(e, -2.12194440e-4f, -0.5f * z));
  y = pw_fma(e, 0.693359375f, x + y);
  if (a == 0.0f) y = pw_float(0xff800000u);
  if (a < 0.0f) y = pw_float(0x7fc00000u);
  return a != a || a == pw_float(0x7f800000u) ? a : y;
}
PW_FUNCTION double pw_log(double a) { return log(a); }
PW_FUNCTION float pw_tanh(float a) {
  const float x = pw_abs(a), z = a * a;
  float y = pw_fma(-5.70498872745e-3f, z, 2.06390887954e-2f);
  y = pw_fma(y, z, -5.37397155531e-2f);
  y = pw_fma(y, z, 1.33314422036e-1f);
  y = pw_fma(y, z, -3.33332819422e-1f);
  y = pw_fma(y * z, x, x);
  const float far = 1.0f - 2.0f / (pw_exp(2.0f * x) + 1.0f);
  return pw_float(pw_bits(x < 0.625f ? y : far) | (pw_bits(a) & 0x80000000u));
}
PW_FUNCTION double pw_tanh(double a) { return tanh(a); }
PW_FUNCTION float pw_sin(float a) { return sinf(a); }
PW_FUNCTION double pw_sin(double a) { return sin(a); }
PW_FUNCTION float pw_cos(float a) { return cosf(a); }
PW_FUNCTION double pw_cos(double a) { return cos(a); }
PW_FUNCTION float pw_pow(float a, float b) { return b == 2.0f ? a * a : powf(a, b); }
PW_FUNCTION double pw_pow(double a, double b) { return b == 2.0 ? a * a : pow(a, b); }
PW_FUNCTION long long pw_pow(long long a, long long b) { return pw_saturate<long long>(pow((double)a, (double)b)); }

// A NaN on the left stays; on the right it is met as the larger operand is looked for, and stays too.
template <class T>
PW_FUNCTION T pw_maximum(T a, T b) { return a != a || a > b ? a : b; }
template <class T>
PW_FUNCTION T pw_minimum(T a, T b) { return a != a || a < b ? a : b; }

// ---- reductions. The order depends on the width only: chunks of 8 columns go round `lanes` lanes, a lane adds in ascending
// order, then lanes are added pairwise, the farthest first.

template <class T> struct pw_first;
template <> struct pw_first<float> {
  PW_FUNCTION float lowest() { return pw_float(0xff800000u); }
  PW_FUNCTION float highest() { return pw_float(0x7f800000u); }
};
template <> struct pw_first<double> {
  PW_FUNCTION double lowest() { return (double)pw_float(0xff800000u); }
  PW_FUNCTION double highest() { return (double)pw_float(0x7f800000u); }
};
template <> struct pw_first<long long> {
  PW_FUNCTION long long lowest() { return pw_range<long long>::low; }
  PW_FUNCTION long long highest() { return pw_range<long long>::high; }
};
template <class T> struct pw_sum {
  PW_FUNCTION T start() { return 0; }
  PW_FUNCTION T of(T a, T b) { return pw_add(a, b); }
};
template <class T> struct pw_amax {
  PW_FUNCTION T start() { return pw_first<T>::lowest(); }
  PW_FUNCTION T of(T a, T b) { return pw_maximum(a, b); }
};
template <class T> struct pw_amin {
  PW_FUNCTION T start() { return pw_first<T>::highest(); }
  PW_FUNCTION T of(T a, T b) { return pw_minimum(a, b); }
};

PW_FUNCTION long long pw_lanes(long long width) {
  long long lanes = 1;
  while (lanes < 256 && lanes * 8 < width) lanes *= 2;
  return lanes;
}

// ---- a whole reduction in one thread, which plays all lanes, in bit-reversed order, in which the pairs are neighbours, so that
// eight partial results are enough.

/// The lane that comes at `place` in bit-reversed order.
PW_FUNCTION long long pw_lane(long long place, long long lanes) {
  long long lane = 0;
  for (long long bit = 1; bit < lanes; bit *= 2) lane = lane * 2 + (place & bit ? 1 : 0);
  return lane;
}

template <class T, class F>
struct pw_tree {
  T s0, s1, s2, s3, s4, s5, s6, s7, total;
  __device__ __forceinline__ void push(long long place, T v) {
    total = v;
    if (!(place & 1)) { s0 = v; return; }
    total = v = F::of(s0, v);
    if (!(place & 2)) { s1 = v; return; }
    total = v = F::of(s1, v);
    if (!(place & 4)) { s2 = v; return; }
    total = v = F::of(s2, v);
    if (!(place & 8)) { s3 = v; return; }
    total = v = F::of(s3, v);
    if (!(place & 16)) { s4 = v; return; }
    total = v = F::of(s4, v);
    if (!(place & 32)) { s5 = v; return; }
    total = v = F::of(s5, v);
    if (!(place & 64)) { s6 = v; return; }
    total = v = F::of(s6, v);
    if (!(place & 128)) { s7 = v; return; }
    total = F::of(s7, v);
  }
};
