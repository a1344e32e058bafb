#ifndef PW_TENSOR_ATTENTION
#define PW_TENSOR_ATTENTION
// Attention on tensor cores over keys and values in pages. Follows tensor_product.cu.
//
// Algorithm: FlashAttention-2 (Dao 2023). Each warp holds its query rows in registers and streams
// blocks of keys and values through shared memory; an online softmax (Milakov and Gimelshein 2018)
// keeps a base and a weight sum for each row, so scores are never written to memory. Four
// refinements:
//
// * Lazy rescaling, as in FlashAttention-4: a row's base changes only if its largest score would
//   weigh more than 2^8, so most key blocks need no rescaling of the accumulators.
// * GQA packing: the query heads of one group of keys are rows of one tile, so that a key block is
//   loaded once for all of them.
// * Split-KV, as in Flash-Decoding (Dao et al. 2023): for few tokens, warps (STRANDS) and blocks
//   (PARTS) divide the keys. The last block of a tile to arrive adds the parts.
// * Paged keys and values, as in PagedAttention (Kwon et al. 2023): each key is addressed through
//   the page table of its sequence.
//
// Invariant: the order of sums of a query row depends only on KEYS, STRANDS and PARTS, never on
// other rows of the step (backends/attention_order.hpp has the same order on the host):
//
// * Blocks: keys form blocks of KEYS; block b belongs to strand b % STRANDS of part b / STRANDS %
//   PARTS.
// * Scores: a score is one chain of fused multiply-adds. `factor` is the scale times log2 e, so
//   that a weight is a power of two.
// * Bases: a strand has a base, the score whose weight is 1. If the largest score so far would
//   weigh more than 2^8 it becomes the base, and the accumulators are multiplied by the old base's
//   weight.
// * Weights: a weight is 2 to the power of its score minus the base, computed as one fused
//   multiply-add of the score, the factor, and the base times the factor.
// * Weight sums: weights are added in f32; key j of a block belongs to sum j % 8 / 2 of four,
//   ascending.
// * Values: weights are rounded to the operands' dtype and multiplied by the values, in one chain
//   of fused multiply-adds for each column, keys ascending.
// * End: weight sums 0 and 1, then 2 and 3, then both results are added. Strands are multiplied by
//   2 to the power of their base minus the part's largest base, and added in ascending order; then
//   the parts likewise. The sums are multiplied by 1 / the weight sum.
//
// Cost: 4 · WIDTH operations for each query row and visible key, plus about 14 other instructions a
// score (attention_model.hpp); keys and values are read once for each tile of tokens and group.

