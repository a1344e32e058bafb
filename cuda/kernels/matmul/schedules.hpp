// The table of tuned schedules: its file format (piecewise.schedules/1) and look-up. One table is
// built into the binary, so that a machine without a device uses results measured elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/matmul/tensor_model.hpp"

namespace pw::cuda {

/// The tuned form of a matmul: on tensor cores with its own tile, or in the library if there is
/// one.
struct TunedProduct {
  ProductTile tile;
  bool library = true;  ///< prefer the library, because no measurement favours the kernel
  friend bool operator==(const TunedProduct&, const TunedProduct&) = default;
};

struct TunedSchedule {
  std::string program;    ///< see program_key, and TensorProduct::key for a matmul
  std::string op;         ///< for people
  std::string arch;       ///< "sm_90"
  std::int64_t rows = 0;  ///< rows of the kernel's domain that it was tuned for
  Schedule schedule;      ///< for a row program
  double seconds = 0, default_seconds = 0;  ///< seconds with it, and with the default schedule
  std::string by;                           ///< "model", or the device of the measurement
  std::optional<TunedProduct> product = std::nullopt;  ///< for a matmul, in place of the schedule
};

class ScheduleTable {
 public:
  /// Parses a table. Errors PW1240–PW1242 name the file, the entry and the field.
  static Result<ScheduleTable> parse(std::string_view text, const std::string& file);
  static Result<ScheduleTable> read(const std::string& file);
  /// Returns the table for an option's value: "" is the built-in one, "none" is null, otherwise a
  /// file is read.
  static Result<std::shared_ptr<const ScheduleTable>> named(const std::string& name);
  /// Returns the built-in table.
  static const ScheduleTable& builtin();

  /// Replaces the entry for the same program, architecture and rows.
  void put(TunedSchedule entry);
  /// Returns the entry with the fewest rows that are at least `rows`, else the one with the most;
  /// null if the program was not tuned for the architecture.
  [[nodiscard]] const TunedSchedule* find(std::string_view program, std::string_view arch,
                                          std::int64_t rows) const;
  [[nodiscard]] const std::vector<TunedSchedule>& entries() const { return entries_; }
  [[nodiscard]] std::string to_json() const;

 private:
  std::vector<TunedSchedule> entries_;  // by program, architecture, rows
};

/// Selects a kernel's tuned schedule, equally for all that make kernels of a plan.
struct ScheduleChoice {
  const ScheduleTable* table = nullptr;  ///< null: default schedules
  std::string arch;
  std::string tokens_symbol;
  std::int64_t tokens = 1;  ///< token count for the choice
  [[nodiscard]] Schedule of(const rows::RowProgram& program) const;
};

/// Returns 16 hexadecimal digits: equal programs have equal keys, independent of op names.
[[nodiscard]] std::string program_key(const rows::RowProgram& program);

}  // namespace pw::cuda
