#ifndef PW_TENSOR_ATTENTION
#define PW_TENSOR_ATTENTION
// Attention on tensor cores, over keys and values in pages. Stands after tensor_cores.cu.
//
// The order of sums, of one row of queries (backends/attention_order.hpp is the same on the host):
// keys go in blocks of KEYS, block b to strand b % STRANDS. A score is one chain of fused
// multiply-adds, then multiplied by the scale. Within a strand, for each block: the largest score
// so far; what was summed is multiplied by the exponential of what it grew by, lower; each weight
// is the exponential of its score less the largest. Weights are added in f32, key j of a block in
// part j % 8 / 2 of four, ascending; rounded to the operands' dtype they are multiplied with the
// values, one chain of fused multiply-adds a column, keys ascending. At the end parts 0 and 1,
// parts 2 and 3, then both sums are added; strands are multiplied by the exponential of their
// largest less that of all, and added, ascending; then there is one division.

/// Words of 16 bytes that a key has in shared memory: a multiple of 8.
template <int WIDTH>
struct pw_key {
  enum : int { words = (WIDTH / 8 + 7) / 8 * 8 };
};
/// `mine` and that of the lane whose number differs in a bit.
PW_FUNCTION float pw_larger_of(float mine, int distance) {
  return pw_maximum(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
PW_FUNCTION float pw_sum_of(float mine, int distance) {
  return pw_add(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
}
/// What sums are multiplied by where the largest score grew.
PW_FUNCTION float pw_shrink(float before, float after) {
  return before == after ? 1.0f : pw_exp(pw_sub(before, after));
}

struct pw_pages {
  const long long *tables, *seen, *pages;
};

/// A block has some tokens, and of each the heads of one group of keys: DOWN tiles of 16 rows, and
/// for each tile STRANDS warps. Tokens of different sequences are done one after the other, so that
/// nothing of one reaches another. finish(token, head, column, y0, y1) stores.
template <class T, int DOWN, int STRANDS, int KEYS, int WIDTH, int SHARE, int GROUPS, int PAGE,
          class S, class F>
PW_FUNCTION void pw_attention(S& shared, const unsigned short* q, const unsigned short* k,
                              const unsigned short* v, const pw_pages& at, long long tokens,
                              float scale, const F& finish) {
  constexpr int words = pw_key<WIDTH>::words, used = WIDTH / 8, threads = 32 * DOWN * STRANDS;
  constexpr int block = KEYS * STRANDS, stage = 2 * block * words;
  constexpr int per_tile = DOWN == 1 ? 1 : DOWN * 16 / SHARE, steps = WIDTH / 16;
  const float least = -pw_float(0x7f800000u);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, strand = warp % STRANDS;
  const long long token0 = (long long)blockIdx.x * per_tile, group = blockIdx.y;
  const long long end = token0 + per_tile < tokens ? token0 + per_tile : tokens;
  long long token[2];
  int head[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = warp / STRANDS * 16 + h * 8 + lane / 4;
    token[h] = row < per_tile * SHARE ? token0 + row / SHARE : tokens;
    head[h] = (int)group * SHARE + row % SHARE;
  }
  constexpr int queries = 2 * stage;
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < DOWN * 16 * used; i += threads) {
    const int row = i / used, word = i % used;
    const long long own = row < per_tile * SHARE ? token0 + row / SHARE : tokens;
    const long long from = (own * SHARE * GROUPS + group * SHARE + row % SHARE) * WIDTH + word * 8;
    pw_put(shared, queries + pw_word<words>(row, word),
           own < end ? *(const uint4*)(q + from) : uint4{0, 0, 0, 0});
  }

  for (long long first = token0; first < end;) {
    const long long table = at.tables[first];
    long long last = first, limit = 0;
    for (; last < end && at.tables[last] == table; ++last)
      limit = at.seen[last] > limit ? at.seen[last] : limit;
    const int blocks = (int)((limit + block - 1) / block);
    const auto fetch = [&](int number) {
      const int to = number % 2 * stage;
#pragma unroll 1
      for (int i = (int)threadIdx.x; i < block * used; i += threads) {
        const int key = i / used, word = i % used, place = to + pw_word<words>(key, word);
        const long long j = (long long)number * block + key;
        const bool take = j < limit;
        const long long row = take ? at.pages[table + j / PAGE] * PAGE + j % PAGE : 0;
        const long long from = (row * GROUPS + group) * WIDTH + word * 8;
        pw_copy_async(shared, place, k + from, take);
        pw_copy_async(shared, place + block * words, v + from, take);
      }
    };
    long long seen[2];
    float largest[2], total[2], sums[WIDTH / 8][4];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      seen[h] = token[h] >= first && token[h] < last ? at.seen[token[h]] : 0;
      largest[h] = least;
      total[h] = 0.0f;
    }
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[d][e] = 0.0f;

    if (blocks > 0) fetch(0);
    pw_commit();
#pragma unroll 1
    for (int number = 0; number < blocks; ++number) {
      if (number + 1 < blocks) fetch(number + 1);
      pw_commit();
      pw_wait<1>();
      __syncthreads();
      const int keys = number % 2 * stage, values = keys + block * words;
      float scores[KEYS / 8][4];
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[j][e] = 0.0f;
#pragma unroll 2
      for (int s = 0; s < steps; ++s) {
        const pw_fragment left = pw_rows(
            shared, queries + pw_word<words>(warp / STRANDS * 16 + lane % 16, 2 * s + lane / 16));
#pragma unroll
        for (int j = 0; j < KEYS / 16; ++j) {
          const int key = strand * KEYS + 16 * j + lane / 16 * 8 + lane % 8;
          const pw_fragment right =
              pw_rows(shared, keys + pw_word<words>(key, 2 * s + lane / 8 % 2));
          pw_mma(T(), scores[2 * j], left, right.r[0], right.r[1]);
          pw_mma(T(), scores[2 * j + 1], left, right.r[2], right.r[3]);
        }
      }
      const long long key0 = (long long)number * block + strand * KEYS + lane % 4 * 2;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = least;
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = scores[j][2 * h + e];
            score = key0 + j * 8 + e < seen[h] ? pw_mul(score, scale) : least;
            most = pw_maximum(most, score);
          }
        most = pw_maximum(largest[h], pw_larger_of(pw_larger_of(most, 1), 2));
        const float shrink = pw_shrink(largest[h], most);
        largest[h] = most;
        total[h] = pw_mul(total[h], shrink);
#pragma unroll
        for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
          for (int e = 0; e < 2; ++e) sums[d][2 * h + e] = pw_mul(sums[d][2 * h + e], shrink);
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& score = scores[j][2 * h + e];
            score = key0 + j * 8 + e < seen[h] ? pw_exp(pw_sub(score, most)) : 0.0f;
            total[h] = pw_add(total[h], score);
          }
      }
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j) {
        pw_fragment weights;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float* two = &scores[2 * j + r / 2][r % 2 * 2];
          weights.r[r] = T::narrow(two[0]) | T::narrow(two[1]) << 16;
        }
