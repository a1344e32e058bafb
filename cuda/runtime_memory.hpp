// Owns the device memory of a runtime: one arena for values that cross launches, and separate
// memory for inputs, weights, literals, and values outside the arena.
//
// Invariant: after allocation no address of the arena, scratch or a literal changes; only inputs
// and weights may move, and address_hash() changes with them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cuda/compiled_pieces.hpp"
#include "cuda/runtime_task.hpp"

namespace pw::cuda {

class RuntimeMemory {
 public:
  RuntimeMemory(const RuntimeTask& task, const CompiledPieces& pieces, RuntimeLog& log)
      : task_(task), pieces_(pieces), log_(log) {}
  ~RuntimeMemory();
  RuntimeMemory(const RuntimeMemory&) = delete;
  RuntimeMemory& operator=(const RuntimeMemory&) = delete;

  /// Lays out the arena for the largest step, or takes the layout of the plan. Fails with PW1256 if
  /// that does not suit the launches.
  Status lay_out();
  /// Allocates everything except literals and weights, in an order that depends on the task alone.
  Status allocate_tensors();
  Status allocate_literals();
  /// Allocates memory that is released with this object. Fails with a table of all requests.
  Result<Address> allocate(std::int64_t bytes, const std::string& what);
  /// Copies weights and buffers to new memory.
  Status load(Weights& weights);

  /// Allocates memory for weights and buffers, without contents.
  Status reserve_weights();
  /// Returns the weights in device memory all of which a step reads.
  [[nodiscard]] std::vector<DeviceTensor> weights() const;

  /// Fills the arena with the poison value.
  Status poison();
  /// Writes the number of valid tokens, if a launch reads it.
  Status write_valid(std::int64_t tokens);
  Status write(ValueId value, const TensorView& tensor);

  [[nodiscard]] MemoryPlan& layout() { return layout_; }
  [[nodiscard]] const MemoryPlan& layout() const { return layout_; }
  /// Returns the memory that library calls share; address 0 if there is none.
  [[nodiscard]] const DeviceTensor& workspace() const { return workspace_; }
  /// Hashes the addresses of everything outside the piece that it reads and writes.
  [[nodiscard]] std::uint64_t address_hash(PieceId piece) const;
  Result<DeviceTensor> tensor(ValueId value, const Symbols& symbols) const;
  Result<std::vector<DeviceTensor>> tensors(const std::vector<ValueId>& values,
                                            const Symbols& symbols) const;
  [[nodiscard]] Address address(PieceId piece, const Place& place) const;

 private:
  [[nodiscard]] Result<std::vector<PieceSchedule>> scratch_schedules() const;
  Status take_layout(const std::vector<PieceSchedule>& needed);
  [[nodiscard]] Status check_scratch(PieceId piece, const std::vector<Scratch>& needed) const;
  [[nodiscard]] Status check_workspace() const;
  Status allocate_workspace();
  Status allocate_zeros();
  /// Allocates a value's own memory, sized for the largest step.
  Status allocate_value(ValueId value, const char* what);
  [[nodiscard]] std::string table() const;

  const RuntimeTask& task_;
  const CompiledPieces& pieces_;
  RuntimeLog& log_;
  MemoryPlan layout_;
  std::vector<Address> blocks_;                                  ///< all allocations
  std::vector<std::pair<std::string, std::int64_t>> requested_;  ///< purpose and bytes
  Address arena_ = 0, valid_ = 0;  ///< valid_: the number of valid tokens; 0: no launch reads it
  DeviceTensor workspace_;
  std::vector<std::vector<Address>> zeros_;     ///< by piece: see PieceProgram
  std::vector<std::vector<Address>> literals_;  ///< by class
  std::vector<Address> address_;                ///< by source value; 0: none
};

}  // namespace pw::cuda
