// Selects attention tiles for ranges of rows. Candidates are enumerated and timed by the cost model
// for a set of typical steps; a greedy pass then keeps, for ascending row counts, the tile with the
// least total loss, and reuses an earlier choice if it is within 2 %. Invariant: every choice is
// correct for every step, so a wrong estimate costs time only. Cost: candidates times typical
// steps, computed once for a piece.
#include "cuda/kernels/attention/attention_tiles.hpp"

#include <algorithm>
#include <limits>

#include "base/division.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kFewRows = 256, kTypicalKeys = 4096, kFewKeys = 512, kManyKeys = 32768;
constexpr std::int64_t kTypicalRows[] = {1,  2,  3,  4,   6,   8,   12,  16,   24,   32,
                                         48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096};
constexpr std::int64_t kManySequences = 512;  // decode steps of more sequences behave alike
constexpr std::int64_t kFewTokens = 16;       // tokens of a sequence, whose keys may be divided
constexpr int kMostStrands = 4;               // for tiles of prompts
constexpr double kAsWell = 1.02;

// 64 rows a group. Three groups with 128 keys have too few registers.
constexpr AttentionTile kGroupedTiles[] = {
    {8, 1, {128, 1, 1}, 1, true}, {12, 1, {64, 1, 1}, 1, true}, {8, 1, {64, 1, 1}, 1, true}};
constexpr AttentionTile kTilesOfPrompts[] = {{4, 1, {16, 1, 1}, 2}, {3, 1, {16, 2, 1}},
                                             {2, 2, {16, 2, 1}},    {2, 2, {16, 4, 1}},
                                             {4, 2, {16, 1, 1}, 2}, {4, 2, {16, 2, 1}, 2}};

/// Returns tiles whose blocks have a few tokens of one sequence, with the keys undivided.
std::vector<AttentionTile> few_tokens(const AttentionWork& work) {
  std::vector<AttentionTile> out{{1, 1, {16, 4, 1}}, {1, 1, {32, 4, 1}}, {1, 1, {16, 8, 1}}};
  const std::int64_t share = work.heads / work.groups;
  // As many tokens of a sequence as rows allow, or a divisor of its tokens.
  const auto add = [&](int tall, std::int64_t tokens) {
    if (tokens < 2 || (tall > 1 && tokens * share <= kRowsOfMma)) return;
    const auto of_block = static_cast<int>(tokens);
    out.push_back({1, tall, {16, 4, 1}, 1, false, of_block});
    out.push_back({1, tall, {16, 8, 1}, 1, false, of_block});
    if (tall == 1) out.push_back({1, tall, {32, 4, 1}, 1, false, of_block});
  };
  for (const int tall : {1, 2}) {
    const std::int64_t most = std::min(work.rows, tall * kRowsOfMma / share);
    std::int64_t divisor = most;
    while (divisor > 1 && work.rows % divisor != 0) --divisor;
    add(tall, most);
    if (divisor != most) add(tall, divisor);
  }
  return out;
}

/// Chooses tiles for ascending row counts. `out_.all` holds each chosen tile once, since every tile
/// costs a compiled kernel.
class TileChooser {
 public:
  TileChooser(const TensorMachine& machine, std::int64_t heads, std::int64_t groups,
              std::int64_t width)
      : machine_(machine), heads_(heads), groups_(groups), width_(width) {}

  AttentionTiles run(std::int64_t query) {
    AttentionTiles::Chosen of_prompts;
    for (const std::int64_t rows : kTypicalRows)
      if (rows <= kFewRows)
        choose(rows, decodes(rows, 1), out_.chosen);
      else
        choose(rows, prompts(rows), of_prompts);
    const bool single = query == 1;  // steps of few rows are assumed to be decodes anyway
    if (single) out_.decodes = out_.chosen;
    for (const std::int64_t sequences : kTypicalRows)
      if (sequences <= kManySequences && !(single && sequences <= kFewRows))
        choose(sequences * query, decodes(sequences * query, query), out_.decodes);
    out_.chosen.insert(out_.chosen.end(), of_prompts.begin(), of_prompts.end());
    out_.query = query;
    for (AttentionTiles::Chosen* chosen : {&out_.chosen, &out_.decodes})
      chosen->back().first = std::numeric_limits<std::int64_t>::max();
    return std::move(out_);
  }

 private:
  using Works = std::vector<AttentionWork>;