/// Words of 16 bytes per key in shared memory, rounded up to a multiple of 8.
template <int WIDTH>
struct pw_key {
  enum : int { words = (WIDTH / 8 + 7) / 8 * 8 };
};
/// Combines `mine` with the value of the lane whose number differs in the bit `distance`.
PW_FUNCTION float pw_larger_of(float mine, int distance) {
  return pw_larger(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
PW_FUNCTION float pw_sum_of(float mine, int distance) {
  return pw_add(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
/// Returns the maximum over the lanes whose numbers differ in bits from FIRST on.
template <int FIRST>
PW_FUNCTION int pw_most_from(int mine) {
#pragma unroll
  for (int distance = FIRST; distance < 32; distance *= 2) {
    const int other = __shfl_xor_sync(0xffffffffu, mine, distance);
    mine = other > mine ? other : mine;
  }
  return mine;
}
PW_FUNCTION int pw_most_of_rows(int mine) { return pw_most_from<4>(mine); }
PW_FUNCTION int pw_most_of_warp(int mine) { return pw_most_from<1>(mine); }
/// Returns the base before any key: any score exceeds it, and relative to any other base it weighs
/// nothing.
PW_FUNCTION float pw_no_base() { return pw_float(0xff7fffffu); }
/// Returns true if the largest score would weigh more than 2^8 relative to a base; `shift` is the
/// base times the factor.
PW_FUNCTION bool pw_outgrown(float shift, float largest, float factor) {
  return !(pw_fma(largest, factor, -shift) <= 8.0f);
}
/// Returns the rescale factor of the accumulators when the base changes.
PW_FUNCTION float pw_shrink(float before, float after, float factor) {
  return before == after ? 1.0f : pw_power2(pw_fma(before, factor, -pw_mul(after, factor)));
}
/// Returns the factor that normalises the accumulators at the end; 0 if no key was visible.
PW_FUNCTION float pw_share(bool none, float total) { return none ? 0.0f : pw_div(1.0f, total); }

struct pw_pages {
  const long long *tables, *seen, *pages;
};

/// Accumulators of one part of the keys for the two rows (tokens or heads) of a lane.
template <int WIDTH>
struct pw_attended {
  float base[2], total[2], sums[WIDTH / 8][4];
};

/// Masks all but a row's first `own` keys, for the first or second row of a lane (h). The lane
/// holds keys 0, 1, 8, 9 and so on.
template <int J>
PW_FUNCTION void pw_hide_scores(float (&scores)[J][4], int h, int own) {
  const float least = -pw_float(0x7f800000u);
#pragma unroll
  for (int j = 0; j < J; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      scores[j][2 * h + e] = j * 8 + e < own ? scores[j][2 * h + e] : least;
}
/// Returns the largest score of a row, over all lanes that hold its scores.
template <int J>
PW_FUNCTION float pw_largest_of_row(const float (&scores)[J][4], int h) {
  constexpr int chains = J > 4 ? 2 : 1;  // two independent chains for many scores, to hide latency
  float largest[2] = {scores[0][2 * h], scores[0][2 * h + 1]};
  if (chains == 1) largest[0] = pw_larger(largest[0], largest[1]);
#pragma unroll
  for (int j = 1; j < J; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      largest[e % chains] = pw_larger(largest[e % chains], scores[j][2 * h + e]);
  if (chains == 2) largest[0] = pw_larger(largest[0], largest[1]);
  return pw_larger_of(pw_larger_of(largest[0], 1), 2);
}
/// Updates the bases of a lane's two rows and returns true if one changed. `shift` receives the
/// bases times the factor. The weight sums are multiplied by `shrink`; the caller must rescale the
/// accumulators by it.
template <int WIDTH>
PW_FUNCTION bool pw_new_bases(pw_attended<WIDTH>& row, const float (&largest)[2], float factor,
                              float (&shift)[2], float (&shrink)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    shift[h] = pw_mul(row.base[h], factor);
    shrink[h] = 1.0f;
  }
  if (!pw_outgrown(shift[0], largest[0], factor) && !pw_outgrown(shift[1], largest[1], factor))
    return false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float base = pw_outgrown(shift[h], largest[h], factor) ? largest[h] : row.base[h];
    shrink[h] = pw_shrink(row.base[h], base, factor);
    row.base[h] = base;
    shift[h] = pw_mul(base, factor);
    row.total[h] = pw_mul(row.total[h], shrink[h]);
  }
  return true;
}
template <int WIDTH>
PW_FUNCTION void pw_shrink_sums(pw_attended<WIDTH>& row, const float (&shrink)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        row.sums[d][2 * h + e] = pw_mul(row.sums[d][2 * h + e], shrink[h]);
}
/// Replaces scores by weights, and returns `total` plus their sum.
template <int J>
PW_FUNCTION float pw_weigh(float (&scores)[J][4], int h, float shift, float factor, float total) {
#pragma unroll
  for (int j = 0; j < J; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float& score = scores[j][2 * h + e];
      score = pw_power2(pw_fma(score, factor, -shift));
      total = pw_add(total, score);
    }
  return total;
}
/// Returns the weights of the j-th 16 keys as an operand fragment.
template <class T, int J>
PW_FUNCTION pw_fragment pw_weights_of(T type, const float (&weights)[J][4], int j) {
  pw_fragment out;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float* two = &weights[2 * j + r / 2][r % 2 * 2];
    out.r[r] = pw_narrow_two(type, two[0], two[1]);
  }
  return out;
}

/// Consecutive tokens of one sequence in a block: their table, the maximum number of visible keys,
/// and the token after the last.
struct pw_run {
  int table, limit, last;
};
/// Finds the run of tokens from `first` on that share a table. Each lane examines different tokens.
PW_FUNCTION pw_run pw_run_from(const pw_pages& at, int first, int end, int lane) {
  pw_run run = {(int)pw_load(at.tables, first), 0, end};
#pragma unroll 1
  for (int from = first; from < end; from += 32) {
    const int i = from + lane;
    const bool there = i < end;
    const int keys = there ? (int)pw_load(at.seen, i) : 0;
    const bool own = !there || (int)pw_load(at.tables, i) == run.table;
    run.limit = own && keys > run.limit ? keys : run.limit;
    run.last = !own && i < run.last ? i : run.last;
  }
  run.last = -pw_most_of_warp(-run.last);
  run.limit = pw_most_of_warp(run.limit);
  return run;
}

/// Returns the place of the word `further` words on (an even number) in the same row; `place` is
/// one of the row's first two words.
PW_FUNCTION pw_place pw_further(pw_place place, int further) {
  return pw_on(pw_across_row(place, further % 8), further / 8 * 8);
}

/// Returns the first row of a warp's t-th tile of 16 rows. Every second round of tiles has reverse
/// order, which balances the visible keys of the warps.
template <int DOWN>
PW_FUNCTION int pw_first_row(int warp, int t) {
  return 16 * (t * DOWN + (t % 2 == 0 ? warp : DOWN - 1 - warp));
}

/// Processes one block of keys for one warp's rows: scores, softmax update, then weighted values.
/// This lane's first words of KEYS keys and of their values are at `of_keys` and `of_values`. A row
/// sees the first `seen` keys, and no row of a tile more than `most`. WHOLE: every row sees all
/// keys, so no mask is needed.
template <class T, bool WHOLE, int KEYS, int WIDTH, int TALL, class S>
PW_FUNCTION void pw_attend_block(S& shared, const pw_fragment (&queries)[TALL][WIDTH / 16],
                                 pw_place of_keys, pw_place of_values, const int (&seen)[TALL][2],
                                 const int (&most)[TALL], float factor,
                                 pw_attended<WIDTH> (&rows)[TALL]) {
  constexpr int words = pw_key<WIDTH>::words, steps = WIDTH / 16;
  const unsigned lane = (unsigned)pw_here((int)threadIdx.x) % 32;
  // True if some row of a tile, or of any tile, sees one of the j-th 16 keys.
  const auto sees = [&](int t, int j) { return WHOLE || 16 * j < most[t]; };
  const auto seen_by_any = [&](int j) {
    bool any = false;
#pragma unroll
    for (int t = 0; t < TALL; ++t) any |= sees(t, j);
    return any;
  };
  // Scores in the layout of the accumulators of an instruction: four registers hold two rows of two
  // neighbouring keys each.
  float scores[TALL][KEYS / 8][4];
#pragma unroll
  for (int t = 0; t < TALL; ++t)
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[t][j][e] = 0.0f;
#pragma unroll
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      if (!seen_by_any(j)) break;
      const pw_fragment right = pw_rows(shared, pw_on(pw_further(of_keys, 2 * s), 16 * j * words));
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        if (!sees(t, j)) continue;
        pw_mma(T(), scores[t][2 * j], queries[t][s], right.r[0], right.r[1]);
        pw_mma(T(), scores[t][2 * j + 1], queries[t][s], right.r[2], right.r[3]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    pw_attended<WIDTH>& row = rows[t];
    if (!sees(t, 0)) continue;
    float largest[2], shift[2], shrink[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int own = WHOLE ? KEYS : seen[t][h] - (int)(lane % 4 * 2);
      if (own < KEYS) pw_hide_scores(scores[t], h, own);
      largest[h] = pw_largest_of_row(scores[t], h);
    }
    if (pw_new_bases(row, largest, factor, shift, shrink)) pw_shrink_sums(row, shrink);
#pragma unroll
    for (int h = 0; h < 2; ++h)
      row.total[h] = pw_weigh(scores[t], h, shift[h], factor, row.total[h]);
  }
#pragma unroll
  for (int j = 0; j < KEYS / 16; ++j) {
    if (!seen_by_any(j)) break;
    pw_fragment weights[TALL];
#pragma unroll
    for (int t = 0; t < TALL; ++t) weights[t] = pw_weights_of(T(), scores[t], j);
#pragma unroll
    for (int d = 0; d < WIDTH / 16; ++d) {
      const pw_fragment right =
          pw_columns(shared, pw_on(pw_further(of_values, 2 * d), 16 * j * words));
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        if (!sees(t, j)) continue;
        pw_mma(T(), rows[t].sums[2 * d], weights[t], right.r[0], right.r[1]);
        pw_mma(T(), rows[t].sums[2 * d + 1], weights[t], right.r[2], right.r[3]);
      }
    }
  }
}

/// Returns the strand that adds and stores a warp's t-th tile of rows.
template <int STRANDS>
PW_FUNCTION int pw_adder(int t) {
  return t % STRANDS;
}

/// Adds the strands of a warp's tiles of rows in ascending order. One strand adds each tile and
/// keeps its own accumulators in registers. It is one of the first two, and a sum of two is
/// commutative, so it may begin with its own.
template <int STRANDS, int WIDTH, int TALL, class S>
PW_FUNCTION void pw_add_strands(S& shared, int tile, int strand, float factor,
                                pw_attended<WIDTH> (&rows)[TALL]) {
  static_assert(TALL <= 2, "a sum of two has no order");
  constexpr int each = 1 + WIDTH / 8;
  const int lane = pw_here((int)threadIdx.x % 32);
  const auto place = [&](int t, int of, int i) {
    const int other = of > pw_adder<STRANDS>(t) ? of - 1 : of;
    return (((tile * TALL + t) * (STRANDS - 1) + other) * each + i) * 32 + lane;
  };
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    if (strand == pw_adder<STRANDS>(t)) continue;
    const pw_attended<WIDTH>& row = rows[t];
    pw_put(shared, place(t, strand, 0),
           uint4{pw_bits(row.base[0]), pw_bits(row.base[1]), pw_bits(row.total[0]),
                 pw_bits(row.total[1])});
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d)
      pw_put(shared, place(t, strand, 1 + d),
             uint4{pw_bits(row.sums[d][0]), pw_bits(row.sums[d][1]), pw_bits(row.sums[d][2]),
                   pw_bits(row.sums[d][3])});
  }
  __syncthreads();
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    if (strand != pw_adder<STRANDS>(t)) continue;
    pw_attended<WIDTH>& row = rows[t];
    float base[2] = {row.base[0], row.base[1]};
#pragma unroll
    for (int s = 0; s < STRANDS; ++s) {
      if (s == pw_adder<STRANDS>(t)) continue;
      const uint4 other = pw_at(shared, place(t, s, 0));
      base[0] = pw_larger(base[0], pw_float(other.x));
      base[1] = pw_larger(base[1], pw_float(other.y));
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float shrink = pw_shrink(row.base[h], base[h], factor);
      row.total[h] = pw_mul(row.total[h], shrink);
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
        for (int e = 0; e < 2; ++e) row.sums[d][2 * h + e] = pw_mul(row.sums[d][2 * h + e], shrink);
      row.base[h] = base[h];
    }
#pragma unroll 1
    for (int s = 0; s < STRANDS; ++s) {
      if (s == pw_adder<STRANDS>(t)) continue;
      const uint4 other = pw_at(shared, place(t, s, 0));
      const float shrink[2] = {pw_shrink(pw_float(other.x), base[0], factor),
                               pw_shrink(pw_float(other.y), base[1], factor)};
      row.total[0] = pw_add(row.total[0], pw_mul(pw_float(other.z), shrink[0]));
      row.total[1] = pw_add(row.total[1], pw_mul(pw_float(other.w), shrink[1]));
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d) {
        const uint4 part = pw_at(shared, place(t, s, 1 + d));
        const unsigned w[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int e = 0; e < 4; ++e)
          row.sums[d][e] = pw_add(row.sums[d][e], pw_mul(pw_float(w[e]), shrink[e / 2]));
      }
    }
  }
}

