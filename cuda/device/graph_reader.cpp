#include "cuda/device/graph_reader.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/cuda_library.hpp"

namespace pw::cuda {
namespace {

constexpr int kDeepest = 64;  // graphs inside graphs
constexpr std::size_t kMostNodes = std::size_t{1} << 20;
constexpr std::size_t kLongestName = 8192;  // that is demangled

/// Kernels of templates have names of kilobytes, and a graph launches the same ones again.
class KernelNames {
 public:
  const std::string& demangled(const char* mangled) {
    const auto [known, fresh] = names_.try_emplace(mangled);
    if (!fresh) return known->second;
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        known->first.size() > kLongestName
            ? nullptr
            : abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
        std::free);
    known->second = printable(text != nullptr && status == 0 ? text.get() : mangled);
    return known->second;
  }

 private:
  std::map<std::string, std::string> names_;
};

class GraphReader {
 public:
  explicit GraphReader(const CudaGraphQueries& functions) : f_(functions) {}

  Status read(void* graph) {
    PW_TRY(add_graph(graph, {}, 0));
    return {};
  }
  CapturedLaunches out;

 private:
  using Places = std::vector<std::uint32_t>;

  [[nodiscard]] Status check(int code, const char* call) const {
    if (code == 0) return {};
    const char* text = nullptr;
    const bool known = f_.error_name(code, &text) == 0 && text != nullptr;
    return fail(error_in(out.name, "PW1262",
                         fmt::format("{} failed: {}", call,
                                     known ? printable(text) : fmt::format("error {}", code))));
  }

  Result<std::vector<void*>> nodes_of(void* graph) const {
    std::size_t count = 0;
    PW_TRY(check(f_.nodes(graph, nullptr, &count), "cuGraphGetNodes"));
    if (count > kMostNodes - out.nodes.size())
      return fail(error_in(out.name, "PW1262",
                           fmt::format("the graph has more than {} nodes", kMostNodes)));
    std::vector<void*> nodes(count);
    if (count != 0) PW_TRY(check(f_.nodes(graph, nodes.data(), &count), "cuGraphGetNodes"));
    return nodes;
  }

