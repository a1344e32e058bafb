// Converts a command-line error to a diagnostic with a suggestion.
#pragma once

#include "base/diagnostic.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace pw::cli {

/// Returns the diagnostic of a failed parse.
[[nodiscard]] Diagnostic parse_mistake(const CLI::App& program, const CLI::ParseError& error);

}  // namespace pw::cli
