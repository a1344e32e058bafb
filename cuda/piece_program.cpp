#include "cuda/piece_program.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "base/try.hpp"
#include "codegen/rowprogram/decisions.hpp"
#include "cuda/compile.hpp"
#include "cuda/joined_products.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/matmul/scaled_weight.hpp"
#include "cuda/kernels/topk.hpp"
#include "graph/ops/product.hpp"

namespace pw::cuda {
namespace {

/// Returns the node that transposes a matrix for this user only.
std::optional<NodeId> transposition_of(const Graph& graph, const std::vector<rows::RunUnit>& units,
                                       NodeId user, ValueId v) {
  if (graph.is_input(v) || graph.is_output(v)) return std::nullopt;
  const NodeId n = graph.producer(v);
  const auto axis = [&](std::string_view name) {
    const Attribute* attribute = graph.attribute(n, name);
    const auto* value = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
    return value == nullptr ? -1 : (*value + 2) % 2;
  };
  if (graph.op_of(n).primitive != Primitive::transpose || axis("dim0") + axis("dim1") != 1 ||
      graph.users(v) != std::vector<NodeId>{user})
    return std::nullopt;
  const bool by_itself = std::any_of(units.begin(), units.end(), [&](const rows::RunUnit& u) {
    return u.kind == rows::RunUnit::Kind::rows && u.nodes == std::vector<NodeId>{n};
  });
  return by_itself ? std::optional(n) : std::nullopt;
}

/// A product that reads b as it is stored.
struct StoredProduct {
  TensorProduct product;
  std::vector<ValueId> operands;
  std::vector<std::size_t> makers;  ///< units that would compute b for this product alone
};

/// Returns the units of some nodes; nothing if one of them has other nodes, too.
std::optional<std::vector<std::size_t>> units_of(const std::vector<rows::RunUnit>& units,
                                                 const std::vector<NodeId>& nodes) {
  const auto is_one = [&](NodeId n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  };
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::vector<NodeId>& own = units[i].nodes;
    if (units[i].kind != rows::RunUnit::Kind::rows || std::none_of(own.begin(), own.end(), is_one))
      continue;
    if (!std::all_of(own.begin(), own.end(), is_one)) return std::nullopt;
    out.push_back(i);
  }
  return out;
}

/// Returns a product of a transposed weight, or of one with scales of blocks.
std::optional<StoredProduct> stored_product(const Graph& graph,
                                            const std::vector<rows::RunUnit>& units, NodeId n) {
  const auto call = product_call(graph, n);
  if (!call) return std::nullopt;
  const auto scaled = scaled_weight(graph, n, call->b);
  const auto transposition = transposition_of(graph, units, n, graph.operand(n, call->b));
  if (!scaled && !transposition) return std::nullopt;
  const auto product = tensor_product_of(graph, n, !scaled);
  const auto makers = units_of(units, scaled ? scaled->nodes : std::vector<NodeId>{*transposition});
  if (!product || !makers) return std::nullopt;
  StoredProduct out{*product, {}, *makers};
  for (ValueId v : graph.operands(n)) out.operands.push_back(v);
  out.operands[call->b] = scaled ? scaled->weight : graph.operand(*transposition, 0);
  if (scaled) {
    out.operands.push_back(scaled->scale);
    out.product = with_scaled_weight(*product, *scaled, graph);
  }
  return out;
}

class ProgramMaker {
 public:
  ProgramMaker(const Graph& piece, Backend& library, const Driver& driver,
               const ProgramOptions& options)
      : graph_(piece.compact()),
        library_(library),
        driver_(driver),
        options_(options),
        chain_([this](ValueId v) { return root(v); }, driver.arch(), graph_.context()) {
    decompose(graph_, [](NodeId, const std::string&) {});
    graph_.erase_dead();
    units_ = rows::group_rows(graph_, options.grouping);
    exact_ = rows::any_decides(units_);
  }

  Result<PieceProgram> run() {
    find_views();
    if (options_.stream_weights) join_products();
    for (const rows::RunUnit& unit : units_)
      if (unit.kind == rows::RunUnit::Kind::opaque) choose(unit.nodes.front());
    place_all();
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (read_by_a_call_.count(units_[i].nodes.front()) != 0) continue;
      if (const auto joined = joined_.find(i); joined != joined_.end()) {
        if (auto done = chain_.add(std::move(joined->second))) add_joined(*done);
      } else if (in_joined_.count(i) == 0) {
        using Kind = rows::RunUnit::Kind;
        if (units_[i].kind == Kind::rows || units_[i].kind == Kind::opaque) end_chain();
        PW_TRY(add(units_[i]));
      }
    }
    end_chain();
    copy_outputs();
    return std::move(out_);
  }

