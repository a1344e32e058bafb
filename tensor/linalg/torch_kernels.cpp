// Calls PyTorch's kernels through its C interface for compiled models. Operands are wrapped as
// tensors without a copy, results are copied unless they are already row-major f32. Invariant: a
// call is made only for operands that oneDNN processes with an optimised kernel; otherwise the
// result is false and our own kernels run.
#include "tensor/linalg/torch_kernels.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include <dlfcn.h>

#include "base/dynamic_library.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

struct Opaque;
using Handle = Opaque*;
using Numbers = std::array<std::int64_t, 4>;

/// PyTorch's C functions. Those that return a number return 0 for success.
struct TorchFunctions {
  std::int32_t (*float32)() = nullptr;
  std::int32_t (*cpu)() = nullptr;
  int (*from_memory)(void* data, std::int64_t rank, const std::int64_t* sizes,
                     const std::int64_t* strides, std::int64_t offset, std::int32_t dtype,
                     std::int32_t device, std::int32_t device_index, Handle* out) = nullptr;
  int (*free)(Handle) = nullptr;
  int (*data)(Handle, void** out) = nullptr;
  int (*dtype)(Handle, std::int32_t* out) = nullptr;
  int (*contiguous)(Handle, bool* out) = nullptr;
  /// Convolution followed by the op that `after` names. Unlike `aoti_torch_cpu_convolution`, which
  /// uses products for one image and one thread, it always uses oneDNN.
  int (*convolution)(Handle x, Handle w, Handle* bias, const std::int64_t* padding, std::int64_t,
                     const std::int64_t* stride, std::int64_t, const std::int64_t* dilation,
                     std::int64_t, std::int64_t groups, const char* after, const double** scalars,
                     std::int64_t, const char** algorithm, Handle* out) = nullptr;
  /// x · wᵀ followed by the op that `after` names.
  int (*linear)(Handle x, Handle w, Handle* bias, const char* after, const double** scalars,
                std::int64_t, const char** algorithm, Handle* out) = nullptr;
  std::int32_t (*bfloat16)() = nullptr;
  int (*strides)(Handle, std::int64_t** out) = nullptr;
  int (*mm)(Handle out, Handle a, Handle b) = nullptr;
  int (*bmm)(Handle out, Handle a, Handle b) = nullptr;
  int (*addmm)(Handle out, Handle bias, Handle a, Handle b, double of_bias,
               double of_product) = nullptr;
  int (*attention)(Handle q, Handle k, Handle v, double dropout, std::int32_t causal, Handle* mask,
                   double* scale, Handle* y, Handle* lse) = nullptr;
  bool operator==(const TorchFunctions&) const = default;
};

TorchFunctions& found_functions() {
  static TorchFunctions functions;
  return functions;
}

/// Returns the lent functions. None in a forked process, whose calls could wait for threads that
/// only its parent has.
const TorchFunctions& lent_functions() {
  static const TorchFunctions none;
  return in_forked_process() ? none : found_functions();
}

/// A PyTorch tensor.
class Torch {
 public:
  Torch() = default;  ///< null
  Torch(const float* data, std::int64_t rank, const Numbers& sizes)
      : Torch(data, rank, sizes, row_major(rank, sizes)) {}
  Torch(const float* data, std::int64_t rank, const Numbers& sizes, const Numbers& strides) {
    if (data == nullptr) return;
    const TorchFunctions& torch = lent_functions();
    void* const memory = const_cast<float*>(data);  // read only
    if (torch.from_memory(memory, rank, sizes.data(), strides.data(), 0, torch.float32(),
                          torch.cpu(), 0, &handle) != 0)
      handle = nullptr;
  }
  /// Wraps an array of f32 or bf16.
  explicit Torch(const Array& x) {
    const TorchFunctions& torch = lent_functions();
    if (torch.from_memory(x.data, x.rank(), x.extents.data(), x.strides.data(), 0,
                          x.dtype == DType::bf16 ? torch.bfloat16() : torch.float32(), torch.cpu(),
                          0, &handle) != 0)
      handle = nullptr;
  }
  ~Torch() {
    if (handle != nullptr) found_functions().free(handle);
  }
  Torch(const Torch&) = delete;
  Torch& operator=(const Torch&) = delete;

  Handle handle = nullptr;

 private:
  static Numbers row_major(std::int64_t rank, const Numbers& sizes) {
    Numbers strides{};
    std::int64_t step = 1;
    for (auto i = static_cast<std::size_t>(rank); i-- > 0; step *= sizes[i]) strides[i] = step;
    return strides;
  }
};

