// Syntax highlighting grammars for editors and Pygments, as files, all generated from
// dsl/syntax/lexical.hpp.
#pragma once

#include <string>

namespace pw::cli {

[[nodiscard]] std::string textmate_grammar();  ///< JSON, for VS Code and compatible editors
[[nodiscard]] std::string pygments_lexer();    ///< a Python module
[[nodiscard]] std::string emacs_words();       ///< an Emacs Lisp file

}  // namespace pw::cli
