// Compiles pieces and allocates memory; runtime_capture.cpp records graphs, and runtime_steps.cpp
// runs steps.
//
// Invariant: after make() no address of the arena, scratch or a literal changes; only inputs and
// attention pages may move, and then the hash of a captured graph's addresses no longer matches and
// it is not replayed. Cost: each class of pieces is compiled once; all memory is allocated once, as
// one arena for values that cross launches.
#include "cuda/runtime.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "backends/sequences.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "exec/dispatch.hpp"
#include "splitter/check_plan.hpp"

namespace pw::cuda {

Runtime::Runtime(const StitchedGraph& stitched, const Graph& source, const Plan& plan,
                 Driver& driver, const RuntimeOptions& options)
    : stitched_(stitched),
      source_(source),
      plan_(plan),
      driver_(driver),
      options_(options),
      dispatcher_(plan),
      pages_(driver, [this](std::int64_t bytes, const std::string& what) {
        return allocate(bytes, what);
      }) {
  if (options.strict) {
    BackendOptions cpu;
    cpu.strict = true;
    host_ = std::make_unique<CpuBackend>(cpu);
  } else {
    host_ = make_eager();
  }
}

Runtime::~Runtime() {
  for (Address block : blocks_) driver_.release(block);
}

Result<std::unique_ptr<Runtime>> Runtime::make(const StitchedGraph& stitched, const Graph& source,
                                               const Plan& plan, Driver& driver,
                                               const RuntimeOptions& options) {
  std::unique_ptr<Runtime> out(new Runtime(stitched, source, plan, driver, options));
  PW_TRY(out->compile());
  PW_TRY(out->plan_all_memory());
  if (!out->pages_.empty())
    out->memory_.cache_bytes = out->pages_.bytes(out->first_pages(), out->most_rows());
  PW_TRY(out->allocate_all());
  return out;
}

void Runtime::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

/// Returns the sizes at which library support for matmuls is queried: the captured sizes, and the
/// least and the largest number of tokens.
std::vector<Symbols> Runtime::asked_sizes() const {
  std::vector<Symbols> out;
  for (std::int64_t tokens : plan_.capture.sizes) out.push_back(symbols_at(plan_, tokens));
  const std::int64_t least = plan_.ranges.empty() ? 1 : plan_.ranges.front().begin;
  for (std::int64_t tokens : {least, plan_.max_tokens})
    out.push_back(symbols_at(plan_, round_up(tokens, plan_.eager_multiple)));
  return out;
}

bool Runtime::captures_steps() const {
  return std::any_of(plan_.captures.begin(), plan_.captures.end(),
                     [](const Capture& c) { return c.mode == DispatchMode::full; });
}

Status Runtime::compile() {
  stated_ = PW_TRY(stated_groups(source_));
  for (const PieceClass& c : stitched_.classes)
    if (auto done = compile(c); !done) return done;
  for (const Piece& piece : stitched_.pieces) {
    std::unique_ptr<Executable>& between = between_.emplace_back();
    const Class& c = classes_[piece.piece_class.index];
    if (c.attention) pages_.add(*c.attention, layer_name(piece.graph, piece.graph.first()));
    if (c.attention || c.captured) continue;
    auto made = PW_TRY(host_->compile(piece.graph));
    between = std::move(made);
  }
  graphs_.resize(stitched_.pieces.size());
  return driver_.load(kernels_);
}

/// Compiles a class. Attention uses kernels if no library is called, or if whole steps are
/// captured.
Status Runtime::compile(const PieceClass& c) {
  const Graph& piece = stitched_.pieces[c.members.front()].graph;
  Class& made = classes_.emplace_back();
  counters_.pieces += c.members.size();
  ++counters_.piece_classes;
  std::optional<AttentionKernels> attention;
  if (captures_steps() || !driver_.calls_libraries())
    attention =
        attention_kernels(piece, KvCache::kPageTokens, options_.strict ? "" : driver_.arch(),
                          nullptr, 1 + plan_.speculative_tokens);
  // Splitting pieces are recorded only as a part of whole steps.
  if (c.capturable() || (c.splitting && captures_steps() && !attention)) {
    auto program = PW_TRY(make_program(
        piece, *host_, driver_, {options_.grouping, asked_sizes(), schedules(), !options_.strict}));
    for (const std::string& why : program.notes) note(why);
    for (const std::string& why : program.lacks) note(c.name + " is not captured: " + why);
    made.captured = program.lacks.empty();
    if (made.captured) made.program = std::move(program);
  }
  if (made.captured) {
    counters_.capturable_pieces += c.splitting ? 0 : c.members.size();
    counters_.compilations += c.splitting ? 0 : 1;
    for (const Kernel& kernel : made.program.kernels) keep(kernel);
  } else if (attention && (!attention_rows_.valid() || attention->rows == attention_rows_)) {
    attention_rows_ = attention->rows;
    keep(attention->put);
    if (attention->forms) {
      for (const AttentionForm& form : attention->forms->all) keep(form.kernel);
    } else {
      keep(attention->attend);
    }
    made.attention = std::move(attention);
  }
  return {};
}

void Runtime::keep(const Kernel& kernel) {
  const bool known = std::any_of(kernels_.begin(), kernels_.end(),
                                 [&](const Kernel& other) { return other.name == kernel.name; });
  if (!known) kernels_.push_back(kernel);
}

/// Returns the choice for the largest captured size, like `pwr compile`.
ScheduleChoice Runtime::schedules() const {
  const std::int64_t tokens = plan_.capture.sizes.empty() ? 1 : plan_.capture.sizes.back();
  return {options_.schedules, driver_.arch(), plan_.tokens, tokens};
}

/// Returns 0 if there are no library calls.
std::int64_t Runtime::workspace_bytes() const {
  const bool calls = std::any_of(classes_.begin(), classes_.end(), [](const Class& c) {
    return std::any_of(c.program.launches.begin(), c.program.launches.end(),
                       [](const ProgramLaunch& l) { return l.product.has_value(); });
  });
  return calls ? driver_.workspace_bytes() : 0;
}

Status Runtime::plan_all_memory() {
  const Symbols largest = symbols_at(plan_, plan_.max_tokens);
  const Context& context = source_.context();
  std::vector<PieceSchedule> schedules;
  for (const Piece& piece : stitched_.pieces) {
    const PieceProgram& program = classes_[piece.piece_class.index].program;
    PieceSchedule& schedule = schedules.emplace_back();
    schedule.launches = std::max<std::size_t>(program.launches.size(), 1);
    for (const ScratchValue& s : program.scratch) {
      auto extents = extents_of(context, s.type, largest,
                                [&] { return fmt::format("{} at value {}", piece.name, s.name); });
      if (!extents) return forward(extents);
      const DeviceTensor tensor{context.types[s.type].dtype, std::move(*extents), 0};
      schedule.scratch.push_back({s.name, s.first, s.last, tensor.bytes(), 0});
    }
  }
  if (!plan_.memory.scratch.empty()) return take_memory(schedules);
  auto memory = PW_TRY(plan_memory(stitched_, source_, std::max<std::int64_t>(plan_.max_tokens, 1),
                                   schedules, workspace_bytes()));
  memory_ = std::move(memory);
  return {};
}

/// A plan with scratch places comes from an earlier runtime.
Status Runtime::take_memory(const std::vector<PieceSchedule>& needed) {
  if (auto done = check_memory(plan_, stitched_, source_); !done) return done;
  const auto refuse = [&](std::size_t piece, const std::string& why) {
    return fail(error_in(
        fmt::format("plan of {} at {}", plan_.graph, stitched_.pieces[PieceId(piece)].name),
        "PW1256", why, "run without the plan, or with the options it was created with"));
  };
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const std::vector<Scratch>&there = plan_.memory.scratch[i], &own = needed[i].scratch;
    if (there.size() != own.size())
      return refuse(i, fmt::format("it has places for {} values between launches, but {} need one",
                                   there.size(), own.size()));
    for (std::size_t j = 0; j < own.size(); ++j) {
      if (there[j].bytes < own[j].bytes)
        return refuse(i, fmt::format("value {} needs {} bytes, but its place has {}", own[j].name,
                                     own[j].bytes, there[j].bytes));
      if (there[j].first > own[j].first || there[j].last < own[j].last)
        return refuse(
            i, fmt::format("value {} is needed in launches {}..{}, but alive in {}..{}",
                           own[j].name, own[j].first, own[j].last, there[j].first, there[j].last));
    }
  }
  if (auto done = check_workspace(); !done) return done;
  memory_ = plan_.memory;
  return {};
}

