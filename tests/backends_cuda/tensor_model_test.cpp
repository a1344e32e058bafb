// The models of products and attention on tensor cores: what they choose is the best they know, and
// how far its time is from the larger of the bounds by bytes and by multiplications.
#include "cuda/kernels/matmul/tensor_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "cuda/kernels/attention/attention_tiles.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

const char* const kModelled[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

/// Of a llama layer: attention's projections, and the two of its feed-forward part.
const std::pair<std::int64_t, std::int64_t> kLayer[] = {
    {4096, 4096}, {4096, 6144}, {4096, 28672}, {14336, 4096}};

const std::pair<std::int64_t, std::int64_t> kHeadsAndGroups[] = {{32, 8}, {32, 32}, {64, 8}};

}  // namespace

namespace {

/// The cells of the rows of a Markdown page's tables that have so many.
std::vector<std::vector<std::string>> cells_of(const std::string& page, std::size_t columns) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> row;
    std::istringstream cells(line.substr(std::min<std::size_t>(line.size(), 1)));
    for (std::string cell; std::getline(cells, cell, '|');) {
      const std::size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
      row.push_back(first == std::string::npos ? "" : cell.substr(first, last + 1 - first));
    }
    if (row.size() == columns && line.find("--") == std::string::npos) out.push_back(row);
  }
  return out;
}

}  // namespace

TEST_CASE("tensor model: times are near those measured on a device", "[cuda][tensor]") {
  // By bench/gpu/tensor.cpp; a node of a graph takes a fifth of a microsecond besides.
  constexpr double kNode = 0.2;
  // The model is one of an H100; the page has a section per device.
  auto page = read_file("bench/results/tensor_cores.md");
  REQUIRE(page);
  const std::size_t begin = page->find("\n## NVIDIA H100");
  REQUIRE(begin != std::string::npos);
  *page = page->substr(begin, page->find("\n## ", begin + 1) - begin);
  const cuda::TensorMachine& machine = *cuda::tensor_machine("sm_90");
  std::size_t all = 0, near = 0;
  const auto compare = [&](const std::string& measured, double modelled) {
    const double apart = std::abs(std::log((1e6 * modelled + kNode) / std::stod(measured)));
    ++all;
    near += apart < std::log(1.25) ? 1 : 0;
    CHECK(apart < std::log(1.6));
  };
  for (const auto& row : cells_of(*page, 9)) {
    long long rows = 0, depth = 0, columns = 0;
    if (std::sscanf(row[0].c_str(), "%lld", &rows) != 1) continue;
    REQUIRE(std::sscanf(row[1].c_str(), "%lld x %lld", &depth, &columns) == 2);
    const cuda::ProductShape shape{rows, depth, columns, 2, 2};
    const std::vector<cuda::ProductTile> tiles = cuda::ranked_tiles(machine, shape);
    const auto tile = std::find_if(tiles.begin(), tiles.end(), [&](const cuda::ProductTile& t) {
      return row[8] == described(t);
    });
    REQUIRE(tile != tiles.end());
    INFO(row[0] << " rows, " << row[1] << ", " << row[8]);
    compare(row[4], cuda::product_time(machine, shape, *tile).seconds);
  }
  CHECK(all >= 50);
  for (const auto& row : cells_of(*page, 8)) {
    long long heads = 0, groups = 0, sequences = 0, rows = 0, past = 0;
    if (std::sscanf(row[0].c_str(), "%lld in %lld", &heads, &groups) != 2) continue;
    REQUIRE(std::sscanf(row[1].c_str(), "%lld of %lld after %lld", &sequences, &rows, &past) == 3);
    INFO(row[0] << ", " << row[1] << ", " << row[7]);
    const cuda::AttentionWork work{sequences, rows, past, heads, groups, 128};
    const auto tiles = cuda::attention_candidates(machine, work);
    const auto tile = std::find_if(tiles.begin(), tiles.end(), [&](const cuda::AttentionTile& t) {
      return row[7] == described(t);
    });
    REQUIRE(tile != tiles.end());
    compare(row[4], cuda::attention_time(machine, work, *tile).seconds);
  }
  CHECK(all >= 100);
  CHECK(near >= all * 9 / 10);
}

