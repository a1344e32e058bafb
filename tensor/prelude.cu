// The language of generated kernels: conversions, scalar operations, and the order of reductions.
// No headers are needed. NVRTC compiles this text, and a C++ compiler does after CUDA's names are
// defined.
#define PW_FUNCTION static __device__ __forceinline__

// Blocks for which a multiprocessor has enough threads (the table of compute capabilities in
// NVIDIA's CUDA programming guide). __launch_bounds__ requests them, so that registers do not limit
// residency further. PW_QUARTERS gives a fraction of them if a kernel would spill otherwise; 0: one
// block.
#ifndef PW_QUARTERS
#define PW_QUARTERS 4
#endif
#if defined(__CUDA_ARCH__) && \
    ((__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100)
#define PW_THREADS 1536
#else
#define PW_THREADS 2048
#endif
#define PW_FULL(threads)                                           \
  (PW_THREADS * PW_QUARTERS / 4 < (threads) ? 1                    \
   : (threads) < 64                         ? 32 * PW_QUARTERS / 4 \
                                            : PW_THREADS * PW_QUARTERS / 4 / (threads))

PW_FUNCTION unsigned pw_bits(float x) { return __float_as_uint(x); }
PW_FUNCTION float pw_float(unsigned bits) { return __uint_as_float(bits); }

// ---- narrow floating types, in software. Rounding is to nearest even; fp8 saturates; NaN stays
// NaN, and infinity stays infinity if the type has one.

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

// M mantissa bits, exponent bias B; `bits` without the sign. The product renormalises subnormals
// exactly.
template <int M, int B>
PW_FUNCTION float pw_widen(unsigned bits, unsigned sign) {
  const float x = pw_float(bits << (23 - M)) * pw_float((unsigned)(254 - B) << 23);
  return pw_float(pw_bits(x) | sign << 31);
}
// Narrows a magnitude; values from `most` on become that of `most`. Below the smallest normal
// number, adding a number whose unit is the subnormal unit performs the rounding. Free of branches,
// for vector units.
template <int M, int B>
PW_FUNCTION unsigned pw_narrow(unsigned u, unsigned most) {
  const unsigned c = u < most ? u : most;
  const unsigned small =
      pw_bits(pw_float(u) + pw_float((unsigned)(151 - B - M) << 23)) & ((1u << (M + 1)) - 1u);
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
  return (unsigned char)((unsigned char)(x != x ? 0x7fu
                                                : pw_narrow<3, 7>(pw_bits(x) & 0x7fffffffu,
                                                                  0x43e00000u)) |
                         sign);
}
PW_FUNCTION float pw_from_f8e5m2(unsigned char bits) {
  return pw_from_f16((unsigned short)(bits << 8));
}
PW_FUNCTION unsigned char pw_to_f8e5m2(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short y;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return (unsigned char)(y + ((pw_bits(x) & 0x7fffffffu) == 0x7f800000u
                                  ? 1
                                  : 0));  // infinity comes after the largest number
#endif
  const unsigned u = pw_bits(x) & 0x7fffffffu;
  const unsigned char sign = (unsigned char)(pw_bits(x) >> 24 & 0x80u);
  return (unsigned char)((unsigned char)(x != x ? 0x7fu
                                                : pw_narrow<2, 15>(u, 0x47600000u) +
                                                      (u == 0x7f800000u ? 1u : 0u)) |
                         sign);
}

PW_FUNCTION float pw_round_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned y;  // as the upper half of two: the number itself
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(x), "f"(0.0f));
  return pw_float(y);
#elif defined(__CUDA_ARCH__)
  return pw_from_bf16(pw_to_bf16(x));
#else  // without narrowing, for vector units
  const unsigned u = pw_bits(x);
  return pw_float((x != x ? u | 0x00400000u : u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u);
#endif
}
PW_FUNCTION float pw_round_f16(float x) { return pw_from_f16(pw_to_f16(x)); }
PW_FUNCTION float pw_round_f8e4m3(float x) { return pw_from_f8e4m3(pw_to_f8e4m3(x)); }
PW_FUNCTION float pw_round_f8e5m2(float x) { return pw_from_f8e5m2(pw_to_f8e5m2(x)); }

// Rounds f64 for a narrow type: sets the last bit if inexact, so that only the second rounding
// counts.
PW_FUNCTION float pw_odd(double x) {
  const float f = (float)x;
  if ((double)f == x || x != x) return f;
  unsigned bits = pw_bits(f);
  const double back = (double)f;
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) --bits;
  return pw_float(bits | 1u);
}

