#ifndef PW_TENSOR_PRODUCT
#define PW_TENSOR_PRODUCT
// Tiles of a matrix product. Stands after tensor_cores.cu.
//
// The order of sums: an element of a product is one chain of fused multiply-adds, k ascending, from
// +0, which is the interpreter's. Where a tile has several pieces of k (tensor_model.hpp says
// which), each piece is such a chain, and their sums are added in f32, ascending, by whatever
// block. The host runs it. A device adds the products of one instruction (16 or 32 of them) in an
// order that is not documented, and the instructions in this order.

/// 16 bytes of which each element is asked for by itself: from(e), or `outside` where it is none.
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

/// ROWS rows of WORDS words, STRIDE bytes apart in memory. A thread copies one word of every
/// THREADS / WORDS-th row, from its own first word and place on: so many rows apart pw_word moves
/// words alike, and one address in registers serves all its copies. Zeros from row `there` on.
template <int ROWS, int WORDS, int THREADS, long long STRIDE, class S>
PW_FUNCTION void pw_copy_rows(S& shared, int at, const char* from, int there) {
  constexpr int apart = THREADS / WORDS;
  static_assert(apart % 8 == 0, "words move alike");
#pragma unroll
  for (int row = 0; row < ROWS; row += apart)
    if (row + apart <= ROWS || (int)threadIdx.x < (ROWS - row) * WORDS)
      pw_copy_async(shared, at + row * WORDS, from + row * STRIDE, row < there);
}
/// One word in all places of the same.
template <int ROWS, int WORDS, int THREADS, class S>
PW_FUNCTION void pw_fill_rows(S& shared, int at, unsigned word) {
#pragma unroll
  for (int row = 0; row < ROWS; row += THREADS / WORDS)
    if (row + THREADS / WORDS <= ROWS || (int)threadIdx.x < (ROWS - row) * WORDS)
      pw_put(shared, at + row * WORDS, uint4{word, word, word, word});
}

/// A matrix of any alignment whose rows lie along k, [count, DEPTH]: the tile of ROWS rows from
/// row0 on, and 128 bytes of each from k0 on. Beyond DEPTH elements are OUTSIDE; beyond count they
/// belong to results that are not stored.
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
/// A matrix whose columns lie along k, [DEPTH, COUNT]: the same tile, transposed on the way.
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
/// 16-bit elements of any alignment as they lie, [DEPTH, COUNT]: 64 rows of k, OF_ROW words of
/// each, in rows of WORDS.
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

/// Two neighbours of a row, the second only if there are `two`.
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

/// How b lies: [columns, depth], or [depth, columns].
enum : int { pw_along = 0, pw_down = 1, pw_across = 2 };

/// b's columns lie in `pw_down` in panels of 64 rows of k with up to 64 columns, else row by row.
/// Warpgroups take panels whose rows have room for 64.
template <int B, int BN, bool GROUPED>
PW_FUNCTION constexpr int pw_words_of_b() {
  return B == pw_down && BN < 64 && !GROUPED ? BN / 8 : 8;
}
/// Words of a step of b.
template <int BN, bool GROUPED>
PW_FUNCTION constexpr int pw_room_of_b() {
  return (GROUPED ? (BN + 63) / 64 * 64 : BN) * 8;
}

/// A step of a: 128 bytes of k of BM rows; `from` is this thread's first word where a is WIDE.
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
/// A step of b: 128 bytes of k of BN columns.
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

/// A warp's TM x TN part of a tile: where a lane's words of it are in the first stage, and what is
/// multiplied.
template <class T, int BM, int BN, int TM, int TN, int B>
struct pw_warp_part {
  enum : int { tall = TM / 16, wide = TN / 16, words = pw_words_of_b<B, BN, false>() };
  struct operands {
    pw_fragment left[tall], right[wide];
  };
  pw_place left, right[B == pw_down ? wide : 1];

