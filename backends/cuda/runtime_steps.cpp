// Exports Runtime's steps.
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "backends/array.hpp"
#include "backends/cuda/runtime_live.hpp"
#include "backends/program.hpp"

namespace pw::cuda {
namespace {

constexpr int kPoison = 0xff;  // NaN in every floating type

/// The leading part of a buffer: extents of the valid rows, strides of the padded ones.
Array leading_part(const TensorView& buffer, const Extents& extents) {
  Array part = array_of(buffer);
  part.extents = extents;
  return part;
}

}  // namespace

Result<StepReport> Runtime::dispatch(const Step& step, const RunOptions& options) const {
  const std::int64_t tokens = step.tokens();
  if (!plan_.tokens.empty() && (tokens < 1 || tokens > plan_.max_tokens))
    return fail(error_in(
        "step", "PW1207",
        fmt::format("has {} tokens, and the plan is made for 1..{}", tokens, plan_.max_tokens)));
  StepReport report{tokens, tokens, "eager", "", 0};
  const std::int64_t size = plan_.capture.pad(tokens);
  if (!captured_) {
    report.reason = "nothing was captured";
  } else if (plan_.mode == "none") {
    report.reason = "the capture mode is none";
  } else if (plan_.tokens.empty()) {
    report = {0, 0, "captured", "the graph is static", 0};
  } else if (!options.pad) {
    report.reason = "padding is off";
  } else if (size < tokens) {
    report.reason = plan_.capture.sizes.empty() ? "no size is captured"
                                                : fmt::format("above the largest captured size, {}",
                                                              plan_.capture.sizes.back());
  } else {
    report = {tokens, size, "captured",
              size == tokens ? "a captured size" : "the next captured size", 0};
  }
  return report;
}

/// One copy to the device; rows of padding hold zeros, or what no kernel may let through.
Result<std::monostate> Runtime::bind_input(ValueId input, const Tensor& tensor) {
  auto extents = extents_of(source_, input, symbols_at(live_->report.padded));
  if (!extents) return forward(extents);
  Tensor whole = tensor;
  if (*extents != tensor.extents()) {
    whole = Tensor(tensor.dtype(), *extents);
    if (live_->options.poison && is_float(tensor.dtype()))
      std::memset(whole.data(), kPoison, whole.view().bytes());
    copy(array_of(tensor.view()), leading_part(whole.view(), tensor.extents()));
  }
  return driver_.write(address_[input.index], whole.data(),
                       static_cast<std::int64_t>(whole.view().bytes()));
}

Result<StepReport> Runtime::begin_step(const Step& step, Weights& weights,
                                       const RunOptions& options) {
  auto report = dispatch(step, options);
  if (!report) return report;
  stepped_ = true;
  live_ = std::make_unique<Live>(Live{step, *report, options, 0});
  if (options.poison) {
    if (auto done = driver_.fill(arena_, kPoison, memory_.arena_bytes); !done) return forward(done);
  }
  const Symbols valid = symbols_at(step.tokens());
  for (ValueId v : source_.inputs()) {
    if (source_.input_kind(v) != InputKind::input) continue;
    auto tensor = weights.tensor(source_.value_name(v), valid, step);
    if (!tensor) return forward(tensor);
    if (auto done = bind_input(v, *tensor); !done) return forward(done);
  }
  return report;
}

Result<std::monostate> Runtime::run_between(PieceId piece) {
  const Symbols symbols = symbols_at(live_->report.padded);
  const Piece& p = stitched_.pieces[piece];
  std::vector<DeviceTensor> inputs, outputs;
  for (auto [values, tensors] : {std::pair(&p.inputs, &inputs), std::pair(&p.outputs, &outputs)}) {
    for (ValueId v : *values) {
      auto t = tensor(v, symbols);
      if (!t) return forward(t);
      tensors->push_back(std::move(*t));
    }
  }
  ++counters_.ops_between;
  return driver_.run(*between_[piece.index], inputs, outputs,
                     {symbols, &live_->step, live_->step.tokens()});
}

/// Launch by launch, in the order they stand in.
Result<std::monostate> Runtime::launch_all(PieceId piece) {
  const auto graph = record(piece, live_->report.padded);
  if (!graph) return tl::unexpected(graph.error());
  for (const LaunchNode& node : graph->nodes) {
    ++counters_.launches;
    if (auto done = driver_.launch(node); !done) return done;
  }
  return std::monostate{};
}

Result<std::monostate> Runtime::run_piece(PieceId piece) {
  const bool due =
      live_ && live_->next < plan_.steps.size() && plan_.steps[live_->next].piece == piece;
  if (!due)
    return fail(
        error_in(stitched_.pieces[piece].name, "PW1254",
                 !live_ ? "no step has begun"
                        : fmt::format("is not the next piece: that is {}",
                                      live_->next < plan_.steps.size()
                                          ? stitched_.pieces[plan_.steps[live_->next].piece].name
                                          : "none, the step has ended"),
                 "pieces share one arena, and run in the plan's order"));
  ++live_->next;
  if (between_[piece.index]) return run_between(piece);
  if (live_->report.mode != "captured" || !captured(piece)) return launch_all(piece);
  const auto graph = graphs_[piece.index].find(live_->report.padded);
  if (graph == graphs_[piece.index].end()) return launch_all(piece);
  if (graph->second.addresses != address_hash(piece)) {
    ++counters_.stale;
    note(stitched_.pieces[piece].name +
         " is not replayed: memory it was captured with has moved since");
    return launch_all(piece);
  }
  ++counters_.replays;
  return graph->second.executable->replay();
}

Result<std::vector<Tensor>> Runtime::end_step() {
  if (!live_ || live_->next != plan_.steps.size())
    return fail(error_in("step", "PW1254", "has not run all its pieces"));
  std::vector<Tensor> outputs;
  for (ValueId v : source_.outputs()) {
    auto valid = extents_of(source_, v, symbols_at(live_->step.tokens()));
    if (!valid) return forward(valid);
    auto device = tensor(v, symbols_at(live_->report.padded));
    if (!device) return forward(device);
    const Tensor whole(device->dtype, device->extents);
    if (auto done = driver_.read(whole.data(), device->address, device->bytes()); !done)
      return forward(done);
    outputs.emplace_back(device->dtype, *valid);
    copy(leading_part(whole.view(), *valid), array_of(outputs.back().view()));
  }
  live_.reset();
  return outputs;
}

Result<StepResult> Runtime::run(const Step& step, Weights& weights, const RunOptions& options) {
  auto report = begin_step(step, weights, options);
  if (!report) return forward(report);
  const auto start = std::chrono::steady_clock::now();
  for (const Plan::Step& planned : plan_.steps)
    if (auto done = run_piece(planned.piece); !done) return forward(done);
  report->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto outputs = end_step();
  if (!outputs) return forward(outputs);
  return StepResult{std::move(*outputs), std::move(*report)};
}

}  // namespace pw::cuda
