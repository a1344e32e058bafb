// Graphs on a caller's stream: the same numbers from the emulator, from launches through the CUDA
// driver, and from a captured graph that is replayed; and the calls that a capture forbids.
#include "cuda/stream_program.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "backends/eager/eager.hpp"
#include "cuda/device/host_driver.hpp"
#include "exec/runner.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"
#include "tests/distance.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr double kClose = 1e-4;
constexpr const char* kText = R"(graph g {
  symbol n in 1..64
  in x: f32[n, 32], w: f32[32, 48], b: f32[48]
  y = mm(x, w)
  z = add(y, b)
  e = exp(sub(z, amax(z){dim = -1, keepdim = true}))
  p = div(e, sum(e){dim = -1, keepdim = true})
  q = mul(p, z)
  out q, z
})";

/// Kernels that the stand-in runs on the emulator, by name.
std::map<std::string, cuda::Kernel>
    loaded_kernels;  // NOLINT: a C callback has no other way to them
cuda::HostKernels* running_kernels = nullptr;

int parameter_count(const char* name) {
  const cuda::Kernel& kernel = loaded_kernels.at(name);
  return static_cast<int>(kernel.arguments.size() + kernel.params.size());
}
void run_kernel(const char* name, const std::uint64_t* values) {
  const std::size_t count = loaded_kernels.at(name).arguments.size();
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < count; ++i) pointers.push_back(reinterpret_cast<void*>(values[i]));
  std::vector<std::int64_t> params;
  for (std::size_t i = 0; i < loaded_kernels.at(name).params.size(); ++i)
    params.push_back(static_cast<std::int64_t>(values[count + i]));
  REQUIRE(running_kernels->run(name, pointers, params));
}

/// A graph, its inputs, and what eager computes.
struct Case {
  ContextPtr context = library();
  Graph graph = need(parse_graph(context, kText, "g"), *context);
  Symbols symbols{{"n", 7}};
  std::vector<Tensor> inputs, want;

  Case() : inputs(inputs_of(graph, symbols, 3)) { compute(); }
  void compute() {
    const auto eager = make_eager();
    const auto executable = need(eager->compile(graph), *context);
    want.clear();
    std::vector<TensorView> in, out;
    for (const Tensor& t : inputs) in.push_back(t.view());
    for (const ValueId v : graph.outputs()) {
      want.emplace_back(DType::f32, need(extents_of(graph, v, symbols), *context));
      out.push_back(want.back().view());
    }
    REQUIRE(executable->run(in, out, {symbols, nullptr, 0}));
  }
};

cuda::Address address(const Tensor& tensor) {
  return reinterpret_cast<cuda::Address>(tensor.data());
}

/// Memory of a call: the host's, which both drivers can use.
struct Memory {
  std::vector<Tensor> outputs;
  std::vector<cuda::Address> in, out;
  Tensor arena;

  Memory(const Case& c, const cuda::StreamCall& call)
      : arena(DType::u8, {call.arena_bytes() + 256}) {
    for (const Tensor& t : c.inputs) in.push_back(address(t));
    for (const Extents& extents : call.outputs()) outputs.emplace_back(DType::f32, extents);
    for (const Tensor& t : outputs) out.push_back(address(t));
  }
  [[nodiscard]] cuda::Address arena_at() const { return (address(arena) + 255) / 256 * 256; }
  [[nodiscard]] double difference(const Case& c) const {
    double worst = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto got = values_of(outputs[i].view()), want = values_of(c.want[i].view());
      for (std::size_t k = 0; k < want.size(); ++k)
        worst = std::max(worst, got[k] == got[k] ? std::abs(got[k] - want[k]) : HUGE_VAL);
    }
    return worst;
  }
};

}  // namespace

TEST_CASE("a stream's program: the emulator computes what eager computes", "[cuda]") {
  if (host_compiler().empty()) {
    WARN("SKIPPED: no C++ compiler on PATH");
    return;
  }
  const Case c;
  cuda::HostDriver driver(cached());
  CHECK(cuda::StreamProgram::unsupported(c.graph, driver, {c.symbols}).empty());
  const auto program = need(cuda::StreamProgram::make(c.graph, driver, {c.symbols}), *c.context);
  const auto call = need(program->at(c.symbols), *c.context);
  CHECK(call->launches() >= 2);
  CHECK(need(program->at(c.symbols), *c.context) == call);
  const std::int64_t allocated = driver.allocated();
  double differences[3] = {};
  const auto run = [&](double* difference) {
    const Memory memory(c, *call);
    const bool done = call->run(driver, memory.in, memory.out, memory.arena_at(), 0).has_value();
    *difference = done ? memory.difference(c) : HUGE_VAL;
  };
  run(&differences[0]);
  std::thread one(run, &differences[1]), two(run, &differences[2]);
  one.join();
  two.join();
  for (const double difference : differences) CHECK(difference < kClose);
  CHECK(driver.allocated() == allocated);
}

