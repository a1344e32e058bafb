#include "tests/backends_cuda/stand_in.hpp"

#include <dlfcn.h>

#include "base/io/file.hpp"
#include "tests/catch.hpp"

namespace pw::test {
namespace {

/// The driver. A function given by `stand_in_kernels` runs its kernels; without one it has none.
constexpr const char* kDevice = R"(
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

using std::size_t;

namespace {

struct Graph;
/// What queries report of a node.
struct Facts {
  int kind = 0;  // CUgraphNodeType
  const struct Function* function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared = 0;
  size_t bytes = 0;
};
struct Node {
  std::function<void()> run;
  std::vector<Node*> after;
  Graph* child = nullptr;
  Facts facts;
  std::vector<bool> programmatic;  // dependencies, as far as any is
  std::uint64_t condition = 0;     // of a conditional node
  int condition_kind = 0;          // CUgraphConditionalNodeType
  std::vector<Graph*> bodies;
};
/// Has its nodes, and those the graphs in them.
struct Graph {
  std::vector<Node*> nodes;
  ~Graph() {
    for (Node* n : nodes) {
      delete n->child;
      for (Graph* body : n->bodies) delete body;
      delete n;
    }
  }
};
struct Stream {
  Graph* capturing = nullptr;
};

constexpr int kUnsupported = 900, kImplicit = 906;

Stream legacy;           // the stream that is called null
int captures = 0;        // under way, on any stream
bool relaxed = false;    // whether calls that may wait are allowed during them
int open_graphs = 0;     // begun, and not made ready
int allocations = 0, waits = 0, loads = 0, copies_of_host = 0, launches = 0, programmatic_edges = 0, updates = 0;

/// Functions of a kernel's name: the number of its parameters, and a run with their values.
int (*parameters)(const char*) = nullptr;
void (*run_kernel)(const char*, const std::uint64_t*) = nullptr;

struct Function {
  std::string name;
};
auto& functions = *new std::map<std::string, Function>;  // of all modules, by name
std::mt19937 random_order(1);

Graph* copy_of(const Graph* graph) {
  auto* out = new Graph;
  std::map<const Node*, Node*> copies;
  for (const Node* n : graph->nodes) {
    auto* copy = new Node(*n);
    for (Node*& before : copy->after) before = copies.at(before);
    if (copy->child != nullptr) copy->child = copy_of(copy->child);
    for (Graph*& body : copy->bodies) body = copy_of(body);
    copies[n] = copy;
    out->nodes.push_back(copy);
  }
  return out;
}

struct Flat {
  std::function<void()> run;
  std::vector<size_t> after;
};

void run_conditional(const Node* node);

/// The nodes of a graph that begins after others, those in its graphs too; the number of what ends
/// it.
size_t flatten(const Graph* graph, std::vector<size_t> first, std::vector<Flat>& out) {
  std::map<const Node*, size_t> end;
  std::vector<size_t> all = first;
  for (const Node* n : graph->nodes) {
    std::vector<size_t> after = first;
    for (const Node* before : n->after) after.push_back(end.at(before));
    if (n->condition != 0) {
      end[n] = out.size();
      out.push_back({[n] { run_conditional(n); }, after});
    } else if (n->child != nullptr) {
      end[n] = flatten(n->child, after, out);
    } else {
      end[n] = out.size();
      out.push_back({n->run, after});
    }
    all.push_back(end[n]);
  }
  out.push_back({[] {}, all});
  return out.size() - 1;
}

void replay(const Graph* graph);

bool reports_bodies = true;
auto& executables = *new std::vector<Graph*>;  // alive, oldest first

/// Conditions by handle; a launch sets them to what they were created with.
auto& begun_with = *new std::map<std::uint64_t, unsigned>;

void run_conditional(const Node* node) {
  auto* condition = reinterpret_cast<unsigned*>(node->condition);
  *condition = begun_with.at(node->condition);
  while (node->condition_kind == 1 && *condition != 0) replay(node->bodies[0]);
  const size_t chosen = node->condition_kind == 0 ? *condition == 0 : *condition;
  if (node->condition_kind != 1 && chosen < node->bodies.size()) replay(node->bodies[chosen]);
}

void replay(const Graph* graph) {
  std::vector<Flat> nodes;
  flatten(graph, {}, nodes);
  std::vector<bool> done(nodes.size());
  for (size_t count = 0; count < nodes.size(); ++count) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < nodes.size(); ++i) {
      bool can = !done[i];
      for (size_t before : nodes[i].after) can = can && done[before];
      if (can) ready.push_back(i);
    }
    const size_t next = ready[random_order() % ready.size()];
    nodes[next].run();
    done[next] = true;
  }
}

/// At once, or recorded, each after the one before.
int set_going(Stream* stream, std::function<void()> run, const Facts& facts = {}) {
  if (stream == nullptr) {
    if (captures != 0) return kImplicit;
    stream = &legacy;
  }
  if (stream->capturing == nullptr) {
    run();
    return 0;
  }
  auto* node = new Node{run, {}, nullptr, facts};
  if (!stream->capturing->nodes.empty()) node->after = {stream->capturing->nodes.back()};
  stream->capturing->nodes.push_back(node);
  return 0;
}

/// What no stream that is captured allows.
int at_once(Stream* stream, std::function<void()> run) {
  if (stream == nullptr && captures != 0) return kImplicit;
  if (stream != nullptr && stream->capturing != nullptr) return kUnsupported;
  run();
  return 0;
}

/// Returns true if a capture on any thread forbids calls that may wait or allocate.
bool forbidden() { return captures != 0 && !relaxed; }

std::function<void()> run_of(const Function* function, void* const* from) {
  std::vector<std::uint64_t> values(static_cast<size_t>(parameters(function->name.c_str())));
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], from[i], sizeof values[i]);
  return [=] { run_kernel(function->name.c_str(), values.data()); };
}

