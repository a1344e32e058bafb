// Names and strings of graphs and rules, made to break out of where they are put: nothing of them
// reaches generated source, a path or a command line.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <sys/stat.h>

#include "backends/cpu/emitter.hpp"
#include "backends/eager/eager.hpp"
#include "base/io/file.hpp"
#include "codegen/cache/object.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;
namespace fs = std::filesystem;

/// An op with the meaning of silu; declared without the parser, so that its name can be anything.
OpId silu_named(Context& context, const std::string& name) {
  Op op = context.ops[context.ops.find("silu")];
  op.name = name;
  auto declared = context.ops.declare(op);
  REQUIRE(declared);
  return *declared;
}

/// y = that op of x + x, everything that has a name named so.
Graph graph_named(const ContextPtr& context, const std::string& name) {
  Graph graph(context, name);
  const TypeId type =
      context->types.get(DType::bf16, {context->dims.constant(5), context->dims.constant(24)});
  const ValueId x = graph.add_input(name + "x", type, InputKind::input);
  NodeSpec sum;
  sum.op = context->ops.find("add");
  sum.operands = {x, x};
  sum.results = {{type, name + "s"}};
  sum.group = name;
  sum.source = name;
  const NodeId added = graph.add_node(sum);
  NodeSpec spec;
  spec.op = silu_named(*context, name);
  spec.operands = {graph.result(added)};
  spec.results = {{type, name + "y"}};
  spec.name = name + "n";
  spec.group = name;
  spec.attributes = context->attributes.intern({{context->strings.intern(name), Attribute(name)}});
  graph.add_output(graph.result(graph.add_node(spec)));
  return graph;
}

std::string kernel_of(const Graph& graph) {
  for (const rows::RunUnit& unit : rows::group_rows(graph)) {
    if (unit.kind == rows::RunUnit::Kind::rows) return cpu::emit(unit.program, {});
  }
  return "";
}

/// A compiler that logs its arguments and then calls the real one.
class Spy {
 public:
  Spy() {
    compiler_ = host_compiler();
    const char* before = std::getenv("CXX");
    had_ = before != nullptr;
    if (had_) before_ = before;
    const std::string script = folder_.path() + "/spy";
    std::ofstream(script) << "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\" >> '"
                          << folder_.path() << "/log'; case \"$a\" in */kernel.cpp) cat \"$a\" >> '"
                          << folder_.path() << "/sources';; esac; done\nexec '" << compiler_
                          << "' \"$@\"\n";
    REQUIRE(::chmod(script.c_str(), 0700) == 0);
    ::setenv("CXX", script.c_str(), 1);
  }
  ~Spy() {
    if (had_)
      ::setenv("CXX", before_.c_str(), 1);
    else
      ::unsetenv("CXX");
  }
  Spy(const Spy&) = delete;
  Spy& operator=(const Spy&) = delete;
  [[nodiscard]] std::string arguments() const { return read_file(folder_.path() + "/log").value(); }
  [[nodiscard]] std::string sources() const {
    return read_file(folder_.path() + "/sources").value();
  }
  [[nodiscard]] std::shared_ptr<CompileCache> cache() const {
    return std::make_shared<CompileCache>(CacheOptions{folder_.path() + "/cache", ""});
  }

 private:
  PrivateFolder folder_;
  std::string compiler_, before_;
  bool had_ = false;
};

void check_name(const std::string& name) {
  const ContextPtr context = library();
  const Graph graph = graph_named(context, name);
  const Graph plain = graph_named(library(), "plain");
  // The text is that of a graph with harmless names, to the letter.
  REQUIRE(kernel_of(plain) != "");
  CHECK(kernel_of(graph) == kernel_of(plain));
  const Spy spy;
  CpuBackend cpu({.cache = spy.cache()});
  Tensor x(DType::bf16, {5, 24});
  for (std::int64_t i = 0; i < 120; ++i)
    store(DType::bf16, x.data(), i, 0.1 * static_cast<double>(i) - 6);
  const auto got = outputs_of(cpu, graph, {x.view()}, {});
  const auto eager = make_eager();
  const auto wanted = outputs_of(*eager, graph, {x.view()}, {});
  for (std::int64_t i = 0; i < 120; ++i) {
    const double a = load(DType::bf16, got[0].data(), i),
                 b = load(DType::bf16, wanted[0].data(), i);
    CHECK(std::fabs(a - b) <= 2 * ulp(DType::bf16, b));
  }
  REQUIRE(cpu.report().compiled == 1);
  const std::string needle = name.substr(0, 12);
  CHECK(spy.arguments().find(needle) == std::string::npos);
  CHECK(spy.sources().find(needle) == std::string::npos);
  CHECK(!fs::exists("pwned"));
}

}  // namespace

