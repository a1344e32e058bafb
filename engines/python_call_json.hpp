// The message format between a program and the Python process that runs its host functions
// (python_functions.py): calls and answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/host_functions.hpp"

namespace pw {

/// Returns the source of the program that the process runs.
[[nodiscard]] std::string_view python_functions_program();

/// The text of a call, and the operands whose bytes follow it, in order.
struct PythonCallText {
  std::string text;
  std::vector<const TensorView*> sent;
};
[[nodiscard]] PythonCallText python_call_text(const HostCall& call, const std::string& function);

/// An answer of the process.
struct PythonAnswer {
  struct Array {
    std::string dtype;  ///< numpy's name
    Extents extents;
  };
  std::string error, place;            ///< the error and its place in the file; or empty
  std::vector<std::string> functions;  ///< functions of the file, in the first answer
  std::vector<Array> arrays;           ///< arrays whose bytes follow
};
/// Parses an answer; malformed text gives an answer with an error.
[[nodiscard]] PythonAnswer read_python_answer(std::string_view text);

/// Returns the numpy dtype that holds a dtype; an integer type of equal size if numpy lacks it.
[[nodiscard]] std::string_view numpy_dtype(DType dtype);

}  // namespace pw
