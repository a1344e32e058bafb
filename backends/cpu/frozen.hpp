// What is computed of weights alone, kept from run to run: as long as nobody says that a weight is
// another now.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "backends/program.hpp"

namespace pw::cpu {

/// What an executable keeps of weights: a slot for each node that keeps something, and the inputs
/// that it is computed of. Complete once the executable is.
class FrozenSlots {
 public:
  using Inputs = std::vector<std::size_t>;
  std::size_t add(Inputs inputs) {
    inputs_.push_back(std::move(inputs));
    return inputs_.size() - 1;
  }
  [[nodiscard]] const std::vector<Inputs>& inputs() const { return inputs_; }

 private:
  std::vector<Inputs> inputs_;  ///< by slot, ascending
};

/// What is kept of weights as they are at one time. It is filled by the first run that does well,
/// and never changed then, so that any number of runs may read it.
class FrozenWeights {
 public:
  explicit FrozenWeights(const FrozenSlots& slots);
  /// After a change of some inputs: what is computed of none of them is what it was.
  FrozenWeights(const FrozenWeights& before, const FrozenSlots& slots,
                const std::vector<std::size_t>& changed);

 private:
  friend class FrozenRun;
  using Slots = std::vector<std::shared_ptr<const void>>;
  std::unique_ptr<Slots> slots_;
  std::atomic<bool> full_ = false;
  std::atomic<::pid_t> filler_ = 0;  ///< the process with a run that fills it, or 0
};

/// What one run has of frozen weights: the first one fills them, those after it read, and those
/// while it is on its way do without; so nobody waits, least of all for a run that it is within.
class FrozenRun {
 public:
  explicit FrozenRun(FrozenWeights& weights);
  /// Throws away what a run that did not do well has kept.
  ~FrozenRun();
  FrozenRun(const FrozenRun&) = delete;
  FrozenRun& operator=(const FrozenRun&) = delete;

  /// The run has done well.
  void done();
  [[nodiscard]] bool fills() const { return use_ == Use::fills; }
  /// What a slot holds; null: nothing, for this run.
  template <class T>
  [[nodiscard]] const T* find(std::size_t slot) const {
    return use_ == Use::nothing ? nullptr : static_cast<const T*>((*weights_.slots_)[slot].get());
  }
  /// By a run that fills.
  template <class T>
  const T& keep(std::size_t slot, T value) {
    auto kept = std::make_shared<const T>(std::move(value));
    const T& out = *kept;
    (*weights_.slots_)[slot] = std::move(kept);
    return out;
  }

 private:
  enum class Use : std::uint8_t { nothing, reads, fills };
  [[nodiscard]] Use begin();
  FrozenWeights& weights_;
  Use use_;
};

/// The parts of a graph that are computed of weights alone.
class ConstantParts {
 public:
  explicit ConstantParts(const Graph& graph);
  [[nodiscard]] bool of(const Graph& graph) const { return &graph == graph_; }
  /// The weights that a value is computed of; none where something else is.
  [[nodiscard]] const std::optional<std::vector<std::size_t>>& inputs_of(ValueId value) const {
    return inputs_[value.index];
  }
  /// A call that runs where nothing is kept of it, and else gives what it gave. Results that only
  /// such calls and packed operands read are not kept: they are null then.
  [[nodiscard]] RunCall kept(NodeId node, RunCall run, FrozenSlots& slots) const;

 private:
  [[nodiscard]] bool is_constant(NodeId node) const;
  void find_inputs(NodeId node);
  void find_readers(NodeId node);

  const Graph* graph_;
  std::vector<std::optional<std::vector<std::size_t>>> inputs_;  ///< by value
  std::vector<std::vector<std::size_t>> readers_;  ///< by value: weights of all that reads it
  std::vector<bool> inside_;                       ///< by value: nothing else reads it
};

}  // namespace pw::cpu
