// Exports the explicit list of backends, and what an executable can do by default.
#include <fmt/format.h>

#include "backends/backend.hpp"
#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter.hpp"

namespace pw {

Result<std::monostate> Executable::run_ranks(std::span<const RankTensors> ranks,
                                             const RunContext& context) {
  if (ranks.size() == 1) return run(ranks[0].inputs, ranks[0].outputs, context);
  return fail(error_in("backend", "PW1201",
                       fmt::format("runs one rank a process, not {}", ranks.size()),
                       "the backends eager, cpu and interpreter run several ranks in one process"));
}

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_eager());
  backends.push_back(make_interpreter());
  backends.push_back(std::make_unique<CpuBackend>());
  return backends;
}

}  // namespace pw
