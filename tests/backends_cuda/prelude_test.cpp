#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "cuda/device/host_run.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

constexpr const char* kExtra = R"cpp(
  extern "C" void test_narrow(const float* x, long long n, unsigned* bf16, unsigned* f16,
                              unsigned* e4m3, unsigned* e5m2) {
    for (long long i = 0; i < n; ++i) {
      bf16[i] = pw_to_bf16(x[i]);
      f16[i] = pw_to_f16(x[i]);
      e4m3[i] = pw_to_f8e4m3(x[i]);
      e5m2[i] = pw_to_f8e5m2(x[i]);
    }
  }
  extern "C" void test_widen(unsigned bits, float* y) {
    y[0] = pw_from_bf16((unsigned short)bits);
    y[1] = pw_from_f16((unsigned short)bits);
    y[2] = pw_from_f8e4m3((unsigned char)bits);
    y[3] = pw_from_f8e5m2((unsigned char)bits);
  }
  extern "C" void test_odd(const double* x, long long n, unsigned* bf16, unsigned* e4m3) {
    for (long long i = 0; i < n; ++i) {
      bf16[i] = pw_to_bf16(pw_odd(x[i]));
      e4m3[i] = pw_to_f8e4m3(pw_odd(x[i]));
    }
  }
  extern "C" void test_integers(const double* x, long long n, long long* i64, int* i32,
                                signed char* i8, unsigned char* u8) {
    for (long long i = 0; i < n; ++i) {
      i64[i] = pw_saturate<long long>(x[i]);
      i32[i] = pw_saturate<int>(x[i]);
      i8[i] = pw_saturate<signed char>(x[i]);
      u8[i] = pw_saturate<unsigned char>(x[i]);
    }
  }
  extern "C" long long test_lane(long long place, long long lanes) { return pw_lane(place, lanes); }
)cpp";

const cuda::HostKernels* host_kernels() {
  static const auto built = cuda::HostKernels::build({}, kExtra);
  if (!built && built.error().front().code != "PW1222") FAIL(built.error().front().message);
  return built ? &*built : nullptr;
}

#define NEED_COMPILER()                                                      \
  const cuda::HostKernels* kernels = host_kernels();                         \
  if (!kernels) {                                                            \
    WARN("SKIPPED: no C++ compiler on PATH, so the host run is not tested"); \
    return;                                                                  \
  }

template <class F>
F* function(const cuda::HostKernels& kernels, const char* name) {
  auto* f = reinterpret_cast<F*>(kernels.symbol(name));
  REQUIRE(f != nullptr);
  return f;
}

/// All numbers of a narrow type, what lies halfway between neighbours, and the floats next to both.
void add_neighbourhood(std::vector<float>& out, float (*widen)(unsigned), unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const float a = widen(i), b = widen(i + 1 < count ? i + 1 : i);
    for (float x : {a, std::isfinite(a) && std::isfinite(b) ? a / 2 + b / 2 : a}) {
      const auto bits = std::bit_cast<std::uint32_t>(x);
      for (std::uint32_t d : {0u, 1u, ~0u}) out.push_back(std::bit_cast<float>(bits + d));
    }
  }
}

std::vector<float> hard_floats() {
  std::vector<float> x;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (std::uint32_t low :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(high << 16 | low));
  }
  add_neighbourhood(x, [](unsigned i) { return from_f16(static_cast<std::uint16_t>(i)); }, 0x10000);
  add_neighbourhood(x, [](unsigned i) { return from_f8e4m3(static_cast<std::uint8_t>(i)); }, 0x100);
  add_neighbourhood(x, [](unsigned i) { return from_f8e5m2(static_cast<std::uint8_t>(i)); }, 0x100);
  return x;
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("prelude: every narrow number widens as the reference does", "[cuda]") {
  NEED_COMPILER();
  auto* widen = function<void(unsigned, float*)>(*kernels, "test_widen");
  unsigned checked = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    float y[4];
    widen(bits, y);
    const auto narrow = static_cast<std::uint16_t>(bits);
    const auto byte = static_cast<std::uint8_t>(bits);
    if (same(y[0], from_bf16(narrow)) && same(y[1], from_f16(narrow)) &&
        same(y[2], from_f8e4m3(byte)) && same(y[3], from_f8e5m2(byte))) {
      ++checked;
      continue;
    }
    FAIL("bits " << bits);
  }
  CHECK(checked == 0x10000);
}