/// Partial sums of split-KV, [PARTS, tokens, heads, WIDTH + 4]: a row holds WIDTH sums, the base,
/// the weight sum and two unused floats. `arrived` has one counter for each tile of tokens and
/// group of heads, 0 before and after the launch.
struct pw_sums {
  float* sums;
  int* arrived;
};

/// Adds four columns of a row over all parts in ascending order, relative to the largest base, and
/// normalises them.
template <int PARTS, class R>
PW_FUNCTION void pw_add_attended(const R& row, int width, int column, bool none, float factor,
                                 float (&sums)[4]) {
  constexpr int at_once = PARTS < 16 ? PARTS : 16;
  float most = pw_no_base(), total = 0.0f;
#pragma unroll(at_once)
  for (int part = 0; part < PARTS; ++part) most = pw_larger(most, pw_load(row(part), width));
#pragma unroll(at_once)
  for (int part = 0; part < PARTS; ++part) {
    const uint2 own = pw_load((const uint2*)(row(part) + width), 0);
    const uint4 four = pw_load((const uint4*)(row(part) + column), 0);
    const unsigned w[4] = {four.x, four.y, four.z, four.w};
    const float shrink = pw_shrink(pw_float(own.x), most, factor);
    const float add = pw_mul(pw_float(own.y), shrink);
    total = part == 0 ? add : pw_add(total, add);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float x = pw_mul(pw_float(w[e]), shrink);
      sums[e] = part == 0 ? x : pw_add(sums[e], x);
    }
  }
  const float share = pw_share(none, total);
