#include "cuda/device/lt_product.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"

namespace pw::cuda {
namespace {

constexpr std::uint32_t kMostAligned = 256;
constexpr std::int64_t kUnit = 16;  // fp8: rows of 16 bytes

std::optional<LtType> lt_type_of(DType dtype) {
  if (dtype == DType::f32) return LtType::f32;
  if (dtype == DType::f16) return LtType::f16;
  if (dtype == DType::bf16) return LtType::bf16;
  if (dtype == DType::f8e4m3) return LtType::f8e4m3;
  return std::nullopt;
}

/// Returns the alignment; 256 for an unknown address, because every tensor has an allocation of its
/// own.
std::uint32_t alignment_of(Address address) {
  return address % kMostAligned == 0 ? kMostAligned
                                     : static_cast<std::uint32_t>(address & -address);
}

std::int64_t count(const DeviceTensor& tensor) {
  return TensorView{tensor.dtype, tensor.extents, nullptr}.count();
}

std::string text(const LtProduct& p) {
  return fmt::format("{} × {} by {} × {} of {} to {}{}", p.rows, p.depth, p.depth, p.columns,
                     name(p.in), name(p.out), p.b_transposed ? ", the second transposed" : "");
}

/// Translates a call into a product, or reports what the library lacks.
class Reading {
 public:
  Reading(const ProductCall& call, std::span<const DeviceTensor> reads, const DeviceTensor& result,
          std::size_t version)
      : call_(call), reads_(reads), result_(result), version_(version) {}

  tl::expected<LtProduct, std::string> run() {
    const DeviceTensor &a = reads_[call_.a], &b = reads_[call_.b];
    out_.in = a.dtype;
    out_.out = result_.dtype;
    out_.b_transposed = call_.b_transposed;
    out_.rows = a.extents[0];
    out_.depth = a.extents[1];
    out_.columns = b.extents[call_.b_transposed ? 0 : 1];
    const LtAddresses at = addresses_of(call_, reads_, result_);
    out_.alignment = {alignment_of(at.a), alignment_of(at.b), alignment_of(at.bias),
                      alignment_of(at.y)};
    if (b.dtype != a.dtype || !lt_type_of(a.dtype) || !lt_type_of(result_.dtype))
      return refuse(fmt::format("cuBLASLt does not multiply {} by {} to {}", name(a.dtype),
                                name(b.dtype), name(result_.dtype)));
    if (out_.rows == 0 || out_.depth == 0 || out_.columns == 0) return refuse("it has no elements");
    const std::string why = out_.in == DType::f8e4m3 ? read_narrow() : read_plain();
    return why.empty() ? tl::expected<LtProduct, std::string>(out_) : refuse(why);
  }

 private:
  static tl::unexpected<std::string> refuse(std::string why) {
    return tl::unexpected(std::move(why));
  }

  std::string read_plain() {
    if (out_.out != out_.in) return "cuBLASLt is used only if the result has the operands' dtype";
    if (call_.a_scale || call_.b_scale) return "cuBLASLt supports scales for f8e4m3 only";
    if (!call_.bias) return "";
    const DeviceTensor& bias = reads_[*call_.bias];
    if (bias.dtype != out_.out || count(bias) != out_.columns)
      return "cuBLASLt requires a bias of the result's dtype with one element per column";
    out_.biased = true;
    return "";
  }

