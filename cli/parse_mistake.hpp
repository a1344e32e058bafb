// What is wrong with a command line, as a diagnostic with a did-you-mean.
#pragma once

#include "base/diagnostic.hpp"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace pw::cli {

/// Of a parse that has failed.
[[nodiscard]] Diagnostic parse_mistake(const CLI::App& program, const CLI::ParseError& error);

}  // namespace pw::cli