#pragma unroll
  for (int e = 0; e < 4; ++e) sums[e] = pw_mul(sums[e], share);
}

/// The kernel. A block has TOGETHER tokens and, for each, the heads of one group of keys: DOWN ·
/// TALL tiles of 16 rows, TALL of them for each warp, and STRANDS warps for each of DOWN. A warp
/// skips keys that none of its rows sees.
///
/// Launch order: the last tokens first, since they see the most keys, then all groups and PARTS
/// parts of the keys. This is longest-processing-time-first scheduling.
///
/// Copies: keys are copied asynchronously DEEP rounds of the strands' blocks at a time into one of
/// two stages while the other is multiplied. All threads together copy a word of AT_A_TIME keys at
/// a time; if AT_A_TIME is 0, a thread looks up the page of each word it copies.
///
/// Tokens of different sequences are processed one sequence after another, so that no sequence
/// affects another's results. finish(token, head, column, y0, y1) stores. With PARTS > 1 the last
/// block of a tile and group to arrive adds the parts.
template <class T, int DOWN, int TALL, int STRANDS, int KEYS, int DEEP, int AT_A_TIME, int WIDTH,
          int SHARE, int TOGETHER, int GROUPS, int PAGE, int PARTS, class S, class F>
PW_FUNCTION void pw_attention(S& shared, const unsigned short* q, const unsigned short* k,
                              const unsigned short* v, const pw_pages& at, const pw_sums& parts,
                              long long tokens, float factor, const F& finish) {
  constexpr int words = pw_key<WIDTH>::words, used = WIDTH / 8, threads = 32 * DOWN * STRANDS;
  constexpr int block = KEYS * STRANDS, step = block * DEEP, stage = 2 * step * words;
  constexpr int all_rows = DOWN * TALL * 16, per_block = TOGETHER;
  static_assert(per_block * SHARE <= all_rows, "rows of a block");
  const int lane = (int)threadIdx.x % 32, all = (int)tokens;
  // Recomputed at each use, so that they occupy no registers in between.
  const auto warp = [&] { return (int)((unsigned)pw_here((int)threadIdx.x) / 32); };
  const auto tiles = [&] { return (pw_here(all) + per_block - 1) / per_block; };
  const auto number_of_block = [&] {
    return pw_here((int)blockIdx.y) * tiles() + pw_here((int)blockIdx.x);
  };
  const auto tile = [&] { return tiles() - 1 - number_of_block() / (GROUPS * PARTS); };
  const int strand = warp() % STRANDS;
  const int column = number_of_block() % (GROUPS * PARTS), group = column % GROUPS;
  const int part = PARTS == 1 ? 0 : column / GROUPS;
  const auto begin = [&] { return tile() * per_block; };
  const auto end = [&] {
    const int next = begin() + per_block;
    return next < all ? next : all;
  };
  const auto token_of = [&](int row) {
    const int token = begin() + row / SHARE;
    return row < per_block * SHARE && token < end() ? token : all;
  };
  const auto row_of = [&](int t, int h) {
    const unsigned own = (unsigned)pw_here((int)threadIdx.x);
    return pw_first_row<DOWN>((int)(own / 32 / STRANDS), t) + h * 8 + (int)(own % 32 / 4);
  };
  const auto sums_of = [&](int of, int token, int head) {
    return parts.sums + ((of * tokens + token) * (SHARE * GROUPS) + head) * (WIDTH + 4);
  };
  // Shared memory: stages, later the strands' accumulators; then the queries.
  constexpr int added = DOWN * TALL * (STRANDS - 1) * 32 * (1 + used);
  constexpr int queries = 2 * stage > added ? 2 * stage : added;
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < all_rows * used; i += threads) {
    const int row = i / used, word = i % used, own = token_of(row);
    const bool take = own < all;
    const long long from =
        ((long long)(take ? own : 0) * SHARE * GROUPS + group * SHARE + row % SHARE) * WIDTH +
        word * 8;
    pw_copy_async(shared, queries + pw_word<words>(row, word), q + from, take);
  }
  pw_commit();

  // Phase 1, once: the queries are on their way to shared memory. The loop below takes one run of
  // tokens of one sequence at a time.
  int first = begin();
  while (first < end()) {
    const pw_run run = pw_run_from(at, first, end(), lane);
    const int table = run.table, limit = run.limit, last = run.last;
    // First key of a round, and of a unit copied at a time.
    const auto key_of = [&](int round) { return (round * PARTS + part) * block; };
    constexpr int unit = PARTS == 1 ? step : block, units = step / unit;
    const auto unit_of = [&](int number, int u) {
      return PARTS == 1 ? number * step : key_of(number * DEEP + u);
    };
    // With enough registers, the pages of the next keys are looked up while others are multiplied.
    constexpr int of_page = AT_A_TIME > PAGE ? AT_A_TIME : PAGE,
                  lookups = AT_A_TIME > 0 ? unit / of_page : 1;
    constexpr bool ahead = TALL == 1 || units * lookups <= 2;
    int page[units][lookups];
    const auto look_up = [&](int number) {
      if constexpr (AT_A_TIME > 0) {
        const int own = AT_A_TIME > PAGE ? pw_here((int)threadIdx.x) / used / PAGE * PAGE : 0;
#pragma unroll
        for (int u = 0; u < units; ++u) {
          const int key = unit_of(number, u) + own;
          const long long* const from = at.pages + (table + (unsigned)key / PAGE);
#pragma unroll
          for (int i = 0; i < lookups; ++i)
            page[u][i] = key + i * of_page < limit ? (int)pw_load(from, i * of_page / PAGE) : 0;
        }
      }
    };
    const auto fetch = [&](int number) {
      const unsigned own = (unsigned)pw_here((int)threadIdx.x);
      const int to = (number & 1) * stage;
      constexpr unsigned of_key = GROUPS * WIDTH;  // elements
      if constexpr (AT_A_TIME > 0) {
        if (!ahead) look_up(number);
        const unsigned word = own % used, row = own / used;
        const unsigned in_page = row % PAGE * of_key + group * WIDTH + word * 8;
        const char* const own_k = (const char*)(k + in_page);
        const char* const own_v = (const char*)(v + in_page);
        const int place = to + pw_word<words>(row, word);
#pragma unroll
        for (int u = 0; u < units; ++u) {
          const auto copy = [&](int more, bool take) {
            constexpr unsigned row_bytes = 2 * of_key;
            const unsigned long long from =
                (unsigned long long)(unsigned)page[u][more / of_page] * (PAGE * row_bytes);
            const int to_word = place + (u * unit + more) * words;
            pw_copy_async(shared, to_word, own_k + from + more % PAGE * row_bytes, take);
            pw_copy_async(shared, to_word + step * words, own_v + from + more % PAGE * row_bytes,
                          take);
          };
          const int there = limit - unit_of(number, u);
          if (there >= unit) {
#pragma unroll
            for (int more = 0; more < unit; more += AT_A_TIME) copy(more, true);
          } else {
            const int own_there = there - (int)row;
            const int multiplied = own_there + (-limit & 15);  // 16 keys at a time
#pragma unroll
            for (int more = 0; more < unit; more += AT_A_TIME)
              if (more < multiplied) copy(more, more < own_there);
          }
        }
      } else {
#pragma unroll 1
        for (int i = (int)own; i < step * used; i += threads) {
          const int word = i % used, key = i / used;
          const int j = unit_of(number, key / unit) + key % unit;
          if ((j & ~15) >= limit) continue;
          const bool take = j < limit;
          const unsigned row =
              take ? (unsigned)pw_load(at.pages, table + j / PAGE) * PAGE + j % PAGE : 0u;
          const unsigned long long from =
              (unsigned long long)row * of_key + group * WIDTH + word * 8;
          const int place = to + pw_word<words>(key, word);
          pw_copy_async(shared, place, k + from, take);
          pw_copy_async(shared, place + step * words, v + from, take);
        }
      }
    };
    if (ahead) look_up(0);
    if (key_of(0) < limit) fetch(0);
    if (ahead) look_up(1);
    pw_commit();
    // The token of a lane's row; -1 if it is not in this run.
    const auto own_token = [&](int t, int h) {
      const int token = token_of(row_of(t, h));
      return token >= first && token < last ? token : -1;
    };
    const auto seen_of = [&](int token) { return token < 0 ? 0 : (int)pw_load(at.seen, token); };
    // most_left: the most keys that a tile's rows see. least_left: the least over the warp's rows
    // with a token, 0 if a tile has none. Both count from the strand's next block on.
    int most_left[TALL], least_left = limit;
    pw_attended<WIDTH> rows[TALL];
#pragma unroll
    for (int t = 0; t < TALL; ++t) {
      int most = 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int token = own_token(t, h), seen = seen_of(token);
        most = seen > most ? seen : most;
        least_left = token >= 0 && seen < least_left ? seen : least_left;
        rows[t].base[h] = pw_no_base();
        rows[t].total[h] = 0.0f;
      }
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) rows[t].sums[d][e] = 0.0f;
      most = pw_most_of_rows(most);
      least_left = most == 0 ? 0 : least_left;
      most_left[t] = most - key_of(0) - strand * KEYS;
    }
    least_left = -pw_most_of_rows(-least_left) - key_of(0) - strand * KEYS;

    pw_wait<0>();
    __syncthreads();
    // This lane's first words of a stage; with two tiles of rows they are recomputed to save
    // registers.
    const auto own_lane = [&] {
      return (unsigned)(TALL > 1 ? pw_here((int)threadIdx.x) : (int)threadIdx.x) % 32;
    };
    const auto first_keys = [&] {
      const unsigned own = own_lane();
      return pw_place_of(shared, pw_word<words>(own / 16 * 8 + own % 8, own / 8 % 2));
    };
    const auto first_values = [&] {
      const unsigned own = own_lane();
      return pw_place_of(shared, step * words + pw_word<words>(own % 16, own / 16));
    };
    // Phase 2, for each run: the query fragments move to registers and stay there for all key
    // blocks. This is what makes a key block cost one pass over shared memory.
    pw_fragment kept[TALL][WIDTH / 16];
