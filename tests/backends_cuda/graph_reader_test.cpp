// Graphs of the library in libcuda's place, read back through the driver's queries and compared
// with what was recorded.
#include "cuda/device/graph_reader.hpp"

#include <set>

#include "base/hash.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kNames[] = {"_ZN2at6native11fill_kernelIfEEvi", "rms_norm", "gemm"};
constexpr const char* kDemangled[] = {"void at::native::fill_kernel<float>(int)", "rms_norm",
                                      "gemm"};

struct Kernel {  // CUDA_KERNEL_NODE_PARAMS_v2
  void* function;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kernel, *context;
};

struct ConditionalParams {  // CUgraphNodeParams
  int type, reserved[3];
  std::uint64_t handle;
  int kind;
  unsigned bodies;
  void** body;
  void* context;
  unsigned char rest[208];
};

/// Records random graphs both in the library and as what reading them should return.
class Recorder {
 public:
  Recorder(const StandIn& device, std::uint64_t seed) : device_(device), random_(seed) {
    device.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
        "stand_in_kernels")([](const char*) { return 0; },
                            [](const char*, const std::uint64_t*) {});
    const auto find = device.function<int(void**, void*, const char*)>("cuModuleGetFunction");
    for (std::size_t i = 0; i < std::size(kNames); ++i) find(&functions_[i], nullptr, kNames[i]);
  }
  ~Recorder() {
    for (void* graph : made_) device_.function<int(void*)>("cuGraphDestroy")(graph);
  }

  void* record(std::size_t nodes) {
    void* graph = created();
    fill(graph, nodes, {}, {});
    return graph;
  }

  CapturedLaunches expected;

 private:
  using Places = std::vector<std::uint32_t>;
  struct Around {  // what a graph is in
    std::optional<std::uint32_t> node;
    std::uint32_t body = 0;
    int depth = 0;
    bool child = false;  // of a node that holds one graph: no conditional nodes there
  };

  void* created() {
    void* graph = nullptr;
    device_.function<int(void**, unsigned)>("cuGraphCreate")(&graph, 0);
    made_.push_back(graph);
    return graph;
  }

  /// Returns the last nodes.
  Places fill(void* graph, std::size_t nodes, const Places& before, const Around& around) {
    std::vector<void*> handles;
    std::vector<std::uint32_t> places;
    std::vector<bool> last(nodes, true);
    for (std::size_t i = 0; i < nodes; ++i) {
      std::vector<void*> after;
      std::vector<std::uint32_t> from;
      for (std::size_t k = i > 4 ? i - 4 : 0; k < i; ++k)
        if (random_.below(3) == 0) {
          after.push_back(handles[k]);
          from.push_back(places[k]);
          last[k] = false;
        }
      const bool first = from.empty();
      if (first) from = before;
      places.push_back(static_cast<std::uint32_t>(expected.nodes.size()));
      handles.push_back(add(graph, after, from, first, around));
    }
    Places ends;
    for (std::size_t i = 0; i < nodes; ++i)
      if (last[i]) ends.push_back(places[i]);
    return ends;
  }

  void* add(void* graph, const std::vector<void*>& after, const Places& from, bool first,
            const Around& around) {
    void* handle = nullptr;
    const auto place = static_cast<std::uint32_t>(expected.nodes.size());
    CapturedNode node;
    node.inside = around.node;
    node.body = around.body;
    const std::size_t kind = random_.below(around.depth >= 2 ? 7 : around.child ? 8 : 10);
    Places into = from;
    expected.nodes.emplace_back();
    if (kind < 5) {
      const std::size_t which = random_.below(std::size(kNames));
      const auto size = static_cast<std::uint32_t>(1 + random_.below(9));
      node.kind = LaunchKind::kernel;
      node.name = kDemangled[which];
      node.grid = {size, 2, 1};
      node.block = {32 * size, 1, 1};
      node.shared_bytes = 16 * size;
      Kernel kernel{functions_[which], {size, 2, 1}, {32 * size, 1, 1}, 16 * size, {}, {}, {}, {}};
      REQUIRE(device_.function<int(void**, void*, void* const*, std::size_t, const Kernel*)>(
                  "cuGraphAddKernelNode_v2")(&handle, graph, after.data(), after.size(), &kernel) ==
              0);
    } else if (kind < 7) {
      node.kind = LaunchKind::empty;
      device_.function<int(void**, void*, void* const*, std::size_t)>("cuGraphAddEmptyNode")(
          &handle, graph, after.data(), after.size());
    } else if (kind < 8) {
      node.kind = LaunchKind::graph;
      void* child = created();
      const Places ends = fill(child, random_.below(6), from, {place, 0, around.depth + 1, true});
      if (!ends.empty()) into = ends;
      device_.function<int(void**, void*, void* const*, std::size_t, void*)>(
          "cuGraphAddChildGraphNode")(&handle, graph, after.data(), after.size(), child);
    } else {
      node.kind = LaunchKind::conditional;
      node.condition = CapturedCondition{static_cast<ConditionKind>(random_.below(3)), 1};
      if (node.condition->kind != ConditionKind::loop)
        node.condition->bodies += static_cast<std::uint32_t>(
            random_.below(node.condition->kind == ConditionKind::choice ? 4 : 2));
      const Conditional made = conditional(graph, after, *node.condition);
      handle = made.node;
      std::set<std::uint32_t> all;
      for (std::uint32_t body = 0; body < node.condition->bodies; ++body) {
        const Places ends = fill(made.bodies[body], random_.below(4), from,
                                 {place, body, around.depth + 1, around.child});
        all.insert(ends.begin(), ends.end());
        if (ends.empty()) all.insert(from.begin(), from.end());
      }
      into.assign(all.begin(), all.end());
    }
    expected.nodes[place] = node;
    for (std::size_t i = 0; i < into.size(); ++i) {
      CapturedEdge edge{into[i], place};
      if (!first && node.kind == LaunchKind::kernel && random_.below(4) == 0) {
        edge.programmatic = true;
        edge.from_port = 1;
        device_.function<void(void*, std::size_t)>("stand_in_programmatic")(handle, i);
      }
      expected.edges.push_back(edge);
    }
    return handle;
  }

  struct Conditional {
    void* node;
    void** bodies;
  };
  Conditional conditional(void* graph, const std::vector<void*>& after,
                          const CapturedCondition& condition) {
    std::uint64_t handle = 0;
    REQUIRE(device_.function<int(std::uint64_t*, void*, void*, unsigned, unsigned)>(
                "cuGraphConditionalHandleCreate")(&handle, graph, &handle, 1, 1) == 0);
    ConditionalParams params{};
    params.type = 13;
    params.handle = handle;
    params.kind = static_cast<int>(condition.kind);
    params.bodies = condition.bodies;
    params.context = &handle;
    void* node = nullptr;
    REQUIRE(device_.function<int(void**, void*, void* const*, const void*, std::size_t,
                                 ConditionalParams*)>("cuGraphAddNode_v2")(
                &node, graph, after.data(), nullptr, after.size(), &params) == 0);
    return {node, params.body};
  }

  const StandIn& device_;
  Random random_;
  void* functions_[std::size(kNames)] = {};
  std::vector<void*> made_;
};

