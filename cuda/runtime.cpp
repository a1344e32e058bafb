// Runs steps: binds the inputs, replays the captured graph of the step or runs its pieces one by
// one, and writes results back. A replay requires that all addresses equal those at capture;
// otherwise the pieces of the segment run instead, which gives the same results more slowly.
//
// Cost: all memory is allocated once. A step costs one copy for each changing input, and one replay
// for each segment of a whole step, or for each captured piece.
#include "cuda/runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "backends/sequences.hpp"
#include "base/try.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {

Runtime::Runtime(const StitchedGraph& stitched, const Graph& source, const Plan& plan,
                 Driver& driver, const RuntimeOptions& options)
    : task_{stitched, source, plan, driver, options},
      dispatcher_(plan),
      pieces_(task_, log_),
      memory_(task_, pieces_, log_),
      pages_(driver, [this](std::int64_t bytes,
                            const std::string& what) { return memory_.allocate(bytes, what); }),
      recorder_(task_, pieces_, memory_, pages_),
      graphs_(task_, pieces_, memory_, pages_, recorder_, log_),
      loop_(task_, pieces_, memory_, pages_, recorder_, graphs_, log_) {}

Result<std::unique_ptr<Runtime>> Runtime::make(const StitchedGraph& stitched, const Graph& source,
                                               const Plan& plan, Driver& driver,
                                               const RuntimeOptions& options) {
  std::unique_ptr<Runtime> out(new Runtime(stitched, source, plan, driver, options));
  PW_TRY(out->compile());
  PW_TRY(out->allocate());
  return out;
}

Status Runtime::compile() {
  stated_ = PW_TRY(stated_groups(task_.source));
  PW_TRY(pieces_.compile());
  for (const Piece& piece : task_.stitched.pieces)
    if (const auto& attention = pieces_.classes()[piece.piece_class.index].attention)
      pages_.add(*attention, layer_name(piece.graph, piece.graph.first()));
  return {};
}

Status Runtime::allocate() {
  PW_TRY(memory_.lay_out());
  if (!pages_.empty())
    memory_.layout().cache_bytes = pages_.bytes(first_pages(), pieces_.most_rows());
  PW_TRY(memory_.allocate_tensors());
  if (!pages_.empty()) PW_TRY(pages_.reserve(first_pages(), pieces_.most_rows()));
  PW_TRY(memory_.allocate_literals());
  return loop_.prepare();
}

/// The last page of a sequence may be partially filled.
std::int64_t Runtime::first_pages() const {
  const std::int64_t page = KvCache::kPageTokens;
  const std::int64_t tokens = std::max(task_.options.cached_tokens, pieces_.most_rows());
  return (tokens + page - 1) / page + task_.plan.max_requests;
}

Status Runtime::load(Weights& weights) { return memory_.load(weights); }

Status Runtime::capture() {
  if (stepped_)
    return fail(error_in("capture", "PW1255", "a step has already run",
                         "capture before the first step: capturing fixes memory and addresses"));
  PW_TRY(graphs_.capture());
  return loop_.capture();
}

Result<StepReport> Runtime::dispatch(const Step& step, const RunOptions& options) const {
  auto report = dispatched(task_.plan, task_.source, dispatcher_, step, options);
  if (!report) return report;
  if (!graphs_.captured())
    *report = {step.tokens(), step.tokens(), StepMode::eager, "nothing was captured"};
  const bool recorded = graphs_.step(captured_size(*report)) != nullptr;
  if (report->whole && (options.hook != nullptr || !recorded)) {
    report->whole = false;
    const bool pieces = std::any_of(task_.plan.steps.begin(), task_.plan.steps.end(),
                                    [](const Plan::Step& s) { return s.captured; });
    if (!pieces) {
      report->mode = StepMode::eager;
      report->key.clear();
      report->reason = recorded ? "a hook runs between the pieces"
                                : "no complete step of this size was captured";
    }
  }
  report->piece_seconds.resize(task_.stitched.pieces.size());
  return report;
}

/// Copies an input to the device, unless the last step left these contents there. Padding rows hold
/// zeros, or the poison value that no kernel may let through.
Status Runtime::bind_input(ValueId input, const Tensor& tensor) {
  auto extents =
      PW_TRY(extents_of(task_.source, input, symbols_at(task_.plan, live_->report.padded)));
  const Tensor whole = padded(tensor, extents, live_->options.poison);
  if (const auto held = next_inputs_.find(input); held != next_inputs_.end()) {
    const TensorView a = held->second.view(), b = whole.view();
    const bool same = a.extents == b.extents && std::memcmp(a.data, b.data, b.bytes()) == 0;
    next_inputs_.erase(held);  // this step writes others
    if (same) return {};
  }
  ++log_.counters.uploads;
  return memory_.write(input, whole.view());
}

Result<StepReport> Runtime::begin_step(const Step& step, Weights& weights,
                                       const RunOptions& options) {
  return begin(step, weights, options, 0);
}