TEST_CASE("tensor model: no other tile or number of shares is faster", "[cuda][tensor]") {
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (std::int64_t rows : {1, 100, 256, 4096})
      for (const auto& [depth, columns] : kLayer) {
        const cuda::ProductShape shape{rows, depth, columns, 2, 2};
        const double least =
            cuda::product_time(machine, shape, cuda::choose_tile(machine, shape)).seconds;
        for (cuda::ProductTile tile : cuda::product_tiles())
          for (int parts : {1, 2, 4, 8}) {
            tile.shares = parts * static_cast<int>(cuda::divided(shape, tile).across);
            CHECK(least <= cuda::product_time(machine, shape, tile).seconds);
          }
      }
  }
}

TEST_CASE("tensor model: what costs time is counted", "[cuda][tensor]") {
  const cuda::TensorMachine& machine = *cuda::tensor_machine("sm_90");
  const cuda::ProductShape shape{256, 4096, 4096, 2, 2};
  cuda::ProductTile tile{128, 256, 2, 4, 3};
  const cuda::ProductTime whole = cuda::product_time(machine, shape, tile);
  tile.shares = 4 * 16;
  const cuda::ProductTime parts = cuda::product_time(machine, shape, tile);
  // 32 blocks leave 100 multiprocessors idle: four times as many are faster, though sums are
  // written and read again.
  CHECK(parts.seconds < whole.seconds);
  CHECK(whole.adding == 0);
  // Each block writes a tile's sums, and reads a quarter of those of three others.
  const double port = cuda::kAddingPort * machine.cache_port();
  CHECK(parts.adding == Approx(cuda::kMeeting + 4.0 * 128 * 256 * (1 + 3.0 / 4) / port));
  // Two blocks have three tiles: the first and the last are whole, and are not added. The second
  // block begins with the other one, which the first adds: it writes all, and reads as much.
  const cuda::ProductShape three{128, 4096, 3 * 256, 2, 2};
  tile.shares = 2;
  CHECK(cuda::divided(three, tile).whole == 2);
  CHECK(cuda::divided(three, tile).adders_of(1) == 1);
  CHECK(cuda::product_time(machine, three, tile).adding ==
        Approx(cuda::kMeeting + 2 * 4.0 * 128 * 256 / port));
  // One block more than fit at once takes a wave more.
  tile = {128, 128, 2, 2, 3};
  const auto blocks = [&](std::int64_t columns) {
    return cuda::product_time(machine, {128, 4096, columns, 2, 2}, tile).seconds;
  };
  CHECK(blocks(132 * 128 + 1) > 1.5 * blocks(132 * 128));
  // It is never faster than what bytes and multiplications alone take.
  for (std::int64_t rows : {1, 7, 300, 5000})
    for (std::int64_t depth : {64, 1000, 20000})
      for (std::int64_t columns : {16, 1000, 50000}) {
        const cuda::ProductShape any{rows, depth, columns, 2, 2};
        CHECK(cuda::product_time(machine, any, cuda::choose_tile(machine, any)).seconds >=
              cuda::product_bound(machine, any));
      }
}

