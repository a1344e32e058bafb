// Exports the command doctor: what this machine has, and what it is used for.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backends/cuda/cuda_driver.hpp"
#include "backends/cuda/lt_library.hpp"
#include "backends/cuda/nvrtc.hpp"
#include "backends/toolchain.hpp"
#include "cli/commands.hpp"
#include "runtime/step_engine.hpp"
#include "viz/graphviz.hpp"

namespace pw::cli {
namespace {

void run_doctor(const Options& options) {
  Table table({"what", "state", "used for"});
  for (const StepEngineKind& engine : builtin_engines())
    table.add({"backend " + engine.name, "built in",
               "pwr run --backend " + engine.name + ": " + engine.what});
  cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  table.add(
      {"NVRTC", nvrtc.state(), "pwr compile: CUDA sources to cubins; without it, sources only"});
  const cuda::DriverStatus driver = cuda::CudaDriver::probe();
  table.add({"CUDA driver", fmt::format("{}: {}", cuda::name(driver.state), driver.text),
             "pwr run --backend cuda; without it, --driver host"});
  table.add({"cuBLASLt", cuda::LtLibrary::open().state(),
             "pwr run --backend cuda: matrix products; without it, kernels of our own"});
  std::string compiler = host_compiler();
  table.add({"C++ compiler", compiler.empty() ? "not found" : compiler,
             "pwr run --backend cpu: row ops as compiled C++; without it, eager"});
  table.add({"Graphviz", viz::graphviz_state(),
             "pwviz: .svg, .png and .pdf; without it, .html, .dot, .txt and .md"});
  table.add({"piecewise.toml", options.config.empty() ? "none" : options.config,
             "default values of options, from this folder or above it"});
  print_out(table.print(options.format));
}

}  // namespace

void add_doctor_command(CLI::App& app, const Options& options) {
  auto* sub = app.add_subcommand(
      "doctor", "Say what this machine has: backends, CUDA compiler, C++ compiler");
  sub->callback([&options] { run_doctor(options); });
}

}  // namespace pw::cli
