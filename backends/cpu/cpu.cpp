// Groups a piece's row ops, compiles each group, and replaces it by one node; other nodes are
// unchanged.
#include "backends/cpu/cpu.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/cpu/attention.hpp"
#include "backends/cpu/frozen.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/known_places.hpp"
#include "backends/cpu/layouts.hpp"
#include "backends/cpu/packed.hpp"
#include "backends/cpu/run.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/interpreter/kernels.hpp"
#include "backends/program.hpp"
#include "base/counted.hpp"
#include "base/try.hpp"
#include "codegen/rowprogram/decisions.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "graph/build.hpp"
#include "splitter/piece_class.hpp"

namespace pw {

using cpu::RowKernel;

namespace {

/// Identity of pieces that compile to the same executable. The context, which owns the ids, lives
/// as long as the executable.
using PieceKey = std::tuple<const Context*, std::vector<std::uint32_t>, std::string>;

PieceKey key_of(const Graph& piece) {
  std::string facts;
  for (const auto& [symbol, fact] : piece.facts.symbols)
    facts += fmt::format("{} {} {} {} {}\n", symbol, fact.min, fact.max, fact.multiple, fact.role);
  return {&piece.context(), canonical_form(piece), std::move(facts)};
}

/// Returns true if this backend has a kernel for the op.
bool is_attention(const Op& op) {
  return op.primitive == Primitive::unified_attention && !op.has_body();
}

/// Returns true if the piece names a layer. The canonical form ignores layer names, but an op may
/// identify its state by one.
bool names_a_layer(const Graph& piece) {
  for (NodeId n = piece.first(); n.valid(); n = piece.next(n)) {
    if (piece.attribute(n, "layer") || piece.attribute(n, "layer_name")) return true;
  }
  return false;
}

class SharedExecutable final : public Executable {
 public:
  explicit SharedExecutable(std::shared_ptr<Executable> executable)
      : executable_(std::move(executable)) {}
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const RunContext& context) override {
    return executable_->run(inputs, outputs, context);
  }
  Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context) override {
    return executable_->run_ranks(ranks, context);
  }
  [[nodiscard]] LaunchCounts launches() const override { return executable_->launches(); }

 private:
  std::shared_ptr<Executable> executable_;
};

}  // namespace

struct CpuBackend::State {
  explicit State(const BackendOptions& given)
      : options(given),
        emit{given.strict},
        kernels(Toolchain::find(), emit, given.cache),
        row_kernels(std::make_shared<std::vector<RowKernel>>()) {}

  BackendOptions options;
  cpu::EmitOptions emit;
  cpu::Kernels kernels;
  std::shared_ptr<std::vector<RowKernel>> row_kernels;  // of all pieces, by number
  std::map<std::string, std::size_t> kernel_number;     // in the report, by text
  CpuReport report;
  std::map<std::pair<std::string, std::string>, std::size_t> fallbacks;

  /// The result of compiling a piece. Pieces that are equal up to names are compiled once.
  struct Made {
    std::shared_ptr<Executable> executable;
    std::vector<std::size_t> kernels;  // of the report
    std::vector<std::pair<std::string, std::string>> fallbacks;
  };
  std::map<PieceKey, Made> pieces;
  Made* making = nullptr;
  std::shared_ptr<cpu::FrozenSlots> frozen;  ///< null: weights are not
  std::size_t packed_nodes = 0;              ///< so far

  [[nodiscard]] OpId packed(const Graph& graph, NodeId n) const {
    return frozen ? cpu::packed_op(graph, n) : OpId();
  }
  RunCall special(const Graph& graph, NodeId n, KernelTable table,
                  std::shared_ptr<const cpu::ConstantParts>& parts) const;
  bool decompose(Graph& graph, const std::vector<rows::RunUnit>& units);
  std::vector<rows::RunUnit> grouped(Graph& graph);
  void note(const std::string& op, const std::string& reason) {
    ++fallbacks[{op, reason}];
    if (making) making->fallbacks.emplace_back(op, reason);
  }
  std::size_t use(const std::string& text, const Graph& graph, const rows::RunUnit& unit,
                  cpu::RowFunction function, const cpu::RowParts& parts);
  std::map<std::size_t, std::size_t> compiled_units(const Graph& graph,
                                                    const std::vector<rows::RunUnit>& units);
  Graph with_kernels(const Graph& piece);
};

