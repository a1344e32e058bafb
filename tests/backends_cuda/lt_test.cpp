// cuBLASLt: what is read of a product, and its descriptors, by the real library where it is here
// (they need no device).
#include <cstring>

#include <dlfcn.h>
#include <fmt/format.h>

#include "cuda/device/lt_product.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::cuda;

namespace {

constexpr std::size_t kNew = 130000, kOld = 120800;

DeviceTensor tensor(DType dtype, Extents extents, Address address = 0) {
  return {dtype, std::move(extents), address};
}

struct Case {
  ProductCall call;
  std::vector<DeviceTensor> reads;
  DeviceTensor result;
};

/// 5 × 32 by 32 × 48.
Case plain(DType dtype, bool transposed, bool biased) {
  Case out;
  out.call.b_transposed = transposed;
  out.reads = {tensor(dtype, {5, 32}, 0x1000),
               tensor(dtype, transposed ? Extents{48, 32} : Extents{32, 48}, 0x2000)};
  if (biased) {
    out.call.bias = 2;
    out.reads.push_back(tensor(dtype, {48}, 0x3000));
  }
  out.result = tensor(dtype, {5, 48}, 0x4000);
  return out;
}

Case scaled(DType result, bool vectors) {
  Case out = plain(DType::f8e4m3, true, false);
  out.call.a_scale = 2;
  out.call.b_scale = 3;
  out.reads.push_back(tensor(DType::f32, vectors ? Extents{5, 1} : Extents{1}, 0x5000));
  out.reads.push_back(tensor(DType::f32, vectors ? Extents{48} : Extents{}, 0x6000));
  out.result.dtype = result;
  return out;
}

auto read(const Case& c, std::size_t version = kNew) {
  return lt_product(c.call, c.reads, c.result, version);
}
std::string refused(const Case& c, std::size_t version = kNew) {
  const auto product = read(c, version);
  return product ? "" : product.error();
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (bool transposed : {false, true})
      for (bool biased : {false, true}) out.push_back(plain(dtype, transposed, biased));
  for (DType result : {DType::bf16, DType::f16, DType::f32})
    for (bool vectors : {false, true}) out.push_back(scaled(result, vectors));
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("cuBLASLt: a product is read from tensors, or refused with the reason", "[cuda]") {
  for (const Case& c : all_cases()) {
    const auto product = read(c);
    REQUIRE(product);
    CHECK(product->rows == 5);
    CHECK(product->depth == 32);
    CHECK(product->columns == 48);
  }
  CHECK(contains(refused(plain(DType::f64, false, false)), "does not multiply f64"));
  Case c = plain(DType::bf16, false, true);
  c.reads[2].extents = {1};
  CHECK(contains(refused(c), "a bias of the result's dtype with one element per column"));
  c = plain(DType::bf16, false, true);
  c.reads[2].dtype = DType::f32;
  CHECK(contains(refused(c), "a bias of the result's dtype"));
  c = plain(DType::bf16, false, false);
  c.reads[0].extents = {0, 32};
  CHECK(refused(c) == "it has no elements");
  c = plain(DType::bf16, false, false);
  c.result.dtype = DType::f32;
  CHECK(contains(refused(c), "only if the result has"));
  c = scaled(DType::bf16, false);
  c.call.b_transposed = false;
  c.reads[1].extents = {32, 48};
  CHECK(contains(refused(c), "only if the second operand is stored"));
  c = scaled(DType::bf16, false);
  c.reads[1].extents = {40, 32};
  CHECK(contains(refused(c), "multiples of 16 for f8e4m3: depth 32, columns 40"));
  c = scaled(DType::bf16, true);
  CHECK(contains(refused(c, kOld), "requires CUDA 12.9"));
  c.reads[3].extents = {1};  // of the whole tensor, beside those of rows
  CHECK(contains(refused(c), "a scale per tensor, or one per row and per column"));
  c = scaled(DType::bf16, false);
  c.reads[0].dtype = c.reads[1].dtype = DType::bf16;
  CHECK(contains(refused(c), "scales for f8e4m3 only"));
  // One row of scales of its own is one of rows, whatever the token count.
  c = scaled(DType::bf16, true);
  c.reads[0].extents[0] = c.result.extents[0] = c.reads[2].extents[0] = 1;
  REQUIRE(read(c));
  CHECK(read(c)->scales == LtProduct::Scales::vectors);
}

TEST_CASE("cuBLASLt: other alignments are other products", "[cuda]") {
  Case c = plain(DType::bf16, false, false);
  CHECK(read(c)->alignment == std::array<std::uint32_t, 4>{256, 256, 256, 256});
  c.reads[0].address += 48;
  c.result.address += 2;
  CHECK(read(c)->alignment == std::array<std::uint32_t, 4>{16, 256, 256, 2});
}

TEST_CASE("cuBLASLt: a missing file and another library are reported", "[cuda]") {
  const LtLibrary nowhere = LtLibrary::open("/nowhere/libcublasLt.so.13");
  CHECK_FALSE(nowhere.present());
  CHECK(nowhere.state() == "/nowhere/libcublasLt.so.13 was not found");
  const LtLibrary other = LtLibrary::open("libm.so.6");
  CHECK_FALSE(other.present());
  CHECK(other.state() == "libm.so.6 was found but lacks cublasLtGetVersion");
}

TEST_CASE("cuBLASLt: the library accepts every descriptor, and has in it what was meant",
          "[cuda]") {
  const LtLibrary library = LtLibrary::open();
  if (!library.present()) {
    WARN("SKIPPED: cuBLASLt is " << library.state());
    return;
  }
  const std::string file = library.state().substr(library.state().find(" at ") + 4);
  void* loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(loaded != nullptr);
  using Get = int (*)(void*, int, void*, std::size_t, std::size_t*);
  auto* const operation_get =
      reinterpret_cast<Get>(dlsym(loaded, "cublasLtMatmulDescGetAttribute"));
  auto* const layout_get = reinterpret_cast<Get>(dlsym(loaded, "cublasLtMatrixLayoutGetAttribute"));
  const auto get = [](Get from, void* object, int attribute, std::size_t bytes) {
    std::uint64_t value = 0;
    std::size_t written = 0;
    CHECK(from(object, attribute, &value, bytes, &written) == 0);
    CHECK(written == bytes);
    return value;
  };
  // Numbers as in cublasLt.h; lt_header_test.cpp has those that are ours.
  const auto is_layout = [&](void* layout, std::uint64_t type, std::uint64_t rows,
                             std::uint64_t columns) {
    CHECK(get(layout_get, layout, 0, 4) == type);
    CHECK(get(layout_get, layout, 1, 4) == 0);  // by columns
    CHECK(get(layout_get, layout, 2, 8) == rows);
    CHECK(get(layout_get, layout, 3, 8) == columns);
    CHECK(get(layout_get, layout, 4, 8) == rows);  // packed
  };
  const std::map<DType, std::uint64_t> types{
      {DType::f32, 0}, {DType::f16, 2}, {DType::bf16, 14}, {DType::f8e4m3, 28}};
  for (const Case& c : all_cases()) {
    const bool vectors = c.call.a_scale && c.reads[2].extents.size() == 2;
    if (vectors && library.version() < lt::kHasScaleVectors) continue;
    LtProduct product = *read(c, library.version());
    product.workspace_bytes = 1 << 20;
    INFO(name(product.in) << " to " << name(product.out) << (product.b_transposed ? ", t" : "")
                          << (product.biased ? ", bias" : "") << (vectors ? ", vectors" : ""));
    const auto made =
        LtDescriptors::make(library, product, addresses_of(c.call, c.reads, c.result));
    if (!made) FAIL(made.error().front().message);
    is_layout(made->a(), types.at(product.in), product.b_transposed ? 32 : 48,
              product.b_transposed ? 48 : 32);
    is_layout(made->b(), types.at(product.in), 32, 5);
    is_layout(made->y(), types.at(product.out), 48, 5);
    const auto operation = [&](int attribute, std::size_t bytes) {
      return get(operation_get, made->operation(), attribute, bytes);
    };
    CHECK(operation(0, 4) == 68);  // sums in f32
    CHECK(operation(1, 4) == 0);   // scales too
    CHECK(operation(3, 4) == (product.b_transposed ? 1 : 0));
    CHECK(operation(4, 4) == 0);
    CHECK(operation(7, 4) == (product.biased ? 4 : 1));
    if (product.biased) {
      CHECK(operation(8, 8) == 0x3000);
      CHECK(operation(26, 4) == types.at(product.out));
    }
    CHECK(operation(17, 8) == (c.call.a_scale ? 0x6000 : 0));  // its A is our b
    CHECK(operation(18, 8) == (c.call.a_scale ? 0x5000 : 0));
    if (library.version() >= lt::kHasScaleVectors) {
      CHECK(operation(31, 4) == (vectors ? 3 : 0));
      CHECK(operation(32, 4) == (vectors ? 3 : 0));
    }
    const auto preference = lt_preference(library, product);
    if (!preference) FAIL(preference.error().front().message);
  }
  // A refusal has the library's own word.
  LtProduct wrong = *read(plain(DType::f32, false, false));
  wrong.rows = -1;
  const auto refused_layout = LtDescriptors::make(library, wrong, {});
  if (!refused_layout) {
    CHECK(refused_layout.error().front().code == "PW1261");
    CHECK(contains(refused_layout.error().front().message, "CUBLAS_STATUS_"));
  }
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
/// cublasLtCreate() gives no handle where it finds no device, and keeps what it allocated for one
/// (192 bytes in 13.0): nothing that a caller could free.
extern "C" const char* __lsan_default_suppressions() { return "leak:cublasLtCreate\n"; }
#endif
#endif

TEST_CASE("cuBLASLt: without a device the library does not start, with its word for it", "[cuda]") {
  LtLibrary library = LtLibrary::open();
  if (!library.present()) {
    WARN("SKIPPED: cuBLASLt is " << library.state());
    return;
  }
  const auto started = LtProducts::start(std::move(library));
  if (started) return;  // there is a device
  CHECK(started.error().front().code == "PW1261");
  CHECK(contains(started.error().front().message, "could not start: CUBLAS_STATUS_"));
}
