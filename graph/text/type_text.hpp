// Reads the text of types and dims: "bf16[n, 4096]", "2*n + 1", "?". The inverse of the printer;
// used by graph.json and FX. Never throws; bounded in length, nesting and size of numbers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "graph/context.hpp"

namespace pw {

inline constexpr std::int64_t kMaxDim = std::int64_t{1} << 40;  ///< of one static dim
inline constexpr std::size_t kMaxRank = 32;
inline constexpr std::size_t kMaxDimText = 16384;  ///< bytes of one dim
inline constexpr int kMaxDimNesting = 32;          ///< parentheses in one dim

/// Error and the byte of the text where it occurred; the caller has the text's own place.
struct TextError {
  std::size_t offset = 0;
  std::string message;
  std::string help;
};
template <class T>
using TextResult = tl::expected<T, TextError>;

/// Predicate on symbol names, which may be empty. Dims are sums, differences, products, `//`, `%`
/// and powers of symbols and integers, with optional parentheses.
using KnownSymbol = std::function<bool(std::string_view)>;
TextResult<DimId> parse_dim(Dims& dims, std::string_view text, const KnownSymbol& known = {});

/// Parses "bf16[n, 4096]", "f32[]", or "?" for unknown. Dtype names are the language's, and
/// PyTorch's "f8e4m3fn".
TextResult<TypeId> parse_type(Context& context, std::string_view text,
                              const KnownSymbol& known = {});

/// Parses a type of FX: skips stride and device after the shape ("f32[s0, 64][64, 1]cuda:0").
TextResult<TypeId> parse_fx_type(Context& context, std::string_view text);

}  // namespace pw
