#include "cuda/device/nvrtc.hpp"

#include "cuda/kernels/emitter.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("nvrtc: registers and spills are read out of the log", "[cuda]") {
  const cuda::Usage usage = cuda::parse_usage(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "    16 bytes stack frame, 8 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Used 42 registers, used 0 barriers, 16 bytes cumulative stack size\n");
  CHECK(usage.registers == 42);
  CHECK(usage.stack == 16);
  CHECK(usage.spill_stores == 8);
  CHECK(usage.spill_loads == 24);
  CHECK(usage.spills());
  CHECK(cuda::parse_usage("nothing of use").registers == -1);
  CHECK_FALSE(cuda::parse_usage("").spills());
}

TEST_CASE("nvrtc: the state has its path, or why it is missing", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  CHECK_FALSE(nvrtc.state().empty());
  CHECK(nvrtc.present() == !nvrtc.version().empty());
}

TEST_CASE("nvrtc: a wrong source is refused with the compiler's words", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  const auto cubin = nvrtc.compile("extern \"C\" __global__ void k() { undeclared(); }", "k");
  REQUIRE_FALSE(cubin);
  if (!nvrtc.present()) {
    CHECK(cubin.error().front().code == "PW1220");
    WARN("SKIPPED: NVRTC is " << nvrtc.state());
    return;
  }
  CHECK(cubin.error().front().code == "PW1221");
  CHECK(cubin.error().front().message.find("undeclared") != std::string::npos);
}

TEST_CASE("nvrtc: the prelude compiles, and equal sources give equal cubins", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const std::string source = std::string(cuda::prelude()) +
                             "extern \"C\" __global__ void k(float* y) { y[threadIdx.x] = "
                             "pw_pow(pw_sin(pw_tanh(pw_round_f16(y[threadIdx.x]))), "
                             "pw_cos(y[threadIdx.x])); }";
  for (const bool strict : {false, true}) {
    cuda::Target target;
    target.strict = strict;
    const auto a = nvrtc.compile(source, "k", target), b = nvrtc.compile(source, "k", target);
    REQUIRE((a && b));
    CHECK(a->bytes == b->bytes);
    CHECK(a->usage.registers > 0);
    CHECK_FALSE(a->usage.spills());
  }
}
