#ifndef PW_TENSOR_PRODUCT
#define PW_TENSOR_PRODUCT
// Matrix products y = finish(a · b) on tensor cores, tile by tile. Follows tensor_cores.cu.
//
// Algorithm: a block computes BM × BN results. It streams steps of 128 bytes of k through a ring of
// STAGES buffers in shared memory (multistage software pipelining by cp.async), while warps
// multiply earlier steps with `mma`, or warpgroups with `wgmma`. Work is divided by Stream-K (Osama
// et al. 2023) one row of tiles at a time: SHARES blocks divide the steps of a row of tiles
// equally, and a tile that several blocks share is a list of pieces whose sums are added
// afterwards.
//
// Invariant: an element of a piece is one chain of fused multiply-adds from +0, k ascending, which
// is the interpreter's order. The sums of a tile's pieces are added in f32 in ascending order,
// whichever block adds them, so results depend neither on timing nor on other rows. The host runs
// exactly this order. A device adds the products of one instruction (16 or 32 of them) in an
// undocumented order, and the instructions in this order.
//
// Cost: a block reads (BM + BN) · 128 bytes for BM · BN products of each k of a step; a divided
// tile adds one write and one read of its sums for each piece.

/// Builds 16 bytes from single elements: from(e) returns element e.
template <class T, class F>
PW_FUNCTION uint4 pw_assembled(const F& from) {
  constexpr int n = 4 / T::each;
  unsigned w[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = 0;
#pragma unroll
    for (int e = 0; e < n; ++e) w[i] |= from(i * n + e) << e * (32 / n);
  }
  return uint4{w[0], w[1], w[2], w[3]};
}

/// Copies ROWS rows of WORDS words that are STRIDE bytes apart in memory. A thread copies one word
/// of every THREADS / WORDS-th row, from its own first word on. At this distance pw_word permutes
/// words alike, so one address in registers serves all its copies. Rows from `there` on become
/// zeros.
template <int ROWS, int WORDS, int THREADS, long long STRIDE, class S>
PW_FUNCTION void pw_copy_rows(S& shared, int at, const char* from, int there) {
  constexpr int stride = THREADS / WORDS;
  static_assert(stride % 8 == 0, "words move alike");
#pragma unroll
  for (int row = 0; row < ROWS; row += stride)
    if (row + stride <= ROWS || (int)threadIdx.x < (ROWS - row) * WORDS)
      pw_copy_async(shared, at + row * WORDS, from + row * STRIDE, row < there);
}
/// Stores one word in all places that pw_copy_rows would fill.
template <int ROWS, int WORDS, int THREADS, class S>
PW_FUNCTION void pw_fill_rows(S& shared, int at, unsigned word) {
#pragma unroll
  for (int row = 0; row < ROWS; row += THREADS / WORDS)
    if (row + THREADS / WORDS <= ROWS || (int)threadIdx.x < (ROWS - row) * WORDS)
      pw_put(shared, at + row * WORDS, uint4{word, word, word, word});
}

/// Loads a tile of a matrix of any alignment with rows along k, [count, DEPTH]: ROWS rows from row0
/// on, 128 bytes of each from k0 on. Elements beyond DEPTH are OUTSIDE; rows beyond count belong to
/// results that are not stored.
template <class T, int ROWS, int THREADS, long long DEPTH, unsigned OUTSIDE, class S>
PW_FUNCTION void pw_tile_along(S& shared, int at, const typename T::stored* p, long long row0,
                               long long count, long long k0) {
#pragma unroll 2
  for (int i = (int)threadIdx.x; i < ROWS * 8; i += THREADS) {
    const long long k = k0 + i % 8 * (16 / T::each), r = row0 + i / 8;
    pw_put(shared, at + pw_word<8>(i / 8, i % 8), pw_assembled<T>([&](int e) {
             return k + e >= DEPTH ? OUTSIDE & ((1u << 8 * T::each) - 1u)
                    : r < count    ? (unsigned)pw_load(p, r * DEPTH + k + e)
                                   : 0u;
           }));
  }
}
/// Loads the same tile of a matrix with columns along k, [DEPTH, COUNT], transposing it.
template <class T, int ROWS, int THREADS, long long DEPTH, long long COUNT, class S>
PW_FUNCTION void pw_tile_across(S& shared, int at, const typename T::stored* p, long long row0,
                                long long k0) {
#pragma unroll 1
  for (int i = (int)threadIdx.x; i < ROWS * 8; i += THREADS) {
    const long long k = k0 + i / ROWS * (16 / T::each), r = row0 + i % ROWS;
    pw_put(shared, at + pw_word<8>(i % ROWS, i / ROWS), pw_assembled<T>([&](int e) {
             return r < COUNT && k + e < DEPTH ? (unsigned)pw_load(p, (k + e) * COUNT + r) : 0u;
           }));
  }
}
/// Loads 16-bit elements of any alignment in their order, [DEPTH, COUNT]: 64 rows of k with OF_ROW
/// words each, in rows of WORDS.
template <class T, int WORDS, int OF_ROW, int THREADS, long long DEPTH, long long COUNT, class S>
PW_FUNCTION void pw_tile_down(S& shared, int at, const typename T::stored* p, long long column0,
                              long long k0) {
#pragma unroll 2
  for (int i = (int)threadIdx.x; i < 64 * OF_ROW; i += THREADS) {
    const long long k = k0 + i / OF_ROW, c = column0 + i % OF_ROW * 8;
    pw_put(shared, at + pw_word<WORDS>(i / OF_ROW, i % OF_ROW), pw_assembled<T>([&](int e) {
             return k < DEPTH && c + e < COUNT ? (unsigned)pw_load(p, k * COUNT + c + e) : 0u;
           }));
  }
}

