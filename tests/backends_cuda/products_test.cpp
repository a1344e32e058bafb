// Matrix products as library calls: which of them are, on a device that stands in (stand_in.hpp)
// recorded and replayed with the host driver's numbers, and on the host with the interpreter's
// bits.
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/lt_library.hpp"
#include "cuda/piece_program.hpp"
#include "cuda/runtime.hpp"
#include "dsl/dsl.hpp"
#include "splitter/plan.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// One piece of products, planned for up to 24 rows.
struct Products {
  explicit Products(const std::string& text)
      : context(library()),
        graph(need(parse_graph(context, "graph g {\n  symbol n in 1..24 tokens\n" + text + "\n}\n",
                               "test"),
                   *context)),
        pieces(need(split(graph, {}), *context)),
        plan(need(make_plan(pieces, graph, options()), *context)),
        weights(graph, 3) {}
  Products(const Products&) = delete;
  static PlanOptions options() {
    PlanOptions out;
    out.max_tokens = 24;
    out.capture_sizes = {1, 2, 4, 8};
    return out;
  }
  std::unique_ptr<cuda::Runtime> runtime(cuda::Driver& driver, bool strict = false) {
    cuda::RuntimeOptions how;
    how.strict = strict;
    auto out = need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context);
    need(out->load(weights), *context);
    need(out->capture(), *context);
    return out;
  }
  StepResult run(cuda::Runtime& runtime, std::int64_t tokens, bool pad) {
    Step step;
    step.sequences = {{0, tokens, 0}};
    RunOptions how;
    how.pad = pad;
    how.poison = true;
    return need(runtime.run(step, weights, how), *context);
  }
  cuda::PieceProgram program(const cuda::Driver& driver) {
    const auto eager = make_eager();
    return need(cuda::make_program(pieces.pieces[PieceId(0)].graph, *eager, driver,
                                   {{}, {{{"n", 1}}, {{"n", 24}}}}),
                *context);
  }

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
  Weights weights;
};

/// The first element further how_far than what sums in another order and one rounding do; or
/// nothing.
std::string how_far(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
  if (got.size() != wanted.size()) return "another number of outputs";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const TensorView x = got[i].view(), y = wanted[i].view();
    if (x.extents != y.extents || x.dtype != y.dtype) return "another type";
    double largest = 0;
    for (std::int64_t e = 0; e < y.count(); ++e)
      largest = std::max(largest, std::abs(load(y.dtype, y.data, e)));
    if (!(largest > 0)) return "nothing but zeros";
    const double step = y.dtype == DType::bf16 ? 1.0 / 128 : y.dtype == DType::f16 ? 1.0 / 1024 : 0;
    for (std::int64_t e = 0; e < y.count(); ++e) {
      const double a = load(x.dtype, x.data, e), b = load(y.dtype, y.data, e);
      if (!(std::abs(a - b) <= step * std::abs(b) + 1e-5 * largest))
        return fmt::format("output {}, element {}: {} for {}", i, e, a, b);
    }
  }
  return "";
}

/// Two that may run at the same time, one that needs the first, one of its own extents.
constexpr const char* kPlain =
    "in x: f32[n, 24], w: f32[24, 40], v: f32[24, 17], u: f32[40, 5], z: bf16[n, 33],"
    " q: bf16[33, 12], p: f16[n, 8], r: f16[8, 9]\n"
    "a = mm(x, w)  b = mm(x, v)  c = mm(a, u)  d = mm(z, q)  e = mm(p, r)  out b, c, d, e";
/// Weights as PyTorch stores them, with a bias.
constexpr const char* kLinear =
    "in x: bf16[n, 24], w: bf16[40, 24], c: bf16[40], v: bf16[7, 40], d: bf16[7], s: f32[n, 6],"
    " r: f32[10, 6]\n"
    "wt = transpose(w){dim0 = 0, dim1 = 1}  a = addmm(c, x, wt)\n"
    "vt = transpose(v){dim0 = -1, dim1 = 0}  b = addmm(d, a, vt)\n"
    "rt = transpose(r){dim0 = 1, dim1 = 0}  e = mm(s, rt)  out b, e";
constexpr const char* kScaled =
    "in x: f8e4m3[n, 48], w: f8e4m3[32, 48], v: f8e4m3[16, 48], s: f32[n, 1], t: f32[32],"
    " one: f32[1], two: f32[1]\n"
    "wt = transpose(w){dim0 = 0, dim1 = 1}  a = scaled_mm(x, wt, s, t){out = bf16}\n"
    "vt = transpose(v){dim0 = 0, dim1 = 1}  b = scaled_mm(x, vt, one, two){out = f32}\n"
    "out a, b";

