#ifndef PW_TENSOR_ATTENTION
#define PW_TENSOR_ATTENTION
// Attention on tensor cores, over keys and values in pages. Stands after tensor_cores.cu.
//
// The order of sums, of one row of queries (backends/attention_order.hpp is the same on the host):
// keys go in blocks of KEYS, block b to strand b % STRANDS of part b / STRANDS % PARTS. A score is
// one chain of fused multiply-adds; `factor` is what turns it into a power of two: the scale, times
// log2 e. Within a strand, for each block: the largest score so far; where it grew, what was summed
// is multiplied by 2 to the power of what it grew by, lower; each weight is 2 to the power of its
// score less the largest (one fused multiply-add of the score, the factor and the largest times the
// factor). Weights are added in f32, key j of a block in part j % 8 / 2 of four, ascending; rounded
// to the operands' dtype they are multiplied with the values, one chain of fused multiply-adds a
// column, keys ascending. At the end parts 0 and 1, parts 2 and 3, then both sums are added;
// strands are multiplied by 2 to the power of their largest less that of all of the part, and
// added, ascending; parts of keys the same way; then sums are multiplied by 1 / the weights' sum.

/// Words of 16 bytes that a key has in shared memory: a multiple of 8.
template <int WIDTH>
struct pw_key {
  enum : int { words = (WIDTH / 8 + 7) / 8 * 8 };
};
/// `mine` and that of the lane whose number differs in a bit.
PW_FUNCTION float pw_larger_of(float mine, int distance) {
  return pw_larger(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
PW_FUNCTION float pw_sum_of(float mine, int distance) {
  return pw_add(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
/// The most of what the lanes have that differ in their row.
PW_FUNCTION int pw_most_of_rows(int mine) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) {
    const int other = __shfl_xor_sync(0xffffffffu, mine, distance);
    mine = other > mine ? other : mine;
  }
  return mine;
}
/// What is taken from a score times the factor; nothing where no key was seen.
PW_FUNCTION float pw_shift(float largest, float factor) {
  return largest == -pw_float(0x7f800000u) ? 0.0f : pw_mul(largest, factor);
}
/// What sums are multiplied by where the largest score grew.
PW_FUNCTION float pw_shrink(float before, float after, float factor) {
  return before == after ? 1.0f : pw_power2(pw_fma(before, factor, -pw_shift(after, factor)));
}
/// What sums are multiplied by at the end; 0 where no key was seen.
PW_FUNCTION float pw_share(bool none, float total) { return none ? 0.0f : pw_div(1.0f, total); }

struct pw_pages {
  const long long *tables, *seen, *pages;
};

/// Sums of one part of the keys, of the rows of two tokens or heads that a lane has.
template <int WIDTH>
struct pw_attended {
  float largest[2], total[2], sums[WIDTH / 8][4];
};

/// The place of the word `further` words on, an even number, in the row of `place`, the place of
/// one of its first two.
PW_FUNCTION int pw_further(int place, int further) {
  return (place ^ further % 8) + further / 8 * 8;
}

/// Of a block's tiles of 16 rows, the first row of a warp's t-th: each second round of tiles goes
/// the other way, so that warps have as many keys where later rows see more.
template <int DOWN>
PW_FUNCTION int pw_first_row(int warp, int t) {
  return 16 * (t * DOWN + (t % 2 == 0 ? warp : DOWN - 1 - warp));
}

/// One block of keys of one warp's rows. KEYS keys begin at `keys` and `values` in shared memory,
/// the queries at `queries`; a row sees the first `seen` of them, none of a tile more than `most`.
/// WHOLE: each sees all.
template <class T, bool WHOLE, int DOWN, int KEYS, int WIDTH, int TALL, class S>
PW_FUNCTION void pw_attend_block(S& shared, int warp, int queries, int keys, int values,
                                 const int (&seen)[TALL][2], const int (&most)[TALL], float factor,
                                 pw_attended<WIDTH> (&rows)[TALL]) {
  constexpr int words = pw_key<WIDTH>::words, steps = WIDTH / 16;
  const float least = -pw_float(0x7f800000u);
  const int lane = pw_here((int)threadIdx.x % 32);
  const int of_queries = queries + pw_word<words>(lane % 16, lane / 16);
  const int of_keys = keys + pw_word<words>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  const int of_values = values + pw_word<words>(lane % 16, lane / 16);
  // Of 16 keys: some row of a tile, or of any, sees one.
  const auto sees = [&](int t, int j) { return WHOLE || 16 * j < most[t]; };
  const auto seen_by_any = [&](int j) {
    bool any = false;
#pragma unroll
    for (int t = 0; t < TALL; ++t) any |= sees(t, j);
    return any;
  };
  float scores[TALL][KEYS / 8][4];
#pragma unroll
  for (int t = 0; t < TALL; ++t)
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[t][j][e] = 0.0f;
#pragma unroll(TALL == 1 ? 2 : 1)
  for (int s = 0; s < steps; ++s) {
    pw_fragment left[TALL];
#pragma unroll
    for (int t = 0; t < TALL; ++t)
      if (sees(t, 0))
        left[t] =
            pw_rows(shared, pw_further(of_queries + pw_first_row<DOWN>(warp, t) * words, 2 * s));
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      if (!seen_by_any(j)) break;
      const pw_fragment right = pw_rows(shared, pw_further(of_keys, 2 * s) + 16 * j * words);
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        if (!sees(t, j)) continue;
        pw_mma(T(), scores[t][2 * j], left[t], right.r[0], right.r[1]);
        pw_mma(T(), scores[t][2 * j + 1], left[t], right.r[2], right.r[3]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    pw_attended<WIDTH>& row = rows[t];
    if (!sees(t, 0)) continue;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = row.largest[h];
      if (const int own = WHOLE ? KEYS : seen[t][h] - lane % 4 * 2; own < KEYS) {
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            scores[t][j][2 * h + e] = j * 8 + e < own ? scores[t][j][2 * h + e] : least;
      }
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) largest = pw_larger(largest, scores[t][j][2 * h + e]);
      largest = pw_larger_of(pw_larger_of(largest, 1), 2);
      if (largest != row.largest[h]) {
        const float shrink = pw_shrink(row.largest[h], largest, factor);
        row.largest[h] = largest;
        row.total[h] = pw_mul(row.total[h], shrink);
#pragma unroll
        for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            row.sums[d][2 * h + e] = pw_mul(row.sums[d][2 * h + e], shrink);
      }
      const float shift = pw_shift(largest, factor);
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = scores[t][j][2 * h + e];
          score = pw_power2(pw_fma(score, factor, -shift));
          row.total[h] = pw_add(row.total[h], score);
        }
    }
  }
#pragma unroll
  for (int j = 0; j < KEYS / 16; ++j) {
    if (!seen_by_any(j)) break;
    pw_fragment weights[TALL];
#pragma unroll
    for (int t = 0; t < TALL; ++t)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float* two = &scores[t][2 * j + r / 2][r % 2 * 2];
        weights[t].r[r] = pw_narrow_two(T(), two[0], two[1]);
      }
#pragma unroll
    for (int d = 0; d < WIDTH / 16; ++d) {
      const pw_fragment right = pw_columns(shared, pw_further(of_values, 2 * d) + 16 * j * words);
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        if (!sees(t, j)) continue;
        pw_mma(T(), rows[t].sums[2 * d], weights[t], right.r[0], right.r[1]);
        pw_mma(T(), rows[t].sums[2 * d + 1], weights[t], right.r[2], right.r[3]);
      }
    }
  }
}

