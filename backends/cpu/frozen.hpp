// Caches what is computed from weights alone. Entries stay valid until a caller reports changed
// weights.
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

/// The cache layout of an executable: one slot for each node that caches a value, with the inputs
/// that the value depends on. It is complete once the executable is.
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

/// The values cached for one state of the weights. The first successful run fills it. After that
/// it never changes, so any number of runs may read it.
class FrozenWeights {
 public:
  explicit FrozenWeights(const FrozenSlots& slots);
  /// Copies the values that depend on none of the changed inputs.
  FrozenWeights(const FrozenWeights& before, const FrozenSlots& slots,
                const std::vector<std::size_t>& changed);

 private:
  friend class FrozenRun;
  using Slots = std::vector<std::shared_ptr<const void>>;
  std::unique_ptr<Slots> slots_;
  std::atomic<bool> full_ = false;
  std::atomic<::pid_t> filler_ = 0;  ///< process whose run fills the cache, or 0
};

/// The access of one run to frozen weights. The first run fills them and later runs read them. Runs
/// that start in between use no cache, so no run waits for another, or for one that called it.
class FrozenRun {
 public:
  explicit FrozenRun(FrozenWeights& weights);
  /// Discards what a failed run cached.
  ~FrozenRun();
  FrozenRun(const FrozenRun&) = delete;
  FrozenRun& operator=(const FrozenRun&) = delete;

  /// Marks the run as successful.
  void done();
  [[nodiscard]] bool fills() const { return use_ == Use::fills; }
  /// Returns the value in a slot, or null if this run may not read it or it is empty.
  template <class T>
  [[nodiscard]] const T* find(std::size_t slot) const {
    return use_ == Use::nothing ? nullptr : static_cast<const T*>((*weights_.slots_)[slot].get());
  }
  /// Stores a value. Only the run that fills may call it.
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

/// Finds the parts of a graph that depend on weights alone.
class ConstantParts {
 public:
  explicit ConstantParts(const Graph& graph);
  [[nodiscard]] bool of(const Graph& graph) const { return &graph == graph_; }
  /// Returns the weights that a value is computed from, or nothing if it depends on any other
  /// input.
  [[nodiscard]] const std::optional<std::vector<std::size_t>>& inputs_of(ValueId value) const {
    return inputs_[value.index];
  }
  /// Returns a call that runs if nothing is cached, and otherwise returns the cached results.
  /// Results that only such calls and packed operands read are not cached: they are null then.
  [[nodiscard]] RunCall kept(NodeId node, RunCall run, FrozenSlots& slots) const;

 private:
  [[nodiscard]] bool is_constant(NodeId node) const;
  void find_inputs(NodeId node);
  void find_readers(NodeId node);

  const Graph* graph_;
  std::vector<std::optional<std::vector<std::size_t>>> inputs_;  ///< weights of each value
  std::vector<std::vector<std::size_t>> readers_;  ///< by value: the weights of all its readers
  std::vector<bool> inside_;                       ///< by value: true if nothing outside reads it
};

}  // namespace pw::cpu
