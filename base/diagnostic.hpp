// The one form of every message about user input: what went wrong, where, why, and what to do. A
// place is a span in a source text, a JSON pointer, or both.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tl/expected.hpp>

#include "base/source.hpp"

namespace pw {

enum class Severity { error, warning, note };

struct Label {
  Span span;
  std::string text;
};

struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;     ///< stable: "PW0123", or a match code "N08"
  std::string message;  ///< one sentence, lower case, no full stop
  Span span;            ///< primary place; may be invalid
  std::string place;    ///< a place outside a text: "graph.json at /nodes/3/op"; may be empty
  std::string label;    ///< text under the primary span
  std::vector<Label> secondary;
  std::vector<std::string> notes;
  std::string help;  ///< a hint, often a did-you-mean
};

using Diagnostics = std::vector<Diagnostic>;

template <class T>
using Result = tl::expected<T, Diagnostics>;
/// Success without a value, or the diagnostics of a failure: `return {};` is success.
using Status = Result<std::monostate>;

Diagnostic error_at(Span span, std::string_view code, std::string message, std::string help = {});
Diagnostic warning_at(Span span, std::string_view code, std::string message, std::string help = {});
Diagnostic error_in(std::string place, std::string_view code, std::string message,
                    std::string help = {});
tl::unexpected<Diagnostics> fail(Diagnostic diagnostic);
tl::unexpected<Diagnostics> fail(Span span, std::string_view code, std::string message,
                                 std::string help = {});
/// Forwards the diagnostics of a failed result: `if (!r) return forward(r);`
template <class T>
tl::unexpected<Diagnostics> forward(Result<T>& result) {
  return tl::unexpected<Diagnostics>(std::move(result.error()));
}
[[nodiscard]] bool has_errors(const Diagnostics& diagnostics);

struct RenderOptions {
  bool color = false;
  std::size_t limit = 20;  ///< further ones are counted in a last line
};

/// Renders diagnostics in the order of sources and positions, as rustc does: code,
/// file:line:column, the line with the span underlined, help.
std::string render(const Diagnostics& diagnostics, const SourceMap& sources,
                   RenderOptions options = {});

/// Returns the candidate nearest to `word` by edit distance, for did-you-mean hints; empty if none
/// is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace pw
