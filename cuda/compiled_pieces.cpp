#include "cuda/compiled_pieces.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "backends/sequences.hpp"
#include "base/try.hpp"
#include "cuda/joined_products.hpp"
#include "cuda/kernels/matmul/tensor_machine.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {
namespace {

/// Makes all kernels wait for earlier ones, and the launches name them. A weight that every launch
/// of a kernel reads at one argument is constant there; `weight` gives its bytes, or 0.
void make_waiting(PieceProgram& program, const std::function<std::int64_t(const Place&)>& weight) {
  std::map<std::string, std::map<std::size_t, std::int64_t>> constants;
  const auto each_kernel = [&](const auto& call) {
    for (auto* launches : {&program.launches, &program.few})
      for (ProgramLaunch& launch : *launches)
        if (launch.kind == LaunchNode::Kind::kernel) call(launch);
  };
  each_kernel([&](const ProgramLaunch& launch) {
    const auto [known, first] = constants.try_emplace(launch.name);
    for (std::size_t i = 0; i < launch.reads.size(); ++i) {
      const std::int64_t bytes = weight(launch.reads[i]);
      if (bytes == 0) known->second.erase(i);
      if (bytes > 0 && first) known->second[i] = bytes;
    }
  });
  std::map<std::string, std::string> renamed;
  for (Kernel& kernel : program.kernels) {
    const std::string before = kernel.name;
    std::vector<ConstantArgument> arguments;
    for (const auto& [argument, bytes] : constants[before])
      if (kernel.phases == 1 || argument < kernel.first_reads)  // later phases prefetch theirs
        arguments.push_back({argument, bytes});
    kernel = waiting(std::move(kernel), arguments);
    renamed[before] = kernel.name;
  }
  each_kernel([&](ProgramLaunch& launch) { launch.name = renamed.at(launch.name); });
}

void make_waiting(AttentionKernels& attention) {
  attention.put = waiting(std::move(attention.put));
  if (!attention.forms) {
    attention.attend = waiting(std::move(attention.attend));
    return;
  }
  for (AttentionForm& form : attention.forms->all) form.kernel = waiting(std::move(form.kernel));
}

}  // namespace