/// The strands of a warp's tiles of rows, added up by the first; one tile after the other, in the
/// same place.
template <int STRANDS, int WIDTH, int TALL, class S>
PW_FUNCTION void pw_add_strands(S& shared, int tile, int strand, float factor,
                                pw_attended<WIDTH> (&rows)[TALL]) {
  constexpr int each = 1 + WIDTH / 8;
  const float least = -pw_float(0x7f800000u);
  const int lane = pw_here((int)threadIdx.x % 32);
  const auto place = [&](int of, int i) { return ((tile * STRANDS + of) * each + i) * 32 + lane; };
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    pw_attended<WIDTH>& row = rows[t];
    if (t > 0) __syncthreads();
    pw_put(shared, place(strand, 0),
           uint4{pw_bits(row.largest[0]), pw_bits(row.largest[1]), pw_bits(row.total[0]),
                 pw_bits(row.total[1])});
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d)
      pw_put(shared, place(strand, 1 + d),
             uint4{pw_bits(row.sums[d][0]), pw_bits(row.sums[d][1]), pw_bits(row.sums[d][2]),
                   pw_bits(row.sums[d][3])});
    __syncthreads();
    if (strand != 0) continue;
    float most[2] = {least, least};
    for (int s = 0; s < STRANDS; ++s) {
      const uint4 other = pw_at(shared, place(s, 0));
      most[0] = pw_larger(most[0], pw_float(other.x));
      most[1] = pw_larger(most[1], pw_float(other.y));
    }
