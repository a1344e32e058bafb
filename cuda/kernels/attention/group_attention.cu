#ifndef PW_GROUP_ATTENTION
#define PW_GROUP_ATTENTION
// Attention over paged keys and values by warpgroups of sm_90, for blocks of many rows. Follows
// tensor_attention.cu and has its order of sums, with one strand and one part.
//
// Algorithm: FlashAttention-2 on `wgmma`, with the overlap of FlashAttention-3 (Shah et al. 2024):
// while the tensor cores multiply the values by the weights of one block of keys, the warps compute
// the weights of the next block's scores. A warpgroup has 64 rows. Scores (queries times KEYS keys)
// and weighted sums of values are warpgroup products (warpgroups.cu). Queries, keys and values are
// in shared memory as panels of 64 columns; weights stay in registers.
//
// Invariant: accumulators are read or rescaled only after the products that write them have
// completed, and a stage of shared memory is overwritten only after all products that read it.
// Cost: keys and values are read once for each block of DOWN · 16 rows.

/// The kernel. A block has some tokens and, for each, the heads of one group of keys: DOWN warps of
/// 16 rows each. Blocks launch in the order of their numbers: the last tokens first, since they see
/// the most keys, for all groups. All threads copy the next block of keys and values while the
/// current one is multiplied. Keys after a sequence's last one are zeros, and their scores are
/// masked. Tokens of different sequences are processed one sequence after another, so that no
/// sequence affects another's results. finish(token, head, column, y0, y1) stores.
template <class T, int DOWN, int KEYS, int WIDTH, int SHARE, int GROUPS, int PAGE, class S, class F>
PW_FUNCTION void pw_group_attention(S& shared, const unsigned short* q, const unsigned short* k,
                                    const unsigned short* v, const pw_pages& at, long long tokens,
                                    float factor, const F& finish) {
  static_assert(DOWN % 4 == 0 && WIDTH % 64 == 0 && KEYS % 64 == 0, "whole groups and panels");
  constexpr int threads = 32 * DOWN, all_rows = 16 * DOWN, per_block = all_rows / SHARE;
  // Sizes in words: a row, a block of keys or values, a panel of keys, a panel of queries.
  constexpr int used = WIDTH / 8, step = KEYS * used, panel = KEYS * 8, query_panel = all_rows * 8;
  constexpr int values = 2 * step, queries = 4 * step;  // offsets: values follow two blocks of keys
  const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int own_word = thread % used, own_row = thread / used;
  const int all = (int)tokens, tiles = (all + per_block - 1) / per_block;
  const int number = (int)blockIdx.y * tiles + (int)blockIdx.x, group = number % GROUPS;
  const int begin = (tiles - 1 - number / GROUPS) * per_block;
  const int end = begin + per_block < all ? begin + per_block : all;
  const auto token_of = [&](int row) {
    const int token = begin + row / SHARE;
    return row < per_block * SHARE && token < end ? token : all;
  };
  // A multiple of 8 rows, so that all copies of a thread have the same swizzle.
  constexpr int apart = threads / used;  // rows that are copied at a time
  static_assert(apart % 8 == 0, "words move alike");
  const auto place = [&](int panel_words) {
    return own_word / 8 * panel_words + pw_word<8>((unsigned)own_row, own_word % 8);
  };
#pragma unroll 1
  for (int i = 0; i < all_rows; i += apart) {
    const int row = i + own_row;
    if (row >= all_rows) break;
    const bool take = token_of(row) < all;
    const long long head =
        (long long)(take ? token_of(row) : 0) * SHARE * GROUPS + group * SHARE + row % SHARE;
    pw_copy_async(shared, queries + place(query_panel) + i * 8, q + head * WIDTH + own_word * 8,
                  take);
  }
  // The rows that a thread copies have the same place in their pages if pages and rows align.
  constexpr bool fit = (apart % PAGE == 0 || PAGE % apart == 0) && KEYS % PAGE == 0;
  constexpr int of_row = GROUPS * WIDTH;  // elements
  const int own_first = (fit ? own_row % PAGE * of_row : 0) + group * WIDTH + own_word * 8;
  const char* const own_k = (const char*)pw_here(k + own_first);
  const char* const own_v = (const char*)pw_here(v + own_first);
  const pw_matrix of_keys = pw_matrix_at(shared, 0, 0);
  const pw_matrix of_values = pw_matrix_at(shared, values, panel);

#pragma unroll 1
  // One iteration for each run of tokens of one sequence, as in pw_attention.
  for (int first = begin; first < end;) {
    const pw_run run = pw_run_from(at, first, end, lane);
    const int rounds = pw_of_warp((run.limit + KEYS - 1) / KEYS);
    // The pages of this thread's rows of a key block, or the rows themselves, looked up before the
    // copy.
    constexpr int copies = (KEYS + apart - 1) / apart;
    unsigned next[copies], slots[copies];
    const auto is_row = [&](int i) { return KEYS % apart == 0 || i * apart + own_row < KEYS; };
    const auto look_up = [&](int round) {
      const int there = run.limit - round * KEYS - own_row;
      const long long* const pages =
          at.pages + (run.table + round * (KEYS / PAGE) + (unsigned)own_row / PAGE);
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        next[i] = 0;
        if (!is_row(i) || i * apart >= there) continue;
        const unsigned key = (unsigned)(round * KEYS + i * apart + own_row);
        next[i] = fit ? (unsigned)pw_load(pages, i * apart / PAGE)
                      : (unsigned)pw_load(at.pages, run.table + key / PAGE) * PAGE + key % PAGE;
      }
    };
    const auto copy = [&](int round, int to, const char* own, const unsigned(&from)[copies]) {
      constexpr unsigned row_bytes = 2 * of_row, each = fit ? PAGE * row_bytes : row_bytes;
      const int there = run.limit - round * KEYS, first_word = place(panel);
      const auto one = [&](int i, bool take) {
        const int in_page = fit ? i * apart % PAGE : 0;
        pw_copy_async(shared, to + (round & 1) * step + first_word + i * apart * 8,
                      own + (unsigned long long)from[i] * each + in_page * row_bytes, take);
      };
      if (KEYS % apart == 0 && there >= KEYS) {
#pragma unroll
        for (int i = 0; i < copies; ++i) one(i, true);
      } else {
#pragma unroll
        for (int i = 0; i < copies; ++i)
          if (is_row(i)) one(i, i * apart < there - own_row);
      }
    };
    look_up(0);
    if (rounds > 0) copy(0, 0, own_k, next);
    pw_commit();

    // Keys that the rows of this lane see, and the maximum over its group.
    int seen[2], most = 0;
    const auto own_token = [&](int row) {
      const int token = token_of(row);
      return token >= first && token < run.last ? token : -1;
    };
    const auto seen_of = [&](int row) {
      const int token = own_token(row);
      return token < 0 ? 0 : (int)pw_load(at.seen, token);
    };
    const auto row_of = [&](int h) { return 16 * warp + 8 * h + lane / 4; };
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int other = seen_of(warp / 4 * 64 + 32 * h + lane);
      most = other > most ? other : most;
      seen[h] = seen_of(row_of(h));
    }
    const int own_rounds = pw_of_warp((pw_most_of_warp(most) + KEYS - 1) / KEYS);
    pw_attended<WIDTH> row;
    float scores[KEYS / 8][4];
    pw_fragment weights[KEYS / 16];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      row.base[h] = pw_no_base();
      row.total[h] = 0.0f;
    }
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d)
#pragma unroll
      for (int e = 0; e < 4; ++e) row.sums[d][e] = 0.0f;
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[j][e] = 0.0f;

    const auto multiply_keys = [&](int round) {
      // Recomputed each time; otherwise the places of all columns would occupy registers.
      const int own_group = pw_of_warp(pw_here((int)threadIdx.x) / 128);
      const pw_matrix of_queries = pw_matrix_at(shared, queries + own_group * (64 * 8), 0);
      const pw_matrix own = pw_matrix_on(of_keys, pw_of_warp(round & 1) * step);
#pragma unroll
      for (int s = 0; s < WIDTH / 16; ++s)
        pw_multiply<false>(T(), shared, scores,
                           pw_matrix_on(of_queries, s / 4 * query_panel + s % 4 * 2),
                           pw_matrix_on(own, s / 4 * panel + s % 4 * 2), s > 0);
      pw_commit_products();
    };
    const auto multiply_values = [&](int round) {
      const pw_matrix own = pw_matrix_on(of_values, pw_of_warp(round & 1) * step);
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j)
        pw_multiply<true>(T(), shared, row.sums, weights[j], pw_matrix_on(own, j * (16 * 8)));
      pw_commit_products();
    };
    // Between the weights and the rescaling, the accumulators of earlier products are awaited.
    const auto weigh = [&](int round) {
      pw_hold(scores);
      float largest[2], shift[2], shrink[2];
      const int hidden = round * KEYS + lane % 4 * 2;
      const int own[2] = {seen[0] - hidden, seen[1] - hidden};
      if (own[0] < KEYS - 6 || own[1] < KEYS - 6) {  // 6 more than this lane's last key
        pw_hide_scores(scores, 0, own[0]);
        pw_hide_scores(scores, 1, own[1]);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) largest[h] = pw_largest_of_row(scores, h);
      const bool grown = pw_new_bases(row, largest, factor, shift, shrink);
#pragma unroll
      for (int h = 0; h < 2; ++h)
        row.total[h] = pw_weigh(scores, h, shift[h], factor, row.total[h]);
      pw_wait_for_products<0>();
      pw_hold(row.sums);
      pw_hold(weights);
      if (grown) pw_shrink_sums(row, shrink);
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j) weights[j] = pw_weights_of(T(), scores, j);
    };