namespace {

/// Returns true if a group only changes how operands are read; eager's arrays do this without
/// moving data.
bool only_layout(const Graph& graph, const rows::RunUnit& unit) {
  return std::all_of(unit.nodes.begin(), unit.nodes.end(), [&](NodeId n) {
    const Op& op = graph.op_of(n);
    return !op.has_body() &&
           among(op.primitive,
                 {Primitive::reshape, Primitive::transpose, Primitive::slice, Primitive::split,
                  Primitive::expand, Primitive::full, Primitive::empty});
  });
}

}  // namespace

/// Replaces ops that have a body but no row program by their bodies, as `eager` does, because their
/// parts may fit. Returns false if there are none.
bool CpuBackend::State::decompose(Graph& graph, const std::vector<rows::RunUnit>& units) {
  bool changed = false;
  for (const rows::RunUnit& unit : units) {
    if (unit.kind != rows::RunUnit::Kind::opaque) continue;
    const NodeId n = unit.nodes.front();
    const std::string op = graph.op_of(n).name;
    if (!graph.op_of(n).has_body() || packed(graph, n).valid() || !inline_node(graph, n)) continue;
    note(op, "decomposed: " + unit.why.reason);
    changed = true;
  }
  return changed;
}

std::vector<rows::RunUnit> CpuBackend::State::grouped(Graph& graph) {
  constexpr int kRounds = 16;  // bodies in bodies
  rows::GroupingOptions grouping;
  grouping.automatic = options.fuse;
  grouping.checks = true;
  grouping.wide_rows = true;
  std::vector<rows::RunUnit> units = rows::group_rows(graph, grouping);
  for (int round = 0; round < kRounds && decompose(graph, units); ++round) {
    graph.erase_dead();
    units = rows::group_rows(graph, grouping);
  }
  return units;
}

std::size_t CpuBackend::State::use(const std::string& text, const Graph& graph,
                                   const rows::RunUnit& unit, cpu::RowFunction function,
                                   const cpu::RowParts& parts) {
  const rows::RowProgram& program = unit.program;
  const bool keeps =
      cpu::keeps_layout(graph, unit, [&](NodeId n) { return packed(graph, n).valid(); });
  const auto [known, fresh] = kernel_number.emplace(text, report.kernels.size());
  if (fresh) report.kernels.push_back({program.op, 0, text});
  ++report.kernels[known->second].uses;
  if (making) making->kernels.push_back(known->second);
  row_kernels->push_back({function, program.params, program.arguments.size(),
                          program.valid.has_value(), keeps, program.checks, parts});
  return row_kernels->size() - 1;
}

/// The units that become kernels, by their index.
std::map<std::size_t, std::size_t> CpuBackend::State::compiled_units(
    const Graph& graph, const std::vector<rows::RunUnit>& units) {
  std::vector<std::string> texts(units.size());
  std::vector<cpu::RowParts> parts(units.size());
  std::vector<std::string> wanted;
  cpu::EmitOptions how = emit;
  how.exact = !options.strict && rows::any_decides(units);
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (units[i].kind != rows::RunUnit::Kind::rows || only_layout(graph, units[i])) continue;
    texts[i] = cpu::emit(units[i].program, how, &parts[i]);
    wanted.push_back(texts[i]);
  }
  kernels.compile(wanted);
  std::map<std::size_t, std::size_t> numbers;
  for (std::size_t i = 0; i < units.size(); ++i) {
    std::string reason;
    if (texts[i].empty()) {
      if (units[i].kind == rows::RunUnit::Kind::opaque &&
          (options.strict || !is_attention(graph.op_of(units[i].nodes.front()))) &&
          !packed(graph, units[i].nodes.front()).valid())
        note(graph.op_of(units[i].nodes.front()).name, units[i].why.reason);
    } else if (const auto function = kernels.function(texts[i], &reason)) {
      numbers.emplace(i, use(texts[i], graph, units[i], function, parts[i]));
    } else {
      const bool tried = kernels.toolchain().present();
      for (NodeId n : units[i].nodes)
        note(graph.op_of(n).name, tried ? "not compiled: " + reason : reason);
    }
  }
  return numbers;
}

