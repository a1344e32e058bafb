// The capabilities of this machine: backends, CUDA compiler and driver, C++ compiler.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/table.hpp"

namespace pw {

struct Capability {
  std::string what, state, used_for;
};
[[nodiscard]] std::vector<Capability> list_capabilities();
[[nodiscard]] Table capability_table(const std::vector<Capability>& capabilities);

}  // namespace pw
