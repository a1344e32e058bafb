#include "pipeline/run/capabilities.hpp"

#include <fmt/format.h>

#include "codegen/toolchain.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/lt_library.hpp"
#include "cuda/device/nvrtc.hpp"
#include "engines/rank_library.hpp"
#include "engines/step_engine.hpp"
#include "viz/formats/graphviz.hpp"

namespace pw {

std::vector<Capability> list_capabilities() {
  std::vector<Capability> out;
  for (const StepEngineKind& engine : builtin_engines())
    out.push_back({"backend " + engine.name, "built in",
                   "pwr run --backend " + engine.name + ": " + engine.what});
  out.push_back({"NVRTC", cuda::Nvrtc::open().state(),
                 "pwr compile: CUDA sources to cubins; without it, sources only"});
  const cuda::DriverStatus driver = cuda::CudaDriver::probe();
  out.push_back({"CUDA driver", fmt::format("{}: {}", cuda::name(driver.state), driver.text),
                 "pwr run --backend cuda; without it, --driver host"});
  out.push_back({"cuBLASLt", cuda::LtLibrary::open().state(),
                 "pwr run --backend cuda: matmuls; without it, built-in kernels"});
  const std::string compiler = host_compiler();
  out.push_back({"C++ compiler", compiler.empty() ? "not found" : compiler,
                 "pwr run --backend cpu: row ops as compiled C++; without it, eager"});
  if (const RankLibrary* ranks = rank_library()) {
    out.push_back(
        {"MPI", ranks->mpi_state(),
         "pwr run --ranks mpi: processes of mpirun; without it, --ranks N in one process"});
    out.push_back({"NCCL", ranks->nccl_state(),
                   "pwr run --ranks nccl: processes of torchrun, one for each GPU"});
  }
  out.push_back({"Graphviz", viz::graphviz_state(),
                 "pwviz: .svg, .png and .pdf; without it, .html, .dot, .txt and .md"});
  return out;
}

Table capability_table(const std::vector<Capability>& capabilities) {
  Table table({"what", "state", "used for"});
  for (const Capability& row : capabilities) table.add({row.what, row.state, row.used_for});
  return table;
}

}  // namespace pw