void RuntimeLog::note(const std::string& text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

bool RuntimeTask::captures_steps() const {
  return std::any_of(plan.captures.begin(), plan.captures.end(),
                     [](const Capture& c) { return c.mode == DispatchMode::full; });
}

bool RuntimeTask::starts_early() const {
  constexpr int kFirst = 90;  // the first architecture with programmatic launches
  return options.programmatic_edges && arch_number(driver.arch()) >= kFirst;
}

bool RuntimeTask::stays(ValueId input) const {
  if (source.input_kind(input) == InputKind::input) return false;
  const Shape& shape = source.context().types[source.type(input)].shape;
  return std::all_of(shape.begin(), shape.end(),
                     [&](DimId d) { return source.context().dims.value(d).has_value(); });
}

bool RuntimeTask::continues(ValueId input) const {
  return !stays(input) && !has_no_tensor(source, input) &&
         is_integer(source.context().types[source.type(input)].dtype);
}

CompiledPieces::CompiledPieces(const RuntimeTask& task, RuntimeLog& log) : task_(task), log_(log) {
  if (task.options.strict) {
    BackendOptions cpu;
    cpu.strict = true;
    host_ = std::make_unique<CpuBackend>(cpu);
  } else {
    host_ = make_eager();
  }
}

/// Returns the sizes at which library support for matmuls is queried: the captured sizes, and the
/// least and the largest number of tokens.
std::vector<Symbols> CompiledPieces::asked_sizes() const {
  std::vector<Symbols> out;
  for (std::int64_t tokens : task_.plan.capture.sizes)
    out.push_back(symbols_at(task_.plan, tokens));
  const std::int64_t least = task_.plan.ranges.empty() ? 1 : task_.plan.ranges.front().begin;
  for (std::int64_t tokens : {least, task_.plan.max_tokens})
    out.push_back(symbols_at(task_.plan, round_up(tokens, task_.plan.eager_multiple)));
  return out;
}

Status CompiledPieces::compile() {
  classes_.resize(task_.stitched.classes.size());
  // Attention first, because the pieces before it may put rows into its pages.
  for (const bool splitting : {true, false}) {
    std::size_t i = 0;
    for (const PieceClass& c : task_.stitched.classes) {
      Class& made = classes_[i++];
      if (c.splitting == splitting) PW_TRY(compile(c, made));
    }
  }
  for (const Piece& piece : task_.stitched.pieces) {
    std::unique_ptr<Executable>& between = between_.emplace_back();
    const Class& c = classes_[piece.piece_class.index];
    if (c.attention || c.captured) continue;
    auto made = PW_TRY(host_->compile(piece.graph));
    between = std::move(made);
  }
  return task_.driver.load(kernels_);
}

/// Makes the program of a piece, with launches for few tokens if they are wanted and differ.
Result<PieceProgram> CompiledPieces::program(const PieceClass& c) {
  const Graph& piece = task_.stitched.pieces[c.members.front()].graph;
  ProgramOptions options{task_.options.grouping, asked_sizes(), schedules(), !task_.options.strict};
  auto out = PW_TRY(make_program(piece, *host_, task_.driver, options));
  if (!task_.options.stream_weights || task_.options.strict || !out.lacks.empty()) return out;
  options.stream_weights = true;
  options.cached = cached_outputs(c);
  auto few = PW_TRY(make_program(piece, *host_, task_.driver, options));
  if (few.streamed > 0) out.add_few(std::move(few));
  return out;
}

/// Compiles a class. Attention uses kernels if no library is called, or if whole steps are
/// captured.
Status CompiledPieces::compile(const PieceClass& c, Class& made) {
  const Graph& piece = task_.stitched.pieces[c.members.front()].graph;
  log_.counters.pieces += c.members.size();
  ++log_.counters.piece_classes;
  std::optional<AttentionKernels> attention;
  if (task_.captures_steps() || !task_.driver.calls_libraries())
    attention = attention_kernels(piece, KvCache::kPageTokens,
                                  task_.options.strict ? "" : task_.driver.arch(), nullptr,
                                  1 + task_.plan.speculative_tokens);
  // Splitting pieces are recorded only as a part of whole steps.
  if (c.capturable() || (c.splitting && task_.captures_steps() && !attention)) {
    auto program = PW_TRY(this->program(c));
    if (task_.starts_early())
      make_waiting(program, [&](const Place& place) { return weight_bytes(c, place); });
    for (const std::string& why : program.notes) log_.note(why);
    for (const std::string& why : program.lacks) log_.note(c.name + " is not captured: " + why);
    made.captured = program.lacks.empty();
    if (made.captured) made.program = std::move(program);
  }
  if (made.captured) {
    log_.counters.capturable_pieces += c.splitting ? 0 : c.members.size();
    log_.counters.compilations += c.splitting ? 0 : 1;
    for (const Kernel& kernel : made.program.kernels) keep(kernel);
  } else if (attention && (!attention_rows_.valid() || attention->rows == attention_rows_)) {
    keep(std::move(*attention), made);
  }
  return {};
}

void CompiledPieces::keep(AttentionKernels attention, Class& made) {
  attention_rows_ = attention.rows;
  if (task_.starts_early()) make_waiting(attention);
  keep(attention.put);
  if (attention.forms) {
    for (const AttentionForm& form : attention.forms->all) keep(form.kernel);
  } else {
    keep(attention.attend);
  }
  made.attention = std::move(attention);
}

PieceId CompiledPieces::next(PieceId piece) const {
  const std::size_t step = piece.index + std::size_t{1};
  return step < task_.plan.steps.size() ? task_.plan.steps[step].piece : PieceId();
}

/// Returns the outputs of a piece that the next one, if it is attention, puts into pages.
std::optional<CachedOutputs> CompiledPieces::cached_outputs(PieceId piece) const {
  const PieceId after = next(piece);
  if (!after.valid() || !class_of(after).attention) return std::nullopt;
  const AttentionKernels& attention = *class_of(after).attention;
  const std::vector<ValueId>& outputs = task_.stitched.pieces[piece].outputs;
  const auto output = [&](std::size_t operand) {
    const ValueId v = task_.stitched.pieces[after].inputs[attention.operands[operand]];
    return static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), v) - outputs.begin());
  };
  const CachedOutputs out{output(1), output(2), attention.row};
  if (std::max(out.k, out.v) >= outputs.size()) return std::nullopt;
  return out;
}

