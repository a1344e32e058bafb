// Calls a BLAS that the process has already loaded: finds its symbols by dlsym, maps row-major
// operands to its column-major interface (c' = b' · a'), and checks that they fit (dtype, unit
// stride in one direction, 32-bit extents). Invariant: without a lent library, or with operands
// that do not fit, nothing is called and the result is false. The cost of the checks is constant.
#include "tensor/linalg/blas.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include <dlfcn.h>

#include "tensor/linalg/panels.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

using Int = int;  // LP64 interface: 32-bit integers
template <class Scalar>
using Fortran = void(const char* transa, const char* transb, const Int* m, const Int* n,
                     const Int* k, const Scalar* alpha, const Scalar* a, const Int* lda,
                     const Scalar* b, const Int* ldb, const Scalar* beta, Scalar* c,
                     const Int* ldc);
/// https://www.intel.com/content/www/us/en/docs/onemkl/developer-reference-c
using Bf16 = void(Int layout, Int transa, Int transb, Int m, Int n, Int k, float alpha,
                  const void* a, Int lda, const void* b, Int ldb, float beta, float* c, Int ldc);
constexpr Int kRowMajor = 101, kPlain = 111, kTransposed = 112, kPacked = 151, kRight = 162;
using PackedSize = std::size_t(Int operand, Int m, Int n, Int k);
using Pack = void(Int layout, Int operand, Int trans, Int m, Int n, Int k, float alpha,
                  const float* b, Int ldb, float* packed);
using Compute = void(Int layout, Int transa, Int transb, Int m, Int n, Int k, const float* a,
                     Int lda, const float* b, Int ldb, float beta, float* c, Int ldc);

struct Blas {
  Fortran<float>* sgemm = nullptr;
  Fortran<double>* dgemm = nullptr;
  Bf16* bf16 = nullptr;
  PackedSize* packed_size = nullptr;
  Pack* pack = nullptr;
  Compute* compute = nullptr;
  bool operator==(const Blas&) const = default;
};

Blas& found_blas() {
  static Blas blas;
  return blas;
}

/// Returns the lent functions. None in a forked process, whose calls could wait for threads that
/// only its parent has.
const Blas& lent() {
  static const Blas none;
  return in_forked_process() ? none : found_blas();
}

/// How an operand is passed to BLAS: row by row, or as a transpose.
struct Operand {
  bool transposed = false;
  Int step = 0;  ///< between rows, or between columns if transposed
};

bool operand_of(const Matrix& m, Operand& out) {
  constexpr std::int64_t kMost = std::numeric_limits<Int>::max();
  if (m.rows > kMost || m.columns > kMost) return false;
  out.transposed = m.column_step != 1 && (m.row_step == 1 || m.rows == 1);
  const std::int64_t unit = out.transposed ? m.row_step : m.column_step,
                     step = out.transposed ? m.column_step : m.row_step,
                     length = out.transposed ? m.rows : m.columns,
                     count = out.transposed ? m.columns : m.rows;
  if (unit != 1 && length > 1) return false;
  if (count > 1 && (step < length || step > kMost)) return false;
  out.step = static_cast<Int>(count > 1 ? step : std::max<std::int64_t>(length, 1));
  return true;
}

bool takes(const Matrix& a, const Matrix& b, Operand& left, Operand& right) {
  constexpr std::int64_t kWorthACall = 1 << 12;  // multiplications
  return a.columns > 0 && a.rows * a.columns * b.columns >= kWorthACall && operand_of(a, left) &&
         operand_of(b, right);
}

/// Fills c with the bias, if any. Returns the factor of c's contents.
template <class Scalar>
Scalar start(const Matrix& a, std::int64_t columns, const Scalar* bias, Scalar* c) {
  if (bias == nullptr) return 0;
  for (std::int64_t i = 0; i < a.rows; ++i) std::copy_n(bias, columns, c + i * columns);
  return 1;
}

/// Fortran's matrices are column-major, so c' = b' · a'.
template <class Scalar>
bool call(Fortran<Scalar>* function, DType dtype, const Matrix& a, const Matrix& b,
          const Scalar* bias, Scalar* c) {
  Operand left, right;
  if (function == nullptr || a.dtype != dtype || b.dtype != dtype || !takes(a, b, left, right))
    return false;
  const Scalar one = 1, added = start(a, b.columns, bias, c);
  const Int rows = static_cast<Int>(a.rows), columns = static_cast<Int>(b.columns),
            depth = static_cast<Int>(a.columns);
  function(right.transposed ? "T" : "N", left.transposed ? "T" : "N", &columns, &rows, &depth, &one,
           reinterpret_cast<const Scalar*>(b.data), &right.step,
           reinterpret_cast<const Scalar*>(a.data), &left.step, &added, c, &columns);
  return true;
}

}  // namespace