/// Returns the elements of a row-major result of this dtype; null for other results.
void* row_major_data(const Torch& tensor, std::int32_t (*expected)()) {
  const TorchFunctions& torch = lent_functions();
  std::int32_t dtype = -1;
  bool contiguous = false;
  void* data = nullptr;
  if (torch.dtype(tensor.handle, &dtype) != 0 || dtype != expected() ||
      torch.contiguous(tensor.handle, &contiguous) != 0 || !contiguous ||
      torch.data(tensor.handle, &data) != 0)
    return nullptr;
  return data;
}

bool is_flat(const Window& w) {
  return w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.padding[0] == 0;
}

/// Returns true if the elements have no gaps, by rows or by columns; for others oneDNN has only its
/// reference implementation.
bool is_dense(const Matrix& m) {
  return (m.column_step == 1 && m.row_step == m.columns) ||
         (m.row_step == 1 && m.column_step == m.rows);
}

/// Returns the number of places of PyTorch's convolution; the graph's op may have fewer.
std::int64_t places(const Window& w, std::size_t axis) {
  return (w.in[axis] + 2 * w.padding[axis] - w.dilation[axis] * (w.kernel[axis] - 1) - 1) /
             w.stride[axis] +
         1;
}

/// Calls PyTorch's convolution, which is lent. Returns false if it does not take the operands.
bool convolve(const Convolution& c, const Torch& x, const Torch& w, Torch* bias, Torch& out) {
  const TorchFunctions& torch = lent_functions();
  const Window& g = c.window;
  if (!is_flat(g) || places(g, 1) != g.out[1] || places(g, 2) != g.out[2] || x.handle == nullptr ||
      w.handle == nullptr)
    return false;
  return torch.convolution(x.handle, w.handle, bias == nullptr ? nullptr : &bias->handle,
                           g.padding.data() + 1, 2, g.stride.data() + 1, 2, g.dilation.data() + 1,
                           2, c.groups, "none", nullptr, 0, nullptr, &out.handle) == 0;
}

}  // namespace

Status lend_torch(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr)
    return fail(
        error_in(library, "PW1222", "the library is not loaded, so its kernels cannot be used"));
  TorchFunctions found;
  FunctionFinder find(handle);
  find(found.float32, "aoti_torch_dtype_float32");
  find(found.cpu, "aoti_torch_device_type_cpu");
  find(found.from_memory, "aoti_torch_create_tensor_from_blob");
  find(found.free, "aoti_torch_delete_tensor_object");
  find(found.data, "aoti_torch_get_data_ptr");
  find(found.dtype, "aoti_torch_get_dtype");
  find(found.contiguous, "aoti_torch_is_contiguous");
  find(found.convolution, "aoti_torch_cpu_mkldnn__convolution_pointwise");
  find(found.linear, "aoti_torch_cpu__linear_pointwise");
  if (!find.missing().empty())
    return fail(error_in(library, "PW1222", "its kernels cannot be used: " + find.problem()));
  FunctionFinder more(handle);
  more(found.bfloat16, "aoti_torch_dtype_bfloat16");
  more(found.strides, "aoti_torch_get_strides");
  more(found.mm, "aoti_torch_cpu_mm_out");
  more(found.bmm, "aoti_torch_cpu_bmm_out");
  more(found.addmm, "aoti_torch_cpu_addmm_out");
  more(found.attention, "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu");
  static std::mutex lending;  // several threads may look at once; they find the same
  const std::lock_guard<std::mutex> lock(lending);
  if (!(found == found_functions())) found_functions() = found;
  return {};
}

std::optional<Array> lent_convolution(const Convolution& c, const Array& x, const Array& w,
                                      const Array* bias) {
  const TorchFunctions& torch = lent_functions();
  const bool is_bf16 = x.dtype == DType::bf16;
  if (torch.convolution == nullptr || (is_bf16 ? torch.bfloat16 == nullptr : x.dtype != DType::f32))
    return std::nullopt;
  for (const Array* each : {&x, &w, bias})
    if (each != nullptr && (each->dtype != x.dtype || !each->contiguous())) return std::nullopt;
  const Window& g = c.window;
  const std::int64_t outputs = c.groups * c.outputs, channels = c.groups * c.channels;
  const Torch image({x.dtype,
                     {c.batch, channels, g.in[1], g.in[2]},
                     {g.in_count() * channels, g.in_count(), g.in[2], 1},
                     x.data,
                     nullptr}),
      weight({w.dtype,
              {outputs, c.channels, g.kernel[1], g.kernel[2]},
              {c.taps(), g.kernel_count(), g.kernel[2], 1},
              w.data,
              nullptr});
  Torch added = bias == nullptr ? Torch() : Torch(*bias);
  const auto made = std::make_shared<Torch>();
  if (bias != nullptr && added.handle == nullptr) return std::nullopt;
  if (!convolve(c, image, weight, bias == nullptr ? nullptr : &added, *made)) return std::nullopt;
  void* const data = row_major_data(*made, is_bf16 ? torch.bfloat16 : torch.float32);
  if (data == nullptr) return std::nullopt;
  const Extents extents{c.batch, outputs, g.out[1], g.out[2]};
  return Array{x.dtype, extents, row_major(extents), static_cast<std::byte*>(data), made};
}

