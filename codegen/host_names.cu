// CUDA's built-in names that generated code uses, for a C++ compiler without any headers: bits of
// numbers, and the C library's functions.
template <class To, class From>
static inline To pw_same_bits(From x) {
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
static inline unsigned __float_as_uint(float x) { return pw_same_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return pw_same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return pw_same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return pw_same_bits<double>(x); }
extern "C" {
float sqrtf(float), expf(float), logf(float), tanhf(float), sinf(float), cosf(float), floorf(float),
    ceilf(float), truncf(float), rintf(float), roundf(float), fabsf(float), exp2f(float),
    expm1f(float), log2f(float), log10f(float), log1pf(float), cbrtf(float), tanf(float),
    asinf(float), acosf(float), atanf(float), sinhf(float), coshf(float), asinhf(float),
    acoshf(float), atanhf(float), erff(float), erfcf(float), powf(float, float),
    fmodf(float, float), remainderf(float, float), atan2f(float, float), hypotf(float, float),
    copysignf(float, float), fminf(float, float), fmaxf(float, float);
double sqrt(double), exp(double), log(double), tanh(double), sin(double), cos(double),
    floor(double), ceil(double), trunc(double), rint(double), round(double), fabs(double),
    exp2(double), expm1(double), log2(double), log10(double), log1p(double), cbrt(double),
    tan(double), asin(double), acos(double), atan(double), sinh(double), cosh(double),
    asinh(double), acosh(double), atanh(double), erf(double), erfc(double), pow(double, double),
    fmod(double, double), remainder(double, double), atan2(double, double), hypot(double, double),
    copysign(double, double), fmin(double, double), fmax(double, double);
}