#pragma unroll 1
    for (int s = 0; s < STRANDS; ++s) {
      const uint4 other = pw_at(shared, place(s, 0));
      const float shrink[2] = {pw_shrink(pw_float(other.x), most[0], factor),
                               pw_shrink(pw_float(other.y), most[1], factor)};
      const float add[2] = {pw_mul(pw_float(other.z), shrink[0]),
                            pw_mul(pw_float(other.w), shrink[1])};
      for (int h = 0; h < 2; ++h) row.total[h] = s == 0 ? add[h] : pw_add(row.total[h], add[h]);
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d) {
        const uint4 part = pw_at(shared, place(s, 1 + d));
        const unsigned w[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float x = pw_mul(pw_float(w[e]), shrink[e / 2]);
          row.sums[d][e] = s == 0 ? x : pw_add(row.sums[d][e], x);
        }
      }
    }
    row.largest[0] = most[0];
    row.largest[1] = most[1];
  }
}

/// Where blocks that have parts of the keys leave their sums: [PARTS, tokens, heads, WIDTH + 4], a
/// row being WIDTH sums, the largest score, the weights' sum and two unused. `arrived` is a number
/// for each tile of tokens and group of heads, 0 before and after.
struct pw_sums {
  float* sums;
  int* arrived;
};

/// One row of all parts, added in their order: `columns` four of its sums.
template <int PARTS, class R>
PW_FUNCTION void pw_add_attended(const R& row, int width, int column, bool none, float factor,
                                 float (&sums)[4]) {
  constexpr int at_once = PARTS < 16 ? PARTS : 16;
  float most = -pw_float(0x7f800000u), total = 0.0f;
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

/// A block has some tokens, and of each the heads of one group of keys: DOWN x TALL tiles of 16
/// rows, TALL of them a warp's, and for each DOWN STRANDS warps. A warp leaves out keys that none
/// of its rows sees. Blocks begin in the order of their numbers: first those of the last tokens,
/// which see the most keys, of all groups and PARTS parts of the keys. Tokens of different
/// sequences are done one after the other, so that nothing of one reaches another. finish(token,
/// head, column, y0, y1) stores. Where there are parts, the last block of a tile and group that is
/// done adds them.
template <class T, int DOWN, int TALL, int STRANDS, int KEYS, int WIDTH, int SHARE, int GROUPS,
          int PAGE, int PARTS, class S, class F>
PW_FUNCTION void pw_attention(S& shared, const unsigned short* q, const unsigned short* k,
                              const unsigned short* v, const pw_pages& at, const pw_sums& parts,
                              long long tokens, float factor, const F& finish) {
  constexpr int words = pw_key<WIDTH>::words, used = WIDTH / 8, threads = 32 * DOWN * STRANDS;
  constexpr int block = KEYS * STRANDS, stage = 2 * block * words, all_rows = DOWN * TALL * 16;
  constexpr int per_tile = DOWN == 1 ? 1 : all_rows / SHARE;
  const float least = -pw_float(0x7f800000u);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, strand = warp % STRANDS;
  const int all = (int)tokens, tiles = (all + per_tile - 1) / per_tile;
  const int number_of_block = (int)(blockIdx.y * tiles + blockIdx.x);
  const int column = number_of_block % (GROUPS * PARTS), group = column % GROUPS;
  const int tile = tiles - 1 - number_of_block / (GROUPS * PARTS), token0 = tile * per_tile;
  const int part = PARTS == 1 ? 0 : column / GROUPS;
  const auto end = [&] {
    const int next = pw_here(token0) + per_tile;  // takes no register meanwhile
    return next < all ? next : all;
  };
  const auto token_of = [&](int row) {
    return row < per_tile * SHARE ? token0 + row / SHARE : all;
  };
  const auto row_of = [&](int t, int h) {
    return pw_here(pw_first_row<DOWN>(warp / STRANDS, t) + h * 8 + lane / 4);
  };
  const auto sums_of = [&](int of, int token, int head) {
    return parts.sums + ((of * tokens + token) * (SHARE * GROUPS) + head) * (WIDTH + 4);
  };
  // Stages, or what strands add; then queries.
  constexpr int added = STRANDS > 1 ? DOWN * STRANDS * 32 * (1 + used) : 0;
  constexpr int queries = 2 * stage > added ? 2 * stage : added;
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < all_rows * used; i += threads) {
    const int row = i / used, word = i % used;
    const int own = token_of(row);
    const long long from =
        ((long long)own * SHARE * GROUPS + group * SHARE + row % SHARE) * WIDTH + word * 8;
    pw_put(shared, queries + pw_word<words>(row, word),
           own < end() ? pw_load((const uint4*)(q + from), 0) : uint4{0, 0, 0, 0});
  }

  for (int first = token0; first < end();) {
    const int table = (int)pw_load(at.tables, first);
    int last = first, limit = 0;
    // Loads that do not wait for what the one before says.
#pragma unroll(per_tile < 8 ? per_tile : 8)
    for (int i = first; i < end(); ++i) {
      const int keys = (int)pw_load(at.seen, i);
      const bool own = ((int)pw_load(at.tables, i) == table) & (last == i);
      limit = own && keys > limit ? keys : limit;
      last = own ? i + 1 : last;
    }
    const auto fetch = [&](int number) {
      const int to = number / PARTS % 2 * stage;
#pragma unroll 1
      for (int i = pw_here((int)threadIdx.x); i < block * used; i += threads) {
        const int key = i / used, word = i % used, place = to + pw_word<words>(key, word);
        const int j = number * block + key;
        const bool take = j < limit;
        const int row = take ? (int)pw_load(at.pages, table + j / PAGE) * PAGE + j % PAGE : 0;
        const long long from = ((long long)row * GROUPS + group) * WIDTH + word * 8;
        pw_copy_async(shared, place, k + from, take);
        pw_copy_async(shared, place + block * words, v + from, take);
      }
    };
    // The token of one of a lane's rows; -1 where it is none of these.
    const auto own_token = [&](int t, int h) {
      const int token = token_of(row_of(t, h));
      return token >= first && token < last ? token : -1;
    };
    const auto seen_of = [&](int token) { return token < 0 ? 0 : (int)pw_load(at.seen, token); };
    // Keys that a tile's rows see at most; the least of those of the warp that have a token, 0
    // where none of a tile has; from the next block of the strand on.
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
        rows[t].largest[h] = least;
        rows[t].total[h] = 0.0f;
      }
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) rows[t].sums[d][e] = 0.0f;
      most = pw_most_of_rows(most);
      least_left = most == 0 ? 0 : least_left;
      most_left[t] = most - part * block - strand * KEYS;
    }
    least_left = -pw_most_of_rows(-least_left) - part * block - strand * KEYS;

    if (part * block < limit) fetch(part);
    pw_commit();
