// The patterns by which editors and Pygments colour rules, as files: all made from
// dsl/syntax/lexical.hpp.
#pragma once

#include <string>

namespace pw::cli {

[[nodiscard]] std::string
textmate_grammar();                          ///< JSON, for VS Code and whatever reads its grammars
[[nodiscard]] std::string pygments_lexer();  ///< a Python module
[[nodiscard]] std::string emacs_words();     ///< an Emacs Lisp file

}  // namespace pw::cli