int launch(Stream* stream, const Facts& facts, void** from) {
  if (run_kernel == nullptr) return 200;
  ++launches;
  return set_going(stream, run_of(facts.function, from), facts);
}

struct Kernel {  // CUDA_KERNEL_NODE_PARAMS_v2
  const Function* function;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kernel, *context;
};

struct Copy {  // CUDA_MEMCPY3D_v2
  struct End {
    size_t x, y, z, level;
    int memory;
    void* host;
    std::uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
  } from, to;
  size_t width, height, depth;
};

char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

int add(void** out, Graph* graph, Node* const* after, size_t count, std::function<void()> run,
        Graph* child, const Facts& facts) {
  auto* node = new Node{run, {after, after + count}, child, facts};
  graph->nodes.push_back(node);
  *out = node;
  return 0;
}

}  // namespace

extern "C" {
void stand_in_kernels(int (*count)(const char*), void (*run)(const char*, const std::uint64_t*)) {
  parameters = count;
  run_kernel = run;
}
int stand_in_allocations() { return allocations; }
int stand_in_waits() { return waits; }
int stand_in_loads() { return loads; }
int stand_in_copies_of_host() { return copies_of_host; }
int stand_in_launches() { return launches; }
int stand_in_updates() { return updates; }
int stand_in_programmatic_edges() { return programmatic_edges; }
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuGetErrorName(int code, const char** text) {
  *text = code == kUnsupported ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
          : code == kImplicit ? "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* d, int) { *d = 0; return 0; }
int cuDeviceGetName(char* name, int, int) { std::strcpy(name, "stand-in"); return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) { *value = attribute == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int) { *c = c; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemGetInfo_v2(size_t* free, size_t* total) { *free = *total = size_t{1} << 32; return 0; }
int cuMemAlloc_v2(std::uint64_t* address, size_t bytes) {
  if (forbidden()) return kUnsupported;
  ++allocations;
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(block, 0xff, bytes);
  *address = reinterpret_cast<std::uint64_t>(block);
  return 0;
}
int cuMemFree_v2(std::uint64_t address) { std::free(at(address)); return 0; }
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, size_t bytes, Stream* s) {
  return at_once(s, [=] { ++copies_of_host, std::memcpy(at(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, size_t bytes, Stream* s) {
  return at_once(s, [=] { ++copies_of_host, std::memcpy(to, at(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, size_t bytes, Stream* s) {
  Facts facts;
  facts.kind = 1;
  facts.bytes = bytes;
  return set_going(s, [=] { std::memmove(at(to), at(from), bytes); }, facts);
}
int cuMemsetD8Async(std::uint64_t to, unsigned char byte, size_t bytes, Stream* s) {
  Facts facts;
  facts.kind = 2;
  facts.bytes = bytes;
  return set_going(s, [=] { std::memset(at(to), byte, bytes); }, facts);
}
int cuStreamCreate(void** s, unsigned) { *s = new Stream; return 0; }
int cuStreamSynchronize(Stream* s) {
  if (forbidden()) return kUnsupported;
  return at_once(s, [] { ++waits; });
}
int cuStreamDestroy_v2(Stream* s) { delete s; return 0; }
int cuStreamBeginCapture_v2(Stream* s, int mode) {
  if (s == nullptr) return kImplicit;
  if (s->capturing != nullptr || mode < 0 || mode > 2) return 1;
  s->capturing = new Graph;
  ++captures;
  relaxed = mode == 2;
  return 0;
}
int cuStreamEndCapture(Stream* s, void** graph) {
  if (s->capturing == nullptr) return 1;
  *graph = s->capturing;
  s->capturing = nullptr;
  --captures;
  return 0;
}
int cuModuleLoadData(void** module, const void*) {
  if (run_kernel == nullptr) return 200;
  if (forbidden()) return kUnsupported;
  ++loads;
  *module = new int;
  return 0;
}
int cuModuleUnload(void* module) { delete static_cast<int*>(module); return 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  static std::mutex guard;
  const std::lock_guard held(guard);
  *function = &functions.insert({name, Function{name}}).first->second;
  return 0;
}
int cuFuncSetAttribute(void*, int, int) { return run_kernel == nullptr ? 200 : 0; }
int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, Stream* s, void** from, void**) {
  return launch(s, {0, function, {gx, gy, gz}, {bx, by, bz}, shared}, from);
}
int cuGraphCreate(void** graph, unsigned) { *graph = new Graph; ++open_graphs; return 0; }
int cuGraphDestroy(Graph* graph) { delete graph; return 0; }
int cuGraphAddKernelNode_v2(void** out, Graph* graph, Node* const* after, size_t count, const Kernel* k) {
  if (run_kernel == nullptr) return 200;
  const Facts facts{0, k->function, {k->grid[0], k->grid[1], k->grid[2]}, {k->block[0], k->block[1], k->block[2]}, k->shared};
  return add(out, graph, after, count, run_of(k->function, k->params), nullptr, facts);
}
int cuGraphAddMemcpyNode(void** out, Graph* graph, Node* const* after, size_t count, const Copy* c,
                         void*) {
  const Copy copy = *c;
  Facts facts;
  facts.kind = 1;
  facts.bytes = copy.width;
  return add(out, graph, after, count,
             [=] { std::memmove(at(copy.to.device), at(copy.from.device), copy.width); }, nullptr, facts);
}
int cuGraphAddChildGraphNode(void** out, Graph* graph, Node* const* after, size_t count,
                             const Graph* child) {
  return add(out, graph, after, count, [] {}, copy_of(child), {4});
}
int cuGraphConditionalHandleCreate(std::uint64_t* handle, Graph*, void* context, unsigned value, unsigned flags) {
  if (context == nullptr || flags != 1) return 1;
  *handle = reinterpret_cast<std::uint64_t>(new unsigned(0));
  begun_with[*handle] = value;
  return 0;
}
struct Loop {  // CUgraphNodeParams of a conditional node
  int type, reserved[3];
  std::uint64_t handle;
  int kind;
  unsigned size;
  Graph** graphs;
  void* context;
  long long rest[26];
};
int cuGraphAddNode_v2(Node** out, Graph* graph, Node* const* after, const void*, size_t count, Loop* loop) {
  static_assert(sizeof(Loop) == 256, "CUgraphNodeParams");
  for (const long long word : loop->rest)
    if (word != 0) return 1;
  if (loop->type != 13 || loop->kind < 0 || loop->kind > 2 || begun_with.count(loop->handle) == 0) return 1;
  if (loop->size == 0 || (loop->kind != 2 && loop->size + loop->kind > 2)) return 1;
  void* node = nullptr;
  add(&node, graph, after, count, [] {}, nullptr, {13});
  *out = static_cast<Node*>(node);
  (*out)->condition = loop->handle;
  (*out)->condition_kind = loop->kind;
  while ((*out)->bodies.size() < loop->size) (*out)->bodies.push_back(new Graph);
  loop->graphs = (*out)->bodies.data();
  return 0;
}
int cuGraphNodeGetParams(Node* node, Loop* out) {
  if (!reports_bodies) return 801;  // CUDA_ERROR_NOT_SUPPORTED
  if (node->facts.kind != 13) return 1;
  *out = {13, {}, node->condition, node->condition_kind, static_cast<unsigned>(node->bodies.size()), node->bodies.data()};
  return 0;
}
/// Answers queries of conditional nodes as drivers before CUDA 13.2 do.
void stand_in_hides_bodies(int hidden) { reports_bodies = hidden == 0; }
/// The executables that are alive, oldest first, or null.
Graph* stand_in_executable(size_t number) { return number < executables.size() ? executables[number] : nullptr; }
int cuGraphAddEmptyNode(void** out, Graph* graph, Node* const* after, size_t count) {
  return add(out, graph, after, count, [] {}, nullptr, {5});
}
/// Makes the dependency of that number programmatic, as a launch with that attribute would.
void stand_in_programmatic(Node* node, size_t dependency) {
  node->programmatic.resize(node->after.size());
  node->programmatic[dependency] = true;
}
int cuGraphAddDependencies_v2(Graph*, Node* const* from, Node* const* to, const unsigned char (*data)[8], size_t count) {
  for (size_t i = 0; i < count; ++i) {
    to[i]->after.push_back(from[i]);
    if (data == nullptr || data[i][2] != 1) continue;
    if (data[i][0] != 1 || from[i]->facts.kind != 0 || to[i]->facts.kind != 0) return 1;
    stand_in_programmatic(to[i], to[i]->after.size() - 1);
    ++programmatic_edges;
  }
  return 0;
}
int cuGraphGetNodes(Graph* graph, Node** out, size_t* count) {
  if (out != nullptr)
    for (size_t i = 0; i < *count && i < graph->nodes.size(); ++i) out[i] = graph->nodes[i];
  *count = graph->nodes.size();
  return 0;
}
int cuGraphGetEdges_v2(Graph* graph, Node** from, Node** to, unsigned char (*data)[8], size_t* count) {
  size_t number = 0;
  for (Node* node : graph->nodes)
    for (size_t i = 0; i < node->after.size(); ++i, ++number) {
      if (from == nullptr) continue;
      const bool programmatic = i < node->programmatic.size() && node->programmatic[i];
      from[number] = node->after[i];
      to[number] = node;
      if (data == nullptr && programmatic) return 917;  // CUDA_ERROR_LOSSY_QUERY
      if (data == nullptr) continue;
      std::memset(data[number], 0, 8);
      data[number][0] = data[number][2] = programmatic;
    }
  *count = number;
  return 0;
}
int cuGraphGetEdges(Graph* graph, Node** from, Node** to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
int cuGraphNodeGetType(const Node* node, int* type) { *type = node->facts.kind; return 0; }
int cuGraphKernelNodeGetParams_v2(const Node* node, Kernel* out) {
  if (node->facts.kind != 0) return 1;
  const Facts& f = node->facts;
  *out = {f.function, {f.grid[0], f.grid[1], f.grid[2]}, {f.block[0], f.block[1], f.block[2]}, f.shared};
  return 0;
}
int cuFuncGetName(const char** name, const Function* function) { *name = function->name.c_str(); return 0; }
int cuGraphMemcpyNodeGetParams(const Node* node, Copy* out) {
  if (node->facts.kind != 1) return 1;
  out->width = node->facts.bytes;
  out->height = out->depth = 1;
  return 0;
}
struct Fill { std::uint64_t at; size_t pitch; unsigned value, element_bytes; size_t width, height; };
int cuGraphMemsetNodeGetParams(const Node* node, Fill* out) {
  if (node->facts.kind != 2) return 1;
  *out = {0, 0, 0, 1, node->facts.bytes, 1};
  return 0;
}
int cuGraphChildGraphNodeGetGraph(const Node* node, Graph** out) { *out = node->child; return node->child == nullptr; }
int cuGraphMemAllocNodeGetParams(const Node*, void*) { return 1; }
int cuGraphInstantiateWithFlags(void** out, const Graph* graph, unsigned long long) {
  executables.push_back(copy_of(graph));
  *out = executables.back();
  --open_graphs;
  return 0;
}
struct Update {  // CUgraphExecUpdateResultInfo
  int result;
  Node *node, *before;
};
bool alike(const Graph* a, const Graph* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->nodes.size() != b->nodes.size()) return false;
  const auto place = [](const Graph* g, const Node* n) { return std::find(g->nodes.begin(), g->nodes.end(), n) - g->nodes.begin(); };
  for (size_t i = 0; i < a->nodes.size(); ++i) {
    const Node *x = a->nodes[i], *y = b->nodes[i];
    if (x->facts.kind != y->facts.kind || x->facts.kind == 13 || x->programmatic != y->programmatic || x->after.size() != y->after.size()) return false;
    for (size_t k = 0; k < x->after.size(); ++k)
      if (place(a, x->after[k]) != place(b, y->after[k])) return false;
    if (!alike(x->child, y->child)) return false;
  }
  return true;
}
int cuGraphExecUpdate_v2(Graph* executable, const Graph* graph, Update* why) {
  if (std::find(executables.begin(), executables.end(), executable) == executables.end()) return 400;
  if (!alike(executable, graph)) {
    *why = {3, nullptr, nullptr};
    return 910;
  }
  Graph* const made = copy_of(graph);
  std::swap(executable->nodes, made->nodes);
  delete made;
  ++updates;
  return 0;
}
int cuGraphUpload(void*, Stream* s) { return at_once(s, [] {}); }
int cuGraphLaunch(const Graph* graph, Stream* s) { return at_once(s, [&] { replay(graph); }); }
int cuGraphExecDestroy(Graph* graph) {
  executables.erase(std::remove(executables.begin(), executables.end(), graph), executables.end());
  delete graph;
  return 0;
}
}
)";

/// cuBLASLt: `op(A)` is m × k, `op(B)` k × n, D m × n, all of them column-major.
constexpr const char* kProducts = R"(
namespace {

int searches = 0, products = 0;

struct Primitive {
  int compute = 0, scale = 0;
  std::map<int, std::uint64_t> attributes;
  std::uint64_t get(int a) const { return attributes.count(a) != 0 ? attributes.at(a) : 0; }
};
struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
};
struct Algorithm {
  std::uint64_t m, n, k, types, operation, workspace, unused[2];
};
struct Found {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

/// Sign, bits of the exponent, bits of the fraction.
struct Format { int exponent, fraction; };
Format format_of(int type) {
  return type == 2 ? Format{5, 10} : type == 14 ? Format{8, 7} : Format{4, 3};
}
int size_of(int type) { return type == 0 ? 4 : type == 28 ? 1 : 2; }

float load(int type, const void* from, std::int64_t i) {
  if (type == 0) return static_cast<const float*>(from)[i];
  const unsigned bits = size_of(type) == 1 ? static_cast<const std::uint8_t*>(from)[i]
                                           : static_cast<const std::uint16_t*>(from)[i];
  const Format f = format_of(type);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const int exponent = static_cast<int>(bits >> f.fraction) & ((1 << f.exponent) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << f.fraction) - 1);
  const bool negative = (bits >> (f.exponent + f.fraction) & 1) != 0;
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - f.fraction)
                                    : std::ldexp(fraction + (1 << f.fraction), exponent - bias - f.fraction);
  return static_cast<float>(negative ? -size : size);
}

/// To the nearest, to even between two. What is too large for the format does not occur.
void store(int type, void* to, std::int64_t i, float value) {
  if (type == 0) {
    static_cast<float*>(to)[i] = value;
    return;
  }
  const Format f = format_of(type);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const double size = std::fabs(static_cast<double>(value));
  int exponent = size == 0 ? 1 - bias : std::max(std::ilogb(size), 1 - bias);
  const double in_units = std::nearbyint(std::ldexp(size, f.fraction - exponent));
  // A fraction that rounds up to the next power of two carries into the exponent by itself.
  const std::uint32_t bits = static_cast<std::uint32_t>(in_units) +
                             (static_cast<std::uint32_t>(exponent + bias - 1) << f.fraction);
  static_cast<std::uint16_t*>(to)[i] =
      static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000u : 0u));
}

/// The extents of the product, or a status: the library's rules, and one more, see below.
int extents(const Primitive* o, const Layout* a, const Layout* b, const Layout* c, const Layout* d,
            Algorithm& out) {
  const bool ta = o->get(3) == 1, tb = o->get(4) == 1;
  const std::uint64_t m = ta ? a->columns : a->rows, k = ta ? a->rows : a->columns;
  const std::uint64_t n = tb ? b->rows : b->columns, depth = tb ? b->columns : b->rows;
  if (depth != k || d->rows != m || d->columns != n || c->rows != m || c->columns != n) return 7;
  for (const Layout* l : {a, b, c, d})
    if (l->leading < static_cast<std::int64_t>(l->rows)) return 7;
  if (o->compute != 68 || o->scale != 0 || a->type != b->type || c->type != d->type) return 15;
  const bool scaled = o->get(17) != 0 || o->get(18) != 0;
  if (a->type == 28) {
    if (!ta || tb || a->leading % 16 != 0 || b->leading % 16 != 0 || m % 16 != 0) return 15;
    if (d->type == 28 || !scaled || o->get(31) != o->get(32)) return 15;
  } else if (a->type != d->type || scaled) {
    return 15;
  }
  if (o->get(7) != 0 && (o->get(7) != 4 || o->get(8) == 0)) return 7;
  if (m == 13 && n == 3) return 15;  // so that there is a product without an algorithm
  out = {m, n, k, static_cast<std::uint64_t>(a->type * 100 + d->type), o->get(3) * 10 + o->get(7),
         0, {}};
  return 0;
}

}  // namespace

extern "C" {
int stand_in_searches() { return searches; }
int stand_in_products() { return products; }
size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusName(int s) { return s == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "another status"; }
int cublasLtCreate(void** handle) { *handle = &searches; return 0; }
int cublasLtDestroy(void*) { return 0; }
int cublasLtMatmulDescCreate(void** out, int compute, int scale) {
  *out = new Primitive{compute, scale, {}};
  return 0;
}
int cublasLtMatmulDescSetAttribute(Primitive* o, int attribute, const void* from, size_t bytes) {
  const std::map<int, size_t> sizes{{3, 4}, {4, 4}, {7, 4}, {8, 8}, {17, 8}, {18, 8}, {26, 4}, {31, 4}, {32, 4}};
  if (sizes.count(attribute) == 0 || sizes.at(attribute) != bytes) return 7;
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  o->attributes[attribute] = value;
  return 0;
}
int cublasLtMatmulDescDestroy(Primitive* o) { delete o; return 0; }
int cublasLtMatrixLayoutCreate(void** out, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  *out = new Layout{type, rows, columns, leading};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* l) { delete l; return 0; }
int cublasLtMatmulPreferenceCreate(void** out) { *out = new std::map<int, std::uint64_t>; return 0; }
int cublasLtMatmulPreferenceSetAttribute(std::map<int, std::uint64_t>* p, int attribute, const void* from, size_t bytes) {
  if (bytes != (attribute == 1 ? 8u : 4u)) return 7;
  std::uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  (*p)[attribute] = value;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(std::map<int, std::uint64_t>* p) { delete p; return 0; }
/// Not while a graph is being made.
int cublasLtMatmulAlgoGetHeuristic(void*, const Primitive* o, const Layout* a, const Layout* b, const Layout* c,
                                   const Layout* d, const std::map<int, std::uint64_t>* p, int wanted, Found* out, int* count) {
  ++searches;
  *count = 0;
  if (open_graphs != 0 || wanted != 1) return 14;
  for (int alignment : {5, 6, 7, 8})
    if (p->count(alignment) == 0 || p->at(alignment) % 16 != 0) return 15;
  if (const int status = extents(o, a, b, c, d, out->algorithm); status != 0) return status;
  out->workspace = out->algorithm.workspace = out->algorithm.m * out->algorithm.n * sizeof(float);
  if (p->count(1) == 0 || p->at(1) < out->workspace) return 15;
  out->status = 0;
  *count = 1;
  return 0;
}
int cublasLtMatmul(void*, const Primitive* operation, const float* alpha_at, const void* a, const Layout* la, const void* b,
                   const Layout* lb, const float* beta_at, const void* c, const Layout* lc, void* d, const Layout* ld,
                   const Algorithm* algorithm, void* workspace, size_t bytes, Stream* stream) {
  ++products;
  Algorithm own{};
  if (const int status = extents(operation, la, lb, lc, ld, own); status != 0) return status;
  own.workspace = own.m * own.n * sizeof(float);
  if (std::memcmp(&own, algorithm, sizeof own) != 0 || workspace == nullptr || bytes < own.workspace) return 7;
  if (reinterpret_cast<std::uint64_t>(workspace) % 256 != 0) return 7;
  // Descriptors and numbers are read now, tensors when the node runs.
  const Primitive o = *operation;
  const Layout A = *la, B = *lb, C = *lc, D = *ld;
  const float alpha = *alpha_at, beta = *beta_at;
  auto* sums = static_cast<float*>(workspace);
  const auto m = static_cast<std::int64_t>(own.m), n = static_cast<std::int64_t>(own.n), k = static_cast<std::int64_t>(own.k);
  const bool ta = o.get(3) == 1, tb = o.get(4) == 1;
  const auto pointer = [=](int attribute) { return reinterpret_cast<const void*>(o.get(attribute)); };
  set_going(stream, [=] {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(load(A.type, a, ta ? l + i * A.leading : i + l * A.leading)) *
                 load(B.type, b, tb ? j + l * B.leading : l + j * B.leading);
        sums[i + j * m] = static_cast<float>(sum);
      }
  });
  return set_going(stream, [=] {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        float value = alpha * sums[i + j * m];
        if (o.get(17) != 0) value *= load(0, pointer(17), o.get(31) == 3 ? i : 0);
        if (o.get(18) != 0) value *= load(0, pointer(18), o.get(32) == 3 ? j : 0);
        if (beta != 0) value += beta * load(C.type, c, i + j * C.leading);
        if (o.get(7) == 4) value += load(static_cast<int>(o.get(26)), pointer(8), i);
        store(D.type, d, i + j * D.leading, value);
      }
  });
}
}
)";

}  // namespace

