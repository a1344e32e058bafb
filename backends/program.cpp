#include "backends/program.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/host_functions.hpp"
#include "backends/op_times.hpp"
#include "base/assert.hpp"
#include "base/try.hpp"
#include "graph/build.hpp"
#include "tensor/memory.hpp"

namespace pw {
namespace {

Status check_size(DType dtype, const Extents& extents, const std::function<std::string()>& place) {
  // Treats extents of 0 as 1, as the strides do.
  std::int64_t bytes = size_of(dtype);
  bool fits = true;
  for (std::int64_t extent : extents)
    fits = fits && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  if (fits && (empty || bytes <= memory_limit())) return {};
  return fail(error_in(
      place(), "PW1215",
      fmt::format("[{}] of {} needs {} bytes, but the memory limit is {}", fmt::join(extents, ", "),
                  name(dtype), fits ? std::to_string(bytes) : std::string("more than 2^63"),
                  memory_limit()),
      "run fewer tokens, or reduce its dims"));
}

}  // namespace

Result<Extents> extents_of(const Graph& graph, ValueId value, const Symbols& symbols) {
  return extents_of(graph.context(), graph.type(value), symbols, [&] {
    return fmt::format("graph {} at value {}", graph.name, graph.value_name(value));
  });
}

Result<Extents> extents_of(const Context& context, TypeId type, const Symbols& symbols,
                           const std::function<std::string()>& place) {
  if (type == Types::unknown())
    return fail(
        error_in(place(), "PW1202", "the type of this value is unknown, so it cannot be computed"));
  Extents extents;
  extents.reserve(context.types[type].shape.size());
  for (DimId dim : context.types[type].shape) {
    const auto extent = context.dims.evaluate(dim, symbols);
    if (!extent || *extent < 0) {
      return fail(error_in(
          place(), "PW1202", fmt::format("dim {} has no value here", context.dims.print(dim)),
          fmt::format("give a value for: {}", fmt::join(context.dims.symbols(dim), ", "))));
    }
    extents.push_back(*extent);
  }
  PW_TRY(check_size(context.types[type].dtype, extents, place));
  return extents;
}

bool has_no_tensor(const Graph& graph, ValueId value) {
  return graph.type(value) == Types::unknown() && (graph.unused(value) || graph.is_input(value));
}

namespace {

RunCall kernel_of(KernelTable table, Primitive op) {
  Kernel kernel = find_kernel(table, op);
  if (kernel == nullptr) kernel = find_kernel(layout_kernels(), op);
  return kernel == nullptr ? RunCall() : RunCall(kernel);
}

/// Reports values without a type that are read, because nothing can be computed from them.
Diagnostics untyped_reads(const Graph& graph) {
  Diagnostics out;
  /// Types that depend on other unknown types are not reported.
  const auto follows = [&](ValueId v) {
    if (graph.is_input(v)) return false;
    const std::vector<ValueId> reads = graph.operands(graph.producer(v));
    return std::any_of(reads.begin(), reads.end(), [&](ValueId read) {
      return read.valid() && graph.type(read) == Types::unknown();
    });
  };
  /// An input that is not a tensor, such as a layer's name, is an argument of unknown ops only.
  const auto only_passed_on = [&](ValueId v) {
    if (!graph.is_input(v) || graph.is_output(v)) return false;
    const std::vector<NodeId> users = graph.users(v);
    return std::all_of(users.begin(), users.end(),
                       [&](NodeId n) { return has_host_function(graph, n); });
  };
  const auto check = [&](ValueId v) {
    if (graph.type(v) != Types::unknown() || graph.unused(v) || follows(v) || only_passed_on(v))
      return;
    const std::string name(graph.value_name(v));
    const std::string reader =
        graph.use_count(v) == 0
            ? "the graph returns it"
            : fmt::format("op {} reads it", graph.op_of(graph.user(graph.first_use(v))).name);
    const std::string help =
        graph.is_input(v)
            ? fmt::format("state the type of input {}", name)
            : fmt::format("declare op {} with the types of its results in a .pwr file",
                          graph.op_of(graph.producer(v)).name);
    out.push_back(error_in(fmt::format("graph {} at value {}", graph.name, name), "PW1202",
                           "the type of this value is unknown, but " + reader, help));
  };
  for (ValueId v : graph.inputs()) check(v);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    for (std::size_t r = 0; r < graph.result_count(n); ++r) check(graph.result(n, r));
  return out;
}

/// Returns, by output, whether its place may be written before all inputs are read. One pass over
/// all places in address order, because there may be many thousands.
std::vector<bool> standing_alone(std::span<const TensorView> inputs,
                                 std::span<const TensorView> outputs) {
  struct Place {
    const std::byte *begin, *end;
    std::size_t output;  ///< or how many there are, for an input
  };
  const std::size_t count = outputs.size();
  std::vector<Place> places;
  places.reserve(inputs.size() + count);
  const auto add = [&](const TensorView& view, std::size_t output) {
    const std::size_t bytes = view.data == nullptr ? 0 : view.bytes();  // an unused input
    if (bytes > 0) places.push_back({view.data, view.data + bytes, output});
  };
  for (const TensorView& input : inputs) add(input, count);
  for (std::size_t i = 0; i < count; ++i) add(outputs[i], i);
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return std::less<>()(a.begin, b.begin); });
  std::vector<bool> out(count, true);
  const std::byte* end = nullptr;  // end of all previous places
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool meets = (i > 0 && places[i].begin < end) ||
                       (i + 1 < places.size() && places[i + 1].begin < places[i].end);
    if (meets && places[i].output < count) out[places[i].output] = false;
    end = i == 0 ? places[i].end : std::max(end, places[i].end, std::less<>());
  }
  return out;
}

}  // namespace

