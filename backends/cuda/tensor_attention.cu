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

/// One block of keys of one warp's rows. KEYS keys begin at `keys` and `values` in shared memory,
/// the queries at row `query`; a row sees the first `seen` of them.
template <class T, int KEYS, int WIDTH, int TALL, class S>
PW_FUNCTION void pw_attend_block(S& shared, int query, int keys, int values,
                                 const int (&seen)[TALL][2], float factor,
                                 pw_attended<WIDTH> (&rows)[TALL]) {
  constexpr int words = pw_key<WIDTH>::words, steps = WIDTH / 16;
  const float least = -pw_float(0x7f800000u);
  const int lane = (int)threadIdx.x % 32;
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
      left[t] = pw_rows(shared, query + pw_word<words>(t * 16 + lane % 16, 2 * s + lane / 16));
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      const int key = 16 * j + lane / 16 * 8 + lane % 8;
      const pw_fragment right = pw_rows(shared, keys + pw_word<words>(key, 2 * s + lane / 8 % 2));
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        pw_mma(T(), scores[t][2 * j], left[t], right.r[0], right.r[1]);
        pw_mma(T(), scores[t][2 * j + 1], left[t], right.r[2], right.r[3]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < TALL; ++t) {
    pw_attended<WIDTH>& row = rows[t];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float most = row.largest[h];
      const int own = seen[t][h] - lane % 4 * 2;
      if (own < KEYS) {
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            scores[t][j][2 * h + e] = j * 8 + e < own ? scores[t][j][2 * h + e] : least;
      }
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) most = pw_larger(most, scores[t][j][2 * h + e]);
      most = pw_larger_of(pw_larger_of(most, 1), 2);
      if (most != row.largest[h]) {
        const float shrink = pw_shrink(row.largest[h], most, factor);
        row.largest[h] = most;
        row.total[h] = pw_mul(row.total[h], shrink);
#pragma unroll
        for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            row.sums[d][2 * h + e] = pw_mul(row.sums[d][2 * h + e], shrink);
      }
      const float shift = pw_shift(most, factor);
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
      const pw_fragment right =
          pw_columns(shared, values + pw_word<words>(16 * j + lane % 16, 2 * d + lane / 16));
#pragma unroll
      for (int t = 0; t < TALL; ++t) {
        pw_mma(T(), rows[t].sums[2 * d], weights[t], right.r[0], right.r[1]);
        pw_mma(T(), rows[t].sums[2 * d + 1], weights[t], right.r[2], right.r[3]);
      }
    }
  }
}

