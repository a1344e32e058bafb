// The SQLite file of a study: what was asked, a row a unit, and the graphs in between. Content
// decides every key and every value, so that the same study makes the same rows, however often it
// was interrupted and over how many files it was spread. docs/formats.md describes the tables.
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
  std::string key;                  ///< of its content: 16 hexadecimal digits
  std::string graph, setting;       ///< as they are called
  std::string rules, space;         ///< digests
  std::vector<std::string> passes;  ///< in the written order
  std::vector<std::string> objectives;
  std::uint64_t orders = 0;  ///< that the space has
  std::uint64_t units = 0;   ///< of these, in the study
  std::string start;         ///< a state: what all orders begin with
  std::string written;       ///< a state: what the written order ends with
};
struct StudyUnit {
  std::uint64_t number = 0;  ///< of the order, in the order of lists of passes
  std::vector<std::string> order;
  std::string end;  ///< a state
};
struct StudyState {
  std::string state;                ///< the structural hash: 16 hexadecimal digits
  std::vector<std::int64_t> costs;  ///< nodes, ops, bytes
};
struct StudyStep {
  std::string state, pass, next;
  std::size_t rewrites = 0;
};
/// What planning and running say of a graph that some order ends with; absent where it is not asked
/// for.
struct StudyEnd {
  std::string state;
  std::vector<std::optional<double>>
      measured;  ///< launches, peak_bytes, …: Objective from there on
};
struct StudyTheft {
  std::string thief_pass, thief, victim_pass, victim;
  std::size_t lost = 0;
  std::string node;
  std::vector<std::string> losing, keeping;
  friend auto operator<=>(const StudyTheft&, const StudyTheft&) = default;
};
/// What is written at once.
struct StudyRows {
  std::vector<StudyUnit> units;
  std::vector<StudyState> states;
  std::vector<StudyStep> steps;
  std::vector<StudyEnd> ends;
};

/// A block and all that is known of it.
struct StudiedBlock {
  StudyBlock block;
  std::uint64_t done = 0;  ///< units
  std::vector<StudyState> states;
  std::vector<StudyStep> steps;
  std::vector<StudyEnd> ends;
  std::vector<StudyTheft> thefts;
  /// By state that orders end with: how many do, and the first of them.
  struct End {
    std::string state;
    std::uint64_t orders = 0;
    std::vector<std::string> first;
  };
  std::vector<End> ended;
};
/// An order, over the blocks that have it.
struct StudiedOrder {
  std::vector<std::string> order;
  std::size_t blocks = 0;
  double ratio = 1;  ///< of the first objective to that of the written order, the mean of blocks
};

/// Why there are no studies, or empty.
[[nodiscard]] std::string study_problem();

class StudyStore {
 public:
  /// Makes the file where there is none. `write` false: it must be there, and stays as it is.
  /// PW1451 without SQLite, PW1460 for a file that is no study, or that cannot be used.
  static Result<StudyStore> open(const std::string& path, bool write);
  StudyStore(StudyStore&&) noexcept;
  StudyStore& operator=(StudyStore&&) noexcept;
  ~StudyStore();

  Status add_block(const StudyBlock& block);
  /// Numbers of the units that are there.
  Result<std::set<std::uint64_t>> done(const std::string& block);
  /// Those whose ends have been judged.
  Result<std::set<std::string>> ends(const std::string& block);
  /// All or nothing, also where the process is killed meanwhile.
  Status add(const std::string& block, const StudyRows& rows);
  Result<bool> has_thefts(const std::string& block);
  Status add_thefts(const std::string& block, const std::vector<StudyTheft>& thefts);
  /// All rows of another study; equal ones are one. PW1461 where one unit has two results.
  Status merge(const std::string& path);
  /// All of it as a file that is made anew, at once: its bytes depend on the rows alone.
  Status write_to(const std::string& path);

  Result<std::vector<StudiedBlock>> read();
  /// The best first, at most so many; `objective` is a column's name. Of the blocks of one space.
  Result<std::vector<StudiedOrder>> best_orders(const std::string& objective, std::size_t most);
  /// Each unit as a row of texts: graph, setting, order, end and the objectives, with their names
  /// first. In the order of graphs, settings and numbers.
  Status each_row(const std::function<void(const std::vector<std::string>&)>& row);

 private:
  struct Database;
  explicit StudyStore(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace pw
