// Programmatic edges: graphs whose kernels start before their predecessors end give the same bits,
// and every planted fault is found, by the proof at instantiation and by the emulator alone.
#include <fmt/format.h>

#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/graph_reader.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/matmul/streamed_product.hpp"
#include "cuda/step_loop.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
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

/// A kernel that writes only some elements, as a product does that puts keys and values into pages.
cuda::Kernel paged_kernel() {
  cuda::Kernel kernel = kernel_of("k_into_pages", "", "");
  const std::size_t store = kernel.source.find("pw_store(");
  kernel.source.insert(store, "if (pw_load(p1, i) % 2u == 1u) ");
  kernel.source.insert(store, "const long long slot = i ^ 1;\n");
  kernel.source.replace(kernel.source.find("p2, i"), 5, "p2, slot");
  return kernel;
}

/// Two kernels in one grid: the second product reads what the first has written to p3, and p4 is
/// their state. `before` precedes the first product, and `after` follows the second.
cuda::Kernel chained_kernel(const std::string& name, const std::string& before,
                            const std::string& after) {
  cuda::Kernel kernel = kernel_of(name, "", "");
  kernel.arguments.resize(5);
  kernel.results = 3;
  kernel.column_blocks = 2;
  kernel.phases = 2;
  kernel.zero = 4;
  kernel.source = fmt::format(
      "{3}\nextern \"C\" __global__ void {0}(const unsigned* p0, const unsigned* p1, unsigned* p2, "
      "unsigned* p3, int* p4, long long rows) {{\n{1}PW_SHARED(int, place, 1);\n"
      "const int across = (int)((rows + 7) / 8);\n"
      "if (threadIdx.x == 0) pw_put(place, 0, pw_next_block(p4, across));\n__syncthreads();\n"
      "const int number = pw_at(place, 0);\n"
      "const long long i = number % across * 8 + threadIdx.x;\n"
      "if (number < across) {{\npw_store(p3, i, 3u * pw_load(p0, i) + 1u);\npw_announce(p4 + 1);\n"
      "}} else {{\npw_await(p4 + 1, across, number);\n"
      "pw_store(p2, i, pw_load(p3, rows - 1 - i) + pw_load(p1, rows - 1 - i));\n}}\n{2}"
      "pw_leave_grid(p4, 2, 2 * across);\n}}\n",
      name, before, after, streamed_prelude());
  return kernel;
}

constexpr const char* kWait = "pw_wait_for_earlier();\n";
/// The same for kernels of two products in one grid.
const std::vector<cuda::Kernel>& faulty_chains() {
  static const std::vector<cuda::Kernel> kAll = {
      chained_kernel("k_chain_absent", "", ""),
      chained_kernel("k_chain_late", "", kWait),
      chained_kernel("k_chain_some_threads", fmt::format("if (threadIdx.x < 4) {}", kWait), ""),
      chained_kernel("k_chain_one_product", fmt::format("if (blockIdx.y == 0) {}", kWait), ""),
      chained_kernel("k_chain_after_a_read", fmt::format("if (pw_load(p0, 0) != 1u) {}", kWait),
                     ""),
      chained_kernel("k_chain_after_a_write", fmt::format("pw_store(p3, 0, 7u);\n{}", kWait), ""),
  };
  return kAll;
}
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
cuda::Kernel right_chain() { return waiting(chained_kernel("k_chain", "", "")); }
cuda::Kernel right_paged() { return waiting(paged_kernel()); }

struct EdgesBench {
  explicit EdgesBench(std::uint64_t seed, bool checks)
      : driver({.seed = seed, .capacity = std::int64_t{1} << 20, .checks_edges = checks}) {
    std::vector<cuda::Kernel> all = faulty();
    all.insert(all.end(), faulty_chains().begin(), faulty_chains().end());
    for (const cuda::Kernel& kernel : {right(), right_chain(), right_paged()})
      all.push_back(kernel);
    REQUIRE(driver.load(all));
    for (Address& buffer : buffers) buffer = driver.allocate(4 * kWords).value();
  }
  LaunchNode node(const std::string& kernel, std::size_t a, std::size_t b, std::size_t to) const {
    LaunchNode out;
    out.name = kernel;
    out.params = {kWords};
    out.reads = {tensor(a), tensor(b)};
    out.writes = {tensor(to)};
    if (kernel == chain) out.writes.insert(out.writes.end(), {tensor(kPassed), tensor(kState)});
    return out;
  }
  DeviceTensor tensor(std::size_t i) const { return {DType::i32, {kWords}, buffers[i]}; }
  void fill() {
    for (std::size_t i = 0; i < std::size(buffers); ++i) {
      std::vector<std::int32_t> words(kWords, i == kState ? 0 : static_cast<std::int32_t>(i + 1));
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
      const std::size_t a = random.below(2) == 0 ? last : random.below(kPassed);
      const std::size_t b = random.below(2) == 0 ? a : last;
      std::size_t to = random.below(kPassed);
      while (to == a || to == b) to = (to + 1) % kPassed;
      const std::size_t kind = random.below(6);
      graph.nodes.push_back(node(kind == 0 ? chain : kind == 1 ? paged : waits, a, b, to));
      last = to;
    }
    order_nodes(graph);
    start_early(graph, {waits, chain, paged});
    return graph;
  }