/// Reads a random graph, and compares it with what was recorded.
void check_read(const StandIn& device, std::uint64_t seed, std::size_t nodes) {
  INFO("seed " << seed);
  Recorder recorder(device, seed);
  void* graph = recorder.record(nodes);
  const auto read =
      cuda::read_captured_graph(reinterpret_cast<std::uint64_t>(graph), "g", device.path());
  REQUIRE(read.has_value());
  CHECK(read->nodes.size() >= nodes);
  recorder.expected.name = "g";
  REQUIRE(sort_topologically(recorder.expected));
  // Numbers of nodes in equal graphs may differ where graphs are inside graphs: classes may not.
  const CapturedSummary is = summary_of(*read), should = summary_of(recorder.expected);
  CHECK(is.topology == should.topology);
  CHECK(is.kinds == should.kinds);
  CHECK(is.kernels_in_bodies == should.kernels_in_bodies);
  CHECK(is.unknown_bodies == 0);
  CHECK(is.programmatic_edges == should.programmatic_edges);
  CHECK(is.candidates.size() == should.candidates.size());
  CHECK(is.longest.weight == should.longest.weight);
  CHECK(read->edges.size() == recorder.expected.edges.size());
  const auto text = captured_to_json(*read);
  const auto again = captured_from_json(text, "g.json");
  REQUIRE(again.has_value());
  CHECK((*again == *read));
  CHECK((captured_to_json(*again) == text));
}

}  // namespace

TEST_CASE("graph reader: random graphs are read as they were recorded", "[cuda][lens]") {
  const StandIn device;
  if (!device.present()) return;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) check_read(device, seed, seed % 40);
}

TEST_CASE("graph reader: a graph of 20,000 nodes is read as it was recorded", "[cuda][lens]") {
  const StandIn device;
  if (!device.present()) return;
  check_read(device, 1, 20000);
}

TEST_CASE("graph reader: drivers before CUDA 13.2 do not report bodies", "[cuda][lens]") {
  const StandIn device;
  if (!device.present()) return;
  const auto hide = device.function<void(int)>("stand_in_hides_bodies");
  std::uint64_t unknown = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Recorder recorder(device, seed);
    const auto graph = reinterpret_cast<std::uint64_t>(recorder.record(30));
    hide(1);
    const auto read = cuda::read_captured_graph(graph, "g", device.path());
    hide(0);
    REQUIRE(read.has_value());
    const CapturedSummary summary = summary_of(*read);
    CHECK(summary.unknown_bodies == summary.count(LaunchKind::conditional));
    CHECK(summary.kernels_in_bodies == 0);
    CHECK(captured_from_json(captured_to_json(*read), "g.json").value() == *read);
    unknown += summary.unknown_bodies;
  }
  CHECK(unknown > 100);
}

TEST_CASE("graph reader: absent drivers and graphs are reported", "[cuda][lens]") {
  const auto absent = cuda::read_captured_graph(1, "g", "/nowhere/libcuda.so.1");
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error().front().code == "PW1260");
  const StandIn device;
  if (!device.present()) return;
  const auto none = cuda::read_captured_graph(0, "g", device.path());
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().front().code == "PW1262");
}
