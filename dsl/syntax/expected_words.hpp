// The words that the grammar accepts at a place of a text.
#pragma once

#include <string>
#include <vector>

#include "dsl/symbols.hpp"

namespace pw {

/// Returns the words allowed after the tokens before `offset`, in the item that holds them. A word
/// that ends at `offset` is ignored, since it is being written.
std::vector<std::string> expected_words(const SourceText& text, std::uint32_t offset);

}  // namespace pw
