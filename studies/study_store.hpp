// The SQLite file of a study: its request, one row for each unit, and the intermediate graphs. All
// keys and values are derived from content, so interruptions and sharding do not change the rows.
// docs/formats.md describes the tables.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// One graph under one setting.
struct StudyBlock {
  std::string key;                  ///< content hash: 16 hexadecimal digits
  std::string graph, setting;       ///< display names
  std::string rules, space;         ///< digests
  std::vector<std::string> passes;  ///< in the written order
  std::vector<std::string> objectives;
  std::uint64_t orders = 0;  ///< size of the space
  std::uint64_t units = 0;   ///< number of these in the study
  std::string start;         ///< state from which all orders start
  std::string written;       ///< state in which the written order ends
};
struct StudyUnit {
  std::uint64_t number = 0;  ///< rank of the order among all permutations
  std::vector<std::string> order;
  std::string end;  ///< state
};
struct StudyState {
  std::string state;                ///< structural hash: 16 hexadecimal digits
  std::vector<std::int64_t> costs;  ///< nodes, ops, bytes
};
struct StudyStep {
  std::string state, pass, next;
  std::size_t rewrites = 0;
};
/// Planned and measured costs of an end graph; absent if not requested.
struct StudyEnd {
  std::string state;
  std::vector<std::optional<double>>
      measured;  ///< launches, peak_bytes, …: the objectives from there on
};
struct StudyTheft {
  std::string thief_pass, thief, victim_pass, victim;
  std::size_t lost = 0;
  std::string node;
  std::vector<std::string> losing, keeping;
  friend auto operator<=>(const StudyTheft&, const StudyTheft&) = default;
};
/// Rows of one transaction.
struct StudyRows {
  std::vector<StudyUnit> units;
  std::vector<StudyState> states;
  std::vector<StudyStep> steps;
  std::vector<StudyEnd> ends;
};

/// A block with its results.
struct StudiedBlock {
  StudyBlock block;
  std::uint64_t done = 0;  ///< number of units
  std::vector<StudyState> states;
  std::vector<StudyStep> steps;
  std::vector<StudyEnd> ends;
  std::vector<StudyTheft> thefts;
  /// An end state: the number of orders that reach it, and the first of them.
  struct End {
    std::string state;
    std::uint64_t orders = 0;
    std::vector<std::string> first;
  };
  std::vector<End> ended;
};
/// An order, with results over the blocks that have it.
struct StudiedOrder {
  std::vector<std::string> order;
  std::size_t blocks = 0;
  double ratio = 1;  ///< mean over blocks of the first objective relative to the written order
};

/// Returns why studies are unavailable, or an empty text.
[[nodiscard]] std::string study_problem();

class StudyStore {
 public:
  /// Opens or creates the file; `write` = false requires an existing file and leaves it unchanged.
  /// Fails with PW1451 without SQLite, PW1460 if the file is not a usable study.
  static Result<StudyStore> open(const std::string& path, bool write);
  StudyStore(StudyStore&&) noexcept;
  StudyStore& operator=(StudyStore&&) noexcept;
  ~StudyStore();

  Status add_block(const StudyBlock& block);
  /// Returns the numbers of the stored units.
  Result<std::set<std::uint64_t>> done(const std::string& block);
  /// Returns the ends whose costs are stored.
  Result<std::set<std::string>> ends(const std::string& block);
  /// Stores rows in one transaction, which also survives a killed process.
  Status add(const std::string& block, const StudyRows& rows);
  Result<bool> has_thefts(const std::string& block);
  Status add_thefts(const std::string& block, const std::vector<StudyTheft>& thefts);
  /// Adds all rows of another study, deduplicated. Fails with PW1461 if a unit has two results.
  Status merge(const std::string& path);
  /// Writes a new file atomically; its bytes depend on the rows only.
  Status write_to(const std::string& path);

  Result<std::vector<StudiedBlock>> read();
  /// Returns at most `most` orders over the blocks of one space, best first; `objective` is a
  /// column name.
  Result<std::vector<StudiedOrder>> best_orders(const std::string& objective, std::size_t most);
  /// Passes each unit as a row of texts (graph, setting, order, end, objectives), after a header
  /// row. Ordered by graph, setting, and number.
  Status each_row(const std::function<void(const std::vector<std::string>&)>& row);

 private:
  struct Database;
  explicit StudyStore(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace pw
