#include <fmt/format.h>

#include "backends/backend.hpp"

namespace pw {

#define PW_BACKEND(name) BackendKind name##_backend();
#include "backends/backends.def"
#undef PW_BACKEND

Status Executable::run_ranks(std::span<const RankTensors> ranks, const RunContext& context) {
  if (ranks.size() == 1) return run(ranks[0].inputs, ranks[0].outputs, context);
  return fail(
      error_in("backend", "PW1201", fmt::format("runs one rank per process, not {}", ranks.size()),
               "use eager, which runs several in one process; `pwr doctor` lists the backends"));
}

std::vector<BackendKind> backend_kinds() {
  return {
#define PW_BACKEND(name) name##_backend(),
#include "backends/backends.def"
#undef PW_BACKEND
  };
}

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const BackendKind& kind : backend_kinds()) backends.push_back(kind.make({}));
  return backends;
}

}  // namespace pw