#pragma unroll
    for (int t = 0; t < TALL; ++t) {
      const int own = pw_here((int)threadIdx.x), row = own % 16;
      const pw_place at_row =
          pw_place_of(shared, queries + pw_word<words>(row, own % 32 / 16) +
                                  pw_first_row<DOWN>(own / 32 / STRANDS, t) * words);
#pragma unroll
      for (int s = 0; s < WIDTH / 16; ++s) kept[t][s] = pw_rows(shared, pw_further(at_row, 2 * s));
    }
#pragma unroll 1
    // Phase 3, for each round of key blocks: wait for the stage, start the copies of the next one,
    // then multiply. The barrier separates readers of a stage from the copies that overwrite it.
    for (int round = 0; key_of(round) < limit; ++round) {
      if (round % DEEP == 0) {
        pw_wait<0>();
        __syncthreads();
        if (key_of(round + DEEP) < limit) {
          fetch(round / DEEP + 1);
          if (ahead) look_up(round / DEEP + 2);
        }
        pw_commit();
      }
      const int keys = round / DEEP % 2 * stage + (round % DEEP * block + strand * KEYS) * words;
      bool any = false;
#pragma unroll
      for (int t = 0; t < TALL; ++t) any |= most_left[t] > 0;
      int seen[TALL][2] = {};
      if (any && least_left >= KEYS) {
        pw_attend_block<T, true, KEYS, WIDTH, TALL>(shared, kept, pw_on(first_keys(), keys),
                                                    pw_on(first_values(), keys), seen, most_left,
                                                    factor, rows);
      } else if (any) {
#pragma unroll
        for (int t = 0; t < TALL; ++t)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            seen[t][h] = seen_of(own_token(t, h)) - key_of(round) - strand * KEYS;
        pw_attend_block<T, false, KEYS, WIDTH, TALL>(shared, kept, pw_on(first_keys(), keys),
                                                     pw_on(first_values(), keys), seen, most_left,
                                                     factor, rows);
      }
#pragma unroll
      for (int t = 0; t < TALL; ++t) most_left[t] -= PARTS * block;
      least_left -= PARTS * block;
    }
    __syncthreads();
