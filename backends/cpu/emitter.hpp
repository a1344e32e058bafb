// Emits a row program as header-free C++: a vectorisable loop for each phase of a row; the caller
// iterates over rows. Values that two phases share are buffered between them. Identifiers are
// generated: no name or string of a graph gets into the text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cpu {

struct EmitOptions {
  /// Every rounding point is kept and reductions follow the tree of the prelude: the bits of the
  /// interpreter in single precision. Otherwise round trips through bf16 and f16 inside a kernel
  /// are dropped, and additions run in the order that the vector unit likes.
  bool strict = false;
};

/// The C name of the one function of a kernel's source:
/// void (void* const* pointers, const long long* params, long long begin, long long end).
/// Pointers in the order of the row program's arguments, params as its `params`; [begin, end) are
/// rows. Where the program has checks, an int behind the arguments becomes 1 when one fails.
inline constexpr const char* kEntry = "pw_rows";

/// The kernel alone, without comments: equal programs have equal text. Needs `prologue` and the
/// prelude before it.
[[nodiscard]] std::string emit(const rows::RowProgram& program, const EmitOptions& options);
/// A whole source: prologue, prelude, kernel.
[[nodiscard]] std::string source_file(std::string_view kernel);
/// What every kernel is compiled with, on any compiler that is found. `native`: for this machine's
/// own processor.
[[nodiscard]] std::vector<std::string> compiler_flags(const EmitOptions& options, bool native);

}  // namespace pw::cpu
