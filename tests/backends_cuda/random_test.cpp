// Random row programs: the kernels' source on the host gives the interpreter's bits, eager agrees
// within the dtype's tolerance, memory around the results stays as it was, and rows of padding
// never reach others. A default run takes 60, `[slow]` takes 500.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "dsl/dsl.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"
#include "tests/random_rows.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr std::size_t kGuard = 256;  // bytes before and behind
constexpr std::byte kUntouched{0xa5};

/// Memory with a rim that must stay as it is. Behind an operand it reads as NaN.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::byte rim)
      : bytes_(bytes), rim_(rim), memory_(bytes + 3 * kGuard, rim) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = (address + 2 * kGuard - 1) / kGuard * kGuard - address;
  }
  std::byte* data() { return memory_.data() + start_; }
  [[nodiscard]] bool intact() const {
    const auto is_rim = [&](std::byte b) { return b == rim_; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(start_);
    return std::all_of(memory_.begin(), begin, is_rim) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_rim);
  }

 private:
  std::size_t bytes_, start_ = 0;
  std::byte rim_;
  std::vector<std::byte> memory_;
};

struct Program {
  std::uint64_t seed = 0;
  RandomRows rows;
  Graph graph;
  std::vector<rows::RunUnit> units;
  std::vector<cuda::Kernel> kernels;  ///< of the units that are rows
};

Program program_of(const ContextPtr& context, std::uint64_t seed) {
  RandomRows rows = random_rows(seed);
  auto graph = parse_graph(context, rows.text, "random");
  if (!graph) FAIL("seed " << seed << "\n" << rows.text << render(graph.error(), context->sources));
  Program p{seed, std::move(rows), std::move(*graph), {}, {}};
  p.units = rows::group_rows(p.graph);
  for (const rows::RunUnit& unit : p.units) {
    if (unit.kind == rows::RunUnit::Kind::rows) p.kernels.push_back(cuda::emit(unit.program));
  }
  return p;
}

using Values = std::vector<std::vector<double>>;

std::vector<double> read(DType dtype, const std::byte* data, std::int64_t count) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(load(dtype, data, i));
  return out;
}

/// All units in order; views copy. The outputs of the graph.
Values run_units(const cuda::HostKernels& host, const Program& p, const std::vector<Tensor>& inputs,
                 const Symbols& symbols) {
  Context& context = p.graph.context();
  std::map<ValueId, std::unique_ptr<Guarded>> memory;
  const auto bytes = [&](ValueId v) {
    const auto extents = extents_of(p.graph, v, symbols).value();
    return TensorView{context.types[p.graph.type(v)].dtype, extents, nullptr}.bytes();
  };
  const auto place = [&](ValueId v, std::byte rim) -> Guarded& {
    auto& entry = memory[v];
    entry = std::make_unique<Guarded>(bytes(v), rim);
    return *entry;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Guarded& g = place(p.graph.inputs()[i], std::byte{0xff});
    std::memcpy(g.data(), inputs[i].data(), inputs[i].view().bytes());
  }
  std::size_t kernel = 0;
  for (const rows::RunUnit& unit : p.units) {
    if (unit.kind == rows::RunUnit::Kind::literal) continue;
    if (unit.kind == rows::RunUnit::Kind::view) {
      const ValueId from = p.graph.operand(unit.nodes[0], 0), to = p.graph.result(unit.nodes[0]);
      std::memcpy(place(to, kUntouched).data(), memory.at(from)->data(), bytes(to));
      continue;
    }
    REQUIRE(unit.kind == rows::RunUnit::Kind::rows);
    std::vector<void*> pointers;
    for (ValueId v : unit.inputs) pointers.push_back(memory.at(v)->data());
    for (ValueId v : unit.outputs) pointers.push_back(place(v, kUntouched).data());
    const cuda::Kernel& k = p.kernels[kernel++];
    std::vector<std::int64_t> params;
    for (DimId d : k.params) params.push_back(context.dims.evaluate(d, symbols).value());
    const auto done = host.run(k.name, pointers, params, p.seed);
    if (!done) FAIL(done.error().front().message);
    for (const auto& [value, guarded] : memory) CHECK(guarded->intact());
  }
  Values out;
  for (ValueId v : p.graph.outputs()) {
    const auto extents = extents_of(p.graph, v, symbols).value();
    out.push_back(
        read(context.types[p.graph.type(v)].dtype, memory.at(v)->data(), element_count(extents)));
  }
  return out;
}

