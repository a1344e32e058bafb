// Graphs of the library in libcuda's place, read back through the driver's queries and compared
// with what was recorded.
#include "cuda/device/graph_reader.hpp"

#include <algorithm>

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

  void* record(std::size_t nodes, int depth, std::vector<std::uint32_t> before,
               std::optional<std::uint32_t> inside) {
    void* graph = nullptr;
    device_.function<int(void**, unsigned)>("cuGraphCreate")(&graph, 0);
    made_.push_back(graph);
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
      add(graph, after, from, first, depth, inside, handles, places);
    }
    ends_.clear();
    for (std::size_t i = 0; i < nodes; ++i)
      if (last[i]) ends_.push_back(places[i]);
    return graph;
  }

  CapturedLaunches expected;

 private:
  void add(void* graph, const std::vector<void*>& after, const std::vector<std::uint32_t>& from,
           bool first, int depth, std::optional<std::uint32_t> inside, std::vector<void*>& handles,
           std::vector<std::uint32_t>& places) {
    void* handle = nullptr;
    const auto place = static_cast<std::uint32_t>(expected.nodes.size());
    CapturedNode node;
    node.inside = inside;
    const std::size_t kind = random_.below(depth < 2 ? 8 : 7);
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
    } else {
      node.kind = LaunchKind::graph;
      void* child = record(random_.below(6), depth + 1, from, place);
      device_.function<int(void**, void*, void* const*, std::size_t, void*)>(
          "cuGraphAddChildGraphNode")(&handle, graph, after.data(), after.size(), child);
    }
    expected.nodes[place] = node;
    const auto& into = node.kind == LaunchKind::graph && !ends_.empty() ? ends_ : from;
    for (std::size_t i = 0; i < into.size(); ++i) {
      CapturedEdge edge{into[i], place};
      if (!first && node.kind == LaunchKind::kernel && random_.below(4) == 0) {
        edge.programmatic = true;
        edge.from_port = 1;
        device_.function<void(void*, std::size_t)>("stand_in_programmatic")(handle, i);
      }
      expected.edges.push_back(edge);
    }
    handles.push_back(handle);
    places.push_back(place);
  }

  const StandIn& device_;
  Random random_;
  void* functions_[std::size(kNames)] = {};
  std::vector<void*> made_;
  std::vector<std::uint32_t> ends_;  // of the graph recorded last
};

}  // namespace

TEST_CASE("graph reader: random graphs are read as they were recorded", "[cuda][lens]") {
  const StandIn device;
  if (!device.present()) return;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Recorder recorder(device, seed);
    void* graph = recorder.record(seed % 40, 0, {}, {});
    const auto read =
        cuda::read_captured_graph(reinterpret_cast<std::uint64_t>(graph), "g", device.path());
    REQUIRE(read.has_value());
    recorder.expected.name = "g";
    REQUIRE(sort_topologically(recorder.expected));
    // Numbers of nodes in equal graphs may differ where graphs are inside graphs: classes may not.
    const CapturedSummary is = summary_of(*read), should = summary_of(recorder.expected);
    CHECK(is.topology == should.topology);
    CHECK(is.kinds == should.kinds);
    CHECK(is.programmatic_edges == should.programmatic_edges);
    CHECK(is.candidates.size() == should.candidates.size());
    CHECK(is.longest.weight == should.longest.weight);
    CHECK(read->edges.size() == recorder.expected.edges.size());
    const auto text = captured_to_json(*read);
    const auto again = captured_from_json(text, "g.json");
    REQUIRE(again.has_value());
    CHECK(*again == *read);
    CHECK(captured_to_json(*again) == text);
  }
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