  /// Adds the nodes of a graph, the first ones after `before`; returns its last nodes. They are in
  /// the driver's order, which sort_topologically() corrects at the end.
  Result<Places> add_graph(void* graph, const Places& before, int depth) {
    if (depth > kDeepest) return fail(error_in(out.name, "PW1262", "graphs are nested too deeply"));
    const std::vector<void*> nodes = PW_TRY(nodes_of(graph));
    std::map<void*, std::size_t> numbers;
    for (std::size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i]] = i;
    const auto begin = static_cast<std::uint32_t>(out.nodes.size());
    out.nodes.resize(begin + nodes.size());
    std::vector<std::vector<CapturedEdge>> into(nodes.size());
    std::vector<bool> last(nodes.size(), true);
    for (const Edge& e : PW_TRY(edges_of(graph, numbers))) {
      last[e.from] = false;
      into[e.to].push_back({begin + static_cast<std::uint32_t>(e.from),
                            begin + static_cast<std::uint32_t>(e.to), e.data.type == 1,
                            e.data.from_port, e.data.to_port});
    }
    Places ends;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (into[i].empty())
        for (const std::uint32_t b : before) into[i].push_back({b, begin + i});
      PW_TRY(add_node(nodes[i], begin + i, into[i], depth));
      if (last[i]) ends.push_back(begin + i);
    }
    return ends;
  }

  struct Edge {
    std::size_t from = 0, to = 0;
    CudaEdge data;
  };

  Result<std::vector<Edge>> edges_of(void* graph, const std::map<void*, std::size_t>& numbers) {
    std::size_t count = 0;
    const auto call = [&](void** from, void** to, CudaEdge* data) {
      return f_.edges != nullptr ? f_.edges(graph, from, to, data, &count)
                                 : f_.plain_edges(graph, from, to, &count);
    };
    PW_TRY(check(call(nullptr, nullptr, nullptr), "cuGraphGetEdges"));
    std::vector<void*> from(count), to(count);
    std::vector<CudaEdge> data(count);
    if (count != 0) PW_TRY(check(call(from.data(), to.data(), data.data()), "cuGraphGetEdges"));
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < count; ++i) {
      const auto a = numbers.find(from[i]), b = numbers.find(to[i]);
      if (a == numbers.end() || b == numbers.end())
        return fail(error_in(out.name, "PW1262", "an edge leads to a node of another graph"));
      edges.push_back({a->second, b->second, data[i]});
    }
    return edges;
  }

  Status add_node(void* node, std::uint32_t place, const std::vector<CapturedEdge>& into,
                  int depth) {
    int type = 0;
    PW_TRY(check(f_.node_type(node, &type), "cuGraphNodeGetType"));
    if (type < 0 || type >= static_cast<int>(kLaunchKinds))
      return fail(error_in(out.name, "PW1262", fmt::format("unknown type {} of a node", type)));
    const auto kind = static_cast<LaunchKind>(type);
    out.nodes[place].kind = kind;
    if (kind == LaunchKind::graph) return add_child(node, place, into, depth);
    if (kind == LaunchKind::conditional) return add_conditional(node, place, into, depth);
    out.edges.insert(out.edges.end(), into.begin(), into.end());
    return kind == LaunchKind::kernel ? fill_kernel(node, out.nodes[place])
                                      : fill_bytes(node, out.nodes[place]);
  }

  Status fill_bytes(void* node, CapturedNode& to) {
    if (to.kind == LaunchKind::memcpy) {
      CudaCopy copy;
      PW_TRY(check(f_.copy(node, &copy), "cuGraphMemcpyNodeGetParams"));
      to.bytes = copy.width * copy.height * copy.depth;
    } else if (to.kind == LaunchKind::memset) {
      CudaFill fill;
      PW_TRY(check(f_.fill(node, &fill), "cuGraphMemsetNodeGetParams"));
      to.bytes = fill.width * fill.element_bytes * fill.height;
    } else if (to.kind == LaunchKind::allocate) {
      CudaAllocation allocation;
      PW_TRY(check(f_.allocation(node, &allocation), "cuGraphMemAllocNodeGetParams"));
      to.bytes = allocation.bytes;
    }
    return {};
  }

  Status fill_kernel(void* node, CapturedNode& to) {
    CudaKernelNode kernel;
    PW_TRY(check(f_.kernel(node, &kernel), "cuGraphKernelNodeGetParams"));
    for (std::size_t i = 0; i < 3; ++i) {
      to.grid[i] = kernel.grid[i];
      to.block[i] = kernel.block[i];
    }
    to.shared_bytes = kernel.shared_bytes;
    // A name is welcome, not required: a node of a library's kernel has one of the two handles.
    const char* text = nullptr;
    const bool named =
        kernel.function != nullptr
            ? f_.function_name != nullptr && f_.function_name(&text, kernel.function) == 0
            : kernel.kernel != nullptr && f_.kernel_name != nullptr &&
                  f_.kernel_name(&text, kernel.kernel) == 0;
    if (named && text != nullptr) to.name = names_.demangled(text);
    return {};
  }

  Status add_child(void* node, std::uint32_t place, const std::vector<CapturedEdge>& into,
                   int depth) {
    void* child = nullptr;
    PW_TRY(check(f_.child(node, &child), "cuGraphChildGraphNodeGetGraph"));
    return add_graphs({&child, 1}, place, into, depth);
  }

  Status add_conditional(void* node, std::uint32_t place, const std::vector<CapturedEdge>& into,
                         int depth) {
    constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
    CudaConditional read;
    const int code = f_.conditional == nullptr ? kNotSupported : f_.conditional(node, &read);
    if (code == kNotSupported) {  // its bodies are missing
      out.edges.insert(out.edges.end(), into.begin(), into.end());
      return {};
    }
    PW_TRY(check(code, "cuGraphNodeGetParams"));
    if (read.kind < 0 || read.kind >= static_cast<int>(kConditionKinds) || read.body == nullptr ||
        read.bodies == 0 || read.bodies > kMostNodes)
      return fail(error_in(out.name, "PW1262",
                           fmt::format("a conditional node of unknown type {} with {} bodies",
                                       read.kind, read.bodies)));
    out.nodes[place].condition =
        CapturedCondition{static_cast<ConditionKind>(read.kind), read.bodies};
    return add_graphs({read.body, read.bodies}, place, into, depth);
  }

  /// Makes the node that holds graphs the end of their nodes.
  Status add_graphs(std::span<void* const> graphs, std::uint32_t place,
                    const std::vector<CapturedEdge>& into, int depth) {
    Places before, ends;
    for (const CapturedEdge& e : into) before.push_back(e.from);
    for (std::uint32_t body = 0; body < graphs.size(); ++body) {
      const std::size_t begin = out.nodes.size();
      const Places last = PW_TRY(add_graph(graphs[body], before, depth + 1));
      for (std::size_t i = begin; i < out.nodes.size(); ++i) {
        if (out.nodes[i].inside) continue;
        out.nodes[i].inside = place;
        out.nodes[i].body = body;
      }
      const Places& through = last.empty() ? before : last;
      ends.insert(ends.end(), through.begin(), through.end());
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (const std::uint32_t end : ends) out.edges.push_back({end, place});
    return {};
  }

  const CudaGraphQueries& f_;
  KernelNames names_;
};

/// The library is loaded by whoever captured the graph, so it is never closed here.
struct Library {
  CudaGraphQueries functions;
  std::string problem;
};

const Library& library_at(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, Library> opened;
  const std::lock_guard lock(mutex);
  const auto [known, fresh] = opened.try_emplace(path);
  if (!fresh) return known->second;
  Library& library = known->second;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    library.problem = path + " was not found";
  else if (const std::string missing = fill(library.functions, handle); !missing.empty())
    library.problem = path + " lacks " + missing + ": CUDA 12.0 or later is required";
  return library;
}

}  // namespace

Result<CapturedLaunches> read_captured_graph(std::uint64_t graph, std::string name,
                                             const std::string& library) {
  const Library& opened = library_at(library.empty() ? cuda_library_path() : library);
  if (!opened.problem.empty()) return fail(error_in(name, "PW1260", opened.problem));
  if (graph == 0) return fail(error_in(name, "PW1262", "there is no graph: its address is 0"));
  GraphReader reader(opened.functions);
  reader.out.name = std::move(name);
  PW_TRY(reader.read(reinterpret_cast<void*>(graph)));
  if (!sort_topologically(reader.out))
    return fail(error_in(reader.out.name, "PW1262", "the dependencies of the graph have a cycle"));
  return std::move(reader.out);
}

}  // namespace pw::cuda
