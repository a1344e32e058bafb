// Exports Runner: one step through the pieces of a plan.
#include "backends/runner.hpp"

#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "backends/array.hpp"
#include "backends/program.hpp"
#include "base/assert.hpp"

namespace pw {

struct Runner::Live {
  const RunOptions& options;
  const Step& step;
  std::byte* arena;
  Symbols valid, padded;
  std::vector<TensorView> values;  ///< by source value
  std::vector<Tensor> owned;       ///< inputs, and values outside the arena
};

namespace {

constexpr int kPoison = 0xff;  // NaN in every floating type; an index that no table has

/// The leading part of a buffer: extents of the valid rows, strides of the padded ones.
Array leading_part(const TensorView& buffer, const Extents& extents) {
  Array part = array_of(buffer);
  part.extents = extents;
  return part;
}

void fill_padding(const TensorView& buffer, bool poison) {
  std::memset(buffer.data, poison && is_float(buffer.dtype) ? kPoison : 0, buffer.bytes());
}

}  // namespace

Result<Runner> Runner::make(const StitchedGraph& stitched, const Graph& source, const Plan& plan,
                            Backend& backend) {
  Runner runner(stitched, source, plan);
  for (std::size_t i = 0; i < stitched.pieces.size(); ++i) {
    auto executable = backend.compile(stitched.pieces[PieceId(i)].graph);
    if (!executable) return forward(executable);
    runner.executables_.push_back(std::move(*executable));
  }
  return runner;
}

std::byte* Runner::arena(std::size_t rank) {
  // Not initialised: pages that no step reaches are never touched.
  while (arenas_.size() <= rank)
    arenas_.push_back(make_array(DType::u8, {plan_->memory.arena_bytes}).owner);
  return static_cast<std::byte*>(arenas_[rank].get());
}

StepReport Runner::dispatch(const Step& step, const RunOptions& options) const {
  StepReport report{step.tokens(), step.tokens(), "eager", "padding is off", 0};
  if (!options.pad && !plan_->tokens.empty()) return report;
  std::vector<std::int64_t> new_tokens;
  for (const Sequence& sequence : step.sequences) new_tokens.push_back(sequence.new_tokens);
  const StepShape shape = shape_of(new_tokens);
  const Dispatch found = dispatcher_.dispatch(shape);
  report.padded = report.tokens + found.padding;
  if (found.mode != DispatchMode::none) report.mode = "captured";
  report.reason = dispatcher_.explain(shape, found);
  return report;
}

Symbols Runner::symbols_at(std::int64_t tokens, const RunOptions& options) const {
  Symbols symbols = options.symbols;
  for (const auto& [symbol, bound] : plan_->bound) symbols.emplace(symbol, bound);
  if (!plan_->tokens.empty()) symbols[plan_->tokens] = tokens;
  return symbols;
}

Result<std::monostate> Runner::bind_inputs(Live& live, Weights& weights) const {
  for (ValueId input : source_->inputs()) {
    auto tensor = weights.tensor(source_->value_name(input), live.valid, live.step);
    if (!tensor) return forward(tensor);
    auto extents = extents_of(*source_, input, live.padded);
    if (!extents) return forward(extents);
    live.owned.push_back(*tensor);
    if (*extents != tensor->extents()) {
      const Tensor buffer(tensor->dtype(), *extents);
      fill_padding(buffer.view(), live.options.poison);
      copy(array_of(tensor->view()), leading_part(buffer.view(), tensor->extents()));
      live.owned.push_back(buffer);
    }
    live.values[input.index] = live.owned.back().view();
  }
  return std::monostate{};
}

/// Places for all values that cross pieces: the plan's slots, and memory of their own for those
/// without one (literals, and views of inputs).
Result<std::monostate> Runner::bind_values(Live& live) const {
  std::vector<const Slot*> slots(source_->value_bound(), nullptr);
  for (const Slot& slot : plan_->memory.slots) slots[slot.value.index] = &slot;
  for (const Piece& piece : stitched_->pieces) {
    for (ValueId value : piece.outputs) {
      auto extents = extents_of(*source_, value, live.padded);
      if (!extents) return forward(extents);
      const DType dtype = source_->context().types[source_->type(value)].dtype;
      const Slot* slot = slots[value.index];
      if (slot == nullptr) {
        live.owned.emplace_back(dtype, *extents);
        live.values[value.index] = live.owned.back().view();
        continue;
      }
      const TensorView view{dtype, *extents, live.arena + slot->offset};
      if (static_cast<std::int64_t>(view.bytes()) > slot->bytes) {
        return fail(
            error_in(fmt::format("value {}", slot->name), "PW1206",
                     fmt::format("needs {} bytes, and its slot has {}", view.bytes(), slot->bytes),
                     "make the plan for more tokens"));
      }
      if (live.options.poison) std::memset(view.data, kPoison, view.bytes());
      live.values[value.index] = view;
    }
  }
  return std::monostate{};
}

Result<std::monostate> Runner::run_pieces(std::span<Live> ranks) {
  const Live& first = ranks.front();
  const RunContext context{first.padded, &first.step, first.step.tokens()};
  for (const Plan::Step& planned : plan_->steps) {
    const Piece& piece = stitched_->pieces[planned.piece];
    std::vector<RankTensors> tensors;
    for (const Live& live : ranks) {
      RankTensors& own = tensors.emplace_back();
      for (ValueId value : piece.inputs) own.inputs.push_back(live.values[value.index]);
      for (ValueId value : piece.outputs) own.outputs.push_back(live.values[value.index]);
    }
    if (auto done = executables_[planned.piece.index]->run_ranks(tensors, context); !done)
      return done;
  }
  return std::monostate{};
}

Result<std::vector<Tensor>> Runner::cut_outputs(const Live& live) const {
  std::vector<Tensor> outputs;
  for (ValueId value : source_->outputs()) {
    auto extents = extents_of(*source_, value, live.valid);
    if (!extents) return forward(extents);
    const TensorView& view = live.values[value.index];
    outputs.emplace_back(view.dtype, *extents);
    copy(leading_part(view, *extents), array_of(outputs.back().view()));
  }
  return outputs;
}

Result<RankStepResult> Runner::run(const Step& step, std::span<Weights> ranks,
                                   const RunOptions& options) {
  const std::int64_t tokens = step.tokens();
  if (!plan_->tokens.empty() && (tokens < 1 || tokens > plan_->max_tokens)) {
    return fail(error_in(
        "step", "PW1207",
        fmt::format("has {} tokens, and the plan is made for 1..{}", tokens, plan_->max_tokens)));
  }
  RankStepResult result{{}, dispatch(step, options)};
  std::vector<Live> lives;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Live& live = lives.emplace_back(Live{options,
                                         step,
                                         arena(rank),
                                         symbols_at(tokens, options),
                                         symbols_at(result.report.padded, options),
                                         std::vector<TensorView>(source_->value_bound()),
                                         {}});
    if (auto done = bind_inputs(live, ranks[rank]); !done) return forward(done);
    if (auto done = bind_values(live); !done) return forward(done);
  }
  const auto start = std::chrono::steady_clock::now();
  if (auto done = run_pieces(lives); !done) return forward(done);
  result.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Live& live : lives) {
    auto outputs = cut_outputs(live);
    if (!outputs) return forward(outputs);
    result.outputs.push_back(std::move(*outputs));
  }
  return result;
}

Result<StepResult> Runner::run(const Step& step, Weights& weights, const RunOptions& options) {
  auto result = run(step, std::span(&weights, 1), options);
  if (!result) return forward(result);
  return StepResult{std::move(result->outputs.front()), std::move(result->report)};
}

}  // namespace pw
