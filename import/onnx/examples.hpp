// Small models, of which tests read mutants.
#pragma once

#include <string>
#include <vector>

namespace pw::onnx {

[[nodiscard]] std::vector<std::string> example_models();

}  // namespace pw::onnx
