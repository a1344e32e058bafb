// The frames between a program and the Python process that runs its host functions
// (python_functions.py): texts of calls and of what comes back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/host_functions.hpp"

namespace pw {

/// The program that the process runs.
[[nodiscard]] std::string_view python_functions_program();

/// The text of a call, and the operands whose bytes follow it, in order.
struct PythonCallText {
  std::string text;
  std::vector<const TensorView*> sent;
};
[[nodiscard]] PythonCallText python_call_text(const HostCall& call, const std::string& function);

/// What the process says.
struct PythonAnswer {
  struct Array {
    std::string dtype;  ///< numpy's name
    Extents extents;
  };
  std::string error, place;            ///< what went wrong, and where in the file; or empty
  std::vector<std::string> functions;  ///< of the file, at the start
  std::vector<Array> arrays;           ///< whose bytes follow
};
/// A text of another form is an answer with an error.
[[nodiscard]] PythonAnswer read_python_answer(std::string_view text);

/// The numpy dtype that holds a dtype; bits where numpy has none.
[[nodiscard]] std::string_view numpy_dtype(DType dtype);

}  // namespace pw
