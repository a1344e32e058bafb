#include "exec/runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "base/assert.hpp"
#include "base/try.hpp"
#include "exec/dispatch.hpp"
#include "tensor/array.hpp"
#include "tensor/memory.hpp"

namespace pw {
namespace {

/// Fails if the arena is too large; names the largest value in it.
Status check_arena(const Plan& plan) {
  const std::int64_t bytes = plan.memory.arena_bytes;
  if (bytes <= memory_limit()) return {};
  const auto most =
      std::max_element(plan.memory.slots.begin(), plan.memory.slots.end(),
                       [](const Slot& a, const Slot& b) { return a.bytes < b.bytes; });
  const std::string largest = most == plan.memory.slots.end() ? "" : most->name;
  return fail(error_in(fmt::format("graph {} at value {}", plan.graph, largest), "PW1215",
                       fmt::format("the values between pieces need {} bytes, {} of them for this "
                                   "value, but the memory limit is {}",
                                   bytes, largest.empty() ? 0 : most->bytes, memory_limit()),
                       "plan for fewer tokens, or reduce its dims"));
}

}  // namespace

struct Runner::Live {
  const RunOptions& options;
  const Step& step;
  std::byte* arena;
  Symbols valid, padded;
  std::vector<TensorView> values;  ///< by source value
  std::vector<Tensor> owned;       ///< inputs, and values outside the arena
};

class Runner::Call final : public PieceCall {
 public:
  Call(const Graph& source, const Piece& piece, Live& live, std::int64_t rank)
      : PieceCall(source, piece, live.step, live.valid), live_(live), rank_(rank) {}
  [[nodiscard]] std::int64_t rank() const override { return rank_; }

 private:
  Result<Tensor> read_all(ValueId value) override {
    const TensorView& view = live_.values[value.index];
    return cut(view, view.extents);
  }
  Status write_all(ValueId value, const Tensor& whole) override {
    std::memcpy(live_.values[value.index].data, whole.data(), whole.view().bytes());
    return {};
  }
  [[nodiscard]] Result<Extents> padded_extents(ValueId value) const override {
    return live_.values[value.index].extents;
  }