/// Checks that nothing else in the plan is alive in the workspace while a library call runs.
Status Runtime::check_workspace() const {
  const MemoryPlan& memory = plan_.memory;
  const std::int64_t begin = memory.workspace_offset, end = begin + memory.workspace_bytes;
  if (workspace_bytes() == 0 || begin == end) return {};
  const auto refuse = [&](const std::string& why) {
    return fail(error_in("plan of " + plan_.graph, "PW1256",
                         "the workspace of library calls " + why, "run without the plan"));
  };
  const auto meets = [&](const auto& place) {
    return place.offset < end && begin < place.offset + place.bytes;
  };
  if (begin % 256 != 0) return refuse("is not aligned to 256 bytes");
  for (std::size_t i = 0; i < stitched_.pieces.size(); ++i) {
    const std::vector<ProgramLaunch>& launches = class_of(PieceId(i)).program.launches;
    for (std::size_t l = 0; l < launches.size(); ++l) {
      if (!launches[l].product) continue;
      for (const Scratch& s : memory.scratch[i])
        if (s.first <= l && l <= s.last && meets(s)) return refuse("is where " + s.name + " is");
      for (const Slot& s : memory.slots)
        if (s.first <= i && i <= s.last && meets(s)) return refuse("is where " + s.name + " is");
    }
  }
  return {};
}

