// A graph is one piece program, whose places become addresses in two steps. For each set of sizes,
// extents, launch sizes, and offsets in the arena are computed once; values between launches share
// the arena by lifetime (see offsets.hpp). A call then adds the addresses that it was given.
//
// Invariant: launches of a stream run in order, so a prepared call needs no edges, and library
// calls share one workspace. Cost of a call: one enqueue for each launch.
#include "cuda/stream_program.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "base/counted.hpp"
#include "base/try.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "cuda/compile.hpp"
#include "splitter/offsets.hpp"

namespace pw::cuda {
namespace {

/// Calls kept for reuse; sizes beyond them are prepared again.
constexpr std::size_t kMostSizes = 256;

ProgramOptions program_options(const Driver& driver, const std::vector<Symbols>& sizes) {
  ProgramOptions out;
  out.sizes = sizes;
  out.schedules = {&ScheduleTable::builtin(), driver.arch(), {}, 1};
  out.tensor_cores = true;
  return out;
}

/// Returns true if a kernel of the graph would clamp a bad index that PyTorch reports.
bool checks_operands(const Graph& graph) {
  Graph parts = graph;
  decompose(parts, [](NodeId, const std::string&) {});
  rows::GroupingOptions grouping;
  grouping.checks = true;
  const auto units = rows::group_rows(parts, grouping);
  return std::any_of(units.begin(), units.end(),
                     [](const rows::RunUnit& unit) { return unit.program.checks; });
}

std::string why_unsupported(const Graph& graph, NodeId node, Backend& host, const Driver& driver,
                            const ProgramOptions& options) {
  std::vector<ValueId> inputs, outputs;
  const Graph alone = rows::isolate(graph, {&node, 1}, inputs, outputs);
  const bool typed = std::all_of(alone.inputs().begin(), alone.inputs().end(), [&](ValueId v) {
    return alone.type(v) != Types::unknown() || has_no_tensor(alone, v);
  });
  if (!typed) return "an operand has no type";
  const auto program = make_program(alone, host, driver, options);
  if (!program) return program.error().front().message;
  if (!program->lacks.empty()) return "the device has no kernel for it";
  return checks_operands(alone) ? "its kernel cannot report a bad index or divisor" : "";
}

}  // namespace

Status StreamCall::run(Driver& driver, std::span<const Address> inputs,
                       std::span<const Address> outputs, Address arena, Stream stream) const {
  PW_TRY(driver.enter());
  if (zero_bytes_ > 0) PW_TRY(driver.fill_on(stream, arena, 0, zero_bytes_));
  const auto base = [&](const Operand& operand) -> Address {
    switch (operand.kind) {
      case Place::Kind::input: return inputs[operand.index];
      case Place::Kind::output: return outputs[operand.index];
      case Place::Kind::scratch:
      case Place::Kind::zero: return arena;
      case Place::Kind::literal:
      case Place::Kind::valid:
      case Place::Kind::slots:
      case Place::Kind::keys:
      case Place::Kind::values: return 0;
    }
    return 0;
  };
  std::vector<Address> addresses;
  for (const Launch& launch : launches_) {
    addresses.clear();
    for (const Operand& operand : launch.operands)
      addresses.push_back(base(operand) + operand.offset);
    PW_TRY(launch.launch->enqueue(addresses, stream));
  }
  return {};
}

std::vector<UnsupportedNode> StreamProgram::unsupported(const Graph& graph, const Driver& driver,
                                                        const std::vector<Symbols>& sizes) {
  const auto host = make_eager();
  const ProgramOptions options = program_options(driver, sizes);
  std::vector<UnsupportedNode> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    if (graph.op_of(n).is_literal()) continue;
    std::string why = why_unsupported(graph, n, *host, driver, options);
    if (!why.empty()) out.push_back({std::string(graph.node_name(n)), std::move(why)});
  }
  return out;
}

Result<std::unique_ptr<StreamProgram>> StreamProgram::make(const Graph& graph, Driver& driver,
                                                           const std::vector<Symbols>& sizes) {
  std::unique_ptr<StreamProgram> out(new StreamProgram(graph, driver));
  for (auto& [name, fact] : out->graph_.facts.symbols) fact.role.clear();  // calls have no padding
  const auto host = make_eager();
  out->program_ = PW_TRY(make_program(out->graph_, *host, driver, program_options(driver, sizes)));
  if (!out->program_.lacks.empty())
    return fail(error_in("graph " + graph.name, "PW1201", out->program_.lacks.front(),
                         "run the op elsewhere"));
  PW_TRY(driver.load(out->program_.kernels));
  PW_TRY(out->load_literals());
  return out;
}

StreamProgram::~StreamProgram() {
  for (const Address address : literals_) driver_.release(address);
}

Status StreamProgram::load_literals() {
  for (const Tensor& tensor : program_.literals) {
    const auto bytes = static_cast<std::int64_t>(tensor.view().bytes());
    literals_.push_back(PW_TRY(driver_.allocate(bytes)));
    PW_TRY(driver_.write(literals_.back(), tensor.data(), bytes));
  }
  return {};
}

/// Resolves the places of a program for fixed sizes.
class StreamProgram::Preparation {
 public:
  Preparation(const StreamProgram& of, const Symbols& symbols) : of_(of), symbols_(symbols) {}

  Result<std::shared_ptr<const StreamCall>> run() {
    auto out = std::make_shared<StreamCall>();
    for (const ValueId v : of_.graph_.outputs())
      out->outputs_.push_back(PW_TRY(extents_of(of_.graph_, v, symbols_)));
    PW_TRY(lay_out(*out));
    for (const ProgramLaunch& launch : of_.program_.launches) PW_TRY(add(launch, *out));
    return out;
  }