TEST_CASE("a stream's program: what a device cannot run is named", "[cuda]") {
  const ContextPtr context = library();
  const Graph graph = need(parse_graph(context, R"(graph g {
    in x: f32[8, 8], i: i64[3]
    y = relu(x)
    z = embedding(y, i)
    s = cumsum(z){dim = 0}
    out s
  })",
                                       "g"),
                           *context);
  const cuda::HostDriver driver(cached());
  const auto found = cuda::StreamProgram::unsupported(graph, driver, {{}});
  REQUIRE(found.size() == 2);
  CHECK(found[0].node == "z");
  CHECK(found[0].reason == "its kernel cannot report a bad index or divisor");
  CHECK(found[1].node == "s");
  CHECK(found[1].reason == "the device has no kernel for it");
}

TEST_CASE("a stream's program: launched and captured through the CUDA driver", "[cuda]") {
  const StandIn library;
  if (!library.present()) return;
  if (!cuda::Nvrtc::open().present()) {
    WARN("SKIPPED: no NVRTC, so there is no cubin to load");
    return;
  }
  Case c;
  library.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
      "stand_in_kernels")(&parameter_count, &run_kernel);
  const auto driver = library.driver();
  const auto program = need(cuda::StreamProgram::make(c.graph, *driver, {c.symbols}), *c.context);
  for (const cuda::Kernel& kernel : program->kernels()) loaded_kernels.emplace(kernel.name, kernel);
  auto built = need(cached_kernels(program->kernels()), *c.context);
  running_kernels = &built;
  const auto call = need(program->at(c.symbols), *c.context);
  const Memory memory(c, *call);

  void* stream = nullptr;
  REQUIRE(library.function<int(void**, unsigned)>("cuStreamCreate")(&stream, 1) == 0);
  const auto counted = [&] {
    std::vector<int> out;
    for (const char* name : {"allocations", "waits", "loads", "copies_of_host"})
      out.push_back(library.counter(name));
    return out;
  };
  const std::vector<int> before = counted();
  const auto run = [&](void* on) {
    return call->run(*driver, memory.in, memory.out, memory.arena_at(),
                     reinterpret_cast<cuda::Stream>(on));
  };
  REQUIRE(run(stream));
  CHECK(memory.difference(c) < kClose);
  REQUIRE(run(nullptr));  // the default stream
  CHECK(memory.difference(c) < kClose);
  CHECK(library.products() > 0);
  CHECK(library.counter("launches") > 0);

  // Captured in the strictest mode, and replayed with other contents.
  const auto begin = library.function<int(void*, int)>("cuStreamBeginCapture_v2");
  const auto end = library.function<int(void*, void**)>("cuStreamEndCapture");
  REQUIRE(begin(stream, 0) == 0);
  REQUIRE(run(stream));
  void* graph = nullptr;
  REQUIRE(end(stream, &graph) == 0);
  CHECK(counted() == before);
  for (const Tensor& t : c.inputs) {
    auto* values = reinterpret_cast<float*>(t.data());
    for (std::size_t i = 0; i < t.view().bytes() / sizeof(float); ++i) values[i] *= 0.5F;
  }
  c.compute();
  void* executable = nullptr;
  REQUIRE(library.function<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(
              &executable, graph, 0) == 0);
  for (const Tensor& t : memory.outputs) std::memset(t.data(), 0xff, t.view().bytes());
  REQUIRE(library.function<int(void*, void*)>("cuGraphLaunch")(executable, stream) == 0);
  CHECK(memory.difference(c) < kClose);

  // What a capture forbids, each planted.
  REQUIRE(begin(stream, 0) == 0);
  const auto fails = [](const auto& done, const std::string& name) {
    REQUIRE(!done);
    INFO(done.error().front().message);
    CHECK(done.error().front().message.find(name) != std::string::npos);
  };
  fails(driver->allocate(64), "CAPTURE_UNSUPPORTED");
  fails(driver->fill_on(0, memory.in[0], 0, 4), "CAPTURE_IMPLICIT");
  float number = 0;
  fails(driver->read(&number, memory.in[0], sizeof number), "CAPTURE_UNSUPPORTED");  // it waits
  fails(cuda::StreamProgram::make(
            need(parse_graph(c.context, "graph g { in x: f32[8, 8]  y = tanh(x)  out y }", "g"),
                 *c.context),
            *driver, {{}}),
        "CAPTURE_UNSUPPORTED");  // it loads a module
  REQUIRE(end(stream, &graph) == 0);
  running_kernels = nullptr;
}
