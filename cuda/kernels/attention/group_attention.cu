#ifndef PW_GROUP_ATTENTION
#define PW_GROUP_ATTENTION
// Attention over paged keys and values by warpgroups of sm_90, for blocks of many rows. Follows
// tensor_attention.cu and has its order of sums, with one strand and one part.
//
// Algorithm: FlashAttention-3 (Shah et al. 2024) without its tensor memory accelerator. A warpgroup
// has 64 rows; scores (queries times KEYS keys) and weighted sums of values are warpgroup products
// (warpgroups.cu). Queries, keys and values are in shared memory as panels of 64 columns; weights
// stay in registers. Three things overlap with the products:
//
// * Copies: a further warpgroup only copies, and gives most of its registers to the others.
// * Within a group: while the values of one block of keys are multiplied by their weights, the
//   weights of the next block's scores are computed.
// * Between groups: they start their products in turns, so that one computes weights while the
//   tensor cores work for another. Without turns all would compute weights at the same time.
//
// Keys and values have two places each. A place is filled and freed in phases, which are numbered
// by the blocks of keys since the start.
//
// Invariant: accumulators are read or rescaled only after the products that write them have
// completed, and a place is overwritten only after all products that read it. Waits have no cycle:
// a block is copied in the order of its use, is announced once the next one has a place, and gets
// its place from a block that was used two rounds before; turns have a fixed order.
// Cost: keys and values are read once for each block of DOWN · 16 rows.

/// Barriers of the kernel: filled and freed places of keys and values, two each, then turns.
enum : int {
  pw_keys_full = 0,
  pw_values_full = 2,
  pw_keys_free = 4,
  pw_values_free = 6,
  pw_group_turn = 8
};

/// Where a block of threads is: rows of some tokens, with the heads of one group of keys each.
template <int ROWS, int SHARE, int GROUPS>
struct pw_rows_of_block {
  enum : int { tokens = ROWS / SHARE };
  int group, begin, end, all;
  PW_FUNCTION pw_rows_of_block at(int all) {
    const int tiles = (all + tokens - 1) / tokens;
    const int number = (int)blockIdx.y * tiles + (int)blockIdx.x;
    const int begin = (tiles - 1 - number / GROUPS) * tokens;
    return {number % GROUPS, begin, begin + tokens < all ? begin + tokens : all, all};
  }
  /// Returns the token of a row, or the number of all tokens if it has none.
  PW_FUNCTION int token_of(const pw_rows_of_block& b, int row) {
    const int token = b.begin + row / SHARE;
    return row < tokens * SHARE && token < b.end ? token : b.all;
  }
};