/// Stores two neighbours of a row; the second only if `two`.
template <bool EVEN, class R>
PW_FUNCTION void pw_store_pair(R* p, R x0, R x1, bool two) {
  if constexpr (EVEN && sizeof(R) == 4) {
    pw_write2(p, pw_as<R>::to(x0), pw_as<R>::to(x1));
  } else if constexpr (EVEN && sizeof(R) == 2) {
    pw_store((unsigned*)p, 0, (unsigned)x0 | (unsigned)x1 << 16);
  } else if constexpr (EVEN && sizeof(R) == 1) {
    pw_store((unsigned short*)p, 0, (unsigned)x0 | (unsigned)x1 << 8);
  } else {
    pw_store(p, 0, x0);
    if (two) pw_store(p, 1, x1);
  }
}

/// Layouts of b: [columns, depth], or [depth, columns].
enum : int { pw_along = 0, pw_down = 1, pw_across = 2 };

/// Words of a row of b in shared memory. In layout `pw_down` the columns form panels of 64 rows of
/// k with up to 64 columns; otherwise b is stored row by row. Warpgroups require panels whose rows
/// have room for 64.
template <int B, int BN, bool GROUPED>
PW_FUNCTION constexpr int pw_words_of_b() {
  return B == pw_down && BN < 64 && !GROUPED ? BN / 8 : 8;
}
/// Words of a step of b.
template <int BN, bool GROUPED>
PW_FUNCTION constexpr int pw_room_of_b() {
  return (GROUPED ? (BN + 63) / 64 * 64 : BN) * 8;
}

/// Fetches a step of a: 128 bytes of k of BM rows. `from` is this thread's first word if a is WIDE
/// (whole words).
template <class T, int BM, int THREADS, bool WIDE, long long DEPTH, class S>
PW_FUNCTION void pw_fetch_a(S& shared, int at, const typename T::stored* a, const char* from,
                            long long row0, long long rows, long long k0) {
  constexpr unsigned outside = (unsigned)T::zeros;  // times b's +0 it is -0, which changes no sum
  constexpr int deep = 128 / T::each, each = 16 / T::each;
  const int row = (int)threadIdx.x / 8, word = (int)threadIdx.x % 8;
  if constexpr (!WIDE)
    pw_tile_along<T, BM, THREADS, DEPTH, outside>(shared, at, a, row0, rows, k0);
  else if (DEPTH % deep == 0 || k0 + word * each < DEPTH)
    pw_copy_rows<BM, 8, THREADS, DEPTH * T::each>(shared, at + pw_word<8>(row, word), from,
                                                  rows - row0 < BM ? (int)(rows - row0) - row : BM);
  else
    pw_fill_rows<BM, 8, THREADS>(shared, at + pw_word<8>(row, word), outside);
}
/// Fetches a step of b: 128 bytes of k of BN columns.
template <class T, int BN, int THREADS, bool GROUPED, int B, bool WIDE, long long DEPTH,
          long long COLUMNS, class S>