TEST_CASE("tensor model: products are near what any tile takes", "[cuda][tensor]") {
  // The floor is more than the bound: kernels do not get all of a machine's rates, too few tiles
  // for all multiprocessors are cut and added, and the first read takes its time.
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (std::int64_t rows : {1, 16, 64, 100, 128, 192, 256, 384, 512, 777, 1024, 2048, 4096, 8192})
      for (const auto& [depth, columns] : kLayer) {
        const cuda::ProductShape shape{rows, depth, columns, 2, 2};
        const cuda::ProductTile tile = cuda::choose_tile(machine, shape);
        const cuda::ProductTime time = cuda::product_time(machine, shape, tile);
        const cuda::ProductFloor floor = cuda::product_floor(machine, shape);
        const double bound = cuda::product_bound(machine, shape);
        const std::string line = fmt::format(
            "{} {}x{}x{}: {:.1f} µs, {:.2f} of the bound, by {}; {:.1f} µs of it adding; "
            "at least {:.2f} of the bound, by {}; {}",
            arch, rows, depth, columns, 1e6 * time.seconds, time.seconds / bound, time.bound,
            1e6 * time.adding, floor.seconds / bound, described(floor), described(tile));
        INFO(line);
        CHECK(floor.seconds >= bound);
        CHECK(time.seconds >= floor.seconds);
        CHECK(time.seconds <= 1.55 * floor.seconds);
        const bool beyond = time.seconds > 1.3 * bound;
        if (beyond && std::getenv("PW_SHOW_MODEL") != nullptr) WARN(line);
      }
  }
}

TEST_CASE("tensor model: no tile and no division of it is faster than the floor",
          "[cuda][tensor]") {
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (std::int64_t rows : {1, 70, 300})
      for (const auto& [depth, columns] : {std::pair{4096, 4096}, std::pair{1000, 500}}) {
        const cuda::ProductShape shape{rows, depth, columns, 2, 2};
        const double floor = cuda::product_floor(machine, shape).seconds;
        for (const cuda::ProductTile& tile : cuda::ranked_tiles(machine, shape)) {
          INFO(arch << ", " << rows << " rows, " << described(tile));
          CHECK(cuda::product_time(machine, shape, tile).seconds >= floor);
        }
      }
  }
}

TEST_CASE("tensor model: shares of a row of tiles divide its steps, and number its pieces",
          "[cuda][tensor]") {
  for (const std::int64_t depth : {64, 640, 1000})
    for (const std::int64_t columns : {64, 500, 640})
      for (int shares = 0; shares < 40; ++shares) {
        cuda::ProductTile tile{64, 64, 2, 2, 4};
        tile.shares = shares;
        const cuda::ProductDivision d = cuda::divided({100, depth, columns, 2, 2}, tile);
        INFO(depth << " x " << columns << ", " << shares << " shares");
        CHECK(d.begin(0) == 0);
        CHECK(d.begin(d.shares) == d.steps());
        std::int64_t pieces = 0, most = 0, whole = 0, before = -1;
        for (std::int64_t t = 0; t < d.across; ++t) {
          std::int64_t of_tile = 0;
          for (std::int64_t share = 0; share < d.shares; ++share) {
            const bool meets = d.begin(share) < (t + 1) * d.deep && d.begin(share + 1) > t * d.deep;
            if (!meets) continue;
            CHECK(share + t > before);  // no two pieces have one number
            before = share + t;
            ++of_tile;
          }
          CHECK(of_tile == d.share_of((t + 1) * d.deep - 1) - d.share_of(t * d.deep) + 1);
          CHECK(of_tile <= cuda::ProductDivision::kMostPieces);
          std::int64_t adders = 0;  // whose last piece is of the tile
          for (std::int64_t share = 0; share < d.shares; ++share) {
            const std::int64_t end = d.begin(share + 1);
            adders += end > t * d.deep && end <= (t + 1) * d.deep ? 1 : 0;
          }
          CHECK(d.adders_of(t) == adders);
          pieces += of_tile;
          whole += of_tile == 1 ? 1 : 0;
          most = std::max(most, of_tile);
        }
        CHECK(d.pieces == pieces);
        CHECK(d.whole == whole);
        CHECK(d.most_pieces == most);
        CHECK(before == d.shares + d.across - 2);
        for (std::int64_t step = 0; step < d.steps(); ++step) {
          const std::int64_t share = d.share_of(step);
          CHECK((d.begin(share) <= step && step < d.begin(share + 1)));
        }
      }
}

