#include "python/dlpack.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

// The ABI of a capsule "dltensor" (https://dmlc.github.io/dlpack/latest/c_api.html).
struct DlDevice {
  std::int32_t type, id;
};
struct DlType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t dims;
  DlType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};

enum DlCode : std::uint8_t {
  kInt = 0,
  kUnsigned = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4M3 = 10,
  kFloat8E5M2 = 12,
};
constexpr std::int32_t kCpu = 1, kPinned = 3;

struct Kind {
  std::uint8_t code, bits;
};

/// The kinds that can hold a dtype; the first is its own.
std::vector<Kind> kinds_of(DType dtype) {
  switch (dtype) {
    case DType::b8: return {{kBool, 8}};
    case DType::i8: return {{kInt, 8}};
    case DType::i32: return {{kInt, 32}};
    case DType::i64: return {{kInt, 64}};
    case DType::u8: return {{kUnsigned, 8}};
    case DType::f8e4m3: return {{kFloat8E4M3, 8}, {kUnsigned, 8}};
    case DType::f8e5m2: return {{kFloat8E5M2, 8}, {kUnsigned, 8}};
    case DType::f16: return {{kFloat, 16}};
    case DType::bf16: return {{kBfloat, 16}, {kUnsigned, 16}};
    case DType::f32: return {{kFloat, 32}};
    case DType::f64: return {{kFloat, 64}};
  }
  return {};
}

std::string shown(DlType type) {
  const char* const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string name =
      type.code < std::size(names) ? names[type.code] : fmt::format("code {} of ", type.code);
  return fmt::format("{}{}{}", name, type.bits,
                     type.lanes == 1 ? "" : fmt::format(" of {} lanes", type.lanes));
}

void check_type(DlType type, DType dtype, const std::string& what) {
  const std::vector<Kind> kinds = kinds_of(dtype);
  for (const Kind& kind : kinds)
    if (kind.code == type.code && kind.bits == type.bits && type.lanes == 1) return;
  throw mistake("PW1411",
                fmt::format("{} is a {}, which needs a tensor of {}, not of {}", what, name(dtype),
                            shown({kinds[0].code, kinds[0].bits, 1}), shown(type)));
}

Extents extents_of(const DlTensor& tensor) { return {tensor.shape, tensor.shape + tensor.dims}; }

std::vector<std::int64_t> strides_of(const DlTensor& tensor, const Extents& extents) {
  if (tensor.strides != nullptr) return {tensor.strides, tensor.strides + tensor.dims};
  std::vector<std::int64_t> out(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) out[i - 1] = out[i] * extents[i];
  return out;
}

/// Copies from dimension `dim` on, and advances `to` by the bytes written.
void copy_from(const std::byte* from, std::byte*& to, const Extents& extents,
               const std::vector<std::int64_t>& strides, std::size_t dim, std::int64_t bytes) {
  if (dim == extents.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    to += bytes;
    return;
  }
  for (std::int64_t i = 0; i < extents[dim]; ++i)
    copy_from(from + i * strides[dim] * bytes, to, extents, strides, dim + 1, bytes);
}

void check_device(const py::handle& given, const std::string& what) {
  const auto [type, id] =
      given.attr("__dlpack_device__")().cast<std::pair<std::int32_t, std::int32_t>>();
  if (type != kCpu && type != kPinned)
    throw mistake(
        "PW1411",
        fmt::format("{} is in the memory of a device (DLPack type {}); pass a copy in CPU memory",
                    what, type));
}

}  // namespace

Tensor tensor_of_dlpack(const py::handle& array, DType dtype, const std::string& what) {
  check_device(array, what);
  // PyTorch exports the memory of a tensor whose elements have the opposite signs of its memory.
  const py::object given = py::hasattr(array, "resolve_neg")
                               ? py::object(array.attr("resolve_neg")())
                               : py::reinterpret_borrow<py::object>(array);
  const py::object capsule = given.attr("__dlpack__")();  // its destructor ends the export
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") == 0)
    throw mistake("PW1411", what + ": its __dlpack__() did not return a capsule named dltensor");
  const auto& tensor =
      *static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  check_type(tensor.type, dtype, what);
  Tensor out(dtype, extents_of(tensor));
  std::byte* to = out.data();
  const auto* from = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  copy_from(from, to, out.extents(), strides_of(tensor, out.extents()), 0, tensor.type.bits / 8);
  return out;
}

}  // namespace pw::python
