// Programmatic edges: graphs whose kernels start before their predecessors end give the same bits,
// and every planted fault is found, by the proof at instantiation and by the emulator alone.
#include <fmt/format.h>

#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::cuda;
using namespace pw::test;

namespace {

constexpr int kThreads = 8;
constexpr std::int64_t kWords = 2 * kThreads;  // of a buffer, for two blocks

/// A kernel p2[i] = 3 p0[i] + p1[i'] + 1, where i' is another thread's element. The wait is its
/// first statement; `body` may place it elsewhere.
cuda::Kernel kernel_of(const std::string& name, const std::string& before,
                       const std::string& between) {
  cuda::Kernel kernel;
  kernel.name = name;
  kernel.threads = kThreads;
  kernel.rows_per_block = kThreads;
  kernel.arguments.resize(3);
  kernel.results = 1;
  kernel.params = {DimId()};
  kernel.source = fmt::format(
      "extern \"C\" __global__ void {}(const unsigned* p0, const unsigned* p1, unsigned* p2, long "
      "long rows) {{\n{}const long long i = blockIdx.x * {} + threadIdx.x;\n"
      "const unsigned x = pw_load(p0, i);\n{}"
      "pw_store(p2, i, 3u * x + pw_load(p1, rows - 1 - i) + 1u);\n}}\n",
      name, before, kThreads, between);
  return kernel;
}

constexpr const char* kWait = "pw_wait_for_earlier();\n";
/// Kernels without a wait as their first statement: it is absent, late, or for some threads only.
const std::vector<cuda::Kernel>& faulty() {
  static const std::vector<cuda::Kernel> kAll = {
      kernel_of("absent", "", ""),
      kernel_of("late", "", kWait),
      kernel_of("some_threads", fmt::format("if (threadIdx.x % 2 == 0) {}", kWait), ""),
      kernel_of("one_block", fmt::format("if (blockIdx.x == 0) {}", kWait), ""),
      kernel_of("after_a_read", fmt::format("if (pw_load(p0, 0) != 1u) {}", kWait), ""),
      kernel_of("after_a_write", fmt::format("pw_store(p2, 0, 7u);\n{}", kWait), ""),
      kernel_of("in_a_comment", fmt::format("/* {} */\n", "pw_wait_for_earlier();"), ""),
  };
  return kAll;
}
cuda::Kernel right() { return waiting(kernel_of("right", "", "")); }

struct EdgesBench {
  explicit EdgesBench(std::uint64_t seed, bool checks)
      : driver({.seed = seed, .capacity = std::int64_t{1} << 20, .checks_edges = checks}) {
    std::vector<cuda::Kernel> all = faulty();
    all.push_back(right());
    REQUIRE(driver.load(all));
    for (Address& buffer : buffers) buffer = driver.allocate(4 * kWords).value();
  }
  LaunchNode node(const std::string& kernel, std::size_t a, std::size_t b, std::size_t to) const {
    LaunchNode out;
    out.name = kernel;
    out.params = {kWords};
    out.reads = {tensor(a), tensor(b)};
    out.writes = {tensor(to)};
    return out;
  }
  DeviceTensor tensor(std::size_t i) const { return {DType::i32, {kWords}, buffers[i]}; }
  void fill() {
    for (std::size_t i = 0; i < std::size(buffers); ++i) {
      std::vector<std::int32_t> words(kWords, static_cast<std::int32_t>(i + 1));
      REQUIRE(driver.write(buffers[i], words.data(), 4 * kWords));
    }
  }
  std::vector<std::int32_t> contents() {
    std::vector<std::int32_t> out(std::size(buffers) * kWords);
    for (std::size_t i = 0; i < std::size(buffers); ++i)
      REQUIRE(driver.read(out.data() + i * kWords, buffers[i], 4 * kWords));
    return out;
  }
  /// The buffers after the nodes have run one after the other.
  std::vector<std::int32_t> launched(const RecordedGraph& graph) {
    fill();
    for (const LaunchNode& n : graph.nodes) REQUIRE(driver.launch(n));
    return contents();
  }
  /// A graph over few buffers, so that they are soon used again; half of the nodes form a chain.
  RecordedGraph random_graph(Random& random, std::size_t most) {
    RecordedGraph graph{"random", {}};
    const std::size_t nodes = 2 + random.below(most - 1);
    std::size_t last = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t a = random.below(2) == 0 ? last : random.below(std::size(buffers));
      const std::size_t b = random.below(2) == 0 ? a : last;
      std::size_t to = random.below(std::size(buffers));
      while (to == a || to == b) to = (to + 1) % std::size(buffers);
      graph.nodes.push_back(node(waits, a, b, to));
      last = to;
    }
    order_nodes(graph);
    start_early(graph, {waits});
    return graph;
  }