/// The strands of a tile of rows, added up by the first.
template <int STRANDS, int WIDTH, class S>
PW_FUNCTION void pw_add_strands(S& shared, int tile, int strand, float factor,
                                pw_attended<WIDTH>& row) {
  constexpr int each = 1 + WIDTH / 8;
  const float least = -pw_float(0x7f800000u);
  const int lane = (int)threadIdx.x % 32;
  const auto place = [&](int of, int i) { return ((tile * STRANDS + of) * each + i) * 32 + lane; };
  pw_put(shared, place(strand, 0),
         uint4{pw_bits(row.largest[0]), pw_bits(row.largest[1]), pw_bits(row.total[0]),
               pw_bits(row.total[1])});
#pragma unroll
  for (int d = 0; d < WIDTH / 8; ++d)
    pw_put(shared, place(strand, 1 + d),
           uint4{pw_bits(row.sums[d][0]), pw_bits(row.sums[d][1]), pw_bits(row.sums[d][2]),
                 pw_bits(row.sums[d][3])});
  __syncthreads();
  if (strand != 0) return;
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

/// A block has some tokens, and of each the heads of one group of keys: DOWN x TALL tiles of 16
/// rows, TALL of them a warp's, and for each DOWN STRANDS warps. Blocks begin in the order of their
/// numbers: first those of the last tokens, which see the most keys, of all groups and PARTS parts
/// of the keys. Tokens of different sequences are done one after the other, so that nothing of
/// one reaches another. finish(part, token, head, column, y0, y1) stores; or, where there are
/// parts, keep(part, token, head, largest, total) and then finish the sums.
template <class T, int DOWN, int TALL, int STRANDS, int KEYS, int WIDTH, int SHARE, int GROUPS,
          int PAGE, int PARTS, class S, class K, class F>
PW_FUNCTION void pw_attention(S& shared, const unsigned short* q, const unsigned short* k,
                              const unsigned short* v, const pw_pages& at, long long tokens,
                              float factor, const K& keep, const F& finish) {
  constexpr int words = pw_key<WIDTH>::words, used = WIDTH / 8, threads = 32 * DOWN * STRANDS;
  constexpr int block = KEYS * STRANDS, stage = 2 * block * words, own_rows = TALL * 16;
  constexpr int per_tile = DOWN == 1 ? 1 : DOWN * own_rows / SHARE;
  const float least = -pw_float(0x7f800000u);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, strand = warp % STRANDS;
  const int row0 = warp / STRANDS * own_rows;
  const int all = (int)tokens, tiles = (all + per_tile - 1) / per_tile;
  const int number_of_block = (int)(blockIdx.y * tiles + blockIdx.x);
  const int column = number_of_block % (GROUPS * PARTS), group = column % GROUPS;
  const int token0 = (tiles - 1 - number_of_block / (GROUPS * PARTS)) * per_tile;
  const int part = PARTS == 1 ? 0 : column / GROUPS;
  const int end = token0 + per_tile < all ? token0 + per_tile : all;
  const auto token_of = [&](int row) {
    return row < per_tile * SHARE ? token0 + row / SHARE : all;
  };
  constexpr int queries = 2 * stage;
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < DOWN * own_rows * used; i += threads) {
    const int row = i / used, word = i % used;
    const int own = token_of(row);
    const long long from =
        ((long long)own * SHARE * GROUPS + group * SHARE + row % SHARE) * WIDTH + word * 8;
    pw_put(shared, queries + pw_word<words>(row, word),
           own < end ? pw_load((const uint4*)(q + from), 0) : uint4{0, 0, 0, 0});
  }

  for (int first = token0; first < end;) {
    const long long table = pw_load(at.tables, first);
    int last = first, limit = 0;
    do {
      const int keys = (int)pw_load(at.seen, last);
      limit = keys > limit ? keys : limit;
    } while (++last < end && pw_load(at.tables, last) == table);
    const long long* const pages = at.pages + table;
    const int blocks = (limit + block - 1) / block;
    const auto fetch = [&](int number, int count) {
      const int to = count % 2 * stage;
#pragma unroll 1
      for (int i = (int)threadIdx.x; i < block * used; i += threads) {
        const int key = i / used, word = i % used, place = to + pw_word<words>(key, word);
        const int j = number * block + key;
        const bool take = j < limit;
        const long long row = take ? pw_load(pages, j / PAGE) * PAGE + j % PAGE : 0;
        const long long from = (row * GROUPS + group) * WIDTH + word * 8;
        pw_copy_async(shared, place, k + from, take);
        pw_copy_async(shared, place + block * words, v + from, take);
      }
    };
    int seen[TALL][2];
    pw_attended<WIDTH> rows[TALL];
#pragma unroll
    for (int t = 0; t < TALL; ++t) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int token = token_of(pw_here(row0 + t * 16 + h * 8 + lane / 4));
        seen[t][h] = token >= first && token < last ? (int)pw_load(at.seen, token) : 0;
        rows[t].largest[h] = least;
        rows[t].total[h] = 0.0f;
      }
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e) rows[t].sums[d][e] = 0.0f;
    }

    if (part < blocks) fetch(part, 0);
    pw_commit();
    int count = 0;