TEST_CASE("hostile: quotes and backslashes in names", "[cpu]") {
  if (have_compiler()) check_name("q\"'\\\" ); int hostile = 1; (\"");
}
TEST_CASE("hostile: line breaks and preprocessor lines in names", "[cpu]") {
  if (have_compiler()) check_name("l\n#include \"/etc/passwd\"\n#error hostile\r\n");
}
TEST_CASE("hostile: comment ends in names", "[cpu]") {
  if (have_compiler()) check_name("c*/ hostile(); /* // \?\?/\n");
}
TEST_CASE("hostile: shell metacharacters in names", "[cpu]") {
  if (have_compiler()) check_name("$(touch pwned); `touch pwned` | touch pwned & > pwned");
}
TEST_CASE("hostile: paths and options in names", "[cpu]") {
  if (have_compiler()) check_name("../../../-o/../pwned -include /etc/passwd @/etc/passwd");
}
TEST_CASE("hostile: zero bytes and bytes that are not text in names", "[cpu]") {
  if (have_compiler()) check_name(std::string("\0\xff\xfe\x80hostile\0\x1b[31m", 18));
}
TEST_CASE("hostile: a name of a megabyte", "[cpu]") {
  if (have_compiler()) check_name("long_hostile" + std::string(1 << 20, 'x'));
}

TEST_CASE("hostile: CXX is a path, never a command line", "[cpu]") {
  const char* before = std::getenv("CXX");
  const std::string saved = before ? before : "";
  for (const char* value :
       {"g++ -DX", "g++; touch pwned", "$(touch pwned)", "/nowhere/g++", "-v"}) {
    ::setenv("CXX", value, 1);
    INFO(value);
    const std::string found = host_compiler();
    CHECK((found.empty() || found.front() == '/'));
    CHECK(found.find(value) == std::string::npos);
  }
  if (before)
    ::setenv("CXX", saved.c_str(), 1);
  else
    ::unsetenv("CXX");
  CHECK(!fs::exists("pwned"));
}

TEST_CASE("hostile: a graph cannot name a compiled kernel by itself", "[cpu]") {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  Op op;
  op.name = "row kernel";
  op.imported = true;
  const OpId id = context->ops.declare(op).value();
  Graph graph(context, "g");
  const TypeId type = context->types.get(DType::f32, {context->dims.constant(4)});
  NodeSpec spec;
  spec.op = id;
  spec.operands = {graph.add_input("x", type, InputKind::input)};
  spec.attributes =
      context->attributes.intern({{context->strings.intern("kernel"), std::int64_t{7}}});
  spec.results = {{type, "y"}};
  graph.add_output(graph.result(graph.add_node(spec)));
  CpuBackend cpu;
  const auto refused = cpu.compile(graph);
  REQUIRE(!refused);
  CHECK(refused.error().front().code == "PW1201");
}

TEST_CASE("cpu: without a compiler everything runs on eager, and the report states it", "[cpu]") {
  const char* path = std::getenv("PATH");
  const char* cxx = std::getenv("CXX");
  const std::string saved_path = path ? path : "", saved_cxx = cxx ? cxx : "";
  ::setenv("PATH", "/nowhere", 1);
  ::unsetenv("CXX");
  const PrivateFolder folder;
  CpuBackend cpu({.cache = std::make_shared<CompileCache>(CacheOptions{folder.path() + "/c", ""})});
  ::setenv("PATH", saved_path.c_str(), 1);
  if (cxx) ::setenv("CXX", saved_cxx.c_str(), 1);
  const Graph graph = graph_of("in x: f32[2, 3]  y = silu(x)  z = y + x  out z");
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, -1, -2, -3});
  const auto got = outputs_of(cpu, graph, {x.view()}, {});
  CHECK(std::fabs(values(got[0])[0] - (1 + 1 / (1 + std::exp(-1.0)))) < 1e-6);
  const CpuReport report = cpu.report();
  CHECK(report.compiler.empty());
  CHECK(report.kernels.empty());
  REQUIRE(report.fallbacks.size() == 2);
  CHECK(report.fallbacks[0].reason == "no C++ compiler was found");
}