/// Reserves pages for `ahead` tokens of each sequence.
Result<StepReport> Runtime::begin(const Step& step, Weights& weights, const RunOptions& options,
                                  std::int64_t ahead) {
  auto report = dispatch(step, options);
  if (!report) return report;
  stepped_ = true;
  live_ = Live{step, *report, options, shape_of(step).query, 0};
  if (!stated_.empty()) {
    groups_ = groups_in(step, stated_);
    live_->step.groups = &groups_;
  }
  if (options.poison) PW_TRY(memory_.poison());
  PW_TRY(memory_.write_valid(step.tokens()));
  const Symbols valid = symbols_at(task_.plan, step.tokens());
  for (ValueId v : task_.source.inputs()) {
    if (task_.stays(v) || has_no_tensor(task_.source, v)) continue;
    auto tensor = weights.tensor(task_.source.value_name(v), valid, step);
    if (!tensor) return forward(tensor);
    PW_TRY(bind_input(v, *tensor));
  }
  if (!pages_.empty()) PW_TRY(pages_.begin(step, pieces_.attention_rows(report->padded), ahead));
  return report;
}

/// Runs a piece that is not captured: its executable, or its attention kernels.
Status Runtime::run_between(PieceId piece) {
  ++log_.counters.ops_between;
  Executable* between = pieces_.between(piece);
  if (between == nullptr) return launch_all(piece);
  const Symbols symbols = symbols_at(task_.plan, live_->report.padded);
  const Piece& p = task_.stitched.pieces[piece];
  const auto inputs = PW_TRY(memory_.tensors(p.inputs, symbols));
  const auto outputs = PW_TRY(memory_.tensors(p.outputs, symbols));
  live_->report.launches.add(between->launches());
  return task_.driver.run(*between, inputs, outputs, {symbols, &live_->step, live_->step.tokens()});
}

/// Launches the nodes one by one, in order.
Status Runtime::launch_all(PieceId piece) {
  const bool attention = pieces_.class_of(piece).attention.has_value();
  const auto nodes = PW_TRY(recorder_.launches(piece, live_->report.padded, live_->query));
  for (const LaunchNode& node : nodes) {
    if (!attention) ++log_.counters.launches;
    live_->report.launches.add(counted(node));
    if (auto done = task_.driver.launch(node); !done) return done;
  }
  return {};
}

class Runtime::Call final : public PieceCall {
 public:
  Call(Runtime& runtime, PieceId piece)
      : PieceCall(runtime.task_.source, runtime.task_.stitched.pieces[piece], runtime.live_->step,
                  symbols_at(runtime.task_.plan, runtime.live_->step.tokens())),
        runtime_(runtime) {}

 private:
  [[nodiscard]] Result<DeviceTensor> tensor(ValueId value) const {
    return runtime_.memory_.tensor(value,
                                   symbols_at(runtime_.task_.plan, runtime_.live_->report.padded));
  }
  Result<Tensor> read_all(ValueId value) override {
    const DeviceTensor device = PW_TRY(tensor(value));
    Tensor out(device.dtype, device.extents);
    PW_TRY(runtime_.task_.driver.read(out.data(), device.address, device.bytes()));
    return out;
  }
  Status write_all(ValueId value, const Tensor& whole) override {
    const DeviceTensor device = PW_TRY(tensor(value));
    return runtime_.task_.driver.write(device.address, whole.data(), device.bytes());
  }
  [[nodiscard]] Result<Extents> padded_extents(ValueId value) const override {
    return PW_TRY(tensor(value)).extents;
  }

  Runtime& runtime_;
};

Status Runtime::call_hook(PieceId piece, bool after) {
  PieceHook* hook = live_->options.hook;
  if (hook == nullptr) return {};
  Call call(*this, piece);
  return after ? hook->after(call) : hook->before(call);
}

Status Runtime::run_piece(PieceId piece) {
  PW_TRY(check_due(piece));
  ++live_->next;
  PW_TRY(call_hook(piece, false));
  const auto start = std::chrono::steady_clock::now();
  auto done = run_due_piece(piece);
  if (done)
    live_->report.piece_seconds[piece.index] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return done ? call_hook(piece, true) : done;
}

Status Runtime::check_due(PieceId piece) const {
  const bool due = live_ && live_->next < task_.plan.steps.size() &&
                   task_.plan.steps[live_->next].piece == piece;
  if (due) return {};
  return fail(error_in(
      task_.stitched.pieces[piece].name, "PW1254",
      !live_ ? "no step has begun"
             : fmt::format("is not the next piece: next is {}",
                           live_->next < task_.plan.steps.size()
                               ? task_.stitched.pieces[task_.plan.steps[live_->next].piece].name
                               : "none, the step has ended"),
      "run pieces in the plan's order, because they share one arena"));
}

Status Runtime::run_due_piece(PieceId piece) {
  if (pieces_.between(piece) != nullptr || pieces_.class_of(piece).attention)
    return run_between(piece);
  StepReport& report = live_->report;
  if (report.mode != StepMode::captured || !pieces_.captured(piece)) return launch_all(piece);
  const bool replayed = PW_TRY(graphs_.replay(piece, captured_size(report), report.launches));
  return replayed ? Status() : launch_all(piece);
}