#pragma unroll 1
    for (int number = part; number < blocks; number += PARTS, ++count) {
      if (number + PARTS < blocks) fetch(number + PARTS, count + 1);
      pw_commit();
      pw_wait<1>();
      __syncthreads();
      const int own = strand * KEYS * words, keys = count % 2 * stage + own;
      int left[TALL][2];
#pragma unroll
      for (int t = 0; t < TALL; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) left[t][h] = seen[t][h] - number * block - strand * KEYS;
      pw_attend_block<T, KEYS, WIDTH, TALL>(shared, queries + row0 * words, keys,
                                            keys + block * words, left, factor, rows);
      __syncthreads();
    }
#pragma unroll
    for (int t = 0; t < TALL; ++t)
#pragma unroll
      for (int h = 0; h < 2; ++h) rows[t].total[h] = pw_sum_of(pw_sum_of(rows[t].total[h], 1), 2);
    if constexpr (STRANDS > 1)
      pw_add_strands<STRANDS, WIDTH>(shared, warp / STRANDS, strand, factor, rows[0]);
    if (strand == 0) {
#pragma unroll
      for (int t = 0; t < TALL; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = pw_here(row0 + t * 16 + h * 8 + lane / 4), token = token_of(row);
          if (token < first || token >= last) continue;
          const int head = group * SHARE + row % SHARE;
          const float total = rows[t].total[h];
          const float share = PARTS > 1 ? 1.0f : pw_share(seen[t][h] == 0, total);
          if (PARTS > 1 && lane % 4 == 0) keep(part, token, head, rows[t].largest[h], total);
#pragma unroll
          for (int d = 0; d < WIDTH / 8; ++d) {
            const float y0 = rows[t].sums[d][2 * h], y1 = rows[t].sums[d][2 * h + 1];
            finish(part, token, head, d * 8 + lane % 4 * 2, PARTS > 1 ? y0 : pw_mul(y0, share),
                   PARTS > 1 ? y1 : pw_mul(y1, share));
          }
        }
    }
    __syncthreads();
    first = last;
  }
}

/// A row of parts is WIDTH sums, the largest score, the weights' sum and two unused.
template <int WIDTH>
struct pw_part_row {
  enum : int { floats = WIDTH + 4 };
};

/// A block has a token, a thread 4 columns of one of its heads. finish(token, head, column, y0,
/// y1).
template <int PARTS, int HEADS, int WIDTH, class F>
PW_FUNCTION void pw_add_attended(const float* parts, const long long* seen, long long tokens,
                                 float factor, const F& finish) {
  constexpr int floats = pw_part_row<WIDTH>::floats;
  const int i = (int)(blockIdx.y * blockDim.x + threadIdx.x) * 4;
  if (i >= HEADS * WIDTH) return;
  const long long token = blockIdx.x;
  const int head = i / WIDTH, column = i % WIDTH;
  const auto row = [&](int part) {
    return parts + ((part * tokens + token) * HEADS + head) * floats;
  };
  float most = -pw_float(0x7f800000u), total = 0.0f, sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll(PARTS < 8 ? PARTS : 8)
  for (int part = 0; part < PARTS; ++part) most = pw_larger(most, pw_load(row(part), WIDTH));
#pragma unroll(PARTS < 8 ? PARTS : 8)
  for (int part = 0; part < PARTS; ++part) {
    const float shrink = pw_shrink(pw_load(row(part), WIDTH), most, factor);
    const float add = pw_mul(pw_load(row(part), WIDTH + 1), shrink);
    total = part == 0 ? add : pw_add(total, add);
    const pw_words<4> four = pw_read<4>(row(part) + column);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float x = pw_mul(pw_float(four.w[e]), shrink);
      sums[e] = part == 0 ? x : pw_add(sums[e], x);
    }
  }
  const float share = pw_share(pw_load(seen, token) == 0, total);
#pragma unroll
  for (int e = 0; e < 4; e += 2)
    finish(token, head, column + e, pw_mul(sums[e], share), pw_mul(sums[e + 1], share));
}
#endif