bool lent_product(const Matrix& a, const Matrix& b, const float* bias, float* c) {
  constexpr std::int64_t kWorthACall = 1 << 22;  // multiplications
  constexpr std::int64_t kWorthACopy = 48;       // multiplications for each result, which is copied
  const TorchFunctions& torch = lent_functions();
  if (torch.linear == nullptr || a.dtype != DType::f32 || b.dtype != DType::f32 || !is_dense(a) ||
      !is_dense(b) || a.columns < kWorthACopy || a.rows * a.columns * b.columns < kWorthACall)
    return false;
  const Torch x(reinterpret_cast<const float*>(a.data), 2, {a.rows, a.columns},
                {a.row_step, a.column_step}),
      w(reinterpret_cast<const float*>(b.data), 2, {b.columns, b.rows},
        {b.column_step, b.row_step});
  Torch row(bias, 1, {b.columns}), out;
  if (x.handle == nullptr || w.handle == nullptr || (bias != nullptr && row.handle == nullptr) ||
      torch.linear(x.handle, w.handle, bias == nullptr ? nullptr : &row.handle, "none", nullptr, 0,
                   nullptr, &out.handle) != 0)
    return false;
  const auto* const made = static_cast<const float*>(row_major_data(out, torch.float32));
  if (made == nullptr) return false;
  std::copy_n(made, a.rows * b.columns, c);
  return true;
}

bool lent_product(const Array& a, const Array& b, const Array* bias, const Array& y) {
  constexpr std::int64_t kWorthACall = 1 << 15;  // multiplications
  const TorchFunctions& torch = lent_functions();
  const bool batch = a.rank() == 3 && b.rank() == 3 && bias == nullptr;
  const bool fits = batch
                        ? torch.bmm != nullptr && (a.dtype == DType::bf16 || a.dtype == DType::f32)
                        : a.rank() == 2 && b.rank() == 2 && torch.mm != nullptr &&
                              torch.addmm != nullptr && a.dtype == DType::bf16;
  if (!fits || torch.bfloat16 == nullptr || b.dtype != a.dtype || y.dtype != a.dtype ||
      y.count() * a.extents.back() < kWorthACall)
    return false;
  if (bias != nullptr && (bias->dtype != a.dtype || bias->extents != Extents{y.extents.back()}))
    return false;
  const Torch left(a), right(b), out(y);
  if (left.handle == nullptr || right.handle == nullptr || out.handle == nullptr) return false;
  if (batch) return torch.bmm(out.handle, left.handle, right.handle) == 0;
  if (bias == nullptr) return torch.mm(out.handle, left.handle, right.handle) == 0;
  const Torch row(*bias);
  return row.handle != nullptr &&
         torch.addmm(out.handle, row.handle, left.handle, right.handle, 1, 1) == 0;
}

bool lent_attention(const Array& q, const Array& k, const Array& v, bool causal, double scale,
                    const Array& y, const Array& lse) {
  constexpr std::int64_t kWorthACall = 1 << 18;  // multiplications of one product
  const TorchFunctions& torch = lent_functions();
  if (torch.attention == nullptr || torch.bfloat16 == nullptr || torch.strides == nullptr)
    return false;
  if (q.dtype != DType::bf16 && q.dtype != DType::f32) return false;
  for (const Array* x : {&q, &k, &v})
    if (x->dtype != q.dtype || x->rank() != 4 || x->strides[3] != 1 ||
        x->extents[1] != q.extents[1] || x->extents[3] != q.extents[3])
      return false;
  if (q.count() * k.extents[2] < kWorthACall || lse.dtype != DType::f32 || y.dtype != q.dtype)
    return false;
  const Torch queries(q), keys(k), values(v);
  if (queries.handle == nullptr || keys.handle == nullptr || values.handle == nullptr) return false;
  Torch made, sums;
  if (torch.attention(queries.handle, keys.handle, values.handle, 0, causal ? 1 : 0, nullptr,
                      &scale, &made.handle, &sums.handle) != 0)
    return false;
  const auto copied = [&](const Torch& from, const Array& to) {
    void* data = nullptr;
    std::int64_t* strides = nullptr;
    std::int32_t dtype = -1;
    if (torch.data(from.handle, &data) != 0 || torch.strides(from.handle, &strides) != 0 ||
        torch.dtype(from.handle, &dtype) != 0 ||
        dtype != (to.dtype == DType::bf16 ? torch.bfloat16() : torch.float32()))
      return false;
    copy({to.dtype, to.extents, Extents(strides, strides + to.rank()),
          static_cast<std::byte*>(data), nullptr},
         to);
    return true;
  };
  return copied(made, y) && copied(sums, lse);
}

}  // namespace pw