PW_FUNCTION void pw_fetch_b(S& shared, int at, const typename T::stored* b, const char* from,
                            long long column0, long long k0) {
  constexpr int deep = 128 / T::each, each = 16 / T::each;
  constexpr int words = pw_words_of_b<B, BN, GROUPED>();
  constexpr bool whole_k = DEPTH % deep == 0, whole_columns = COLUMNS % BN == 0;
  const int row = (int)threadIdx.x / words, word = (int)threadIdx.x % words;
  if constexpr (B == pw_across) {
    pw_tile_across<T, BN, THREADS, DEPTH, COLUMNS>(shared, at, b, column0, k0);
  } else if constexpr (B == pw_along && WIDE) {
    const int there = whole_columns ? BN : (int)(COLUMNS - column0) - row;
    pw_copy_rows<BN, 8, THREADS, DEPTH * T::each>(shared, at + pw_word<8>(row, word), from,
                                                  whole_k || k0 + word * each < DEPTH ? there : 0);
  } else if constexpr (B == pw_along) {
    pw_tile_along<T, BN, THREADS, DEPTH, 0u>(shared, at, b, column0, COLUMNS, k0);
  } else {
#pragma unroll
    for (int panel = 0; panel < BN / 8; panel += words) {
      if constexpr (!WIDE) {
        constexpr int rest = BN / 8 % words == 0 ? words : BN / 8 % words;
        if (panel + words <= BN / 8)
          pw_tile_down<T, words, words, THREADS, DEPTH, COLUMNS>(shared, at + panel * 64, b,
                                                                 column0 + panel * 8, k0);
        else
          pw_tile_down<T, words, rest, THREADS, DEPTH, COLUMNS>(shared, at + panel * 64, b,
                                                                column0 + panel * 8, k0);
      } else if (BN / 8 % words == 0 || panel + word < BN / 8) {
        pw_copy_rows<64, words, THREADS, COLUMNS * T::each>(
            shared, at + panel * 64 + pw_word<words>(row, word), from + panel * 16,
            !whole_columns && column0 + (panel + word) * 8 >= COLUMNS ? 0
            : whole_k                                                 ? 64
                                                                      : (int)(DEPTH - k0) - row);
      }
    }
  }
}

/// A warp's TM × TN part of a tile: the places of a lane's words in the first stage, and its
/// operands.
template <class T, int BM, int BN, int TM, int TN, int B>
struct pw_warp_part {
  enum : int { tall = TM / 16, wide = TN / 16, words = pw_words_of_b<B, BN, false>() };
  struct operands {
    pw_fragment left[tall], right[wide];
  };
  pw_place left, right[B == pw_down ? wide : 1];

  /// Returns the part that begins at row m0 and column n0 of the tile.
  template <class S>
  PW_FUNCTION pw_warp_part at(S& shared, int lane, int m0, int n0) {
    pw_warp_part out;
    out.left = pw_place_of(shared, (m0 + lane % 16) * 8 + (lane / 16 ^ lane % 8));
    if constexpr (B == pw_down) {
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        const int column = n0 / 8 + 2 * j;
        out.right[j] =
            pw_place_of(shared, BM * 8 + column / words * 64 * words +
                                    pw_word<words>(lane % 16, column % words + lane / 16));
      }
    } else {
      out.right[0] = pw_place_of(
          shared, BM * 8 + (n0 + lane / 16 * 8 + lane % 8) * 8 + (lane / 8 % 2 ^ lane % 8));
    }
    return out;
  }
  /// Returns the i-th 16 rows, or the j-th 16 columns, for the k-th instruction of a stage.
  template <class S>
  PW_FUNCTION pw_fragment left_of(S& shared, const pw_warp_part& p, int stage, int i, int k) {
    return pw_rows(shared, pw_on(pw_across_row(pw_on(p.left, stage), 2 * k), i * 16 * 8));
  }
  template <class S>
  PW_FUNCTION pw_fragment right_of(S& shared, const pw_warp_part& p, int stage, int j, int k) {
    if constexpr (B == pw_down)
      return pw_columns(shared, pw_on(pw_on(p.right[j], stage), 16 * k * words));
    else
      return pw_rows(shared, pw_on(pw_across_row(pw_on(p.right[0], stage), 2 * k), j * 16 * 8));
  }
  template <class S>
  PW_FUNCTION void load(S& shared, const pw_warp_part& p, int stage, int k, operands& to) {
#pragma unroll
    for (int i = 0; i < tall; ++i) to.left[i] = left_of(shared, p, stage, i, k);
#pragma unroll
    for (int j = 0; j < wide; ++j) to.right[j] = right_of(shared, p, stage, j, k);
  }
  PW_FUNCTION void multiply(const pw_fragment& left, const pw_fragment& right, int i, int j,
                            float (&sums)[tall][2 * wide][4]) {
    pw_mma(T(), sums[i][2 * j], left, right.r[0], right.r[1]);
    pw_mma(T(), sums[i][2 * j + 1], left, right.r[2], right.r[3]);
  }
  PW_FUNCTION void multiply(const operands& of, float (&sums)[tall][2 * wide][4]) {
#pragma unroll
    for (int i = 0; i < tall; ++i)
#pragma unroll
      for (int j = 0; j < wide; ++j) multiply(of.left[i], of.right[j], i, j, sums);
  }
};