  /// From row m0 and column n0 of the tile on.
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
  /// The i-th 16 rows, and the j-th 16 columns, of the k-th instruction of a stage.
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

/// A stage, whose k ends after so many instructions, with few operands in registers.
template <class P, class S, int I, int J>
PW_FUNCTION void pw_multiply_stage(S& shared, const P& part, int stage, int instructions,
                                   float (&sums)[I][J][4]) {
  constexpr int tall = P::tall, wide = P::wide;
#pragma unroll 1
  for (int k = 0; k < instructions; ++k) {
    // Fragments of the shorter side are held.
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

/// f(row, column, s0, s1, two) of this thread's sums, the first of them at row and column of y.
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

// ---- pieces of tiles that several blocks have. Blocks whose last piece is of a tile are its
// adders, the first of its pieces: each adds a part of the tile. A block that does not find the
// others in a few looks leaves its part to the last that comes: none waits for one that has not
// begun.

/// The sums of pieces, of each row of tiles [pieces, fragments of a thread, threads] of 16 bytes,
/// as the instructions leave them in registers: a warp writes and reads 512 bytes at a time. A
/// thread adds what the threads of its number have written, be it in the result or beyond its edge.
/// And of each tile a number that is 0 before and after.
struct pw_pieces {
  float* sums;
  long long* met;
};
/// One of the pieces of a tile, and what its block adds: groups of TOGETHER squares of 16 rows and
/// columns of a warp's sums, a bit for each.
struct pw_piece {
  int own, all;
  unsigned parts;
};

/// The adders have equally many groups, or one more.
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

/// Writes fragments of a piece, the first of this thread's to `to`: of the part that the block adds
/// itself, or of the others.
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

/// Says that this block's piece is there, and finds the parts of the tile that it is to add, a bit
/// for each. `met` counts in its lowest 16 bits the blocks that came, in the next those that need
/// it no more; then it has the parts that are left to the last. `gone` is for pw_leave.
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
/// The last makes the number 0 again.
PW_FUNCTION void pw_leave(long long* met, const pw_piece& piece, int gone) {
  if (threadIdx.x == 0 && gone + 1 == piece.all) pw_store(met, 0, 0);
}

/// finish(row, column, s0, s1) of the sums of all pieces, ascending, of those parts of a tile, rows
/// and columns from this thread's first on, of which so many are there: its own are in registers,
/// its first fragment of the first piece at `from`. It reads EACH squares of AT_ONCE pieces at a
/// time.
template <int THREADS, int MOST, int TOGETHER, int EACH, int AT_ONCE, int I, int J, class F>
PW_FUNCTION void pw_add_pieces(const float (&sums)[I][J][4], const uint4* from,
                               const pw_piece& piece, unsigned parts, int rows, int columns,
                               const F& finish) {
  static_assert(TOGETHER % EACH == 0, "one adder has them");
  constexpr int all = I * J, each = 2 * EACH, others = MOST - 1;  // fragments, two of a square
#pragma unroll
  for (int at = 0; at < all; at += each) {
    if (!(parts >> at / 2 / TOGETHER & 1u)) continue;
    float sum[each][4] = {};  // of two pieces in any order, which is the same
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
          read[o][n] = uint4{0, 0, 0, 0};  // no longer than it is needed
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

/// A block's sums of a tile, where it ends: all of it, or a piece, with WORD of shared memory.
/// LAST: the block goes on with no other tile.
template <bool LAST, int BM, int BN, int DOWN, int ACROSS, int SHARES, int OF_TILE, int MOST,
          int TOGETHER, int AT_ONCE, int AT_A_TIME, int WORD, long long COLUMNS, class S, int I,
          int J, class F>
PW_FUNCTION void pw_end_piece(S& shared, const pw_pieces& pieces, const float (&sums)[I][J][4],
                              int tile, bool whole, long long rows, const F& finish) {
  // No place of a result is known before there is one.
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
    // A block that goes on has its registers for that.
    pw_add_pieces<threads, MOST, TOGETHER, LAST ? TOGETHER : 1, LAST ? AT_ONCE : 1>(
        sums, at_first, piece, parts, there, columns, [&](int r, int c, float s0, float s1) {
          finish(row + r, (long long)(column + c), s0, s1, COLUMNS % 2 == 0 || c + 1 < columns);
        });
    pw_leave(met(), piece, gone);
  }
}

/// Tiles of BM x BN elements of y = a b, warps stand DOWN x ACROSS in one. A row of tiles has
/// SHARES blocks, which divide its steps, one tile's after another's: each is 128 bytes of k, and
/// they go round STAGES places in shared memory. Where that is CUT, some tiles have up to MOST
/// pieces, which meet at `pieces`, the word after the stages being for that; if not more than
/// AT_A_TIME blocks are launched, they wait for each other. GROUPED: warpgroups multiply, 64 rows
/// each. Of two neighbouring columns, or of the
/// first, finish(row, column, s0, s1, two) stores what is made of sums.
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
  constexpr bool turns = SHARES % across != 0;  // from one tile to the next, within a block
  constexpr long long of_row = (long long)across * of_tile;
  // Steps that are copied before they are needed. While a group multiplies one, another begins with
  // the next: two are in use.
  constexpr int ahead = GROUPED ? STAGES - 2 : STAGES - 1;
  const int begin = (int)(blockIdx.y * of_row / SHARES);
  const int steps = (int)((blockIdx.y + 1) * of_row / SHARES) - begin;
  const long long row0 = (long long)blockIdx.x * BM;
  int tile = begin / of_tile;

  // The next step to fetch: where it is, and goes to.
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
  for (int step = 0; step < ahead; ++step) {
    if (step < steps) fetch();
    pw_commit();
  }
  int at = 0, step = 0;
  float sums[tm / 16][tn / 8][4];
  const auto after = [&] { return (tile + 1) * of_tile - begin; };  // the tile's last step
#pragma unroll 1
  for (;; ++tile) {
    const int end = turns && after() < steps ? after() : steps;
    // Addresses in a stage take no registers where pieces are added.
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
        for (int k = 0; k < 4; ++k)  // behind the end of k, too: there it changes no sum
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
      // Operands of two instructions need too many registers where fp8 is widened to f16 first, as
      // sm_90 and sm_100 do, and where sums are very many.
#pragma unroll 1
      for (;;) {
        fetch_ahead();
        pw_multiply_stage(shared, part, at, instructions(), sums);
        at = at == (STAGES - 1) * stage ? 0 : at + stage;
        if (++step == end) break;
        wait_for_step();
      }
    } else {
      // The next operands are read before these are multiplied, over the end of a stage too: when
      // all have read its last ones, it is free.
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