StandIn::StandIn() {
  if (host_compiler().empty()) {
    WARN("SKIPPED: no C++ compiler on PATH, so there is no device to stand in");
    return;
  }
  const std::vector<std::string> flags{"-std=c++17", "-w", "-O1"};
  const auto object = Toolchain::find().shared_object(std::string(kDevice) + kProducts, flags);
  if (!object) FAIL(object.error().front().message);
  const std::string path = folder_.path() + "/libstandin.so";
  REQUIRE(write_file(path, *object));
  path_ = path;
}

std::unique_ptr<cuda::CudaDriver> StandIn::driver(bool strict) const {
  cuda::CudaDriverOptions options;
  options.library = options.cublaslt = path_;
  options.strict = strict;
  auto driver = cuda::CudaDriver::open(options);
  if (!driver) FAIL(driver.error().front().message);
  return std::move(*driver);
}

/// The library stays loaded, so that its counters and functions last.
void* StandIn::find(const char* name) const {
  void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  void* found = dlsym(library, name);
  REQUIRE(found != nullptr);
  return found;
}
int StandIn::counter(const std::string& name) const {
  return function<int()>(("stand_in_" + name).c_str())();
}
int StandIn::searches() const { return counter("searches"); }
int StandIn::products() const { return counter("products"); }

}  // namespace pw::test