 private:
  /// Nodes covered by one library call, with its operands and results.
  struct Call {
    Graph alone;
    std::vector<ValueId> inputs, outputs;
    std::optional<ProductCall> product;
  };

  /// A product on tensor cores.
  struct Own {
    TensorKernels kernels;
    std::vector<ValueId> operands;
  };

  [[nodiscard]] Call call_of(const std::vector<NodeId>& nodes) const {
    Call out{Graph(graph_.context_ptr(), ""), {}, {}, {}};
    out.alone = rows::isolate(graph_, nodes, out.inputs, out.outputs);
    return out;
  }

  /// Joins the products that stream their weights with their neighbours.
  void join_products() {
    ProductJoiner joiner(graph_, units_, [this](ValueId v) { return root(v); });
    std::optional<CachedValues> cached;
    if (options_.cached)
      cached = {graph_.outputs()[options_.cached->k], graph_.outputs()[options_.cached->v],
                options_.cached->width};
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].kind != rows::RunUnit::Kind::opaque) continue;
      const NodeId n = units_[i].nodes.front();
      const auto stored = stored_product(graph_, units_, n);
      auto joined = stored
                        ? joiner.join(i, stored->product, stored->operands, driver_.arch(), cached)
                        : std::nullopt;
      if (!joined) continue;
      streamed_.insert(n);
      in_joined_.insert(stored->makers.begin(), stored->makers.end());
      in_joined_.insert(joined->units.begin(), joined->units.end());
      joined_.emplace(joined->units.back(), std::move(*joined));
    }
  }

  void end_chain() {
    if (auto done = chain_.end()) add_joined(*done);
  }

  void add_joined(JoinedProduct& joined) {
    ++out_.streamed;
    std::vector<Place> reads = places(joined.reads), writes = places(joined.writes);
    if (joined.kernel.zero) {
      const TypeId state = joined.kernel.arguments[*joined.kernel.zero];
      writes.push_back({Place::Kind::zero, out_.zeros.size(), state});
      out_.zeros.push_back(state);
    }
    if (joined.fills_pages) {
      const std::vector<TypeId>& types = joined.kernel.arguments;
      reads.push_back({Place::Kind::slots, 0, types[reads.size()]});
      writes.push_back({Place::Kind::keys, 0, types[types.size() - 2]});
      writes.push_back({Place::Kind::values, 0, types.back()});
      out_.fills_pages = true;
    }
    add_launch(as_exact_as_needed(std::move(joined.kernel)), std::move(reads), std::move(writes));
  }

  /// Makes a product a library call if the driver supports it; b stays as stored if possible.
  void choose(NodeId n) {
    if (streamed_.count(n) != 0) return;
    const auto product = product_call(graph_, n);
    if (!product) return;
    const auto transposition = transposition_of(graph_, units_, n, graph_.operand(n, product->b));
    if (own_is_faster(n, transposition.has_value())) {
      choose_own(n, transposition);
      if (own_.contains(n)) return;
    }
    if (transposition && offer({*transposition, n}, *product)) {
      read_by_a_call_.insert(*transposition);
      return;
    }
    const bool called = offer({n}, *product);
    if (!called && !driver_.calls_libraries()) choose_own(n, transposition);
    if (!called && !refused_.empty())
      out_.notes.push_back(
          fmt::format("{} runs in a built-in kernel: {}", graph_.op_of(n).name, refused_));
    refused_.clear();
  }

  [[nodiscard]] TensorChoice tensor_choice(NodeId n) const {
    const ScheduleChoice& schedules = options_.schedules;
    const DimId rows = graph_.context().types[graph_.type(graph_.result(n))].shape[0];
    const auto count =
        graph_.context().dims.evaluate(rows, {{schedules.tokens_symbol, schedules.tokens}});
    return {driver_.arch(), count ? *count : schedules.tokens, {}, schedules.table};
  }

  /// Returns true if tuning measured our own kernel and the library, and the kernel won.
  [[nodiscard]] bool own_is_faster(NodeId n, bool transposed) const {
    if (!options_.tensor_cores || options_.schedules.table == nullptr) return false;
    const auto product = tensor_product_of(graph_, n, transposed);
    if (!product) return false;
    const TensorChoice choice = tensor_choice(n);
    const TunedSchedule* tuned = choice.schedules->find(product->key(), choice.arch, choice.rows);
    return tuned != nullptr && tuned->product && !tuned->product->library;
  }

  /// Makes a product a tensor-core kernel; b stays as stored if possible.
  void choose_own(NodeId n, const std::optional<NodeId>& transposition) {
    if (!options_.tensor_cores) return;
    auto kernels = tensor_product_kernels(graph_, n, transposition.has_value(), tensor_choice(n));
    if (!kernels) return;
    const auto operands = graph_.operands(n);
    Own own{std::move(*kernels), {operands.begin(), operands.end()}};
    if (transposition) {
      own.operands[product_call(graph_, n)->b] = graph_.operand(*transposition, 0);
      read_by_a_call_.insert(*transposition);
    }
    own_.emplace(n, std::move(own));
  }

  /// Returns true if the driver supports a product, whose b may be transposed by the preceding
  /// node.
  bool offer(const std::vector<NodeId>& nodes, ProductCall product) {
    const NodeId n = nodes.back();
    Call call = call_of(nodes);
    product.b_transposed = nodes.size() > 1;
    const auto read = [&](std::size_t& operand) {  // its index among the call's inputs
      ValueId v = graph_.operand(n, operand);
      if (product.b_transposed && operand == product_call(graph_, n)->b)
        v = graph_.operand(nodes.front(), 0);
      const auto at = std::find(call.inputs.begin(), call.inputs.end(), v);
      operand = static_cast<std::size_t>(at - call.inputs.begin());
      return at != call.inputs.end();  // literals are not among the inputs
    };
    for (std::size_t* operand : {&product.a, &product.b})
      if (!read(*operand)) return false;
    for (auto* operand : {&product.bias, &product.a_scale, &product.b_scale})
      if (*operand && !read(**operand)) return false;
    call.product = product;
    if (!taken(call)) return false;
    calls_.emplace(n, std::move(call));
    return true;
  }

  /// Returns true if the driver supports the call at every size.
  bool taken(const Call& call) {
    for (const Symbols& size : options_.sizes) {
      std::vector<DeviceTensor> tensors;
      for (const auto* values : {&call.inputs, &call.outputs})
        for (ValueId v : *values) {
          auto extents = extents_of(graph_, v, size);
          if (!extents) return false;
          tensors.push_back({graph_.context().types[graph_.type(v)].dtype, std::move(*extents), 0});
        }
      const LibraryAnswer answer = driver_.calls_library(
          *call.product, std::span(tensors).first(call.inputs.size()), tensors.back());
      if (answer.yes) continue;
      if (refused_.empty()) refused_ = answer.why;
      return false;
    }
    return !options_.sizes.empty();
  }

  /// A view shares its operand's place.
  [[nodiscard]] ValueId root(ValueId v) const {
    while (view_of_[v.index].valid()) v = view_of_[v.index];
    return v;
  }

  void find_views() {
    view_of_.resize(graph_.value_bound());
    for (const rows::RunUnit& unit : units_)
      if (unit.kind == rows::RunUnit::Kind::view)
        view_of_[graph_.result(unit.nodes.front()).index] = graph_.operand(unit.nodes.front(), 0);
  }

  void place_all() {
    places_.resize(graph_.value_bound());
    placed_.resize(graph_.value_bound());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      place(graph_.inputs()[i], {Place::Kind::input, i, {}});
    // Outputs are computed in their own place; a value returned twice is copied.
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = root(graph_.outputs()[i]);
      if (!placed_[v.index] && !is_literal(v)) place(v, {Place::Kind::output, i, {}});
    }
  }
  [[nodiscard]] bool is_literal(ValueId v) const {
    return !graph_.is_input(v) && graph_.op_of(graph_.producer(v)).is_literal();
  }
  void place(ValueId v, Place where) {
    places_[v.index] = where;
    placed_[v.index] = true;
  }

  /// Returns the place of a value that a launch writes or reads, with its type there.
  Place place_of(ValueId v) {
    const ValueId from = root(v);
    if (!placed_[from.index]) {
      place(from, {Place::Kind::scratch, out_.scratch.size(), {}});
      out_.scratch.push_back({std::string(graph_.value_name(from)), graph_.type(from),
                              out_.launches.size(), out_.launches.size()});
    }
    Place out = places_[from.index];
    out.type = graph_.type(v);
    if (out.kind == Place::Kind::scratch) out_.scratch[out.index].last = out_.launches.size();
    return out;
  }
  std::vector<Place> places(const std::vector<ValueId>& values) {
    std::vector<Place> out;
    for (ValueId v : values) out.push_back(place_of(v));
    return out;
  }

  Status add(const rows::RunUnit& unit) {
    switch (unit.kind) {
      case rows::RunUnit::Kind::view: return {};
      case rows::RunUnit::Kind::literal: return add_literal(unit.nodes.front());
      case rows::RunUnit::Kind::rows:
        add_kernel(as_exact_as_needed(emit(unit.program, options_.schedules.of(unit.program))),
                   unit.inputs, unit.outputs);
        return {};
      case rows::RunUnit::Kind::opaque: return add_opaque(unit);
    }
    return {};
  }

  [[nodiscard]] Kernel as_exact_as_needed(Kernel kernel) const {
    return exact_ ? exact(std::move(kernel)) : std::move(kernel);
  }

  Status add_opaque(const rows::RunUnit& unit) {
    const NodeId n = unit.nodes.front();
    const Op& op = graph_.op_of(n);
    if (const auto call = calls_.find(n); call != calls_.end()) return add_call(call->second);
    if (const auto own = own_.find(n); own != own_.end()) {
      add_own(own->second, graph_.result(n));
      return {};
    }
    auto kernel = topk_kernel(graph_, n);
    if (!kernel && !driver_.calls_libraries()) kernel = product_kernel(graph_, n);
    if (kernel) {
      const auto operands = graph_.operands(n);
      add_kernel(std::move(*kernel), {operands.begin(), operands.end()}, {graph_.result(n)});
    } else if (is_library_call(op) && product_of(op)) {
      if (driver_.calls_libraries()) return add_call(call_of({n}));
      out_.lacks.push_back(op.name + ": no built-in kernel supports its operands");
    } else if (is_library_call(op)) {
      out_.lacks.push_back(op.name + ": it requires the sequence of each row");
    } else {
      out_.lacks.push_back(fmt::format("{}: {}", op.name, unit.why.reason));
    }
    return {};
  }

  void add_kernel(Kernel kernel, const std::vector<ValueId>& reads,
                  const std::vector<ValueId>& writes) {
    std::vector<Place> read = places(reads);
    if (kernel.reads_valid) read.push_back({Place::Kind::valid, 0, kernel.arguments[reads.size()]});
    add_launch(std::move(kernel), std::move(read), places(writes));
  }

  void add_own(Own& own, ValueId result) {
    TensorKernels& kernels = own.kernels;
    std::vector<Place> writes;
    if (kernels.sums) {
      const std::size_t at = out_.launches.size();
      writes.push_back({Place::Kind::scratch, out_.scratch.size(), *kernels.sums});
      out_.scratch.push_back({"sums of pieces", *kernels.sums, at, at});
      writes.push_back({Place::Kind::zero, out_.zeros.size(), *kernels.met});
      out_.zeros.push_back(*kernels.met);
    }
    writes.push_back(place_of(result));
    add_launch(std::move(kernels.product), places(own.operands), std::move(writes));
  }

  void add_launch(Kernel kernel, std::vector<Place> reads, std::vector<Place> writes) {
    ProgramLaunch launch;
    launch.name = kernel.name;
    launch.reads = std::move(reads);
    launch.writes = std::move(writes);
    launch.params = kernel.params;
    const bool known = std::any_of(out_.kernels.begin(), out_.kernels.end(),
                                   [&](const Kernel& k) { return k.name == kernel.name; });
    if (!known) out_.kernels.push_back(std::move(kernel));
    out_.launches.push_back(std::move(launch));
  }

  Status add_literal(NodeId n) {
    const Result<Tensor> tensor = value_of(n);
    if (!tensor) return tl::unexpected(tensor.error());
    place(graph_.result(n), {Place::Kind::literal, out_.literals.size(), {}});
    out_.literals.push_back(*tensor);
    return {};
  }

  Result<Tensor> value_of(NodeId n) {
    std::vector<ValueId> inputs, outputs;
    const Graph alone = rows::isolate(graph_, {&n, 1}, inputs, outputs);
    auto executable = PW_TRY(library_.compile(alone));
    const Tensor tensor(graph_.context().types[graph_.type(graph_.result(n))].dtype, {});
    const TensorView view = tensor.view();
    PW_TRY(executable->run({}, {&view, 1}, {}));
    return tensor;
  }

  Status add_call(const Call& call) {
    auto executable = PW_TRY(library_.compile(call.alone));
    ProgramLaunch launch;
    launch.kind = LaunchNode::Kind::library;
    launch.name = graph_.op_of(graph_.producer(call.outputs.front())).name;
    launch.reads = places(call.inputs);
    launch.writes = places(call.outputs);
    launch.on_host = std::move(executable);
    launch.product = call.product;
    out_.launches.push_back(std::move(launch));
    return {};
  }

  /// Copies outputs whose bytes are elsewhere.
  void copy_outputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = graph_.outputs()[i];
      const Place from = places_[root(v).index];
      if (from.kind == Place::Kind::output && from.index == i) continue;
      if (!out_.lacks.empty()) return;
      ProgramLaunch launch;
      launch.kind = LaunchNode::Kind::copy;
      launch.name = "copy";
      launch.reads = {place_of(v)};
      launch.writes = {{Place::Kind::output, i, graph_.type(v)}};
      out_.launches.push_back(std::move(launch));
    }
  }

  Graph graph_;
  Backend& library_;
  const Driver& driver_;
  ProgramOptions options_;
  std::vector<rows::RunUnit> units_;
  bool exact_ = false;                           ///< the piece decides by computed numbers
  std::map<NodeId, Call> calls_;                 // products that the driver supports
  std::map<NodeId, Own> own_;                    // products on tensor cores
  std::set<NodeId> read_by_a_call_;              // transpositions that are not run
  std::set<NodeId> streamed_;                    // products that stream their weights
  std::map<std::size_t, JoinedProduct> joined_;  // by the unit in whose place they are launched
  std::set<std::size_t> in_joined_;              // units that they run
  ProductChainer chain_;                         // the products that wait for their kernel
  std::string refused_;                          // reason why the driver rejected a product
  PieceProgram out_;
  std::vector<ValueId> view_of_;  // by value: the operand whose bytes it is
  std::vector<Place> places_;     // by value, for values that are not views
  std::vector<bool> placed_;
};

}  // namespace