  [[nodiscard]] Works decodes(std::int64_t rows, std::int64_t query) const {
    Works out(3, typical_work(rows, query, heads_, groups_, width_));
    out[1].past = std::max<std::int64_t>(kFewKeys - query, 0);
    out[2].past = std::max<std::int64_t>(kManyKeys - query, 0);
    return out;
  }
  [[nodiscard]] Works prompts(std::int64_t rows) const {
    Works out{typical_work(rows, 0, heads_, groups_, width_)};
    if (rows > kFewKeys) out.push_back({rows / kFewKeys, kFewKeys, 0, heads_, groups_, width_});
    return out;
  }

  /// Chooses for steps of up to `rows` rows, and more than the previous choice covers.
  void choose(std::int64_t rows, const Works& works, AttentionTiles::Chosen& chosen) {
    const std::vector<AttentionTile> tiles = attention_candidates(machine_, works.front());
    const auto seconds = [&](const AttentionTile& tile) {
      std::vector<double> out;
      for (const AttentionWork& work : works)
        out.push_back(attention_time(machine_, work, tile).seconds);
      return out;
    };
    std::vector<std::vector<double>> all;
    std::vector<double> least(works.size(), std::numeric_limits<double>::infinity());
    for (const AttentionTile& tile : tiles) {
      all.push_back(seconds(tile));
      for (std::size_t i = 0; i < works.size(); ++i) least[i] = std::min(least[i], all.back()[i]);
    }
    // Total of the ratios to the best time.
    const auto loss = [&](const std::vector<double>& of_tile) {
      double sum = 0;
      for (std::size_t i = 0; i < works.size(); ++i) sum += of_tile[i] / least[i];
      return sum;
    };
    const auto best = std::min_element(
        all.begin(), all.end(), [&](const auto& a, const auto& b) { return loss(a) < loss(b); });
    if (!chosen.empty() && loss(seconds(out_.all[chosen.back().second])) <= kAsWell * loss(*best)) {
      chosen.back().first = rows;
      return;
    }
    chosen.emplace_back(rows, place_of(tiles[static_cast<std::size_t>(best - all.begin())]));
  }

  std::size_t place_of(const AttentionTile& tile) {
    const auto found = std::find(out_.all.begin(), out_.all.end(), tile);
    if (found != out_.all.end()) return static_cast<std::size_t>(found - out_.all.begin());
    out_.all.push_back(tile);
    return out_.all.size() - 1;
  }

  const TensorMachine& machine_;
  std::int64_t heads_, groups_, width_;
  AttentionTiles out_;
};

}  // namespace

std::size_t AttentionTiles::of(std::int64_t rows, std::int64_t of_query) const {
  const Chosen& list = of_query == query && !decodes.empty() ? decodes : chosen;
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const auto& entry) { return rows <= entry.first; });
  return found == list.end() ? list.back().second : found->second;
}

AttentionWork typical_work(std::int64_t rows, std::int64_t query, std::int64_t heads,
                           std::int64_t groups, std::int64_t width) {
  if (query == 0 && rows > kFewRows) return {1, rows, 0, heads, groups, width};
  const std::int64_t each = std::max<std::int64_t>(query, 1);
  return {ceil_div(rows, each),
          each,
          std::max<std::int64_t>(kTypicalKeys - each, 0),
          heads,
          groups,
          width};
}

std::vector<AttentionTile> attention_candidates(const TensorMachine& machine,
                                                const AttentionWork& work) {
  std::vector<AttentionTile> out;
  const auto add = [&](AttentionTile tile) {
    const std::int64_t share = work.heads / work.groups;
    const std::int64_t blocks =
        work.groups * ceil_div(work.sequences * work.rows, tile.tokens(share));
    for (int parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      if (parts > 1 && parts * blocks > 4 * machine.multiprocessors) break;
      tile.order.parts = parts;
      out.push_back(tile);
    }
  };
  const bool few = work.rows <= kFewTokens;
  if (few)
    for (const AttentionTile& tile : few_tokens(work)) add(tile);
  if (work.rows == 1) return out;
  for (const AttentionTile& tile : kTilesOfPrompts)
    if (few && tile.order.strands == kMostStrands)
      add(tile);
    else
      out.push_back(tile);
  for (const AttentionTile& tile : kGroupedTiles)
    if (tile.fits(machine, work.width)) out.push_back(tile);
  return out;
}

AttentionTiles attention_tiles(const TensorMachine& machine, std::int64_t heads,
                               std::int64_t groups, std::int64_t width, std::int64_t query) {
  return TileChooser(machine, heads, groups, width).run(query);
}

}  // namespace pw::cuda