Result<OpProgram> OpProgram::make(const Graph& graph, const Engine& engine) {
  OpProgram program(graph.compact(), engine);
  PW_TRY(inline_bodies(program.graph_));
  PW_TRY(program.choose_kernels());
  program.find_output_places();
  program.find_last_uses();
  return program;
}

void OpProgram::find_output_places() {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    ValueId value = graph_.outputs()[i];
    output_places_[value].push_back(i);
    bool reshaped = false;
    for (; !graph_.is_input(value); reshaped = true) {
      const NodeId producer = graph_.producer(value);
      if (graph_.op_of(producer).primitive != Primitive::reshape) break;
      value = graph_.operand(producer, 0);
    }
    if (reshaped && !graph_.is_input(value)) reshaped_places_[value].push_back(i);
  }
}

Status OpProgram::choose_kernels() {
  auto stated = PW_TRY(stated_groups(graph_));
  stated.insert(engine_.stated.begin(), engine_.stated.end());
  Diagnostics missing = untyped_reads(graph_);
  if (!missing.empty()) return tl::unexpected<Diagnostics>(std::move(missing));
  std::set<std::string> lacking;
  NodeId first;
  for (NodeId node : graph_.order()) {
    const Primitive op = graph_.op_of(node).primitive;
    if (const Collective collective = find_collective(op); collective != nullptr) {
      instructions_.push_back({node, {}, collective, group_of(graph_, node, stated), {}});
      continue;
    }
    RunCall kernel = engine_.special ? engine_.special(graph_, node) : RunCall();
    if (!kernel) kernel = kernel_of(engine_.kernels, op);
    if (!kernel) {
      auto host = host_call(graph_, node);
      if (!host) {
        for (Diagnostic& d : host.error()) missing.push_back(std::move(d));
        continue;
      }
      kernel = std::move(*host);
    }
    if (!kernel) {
      if (lacking.empty()) first = node;
      lacking.insert(graph_.op_of(node).name);
    }
    instructions_.push_back({node, std::move(kernel), nullptr, {}, {}});
  }
  if (!lacking.empty()) {
    const bool one = lacking.size() == 1;
    missing.push_back(error_in(
        fmt::format("graph {} at node {}", graph_.name, graph_.node_name(first)), kNoKernel,
        fmt::format("backend {} has no kernel for op{} {}, and {} no body", engine_.name,
                    one ? "" : "s", fmt::join(lacking, ", "), one ? "the op has" : "they have"),
        "give the op a host function (pw::give_host_function, or functions= of Graph.run in "
        "Python) or a body, or rewrite it to ops that have one"));
  }
  if (!missing.empty()) return tl::unexpected<Diagnostics>(std::move(missing));
  return {};
}