#pragma unroll 1
    for (int round = 0; round <= rounds; ++round) {
      pw_wait<0>();
      pw_show_to_products();
      __syncthreads();
      // Copies are issued while products run.
      const auto fetch = [&] {
#pragma unroll
        for (int i = 0; i < copies; ++i) slots[i] = next[i];
        look_up(round + 1);
        if (round < rounds) copy(round, values, own_v, slots);
        if (round + 1 < rounds) copy(round + 1, 0, own_k, next);
        pw_commit();
      };
      if (round > own_rounds || own_rounds == 0) {
        fetch();
        continue;
      }
      if (round == own_rounds) {
        pw_begin_products();
        multiply_values(round - 1);
        fetch();
        pw_wait_for_products<0>();
        pw_hold(row.sums);
      } else if (round == 0) {
        pw_begin_products();
        multiply_keys(0);
        fetch();
        pw_wait_for_products<0>();
        weigh(0);
      } else {
        pw_begin_products();
        multiply_keys(round);
        multiply_values(round - 1);
        fetch();
        pw_wait_for_products<1>();
        weigh(round);
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float total = pw_sum_of(pw_sum_of(row.total[h], 1), 2);
      const int token = own_token(row_of(h)), head = group * SHARE + row_of(h) % SHARE;
      const float share = pw_share(seen[h] == 0, total);
      if (token < 0) continue;
#pragma unroll
      for (int d = 0; d < WIDTH / 8; ++d)
        finish(token, head, d * 8 + lane % 4 * 2, pw_mul(row.sums[d][2 * h], share),
               pw_mul(row.sums[d][2 * h + 1], share));
    }
    first = run.last;
  }
}
#endif
