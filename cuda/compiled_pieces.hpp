// Compiles the pieces of a step for a device: a device program for each class that can be captured,
// attention kernels, or an executable that runs between graphs. Each class is compiled once.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda/kernels/attention/attention.hpp"
#include "cuda/piece_program.hpp"
#include "cuda/runtime_task.hpp"

namespace pw::cuda {

class CompiledPieces {
 public:
  struct Class {
    PieceProgram program;
    bool captured = false;
    std::optional<AttentionKernels> attention;  ///< kernels for uncaptured launches
  };

  CompiledPieces(const RuntimeTask& task, RuntimeLog& log);

  /// Compiles all classes and loads their kernels.
  Status compile();

  [[nodiscard]] const std::vector<Class>& classes() const { return classes_; }
  [[nodiscard]] const Class& class_of(PieceId piece) const {
    return classes_[task_.stitched.pieces[piece].piece_class.index];
  }
  /// Returns the kernels of all launches, each once.
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  /// Returns the names of those that wait for earlier kernels before they do anything else.
  [[nodiscard]] const std::set<std::string>& waiting() const { return waiting_; }
  /// Returns the executable of a piece that is neither captured nor attention; null for others.
  [[nodiscard]] Executable* between(PieceId piece) const { return between_[piece.index].get(); }
  [[nodiscard]] bool captured(PieceId piece) const;
  /// Returns the piece of the next step in the plan; invalid for the last one.
  [[nodiscard]] PieceId next(PieceId piece) const;
  /// Returns the bytes that library calls share; 0 if there are no calls.
  [[nodiscard]] std::int64_t workspace_bytes() const;
  /// Returns true if a kernel reads the number of valid tokens.
  [[nodiscard]] bool reads_valid() const;
  /// Returns the rows of attention in a step, and the most of any step.
  [[nodiscard]] std::int64_t attention_rows(std::int64_t tokens) const;
  [[nodiscard]] std::int64_t most_rows() const;

 private:
  Status compile(const PieceClass& c, Class& made);
  void keep(AttentionKernels attention, Class& made);
  Result<PieceProgram> program(const PieceClass& c);
  [[nodiscard]] std::optional<CachedOutputs> cached_outputs(const PieceClass& c) const;
  [[nodiscard]] std::optional<CachedOutputs> cached_outputs(PieceId piece) const;
  void keep(const Kernel& kernel);
  [[nodiscard]] std::int64_t weight_bytes(const PieceClass& c, const Place& place) const;
  [[nodiscard]] std::vector<Symbols> asked_sizes() const;
  [[nodiscard]] ScheduleChoice schedules() const;

  const RuntimeTask& task_;
  RuntimeLog& log_;
  std::unique_ptr<Backend> host_;
  std::vector<Class> classes_;
  std::vector<Kernel> kernels_;
  std::set<std::string> waiting_;
  /// Executables of the pieces that are not captured, by piece. Pieces of one class do not share
  /// them: an op may identify its state by its layer.
  std::vector<std::unique_ptr<Executable>> between_;
  DimId attention_rows_;  ///< rows of every piece with attention kernels
};

}  // namespace pw::cuda