  Live& live_;
  std::int64_t rank_;
};

Result<Runner> Runner::make(const StitchedGraph& stitched, const Graph& source, const Plan& plan,
                            Backend& backend) {
  Runner runner(stitched, source, plan);
  Diagnostics errors;
  std::set<std::string> reported;  // many pieces often have the same error
  for (const Piece& piece : stitched.pieces) {
    auto executable = backend.compile(piece.graph);
    if (executable) {
      runner.executables_.push_back(std::move(*executable));
      continue;
    }
    for (Diagnostic& d : executable.error())
      if (reported.insert(d.message).second) errors.push_back(std::move(d));
  }
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  auto groups = PW_TRY(stated_groups(source));
  runner.groups_ = std::move(groups);
  return runner;
}

std::byte* Runner::arena(std::size_t rank) {
  // Not initialised: pages that no step reaches are never touched.
  while (arenas_.size() <= rank)
    arenas_.push_back(make_array(DType::u8, {plan_->memory.arena_bytes}).owner);
  return static_cast<std::byte*>(arenas_[rank].get());
}

Status Runner::bind_inputs(Live& live, Weights& weights) const {
  for (ValueId input : source_->inputs()) {
    if (source_->unused(input) || has_no_tensor(*source_, input)) continue;
    auto tensor = weights.tensor(source_->value_name(input), live.valid, live.step);
    if (!tensor) return forward(tensor);
    auto extents = PW_TRY(extents_of(*source_, input, live.padded));
    live.owned.push_back(padded(*tensor, extents, live.options.poison));
    live.values[input.index] = live.owned.back().view();
  }
  return {};
}

/// Allocates all values that cross pieces: in the plan's slots, or separately for those without one
/// (literals and views of inputs).
Status Runner::bind_values(Live& live) const {
  std::vector<const Slot*> slots(source_->value_bound(), nullptr);
  for (const Slot& slot : plan_->memory.slots) slots[slot.value.index] = &slot;
  for (const Piece& piece : stitched_->pieces) {
    for (ValueId value : piece.outputs) {
      auto extents = PW_TRY(extents_of(*source_, value, live.padded));
      const DType dtype = source_->context().types[source_->type(value)].dtype;
      const Slot* slot = slots[value.index];
      if (slot == nullptr) {
        live.owned.emplace_back(dtype, extents);
        live.values[value.index] = live.owned.back().view();
        continue;
      }
      const TensorView view{dtype, extents, live.arena + slot->offset};
      if (static_cast<std::int64_t>(view.bytes()) > slot->bytes) {
        return fail(
            error_in(fmt::format("value {}", slot->name), "PW1206",
                     fmt::format("needs {} bytes, but its slot has {}", view.bytes(), slot->bytes),
                     "create the plan for more tokens"));
      }
      if (live.options.poison) std::memset(view.data, kPoison, view.bytes());
      live.values[value.index] = view;
    }
  }
  return {};
}

Status Runner::run_pieces(std::span<Live> ranks, StepReport& report) {
  const Live& first = ranks.front();
  RankGroups groups;
  std::optional<Step> grouped;  // a copy, only if the source states groups
  if (!groups_.empty()) {
    groups = groups_in(first.step, groups_);
    grouped = first.step;
    grouped->groups = &groups;
  }
  const RunContext context{first.padded, grouped ? &*grouped : &first.step, first.step.tokens()};
  report.piece_seconds.resize(stitched_->pieces.size());
  for (const Plan::Step& planned : plan_->steps) {
    const Piece& piece = stitched_->pieces[planned.piece];
    std::vector<RankTensors> tensors;
    for (const Live& live : ranks) {
      RankTensors& own = tensors.emplace_back();
      for (ValueId value : piece.inputs) own.inputs.push_back(live.values[value.index]);
      for (ValueId value : piece.outputs) own.outputs.push_back(live.values[value.index]);
    }
    PW_TRY(tell(piece, ranks, false));
    Executable& executable = *executables_[planned.piece.index];
    const auto start = std::chrono::steady_clock::now();
    if (auto done = executable.run_ranks(tensors, context); !done) return done;
    report.piece_seconds[planned.piece.index] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.launches.add(executable.launches());
    PW_TRY(tell(piece, ranks, true));
  }
  return {};
}

Status Runner::tell(const Piece& piece, std::span<Live> ranks, bool after) const {
  PieceHook* hook = ranks.front().options.hook;
  for (std::size_t rank = 0; hook != nullptr && rank < ranks.size(); ++rank) {
    Call call(*source_, piece, ranks[rank], static_cast<std::int64_t>(rank));
    PW_TRY(after ? hook->after(call) : hook->before(call));
  }
  return {};
}

Result<std::vector<Tensor>> Runner::cut_outputs(const Live& live) const {
  std::vector<Tensor> outputs;
  for (ValueId value : source_->outputs()) {
    auto extents = PW_TRY(extents_of(*source_, value, live.valid));
    outputs.push_back(cut(live.values[value.index], extents));
  }
  return outputs;
}

Result<RankStepResult> Runner::run(const Step& step, std::span<Weights> ranks,
                                   const RunOptions& options) {
  PW_TRY(check_arena(*plan_));
  auto report = PW_TRY(dispatched(*plan_, *source_, dispatcher_, step, options));
  RankStepResult result{{}, std::move(report)};
  std::vector<Live> lives;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Live& live = lives.emplace_back(Live{options,
                                         step,
                                         arena(rank),
                                         symbols_at(*plan_, step.tokens(), options.symbols),
                                         symbols_at(*plan_, result.report.padded, options.symbols),
                                         std::vector<TensorView>(source_->value_bound()),
                                         {}});
    PW_TRY(bind_inputs(live, ranks[rank]));
    PW_TRY(bind_values(live));
  }
  const auto start = std::chrono::steady_clock::now();
  PW_TRY(run_pieces(lives, result.report));
  result.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const Live& live : lives) {
    auto outputs = PW_TRY(cut_outputs(live));
    result.outputs.push_back(std::move(outputs));
  }
  return result;
}

Result<StepResult> Runner::run(const Step& step, Weights& weights, const RunOptions& options) {
  auto result = PW_TRY(run(step, std::span(&weights, 1), options));
  return StepResult{std::move(result.outputs.front()), std::move(result.report)};
}

}  // namespace pw