/// The warpgroup that copies: the queries with the first keys, then the keys of a round and the
/// values of the round before. Two copies are under way: a block is announced when it has arrived
/// and the next has been started. Keys after a sequence's last one are zeros.
template <int ROWS, int KEYS, int WIDTH, int SHARE, int GROUPS, int PAGE, class S, class B>
PW_FUNCTION void pw_copy_for_groups(S& shared, B& barriers, int thread, const unsigned short* q,
                                    const unsigned short* k, const unsigned short* v,
                                    const pw_pages& at,
                                    const pw_rows_of_block<ROWS, SHARE, GROUPS>& block) {
  typedef pw_rows_of_block<ROWS, SHARE, GROUPS> pw_own_rows;
  constexpr int used = WIDTH / 8, step = KEYS * used, stride = 128 / used;  // rows copied at a time
  static_assert(stride % 8 == 0 && KEYS % stride == 0 && ROWS % stride == 0, "words move alike");
  const int own_word = thread % used, own_row = thread / used;
  const auto place = [&](int panel_words) {
    return own_word / 8 * panel_words + pw_word<8>((unsigned)own_row, own_word % 8);
  };
#pragma unroll 1
  for (int i = 0; i < ROWS; i += stride) {
    const int token = pw_own_rows::token_of(block, i + own_row);
    const bool take = token < block.all;
    const long long head = (long long)(take ? token : 0) * SHARE * GROUPS + block.group * SHARE +
                           (i + own_row) % SHARE;
    pw_copy_async(shared, 4 * step + place(ROWS * 8) + i * 8, q + head * WIDTH + own_word * 8,
                  take);
  }
  // The rows that a thread copies have the same place in their pages if pages and rows align.
  constexpr bool fit = (stride % PAGE == 0 || PAGE % stride == 0) && KEYS % PAGE == 0;
  constexpr int of_row = GROUPS * WIDTH;  // elements
  const int own_first = (fit ? own_row % PAGE * of_row : 0) + block.group * WIDTH + own_word * 8;
  const int first_word = place(KEYS * 8);
  int last = -1;  // barrier of the block under way
  const auto announce = [&] {
    pw_show_to_products();
    pw_arrive(barriers, last);
  };
  int done = 0;
#pragma unroll 1
  for (int first = block.begin; first < block.end;) {
    const pw_run run = pw_run_from(at, first, block.end, thread % 32);
    const int rounds = pw_of_warp((run.limit + KEYS - 1) / KEYS);
    const auto copy = [&](int round, int full, int free, int words, const unsigned short* from) {
      const int number = done + round, which = number & 1, to = words + which * step;
      pw_await(barriers, free + which, number / 2 - 1);
      constexpr unsigned row_bytes = 2 * of_row, each = fit ? PAGE * row_bytes : row_bytes;
      const char* const own = (const char*)(from + own_first);
      const int there = run.limit - round * KEYS - own_row;
      const long long* const pages =
          at.pages + (run.table + round * (KEYS / PAGE) + (unsigned)own_row / PAGE);
#pragma unroll 8
      for (int i = 0; i < KEYS / stride; ++i) {
        const bool take = i * stride < there;
        unsigned row = 0;
        if (take) {
          const unsigned key = (unsigned)(round * KEYS + i * stride + own_row);
          row = fit ? (unsigned)pw_load(pages, i * stride / PAGE)
                    : (unsigned)pw_load(at.pages, run.table + key / PAGE) * PAGE + key % PAGE;
        }
        const int in_page = fit ? i * stride % PAGE : 0;
        pw_copy_async(shared, to + first_word + i * stride * 8,
                      own + (unsigned long long)row * each + in_page * row_bytes, take);
      }
      pw_commit();
      if (last >= 0) {
        pw_wait<1>();
        announce();
      }
      last = full + which;
    };
#pragma unroll 1
    for (int round = 0; round <= rounds; ++round) {
      if (round < rounds) copy(round, pw_keys_full, pw_keys_free, 0, k);
      if (round > 0) copy(round - 1, pw_values_full, pw_values_free, 2 * step, v);
    }
    done += rounds;
    first = run.last;
  }
  pw_wait<0>();
  if (last >= 0) announce();
}

/// The kernel. A block has some tokens and, for each, the heads of one group of keys: DOWN warps of
/// 16 rows each, and four warps that copy. Blocks launch in the order of their numbers: the last
/// tokens first, since they see the most keys, for all groups. Tokens of different sequences are
/// processed one sequence after another, so that no sequence affects another's results.
/// finish(token, head, column, y0, y1) stores.
template <class T, int DOWN, int KEYS, int WIDTH, int SHARE, int GROUPS, int PAGE, class S, class B,
          class F>