  HostDriver driver;
  const std::string waits = right().name;
  Address buffers[5] = {};
};

bool lacks_compiler() { return Toolchain::find().compiler.empty(); }

std::size_t early_nodes(const RecordedGraph& graph) {
  std::size_t count = 0;
  for (const LaunchNode& n : graph.nodes) count += n.early ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("programmatic edges: a waiting kernel has a wait as its first statement", "[cuda]") {
  CHECK(waits_first(right()));
  CHECK(waiting(right()).source == right().source);
  CHECK(right().name != "right");
  for (const cuda::Kernel& kernel : faulty()) {
    INFO(kernel.source);
    CHECK(!waits_first(kernel));
  }
  const cuda::Kernel fetches =
      waiting(kernel_of("right", "", ""), {{1, 4 * kWords}, {2, std::int64_t{1} << 40}});
  CHECK(waits_first(fetches));
  CHECK(fetches.name != right().name);
  // The compiler could read through another pointer before the wait.
  cuda::Kernel moved = right();
  const std::string second = "p1 = pw_after_wait(p1);\n";
  REQUIRE(moved.source.find(second) != std::string::npos);
  moved.source.erase(moved.source.find(second), second.size());
  CHECK(!waits_first(moved));
  CHECK(
      fetches.source.find("{\npw_prefetch(p1, 64ll);\npw_prefetch(p2, 16777216ll);\npw_wait_for") !=
      std::string::npos);
  const cuda::Kernel reads = kernel_of(
      "reads",
      "pw_prefetch(p1, 64ll);\nconst unsigned y = p1[0];\n" + std::string(kWait) + "(void)y;\n",
      "");
  CHECK(!waits_first(reads));
}

TEST_CASE("programmatic edges: random graphs give the bits of launches one by one", "[cuda]") {
  if (lacks_compiler()) return;
  const std::uint64_t seed = 49;
  INFO("seed " << seed);
  Random random(seed);
  EdgesBench bench(seed, true);
  std::size_t programmatic = 0;
  for (int round = 0; round < 10000; ++round) {
    const RecordedGraph graph = bench.random_graph(random, 10);
    programmatic += early_nodes(graph);
    const auto expected = bench.launched(graph);
    auto executable = bench.driver.instantiate(graph);
    REQUIRE(executable);
    bench.fill();
    REQUIRE((*executable)->replay());
    REQUIRE(bench.contents() == expected);
  }
  CHECK(programmatic > 10000);
}

TEST_CASE("programmatic edges: every planted fault is found", "[cuda]") {
  if (lacks_compiler()) return;
  const std::uint64_t seed = 1000;
  INFO("seed " << seed);
  Random random(seed);
  EdgesBench proof(seed, true), emulated(seed, false);
  std::size_t mutants = 0;
  while (mutants < 1000) {
    RecordedGraph graph = proof.random_graph(random, 8);
    const std::size_t at = random.below(graph.nodes.size());
    LaunchNode& node = graph.nodes[at];
    const std::size_t kind = random.below(3);
    const bool kernel = kind == 0;
    if (kind == 2) {  // a buffer is used again too early
      if (node.after.empty()) continue;
      node.after.erase(node.after.begin() +
                       static_cast<std::ptrdiff_t>(random.below(node.after.size())));
      node.early = false;
    } else if (kernel) {  // the wait is removed, moved, or made conditional
      if (!node.early) continue;
      node.name = faulty()[random.below(faulty().size())].name;
    } else {  // an edge is programmatic that must not be
      if (node.early || node.after.empty()) continue;
      node.early = true;
    }
    ++mutants;
    INFO("mutant " << mutants << ", node " << at << " " << node.name);
    const auto refused = proof.driver.instantiate(graph);
    REQUIRE(!refused);
    CHECK(refused.error().front().code == "PW1251");
    if (!kernel) continue;
    // The emulator alone: the same graph at other addresses, until an order starts the node early.
    for (LaunchNode& n : graph.nodes)
      for (auto* tensors : {&n.reads, &n.writes})
        for (DeviceTensor& t : *tensors)
          for (std::size_t b = 0; b < std::size(proof.buffers); ++b)
            if (t.address == proof.buffers[b]) {
              t.address = emulated.buffers[b];
              break;
            }
    auto executable = emulated.driver.instantiate(graph);
    REQUIRE(executable);
    bool found = false;
    for (int order = 0; order < 200 && !found; ++order) {
      const auto done = (*executable)->replay();
      found = !done && done.error().front().code == "PW1225";
    }
    CHECK(found);
  }
}

TEST_CASE("programmatic edges: waiting kernels compile for all architectures", "[cuda]") {
  const Nvrtc nvrtc = Nvrtc::open();
  if (!nvrtc.present()) {
    WARN("SKIPPED: NVRTC is " << nvrtc.state());
    return;
  }
  for (const char* arch : {"sm_80", "sm_90"}) {
    const cuda::Kernel early = waiting(kernel_of("right", "", ""), {{1, 4 * kWords}});
    const auto with = nvrtc.compile(source_file(early), early.name, {arch, false});
    const auto without =
        nvrtc.compile(source_file(kernel_of("right", "", "")), "right", {arch, false});
    REQUIRE((with && without));
    CHECK_FALSE(with->usage.spills());
  }
}

TEST_CASE("programmatic edges: the driver adds them to its graph", "[cuda]") {
  const StandIn device;
  const Nvrtc nvrtc = Nvrtc::open();
  if (!device.present() || !nvrtc.present()) {
    WARN("SKIPPED: no C++ compiler or no NVRTC");
    return;
  }
  device.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
      "stand_in_kernels")([](const char*) { return 4; }, [](const char*, const std::uint64_t*) {});
  const auto driver = device.driver();
  REQUIRE(driver->load(std::vector{right(), faulty()[0]}));
  const Address at = driver->allocate(1 << 12).value();
  RecordedGraph graph{"three", {}};
  for (Address i = 0; i < 3; ++i) {
    LaunchNode node;
    node.name = right().name;
    node.params = {kWords};
    const auto buffer = [&](Address n) { return DeviceTensor{DType::i32, {kWords}, at + 256 * n}; };
    node.reads = {buffer(i), buffer(i)};
    node.writes = {buffer(i + 1)};
    graph.nodes.push_back(node);
  }
  order_nodes(graph);
  const int before = device.counter("programmatic_edges");
  CHECK(driver->instantiate(graph));
  CHECK(device.counter("programmatic_edges") == before);
  start_early(graph, {right().name});
  CHECK(driver->instantiate(graph));
  CHECK(device.counter("programmatic_edges") == before + 2);
  graph.nodes[2].name = faulty()[0].name;
  const auto refused = driver->instantiate(graph);
  REQUIRE(!refused);
  CHECK(refused.error().front().code == "PW1251");
}
