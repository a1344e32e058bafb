// What the grammar takes at a place of a text: the words that may come next.
#pragma once

#include <string>
#include <vector>

#include "dsl/symbols.hpp"

namespace pw {

/// At the end of the tokens before `offset`, in the item that holds them; a word that ends at
/// `offset` is left out, as it is being written.
std::vector<std::string> expected_words(const SourceText& text, std::uint32_t offset);

}  // namespace pw
