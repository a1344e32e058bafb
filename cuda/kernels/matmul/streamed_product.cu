#ifndef PW_STREAMED_PRODUCT
#define PW_STREAMED_PRODUCT
// Matrix products y = finish(x · wᵀ) of few rows of x. Their time is that of one read of w. Follows
// teams.cu.
//
// Algorithm: SPLIT warps compute a column of y. Each thread reads groups of 8 neighbours of the
// column's row of w, AHEAD groups before it multiplies them. The first groups of the next column
// are under way while the last ones of a column are multiplied, so memory is never idle between
// columns. Blocks have columns in turn.
//
// Invariant: a sum has the order of a reduction over DEPTH columns in a row program (teams.cpp).
// Group c of 8 belongs to lane c mod LANES, a lane adds in ascending order, and lanes are combined
// pairwise, the farthest first. A warp has the lanes of which (lane / 32) mod SPLIT is its number,
// so neither SPLIT nor the number of blocks changes a bit. Products of 16-bit and 8-bit floats are
// exact in f32, so a fused multiply-add is a multiplication and an addition. Weights with scales
// are multiplied by theirs first; their products are rounded before they are added.
//
// Cost: w is read once for each ROWS rows of x.

struct pw_of_bf16 {
  typedef unsigned short stored;
  PW_FUNCTION float from(stored x) { return pw_from_bf16(x); }
};
struct pw_of_f16 {
  typedef unsigned short stored;
  PW_FUNCTION float from(stored x) { return pw_from_f16(x); }
};
struct pw_of_f8e4m3 {
  typedef unsigned char stored;
  PW_FUNCTION float from(stored x) { return pw_from_f8e4m3(x); }
};
struct pw_of_f8e5m2 {
  typedef unsigned char stored;
  PW_FUNCTION float from(stored x) { return pw_from_f8e5m2(x); }
};

struct pw_of_f32 {
  typedef float stored;
  PW_FUNCTION float from(stored x) { return x; }
};

// Reads words that no kernel writes and that are needed once: past the first-level cache. It is
// volatile, so that the compiler keeps all reads of a thread under way instead of waiting for each.
template <int N>
PW_FUNCTION pw_words<N> pw_read_once(const void* p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  pw_words<N> v;
  if constexpr (N == 4)
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                 : "l"(p));
  else
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];"
                 : "=r"(v.w[0]), "=r"(v.w[1])
                 : "l"(p));
  return v;
#else
  return pw_read<N>(p);
#endif
}

// Returns group `group` of 8 elements of a row of DEPTH; elements beyond it are zeros. WIDE: each
// group is whole and aligned. ONCE: see pw_read_once.
template <class W, long long DEPTH, bool WIDE, bool ONCE>
PW_FUNCTION pw_words<2 * sizeof(typename W::stored)> pw_group(const typename W::stored* row,
                                                              long long group) {
  constexpr int words = 2 * sizeof(typename W::stored);
  if constexpr (WIDE && ONCE) {
    return pw_read_once<words>(row + 8 * group);
  } else if constexpr (WIDE) {
    return pw_read<words>(row + 8 * group);
  } else {
    pw_words<words> v = {};
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (8 * group + e < DEPTH) pw_insert<typename W::stored>(v, e, pw_load(row, 8 * group + e));
    }
    return v;
  }
}

// Returns `place` with its bits below `count`, a power of two, reversed.
PW_FUNCTION constexpr int pw_reversed(int place, int count) {
  int out = 0;
  for (int bit = 1; bit < count; bit *= 2) out = out * 2 + (place / bit) % 2;
  return out;
}

// Adds the sums of lanes as a binary counter does: the lanes come in bit-reversed order, in which
// the pairs of the tree are neighbours.
template <int ROWS>
PW_FUNCTION void pw_count_up(float (&levels)[4][ROWS], float (&sums)[ROWS], int place) {
#pragma unroll
  for (int level = 0; level < 4; ++level) {
    if ((place >> level) % 2 == 0) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) levels[level][r] = sums[r];
      return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = pw_sum<float>::of(levels[level][r], sums[r]);
  }
}

// Keeps reads of shared memory of a step after those of the step before. Otherwise the assembler
// moves all reads of a column to its start, and their results do not fit into registers.
PW_FUNCTION void pw_begin_step() {
#if defined(__CUDA_ARCH__)
  __syncwarp();
#endif
}

// Combines the sums of the warps of a column, the farthest first; those of its first warp result.
template <int SPLIT, int COUNT, class S>
PW_FUNCTION void pw_meet_warps(S& meeting, int at, int part, int lane, float (&sums)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) pw_put(meeting, at + (part * COUNT + i) * 32 + lane, sums[i]);
  __syncthreads();
  if (part != 0) return;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    float all[SPLIT];
#pragma unroll
    for (int p = 0; p < SPLIT; ++p) all[p] = pw_at(meeting, at + (p * COUNT + i) * 32 + lane);
