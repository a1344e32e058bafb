// A study explores many graphs in one space, into one SQLite file. A unit is one order of one graph
// under one setting, stored as one row. Interrupted studies resume. Shards are disjoint sets of
// units for other processes, which write to the same file or to files that are merged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/explore.hpp"
#include "studies/study_store.hpp"

namespace pw {

struct Shard {
  std::uint64_t number = 1, of = 1;
};
/// Parses `2/8`. Fails with PW1462.
Result<Shard> parse_shard(const std::string& text);

struct StudyGraph {
  std::string name;
  Graph graph;
};
struct StudyRequest {
  ExploreRequest space;
  std::string file;
  Shard shard;
};
struct StudyProgress {
  std::uint64_t units = 0;  ///< of this shard
  std::uint64_t done = 0;   ///< units done earlier
  std::size_t runs = 0;     ///< pass runs
};
/// Runs the missing units of the shard. Rows are committed in batches of a few hundred, the most
/// that a killed process loses.
Result<StudyProgress> run_study(const std::vector<StudyGraph>& graphs, const LoadedRules& rules,
                                const StudyRequest& request, const Log& log);
/// Merges the files into one. A new file's bytes do not depend on how the rows were distributed.
Status merge_studies(const std::string& file, const std::vector<std::string>& from);

/// The results in a file. `blocks`: one row for each graph and setting; `orders`: the best over all
/// graphs, by mean ratio of the first objective to the written order; `thefts`: over all graphs.
struct StudySummary {
  std::vector<StudiedBlock> blocks;
  std::vector<Objective> by;  ///< objectives of the first block
  std::vector<StudiedOrder> orders;
  std::string suggestion;  ///< best order over all graphs, if it beats the written one
};
Result<StudySummary> read_study(const std::string& file, std::size_t most);
Result<StudySummary> summarize(StudyStore& store, std::size_t most);
/// Runs a study in memory only.
Result<StudySummary> study_in_memory(const std::vector<StudyGraph>& graphs,
                                     const LoadedRules& rules, const ExploreRequest& space,
                                     std::size_t most, const Log& log);
[[nodiscard]] Answer study_answer(const StudySummary& summary);
/// Returns all units as CSV, or as a JSON array of objects.
Result<std::string> study_rows(const std::string& file, bool json);

/// Returns a cost of a state in a block; 0 if unknown.
[[nodiscard]] double cost_of(const StudiedBlock& block, const std::string& state,
                             Objective objective);
/// Returns the block's ends, best first.
[[nodiscard]] std::vector<StudiedBlock::End> ranked_ends(const StudiedBlock& block);
[[nodiscard]] std::vector<Objective> objectives_of(const StudyBlock& block);

}  // namespace pw