/// Multiplies a stage with few operands in registers; k ends after `instructions` instructions.
template <class P, class S, int I, int J>
PW_FUNCTION void pw_multiply_stage(S& shared, const P& part, int stage, int instructions,
                                   float (&sums)[I][J][4]) {
  constexpr int tall = P::tall, wide = P::wide;
#pragma unroll 1
  for (int k = 0; k < instructions; ++k) {
    // The fragments of the shorter side stay in registers.
    pw_fragment held[tall <= wide ? tall : wide];
    if constexpr (tall <= wide) {
#pragma unroll
      for (int i = 0; i < tall; ++i) held[i] = P::left_of(shared, part, stage, i, k);
#pragma unroll
      for (int j = 0; j < wide; ++j) {
        const pw_fragment right = P::right_of(shared, part, stage, j, k);
#pragma unroll
        for (int i = 0; i < tall; ++i) P::multiply(held[i], right, i, j, sums);
      }
    } else {
#pragma unroll
      for (int j = 0; j < wide; ++j) held[j] = P::right_of(shared, part, stage, j, k);
#pragma unroll
      for (int i = 0; i < tall; ++i) {
        const pw_fragment left = P::left_of(shared, part, stage, i, k);
#pragma unroll
        for (int j = 0; j < wide; ++j) P::multiply(left, held[j], i, j, sums);
      }
    }
  }
}

/// Calls f(row, column, s0, s1, two) for this thread's pairs of sums; the first is at row and
/// column of y.
template <long long COLUMNS, int I, int J, class F>
PW_FUNCTION void pw_each_pair(const float (&sums)[I][J][4], long long row, long long rows,
                              long long column, const F& f) {
#pragma unroll
  for (int i = 0; i < I; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long r = row + i * 16 + half * 8;
      if (r >= rows) continue;
#pragma unroll
      for (int j = 0; j < J; ++j) {
        const long long c = column + j * 8;
        if (c < COLUMNS)
          f(r, c, sums[i][j][2 * half], sums[i][j][2 * half + 1],
            COLUMNS % 2 == 0 || c + 1 < COLUMNS);
      }
    }
  }
}

// ---- pieces of tiles that several blocks share. A tile's adders are the blocks whose last piece
// belongs to it; each adds a part of the tile. An adder that does not find the other pieces after a
// few polls leaves its part to the last block to arrive. Invariant: no block waits for a block that
// has not started, so there is no deadlock.

/// The sums of pieces, for each row of tiles [pieces, fragments of a thread, threads] of 16 bytes,
/// in register order: a warp reads and writes 512 contiguous bytes. A thread adds what the threads
/// of its number have written, inside or outside the result. `met` has one counter for each tile, 0
/// before and after the launch.
struct pw_pieces {
  float* sums;
  long long* met;
};
/// One piece of a tile and the part that its block adds: a bit for each group of TOGETHER squares,
/// of 16 rows and columns of a warp's sums each.
struct pw_piece {
  int own, all;
  unsigned parts;
};

/// Returns the groups of an adder. Adders have equally many groups, or one more.
template <int SQUARES, int TOGETHER>
PW_FUNCTION unsigned pw_parts_of(int own, int adders) {
  constexpr int groups = (SQUARES + TOGETHER - 1) / TOGETHER;
  static_assert(groups <= 32, "bits of a number");
  unsigned parts = 0;
#pragma unroll
  for (int group = 0; group < groups; ++group)
    parts |= group * adders / groups == own ? 1u << group : 0u;
  return parts;
}