  HostDriver driver{cached()};
  const std::string waits = right().name, chain = right_chain().name, paged = right_paged().name;
  /// Memory that nodes read and write, then that between the products of chains, then their state.
  static constexpr std::size_t kPassed = 5, kState = 6;
  Address buffers[7] = {};
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
  for (const auto* kernels : {&faulty(), &faulty_chains()}) {
    for (const cuda::Kernel& kernel : *kernels) {
      INFO(kernel.source);
      CHECK(!waits_first(kernel));
    }
  }
  for (const cuda::Kernel& kernel : {right_chain(), right_paged()}) CHECK(waits_first(kernel));
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
  std::size_t planted = 0;
  while (planted < 1000) {
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
      const auto& mutants = node.name == proof.chain ? faulty_chains() : faulty();
      node.name = mutants[random.below(mutants.size())].name;
    } else {  // an edge is programmatic that must not be
      if (node.early || node.after.empty()) continue;
      node.early = true;
    }
    ++planted;
    INFO("mutant " << planted << ", node " << at << " " << node.name);
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
      emulated.fill();
      const auto done = (*executable)->replay();
      found = !done && done.error().front().code == "PW1225";
    }
    CHECK(found);
  }
}

TEST_CASE("programmatic edges: waiting kernels compile for all architectures", "[cuda]") {
  const Nvrtc nvrtc = Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  for (const char* arch : {"sm_80", "sm_90"}) {
    const cuda::Kernel early = waiting(kernel_of("right", "", ""), {{1, 4 * kWords}});
    const auto with = nvrtc.compile(source_file(early), early.name, {arch, false});
    const auto without =
        nvrtc.compile(source_file(kernel_of("right", "", "")), "right", {arch, false});
    REQUIRE((with && without));
    CHECK_FALSE(with->usage.spills());
  }
}

namespace {

/// A graph whose nodes copy a buffer to the next one, from buffer `first` on.
RecordedGraph chain_of(Address at, Address first, Address nodes) {
  RecordedGraph graph{"chain", {}};
  for (Address i = first; i < first + nodes; ++i) {
    LaunchNode node;
    node.name = right().name;
    node.params = {kWords};
    const auto buffer = [&](Address n) { return DeviceTensor{DType::i32, {kWords}, at + 256 * n}; };
    node.reads = {buffer(i), buffer(i)};
    node.writes = {buffer(i + 1)};
    graph.nodes.push_back(node);
  }
  order_nodes(graph);
  return graph;
}

}  // namespace

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
  RecordedGraph graph = chain_of(at, 0, 3);
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

TEST_CASE("driver: an executable is updated to graphs of its topology", "[cuda]") {
  const StandIn device;
  const Nvrtc nvrtc = Nvrtc::open();
  if (!device.present() || !nvrtc.present()) {
    WARN("SKIPPED: no C++ compiler or no NVRTC");
    return;
  }
  static std::vector<std::uint64_t> written;  // addresses, by launch
  device.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
      "stand_in_kernels")([](const char*) { return 4; },
                          [](const char*, const std::uint64_t* p) { written.push_back(p[2]); });
  const auto driver = device.driver();
  REQUIRE(driver->load(std::vector{right()}));
  const Address at = driver->allocate(1 << 12).value();
  RecordedGraph shared = chain_of(at, 0, 2);
  shared.shared = true;
  const auto executable = std::move(driver->instantiate(shared).value());
  const auto other = executable->add(chain_of(at, 5, 2)),
             longer = executable->add(chain_of(at, 0, 3));
  REQUIRE(other);
  CHECK(*other == 1);
  REQUIRE(longer);
  CHECK(!*longer);
  using Addresses = std::vector<std::uint64_t>;
  const auto writes_of = [&](std::size_t number) {
    written.clear();
    CHECK(executable->replay(number));
    CHECK(executable->current() == number);
    return written;
  };
  CHECK(writes_of(0) == Addresses{at + 256, at + 512});
  CHECK(writes_of(1) == Addresses{at + 6 * 256, at + 7 * 256});
  const int updates = device.counter("updates");
  CHECK(writes_of(1) == Addresses{at + 6 * 256, at + 7 * 256});
  CHECK(device.counter("updates") == updates);
  CHECK(writes_of(0) == Addresses{at + 256, at + 512});
  CHECK(device.counter("updates") == updates + 1);
  // One whose executable is not shared takes no other.
  const auto alone = std::move(driver->instantiate(chain_of(at, 0, 2)).value());
  const auto refused = alone->add(chain_of(at, 5, 2));
  REQUIRE(refused);
  CHECK(!*refused);
}