  std::string read_narrow() {
    if (!out_.b_transposed)
      return "cuBLASLt multiplies f8e4m3 only if the second operand is stored as [columns, depth]";
    if (out_.depth % kUnit != 0 || out_.columns % kUnit != 0)
      return fmt::format("cuBLASLt requires multiples of {} for f8e4m3: depth {}, columns {}",
                         kUnit, out_.depth, out_.columns);
    if (call_.bias || !call_.a_scale || !call_.b_scale || out_.out == DType::f8e4m3)
      return "cuBLASLt is used for f8e4m3 only with two scales, a wider result and no bias";
    const DeviceTensor &a = reads_[*call_.a_scale], &b = reads_[*call_.b_scale];
    if (a.dtype != DType::f32 || b.dtype != DType::f32) return "cuBLASLt requires f32 scales";
    out_.scales = LtProduct::Scales::tensors;
    if (count(a) == 1 && count(b) == 1) return "";
    out_.scales = LtProduct::Scales::vectors;
    if (count(a) != out_.rows || count(b) != out_.columns)
      return "cuBLASLt requires a scale per tensor, or one per row and per column";
    return version_ >= lt::kHasScaleVectors
               ? ""
               : "cuBLASLt requires CUDA 12.9 for scales per row and column";
  }

  const ProductCall& call_;
  std::span<const DeviceTensor> reads_;
  const DeviceTensor& result_;
  std::size_t version_;
  LtProduct out_;
};

/// Sets attributes of one object until one fails.
template <class Attribute>
class Setter {
 public:
  Setter(const LtLibrary& library, int (*set)(void*, int, const void*, std::size_t), void* object)
      : library_(library), set_(set), object_(object) {}
  template <class T>
  void operator()(Attribute attribute, const T& value) {
    if (!done_) return;
    const int number = static_cast<int>(attribute);
    done_ = library_.check(set_(object_, number, &value, sizeof value),
                           fmt::format("set attribute {}", number));
  }
  [[nodiscard]] Status done() const { return done_; }