 private:
  [[nodiscard]] std::string place() const { return "graph " + of_.graph_.name; }

  /// Returns the bytes of a tensor in the arena.
  [[nodiscard]] Result<std::int64_t> bytes(TypeId type) const {
    const Context& context = of_.graph_.context();
    auto extents = PW_TRY(extents_of(context, type, symbols_, [&] { return place(); }));
    return align(DeviceTensor{context.types[type].dtype, std::move(extents), 0}.bytes());
  }

  /// Places the zeros first, then the values between launches by lifetime, then the workspace.
  Status lay_out(StreamCall& out) {
    for (const TypeId type : of_.program_.zeros) {
      zeros_.push_back(out.arena_bytes_);
      out.arena_bytes_ += PW_TRY(bytes(type));
    }
    out.zero_bytes_ = out.arena_bytes_;
    std::vector<Lifetime> lifetimes;
    for (const ScratchValue& value : of_.program_.scratch)
      lifetimes.push_back({value.first, value.last, PW_TRY(bytes(value.type))});
    Placement placement = place_intervals(lifetimes);
    for (const std::int64_t offset : placement.offsets)
      scratch_.push_back(out.zero_bytes_ + offset);
    out.arena_bytes_ += placement.total;
    workspace_ = out.arena_bytes_;
    const bool calls = std::any_of(of_.program_.launches.begin(), of_.program_.launches.end(),
                                   [](const ProgramLaunch& l) { return l.product.has_value(); });
    workspace_bytes_ = calls ? of_.driver_.workspace_bytes() : 0;
    out.arena_bytes_ += align(workspace_bytes_);
    return {};
  }

  [[nodiscard]] StreamCall::Operand operand(const Place& place) const {
    switch (place.kind) {
      case Place::Kind::scratch:
        return {place.kind, 0, static_cast<Address>(scratch_[place.index])};
      case Place::Kind::zero: return {place.kind, 0, static_cast<Address>(zeros_[place.index])};
      case Place::Kind::literal: return {place.kind, 0, of_.literals_[place.index]};
      case Place::Kind::input:
      case Place::Kind::output:
      case Place::Kind::valid:
      case Place::Kind::slots:
      case Place::Kind::keys:
      case Place::Kind::values: break;
    }
    return {place.kind, place.index, 0};
  }

  Status add(const ProgramLaunch& launch, StreamCall& out) const {
    LaunchNode node = PW_TRY(
        launch_node(launch, of_.graph_.context(), RunContext{symbols_, nullptr, 0}, place()));
    const bool empty = std::all_of(node.writes.begin(), node.writes.end(),
                                   [](const DeviceTensor& t) { return t.bytes() == 0; });
    if (empty || stays(launch)) return {};
    StreamCall::Launch made;
    for (const auto* places : {&launch.reads, &launch.writes})
      for (const Place& place : *places) made.operands.push_back(operand(place));
    if (launch.product && workspace_bytes_ > 0) {
      node.writes.push_back({DType::u8, {workspace_bytes_}, 0});
      made.operands.push_back({Place::Kind::scratch, 0, static_cast<Address>(workspace_)});
    }
    made.launch = PW_TRY(of_.driver_.prepare(std::move(node)));
    out.launches_.push_back(std::move(made));
    return {};
  }

  /// Returns true for a copy to its own place: of a view that shares its operand's place.
  [[nodiscard]] static bool stays(const ProgramLaunch& launch) {
    return launch.kind == LaunchNode::Kind::copy && launch.reads[0].kind == launch.writes[0].kind &&
           launch.reads[0].index == launch.writes[0].index;
  }

  const StreamProgram& of_;
  const Symbols& symbols_;
  std::vector<std::int64_t> scratch_, zeros_;  ///< offsets in the arena
  std::int64_t workspace_ = 0, workspace_bytes_ = 0;
};

Result<std::shared_ptr<const StreamCall>> StreamProgram::at(const Symbols& symbols) {
  const std::lock_guard lock(mutex_);
  if (const auto known = calls_.find(symbols); known != calls_.end()) return known->second;
  auto made = PW_TRY(Preparation(*this, symbols).run());
  if (calls_.size() == kMostSizes) calls_.erase(calls_.begin());
  calls_.emplace(symbols, made);
  return made;
}

/// Returns the name of the value at a place that a launch writes; empty if it has none.
std::string_view StreamProgram::value_name(const Place& place) const {
  if (place.kind == Place::Kind::output) return graph_.value_name(graph_.outputs()[place.index]);
  if (place.kind == Place::Kind::scratch) return program_.scratch[place.index].name;
  return {};
}

std::map<std::string, std::string> StreamProgram::kernel_labels() const {
  std::map<std::string, std::vector<std::string_view>> values;
  for (const ProgramLaunch& launch : program_.launches) {
    if (launch.kind != LaunchNode::Kind::kernel) continue;
    for (const Place& place : launch.writes)
      if (const std::string_view name = value_name(place); !name.empty())
        values[launch.name].push_back(name);
  }
  std::map<std::string, std::string> out;
  for (const Kernel& kernel : program_.kernels)
    out[kernel.name] = fmt::format("{}: {}", kernel.op, fmt::join(values[kernel.name], ", "));
  return out;
}

std::vector<std::string> StreamProgram::summary() const {
  std::vector<std::string> out = {fmt::format("cuda on {}: {}, {}", driver_.device(),
                                              pw::counted(program_.launches.size(), "launch"),
                                              pw::counted(program_.kernels.size(), "kernel"))};
  out.insert(out.end(), program_.notes.begin(), program_.notes.end());
  return out;
}

}  // namespace pw::cuda
