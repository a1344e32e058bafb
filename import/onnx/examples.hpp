// Small models; tests read mutants of them.
#pragma once

#include <string>
#include <vector>

namespace pw::onnx {

[[nodiscard]] std::vector<std::string> example_models();

}  // namespace pw::onnx