 private:
  const LtLibrary& library_;
  int (*set_)(void*, int, const void*, std::size_t);
  void* object_;
  Status done_;
};

/// Returns placeholder addresses for a search, which reads only their alignment.
LtAddresses anywhere(const LtProduct& p) {
  const auto [a, b, bias, y] = p.alignment;
  const bool scaled = p.scales != LtProduct::Scales::none;
  return {a, b, p.biased ? bias : 0, scaled ? kMostAligned : 0, scaled ? kMostAligned : 0, y, 0};
}

const void* device_pointer(Address address) { return reinterpret_cast<const void*>(address); }

}  // namespace

tl::expected<LtProduct, std::string> lt_product(const ProductCall& call,
                                                std::span<const DeviceTensor> reads,
                                                const DeviceTensor& result, std::size_t version) {
  return Reading(call, reads, result, version).run();
}

LtAddresses addresses_of(const ProductCall& call, std::span<const DeviceTensor> reads,
                         const DeviceTensor& result) {
  const auto at = [&](const std::optional<std::size_t>& i) { return i ? reads[*i].address : 0; };
  return {at(call.a),     at(call.b), at(call.bias), at(call.a_scale), at(call.b_scale),
          result.address, 0};
}

Result<LtDescriptors> LtDescriptors::make(const LtLibrary& library, const LtProduct& p,
                                          const LtAddresses& at) {
  const LtFunctions& f = library.f();
  LtDescriptors out(f);
  void* made = nullptr;
  const int scale = static_cast<int>(LtType::f32);
  if (auto ok =
          library.check(f.operation_create(&made, lt::kComputeF32, scale), "describe a product");
      !ok)
    return forward(ok);
  out.operation_.reset(made);
  Setter<LtOperation> set(library, f.operation_set, made);
  if (p.b_transposed) set(LtOperation::transpose_a, lt::kTransposed);
  if (p.biased) {
    set(LtOperation::epilogue, lt::kAddBias);
    set(LtOperation::bias, at.bias);
    set(LtOperation::bias_type, static_cast<std::int32_t>(*lt_type_of(p.out)));
  }
  if (p.scales != LtProduct::Scales::none) {
    set(LtOperation::a_scale, at.b_scale);
    set(LtOperation::b_scale, at.a_scale);
  }
  if (p.scales == LtProduct::Scales::vectors) {
    set(LtOperation::a_scale_mode, lt::kScaleVectors);
    set(LtOperation::b_scale_mode, lt::kScaleVectors);
  }
  PW_TRY(set.done());
  // A row-major matrix of `rows` × `columns` is a column-major one of `columns` × `rows`.
  const auto layout = [&](LtDescriptor& into, DType dtype, std::int64_t rows,
                          std::int64_t columns) {
    void* described = nullptr;
    const int status = f.layout_create(&described, static_cast<int>(*lt_type_of(dtype)),
                                       static_cast<std::uint64_t>(columns),
                                       static_cast<std::uint64_t>(rows), columns);
    into.reset(described);
    return library.check(status, "describe a matrix");
  };
  PW_TRY(p.b_transposed ? layout(out.a_, p.in, p.columns, p.depth)
                        : layout(out.a_, p.in, p.depth, p.columns));
  PW_TRY(layout(out.b_, p.in, p.rows, p.depth));
  PW_TRY(layout(out.y_, p.out, p.rows, p.columns));
  return out;
}

Result<LtDescriptor> lt_preference(const LtLibrary& library, const LtProduct& p) {
  const LtFunctions& f = library.f();
  void* made = nullptr;
  PW_TRY(library.check(f.preference_create(&made), "create search preferences"));
  LtDescriptor out(made, f.preference_destroy);
  Setter<LtPreference> set(library, f.preference_set, made);
  set(LtPreference::workspace_bytes, static_cast<std::uint64_t>(p.workspace_bytes));
  set(LtPreference::reductions, lt::kReduceInCompute);
  set(LtPreference::a_alignment, p.alignment[1]);
  set(LtPreference::b_alignment, p.alignment[0]);
  set(LtPreference::c_alignment, p.alignment[3]);
  set(LtPreference::d_alignment, p.alignment[3]);
  PW_TRY(set.done());
  return out;
}

Result<std::unique_ptr<LtProducts>> LtProducts::start(LtLibrary library) {
  void* handle = nullptr;
  PW_TRY(library.check(library.f().create(&handle), "start"));
  return std::unique_ptr<LtProducts>(new LtProducts(std::move(library), handle));
}

LtProducts::~LtProducts() { library_.f().destroy(handle_); }

Result<LtAlgorithm> LtProducts::algorithm(const LtProduct& product) {
  const auto known = algorithms_.find(product);
  if (known != algorithms_.end()) return known->second;
  return algorithms_.emplace(product, search(product)).first->second;
}

Result<LtAlgorithm> LtProducts::search(const LtProduct& p) {
  auto described = PW_TRY(LtDescriptors::make(library_, p, anywhere(p)));
  auto preference = PW_TRY(lt_preference(library_, p));
  LtFound found;
  int count = 0;
  const int status =
      library_.f().search(handle_, described.operation(), described.a(), described.b(),
                          described.y(), described.y(), preference.get(), 1, &found, &count);
  const std::string what = "find an algorithm for " + text(p);
  PW_TRY(library_.check(status != 0 ? status : found.status, what));
  if (count < 1)
    return fail(error_in("cuBLASLt", "PW1261", "could not " + what + ": there is none"));
  return found.algorithm;
}

Status LtProducts::multiply(const LtProduct& p, const LtAddresses& at, const LtAlgorithm& algorithm,
                            void* stream) {
  auto described = PW_TRY(LtDescriptors::make(library_, p, at));
  const float one = 1, zero = 0;
  void* y = const_cast<void*>(device_pointer(at.y));
  return library_.check(
      library_.f().multiply(handle_, described.operation(), &one, device_pointer(at.b),
                            described.a(), device_pointer(at.a), described.b(), &zero, y,
                            described.y(), y, described.y(), &algorithm,
                            const_cast<void*>(device_pointer(at.workspace)),
                            static_cast<std::size_t>(p.workspace_bytes), stream),
      "multiply " + text(p));
}

}  // namespace pw::cuda
