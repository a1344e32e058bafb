// Exports the explicit list of backends.
#include "backends/backend.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter.hpp"

namespace pw {

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_eager());
  backends.push_back(make_interpreter());
  return backends;
}

}  // namespace pw