PW_FUNCTION void pw_group_attention(S& shared, B& barriers, const unsigned short* q,
                                    const unsigned short* k, const unsigned short* v,
                                    const pw_pages& at, long long tokens, float factor,
                                    const F& finish) {
  static_assert(DOWN % 4 == 0 && WIDTH % 64 == 0 && KEYS % 64 == 0, "whole groups and panels");
  constexpr int all_rows = 16 * DOWN, teams = DOWN / 4;
  typedef pw_rows_of_block<all_rows, SHARE, GROUPS> pw_own_rows;
  // Sizes in words: a block of keys or values, a panel of keys, a panel of queries.
  constexpr int step = KEYS * (WIDTH / 8), panel = KEYS * 8, query_panel = all_rows * 8;
  const int thread = (int)threadIdx.x, lane = thread % 32, warp = pw_of_warp(thread / 32);
  const pw_own_rows block = pw_own_rows::at((int)tokens);
  if (thread == 0) {
    for (int i = 0; i < 4; ++i) pw_prepare_phases(barriers, pw_keys_full + i, 4);
    for (int i = 0; i < 4; ++i) pw_prepare_phases(barriers, pw_keys_free + i, DOWN);
    for (int i = 0; i < teams; ++i) pw_prepare_phases(barriers, pw_group_turn + i, 4);
  }
  __syncthreads();
  // Registers of a thread at the start, of copying warps, and of the others.
  constexpr int mean = 65536 / (32 * DOWN + 128) / 8 * 8, few = teams == 2 ? 40 : 32,
                many = (mean * (teams + 1) - few) / teams / 8 * 8;
  if (warp >= DOWN) {
    if (teams > 1) pw_fewer_registers<few>();
    return pw_copy_for_groups<all_rows, KEYS, WIDTH, SHARE, GROUPS, PAGE>(
        shared, barriers, thread - 32 * DOWN, q, k, v, at, block);
  }
  if (teams > 1) pw_more_registers<(many < 240 ? many : 240)>();
  const pw_matrix of_keys = pw_matrix_at(shared, 0, 0);
  const pw_matrix of_values = pw_matrix_at(shared, 2 * step, panel);
  const int team = warp / 4;
  int done = 0, turn = 0;

#pragma unroll 1
  // One iteration for each run of tokens of one sequence, as in pw_attention.
  for (int first = block.begin; first < block.end;) {
    const pw_run run = pw_run_from(at, first, block.end, lane);
    const int rounds = pw_of_warp((run.limit + KEYS - 1) / KEYS);

    // Keys that the rows of this lane see, and the maximum over its group.
    int seen[2], most = 0;
    const auto own_token = [&](int row) {
      const int token = pw_own_rows::token_of(block, row);
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

    const auto multiply_keys = [&](int number) {
      // Recomputed each time; otherwise the places of all columns would occupy registers.
      const int own_team = pw_of_warp(pw_here((int)threadIdx.x) / 128);
      const pw_matrix of_queries = pw_matrix_at(shared, 4 * step + own_team * (64 * 8), 0);
      const pw_matrix own = pw_matrix_on(of_keys, pw_of_warp(number & 1) * step);
#pragma unroll
      for (int s = 0; s < WIDTH / 16; ++s)
        pw_multiply<false>(T(), shared, scores,
                           pw_matrix_on(of_queries, s / 4 * query_panel + s % 4 * 2),
                           pw_matrix_on(own, s / 4 * panel + s % 4 * 2), s > 0);
      pw_commit_products();
    };
    const auto multiply_values = [&](int number) {
      const pw_matrix own = pw_matrix_on(of_values, pw_of_warp(number & 1) * step);
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j)
        pw_multiply<true>(T(), shared, row.sums, weights[j], pw_matrix_on(own, j * (16 * 8)));
      pw_commit_products();
    };
    const auto await_values = [&](int number) {
      pw_await(barriers, pw_values_full + (number & 1), number / 2);
    };
    const auto free_keys = [&](int number) { pw_arrive(barriers, pw_keys_free + (number & 1)); };
    const auto free_values = [&](int number) {
      pw_arrive(barriers, pw_values_free + (number & 1));
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
    const auto pass_turn = [&] {
      pw_arrive(barriers, pw_group_turn + (team + 1 < teams ? team + 1 : 0));
      ++turn;
    };
    // A round multiplies its own keys and the values of the round before.
#pragma unroll 1
    for (int round = 0; round <= rounds; ++round) {
      const int number = done + round;
      if (round < rounds) pw_await(barriers, pw_keys_full + (number & 1), number / 2);
      pw_await(barriers, pw_group_turn + team, team == 0 ? turn - 1 : turn);
      if (round > own_rounds || own_rounds == 0) {
        pass_turn();
        if (round < rounds) free_keys(number);
        if (round > 0) {
          await_values(number - 1);
          free_values(number - 1);
        }
        continue;
      }
      if (round == own_rounds) {
        await_values(number - 1);
        pw_begin_products();
        multiply_values(number - 1);
        pass_turn();
        pw_wait_for_products<0>();
        pw_hold(row.sums);
        if (round < rounds) free_keys(number);
        free_values(number - 1);
      } else if (round == 0) {
        pw_begin_products();
        multiply_keys(number);
        pass_turn();
        pw_wait_for_products<0>();
        free_keys(number);
        weigh(0);
      } else {
        pw_begin_products();
        multiply_keys(number);
        await_values(number - 1);
        pw_begin_products();
        multiply_values(number - 1);
        pass_turn();
        pw_wait_for_products<1>();
        free_keys(number);
        weigh(round);
        free_values(number - 1);
      }
    }
    done += rounds;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float total = pw_sum_of(pw_sum_of(row.total[h], 1), 2);
      const int token = own_token(row_of(h)), head = block.group * SHARE + row_of(h) % SHARE;
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
