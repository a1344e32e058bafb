// Runs steps: binds the inputs, replays the captured graph of the step or runs its pieces one by
// one, and writes results back. A replay requires that all addresses equal those at capture;
// otherwise the pieces of the segment run instead, which gives the same results more slowly. Cost:
// one copy for each changing input, and one replay for each segment of a whole step, or for each
// captured piece.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"
#include "cuda/runtime.hpp"
#include "exec/dispatch.hpp"

namespace pw::cuda {

Result<StepReport> Runtime::dispatch(const Step& step, const RunOptions& options) const {
  auto report = dispatched(plan_, source_, dispatcher_, step, options);
  if (!report) return report;
  if (!captured_) *report = {step.tokens(), step.tokens(), StepMode::eager, "nothing was captured"};
  const bool recorded = steps_.count(captured_size(*report)) != 0;
  if (report->whole && (options.hook != nullptr || !recorded)) {
    report->whole = false;
    const bool pieces = std::any_of(plan_.steps.begin(), plan_.steps.end(),
                                    [](const Plan::Step& s) { return s.captured; });
    if (!pieces) {
      report->mode = StepMode::eager;
      report->key.clear();
      report->reason = recorded ? "a hook runs between the pieces"
                                : "no complete step of this size was captured";
    }
  }
  report->piece_seconds.resize(stitched_.pieces.size());
  return report;
}

/// Copies an input to the device. Padding rows hold zeros, or the poison value that no kernel may
/// let through.
Status Runtime::bind_input(ValueId input, const Tensor& tensor) {
  auto extents = PW_TRY(extents_of(source_, input, symbols_at(plan_, live_->report.padded)));
  const Tensor whole = padded(tensor, extents, live_->options.poison);
  return driver_.write(address_[input.index], whole.data(),
                       static_cast<std::int64_t>(whole.view().bytes()));
}

Result<StepReport> Runtime::begin_step(const Step& step, Weights& weights,
                                       const RunOptions& options) {
  auto report = dispatch(step, options);
  if (!report) return report;
  stepped_ = true;
  live_ = Live{step, *report, options, shape_of(step).query, 0};
  if (!stated_.empty()) {
    groups_ = groups_in(step, stated_);
    live_->step.groups = &groups_;
  }
  if (options.poison) {
    PW_TRY(driver_.fill(arena_, kPoison, memory_.arena_bytes));
  }
  if (valid_ != 0) {
    const auto tokens = static_cast<std::int32_t>(step.tokens());
    PW_TRY(driver_.write(valid_, &tokens, sizeof tokens));
  }
  const Symbols valid = symbols_at(plan_, step.tokens());
  for (ValueId v : source_.inputs()) {
    if (stays(v) || has_no_tensor(source_, v)) continue;
    auto tensor = weights.tensor(source_.value_name(v), valid, step);
    if (!tensor) return forward(tensor);
    PW_TRY(bind_input(v, *tensor));
  }
  if (!pages_.empty()) PW_TRY(pages_.begin(step, attention_rows(report->padded)));
  return report;
}

Status Runtime::run_between(PieceId piece) {
  ++counters_.ops_between;
  if (class_of(piece).attention) {
    const auto nodes = attention_of(piece, live_->report.padded, live_->query);
    if (!nodes) return tl::unexpected(nodes.error());
    for (const LaunchNode& node : *nodes) {
      live_->report.launches.add(counted(node));
      if (auto done = driver_.launch(node); !done) return done;
    }
    return {};
  }
  const Symbols symbols = symbols_at(plan_, live_->report.padded);
  const Piece& p = stitched_.pieces[piece];
  const auto inputs = tensors(p.inputs, symbols), outputs = tensors(p.outputs, symbols);
  if (!inputs) return tl::unexpected(inputs.error());
  if (!outputs) return tl::unexpected(outputs.error());
  live_->report.launches.add(between_[piece.index]->launches());
  return driver_.run(*between_[piece.index], *inputs, *outputs,
                     {symbols, &live_->step, live_->step.tokens()});
}

/// Launches the nodes one by one, in order.
Status Runtime::launch_all(PieceId piece) {
  const auto nodes = nodes_of(piece, live_->report.padded);
  if (!nodes) return tl::unexpected(nodes.error());
  for (const LaunchNode& node : *nodes) {
    ++counters_.launches;
    live_->report.launches.add(counted(node));
    if (auto done = driver_.launch(node); !done) return done;
  }
  return {};
}

class Runtime::Call final : public PieceCall {
 public:
  Call(Runtime& runtime, PieceId piece)
      : PieceCall(runtime.source_, runtime.stitched_.pieces[piece], runtime.live_->step,
                  symbols_at(runtime.plan_, runtime.live_->step.tokens())),
        runtime_(runtime) {}