#pragma unroll
    for (int d = SPLIT / 2; d > 0; d /= 2) {
#pragma unroll
      for (int p = 0; p < d; ++p) all[p] = pw_sum<float>::of(all[p], all[p + d]);
    }
    sums[i] = all[0];
  }
}

// Computes `turns` times PARTS columns of `count` rows, at most ROWS. x(row, group) returns a group
// of x, whose elements are A, column(turn, part) the row of w, scale(row of w, group) its scale if
// SCALED, and finish(row, turn, sums) takes the PARTS sums of a row.
// All threads of block `block` of BLOCKS call it. `meeting` has room for two turns of all warps, if
// SPLIT > 1. STEPWISE: reads of x in shared memory stay within their step.
template <class W, class A, bool SCALED, int ROWS, int PARTS, int WARPS, int SPLIT, int LANES,
          int EACH, int AHEAD, long long DEPTH, bool WIDE, long long BLOCKS, bool STEPWISE, class S,
          class X, class Column, class Scale, class Finish>
PW_FUNCTION void pw_stream(S& meeting, const typename W::stored* w, long long turns,
                           long long block, int count, const X& x, const Column& column,
                           const Scale& scale, const Finish& finish) {
  constexpr int words = 2 * sizeof(typename W::stored);
  constexpr int own = (LANES > 32 ? LANES / 32 : 1) / SPLIT, steps = own * EACH;
  constexpr int teams = WARPS / SPLIT;
  static_assert(own >= 1 && own <= 16 && steps % AHEAD == 0, "a ring of whole turns");
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const int part = warp % SPLIT, team = warp / SPLIT;
  const auto group_at = [&](int step) -> long long {
    const int m = pw_reversed(step / EACH, own) * SPLIT + part;
    return 32 * m + lane + (long long)LANES * (step % EACH);
  };
  const auto has = [&](int step) {
    return (LANES >= 32 || lane < LANES) && 8 * group_at(step) < DEPTH;
  };
  pw_words<words> ahead[AHEAD];
  float scales[AHEAD];  // of the groups ahead, if SCALED
  const auto fetch = [&](int step, long long turn, int p) {
    ahead[step % AHEAD] = {};
    scales[step % AHEAD] = 0.0f;
    if (turn < turns && has(step)) {
      const long long row = column(turn, p);
      ahead[step % AHEAD] = pw_group<W, DEPTH, WIDE, true>(w + row * DEPTH, group_at(step));
      if constexpr (SCALED) scales[step % AHEAD] = scale(row, group_at(step));
    }
  };
  long long first = block * teams;
#pragma unroll
  for (int step = 0; step < AHEAD; ++step) fetch(step, first + team, 0);
  for (int odd = 0; first < turns; first += BLOCKS * teams, odd ^= 1) {
    const long long turn = first + team;
    float sums[PARTS * ROWS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      float levels[4][ROWS], own_sums[ROWS];
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step % EACH == 0) {
#pragma unroll
          for (int r = 0; r < ROWS; ++r) own_sums[r] = pw_sum<float>::start();
        }
        float values[8];
#pragma unroll
        for (int e = 0; e < 8; ++e)
          values[e] = W::from(pw_take<typename W::stored>(ahead[step % AHEAD], e));
        if constexpr (SCALED) {
#pragma unroll
          for (int e = 0; e < 8; ++e) values[e] = pw_mul(values[e], scales[step % AHEAD]);
        }
        if (step + AHEAD < steps)
          fetch(step + AHEAD, turn, p);
        else if (p + 1 < PARTS)
          fetch(step + AHEAD - steps, turn, p + 1);
        else
          fetch(step + AHEAD - steps, turn + BLOCKS * teams, 0);
        if constexpr (STEPWISE) pw_begin_step();
        if (has(step)) {
#pragma unroll
          for (int r = 0; r < ROWS; ++r) {
            const auto row = x(r < count ? r : count - 1, group_at(step));
#pragma unroll
            for (int e = 0; e < 8; ++e) {
              if (!WIDE && 8 * group_at(step) + e >= DEPTH) continue;
              const float of_x = A::from(pw_take<typename A::stored>(row, e));
              own_sums[r] = SCALED ? pw_add(own_sums[r], pw_mul(of_x, values[e]))
                                   : pw_fma(of_x, values[e], own_sums[r]);
            }
          }
        }
        if (step % EACH == EACH - 1) pw_count_up<ROWS>(levels, own_sums, step / EACH);
      }
#pragma unroll
      for (int r = 0; r < ROWS; ++r) sums[p * ROWS + r] = own_sums[r];
    }
    if constexpr (SPLIT > 1)
      pw_meet_warps<SPLIT, PARTS * ROWS>(meeting, (odd * teams + team) * SPLIT * PARTS * ROWS * 32,
                                         part, lane, sums);
    if (part != 0) continue;