/// Writes fragments of a piece; `to` is the place of this thread's first one. Writes those that the
/// block adds itself (`own`), or the others.
template <int THREADS, int TOGETHER, int I, int J>
PW_FUNCTION void pw_keep(const float (&sums)[I][J][4], uint4* to, const pw_piece& piece, bool own) {
#pragma unroll
  for (int i = 0; i < I; ++i)
#pragma unroll
    for (int j = 0; j < J; ++j) {
      const int fragment = i * J + j;
      if ((piece.parts >> fragment / 2 / TOGETHER & 1u) != (own ? 1u : 0u)) continue;
      const float(&s)[4] = sums[i][j];
      PW_ALIGNED(to, 16);
      pw_write4(to + fragment * THREADS, pw_bits(s[0]), pw_bits(s[1]), pw_bits(s[2]),
                pw_bits(s[3]));
    }
}

/// Announces this block's piece, and returns the parts of the tile that it must add, as bits. `met`
/// counts arrived blocks in its lowest 16 bits and departed blocks in the next 16; its upper half
/// holds the parts left to the last block. `gone` is for pw_leave.
template <bool ADDS, class S, class K>
PW_FUNCTION unsigned pw_meet(S& shared, int word, long long* met, const pw_piece& piece, bool looks,
                             const K& keep_own, int& gone) {
  constexpr long long leaves = 1ll << 16;
  const auto all_came = [&](long long x) { return (int)(x & 0xffff) == piece.all; };
  long long before = 0;
  __syncthreads();
  if (threadIdx.x == 0) before = pw_add_to(met, ADDS ? 1 : 1 + leaves);
  if (ADDS) keep_own();
  __syncthreads();
  bool stays = false;
  if (threadIdx.x == 0) {
    const unsigned own = ADDS ? piece.parts : 0u;
    unsigned parts = 0;
    if (all_came(before + 1)) {
      parts = own | (unsigned)(before >> 32);
      stays = ADDS;
    } else if (ADDS) {
#pragma unroll 1
      for (int i = 0; looks && i < pw_looks && !stays; ++i) stays = all_came(pw_see(met));
      if (!stays) before = pw_add_to(met, leaves + ((long long)own << 32));
      if (stays || all_came(before)) parts = own;
    }
    pw_put(shared, word, uint4{parts, 0, 0, 0});
  }
  __syncthreads();
  if (stays) before = pw_add_to(met, leaves);
  gone = (int)(before >> 16 & 0xffff);
  return pw_at(shared, word).x;
}
/// Resets the counter in the last block to leave.
PW_FUNCTION void pw_leave(long long* met, const pw_piece& piece, int gone) {
  if (threadIdx.x == 0 && gone + 1 == piece.all) pw_store(met, 0, 0);
}

/// Adds the pieces of the given parts of a tile in ascending order, and calls finish(row, column,
/// s0, s1). This thread's own sums are in registers; its first fragment of the first piece is at
/// `from`. `rows` and `columns` count from this thread's first result. Reads EACH squares of
/// AT_ONCE pieces at a time.
template <int THREADS, int MOST, int TOGETHER, int EACH, int AT_ONCE, int I, int J, class F>
PW_FUNCTION void pw_add_pieces(const float (&sums)[I][J][4], const uint4* from,
                               const pw_piece& piece, unsigned parts, int rows, int columns,
                               const F& finish) {
  static_assert(TOGETHER % EACH == 0, "one adder has them");
  constexpr int all = I * J, each = 2 * EACH, others = MOST - 1;  // fragments, two for each square
#pragma unroll
  for (int at = 0; at < all; at += each) {
    if (!(parts >> at / 2 / TOGETHER & 1u)) continue;
    float sum[each][4] = {};  // for two pieces either order gives the same sum
    const auto add = [&](bool first, int n, const float(&x)[4]) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[n][e] = first ? x[e] : pw_add(sum[n][e], x[e]);
    };
    const auto add_own = [&] {
#pragma unroll
      for (int n = 0; n < each; ++n)
        if (at + n < all) add(false, n, sums[(at + n) / J][(at + n) % J]);
    };
#pragma unroll(others > 2 * AT_ONCE ? 1 : 2)
    for (int first = 0; first < others; first += AT_ONCE) {
      if (first + 1 >= piece.all) break;
      uint4 read[AT_ONCE][each];
#pragma unroll
      for (int o = 0; o < AT_ONCE; ++o) {
        const int other = first + o, number = other + (other >= piece.own ? 1 : 0);
        const uint4* const of = from + number * (all * THREADS);
#pragma unroll
        for (int n = 0; n < each; ++n) {
          read[o][n] = uint4{0, 0, 0, 0};  // keeps it live no longer than needed
          if (at + n < all && number < piece.all)
            read[o][n] = pw_read_written(of + (at + n) * THREADS);
        }
      }
#pragma unroll
      for (int o = 0; o < AT_ONCE; ++o) {
        const int other = first + o;
        if (other + 1 >= piece.all) continue;
        if (MOST > 2 && other > 1 && other == piece.own) add_own();
#pragma unroll
        for (int n = 0; n < each; ++n) {
          const uint4& x = read[o][n];
          const float four[4] = {pw_float(x.x), pw_float(x.y), pw_float(x.z), pw_float(x.w)};
          if (at + n < all) add(other == 0, n, four);
        }
        if (other == 0 && (MOST == 2 || piece.own < 2)) add_own();
      }
    }
    if (MOST > 2 && piece.own > 1 && piece.own == piece.all - 1) add_own();
#pragma unroll
    for (int n = 0; n < each; ++n) {
      if (at + n >= all) continue;
      const int row = (at + n) / J * 16, column = (at + n) % J * 8;
      if (column >= columns) continue;
      if (row < rows) finish(row, column, sum[n][0], sum[n][1]);
      if (row + 8 < rows) finish(row + 8, column, sum[n][2], sum[n][3]);
    }
  }
}