#pragma unroll
    for (int t = 0; t < TALL; ++t)
#pragma unroll
      for (int h = 0; h < 2; ++h) rows[t].total[h] = pw_sum_of(pw_sum_of(rows[t].total[h], 1), 2);
    // Phase 4: the four lanes of a row have added their weights; now the strands of a tile are
    // added, and each row is normalised and stored, or left as a part.
    if constexpr (STRANDS > 1)
      pw_add_strands<STRANDS, WIDTH, TALL>(shared, warp() / STRANDS, strand, factor, rows);
#pragma unroll
    for (int t = 0; t < TALL; ++t) {
      if (strand != pw_adder<STRANDS>(t)) continue;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int token = own_token(t, h);
        if (token < 0) continue;
        const int head = group * SHARE + row_of(t, h) % SHARE;
        const float total = rows[t].total[h];
        if constexpr (PARTS > 1) {
          float* const to = sums_of(part, token, head);
          if (lane % 4 == 0) pw_write2(to + WIDTH, pw_bits(rows[t].base[h]), pw_bits(total));
#pragma unroll
          for (int d = 0; d < WIDTH / 8; ++d)
            pw_write2(to + d * 8 + lane % 4 * 2, pw_bits(rows[t].sums[d][2 * h]),
                      pw_bits(rows[t].sums[d][2 * h + 1]));
        } else {
          const float share = pw_share(pw_load(at.seen, token) == 0, total);
#pragma unroll
          for (int d = 0; d < WIDTH / 8; ++d)
            finish(token, head, d * 8 + lane % 4 * 2, pw_mul(rows[t].sums[d][2 * h], share),
                   pw_mul(rows[t].sums[d][2 * h + 1], share));
        }
      }
    }
    __syncthreads();
    first = last;
  }
  if constexpr (PARTS > 1) {
    const int token0 = begin();
    // Phase 5, split-KV only: the last block of a tile and group adds all parts. The others return,
    // so no block waits.
    if (!pw_last_to_arrive(shared, parts.arrived + tile() * GROUPS + group, PARTS)) return;
    constexpr int fours = WIDTH / 4;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < (end() - token0) * SHARE * fours; i += threads) {
      const int row = i / fours, column4 = i % fours * 4, token = token0 + row / SHARE;
      const int head = group * SHARE + row % SHARE;
      float y[4];
      pw_add_attended<PARTS>([&](int of) { return sums_of(of, token, head); }, WIDTH, column4,
                             pw_load(at.seen, token) == 0, factor, y);
      finish(token, head, column4, y[0], y[1]);
      finish(token, head, column4 + 2, y[2], y[3]);
    }
  }
}
#endif