/// A graph with one node for each compiled unit.
Graph CpuBackend::State::with_kernels(const Graph& piece) {
  Graph graph = piece.compact();
  cpu::slice_known_places(graph);
  graph.erase_dead();
  const std::vector<rows::RunUnit> units = grouped(graph);
  const std::map<std::size_t, std::size_t> numbers = compiled_units(graph, units);
  Graph out(graph.context_ptr(), graph.name);
  out.facts = graph.facts;
  std::vector<ValueId> values(graph.value_bound());
  for (ValueId v : graph.inputs())
    values[v.index] = out.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
  const auto add = [&](NodeSpec spec, const std::vector<ValueId>& reads,
                       const std::vector<ValueId>& writes) {
    for (ValueId v : reads) spec.operands.push_back(v.valid() ? values[v.index] : v);
    for (ValueId v : writes)
      spec.results.push_back({graph.type(v), std::string(graph.value_name(v))});
    const NodeId made = out.add_node(spec);
    for (std::size_t i = 0; i < writes.size(); ++i) values[writes[i].index] = out.result(made, i);
  };
  for (std::size_t i = 0; i < units.size(); ++i) {
    NodeSpec spec;
    if (const auto number = numbers.find(i); number != numbers.end()) {
      spec.op = cpu::row_kernel_op(graph.context());
      spec.attributes = cpu::kernel_attributes(graph.context(), number->second);
      add(std::move(spec), units[i].inputs, units[i].outputs);
      continue;
    }
    for (NodeId n : units[i].nodes) {
      spec = NodeSpec{};
      const OpId own = packed(graph, n);
      spec.op = own.valid() ? own : graph.op(n);
      packed_nodes += own.valid() ? 1 : 0;
      spec.attributes = graph.attributes(n);
      spec.name = graph.node_name(n);
      std::vector<ValueId> results;
      for (std::size_t r = 0; r < graph.result_count(n); ++r) results.push_back(graph.result(n, r));
      add(std::move(spec), graph.operands(n), results);
    }
  }
  for (ValueId v : graph.outputs()) out.add_output(values[v.index]);
  out.erase_dead();
  return out;
}

/// Returns the runner of a node that the table lacks, or that this backend runs differently.
RunCall CpuBackend::State::special(const Graph& graph, NodeId n, KernelTable table,
                                   std::shared_ptr<const cpu::ConstantParts>& parts) const {
  RunCall run = cpu::row_kernel_runner(row_kernels)(graph, n);
  if (!run && !options.strict && is_attention(graph.op_of(n))) run = cpu::attention;
  if (!frozen) return run;
  if (!parts || !parts->of(graph)) parts = std::make_shared<cpu::ConstantParts>(graph);
  const Primitive op = graph.op_of(n).primitive;
  if (!run)
    if (const Kernel kernel = find_kernel(table, op)) run = kernel;
  if (!run)
    if (const Kernel kernel = find_kernel(layout_kernels(), op)) run = kernel;
  run = cpu::packed_call(graph, n, *parts, *frozen, std::move(run));
  return run ? parts->kept(n, std::move(run), *frozen) : run;
}

CpuBackend::CpuBackend(const BackendOptions& options) : state_(std::make_unique<State>(options)) {}
CpuBackend::~CpuBackend() = default;

