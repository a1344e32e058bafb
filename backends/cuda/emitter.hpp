// From a row program to CUDA C++ without headers: one thread a row, no barriers, no shuffles. Names
// in it are made here; nothing of a graph's names or strings gets in, but for the op's name in a
// comment, reduced to letters, digits and _.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/rowprogram/row_program.hpp"

namespace pw::cuda {

struct Kernel {
  std::string name;  ///< k_ and a hash of the program: equal programs have equal names
  std::string op;    ///< for people
  std::vector<TypeId>
      arguments;  ///< pointers, in order: operands that exist and are no literals, then results
  std::size_t results = 0;  ///< how many of them, at the end
  std::vector<DimId>
      params;          ///< `long long` each, after the pointers: rows, then other symbol values
  std::string source;  ///< the kernel alone; needs the prelude before it
};

[[nodiscard]] Kernel emit(const rows::RowProgram& program);
/// The text that stands before kernels.
[[nodiscard]] std::string_view prelude();
/// A whole .cu file of one kernel.
[[nodiscard]] std::string source_file(const Kernel& kernel);
/// Letters, digits and _ are kept, anything else becomes _; at most 64 characters.
[[nodiscard]] std::string sanitised(std::string_view text);

}  // namespace pw::cuda