TEST_CASE("prelude: narrowing rounds as the reference at every number, midpoint and neighbour",
          "[cuda]") {
  NEED_COMPILER();
  auto* narrow =
      function<void(const float*, long long, unsigned*, unsigned*, unsigned*, unsigned*)>(
          *kernels, "test_narrow");
  const std::vector<float> x = hard_floats();
  std::vector<unsigned> y[4];
  for (auto& v : y) v.resize(x.size());
  narrow(x.data(), static_cast<long long>(x.size()), y[0].data(), y[1].data(), y[2].data(),
         y[3].data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[0][i] == to_bf16(x[i]) && y[1][i] == to_f16(x[i]) && y[2][i] == to_f8e4m3(x[i]) &&
        y[3][i] == to_f8e5m2(x[i]))
      continue;
    FAIL("bits " << std::bit_cast<std::uint32_t>(x[i]));
  }
  CHECK(x.size() > 0x10000);  // more than every bf16 number was tested
}

TEST_CASE("prelude: narrowing rounds as the reference for every float there is",
          "[.][slow][cuda]") {
  NEED_COMPILER();
  auto* narrow =
      function<void(const float*, long long, unsigned*, unsigned*, unsigned*, unsigned*)>(
          *kernels, "test_narrow");
  std::vector<float> x(1 << 16);
  std::vector<unsigned> y[4];
  for (auto& v : y) v.resize(x.size());
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (std::uint32_t low = 0; low < 0x10000; ++low)
      x[low] = std::bit_cast<float>(high << 16 | low);
    narrow(x.data(), static_cast<long long>(x.size()), y[0].data(), y[1].data(), y[2].data(),
           y[3].data());
    bool same = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      same = same && y[0][i] == to_bf16(x[i]) && y[1][i] == to_f16(x[i]) &&
             y[2][i] == to_f8e4m3(x[i]) && y[3][i] == to_f8e5m2(x[i]);
    }
    if (!same) FAIL("a float whose upper half is " << high);
  }
}

TEST_CASE("prelude: from double there is one rounding, and integers saturate", "[cuda]") {
  NEED_COMPILER();
  std::vector<double> x{0.0,          -0.0,          0.49,     -0.51,    1.5,   127.4,
                        128.0,        -128.5,        -129.0,   255.9,    256.0, 2147483647.0,
                        2147483648.0, -2147483649.0, 9.3e18,   -9.3e18,  1e300, -1e300,
                        1e-300,       NAN,           INFINITY, -INFINITY};
  // Just above, at and just below the middle between two narrow numbers: two roundings would lose
  // the difference.
  for (unsigned i = 0; i < 0x7f7f; ++i) {
    const double middle = (static_cast<double>(from_bf16(static_cast<std::uint16_t>(i))) +
                           from_bf16(static_cast<std::uint16_t>(i + 1))) /
                          2;
    for (double scale : {1.0, 1 + 0x1p-40, 1 - 0x1p-40}) x.push_back(middle * scale);
  }
  const auto n = static_cast<long long>(x.size());
  std::vector<unsigned> bf16(x.size()), e4m3(x.size());
  function<void(const double*, long long, unsigned*, unsigned*)>(*kernels, "test_odd")(
      x.data(), n, bf16.data(), e4m3.data());
  std::vector<long long> i64(x.size());
  std::vector<int> i32(x.size());
  std::vector<signed char> i8(x.size());
  std::vector<unsigned char> u8(x.size());
  function<void(const double*, long long, long long*, int*, signed char*, unsigned char*)>(
      *kernels, "test_integers")(x.data(), n, i64.data(), i32.data(), i8.data(), u8.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO("x = " << x[i]);
    std::uint16_t narrow = 0;
    std::uint8_t byte = 0;
    store(DType::bf16, reinterpret_cast<std::byte*>(&narrow), 0, x[i]);
    store(DType::f8e4m3, reinterpret_cast<std::byte*>(&byte), 0, x[i]);
    const bool ok = bf16[i] == narrow && e4m3[i] == byte &&
                    static_cast<double>(i64[i]) == rounded(DType::i64, x[i]) &&
                    i32[i] == rounded(DType::i32, x[i]) && i8[i] == rounded(DType::i8, x[i]) &&
                    u8[i] == rounded(DType::u8, x[i]);
    REQUIRE(ok);
  }
}

TEST_CASE("prelude: the order of lanes is a bit reversal", "[cuda]") {
  NEED_COMPILER();
  auto* lane = function<long long(long long, long long)>(*kernels, "test_lane");
  CHECK(lane(0, 1) == 0);
  CHECK((lane(0, 8) == 0 && lane(1, 8) == 4 && lane(2, 8) == 2 && lane(3, 8) == 6 &&
         lane(7, 8) == 7));
  CHECK(lane(1, 256) == 128);
}