namespace {

/// A kernel that counts its runs in p0, and goes on until there are five.
cuda::Kernel counting_kernel() {
  const ContextPtr context = library();
  cuda::Kernel kernel = pass_end_kernel(*context, context->dims.symbol("n"), 16, {});
  kernel.arguments.resize(1);
  kernel.results = 1;
  return kernel;
}

}  // namespace

TEST_CASE("loops: the kernel that ends a pass compiles for all architectures", "[cuda]") {
  const Nvrtc nvrtc = Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const ContextPtr context = library();
  const cuda::Kernel kernel =
      pass_end_kernel(*context, context->dims.symbol("n"), 16, {DType::i64, DType::i32});
  for (const char* arch : {"sm_80", "sm_90"}) {
    const auto cubin = nvrtc.compile(source_file(kernel), kernel.name, {arch, false});
    if (!cubin) FAIL(cubin.error().front().message);
    CHECK_FALSE(cubin->usage.spills());
  }
}

TEST_CASE("loops: the driver runs a graph until its last kernel ends the loop", "[cuda]") {
  const StandIn device;
  const Nvrtc nvrtc = Nvrtc::open();
  if (!device.present() || !nvrtc.present()) {
    WARN("SKIPPED: no C++ compiler or no NVRTC");
    return;
  }
  device.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
      "stand_in_kernels")([](const char*) { return 3; },
                          [](const char*, const std::uint64_t* values) {
                            std::int64_t& count = *reinterpret_cast<std::int64_t*>(values[0]);
                            ++count;
                            *reinterpret_cast<unsigned*>(values[2]) = count % 5 != 0 ? 1 : 0;
                          });
  const auto driver = device.driver();
  REQUIRE(driver->load(std::vector{counting_kernel()}));
  const Address at = driver->allocate(64).value();
  REQUIRE(driver->fill(at, 0, 64));
  const auto word = [&](Address n) { return DeviceTensor{DType::i64, {1}, at + 8 * n}; };
  RecordedGraph graph{"passes", {}};
  LaunchNode count;
  count.name = counting_kernel().name;
  count.writes = {word(0)};
  count.params = {1, 0};
  LaunchNode copy;
  copy.kind = LaunchNode::Kind::copy;
  copy.name = "copy";
  copy.reads = {word(0)};
  copy.writes = {word(1)};
  graph.nodes = {copy, count};
  graph.condition = 1;
  order_nodes(graph);
  auto executable = driver->instantiate(graph);
  REQUIRE(executable);
  auto* const made = device.function<void*(std::size_t)>("stand_in_executable")(0);
  const auto read =
      cuda::read_captured_graph(reinterpret_cast<std::uint64_t>(made), "passes", device.path());
  REQUIRE(read);
  REQUIRE(read->nodes.size() == 3);
  CHECK(read->nodes[2].condition == CapturedCondition{ConditionKind::loop, 1});
  for (const std::size_t n : {0, 1}) CHECK(read->nodes[n].inside == 2u);
  CHECK(summary_of(*read).kernels.at(0).launches == 0);
  CHECK(summary_of(*read).kernels.at(0).in_bodies == 1);
  for (const std::int64_t replays : {1, 2}) {
    REQUIRE((*executable)->replay());
    std::int64_t words[2] = {};
    REQUIRE(driver->read(words, at, sizeof words));
    CHECK(words[0] == 5 * replays);
    CHECK(words[1] == 5 * replays - 1);
  }
  REQUIRE(driver->signal(at, 7));
  std::int64_t sent = 0;
  REQUIRE(driver->read(&sent, at, sizeof sent));
  CHECK(sent == 7);
}