std::string Runtime::memory_table() const {
  std::map<std::string, std::pair<std::size_t, std::int64_t>> rows;
  for (const auto& [what, bytes] : asked_) {
    ++rows[what].first;
    rows[what].second += bytes;
  }
  std::string out = "requested so far:";
  for (const auto& [what, row] : rows)
    out += fmt::format("\n  {}: {} bytes in {}", what, row.second, row.first);
  return out;
}

Result<Address> Runtime::allocate(std::int64_t bytes, const std::string& what) {
  asked_.emplace_back(what, bytes);
  auto address = driver_.allocate(bytes);
  if (!address) {
    Diagnostics why = address.error();
    why.front().help = memory_table();
    return tl::unexpected(std::move(why));
  }
  ++counters_.allocations;
  blocks_.push_back(*address);
  return address;
}

/// The last page of a sequence may be partially filled.
std::int64_t Runtime::first_pages() const {
  const std::int64_t page = KvCache::kPageTokens;
  const std::int64_t tokens = std::max(options_.cached_tokens, most_rows());
  return (tokens + page - 1) / page + plan_.max_requests;
}

std::int64_t Runtime::attention_rows(std::int64_t tokens) const {
  return source_.context().dims.evaluate(attention_rows_, symbols_at(plan_, tokens)).value_or(0);
}

Result<std::int64_t> Runtime::largest_bytes(ValueId value) const {
  const auto largest = tensor(value, symbols_at(plan_, plan_.max_tokens));
  if (!largest) return tl::unexpected(largest.error());
  return largest->bytes();
}

