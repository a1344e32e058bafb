// Lays out lines and blocks: one line if it was one and fits, else a line for each part. Comments
// and single blank lines return to their places.
#pragma once

#include <string>
#include <vector>

#include "dsl/syntax/ast.hpp"

namespace pw {

inline constexpr std::size_t kLineWidth = 100;
inline constexpr char kBreak =
    '\x01';  ///< in a text: a space, or the first place to break a line that is too long

struct Layout {
  Span span;         ///< invalid: without a place of its own
  std::string text;  ///< the line, or the line that opens the block
  std::vector<Layout> parts = {};
  bool block = false;
  std::string close = "}";
  std::string prefix =
      {};  ///< "| " of a pattern's alternative; later lines are indented by its width
  std::string separator = " ";  ///< between parts on one line
};

/// Returns the whole text; `comments` in order.
std::string lay_out(const std::vector<Layout>& items, const std::vector<ast::Comment>& comments,
                    std::string_view source);

}  // namespace pw