Result<LaunchNode> launch_node(const ProgramLaunch& launch, const Context& context,
                               const RunContext& run, const std::string& place) {
  LaunchNode out;
  out.kind = launch.kind;
  out.name = launch.name;
  const auto add = [&](const std::vector<Place>& places,
                       std::vector<DeviceTensor>& tensors) -> Status {
    for (const Place& at : places) {
      auto extents = PW_TRY(extents_of(context, at.type, run.symbols, [&] { return place; }));
      tensors.push_back({context.types[at.type].dtype, std::move(extents), 0});
    }
    return {};
  };
  PW_TRY(add(launch.reads, out.reads));
  PW_TRY(add(launch.writes, out.writes));
  for (const DimId dim : launch.params) {
    const auto value = context.dims.evaluate(dim, run.symbols);
    if (!value)
      return fail(
          error_in(place, "PW1202", "dim " + context.dims.print(dim) + " has no value here"));
    out.params.push_back(*value);
  }
  if (launch.on_host)
    out.library = std::make_shared<LibraryCall>(
        LibraryCall{launch.name, launch.on_host, run, launch.product});
  return out;
}

const std::vector<ProgramLaunch>& PieceProgram::launches_for(std::int64_t tokens) const {
  return few.empty() || tokens > kFewRows ? launches : few;
}

