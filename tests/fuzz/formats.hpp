// Every text format that the project reads, with examples and its reader, for random mutants
// (parsers_test.cpp) and libFuzzer (libfuzzer.cpp).
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/context.hpp"

namespace pw::test {

/// The result of reading a text: nothing, or the reason for its refusal.
using Read = Status;
/// Reads a text in a context that holds the op library. Throws std::logic_error where what was read
/// does not hold together.
using Reader = std::function<Read(const ContextPtr&, const std::string&)>;

struct Format {
  std::string name;  ///< a word
  std::vector<std::string> texts;
  Reader read;
  bool uses_context = false;  ///< which then grows from text to text
};

/// A context with the op library.
ContextPtr fresh_context();
std::vector<Format> formats();
/// Tokens of all formats, and bytes that parsers stumble over.
std::vector<std::string> foreign_tokens(const std::vector<Format>& formats);
/// A refusal has a code and a location inside the text that was read; throws std::logic_error
/// where it does not.
void check_refusal(const Diagnostics& errors, const Context& context);

}  // namespace pw::test