std::size_t calls(const cuda::RecordedGraph& graph) {
  std::size_t out = 0;
  for (const cuda::LaunchNode& n : graph.nodes)
    out += n.kind == cuda::LaunchNode::Kind::library ? 1 : 0;
  return out;
}

}  // namespace

TEST_CASE("products: on a device they are library calls, replayed with the host's numbers",
          "[cuda][diff]") {
  const StandIn device;
  if (!device.present()) return;
  for (const auto& [text, products] :
       {std::pair(kPlain, 5), std::pair(kLinear, 3), std::pair(kScaled, 2)}) {
    INFO(text);
    Products subject(text);
    const auto driver = device.driver();
    cuda::HostDriver host(cached());
    const auto there = subject.runtime(*driver), here = subject.runtime(host);
    CHECK(there->notes().empty());
    const cuda::RuntimeCounters& c = there->counters();
    CHECK(c.failed_captures == 0);
    CHECK(c.executables == 4);
    CHECK(c.graph_nodes == static_cast<std::size_t>(4 * products));  // no transposition is a node
    const int searches = device.searches(), before = device.products();
    std::size_t steps = 0;
    for (std::int64_t tokens : {1, 2, 3, 4, 7, 8}) {
      INFO(tokens);
      for (int round = 0; round < 3; ++round) {
        const StepResult a = subject.run(*there, tokens, true);
        CHECK(a.report.mode == StepMode::captured);
        CHECK(a.report.launches.library == static_cast<std::size_t>(products));
        CHECK(how_far(a.outputs, subject.run(*here, tokens, true).outputs) == "");
        ++steps;
      }
    }
    CHECK(c.replays == steps);
    // A replay makes no search of the library.
    CHECK(device.searches() == searches);
    CHECK(device.products() == before);
    // Launched, at a compiled size and at others.
    for (std::int64_t tokens : {1, 5, 24})
      CHECK(how_far(subject.run(*there, tokens, false).outputs,
                    subject.run(*here, tokens, false).outputs) == "");
    CHECK(device.products() == before + 3 * products);
    CHECK(c.stale == 0);
  }
}

TEST_CASE("products: without any one of its edges a recorded graph gives other numbers", "[cuda]") {
  const StandIn device;
  if (!device.present()) return;
  Products subject(kPlain);
  const auto driver = device.driver();
  const auto runtime = subject.runtime(*driver);
  (void)subject.run(*runtime, 4, true);  // the inputs are where they belong
  const cuda::RecordedGraph whole = need(runtime->record(PieceId(0), 4), *subject.context);
  CHECK(calls(whole) == whole.nodes.size());
  const auto results = [&](cuda::GraphExecutable& graph) {
    std::vector<Tensor> out;
    for (const cuda::LaunchNode& n : whole.nodes)
      need(driver->fill(n.writes[0].address, 0xff, n.writes[0].bytes()), *subject.context);
    need(graph.replay(), *subject.context);
    for (const cuda::LaunchNode& n : whole.nodes) {
      out.emplace_back(n.writes[0].dtype, n.writes[0].extents);
      need(driver->read(out.back().data(), n.writes[0].address, n.writes[0].bytes()),
           *subject.context);
    }
    return out;
  };
  const auto complete = need(driver->instantiate(whole), *subject.context);
  const std::vector<Tensor> wanted = results(*complete);
  for (int round = 0; round < 50; ++round) CHECK(bits_apart(results(*complete), wanted) == "");
  std::size_t edges = 0;
  for (std::size_t n = 0; n < whole.nodes.size(); ++n) {
    // All of them write one workspace, so that they stand in a row.
    CHECK(whole.nodes[n].writes.size() == 2);
    CHECK(whole.nodes[n].writes[1].address % 256 == 0);
    for (std::size_t e = 0; e < whole.nodes[n].after.size(); ++e, ++edges) {
      cuda::RecordedGraph without = whole;
      without.nodes[n].after.erase(without.nodes[n].after.begin() + static_cast<std::ptrdiff_t>(e));
      const auto graph = need(driver->instantiate(without), *subject.context);
      bool other = false;
      for (int round = 0; round < 100 && !other; ++round)
        other = !bits_apart(results(*graph), wanted).empty();
      CHECK(other);
    }
  }
  CHECK(edges == whole.nodes.size() - 1);
}