bool PieceProgram::fills_pages_for(std::int64_t tokens) const {
  return fills_pages && &launches_for(tokens) == &few;
}

void PieceProgram::add_few(PieceProgram other) {
  const auto moved = [&](std::vector<Place>& places) {
    for (Place& place : places) {
      if (place.kind == Place::Kind::scratch) place.index += scratch.size();
      if (place.kind == Place::Kind::literal) place.index += literals.size();
      if (place.kind == Place::Kind::zero) place.index += zeros.size();
    }
  };
  for (ProgramLaunch& launch : other.launches) {
    moved(launch.reads);
    moved(launch.writes);
  }
  for (ScratchValue& value : other.scratch) value.of_few = true;
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(scratch, other.scratch);
  append(literals, other.literals);
  append(zeros, other.zeros);
  for (Kernel& kernel : other.kernels) {
    const bool known = std::any_of(kernels.begin(), kernels.end(),
                                   [&](const Kernel& k) { return k.name == kernel.name; });
    if (!known) kernels.push_back(std::move(kernel));
  }
  few = std::move(other.launches);
  streamed = other.streamed;
  fills_pages = other.fills_pages;
}

Result<PieceProgram> make_program(const Graph& piece, Backend& library, const Driver& driver,
                                  const ProgramOptions& options) {
  return ProgramMaker(piece, library, driver, options).run();
}

}  // namespace pw::cuda