Result<std::vector<Tensor>> Runtime::end_step() {
  if (!live_ || live_->next != task_.plan.steps.size())
    return fail(error_in("step", "PW1254", "the step has not run all its pieces"));
  std::vector<Tensor> outputs;
  for (ValueId v : task_.source.outputs()) {
    auto valid = PW_TRY(extents_of(task_.source, v, symbols_at(task_.plan, live_->step.tokens())));
    auto device = PW_TRY(memory_.tensor(v, symbols_at(task_.plan, live_->report.padded)));
    const Tensor whole(device.dtype, device.extents);
    PW_TRY(task_.driver.read(whole.data(), device.address, device.bytes()));
    outputs.push_back(cut(whole.view(), valid));
  }
  PW_TRY(write_back(outputs));
  PW_TRY(continue_inputs());
  live_.reset();
  return outputs;
}

Status Runtime::continue_inputs() {
  next_inputs_.clear();
  const auto nodes = PW_TRY(recorder_.next_inputs(live_->report.padded));
  for (const LaunchNode& node : nodes)
    if (!live_->continued) PW_TRY(task_.driver.launch(node));
  for (ValueId input : task_.source.written_inputs()) {
    if (!task_.continues(input)) continue;
    const auto device = PW_TRY(memory_.tensor(input, symbols_at(task_.plan, live_->report.padded)));
    Tensor whole(device.dtype, device.extents);
    PW_TRY(task_.driver.read(whole.data(), device.address, device.bytes()));
    next_inputs_.emplace(input, std::move(whole));
  }
  return {};
}

/// Weights and buffers stay on the device, so the next step reads what a step wrote.
Status Runtime::write_back(const std::vector<Tensor>& outputs) {
  for (std::size_t i = 0; i < task_.source.written_inputs().size(); ++i) {
    const ValueId input = task_.source.written_inputs()[i];
    if (!task_.stays(input)) continue;
    const TensorView view = outputs[task_.source.returned_count() + i].view();
    PW_TRY(memory_.write(input, view));
  }
  return {};
}

/// Replays a segment; if an address has changed, its pieces run one by one.
Status Runtime::run_segment(const StepSegment& segment) {
  const bool all = segment.first == 0 && segment.end == task_.plan.steps.size();
  const bool done = PW_TRY(graphs_.replay(segment, live_->report.launches));
  live_->report.whole = live_->report.whole && done && all;
  if (done) live_->next = segment.end;
  live_->continued = done && segment.end == task_.plan.steps.size();
  while (live_->next < segment.end) PW_TRY(run_piece(task_.plan.steps[live_->next].piece));
  return {};
}

/// Runs the step's graphs if there are any, and the pieces between them one by one.
Status Runtime::run_pieces() {
  const std::vector<StepSegment>* segments =
      live_->report.whole ? graphs_.step(captured_size(live_->report)) : nullptr;
  std::size_t at = 0;
  while (live_->next < task_.plan.steps.size()) {
    if (segments != nullptr && at < segments->size() && (*segments)[at].first == live_->next)
      PW_TRY(run_segment((*segments)[at++]));
    else
      PW_TRY(run_piece(task_.plan.steps[live_->next].piece));
  }
  return {};
}

Result<StepResult> Runtime::run(const Step& step, Weights& weights, const RunOptions& options) {
  auto report = PW_TRY(begin_step(step, weights, options));
  const auto start = std::chrono::steady_clock::now();
  PW_TRY(run_pieces());
  report = live_->report;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto outputs = PW_TRY(end_step());
  return StepResult{std::move(outputs), std::move(report)};
}

Result<ChosenTokens> Runtime::run_loop(const Step& step, Weights& weights,
                                       const GenerationLimits& limits) {
  auto out = PW_TRY(loop_.run(captured_size(live_->report), step.sequences.size(), limits));
  live_->next = task_.plan.steps.size();
  live_->continued = true;
  const auto outputs = PW_TRY(end_step());
  Step last = step;
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const Sequence& s = step.sequences[i];
    PW_TRY(pages_.keep(step, s, static_cast<std::int64_t>(out.chosen[i].size())));
    last.sequences[i].past += out.steps - 1;
  }
  weights.write_back(task_.source, outputs, last);
  return out;
}

Result<ChosenTokens> Runtime::run_some(const Step& step, Weights& weights,
                                       const GenerationLimits& limits, const RunOptions& options) {
  const std::int64_t ahead = loop_.passes(step, limits, options);
  PW_TRY(begin(step, weights, options, ahead));
  if (ahead > 0 && live_->report.whole && loop_.ready(captured_size(live_->report)))
    return run_loop(step, weights, limits);
  PW_TRY(run_pieces());
  const std::vector<Tensor> outputs = PW_TRY(end_step());
  if (ahead > 0)
    for (const Sequence& s : step.sequences) PW_TRY(pages_.keep(step, s, s.new_tokens));
  return take_chosen(task_.source, step, weights, outputs);
}

}  // namespace pw::cuda
