// The table of schedules that tuning found, as a file (piecewise.schedules/1) and looked up. One is
// part of the binary, so that a machine without a device compiles what was found elsewhere.
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

/// How a matmul runs: on tensor cores with a tile of its own, or by the library where there is one.
struct TunedProduct {
  ProductTile tile;
  bool library = true;  ///< which is asked first; nothing was measured that says otherwise
  friend bool operator==(const TunedProduct&, const TunedProduct&) = default;
};

struct TunedSchedule {
  std::string program;                      ///< see program_key, and TensorProduct::key of a matmul
  std::string op;                           ///< for people
  std::string arch;                         ///< "sm_90"
  std::int64_t rows = 0;                    ///< of the kernel's domain, that it was tuned for
  Schedule schedule;                        ///< of a row program
  double seconds = 0, default_seconds = 0;  ///< with it, and with the schedule a kernel has untuned
  std::string by;                           ///< "model", or the device it was measured on
  std::optional<TunedProduct> product = std::nullopt;  ///< of a matmul, in place of the schedule
};

class ScheduleTable {
 public:
  /// Errors PW1240–PW1242 name the file, the entry and the field.
  static Result<ScheduleTable> parse(std::string_view text, const std::string& file);
  static Result<ScheduleTable> read(const std::string& file);
  /// As options name one: "" is the one in the binary, "none" is null, else a file is read.
  static Result<std::shared_ptr<const ScheduleTable>> named(const std::string& name);
  /// The one in the binary.
  static const ScheduleTable& builtin();

  /// In place of the entry for the same program, architecture and rows.
  void put(TunedSchedule entry);
  /// The entry for the fewest rows that are at least so many, else the one for the most; null where
  /// the program was not tuned for the architecture.
  [[nodiscard]] const TunedSchedule* find(std::string_view program, std::string_view arch,
                                          std::int64_t rows) const;
  [[nodiscard]] const std::vector<TunedSchedule>& entries() const { return entries_; }
  [[nodiscard]] std::string to_json() const;

 private:
  std::vector<TunedSchedule> entries_;  // by program, architecture, rows
};

/// Which tuned schedule a kernel gets: the same for all that make kernels of a plan.
struct ScheduleChoice {
  const ScheduleTable* table = nullptr;  ///< null: each kernel has the usual one
  std::string arch;
  std::string tokens_symbol;
  std::int64_t tokens = 1;  ///< that it is taken for
  [[nodiscard]] Schedule of(const rows::RowProgram& program) const;
};

/// 16 hexadecimal digits: equal programs have equal keys, whatever their ops are called.
[[nodiscard]] std::string program_key(const rows::RowProgram& program);

}  // namespace pw::cuda
