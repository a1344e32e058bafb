// Emits a row program as header-free C++: a vectorisable loop for each phase of a row, called once
// per row. Values that two phases share are buffered between them. Identifiers are generated, so no
// name or string of a graph gets into the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

struct EmitOptions {
  /// Strict: keep every rounding point and follow the prelude's reduction tree, which gives the
  /// bits of the single-precision interpreter. Otherwise round trips through bf16 and f16 inside a
  /// kernel are dropped, and sums use vector-friendly order.
  bool strict = false;
  /// Exact: keep every rounding point of an elementwise computation, in any order of sums. For
  /// graphs that compare what they compute: y == amax(y) must hold for the same y on both sides.
  bool exact = false;
};

/// C name of the function in a kernel's source: void (void* const* pointers, const long long*
/// params, long long begin, long long end). Pointers follow the row program's arguments, params its
/// `params`; [begin, end) are rows. If the program has checks, one more pointer after the arguments
/// addresses an int that is set to 1 when a check fails.
inline constexpr const char* kEntry = "pw_rows";

/// How a kernel's rows may be divided among its calls.
struct RowParts {
  std::int64_t unit = 1;    ///< the first row of a call, and the one after the last, are multiples
  std::int64_t fewest = 1;  ///< units that a call should have, if there are as many
};
/// Returns the kernel alone, without comments; equal programs have equal text. It needs `prologue`
/// and the prelude before it. `parts` receives what its calls must heed.
[[nodiscard]] std::string emit(const rows::RowProgram& program, const EmitOptions& options,
                               RowParts* parts = nullptr);
/// Returns true if the text was emitted with `exact`.
[[nodiscard]] bool is_exact(std::string_view kernel);
/// Returns a complete source: prologue, prelude, kernel.
[[nodiscard]] std::string source_file(std::string_view kernel);
/// Returns the flags for every kernel, for any supported compiler. `native`: optimise for this
/// machine's processor.
[[nodiscard]] std::vector<std::string> compiler_flags(const EmitOptions& options, bool native);

}  // namespace pw::cpu