Status Runtime::allocate_all() {
  address_.assign(source_.value_bound(), 0);
  auto arena = allocate(memory_.arena_bytes, "arena");
  if (!arena) return forward(arena);
  arena_ = *arena;
  for (const Slot& slot : memory_.slots)
    address_[slot.value.index] = arena_ + static_cast<Address>(slot.offset);
  if (const std::int64_t bytes = workspace_bytes(); bytes > 0) {
    workspace_ = {DType::u8, {bytes}, arena_ + static_cast<Address>(memory_.workspace_offset)};
    if (memory_.workspace_bytes < bytes) {  // the plan was made when no call needed a workspace
      auto own = PW_TRY(allocate(bytes, "workspace of library calls"));
      workspace_.address = own;
    }
  }
  const auto own = [&](ValueId v, const char* what) -> Status {
    auto bytes = PW_TRY(largest_bytes(v));
    auto address = PW_TRY(allocate(bytes, what));
    address_[v.index] = address;
    return {};
  };
  for (ValueId v : source_.inputs()) {
    if (stays(v) || has_no_tensor(source_, v)) continue;
    if (auto done = own(v, "inputs"); !done) return done;
  }
  // Literals and views of inputs that cross pieces.
  for (const Piece& piece : stitched_.pieces) {
    for (ValueId v : piece.outputs) {
      if (address_[v.index] != 0) continue;
      if (auto done = own(v, "values outside the arena"); !done) return done;
    }
  }
  const auto reads_valid = [](const Class& c) {
    return c.captured && std::any_of(c.program.kernels.begin(), c.program.kernels.end(),
                                     [](const Kernel& k) { return k.reads_valid; });
  };
  if (std::any_of(classes_.begin(), classes_.end(), reads_valid)) {
    auto address = PW_TRY(allocate(sizeof(std::int32_t), "valid tokens"));
    valid_ = address;
  }
  if (auto done = allocate_zeros(); !done) return done;
  if (!pages_.empty())
    if (auto done = pages_.reserve(first_pages(), most_rows()); !done) return done;
  for (Class& c : classes_) {
    for (const Tensor& t : c.program.literals) {
      const auto bytes = static_cast<std::int64_t>(t.view().bytes());
      auto address = PW_TRY(allocate(bytes, "literals"));
      c.literals.push_back(address);
      if (auto done = driver_.write(address, t.data(), bytes); !done) return done;
    }
  }
  return {};
}

/// Each launch has its own tensor, sized for the most tokens, because launches without shared data
/// may run concurrently.
Status Runtime::allocate_zeros() {
  constexpr std::int64_t kApart = 256;
  const Symbols largest = symbols_at(plan_, plan_.max_tokens);
  std::int64_t bytes = 0;
  for (const Piece& piece : stitched_.pieces) {
    std::vector<Address>& offsets = zeros_.emplace_back();
    for (const TypeId type : classes_[piece.piece_class.index].program.zeros) {
      auto extents = extents_of(source_.context(), type, largest, [&] { return piece.name; });
      if (!extents) return forward(extents);
      const DeviceTensor tensor{source_.context().types[type].dtype, std::move(*extents), 0};
      offsets.push_back(static_cast<Address>(bytes));
      bytes += round_up(tensor.bytes(), kApart);
    }
  }
  if (bytes == 0) return {};
  auto address = PW_TRY(allocate(bytes, "numbers of pieces of tiles"));
  for (std::vector<Address>& of_piece : zeros_)
    for (Address& at : of_piece) at += address;
  return driver_.fill(address, 0, bytes);
}

bool Runtime::stays(ValueId input) const {
  if (source_.input_kind(input) == InputKind::input) return false;
  const Shape& shape = source_.context().types[source_.type(input)].shape;
  return std::all_of(shape.begin(), shape.end(),
                     [&](DimId d) { return source_.context().dims.value(d).has_value(); });
}

Status Runtime::load(Weights& weights) {
  const Symbols symbols = symbols_at(plan_, plan_.max_tokens);
  for (ValueId v : source_.inputs()) {
    if (!stays(v) || has_no_tensor(source_, v)) continue;
    auto tensor = weights.tensor(source_.value_name(v), symbols, Step{});
    if (!tensor) return forward(tensor);
    const auto bytes = static_cast<std::int64_t>(tensor->view().bytes());
    auto address = PW_TRY(allocate(bytes, "weights"));
    if (const Address old = std::exchange(address_[v.index], address); old != 0) {
      std::erase(blocks_, old);
      driver_.release(old);
    }
    if (auto done = driver_.write(address, tensor->data(), bytes); !done) return done;
  }
  return {};
}