Values values_of(const std::vector<Tensor>& tensors) {
  Values out;
  for (const Tensor& t : tensors) out.push_back(read(t.dtype(), t.data(), t.view().count()));
  return out;
}

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> out;
  for (const Tensor& t : tensors) out.push_back(t.view());
  return out;
}

Values interpreted(const Graph& graph, const std::vector<Tensor>& inputs, const Symbols& symbols) {
  RunContext run;
  run.symbols = symbols;
  auto outputs = interpret(graph, views_of(inputs), run, Precision::single);
  if (!outputs) FAIL(render(outputs.error(), graph.context().sources));
  return values_of(*outputs);
}

Values by_eager(const Graph& graph, const std::vector<Tensor>& inputs, const Symbols& symbols) {
  RunContext run;
  run.symbols = symbols;
  auto executable = make_eager()->compile(graph);
  if (!executable) FAIL(render(executable.error(), graph.context().sources));
  std::vector<Tensor> outputs;
  for (ValueId v : graph.outputs())
    outputs.emplace_back(graph.context().types[graph.type(v)].dtype,
                         extents_of(graph, v, symbols).value());
  const auto done = (*executable)->run(views_of(inputs), views_of(outputs), run);
  if (!done) FAIL(render(done.error(), graph.context().sources));
  return values_of(outputs);
}

/// How many elements are further apart than rounding can put them. A cast on the way may turn a
/// difference in the last bit of f32 into a step of a narrow type, so a few may.
std::size_t far_apart(const Values& a, const Values& b) {
  std::size_t far = 0;
  for (std::size_t r = 0; r < a.size(); ++r) {
    for (std::size_t i = 0; i < a[r].size(); ++i) {
      const double x = a[r][i], y = b[r][i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      far += std::abs(x - y) <= 1e-3 + 0.02 * std::max(std::abs(x), std::abs(y)) ? 0 : 1;
    }
  }
  return far;
}
std::size_t count(const Values& a) {
  std::size_t n = 0;
  for (const auto& v : a) n += v.size();
  return n;
}

/// The same inputs with rows of NaN (ids: 0) behind those that are valid.
std::vector<Tensor> padded(const Graph& graph, const std::vector<Tensor>& inputs,
                           const Symbols& longer) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = graph.inputs()[i];
    Tensor t(inputs[i].dtype(), extents_of(graph, v, longer).value());
    for (std::int64_t e = inputs[i].view().count(); e < t.view().count(); ++e)
      store(t.dtype(), t.data(), e, is_float(t.dtype()) ? std::nan("") : 0);
    std::memcpy(t.data(), inputs[i].data(), inputs[i].view().bytes());
    out.push_back(std::move(t));
  }
  return out;
}

void check(const cuda::HostKernels& host, const Program& p) {
  const Symbols symbols{{"n", p.rows.rows}}, longer{{"n", p.rows.rows + 3}};
  INFO("seed " << p.seed << ", " << p.rows.rows << " rows\n" << p.rows.text);
  const auto inputs = inputs_of(p.graph, symbols, p.seed);
  const Values got = run_units(host, p, inputs, symbols);
  const Values wanted = interpreted(p.graph, inputs, symbols);
  CHECK(difference(got, wanted) == "");
  const Values eager = by_eager(p.graph, inputs, symbols);
  REQUIRE(eager.size() == wanted.size());
  CHECK(far_apart(eager, wanted) <= count(wanted) / 50);
  Values more = run_units(host, p, padded(p.graph, inputs, longer), longer);
  for (std::size_t r = 0; r < more.size(); ++r) more[r].resize(got[r].size());
  CHECK(difference(more, got) == "");
}

void check_all(std::uint64_t first, std::uint64_t count) {
  if (no_host_compiler()) return;
  const ContextPtr context = library();
  std::vector<Program> programs;
  std::vector<cuda::Kernel> kernels;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    programs.push_back(program_of(context, seed));
    for (const cuda::Kernel& k : programs.back().kernels) kernels.push_back(k);
  }
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (const Program& p : programs) check(*host, p);
  std::size_t fused = 0;
  for (const Program& p : programs) fused += p.kernels.size() == 1 ? 1 : 0;
  CHECK(fused > count / 2);  // most are one kernel
}

}  // namespace

TEST_CASE("random rows: 60 programs, the same by kernels, interpreter and eager", "[cuda][diff]") {
  check_all(1, 60);
}

TEST_CASE("random rows: 500 programs, the same by kernels, interpreter and eager",
          "[.][slow][cuda][diff]") {
  for (std::uint64_t first = 1; first <= 500; first += 50) check_all(first, 50);
}