// ---- integers: from reals toward zero, saturating, NaN to zero; arithmetic wraps around.

template <class T>
struct pw_range;
template <>
struct pw_range<signed char> {
  enum : long long { low = -128, high = 127 };
};
template <>
struct pw_range<unsigned char> {
  enum : long long { low = 0, high = 255 };
};
template <>
struct pw_range<int> {
  enum : long long { low = -2147483647ll - 1, high = 2147483647ll };
};
template <>
struct pw_range<long long> {
  enum : long long { low = -9223372036854775807ll - 1, high = 9223372036854775807ll };
};
template <class T, class R>
PW_FUNCTION T pw_saturate(R x) {
  if (x != x) return (T)0;
  if (x >= (R)(long long)pw_range<T>::high) return (T)pw_range<T>::high;
  if (x <= (R)(long long)pw_range<T>::low) return (T)pw_range<T>::low;
  if (x > (R)-1 && x < (R)1)
    return (T)0;  // else a compiler takes (float)(T)x for trunc(x), which has a -0
  return (T)x;
}

PW_FUNCTION long long pw_add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
PW_FUNCTION long long pw_sub(long long a, long long b) {
  return (long long)((unsigned long long)a - (unsigned long long)b);
}
PW_FUNCTION long long pw_mul(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
PW_FUNCTION long long pw_div(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? pw_sub(0, a) : a / b;
}
PW_FUNCTION float pw_add(float a, float b) { return a + b; }
PW_FUNCTION float pw_sub(float a, float b) { return a - b; }
PW_FUNCTION float pw_mul(float a, float b) { return a * b; }
PW_FUNCTION float pw_div(float a, float b) { return a / b; }
PW_FUNCTION double pw_add(double a, double b) { return a + b; }
PW_FUNCTION double pw_sub(double a, double b) { return a - b; }
PW_FUNCTION double pw_mul(double a, double b) { return a * b; }
PW_FUNCTION double pw_div(double a, double b) { return a / b; }

/// Brings an index read from memory into [0, extent).
PW_FUNCTION long long pw_clamp(long long i, long long extent) {
  return i < 0 ? 0 : i < extent ? i : extent - 1;
}

// ---- one operand. rsqrt is a division by a square root, both correctly rounded.

PW_FUNCTION float pw_neg(float a) { return -a; }
PW_FUNCTION double pw_neg(double a) { return -a; }
PW_FUNCTION long long pw_neg(long long a) { return pw_sub(0, a); }
PW_FUNCTION float pw_abs(float a) { return pw_float(pw_bits(a) & 0x7fffffffu); }
PW_FUNCTION double pw_abs(double a) { return fabs(a); }
PW_FUNCTION long long pw_abs(long long a) { return a < 0 ? pw_sub(0, a) : a; }
#define PW_ROUNDING(name, function)                               \
  PW_FUNCTION float pw_##name(float a) { return function##f(a); } \
  PW_FUNCTION double pw_##name(double a) { return function(a); }  \
  PW_FUNCTION long long pw_##name(long long a) { return a; }
PW_ROUNDING(floor, floor)
PW_ROUNDING(ceil, ceil)
PW_ROUNDING(trunc, trunc)
PW_ROUNDING(round, rint)
#undef PW_ROUNDING
PW_FUNCTION float pw_sqrt(float a) { return sqrtf(a); }
PW_FUNCTION double pw_sqrt(double a) { return sqrt(a); }
PW_FUNCTION float pw_rsqrt(float a) { return 1.0f / sqrtf(a); }
PW_FUNCTION double pw_rsqrt(double a) { return 1.0 / sqrt(a); }

// exp, log, tanh, sin, cos and pow in single precision are these polynomials everywhere (the
// coefficients of all but pow are those of Moshier's Cephes library), so that they give the same
// bits on every machine and suit vector units; within 2 units in the last place. Only CUDA without
// --strict takes its own exp, sin, cos and pow.
PW_FUNCTION float pw_fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
PW_FUNCTION double pw_fma(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}
/// Bounds are applied by comparing bits, so that compilers see no branches.
#if defined(__CUDA_ARCH__) && !defined(PW_STRICT)
PW_FUNCTION float pw_exp(float a) { return expf(a); }
#else
PW_FUNCTION float pw_exp(float a) {
  const unsigned u = pw_bits(a), least = u < 0xc2d00000u ? u : 0xc2d00000u;  // -104
  const unsigned bounded = (int)least < 0x42b20000 ? least : 0x42b20000u;    // 89
  const float x = pw_float(bounded),
              shifted = pw_fma(x, 1.44269504f, 12583038.0f);  // n + 126 in the low bits
  const float n = shifted - 12583038.0f;
  const float r = pw_fma(n, 2.12194440e-4f, pw_fma(n, -0.693359375f, x));
  float y = pw_fma(1.9875691500e-4f, r, 1.3981999507e-3f);
  y = pw_fma(y, r, 8.3334519073e-3f);
  y = pw_fma(y, r, 4.1665795894e-2f);
  y = pw_fma(y, r, 1.6666665459e-1f);
  y = pw_fma(y, r, 5.0000001201e-1f);
  y = pw_fma(y, r * r, r);
  // 2 e^r times 2^(n - 1), so that n may be 128; times 2^-126 and the rest if 2^(n - 1) is not a
  // normal number.
  const int i = (int)pw_bits(shifted), k = i > 0x4b400001 ? i : 0x4b400001;
  y = pw_fma(y, 2.0f, 2.0f) * pw_float((unsigned)k << 23) *
      pw_float(((unsigned)(i - k) << 23) + 0x3f800000u);
  return a != a ? a : y;
}
#endif
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

// 2^(16 j) * 2/pi modulo 4, as a sum of two. A float of any exponent is an integer or less than
// 2^40 times one of the powers, so that its quarter turns are found without loss.
static __device__ const double pw_turns[7] = {
    0x1.45f306dc9c883p-1, 0x1.836e4e44152a0p+0, 0x1.27220a94fe13bp+1, 0x1.529fc2757d1f5p-4,
    0x1.fc2757d1f534ep+0, 0x1.abe8fa9a6ee07p+1, 0x1.f534ddc0db629p+0};
static __device__ const double pw_turns_rest[7] = {
    -0x1.6b01ec5417056p-55, -0x1.ec54170565912p-55, -0x1.05c1596447e49p-53, 0x1.a6ee06db14acdp-59,
    -0x1.1f924eb53361ep-55, -0x1.275a99b0ef1bfp-54, 0x1.664f10e4107f9p-54};
/// Returns the sine of |a| plus `quarters` quarter turns, with its sign changed by `sign`.
PW_FUNCTION float pw_sine(float a, unsigned quarters, unsigned sign) {
  const unsigned u = pw_bits(a) & 0x7fffffffu, e = u >> 23,
                 power = ((e > 150u ? e : 150u) - 150u) >> 4;
  const long long j = (int)power;  // as wide as what it picks, for vector units
  const double m = (double)(pw_float(u) * pw_float((127u - 16u * power) << 23));
  const double shifted =
      pw_fma(m, pw_turns[j], 6755399441055744.0);  // the nearest integer is in the low bits
  const double whole = shifted - 6755399441055744.0;
  const unsigned n = (unsigned)__double_as_longlong(shifted) + quarters;
  const float r =
      (float)(pw_fma(m, pw_turns_rest[j], pw_fma(m, pw_turns[j], -whole)) * 1.5707963267948966);
  const float z = r * r;
  float s = pw_fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = pw_fma(pw_fma(s, z, -1.6666654611e-1f), z * r, r);
  float c = pw_fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = pw_fma(pw_fma(c, z, 4.166664568298827e-2f), z * z, pw_fma(-0.5f, z, 1.0f));
  return pw_float(pw_bits(n & 1u ? c : s) ^ sign ^ (n & 2u) << 30);
}
#if defined(__CUDA_ARCH__) && !defined(PW_STRICT)
PW_FUNCTION float pw_sin(float a) { return sinf(a); }
PW_FUNCTION float pw_cos(float a) { return cosf(a); }
#else
PW_FUNCTION float pw_sin(float a) { return pw_sine(a, 0, pw_bits(a) & 0x80000000u); }
PW_FUNCTION float pw_cos(float a) { return pw_sine(a, 1, 0); }
#endif
PW_FUNCTION double pw_sin(double a) { return sin(a); }
PW_FUNCTION double pw_cos(double a) { return cos(a); }

/// Returns the logarithm to base 2 of a normal number above 0, within 2^-37: of m in [sqrt(1/2),
/// sqrt(2)), by the series of the inverse hyperbolic tangent.
PW_FUNCTION double pw_wide_log2(double a) {
  const unsigned long long u = (unsigned long long)__double_as_longlong(a);
  const unsigned long long v = u + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  const double m =
      __longlong_as_double((long long)((v & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull));
  const double e = (double)((int)(v >> 52) - 1023), t = (m - 1.0) / (m + 1.0), z = t * t;
  double y = pw_fma(0.22195308321368669, z, 0.26230818925253882);
  y = pw_fma(y, z, 0.32059889797532526);
  y = pw_fma(y, z, 0.41219858311113247);
  y = pw_fma(y, z, 0.57707801635558536);
  y = pw_fma(y, z, 0.96179669392597567);
  return pw_fma(pw_fma(y, z, 2.8853900817779268), t, e);
}
/// Returns e^r - 1 for |r| up to ln 2 / 2, by its series.
PW_FUNCTION double pw_expm1_near_0(double r) {
  double y = pw_fma(2.7557319223985893e-6, r, 2.4801587301587302e-5);
  y = pw_fma(y, r, 1.9841269841269841e-4);
  y = pw_fma(y, r, 1.3888888888888889e-3);
  y = pw_fma(y, r, 8.3333333333333333e-3);
  y = pw_fma(y, r, 4.1666666666666667e-2);
  y = pw_fma(y, r, 1.6666666666666667e-1);
  y = pw_fma(y, r, 0.5);
  return pw_fma(y, r * r, r);
}
/// Returns 2^k for `shifted`, which is k + 1.5 · 2^52.
PW_FUNCTION double pw_power_of_2(double shifted) {
  return __longlong_as_double(
      (long long)(((unsigned long long)__double_as_longlong(shifted) + 1023u) << 52));
}
/// Returns 2^a within 2^-37, by the series of e^x; numbers above 200 count as 200.
PW_FUNCTION double pw_wide_exp2(double a) {
  const unsigned long long u = (unsigned long long)__double_as_longlong(a);
  const long long least = (long long)(u < 0xc069000000000000ull ? u : 0xc069000000000000ull);
  const double p =
      __longlong_as_double(least < 0x4069000000000000ll ? least : 0x4069000000000000ll);
  const double shifted = p + 6755399441055744.0,
               r = (p - (shifted - 6755399441055744.0)) * 0.69314718055994531;
  return (pw_expm1_near_0(r) + 1.0) * pw_power_of_2(shifted);
}
#if defined(__CUDA_ARCH__) && !defined(PW_STRICT)
PW_FUNCTION float pw_pow(float a, float b) { return b == 2.0f ? a * a : powf(a, b); }
#else
/// Handles the cases of C's pow; conditions are combined without branches, for vector units.
PW_FUNCTION float pw_pow(float a, float b) {
  const float x = pw_abs(a), size = pw_abs(b), infinity = pw_float(0x7f800000u);
  const float y = (float)pw_wide_exp2((double)b * pw_wide_log2(x));
  const float end = (x == infinity) == (b > 0.0f) ? infinity : 0.0f;
  const unsigned u = pw_bits(size),
                 least = u < 0x4b800000u ? u : 0x4b800000u;  // from 2^24 on all are even
  const int integer = (int)pw_float(least);
  const bool broken = (float)integer != pw_float(least);
  const unsigned odd = broken ? 0u : (unsigned)integer << 31;
  const float z = pw_float(pw_bits((x == 0.0f) | (x == infinity) ? end : y) ^ (pw_bits(a) & odd));
  const bool none = ((a < 0.0f) & (x < infinity) & broken) | (a != a) | (b != b);
  const bool one = (a == 1.0f) | (b == 0.0f) | ((x == 1.0f) & (size == infinity));
  const float w = one ? 1.0f : none ? pw_float(0x7fc00000u) : z;
  return b == 2.0f ? a * a : w;
}
#endif
PW_FUNCTION double pw_pow(double a, double b) { return b == 2.0 ? a * a : pow(a, b); }
/// Wraps around like products; to a negative power, 1 and -1 keep their magnitude, and all else
/// gives 0.
PW_FUNCTION long long pw_pow(long long a, long long b) {
  if (b < 0) return a == 1 ? 1 : a != -1 ? 0 : b % 2 == 0 ? 1 : -1;
  unsigned long long power = (unsigned long long)a, out = 1;
  for (unsigned long long left = (unsigned long long)b; left != 0; left >>= 1) {
    if (left & 1) out *= power;
    power *= power;
  }
  return (long long)out;
}

// Functions that models rarely call. In single precision they are series in double precision,
// within 2^-32, rounded once, and free of branches, for vector units; or those of double precision.
#define PW_OF_DOUBLE(name) \
  PW_FUNCTION double pw_##name(double a) { return name(a); }
#define PW_SELDOM(name)                                                   \
  PW_FUNCTION float pw_##name(float a) { return (float)name((double)a); } \
  PW_OF_DOUBLE(name)
PW_SELDOM(asin)
PW_SELDOM(acos)
PW_SELDOM(sinh)
PW_SELDOM(cosh)
PW_SELDOM(asinh)
PW_SELDOM(acosh)
PW_OF_DOUBLE(tan)
PW_OF_DOUBLE(atan)
PW_OF_DOUBLE(atanh)
PW_OF_DOUBLE(expm1)
PW_OF_DOUBLE(log1p)
PW_OF_DOUBLE(log2)
PW_OF_DOUBLE(log10)
#undef PW_SELDOM
#undef PW_OF_DOUBLE
/// Returns y, the logarithm of a number that is 0 or less than it as a is, or its limits.
PW_FUNCTION float pw_logarithm(float a, float zero, double y) {
  const float at_end = a == zero ? pw_float(0xff800000u) : pw_float(0x7fc00000u);
  const float z = a > zero ? (float)y : at_end;
  return (a != a) | (a == pw_float(0x7f800000u)) ? a : z;
}
PW_FUNCTION float pw_log2(float a) { return pw_logarithm(a, 0.0f, pw_wide_log2((double)a)); }
PW_FUNCTION float pw_log10(float a) {
  return pw_logarithm(a, 0.0f, pw_wide_log2((double)a) * 0.30102999566398120);
}
PW_FUNCTION float pw_log1p(float a) {
  const double x = (double)a, y = pw_wide_log2(1.0 + x) * 0.69314718055994531,
               near = x * pw_fma(-x, pw_fma(x, -0.33333333333333333, 0.5), 1.0);
  return pw_logarithm(a, -1.0f, pw_abs(a) < 2.44140625e-4f ? near : y);
}
PW_FUNCTION float pw_atanh(float a) {
  const float size = pw_abs(a);
  const double x = (double)size, z = x * x,
               y = pw_wide_log2((1.0 + x) / (1.0 - x)) * 0.34657359027997265,
               near = x * pw_fma(z, pw_fma(z, 0.2, 0.33333333333333333), 1.0);
  const float inside = (float)(size < 2.44140625e-4f ? near : y);
  const float at_end = size == 1.0f ? pw_float(0x7f800000u) : pw_float(0x7fc00000u);
  return pw_float(pw_bits(size < 1.0f ? inside : at_end) | (pw_bits(a) & 0x80000000u));
}
PW_FUNCTION float pw_expm1(float a) {
  const unsigned u = pw_bits(a), least = u < 0xc2d00000u ? u : 0xc2d00000u;  // -104
  const double x =
      (double)pw_float((int)least < 0x42b20000 ? least : 0x42b20000u) * 1.4426950408889634;  // 89
  const double shifted = x + 6755399441055744.0,
               r = (x - (shifted - 6755399441055744.0)) * 0.69314718055994531;
  const double y = pw_expm1_near_0(r), power = pw_power_of_2(shifted);
  return (a != a) | (a == 0.0f) ? a : (float)pw_fma(y, power, power - 1.0);
}
/// Returns the angle of a point in the first octants, opposite and adjacent: the quotient is
/// brought below tan(pi / 8) by subtracting an eighth or a quarter of a turn, and its arc by a
/// series.
PW_FUNCTION double pw_angle(double opposite, double adjacent) {
  const bool far = opposite > adjacent * 2.4142135623730950,
             middle = opposite > adjacent * 0.41421356237309505;
  const double turn = far      ? 1.5707963267948966
                      : middle ? 0.78539816339744831
                               : 0.0,
               above = far      ? -adjacent
                       : middle ? opposite - adjacent
                                : opposite,
               below = far      ? opposite
                       : middle ? opposite + adjacent
                                : adjacent;
  const double t = above / below, z = t * t;
  double y = pw_fma(z, 0.04, -0.043478260869565217);
  y = pw_fma(y, z, 0.047619047619047619);
  y = pw_fma(y, z, -0.052631578947368421);
  y = pw_fma(y, z, 0.058823529411764706);
  y = pw_fma(y, z, -0.066666666666666667);
  y = pw_fma(y, z, 0.076923076923076923);
  y = pw_fma(y, z, -0.090909090909090909);
  y = pw_fma(y, z, 0.11111111111111111);
  y = pw_fma(y, z, -0.14285714285714286);
  y = pw_fma(y, z, 0.2);
  y = pw_fma(y, z, -0.33333333333333333);
  return turn + pw_fma(y * z, t, t);
}
PW_FUNCTION float pw_atan(float a) {
  const double y = pw_angle((double)pw_abs(a), 1.0);
  return pw_float(pw_bits((float)y) | (pw_bits(a) & 0x80000000u));
}
PW_FUNCTION float pw_tan(float a) {
  const unsigned u = pw_bits(a) & 0x7fffffffu, e = u >> 23,
                 power = ((e > 150u ? e : 150u) - 150u) >> 4;
  const long long j = (int)power;
  const double m = (double)(pw_float(u) * pw_float((127u - 16u * power) << 23));
  const double shifted = pw_fma(m, pw_turns[j], 6755399441055744.0),
               whole = shifted - 6755399441055744.0;
  const double r = pw_fma(m, pw_turns_rest[j], pw_fma(m, pw_turns[j], -whole)) * 1.5707963267948966,
               z = r * r;
  double s = pw_fma(z, -2.5052108385441719e-8, 2.7557319223985893e-6);
  s = pw_fma(s, z, -1.9841269841269841e-4);
  s = pw_fma(s, z, 8.3333333333333333e-3);
  s = pw_fma(s, z, -1.6666666666666667e-1);
  s = pw_fma(s * z, r, r);
  double c = pw_fma(z, 2.0876756987868099e-9, -2.7557319223985891e-7);
  c = pw_fma(c, z, 2.4801587301587302e-5);
  c = pw_fma(c, z, -1.3888888888888889e-3);
  c = pw_fma(c, z, 4.1666666666666667e-2);
  c = pw_fma(c, z, -0.5);
  c = pw_fma(c, z, 1.0);
  const bool odd = ((unsigned)__double_as_longlong(shifted) & 1u) != 0;
  const float y = (float)((odd ? -c : s) / (odd ? s : c));
  return pw_float(pw_bits(y) ^ (pw_bits(a) & 0x80000000u));
}
PW_FUNCTION float pw_atan2(float a, float b) {
  const unsigned p = pw_bits(a) & 0x7fffffffu, q = pw_bits(b) & 0x7fffffffu;
  // Two zeros are as a point on the axis, and two infinities as one on the diagonal.
  const bool zeros = (p | q) == 0u, infinite = (p & q) == 0x7f800000u;
  const float opposite = infinite ? 1.0f : pw_float(p),
              adjacent = zeros | infinite ? 1.0f : pw_float(q);
  const double angle = pw_angle((double)opposite, (double)adjacent),
               turned = (int)pw_bits(b) < 0 ? 3.1415926535897932 - angle : angle;
  const float y = pw_float(pw_bits((float)turned) | (pw_bits(a) & 0x80000000u));
  return (a != a) | (b != b) ? a + b : y;
}
PW_FUNCTION double pw_atan2(double a, double b) { return atan2(a, b); }
PW_FUNCTION long long pw_atan2(long long a, long long b) {
  return (long long)atan2((double)a, (double)b);
}

// Remainders of truncating division, which are exact; and of floor division. In single precision
// multiples of b are subtracted in double precision, without branches, for vector units: 28 bits of
// the quotient at a time, so that its product with b is exact.
#if defined(__CUDA_ARCH__)
PW_FUNCTION float pw_fmod(float a, float b) { return fmodf(a, b); }
#else
PW_FUNCTION double pw_less_multiples(double rest, double of, double reciprocal, double power) {
  const double shifted = pw_fma(rest, reciprocal / power, 6755399441055744.0);
  return pw_fma(6755399441055744.0 - shifted, of * power, rest);
}
PW_FUNCTION float pw_fmod(float a, float b) {
  const double x = (double)pw_abs(a), y = (double)pw_abs(b), reciprocal = 1.0 / y;
  double rest = pw_less_multiples(x, y, reciprocal, 0x1p252);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p224);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p196);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p168);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p140);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p112);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p84);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p56);
  rest = pw_less_multiples(rest, y, reciprocal, 0x1p28);
  rest = pw_less_multiples(rest, y, reciprocal, 1.0);
  rest = rest < 0.0 ? rest + y : rest;
  const float inside = pw_float(pw_bits((float)rest) | (pw_bits(a) & 0x80000000u));
  const bool whole = (pw_bits(b) & 0x7fffffffu) == 0x7f800000u;  // all of a is below infinity
  return whole & (x < (double)pw_float(0x7f800000u)) ? a : inside;
}
#endif
PW_FUNCTION double pw_fmod(double a, double b) { return fmod(a, b); }
PW_FUNCTION long long pw_fmod(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T>
PW_FUNCTION T pw_remainder(T a, T b) {
  const T rest = pw_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Shifts below 0 or above 63 lose all bits: the result is zero, or the sign.
PW_FUNCTION long long pw_shift_left(long long a, long long b) {
  return b < 0 || b > 63 ? 0 : (long long)((unsigned long long)a << b);
}
PW_FUNCTION long long pw_shift_right(long long a, long long b) {
  return a >> (b < 0 || b > 63 ? 63 : b);
}

// A NaN on the left stays; one on the right is treated as the larger operand, and stays too.
template <class T>
PW_FUNCTION T pw_maximum(T a, T b) {
  const T most = a > b ? a : b;  // GCC 12 does not vectorise two conditions at once
  return a != a ? a : most;
}
template <class T>
PW_FUNCTION T pw_minimum(T a, T b) {
  const T least = a < b ? a : b;
  return a != a ? a : least;
}

// ---- reductions. The order depends only on the width: chunks of 8 columns are assigned to `lanes`
// lanes in turn, a lane adds in ascending order, then lanes are added pairwise, the farthest first.

template <class T>
struct pw_first;
template <>
struct pw_first<float> {
  PW_FUNCTION float lowest() { return pw_float(0xff800000u); }
  PW_FUNCTION float highest() { return pw_float(0x7f800000u); }
};
template <>
struct pw_first<double> {
  PW_FUNCTION double lowest() { return (double)pw_float(0xff800000u); }
  PW_FUNCTION double highest() { return (double)pw_float(0x7f800000u); }
};
template <>
struct pw_first<long long> {
  PW_FUNCTION long long lowest() { return pw_range<long long>::low; }
  PW_FUNCTION long long highest() { return pw_range<long long>::high; }
};
template <class T>
struct pw_sum {
  PW_FUNCTION T start() { return 0; }
  PW_FUNCTION T of(T a, T b) { return pw_add(a, b); }
};
template <class T>
struct pw_amax {
  PW_FUNCTION T start() { return pw_first<T>::lowest(); }
  PW_FUNCTION T of(T a, T b) { return pw_maximum(a, b); }
};
template <class T>
struct pw_amin {
  PW_FUNCTION T start() { return pw_first<T>::highest(); }
  PW_FUNCTION T of(T a, T b) { return pw_minimum(a, b); }
};

PW_FUNCTION long long pw_lanes(long long width) {
  long long lanes = 1;
  while (lanes < 256 && lanes * 8 < width) lanes *= 2;
  return lanes;
}

// ---- a whole reduction in one thread, which processes all lanes in bit-reversed order. In that
// order pairs are adjacent, so eight partial results suffice.

/// Returns the lane at `place` in bit-reversed order.
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
    if (!(place & 1)) {
      s0 = v;
      return;
    }
    total = v = F::of(s0, v);
    if (!(place & 2)) {
      s1 = v;
      return;
    }
    total = v = F::of(s1, v);
    if (!(place & 4)) {
      s2 = v;
      return;
    }
    total = v = F::of(s2, v);
    if (!(place & 8)) {
      s3 = v;
      return;
    }
    total = v = F::of(s3, v);
    if (!(place & 16)) {
      s4 = v;
      return;
    }
    total = v = F::of(s4, v);
    if (!(place & 32)) {
      s5 = v;
      return;
    }
    total = v = F::of(s5, v);
    if (!(place & 64)) {
      s6 = v;
      return;
    }
    total = v = F::of(s6, v);
    if (!(place & 128)) {
      s7 = v;
      return;
    }
    total = F::of(s7, v);
  }
};