void OpProgram::find_last_uses() {
  std::vector<bool> seen(graph_.value_bound(), false);
  for (ValueId output : graph_.outputs()) seen[output.index] = true;
  for (std::size_t i = instructions_.size(); i-- > 0;) {
    Instruction& instruction = instructions_[i];
    auto dies_here = [&](ValueId value) {
      if (!value.valid() || seen[value.index]) return;
      seen[value.index] = true;
      instruction.dies.push_back(value);
    };
    for (std::size_t r = 0; r < graph_.result_count(instruction.node); ++r)
      dies_here(graph_.result(instruction.node, r));
    for (ValueId operand : graph_.operands(instruction.node)) dies_here(operand);
  }
}

Status OpProgram::bind_inputs(std::span<const TensorView> inputs, const RunContext& context,
                              Values& values) const {
  PW_ASSERT(inputs.size() == graph_.inputs().size(), "as many tensors as the graph has inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId value = graph_.inputs()[i];
    if (graph_.unused(value) || has_no_tensor(graph_, value)) continue;
    auto extents = PW_TRY(extents_of(graph_, value, context.symbols));
    const DType declared = graph_.context().types[graph_.type(value)].dtype;
    if (extents != inputs[i].extents || declared != inputs[i].dtype) {
      return fail(error_in(
          fmt::format("graph {} at input {}", graph_.name, graph_.value_name(value)), "PW1203",
          fmt::format("the tensor is {}[{}], but the graph declares {}", name(inputs[i].dtype),
                      fmt::join(inputs[i].extents, ", "),
                      graph_.context().types.print(graph_.type(value)))));
    }
    values[value.index] = array_of(inputs[i]);
  }
  return {};
}

Result<Call> OpProgram::call_of(const Instruction& instruction, const Values& values,
                                const RunContext& context) const {
  Call call{graph_, instruction.node, context, {}, {}, {}, engine_.storage, {}, 0};
  const std::size_t results = graph_.result_count(instruction.node);
  call.operands.reserve(graph_.operand_count(instruction.node));
  call.extents.reserve(results);
  for (ValueId operand : graph_.operands(instruction.node)) {
    call.operands.push_back(operand.valid() ? &values[operand.index] : nullptr);
  }
  for (std::size_t r = 0; r < results; ++r) {
    const ValueId result = graph_.result(instruction.node, r);
    if (graph_.type(result) == Types::unknown()) {  // unused
      call.extents.emplace_back();
      continue;
    }
    auto extents = PW_TRY(extents_of(graph_, result, context.symbols));
    call.extents.push_back(std::move(extents));
  }
  call.results.resize(call.extents.size());
  return call;
}

void OpProgram::keep_results(const Instruction& instruction, Call& call, Values& values) const {
  for (std::size_t r = 0; r < call.results.size(); ++r) {
    PW_ASSERT(call.results[r].extents == call.extents[r],
              "the result of a kernel has its declared extents");
    values[graph_.result(instruction.node, r).index] = std::move(call.results[r]);
  }
  for (ValueId dead : instruction.dies) values[dead.index] = Array{};
}

/// Writes results that are outputs, perhaps reshaped, directly to their places if nothing else
/// needs these.
void OpProgram::place_results(const Instruction& instruction, Call& call, RankRun& rank) const {
  call.places.resize(call.results.size(), nullptr);
  for (std::size_t r = 0; r < call.results.size(); ++r) {
    const ValueId result = graph_.result(instruction.node, r);
    const auto reshaped = reshaped_places_.find(result), places = output_places_.find(result);
    if (reshaped != reshaped_places_.end())
      for (std::size_t i : reshaped->second) {
        const TensorView& whole = rank.outputs[i];
        if (!rank.alone[i] || element_count(call.extents[r]) != whole.count()) continue;
        call.places[r] =
            &rank.reshaped.emplace_back(TensorView{whole.dtype, call.extents[r], whole.data});
      }
    if (places == output_places_.end()) continue;
    for (std::size_t i : places->second) {
      if (rank.alone[i]) call.places[r] = &rank.outputs[i];
    }
  }
}