 private:
  [[nodiscard]] Result<DeviceTensor> tensor(ValueId value) const {
    return runtime_.tensor(value, symbols_at(runtime_.plan_, runtime_.live_->report.padded));
  }
  Result<Tensor> read_all(ValueId value) override {
    const DeviceTensor device = PW_TRY(tensor(value));
    Tensor out(device.dtype, device.extents);
    PW_TRY(runtime_.driver_.read(out.data(), device.address, device.bytes()));
    return out;
  }
  Status write_all(ValueId value, const Tensor& whole) override {
    const DeviceTensor device = PW_TRY(tensor(value));
    return runtime_.driver_.write(device.address, whole.data(), device.bytes());
  }
  [[nodiscard]] Result<Extents> padded_extents(ValueId value) const override {
    return PW_TRY(tensor(value)).extents;
  }

  Runtime& runtime_;
};

Status Runtime::tell(PieceId piece, bool after) {
  PieceHook* hook = live_->options.hook;
  if (hook == nullptr) return {};
  Call call(*this, piece);
  return after ? hook->after(call) : hook->before(call);
}

Status Runtime::run_piece(PieceId piece) {
  PW_TRY(check_due(piece));
  ++live_->next;
  PW_TRY(tell(piece, false));
  const auto start = std::chrono::steady_clock::now();
  auto done = run_due_piece(piece);
  if (done)
    live_->report.piece_seconds[piece.index] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return done ? tell(piece, true) : done;
}

Status Runtime::check_due(PieceId piece) const {
  const bool due =
      live_ && live_->next < plan_.steps.size() && plan_.steps[live_->next].piece == piece;
  if (due) return {};
  return fail(error_in(stitched_.pieces[piece].name, "PW1254",
                       !live_
                           ? "no step has begun"
                           : fmt::format("is not the next piece: next is {}",
                                         live_->next < plan_.steps.size()
                                             ? stitched_.pieces[plan_.steps[live_->next].piece].name
                                             : "none, the step has ended"),
                       "run pieces in the plan's order, because they share one arena"));
}

Status Runtime::run_due_piece(PieceId piece) {
  if (between_[piece.index] || class_of(piece).attention) return run_between(piece);
  if (live_->report.mode != StepMode::captured || !captured(piece)) return launch_all(piece);
  const auto graph = graphs_[piece.index].find(captured_size(live_->report));
  if (graph == graphs_[piece.index].end()) return launch_all(piece);
  const auto replayed = replay(graph->second, address_hash(piece), stitched_.pieces[piece].name);
  if (!replayed) return tl::unexpected(replayed.error());
  return *replayed ? Status() : launch_all(piece);
}

Result<bool> Runtime::replay(Captured& graph, std::uint64_t addresses, const std::string& name) {
  if (graph.addresses != addresses) {
    ++counters_.stale;
    note(name + " is not replayed: its memory has moved since the capture");
    return false;
  }
  ++counters_.replays;
  live_->report.launches.add(graph.launches);
  PW_TRY(graph.executable->replay());
  return true;
}

Result<std::vector<Tensor>> Runtime::end_step() {
  if (!live_ || live_->next != plan_.steps.size())
    return fail(error_in("step", "PW1254", "the step has not run all its pieces"));
  std::vector<Tensor> outputs;
  for (ValueId v : source_.outputs()) {
    auto valid = PW_TRY(extents_of(source_, v, symbols_at(plan_, live_->step.tokens())));
    auto device = PW_TRY(tensor(v, symbols_at(plan_, live_->report.padded)));
    const Tensor whole(device.dtype, device.extents);
    PW_TRY(driver_.read(whole.data(), device.address, device.bytes()));
    outputs.push_back(cut(whole.view(), valid));
  }
  PW_TRY(write_back(outputs));
  live_.reset();
  return outputs;
}

/// Weights and buffers stay on the device, so the next step reads what a step wrote.
Status Runtime::write_back(const std::vector<Tensor>& outputs) {
  for (std::size_t i = 0; i < source_.written_inputs().size(); ++i) {
    const ValueId input = source_.written_inputs()[i];
    if (!stays(input)) continue;
    const TensorView view = outputs[source_.returned_count() + i].view();
    const auto bytes = static_cast<std::int64_t>(view.bytes());
    if (auto done = driver_.write(address_[input.index], view.data, bytes); !done) return done;
  }
  return {};
}

/// Replays a segment; if an address has changed, its pieces run one by one.
Status Runtime::run_segment(Segment& segment) {
  const bool all = segment.first == 0 && segment.end == plan_.steps.size();
  const bool done = PW_TRY(
      replay(segment.graph, hash_of(segment), all ? "the whole step" : "a part of the step"));
  live_->report.whole = live_->report.whole && done && all;
  if (done) live_->next = segment.end;
  while (live_->next < segment.end) PW_TRY(run_piece(plan_.steps[live_->next].piece));
  return {};
}

/// Runs the step's graphs if there are any, and the pieces between them one by one.
Status Runtime::run_pieces() {
  std::vector<Segment>* segments =
      live_->report.whole ? &steps_.at(captured_size(live_->report)) : nullptr;
  std::size_t at = 0;
  while (live_->next < plan_.steps.size()) {
    if (segments != nullptr && at < segments->size() && (*segments)[at].first == live_->next)
      PW_TRY(run_segment((*segments)[at++]));
    else
      PW_TRY(run_piece(plan_.steps[live_->next].piece));
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

}  // namespace pw::cuda