TEST_CASE("cpu: a compiler that fails leaves the ops to eager, with its words", "[cpu]") {
  const PrivateFolder folder;
  const std::string script = folder.path() + "/cc";
  std::ofstream(script) << "#!/bin/sh\necho the disk is on fire >&2\nexit 3\n";
  REQUIRE(::chmod(script.c_str(), 0700) == 0);
  const char* cxx = std::getenv("CXX");
  const std::string saved = cxx ? cxx : "";
  ::setenv("CXX", script.c_str(), 1);
  CpuBackend cpu({.cache = std::make_shared<CompileCache>(CacheOptions{folder.path() + "/c", ""})});
  if (cxx)
    ::setenv("CXX", saved.c_str(), 1);
  else
    ::unsetenv("CXX");
  const Graph graph = graph_of("in x: f32[2]  y = silu(x)  out y");
  const Tensor x = tensor(DType::f32, {2}, {0, 0});
  CHECK(values(outputs_of(cpu, graph, {x.view()}, {})[0])[0] == 0);
  REQUIRE(cpu.report().fallbacks.size() == 1);
  CHECK(cpu.report().fallbacks[0].reason.find("ended with status 3") != std::string::npos);
  CHECK(cpu.report().fallbacks[0].reason.find("the disk is on fire") != std::string::npos);
}

namespace {

/// CXX and PATH as they were before, at the end.
class Environment {
 public:
  Environment() : path_(value("PATH")), cxx_(value("CXX")) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    put("PATH", path_);
    put("CXX", cxx_);
  }

 private:
  static std::optional<std::string> value(const char* name) {
    const char* text = std::getenv(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
  }
  static void put(const char* name, const std::optional<std::string>& text) {
    if (text)
      ::setenv(name, text->c_str(), 1);
    else
      ::unsetenv(name);
  }
  std::optional<std::string> path_, cxx_;
};

BackendOptions cached_in(const std::string& folder) {
  return {.cache = std::make_shared<CompileCache>(CacheOptions{folder, ""})};
}

struct SmallRun {
  CpuReport report;
  std::vector<double> numbers;
};

SmallRun small_run(CpuBackend& cpu) {
  const Graph graph = graph_of("in x: f32[2, 3]  y = silu(x)  z = y + x  out z");
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, -1, -2, -3});
  std::vector<double> numbers = values(outputs_of(cpu, graph, {x.view()}, {})[0]);
  return {cpu.report(), std::move(numbers)};
}

std::vector<fs::path> objects_in(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder + "/objects"))
    if (entry.is_regular_file()) out.push_back(entry.path());
  return out;
}

}  // namespace

TEST_CASE("cpu: kernels of a warm cache run without the compiler that made them", "[cpu]") {
  if (!have_compiler()) return;
  const Environment before;
  const PrivateFolder folder;
  const std::string cache = folder.path() + "/c";
  CpuBackend with(cached_in(cache));
  const SmallRun wanted = small_run(with);
  REQUIRE(wanted.report.kernels.size() == 1);
  ::setenv("PATH", "/nowhere", 1);
  ::unsetenv("CXX");
  CpuBackend without(cached_in(cache));
  const SmallRun got = small_run(without);
  CHECK(got.report.compiler.empty());
  CHECK(got.report.fallbacks.empty());
  CHECK(got.report.compiled == 0);
  CHECK(got.report.cache.found == 1);
  CHECK(got.numbers == wanted.numbers);
  CpuBackend cold(cached_in(folder.path() + "/other"));
  CHECK(small_run(cold).report.kernels.empty());
}

TEST_CASE("cpu: a kept object that does not load is thrown away and compiled again", "[cpu]") {
  if (!have_compiler()) return;
  const PrivateFolder folder;
  const std::string cache = folder.path() + "/c";
  CpuBackend first(cached_in(cache));
  const SmallRun wanted = small_run(first);
  REQUIRE(objects_in(cache).size() == 1);
  const fs::path object = objects_in(cache).front();
  std::ofstream(object, std::ios::binary | std::ios::trunc)
      << seal_object("cpu", object.filename().string(), "junk");  // its checksum is right
  CpuBackend second(cached_in(cache));
  const SmallRun again = small_run(second);
  CHECK(again.report.fallbacks.empty());
  CHECK(again.report.cache.evicted == 1);
  CHECK(again.report.compiled == 1);
  CHECK(again.numbers == wanted.numbers);
  CpuBackend third(cached_in(cache));
  CHECK(small_run(third).report.cache.found == 1);
}

TEST_CASE("cpu: what a compiler makes that does not load is not kept", "[cpu]") {
  const Environment before;
  const PrivateFolder folder;
  const std::string script = folder.path() + "/cc", cache = folder.path() + "/c";
  std::ofstream(script) << "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n"
                           "  if [ \"$1\" = -o ]; then echo junk > \"$2\"; fi\n  shift\ndone\n";
  REQUIRE(::chmod(script.c_str(), 0700) == 0);
  ::setenv("CXX", script.c_str(), 1);
  CpuBackend cpu(cached_in(cache));
  const SmallRun run = small_run(cpu);
  CHECK(run.report.kernels.empty());
  REQUIRE_FALSE(run.report.fallbacks.empty());
  CHECK(run.report.fallbacks[0].reason.find("cannot be loaded") != std::string::npos);
  CHECK(objects_in(cache).empty());
}
