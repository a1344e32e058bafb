// Chains of casts among all dtypes: kernels of the device, run on the host, round at each of them.
#include "tests/backends_cpu/cast_chains.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

TEST_CASE("cuda: chains of casts have the interpreter's bits", "[cuda]") {
  if (no_host_compiler()) return;
  const ContextPtr context = library();
  for (const std::uint64_t seed : {1, 2}) {
    const CastChains chains = cast_chains(seed);
    INFO("seed " << seed << "\n" << chains.text);
    const Subject s = subject(context, "casts", "graph {\n" + chains.text + "\n}");
    const std::vector<cuda::Kernel> kernels{s.kernel};
    const auto host = cached_kernels(kernels);
    if (!host) FAIL(host.error().front().message);
    CHECK(difference(run_kernel(*host, s, chains.inputs, {}),
                     run_interpreter(s, chains.inputs, {}, false)) == "");
  }
}