Status lend_blas(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr)
    return fail(
        error_in(library, "PW1222", "the library is not loaded, so its products cannot be used"));
  Blas found;
  found.sgemm = reinterpret_cast<Fortran<float>*>(::dlsym(handle, "sgemm_"));
  found.dgemm = reinterpret_cast<Fortran<double>*>(::dlsym(handle, "dgemm_"));
  found.bf16 = reinterpret_cast<Bf16*>(::dlsym(handle, "cblas_gemm_bf16bf16f32"));
  found.packed_size = reinterpret_cast<PackedSize*>(::dlsym(handle, "cblas_sgemm_pack_get_size"));
  found.pack = reinterpret_cast<Pack*>(::dlsym(handle, "cblas_sgemm_pack"));
  found.compute = reinterpret_cast<Compute*>(::dlsym(handle, "cblas_sgemm_compute"));
  if (found.sgemm == nullptr && found.dgemm == nullptr)
    return fail(error_in(library, "PW1222", "the library has neither sgemm_ nor dgemm_"));
  static std::mutex lending;  // several threads may look at once; they find the same
  const std::lock_guard<std::mutex> lock(lending);
  if (!(found == found_blas())) found_blas() = found;
  return {};
}

bool blas_gemm(const Matrix& a, const Matrix& b, const float* bias, float* c) {
  Operand left, right;
  if (a.dtype != DType::bf16 || b.dtype != DType::bf16 || lent().bf16 == nullptr)
    return call(lent().sgemm, DType::f32, a, b, bias, c);
  if (!takes(a, b, left, right)) return false;
  lent().bf16(kRowMajor, left.transposed ? kTransposed : kPlain,
              right.transposed ? kTransposed : kPlain, static_cast<Int>(a.rows),
              static_cast<Int>(b.columns), static_cast<Int>(a.columns), 1, a.data, left.step,
              b.data, right.step, start(a, b.columns, bias, c), c, static_cast<Int>(b.columns));
  return true;
}

bool blas_gemm(const Matrix& a, const Matrix& b, double* c) {
  return call<double>(lent().dgemm, DType::f64, a, b, nullptr, c);
}

BlasPanels blas_panels(std::int64_t rows, const Matrix& b) {
  constexpr std::int64_t kMost = std::numeric_limits<Int>::max();
  const Blas& blas = lent();
  Operand right;
  if (blas.packed_size == nullptr || blas.pack == nullptr || blas.compute == nullptr ||
      b.dtype != DType::f32 || rows <= 0 || rows > kMost || b.rows <= 0 || b.columns <= 0 ||
      !operand_of(b, right))
    return {};
  const Int m = static_cast<Int>(rows), n = static_cast<Int>(b.columns),
            k = static_cast<Int>(b.rows);
  const std::size_t bytes = blas.packed_size(kRight, m, n, k);
  BlasPanels out{rows, b.rows, b.columns,
                 aligned_floats(static_cast<std::int64_t>(bytes / sizeof(float) + 1))};
  blas.pack(kRowMajor, kRight, right.transposed ? kTransposed : kPlain, m, n, k, 1,
            reinterpret_cast<const float*>(b.data), right.step, out.data.get());
  return out;
}

bool blas_gemm(const Matrix& a, const BlasPanels& b, const float* bias, float* c) {
  Operand left;
  if (lent().compute == nullptr || b.data == nullptr || a.dtype != DType::f32 || a.rows != b.rows ||
      a.columns != b.depth || !operand_of(a, left))
    return false;
  const Int m = static_cast<Int>(b.rows), n = static_cast<Int>(b.columns),
            k = static_cast<Int>(b.depth);
  const float added = start(a, b.columns, bias, c);
  lent().compute(kRowMajor, left.transposed ? kTransposed : kPlain, kPacked, m, n, k,
                 reinterpret_cast<const float*>(a.data), left.step, b.data.get(), n, added, c, n);
  return true;
}

}  // namespace pw