Result<std::unique_ptr<Executable>> CpuBackend::compile(const Graph& piece) {
  const KernelTable table = state_->options.strict ? single_kernels() : eager::kernels();
  Engine engine{name(), table, [](DType declared) { return declared; }};
  engine.stated = PW_TRY(stated_groups(piece));
  const OpId own = cpu::row_kernel_op(piece.context());
  for (NodeId n = piece.first(); n.valid(); n = piece.next(n)) {
    if (piece.op(n) == own)
      return fail(error_in("graph " + piece.name, "PW1201",
                           "op `" + piece.op_of(n).name + "` is reserved for this backend",
                           "rename the op"));
  }
  engine.special =
      [state = state_.get(), table, parts = std::shared_ptr<const cpu::ConstantParts>()](
          const Graph& graph, NodeId n) mutable { return state->special(graph, n, table, parts); };
  if (names_a_layer(piece)) return compile_program(state_->with_kernels(piece), engine);
  const auto [known, fresh] = state_->pieces.try_emplace(key_of(piece));
  State::Made& made = known->second;
  if (!fresh) {
    for (std::size_t kernel : made.kernels) ++state_->report.kernels[kernel].uses;
    for (const auto& one : made.fallbacks) ++state_->fallbacks[one];
    return std::make_unique<SharedExecutable>(made.executable);
  }
  state_->making = &made;
  const Graph replaced = state_->with_kernels(piece);
  state_->making = nullptr;
  auto executable = compile_program(replaced, engine);
  if (!executable) {
    state_->pieces.erase(known);
    return executable;
  }
  made.executable = std::move(*executable);
  return std::make_unique<SharedExecutable>(made.executable);
}

std::shared_ptr<const cpu::FrozenSlots> CpuBackend::freeze() {
  state_->frozen = std::make_shared<cpu::FrozenSlots>();
  return state_->frozen;
}

CpuReport CpuBackend::report() const {
  CpuReport out = state_->report;
  out.compiler = state_->kernels.toolchain().compiler;
  out.compiled = state_->kernels.compiled();
  if (const CompileCache* cache = state_->kernels.cache()) {
    out.cache = cache->counts();
    out.cache_problem = cache->problem();
  }
  for (const auto& [key, nodes] : state_->fallbacks)
    out.fallbacks.push_back({key.first, key.second, nodes});
  return out;
}

std::vector<std::string> CpuBackend::summary() const {
  const CpuReport made = report();
  if (made.compiler.empty() && made.cache.found == 0)
    return {
        "no C++ compiler was found, so everything runs on eager: put c++, g++ or clang++ on PATH, "
        "or set CXX"};
  const std::string how = made.compiler.empty()
                              ? "no C++ compiler was found"
                              : fmt::format("{} compiled now by {}", made.compiled, made.compiler);
  std::vector<std::string> out{fmt::format("cpu: {}, {} from the cache, {}; {} on eager",
                                           counted(made.kernels.size(), "kernel"), made.cache.found,
                                           how, counted(made.nodes_on_eager(), "node"))};
  if (state_->frozen)
    out.push_back(fmt::format("  frozen: {} packed once", counted(state_->packed_nodes, "weight")));
  if (made.cache.evicted > 0)
    out.push_back(fmt::format("  removed {} damaged objects from the cache", made.cache.evicted));
  if (!made.cache_problem.empty()) out.push_back("  kernels are not cached: " + made.cache_problem);
  for (const CpuReport::Fallback& f : made.fallbacks)
    out.push_back(fmt::format("  {} × {}: {}", f.nodes, f.op, f.reason));
  return out;
}

BackendKind cpu_backend() {
  return {.name = "cpu",
          .what = "compiles row ops as C++ and runs the rest like eager",
          .can = {.ranks = true, .strict = true, .fuse = true},
          .make = [](const BackendOptions& o) { return std::make_unique<CpuBackend>(o); },
          .own_whole = true};
}

std::size_t CpuReport::nodes_on_eager() const {
  std::size_t n = 0;
  for (const Fallback& f : fallbacks) n += f.nodes;
  return n;
}

}  // namespace pw