#pragma unroll
        for (int d = 0; d < WIDTH / 16; ++d) {
          const int key = strand * KEYS + 16 * j + lane % 16;
          const pw_fragment right =
              pw_columns(shared, values + pw_word<words>(key, 2 * d + lane / 16));
          pw_mma(T(), sums[2 * d], weights, right.r[0], right.r[1]);
          pw_mma(T(), sums[2 * d + 1], weights, right.r[2], right.r[3]);
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) total[h] = pw_sum_of(pw_sum_of(total[h], 1), 2);

    if constexpr (STRANDS > 1) {
      constexpr int each = 1 + WIDTH / 8;
      const auto place = [&](int of, int i) {
        return ((warp / STRANDS * STRANDS + of) * each + i) * 32 + lane;
      };
      pw_put(shared, place(strand, 0),
             uint4{pw_bits(largest[0]), pw_bits(largest[1]), pw_bits(total[0]), pw_bits(total[1])});
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
        pw_put(shared, place(strand, 1 + d),
               uint4{pw_bits(sums[d][0]), pw_bits(sums[d][1]), pw_bits(sums[d][2]),
                     pw_bits(sums[d][3])});
      __syncthreads();
      if (strand == 0) {
        float most[2] = {least, least};
        for (int s = 0; s < STRANDS; ++s) {
          const uint4 other = pw_at(shared, place(s, 0));
          most[0] = pw_maximum(most[0], pw_float(other.x));
          most[1] = pw_maximum(most[1], pw_float(other.y));
        }
#pragma unroll 1
        for (int s = 0; s < STRANDS; ++s) {
          const uint4 other = pw_at(shared, place(s, 0));
          const float shrink[2] = {pw_shrink(pw_float(other.x), most[0]),
                                   pw_shrink(pw_float(other.y), most[1])};
          const float add[2] = {pw_mul(pw_float(other.z), shrink[0]),
                                pw_mul(pw_float(other.w), shrink[1])};
          for (int h = 0; h < 2; ++h) total[h] = s == 0 ? add[h] : pw_add(total[h], add[h]);
#pragma unroll
          for (int d = 0; d < WIDTH / 8; ++d) {
            const uint4 part = pw_at(shared, place(s, 1 + d));
            const unsigned w[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const float x = pw_mul(pw_float(w[e]), shrink[e / 2]);
              sums[d][e] = s == 0 ? x : pw_add(sums[d][e], x);
            }
          }
        }
      }
    }
    if (strand == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (token[h] < first || token[h] >= last) continue;
#pragma unroll
        for (int d = 0; d < WIDTH / 8; ++d)
          finish(token[h], head[h], d * 8 + lane % 4 * 2,
                 seen[h] == 0 ? 0.0f : pw_div(sums[d][2 * h], total[h]),
                 seen[h] == 0 ? 0.0f : pw_div(sums[d][2 * h + 1], total[h]));
      }
    }
    __syncthreads();
    first = last;
  }
}
#endif