/// Returns such outputs if they are the same in every piece of a class.
std::optional<CachedOutputs> CompiledPieces::cached_outputs(const PieceClass& c) const {
  const auto first = cached_outputs(c.members.front());
  const bool same = std::all_of(c.members.begin(), c.members.end(),
                                [&](PieceId member) { return cached_outputs(member) == first; });
  return same ? first : std::nullopt;
}

/// Returns the bytes of a place that is a weight in every piece of the class, all of which a step
/// reads; 0 for others.
std::int64_t CompiledPieces::weight_bytes(const PieceClass& c, const Place& place) const {
  if (place.kind != Place::Kind::input) return 0;
  for (PieceId member : c.members) {
    const Piece& piece = task_.stitched.pieces[member];
    const ValueId v = piece.inputs[place.index];
    if (!task_.source.is_input(v) || !task_.stays(v) ||
        !is_read_whole(piece.graph, piece.graph.inputs()[place.index]))
      return 0;
  }
  const auto extents =
      extents_of(task_.source.context(), place.type, {}, [] { return std::string(); });
  if (!extents) return 0;
  return static_cast<std::int64_t>(
      TensorView{task_.source.context().types[place.type].dtype, *extents, nullptr}.bytes());
}

void CompiledPieces::keep(const Kernel& kernel) {
  if (waits_first(kernel)) waiting_.insert(kernel.name);
  const bool known = std::any_of(kernels_.begin(), kernels_.end(),
                                 [&](const Kernel& other) { return other.name == kernel.name; });
  if (!known) kernels_.push_back(kernel);
}

/// Returns the choice for the largest captured size, like `pwr compile`.
ScheduleChoice CompiledPieces::schedules() const {
  const std::int64_t tokens =
      task_.plan.capture.sizes.empty() ? 1 : task_.plan.capture.sizes.back();
  return {task_.options.schedules, task_.driver.arch(), task_.plan.tokens, tokens};
}

bool CompiledPieces::captured(PieceId piece) const {
  return class_of(piece).captured && task_.plan.steps[piece.index].captured;
}

std::int64_t CompiledPieces::workspace_bytes() const {
  const bool calls = std::any_of(classes_.begin(), classes_.end(), [](const Class& c) {
    return std::any_of(c.program.launches.begin(), c.program.launches.end(),
                       [](const ProgramLaunch& l) { return l.product.has_value(); });
  });
  return calls ? task_.driver.workspace_bytes() : 0;
}

bool CompiledPieces::reads_valid() const {
  return std::any_of(classes_.begin(), classes_.end(), [](const Class& c) {
    return c.captured && std::any_of(c.program.kernels.begin(), c.program.kernels.end(),
                                     [](const Kernel& k) { return k.reads_valid; });
  });
}

std::int64_t CompiledPieces::attention_rows(std::int64_t tokens) const {
  return task_.source.context()
      .dims.evaluate(attention_rows_, symbols_at(task_.plan, tokens))
      .value_or(0);
}

std::int64_t CompiledPieces::most_rows() const {
  return attention_rows(round_up(task_.plan.max_tokens, task_.plan.eager_multiple));
}

}  // namespace pw::cuda