bool Runtime::captured(PieceId piece) const {
  return class_of(piece).captured && plan_.steps[piece.index].captured;
}

/// Hashes the addresses of everything outside the piece that it reads and writes.
std::uint64_t Runtime::address_hash(PieceId piece) const {
  std::uint64_t hash = combine(arena_, valid_);
  const Piece& p = stitched_.pieces[piece];
  for (const auto* values : {&p.inputs, &p.outputs})
    for (ValueId v : *values) hash = combine(hash, address_[v.index]);
  return hash;
}

std::uint64_t Runtime::hash_of(const Segment& segment) const {
  std::uint64_t hash = pages_.address_hash();
  for (std::size_t i = segment.first; i < segment.end; ++i)
    hash = combine(hash, address_hash(plan_.steps[i].piece));
  return hash;
}

Result<DeviceTensor> Runtime::tensor(ValueId value, const Symbols& symbols) const {
  if (has_no_tensor(source_, value)) return DeviceTensor{DType::u8, {0}, 0};
  auto extents = PW_TRY(extents_of(source_, value, symbols));
  return DeviceTensor{source_.context().types[source_.type(value)].dtype, std::move(extents),
                      address_[value.index]};
}

Result<std::vector<DeviceTensor>> Runtime::tensors(const std::vector<ValueId>& values,
                                                   const Symbols& symbols) const {
  std::vector<DeviceTensor> out;
  for (ValueId v : values) {
    auto t = PW_TRY(tensor(v, symbols));
    out.push_back(std::move(t));
  }
  return out;
}

Result<DeviceTensor> Runtime::tensor(PieceId piece, const Place& place,
                                     const Symbols& symbols) const {
  const Context& context = source_.context();
  const Piece& p = stitched_.pieces[piece];
  auto extents = extents_of(context, place.type, symbols, [&] { return p.name; });
  if (!extents) return forward(extents);
  DeviceTensor out{context.types[place.type].dtype, std::move(*extents), 0};
  switch (place.kind) {
    case Place::Kind::input: out.address = address_[p.inputs[place.index].index]; break;
    case Place::Kind::output: out.address = address_[p.outputs[place.index].index]; break;
    case Place::Kind::valid: out.address = valid_; break;
    case Place::Kind::literal: out.address = class_of(piece).literals[place.index]; break;
    case Place::Kind::zero: out.address = zeros_[piece.index][place.index]; break;
    case Place::Kind::scratch:
      out.address = arena_ + static_cast<Address>(memory_.scratch[piece.index][place.index].offset);
  }
  return out;
}

Result<std::vector<LaunchNode>> Runtime::nodes_of(PieceId piece, std::int64_t tokens) const {
  const Symbols symbols = symbols_at(plan_, tokens);
  const Context& context = source_.context();
  std::vector<LaunchNode> out;
  for (const ProgramLaunch& launch : class_of(piece).program.launches) {
    LaunchNode node;
    node.kind = launch.kind;
    node.name = launch.name;
    for (const Place& place : launch.reads) {
      auto t = PW_TRY(tensor(piece, place, symbols));
      node.reads.push_back(std::move(t));
    }
    for (const Place& place : launch.writes) {
      auto t = PW_TRY(tensor(piece, place, symbols));
      node.writes.push_back(std::move(t));
    }
    for (DimId d : launch.params) {
      const auto value = context.dims.evaluate(d, symbols);
      if (!value)
        return fail(error_in(stitched_.pieces[piece].name, "PW1202",
                             "dim " + context.dims.print(d) + " has no value here"));
      node.params.push_back(*value);
    }
    const bool nowhere =
        launch.kind == LaunchNode::Kind::copy && node.reads[0].address == node.writes[0].address;
    if (nowhere) continue;  // a view that shares its operand's place
    if (launch.on_host)
      node.library = std::make_shared<LibraryCall>(LibraryCall{
          launch.name, launch.on_host, RunContext{symbols, nullptr, tokens}, launch.product});
    if (launch.product && workspace_.address != 0) node.writes.push_back(workspace_);
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace pw::cuda
