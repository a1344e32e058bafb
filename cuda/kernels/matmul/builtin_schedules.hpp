// Internal to cuda/: the text of schedules.json from the repository.
#pragma once

#include <string_view>

namespace pw::cuda {

[[nodiscard]] std::string_view builtin_schedules();

}  // namespace pw::cuda