/// Combines the graph's group size with the step's stride.
Result<RankGroup> OpProgram::group_in(const Instruction& instruction,
                                      const RunContext& context) const {
  const std::string* group = group_name(graph_, instruction.node);
  if (context.step == nullptr || context.step->groups == nullptr || group == nullptr)
    return instruction.group;
  const auto found = context.step->groups->find(*group);
  if (found == context.step->groups->end()) return instruction.group;
  if (instruction.group.size == 0 || instruction.group.size == found->second.size)
    return found->second;
  return fail(error_in(
      fmt::format("graph {} at node {}", graph_.name, graph_.node_name(instruction.node)), "PW1208",
      fmt::format("states that group `{}` has {} ranks, but it has {}", *group,
                  instruction.group.size, found->second.size)));
}

namespace {

Status run_kernel(const RunCall& kernel, Call& call) {
  if (call.context.times == nullptr) return kernel(call);
  const auto start = std::chrono::steady_clock::now();
  auto done = kernel(call);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  call.context.times->add(call.graph.op_of(call.node).name,
                          std::string(call.graph.node_name(call.node)), taken.count());
  return done;
}

}  // namespace

Status OpProgram::step(const Instruction& instruction, std::span<RankRun> ranks,
                       const RunContext& context) const {
  Communicator* others = context.step == nullptr ? nullptr : context.step->ranks;
  std::vector<Call> calls;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto call = PW_TRY(call_of(instruction, ranks[rank].values, context));
    call.on_rank = others != nullptr ? others->rank() : static_cast<std::int64_t>(rank);
    place_results(instruction, call, ranks[rank]);
    calls.push_back(std::move(call));
  }
  if (instruction.collective != nullptr) {
    auto group = PW_TRY(group_in(instruction, context));
    PW_TRY(run_collective(instruction.collective, calls, group, others));
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (instruction.kernel) {
      if (auto done = run_kernel(instruction.kernel, calls[rank]); !done) return done;
    }
    keep_results(instruction, calls[rank], ranks[rank].values);
  }
  return {};
}

Status OpProgram::run_all(std::vector<RankRun>& ranks, const RunContext& context) const {
  for (RankRun& run : ranks) {
    run.alone = standing_alone(run.inputs, run.outputs);
    run.values.resize(graph_.value_bound());
    if (auto bound = bind_inputs(run.inputs, context, run.values); !bound) return bound;
  }
  for (const Instruction& instruction : instructions_) {
    if (auto done = step(instruction, ranks, context); !done) return done;
  }
  for (const RankRun& run : ranks) {
    PW_ASSERT(run.outputs.size() == graph_.outputs().size(),
              "as many tensors as the graph has outputs");
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      const Array& value = run.values[graph_.outputs()[i].index];
      const TensorView& output = run.outputs[i];
      const bool in_place = value.data == output.data && value.dtype == output.dtype &&
                            value.extents == output.extents && value.contiguous();
      if (!in_place) copy(value, array_of(output));
    }
  }
  return {};
}

Status OpProgram::run_ranks(std::span<const RankTensors> ranks, const RunContext& context) const {
  std::vector<RankRun> runs(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    runs[i].inputs = ranks[i].inputs;
    runs[i].outputs = ranks[i].outputs;
  }
  return run_all(runs, context);
}

LaunchCounts OpProgram::launches() const {
  LaunchCounts out;
  for (const Instruction& instruction : instructions_) {
    const Op& op = graph_.op_of(instruction.node);
    if (instruction.collective != nullptr || is_library_call(op))
      ++out.library;
    else if (op.does_work())
      ++out.kernels;
  }
  return out;
}

Status OpProgram::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                      const RunContext& context) const {
  std::vector<RankRun> alone(1);
  alone.front().inputs = inputs;
  alone.front().outputs = outputs;
  return run_all(alone, context);
}

namespace {
class ProgramExecutable final : public Executable {
 public:
  explicit ProgramExecutable(OpProgram program) : program_(std::move(program)) {}
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const RunContext& context) override {
    return program_.run(inputs, outputs, context);
  }
  Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context) override {
    return program_.run_ranks(ranks, context);
  }
  [[nodiscard]] LaunchCounts launches() const override { return program_.launches(); }

 private:
  OpProgram program_;
};
}  // namespace

Result<std::unique_ptr<Executable>> compile_program(const Graph& graph, const Engine& engine) {
  auto program = PW_TRY(OpProgram::make(graph, engine));
  return std::make_unique<ProgramExecutable>(std::move(program));
}

}  // namespace pw