namespace {

/// For the work it is taken for, and for the same with other pasts or in shorter prompts: no tile
/// takes less of all of these.
void check_chosen(const cuda::TensorMachine& machine, const cuda::AttentionWork& work,
                  const cuda::AttentionTile& chosen) {
  std::vector<cuda::AttentionWork> all{work};
  if (work.past > 0) {
    for (const std::int64_t keys : {512, 32768}) {
      all.push_back(work);
      all.back().past = keys - work.rows;
    }
  } else if (work.rows > 512) {
    all.push_back({work.rows / 512, 512, 0, work.heads, work.groups, work.width});
  }
  const auto seconds = [&](const cuda::AttentionWork& w, const cuda::AttentionTile& tile) {
    return cuda::attention_time(machine, w, tile).seconds;
  };
  std::vector<double> taken;
  for (const cuda::AttentionWork& w : all) taken.push_back(seconds(w, chosen));
  std::vector<std::string> faster;
  for (const cuda::AttentionTile& tile : cuda::attention_candidates(machine, work)) {
    std::size_t i = 0;
    while (i < all.size() && taken[i] > 1.03 * seconds(all[i], tile)) ++i;
    if (i == all.size()) faster.push_back(described(tile));
  }
  INFO(machine.arch << ", " << work.sequences << " of " << work.rows << " after " << work.past
                    << ", " << work.heads << " in " << work.groups << ": " << described(chosen));
  CHECK(faster == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("tensor model: tiles of attention are the best for what they are taken for",
          "[cuda][tensor]") {
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (const auto& [heads, groups] : kHeadsAndGroups) {
      for (std::int64_t query : {1, 4}) {
        const cuda::AttentionTiles tiles =
            cuda::attention_tiles(machine, heads, groups, 128, query);
        for (std::int64_t rows : {1, 2, 6, 16, 64, 192, 256, 512, 2048})
          for (const std::int64_t each : {std::int64_t{0}, query}) {
            if (each > 1 && rows % each != 0) continue;
            const cuda::AttentionWork work = cuda::typical_work(rows, each, heads, groups, 128);
            check_chosen(machine, work, tiles.all[tiles.of(rows, each)]);
          }
      }
    }
  }
}

namespace {

struct AttentionStep {
  std::int64_t sequences, rows, past;
};
constexpr AttentionStep kAttentionSteps[] = {
    {1, 512, 0},     {1, 1024, 0},   {8, 512, 0},     {1, 2048, 0},    {1, 4096, 0},
    {1, 8192, 0},    {4, 2048, 0},   {4, 1024, 4096}, {1, 1, 4095},    {1, 1, 16383},
    {1, 1, 32767},   {1, 1, 131071}, {2, 1, 4095},    {8, 1, 4095},    {8, 1, 32767},
    {8, 1, 131071},  {64, 1, 4095},  {64, 1, 32767},  {64, 1, 131071}, {256, 1, 4095},
    {256, 1, 32767}, {512, 1, 4095}, {1024, 1, 1023}};

}  // namespace

TEST_CASE("tensor model: attention is near what any tile takes", "[cuda][tensor]") {
  // In the floor nothing but reading and multiplying takes time.
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (const auto& [heads, groups] : kHeadsAndGroups) {
      const cuda::AttentionTiles tiles = cuda::attention_tiles(machine, heads, groups, 128);
      for (const AttentionStep& s : kAttentionSteps) {
        const cuda::AttentionWork work{s.sequences, s.rows, s.past, heads, groups, 128};
        const std::int64_t query = s.rows == 1 ? 1 : 0;
        const cuda::AttentionTile& tile = tiles.all[tiles.of(s.sequences * s.rows, query)];
        const cuda::AttentionTime time = cuda::attention_time(machine, work, tile);
        const cuda::AttentionFloor floor = cuda::attention_floor(machine, work);
        const double bound = cuda::attention_bound(machine, work);
        const double ratio = time.seconds / bound, least = floor.seconds / bound;
        const std::string line = fmt::format(
            "{} {} sequences of {} new tokens after {}, {} heads in {} groups: {:.1f} µs, {:.3f} "
            "of the bound, by {}; floor {:.3f} ({}); {}",
            arch, s.sequences, s.rows, s.past, heads, groups, 1e6 * time.seconds, ratio, time.bound,
            least, cuda::described(floor), described(tile));
        INFO(line);
        CHECK(least >= 1);
        CHECK(ratio >= least);
        CHECK(ratio <= 2 * least);
        if (ratio > 1.3 && std::getenv("PW_SHOW_MODEL") != nullptr) WARN(line);
      }
    }
  }
}

TEST_CASE("tensor model: no candidate gets below the floor of attention", "[cuda][tensor]") {
  for (const char* arch : kModelled) {
    const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
    for (const auto& [heads, groups] : kHeadsAndGroups)
      for (const AttentionStep& s : kAttentionSteps) {
        const cuda::AttentionWork work{s.sequences, s.rows, s.past, heads, groups, 128};
        const double floor = cuda::attention_floor(machine, work).seconds;
        std::vector<std::string> below;
        for (const cuda::AttentionTile& tile : cuda::attention_candidates(machine, work))
          if (cuda::attention_time(machine, work, tile).seconds < floor)
            below.push_back(described(tile));
        INFO(arch << ", " << s.sequences << " of " << s.rows << " after " << s.past);
        CHECK(below == std::vector<std::string>{});
      }
  }
}

TEST_CASE("tensor model: what attention costs is counted", "[cuda][tensor]") {
  const cuda::TensorMachine& machine = *cuda::tensor_machine("sm_90");
  const cuda::AttentionTile one{1, 1, {16, 4, 1}}, tall{4, 2, {16, 1, 1}};
  const auto seconds = [&](const cuda::AttentionWork& work, const cuda::AttentionTile& tile) {
    return cuda::attention_time(machine, work, tile).seconds;
  };
  // Eight blocks leave 124 multiprocessors idle, which parts of the keys put to work.
  cuda::AttentionTile parts = one;
  parts.order.parts = 16;
  const cuda::AttentionWork decode{1, 1, 32767, 32, 8, 128};
  CHECK(seconds(decode, parts) < seconds(decode, one) / 5);
  CHECK(cuda::attention_time(machine, decode, parts).adding >
        cuda::kAddingTrips * cuda::kCacheLatency);
  // Keys that no row sees are multiplied too, at the end of each sequence.
  CHECK(seconds({64, 32, 0, 32, 8, 128}, tall) > seconds({1, 32, 0, 32, 8, 128}, tall));
  // What strands add at the end: where each has a block of keys, two take longer than one, though
  // there are twice as many warps.
  const cuda::AttentionTile alone{8, 1, {16, 1, 1}}, strands{8, 1, {16, 2, 1}};
  CHECK(seconds({1, 32, 0, 32, 8, 128}, strands) > seconds({1, 32, 0, 32, 8, 128}, alone));
  // Tokens of blocks: all once, the last ones first.
  for (std::int64_t tokens : {1, 15, 16, 17, 31, 32, 33, 48, 500}) {
    std::int64_t left = tokens;
    for (std::int64_t n = 0; left > 0; ++n) {
      const cuda::TokenRange block = cuda::tokens_of_block(tall, 4, tokens, n);
      CHECK(block.last == left);
      REQUIRE(block.first < block.last);
      left = block.first;
    }
    CHECK(left == 0);
  }
  // Half of a square of queries and keys.
  const double square = cuda::attention_bound(machine, {1, 8192, 0, 32, 8, 128});
  CHECK(square == Approx(4.0 * 32 * 128 * 8192.0 * 8193 / 2 / machine.most_flops()));
}