TEST_CASE("products: a plan's workspace is taken as it is, or refused where it is another's place",
          "[cuda][diff]") {
  const StandIn device;
  if (!device.present()) return;
  Products subject(kLinear);
  const auto driver = device.driver();
  cuda::HostDriver host(cached());
  const auto first = subject.runtime(*driver);
  const MemoryPlan memory = first->memory();
  CHECK(memory.workspace_bytes == driver->workspace_bytes());
  CHECK(memory.arena_bytes >= memory.workspace_bytes);
  const auto here = subject.runtime(host);
  CHECK(here->memory().workspace_bytes == 0);
  const auto wanted = subject.run(*here, 4, true).outputs;
  const auto allocations = [&] {
    const auto again = subject.runtime(*driver);
    CHECK(how_far(subject.run(*again, 4, true).outputs, wanted) == "");
    return again->counters().allocations;
  };
  subject.plan.memory = memory;
  CHECK(allocations() == first->counters().allocations);
  subject.plan.memory.workspace_bytes = 0;  // of a run without a library
  CHECK(allocations() == first->counters().allocations + 1);
  const auto refused = [&](const std::function<void(MemoryPlan&)>& change) {
    subject.plan.memory = memory;
    change(subject.plan.memory);
    const auto made = cuda::Runtime::make(subject.pieces, subject.graph, subject.plan, *driver, {});
    REQUIRE(!made);
    CHECK(made.error().front().code == "PW1256");
    return made.error().front().message;
  };
  const Scratch& between = memory.scratch[0].at(0);
  CHECK(refused([&](MemoryPlan& m) { m.workspace_offset = between.offset; }) ==
        "the workspace of library calls is where " + between.name + " is");
  CHECK(refused([](MemoryPlan& m) { m.workspace_offset = m.slots[0].offset; }) ==
        "the workspace of library calls is where " + memory.slots[0].name + " is");
  CHECK(refused([](MemoryPlan& m) { m.workspace_offset += 16; }) ==
        "the workspace of library calls is not aligned to 256 bytes");
}

TEST_CASE("products: one that the library has no algorithm for at some size runs on the host there",
          "[cuda][diff]") {
  const StandIn device;
  if (!device.present()) return;
  // The device that stands in has none for 3 rows of 13 columns; 3 is not a requested size.
  Products subject("in x: f32[n, 24], w: f32[24, 13]  y = mm(x, w)  out y");
  const auto driver = device.driver();
  cuda::HostDriver host(cached());
  const auto there = subject.runtime(*driver), here = subject.runtime(host);
  CHECK(there->counters().executables == 4);
  const int before = device.products();
  CHECK(how_far(subject.run(*there, 3, false).outputs, subject.run(*here, 3, false).outputs) == "");
  CHECK(device.products() == before);
  CHECK(how_far(subject.run(*there, 5, false).outputs, subject.run(*here, 5, false).outputs) == "");
  CHECK(device.products() == before + 1);
  // Nor can it be captured there.
  const auto graph = need(there->record(PieceId(0), 3), *subject.context);
  const auto refused = driver->instantiate(graph);
  REQUIRE(!refused);
  CHECK(refused.error().front().code == "PW1261");
  CHECK(refused.error().front().message.find("CUBLAS_STATUS_NOT_SUPPORTED") != std::string::npos);
}

TEST_CASE("products: an unsupported product is a generated kernel, with the reason", "[cuda]") {
  const StandIn device;
  if (!device.present()) return;
  const auto driver = device.driver(), strict = device.driver(true);
  const auto one = [](const cuda::PieceProgram& p) {
    REQUIRE(!p.launches.empty());
    return p.launches.back().kind;
  };
  using Kind = cuda::LaunchNode::Kind;
  Products straight(
      "in x: f8e4m3[n, 48], w: f8e4m3[48, 32], s: f32[1], t: f32[1]\n"
      "y = scaled_mm(x, w, s, t){out = bf16}  out y");
  const cuda::PieceProgram fp8 = straight.program(*driver);
  CHECK(one(fp8) == Kind::kernel);
  REQUIRE(fp8.notes.size() == 1);
  CHECK(fp8.notes[0] ==
        "scaled_mm runs in a built-in kernel: cuBLASLt multiplies f8e4m3 only if the second "
        "operand is stored as [columns, depth]");
  // Transposed, but too narrow: that is the reason then, and the transposition is a kernel.
  Products narrow(
      "in x: f8e4m3[n, 48], w: f8e4m3[24, 48], s: f32[1], t: f32[1]\n"
      "wt = transpose(w){dim0 = 0, dim1 = 1}  y = scaled_mm(x, wt, s, t){out = bf16}  out y");
  const cuda::PieceProgram few = narrow.program(*driver);
  CHECK(few.launches.size() == 2);
  CHECK(one(few) == Kind::kernel);
  REQUIRE(few.notes.size() == 1);
  CHECK(few.notes[0].find("multiples of 16 for f8e4m3") != std::string::npos);
  // Strict: kernels without notes, and no search of the library.
  Products linear(kLinear);
  const int before = device.searches();
  const cuda::PieceProgram exact = linear.program(*strict);
  CHECK(exact.launches.size() == 6);
  for (const cuda::ProgramLaunch& l : exact.launches) CHECK(l.kind == Kind::kernel);
  CHECK(exact.notes.empty());
  CHECK(strict->workspace_bytes() == 0);
  CHECK(device.searches() == before);
  // What is neither is not captured.
  Products wide("in x: f64[n, 8], w: f64[8, 4]  y = mm(x, w)  out y");
  REQUIRE(wide.program(*driver).lacks.size() == 1);
  CHECK(wide.program(*driver).lacks[0] == "mm: no built-in kernel supports its operands");
  CHECK(wide.program(cuda::HostDriver()).lacks.empty());
}