#pragma unroll 1
    for (int number = part; number * block < limit; number += PARTS) {
      if ((number + PARTS) * block < limit) fetch(number + PARTS);
      pw_commit();
      pw_wait<1>();
      __syncthreads();
      const int keys = number / PARTS % 2 * stage + strand * KEYS * words;
      bool any = false;
#pragma unroll
      for (int t = 0; t < TALL; ++t) any |= most_left[t] > 0;
      int seen[TALL][2] = {};
      if (any && least_left >= KEYS) {
        pw_attend_block<T, true, DOWN, KEYS, WIDTH, TALL>(shared, warp / STRANDS, queries, keys,
                                                          keys + block * words, seen, most_left,
                                                          factor, rows);
      } else if (any) {
#pragma unroll
        for (int t = 0; t < TALL; ++t)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            seen[t][h] = seen_of(own_token(t, h)) - number * block - strand * KEYS;
        pw_attend_block<T, false, DOWN, KEYS, WIDTH, TALL>(shared, warp / STRANDS, queries, keys,
                                                           keys + block * words, seen, most_left,
                                                           factor, rows);
      }
#pragma unroll
      for (int t = 0; t < TALL; ++t) most_left[t] -= PARTS * block;
      least_left -= PARTS * block;
      __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < TALL; ++t)
#pragma unroll
      for (int h = 0; h < 2; ++h) rows[t].total[h] = pw_sum_of(pw_sum_of(rows[t].total[h], 1), 2);
    if constexpr (STRANDS > 1)
      pw_add_strands<STRANDS, WIDTH, TALL>(shared, warp / STRANDS, strand, factor, rows);
    if (strand == 0) {
#pragma unroll
      for (int t = 0; t < TALL; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = row_of(t, h), token = token_of(row);
          if (token < first || token >= last) continue;
          const int head = group * SHARE + row % SHARE;
          const float total = rows[t].total[h];
          if constexpr (PARTS > 1) {
            float* const to = sums_of(part, token, head);
            if (lane % 4 == 0) pw_write2(to + WIDTH, pw_bits(rows[t].largest[h]), pw_bits(total));
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
    if (!pw_last_to_arrive(shared, parts.arrived + tile * GROUPS + group, PARTS)) return;
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