/// Ends a block's work on a tile: stores a whole tile, or announces a piece and adds parts, using
/// WORD of shared memory. LAST: the block continues with no other tile.
template <bool LAST, int BM, int BN, int DOWN, int ACROSS, int SHARES, int OF_TILE, int MOST,
          int TOGETHER, int AT_ONCE, int AT_A_TIME, int WORD, long long COLUMNS, class S, int I,
          int J, class F>
PW_FUNCTION void pw_end_piece(S& shared, const pw_pieces& pieces, const float (&sums)[I][J][4],
                              int tile, bool whole, long long rows, const F& finish) {
  // Result addresses are computed here, so that they occupy no registers earlier.
  const int thread = pw_here((int)threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int column = tile * BN + warp % ACROSS * (BN / ACROSS) + lane % 4 * 2;
  const long long row = (long long)blockIdx.x * BM + warp / ACROSS * (BM / DOWN) + lane / 4;
  if (whole) {
    pw_each_pair<COLUMNS>(sums, row, rows, column, finish);
  } else if constexpr (MOST > 1) {
    constexpr int across = (int)((COLUMNS + BN - 1) / BN);
    constexpr long long of_row = (long long)across * OF_TILE;
    const auto share_of = [](long long step) { return (int)(((step + 1) * SHARES - 1) / of_row); };
    const int first = share_of((long long)tile * OF_TILE);
    const int all = share_of((tile + 1ll) * OF_TILE - 1) - first + 1;
    const bool one_goes_on = (first + all) * of_row / SHARES > (tile + 1ll) * OF_TILE;
    constexpr int threads = 32 * DOWN * ACROSS, fragments = I * J;
    const int own = (int)blockIdx.y - first;
    const pw_piece piece{own, all,
                         pw_parts_of<fragments / 2, TOGETHER>(own, one_goes_on ? all - 1 : all)};
    uint4* const at_first = pw_here((uint4*)pieces.sums +
                                    ((long long)blockIdx.x * (SHARES + across - 1) + first + tile) *
                                        (fragments * threads) +
                                    thread);
    uint4* const at_own = pw_here(at_first + own * (fragments * threads));
    const auto met = [&] { return pieces.met + (long long)blockIdx.x * across + pw_here(tile); };
    const int there = rows - row < BM ? (int)(rows - row) : BM;
    const int columns = COLUMNS % BN == 0 || COLUMNS - column >= BN ? BN : (int)(COLUMNS - column);
    const auto keep = [&](bool own) { pw_keep<threads, TOGETHER>(sums, at_own, piece, own); };
    keep(false);
    int gone = 0;
    const bool looks = (rows + BM - 1) / BM * SHARES <= AT_A_TIME;
    const unsigned parts =
        pw_meet<LAST>(shared, WORD, met(), piece, looks, [&] { keep(true); }, gone);
    // A block that continues needs its registers for the next tile.
    pw_add_pieces<threads, MOST, TOGETHER, LAST ? TOGETHER : 1, LAST ? AT_ONCE : 1>(
        sums, at_first, piece, parts, there, columns, [&](int r, int c, float s0, float s1) {
          finish(row + r, (long long)(column + c), s0, s1, COLUMNS % 2 == 0 || c + 1 < columns);
        });
    pw_leave(met(), piece, gone);
  }
}

/// The kernel for tiles of BM × BN elements of y = a · b, computed by DOWN × ACROSS warps. A row of
/// tiles has SHARES blocks, which divide its steps in order; a step is 128 bytes of k and occupies
/// one of STAGES buffers of shared memory. If tiles are divided, they have up to MOST pieces, which
/// meet at `pieces`; the word after the stages serves for that. If at most AT_A_TIME blocks are
/// launched, they may wait for each other. GROUPED: warpgroups multiply 64 rows each. finish(row,
/// column, s0, s1, two) stores the results of two neighbouring columns, or of the first only.
template <class T, int BM, int BN, int DOWN, int ACROSS, int STAGES, int SHARES, int MOST,
          int TOGETHER, int AT_ONCE, int AT_A_TIME, bool GROUPED, int B, bool WIDE_A, bool WIDE_B,
          long long DEPTH, long long COLUMNS, class S, class F>
PW_FUNCTION void pw_product(S& shared, const typename T::stored* a, const typename T::stored* b,
                            const pw_pieces& pieces, long long rows, const F& finish) {
  constexpr int threads = 32 * DOWN * ACROSS, deep = 128 / T::each, each = 16 / T::each;
  constexpr int tm = BM / DOWN, tn = BN / ACROSS;
  constexpr int stage = BM * 8 + pw_room_of_b<BN, GROUPED>();
  constexpr int of_tile = (int)((DEPTH + deep - 1) / deep);
  constexpr int across = (int)((COLUMNS + BN - 1) / BN), words = pw_words_of_b<B, BN, GROUPED>();
  constexpr bool turns = SHARES % across != 0;  // a block may continue with the next tile
  constexpr long long of_row = (long long)across * of_tile;
  // Number of steps copied in advance. With warpgroups two steps are in use, since one group may
  // start the next step while another still multiplies.
  constexpr int ahead = GROUPED ? STAGES - 2 : STAGES - 1;
  const int begin = (int)(blockIdx.y * of_row / SHARES);
  const int steps = (int)((blockIdx.y + 1) * of_row / SHARES) - begin;
  const long long row0 = (long long)blockIdx.x * BM;
  int tile = begin / of_tile;

  // The next step to fetch: its source and destination.
  int next_tile = tile, next_k = begin - tile * of_tile, next_at = 0;
  const int own = (int)threadIdx.x;
  const char* from_a =
      (const char*)a + ((row0 + own / 8) * DEPTH + next_k * deep + own % 8 * each) * T::each;
  const char* from_b =
      (const char*)b +
      (B == pw_down ? (next_k * (long long)deep + own / words) * COLUMNS + (long long)tile * BN +
                          own % words * each
                    : ((long long)tile * BN + own / 8) * DEPTH + next_k * deep + own % 8 * each) *
          T::each;
  const auto fetch = [&] {
    constexpr long long down_b = B == pw_down ? deep * COLUMNS * T::each : 128;
    constexpr long long turn_a = (1 - of_tile) * 128ll;
    constexpr long long turn_b = BN * (B == pw_down ? 1 : DEPTH) * T::each + (1 - of_tile) * down_b;
    const long long k0 = (long long)next_k * deep;
    pw_fetch_a<T, BM, threads, WIDE_A, DEPTH>(shared, next_at, a, from_a, row0, rows, k0);
    pw_fetch_b<T, BN, threads, GROUPED, B, WIDE_B, DEPTH, COLUMNS>(
        shared, next_at + BM * 8, b, from_b, (long long)next_tile * BN, k0);
    next_at = next_at == (STAGES - 1) * stage ? 0 : next_at + stage;
    const bool turn = turns && next_k + 1 == of_tile;
    from_a += turn ? turn_a : 128;
    from_b += turn ? turn_b : down_b;
    next_k = turn ? 0 : next_k + 1;
    next_tile += turn ? 1 : 0;
  };
#pragma unroll
  // Prologue of the pipeline. A group of copies is committed for each step even if it is empty, so
  // that waits can count groups.
  for (int step = 0; step < ahead; ++step) {
    if (step < steps) fetch();
    pw_commit();
  }
  int at = 0, step = 0;
  float sums[tm / 16][tn / 8][4];
  const auto after = [&] { return (tile + 1) * of_tile - begin; };  // first step after this tile
#pragma unroll 1
  // One iteration for each tile of which this block has steps. Between tiles the pipeline keeps
  // running: copies of the next tile are already in flight.
  for (;; ++tile) {
    const int end = turns && after() < steps ? after() : steps;
    // Addresses in a stage are recomputed, so that they occupy no registers while pieces are added.
    const int thread = pw_here((int)threadIdx.x), warp = thread / 32;
    const int m0 = warp / ACROSS * tm, n0 = warp % ACROSS * tn;
#pragma unroll
    for (int i = 0; i < tm / 16; ++i)
#pragma unroll
      for (int j = 0; j < tn / 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0f;
    using part_of_warp = pw_warp_part<T, BM, BN, tm, tn, B>;
    const part_of_warp part = part_of_warp::at(shared, thread % 32, m0, n0);
    constexpr int last = (int)((DEPTH - (of_tile - 1LL) * deep + 2 * each - 1) / (2 * each));
    const auto instructions = [&] { return DEPTH % deep != 0 && step + 1 == after() ? last : 4; };
    const auto fetch_ahead = [&] {
      if (step + ahead < steps) fetch();
      pw_commit();
    };
    const auto wait_for_step = [&] {
      pw_wait<ahead - 1>();
      if constexpr (GROUPED) pw_show_to_products();
      __syncthreads();
    };
    wait_for_step();
    if constexpr (GROUPED) {
      static_assert(tm == 16 && ACROSS == 1 && T::each == 2 && BN % 16 == 0, "a group's tile");
      const pw_matrix left = pw_matrix_at(shared, warp / 4 * (64 * 8), 0);
      const pw_matrix right = pw_matrix_at(shared, BM * 8, 64 * 8);
      pw_hold(sums[0]);
#pragma unroll 1
      for (;;) {
        pw_begin_products();
#pragma unroll
        for (int k = 0; k < 4; ++k)  // also after the end of k, where it changes no sum
          pw_multiply<B == pw_down>(T(), shared, sums[0], pw_matrix_on(left, at + 2 * k),
                                    pw_matrix_on(right, at + (B == pw_down ? 16 * 8 : 2) * k));
        pw_commit_products();
        fetch_ahead();
        at = at == (STAGES - 1) * stage ? 0 : at + stage;
        if (++step == end) break;
        pw_wait_for_products<1>();
        wait_for_step();
      }
      pw_wait_for_products<0>();
      pw_hold(sums[0]);
    } else if constexpr (T::each == 1 || tm * tn > 144 * 32) {
      // Single-buffered operands: double buffering needs too many registers if fp8 is first widened
      // to f16, as on sm_90 and sm_100, or if a thread has very many sums.
#pragma unroll 1
      for (;;) {
        fetch_ahead();
        pw_multiply_stage(shared, part, at, instructions(), sums);
        at = at == (STAGES - 1) * stage ? 0 : at + stage;
        if (++step == end) break;
        wait_for_step();
      }
    } else {
      // Double-buffered operands: the next ones are loaded before the current ones are multiplied,
      // across stages as well. Once all warps have loaded a stage's last operands, it is free.
      typename part_of_warp::operands operands[2];
      part_of_warp::load(shared, part, at, 0, operands[0]);
#pragma unroll 1
      for (bool more = true; more;) {
        fetch_ahead();
        const int count = instructions();
        more = step + 1 < end;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (k < 3) {
            if (k + 1 < count) part_of_warp::load(shared, part, at, k + 1, operands[(k + 1) % 2]);
          } else {
            at = at == (STAGES - 1) * stage ? 0 : at + stage;
            if (more) {
              wait_for_step();
              part_of_warp::load(shared, part, at, 0, operands[0]);
            }
          }
          if (k < count) part_of_warp::multiply(operands[k % 2], sums);
        }
        ++step;
      }
    }
    if (!turns || step == steps) break;
    pw_end_piece<false, BM, BN, DOWN, ACROSS, SHARES, of_tile, MOST, TOGETHER, AT_ONCE, AT_A_TIME,
                 STAGES * stage, COLUMNS>(shared, pieces, sums, tile, after() >= of_tile, rows,
                                          finish);
  }
  const bool whole = turns ? after() == steps && after() >= of_tile : SHARES == across;
  pw_end_piece<true, BM, BN, DOWN, ACROSS, SHARES, of_tile, MOST, TOGETHER, AT_ONCE, AT_A_TIME,
               STAGES * stage, COLUMNS>(shared, pieces, sums, tile, whole, rows, finish);
}
#endif
