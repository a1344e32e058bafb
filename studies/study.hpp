// A study: many graphs × one space, a row a unit, in one SQLite file. A unit is one order of one
// graph under one setting. What was interrupted goes on where it was; shards are parts of the units
// that other processes do, into the same file or into files of their own that are merged.
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
/// `2/8`. PW1462.
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
  std::uint64_t done = 0;   ///< of these, before
  std::size_t runs = 0;     ///< of a pass
};
/// Does what of the shard's units is not there. Rows are written a few hundred at a time, so a
/// process that is killed loses no more.
Result<StudyProgress> run_study(const std::vector<StudyGraph>& graphs, const LoadedRules& rules,
                                const StudyRequest& request, const Log& log);
/// Joins the files into one; a new file gets the same bytes whatever parts the rows came in.
Status merge_studies(const std::string& file, const std::vector<std::string>& from);

/// What a file knows. `blocks`: a row a graph and setting; `orders`: the best over all graphs, by
/// the mean of the first objective against the written order; `thefts`: over all graphs.
struct StudySummary {
  std::vector<StudiedBlock> blocks;
  std::vector<Objective> by;  ///< of the first block
  std::vector<StudiedOrder> orders;
  std::string suggestion;  ///< the best order over all graphs, where it beats the written one
};
Result<StudySummary> read_study(const std::string& file, std::size_t most);
Result<StudySummary> summarize(StudyStore& store, std::size_t most);
/// The same of a study that is kept nowhere.
Result<StudySummary> study_in_memory(const std::vector<StudyGraph>& graphs,
                                     const LoadedRules& rules, const ExploreRequest& space,
                                     std::size_t most, const Log& log);
[[nodiscard]] Answer study_answer(const StudySummary& summary);
/// All units: CSV, or a JSON array of objects.
Result<std::string> study_rows(const std::string& file, bool json);

/// A cost of a state in a block; 0 where it is not known.
[[nodiscard]] double cost_of(const StudiedBlock& block, const std::string& state,
                             Objective objective);
/// The block's ends, the best first.
[[nodiscard]] std::vector<StudiedBlock::End> ranked_ends(const StudiedBlock& block);
[[nodiscard]] std::vector<Objective> objectives_of(const StudyBlock& block);

}  // namespace pw