#pragma unroll
    for (int d = (LANES < 32 ? LANES : 32) / 2; d > 0; d /= 2) {
#pragma unroll
      for (int i = 0; i < PARTS * ROWS; ++i)
        sums[i] = pw_pair<float, pw_sum<float>>(sums[i], d, lane);
    }
    // A row is finished by the lane of its number, which has no sum if there are fewer lanes.
#pragma unroll
    for (int d = LANES; d < ROWS; d *= 2) {
#pragma unroll
      for (int i = 0; i < PARTS * ROWS; ++i) {
        const float other = __shfl_xor_sync(0xffffffffu, sums[i], d);
        if (lane & d) sums[i] = other;
      }
    }
    float mine[PARTS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      mine[p] = sums[p * ROWS];
#pragma unroll
      for (int r = 1; r < ROWS; ++r)
        if (lane == r) mine[p] = sums[p * ROWS + r];
    }
    if (lane < count && turn < turns) finish(lane, turn, mine);
  }
}

// Several products in one grid, each of which may read results of earlier ones.
//
// A block takes its number when it starts, so blocks with lower numbers have started too. Blocks of
// a product may thus wait for those of the product before, which have lower numbers and wait for
// even lower ones: the first never wait. No more than one block need be resident.
//
// `state` has the number of blocks that started, for each product but the last the blocks that
// finished it, and the number of blocks that left. It is 0 before and after the launch.
#if defined(pw_block_in_order)  // emulation
// Blocks run in any order and have their own numbers, so that a block may have to wait. Blocks with
// lower numbers run until the count is complete, and none after that.
PW_FUNCTION int pw_next_block(int* state, int across) {
  pw_count_up(state);
  return pw_block_in_order(across);
}
PW_FUNCTION void pw_await_count(const int* finished, int all, int number) {
  for (int before = 1; *finished != all; ++before) {
    if (before > number) pw_host->fault("awaited blocks were not counted");
    pw_wait_for_blocks_before(before);
  }
}
PW_FUNCTION void pw_work_ends() { pw_host->work_ends(pw_accesses()); }
template <class F>
PW_FUNCTION void pw_counting(const F& count) {
  const long long before = pw_accesses();
  count();
  pw_host->counts(pw_accesses() - before);
}
#else
PW_FUNCTION int pw_next_block(int* state, int) { return pw_count_up(state); }
PW_FUNCTION void pw_work_ends() {}
template <class F>
PW_FUNCTION void pw_counting(const F& count) {
  count();
}
PW_FUNCTION void pw_await_count(const int* finished, int all, int) {
  int count = 0;
  while (true) {
    asm volatile("{ .reg .u64 g; cvta.to.global.u64 g, %1; ld.acquire.gpu.global.s32 %0, [g]; }"
                 : "=r"(count)
                 : "l"(finished)
                 : "memory");
    if (count == all) return;
  }
}
#endif

// Waits until `all` blocks have finished a product; their numbers are below this block's `number`.
// All threads of a block call it.
PW_FUNCTION void pw_await(const int* finished, int all, int number) {
  if (threadIdx.x == 0) pw_await_count(finished, all, number);
  __syncthreads();
}
// Announces that this block has finished a product, and thus accesses nothing but counters from now
// on. All threads call it.
PW_FUNCTION void pw_announce(int* finished) {
  __syncthreads();
  pw_work_ends();
  if (threadIdx.x == 0) pw_counting([&] { pw_count_up(finished); });
}
// Sets the state back to 0 if this block, of `all`, is the last to leave.
PW_FUNCTION void pw_leave_grid(int* state, int products, int all) {
  if (threadIdx.x != 0) return;
  pw_counting([&] {
    if (pw_count_up(state + products) != all - 1) return;
    for (int i = 0; i <= products; ++i) pw_store(state, i, 0);
  });
}

// Brings what pw_stream reads first into the second-level cache, without waiting for it.
template <class W, int WARPS, int SPLIT, int LANES, int EACH, int AHEAD, long long DEPTH,
          class Column>
PW_FUNCTION void pw_fetch_first(const typename W::stored* w, long long turns, long long block,
                                const Column& column) {
#if defined(__CUDA_ARCH__)
  constexpr int own = (LANES > 32 ? LANES / 32 : 1) / SPLIT;
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const long long turn = block * (WARPS / SPLIT) + warp / SPLIT;
  if (turn >= turns || lane >= LANES) return;
  const typename W::stored* const row = w + column(turn, 0) * DEPTH;
#pragma unroll
  for (int step = 0; step < AHEAD; ++step) {
    const int m = pw_reversed(step / EACH, own) * SPLIT + warp % SPLIT;
    const long long group = 32 * m + lane + (long long)LANES * (step % EACH);
    if (8 * group < DEPTH) asm volatile("prefetch.global.L2 [%0];" ::"l"(row + 8 * group));
  }
#endif
}

#endif