TEST_CASE("products: a library that does not start on the device is reported and not used",
          "[cuda]") {
  const StandIn device;
  if (!device.present()) return;
  const cuda::LtLibrary real = cuda::LtLibrary::open();
  if (!real.present()) {
    WARN("SKIPPED: cuBLASLt is " << real.state());
    return;
  }
  cuda::CudaDriverOptions options;  // a device that cuBLASLt does not find
  options.library = device.path();
  options.cublaslt = real.state().substr(real.state().find(" at ") + 4);
  const auto driver = cuda::CudaDriver::open(options);
  REQUIRE(driver);
  if ((*driver)->workspace_bytes() != 0) return;  // there is a device besides
  Products subject(kPlain);
  const cuda::PieceProgram program = subject.program(**driver);
  CHECK(program.launches.size() == 5);
  for (const cuda::ProgramLaunch& l : program.launches)
    CHECK(l.kind == cuda::LaunchNode::Kind::kernel);
  REQUIRE(!program.notes.empty());
  CHECK(program.notes[0].find("cuBLASLt could not start: CUBLAS_STATUS_") != std::string::npos);
}

TEST_CASE("products: a call reads b as it is stored, with the interpreter's bits", "[cuda][diff]") {
  for (const char* text : {kLinear, kScaled}) {
    INFO(text);
    Products subject(text);
    cuda::HostDriver host(cached());
    const auto runtime = subject.runtime(host, true);
    const cuda::RecordedGraph graph = need(runtime->record(PieceId(0), 4), *subject.context);
    CHECK(calls(graph) == graph.nodes.size());
    for (const cuda::LaunchNode& n : graph.nodes) {
      REQUIRE(n.library->product);
      const cuda::ProductCall& call = *n.library->product;
      CHECK(call.b_transposed);
      CHECK(n.reads[call.a].extents[1] == n.reads[call.b].extents[1]);
      CHECK(n.writes[0].extents[1] == n.reads[call.b].extents[0]);
      CHECK(n.writes.size() == 1);
    }
    for (std::int64_t tokens : {1, 3, 8}) {
      Step step;
      step.sequences = {{0, tokens, 0}};
      BackendOptions options;
      options.strict = true;
      CpuBackend interpreter(options);
      const auto whole =
          need(run_whole(subject.graph, interpreter, subject.weights, step), *subject.context);
      CHECK(bits_apart(subject.run(*runtime, tokens, true).outputs, whole) == "");
      CHECK(bits_apart(subject.run(*runtime, tokens, false).outputs, whole) == "");
    }
  }
}

TEST_CASE("products: a transposition that something else reads too is run, and read", "[cuda]") {
  if (no_host_compiler()) return;
  Products subject(
      "in x: f32[n, 6], w: f32[6, 6], v: f32[6, 6]\n"
      "wt = transpose(w){dim0 = 0, dim1 = 1}  y = mm(x, wt)\n"
      "same = transpose(v){dim0 = 0, dim1 = 0}  z = mm(x, same)  out y, wt, z");
  cuda::HostDriver host(cached());
  const auto runtime = subject.runtime(host, true);
  const cuda::RecordedGraph graph = need(runtime->record(PieceId(0), 4), *subject.context);
  for (const cuda::LaunchNode& n : graph.nodes)
    if (n.library) CHECK_FALSE(n.library->product->b_transposed);
  CHECK(calls(graph) == 2);
  Step step;
  step.sequences = {{0, 3, 0}};
  BackendOptions options;
  options.strict = true;
  CpuBackend interpreter(options);
  CHECK(bits_apart(subject.run(*runtime, 3, true).outputs,
                   need(run_whole(subject.graph, interpreter, subject.weights, step),
                        *subject.context)) == "");
}
