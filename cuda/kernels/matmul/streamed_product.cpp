// Writes the kernel of a product of few rows: the program before it fills rows of a in shared
// memory, pw_stream computes sums of columns, and the program after it takes them from registers.
// Each block computes the rows of a for itself, which costs less than a launch. Only the first
// block stores the other results of that program.
#include "cuda/kernels/matmul/streamed_product.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.hpp"
#include "base/division.hpp"
#include "codegen/rowprogram/cxx.hpp"
#include "cuda/kernels/matmul/column_nests.hpp"
#include "cuda/kernels/teams.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kGroup = 8;               // elements that a thread reads at a time
constexpr int kRows = 4;                         // of a block, which limits a thread's registers
constexpr int kMostAhead = 8;                    // groups of a thread under way
constexpr int kResident = 3;                     // blocks of 256 threads that keep memory busy
constexpr int kResidentInChain = 2;              // for more registers, because more is live
constexpr std::int64_t kStagedBytes = 64 << 10;  // of a block, so that several are resident

/// Turns with equally many columns each, and the texts of their columns and results.
struct Turns {
  std::int64_t count = 0, parts = 1;
  std::string columns, finish;
};

class StreamedWriter {
 public:
  StreamedWriter(const StreamedProduct& product, std::string_view arch)
      : s_(product), p_(product.product), arch_(arch) {}

  /// Returns false if the product has no such kernel. The other functions require it.
  bool prepare() {
    if (!rows::cxx::is_narrow(stored()) || !p_.b_transposed || p_.depth < 1 || p_.columns < 1)
      return false;
    return !s_.before || stage();
  }
  /// Returns the warps of a block that the program before the product needs; 0: any.
  [[nodiscard]] int needed_warps() const { return before_ ? before_->threads / 32 : 0; }
  /// Divides the product among the warps of blocks. Returns false if a neighbour does not join.
  bool divide(int warps, bool in_chain) {
    shape_ = stream_shape(p_.depth, warps);
    in_chain_ = in_chain;
    resident_ = std::max((in_chain ? kResidentInChain : kResident) * 8 / warps, 1);
    return find_turns();
  }

  [[nodiscard]] int threads() const { return shape_.warps * 32; }
  [[nodiscard]] const StreamShape& shape() const { return shape_; }
  [[nodiscard]] std::size_t paged() const { return paged_.size(); }
  [[nodiscard]] int resident() const { return resident_; }
  /// Returns the blocks that share the turns: at most those that the device runs at once.
  [[nodiscard]] std::int64_t blocks() const {
    std::int64_t turns = 0;
    for (const Turns& t : turns_) turns = std::max(turns, t.count);
    const std::int64_t at_once =
        std::int64_t{resident()} * tensor_machine_or_nearest(arch_).multiprocessors;
    return std::clamp<std::int64_t>(ceil_div(turns, shape_.teams()), 1, at_once);
  }
  [[nodiscard]] std::int64_t meeting_floats() const {
    std::int64_t parts = 1;
    for (const Turns& t : turns_) parts = std::max(parts, t.parts);
    return shape_.split > 1 ? 2 * shape_.warps * parts * kRows * 32 : 1;
  }
  [[nodiscard]] std::int64_t staged_bytes() const { return before_ ? kRows * groups() * 16 : 0; }
  /// Returns the statements of block `block` for `count` rows from `row0` on. `wait` precedes all
  /// reads but those of weights.
  [[nodiscard]] std::string body(const std::string& wait) const {
    static_assert(kRows == 4, "the cases below");
    return (before_ ? "  PW_KEPT(kept);\n" : "") + rows_text() + scale_text() + product_text() +
           turn_functions() + (wait.empty() ? "" : fetch_text() + wait) + before_text() +
           fmt::format(
               "  if (count == 1) {{\n{}  }} else if (count == 2) {{\n{}  }} else {{\n{}  }}\n",
               calls(1), calls(2), calls(kRows));
  }

 private:
  [[nodiscard]] std::int64_t groups() const { return ceil_div(p_.depth, kGroup); }
  [[nodiscard]] bool wide() const { return p_.depth % kGroup == 0; }
  /// Returns the dtype of b in memory.
  [[nodiscard]] DType stored() const { return p_.scales ? p_.scales->weight : p_.in; }
  [[nodiscard]] static std::string element(DType dtype) {
    return fmt::format("pw_of_{}", name(dtype));
  }

  /// Emits the program before the product. Returns false if it does not fill whole groups of a, if
  /// its rows are others, or if a block has no room for them.
  bool stage() {
    const rows::RowProgram& program = *s_.before->program;
    const std::int64_t bytes = kRows * groups() * 16;
    if (!wide() || !rows::cxx::is_narrow(p_.in) || bytes > kStagedBytes || !has_rows(program))
      return false;
    before_ = emit_in_block(program, {s_.before->through, groups()});
    return before_.has_value();
  }

  [[nodiscard]] bool has_rows(const rows::RowProgram& program) const {
    return program.params.size() == 1 && program.params[0] == p_.rows && !program.valid &&
           program.domain.size() == 1;
  }

  bool find_turns() {
    if (!s_.after) {
      const std::string stored = fmt::format("q{}", s_.result);
      turns_.push_back(
          {p_.columns, 1, "    return turn;\n",
           fmt::format("    pw_store({}, row * {}LL + turn, y0);\n", stored, p_.columns)});
      return true;
    }
    const rows::RowProgram& program = *s_.after->program;
    if (!has_rows(program)) return false;
    auto nests = column_nests(program, s_.after->through, p_.columns);
    if (!nests || !in_pages(program, *nests)) return false;
    for (const auto& group : grouped(std::move(*nests))) {
      Turns turns;
      for (const ColumnNest& nest : group) turns.count += nest.turns;
      turns.parts = static_cast<std::int64_t>(group.front().columns.size());
      turns.columns = columns_text(program, group);
      turns.finish =
          aliases(*s_.after) + slot_text() + turns_text(program, s_.after->through, group, paged_);
      turns_.push_back(std::move(turns));
    }
    return true;
  }

  /// Names the pages of results. Returns false if a store is not proved to be in its row.
  bool in_pages(const rows::RowProgram& program, const std::vector<ColumnNest>& nests) {
    if (!s_.paged) return true;
    for (const RowsInPages::Result& result : s_.paged->results) {
      if (!stores_rows(program, nests, result.result, s_.paged->width)) return false;
      paged_.push_back({result.result, s_.paged->width, fmt::format("q{}", result.pages)});
    }
    return true;
  }
  [[nodiscard]] std::string slot_text() const {
    if (!s_.paged) return {};
    return fmt::format("    const long long slot = pw_load(q{}, row);\n", s_.paged->slots);
  }

  /// Declares the pointers of a program's arguments under their names in its text.
  static std::string aliases(const JoinedProgram& joined) {
    std::string out;
    for (std::size_t i = 0; i < joined.arguments.size(); ++i)
      if (i != joined.through)
        out += fmt::format("    const auto p{} = q{};\n", i, joined.arguments[i]);
    return out;
  }

  /// Emits the function that makes a stored element of y from a sum.
  [[nodiscard]] std::string product_text() const {
    std::string out =
        fmt::format("  const auto y = [&](long long row, long long column, float sum) -> {} {{\n",
                    rows::cxx::storage(p_.out));
    for (std::size_t i = 0; i < p_.operands.size(); ++i)
      if (i != p_.a && i != p_.b && !(p_.scales && i == p_.scales->operand))
        out += fmt::format("    const auto p{} = q{};\n", i, s_.operands[i]);
    const std::string value = rows::cxx::is_narrow(p_.out)
                                  ? fmt::format("pw_to_{}({})", name(p_.out), p_.value)
                                  : p_.value;
    return out + fmt::format("    return {};\n  }};\n", value);
  }

  [[nodiscard]] std::string rows_text() const {
    if (before_)
      return fmt::format(
          "  const auto x = [&](int r, long long group) {{\n"
          "    return pw_kept<{}>(kept, r * {} + (int)group, 1);\n  }};\n",
          2 * size_of(p_.in), groups());
    return fmt::format(
        "  const auto x = [&](int r, long long group) {{\n"
        "    return pw_group<{}, {}LL, {}, false>(q{} + (row0 + r) * {}LL, group);\n  }};\n",
        element(p_.in), p_.depth, wide(), s_.operands[p_.a], p_.depth);
  }

  /// Emits the function that returns the scale of a group of b.
  [[nodiscard]] std::string scale_text() const {
    if (!p_.scales) return "  const auto scale = [](long long, long long) { return 1.0f; };\n";
    const BlockScales& s = *p_.scales;
    return fmt::format(
        "  const auto scale = [&](long long column, long long group) {{\n"
        "    return pw_load(q{}, 8 * group / {} * {}LL + column / {} * {}LL);\n  }};\n",
        s_.operands[s.operand], s.deep, s.deep_step, s.across, s.across_step);
  }

  [[nodiscard]] std::string before_text() const {
    if (!before_) return {};
    return fmt::format(
        "{}  for (int r = 0; r < count; ++r) {{\n"
        "    const long long row = row0 + r;\n    const bool first = block == 0;\n{}{}"
        "    __syncthreads();\n  }}\n",
        before_->declarations, aliases(*s_.before), before_->body);
  }

  /// Returns the groups that a thread reads ahead. With many rows, sums take these registers.
  [[nodiscard]] int ahead(int rows) const {
    return rows == kRows && shape_.ahead % 2 == 0 ? shape_.ahead / 2 : shape_.ahead;
  }

  /// Emits the prefetch of what the first call reads first.
  [[nodiscard]] std::string fetch_text() const {
    return fmt::format(
        "  pw_fetch_first<{}, {}, {}, {}, {}, {}, {}LL>(q{}, {}LL, block, column_0);\n",
        element(stored()), shape_.warps, shape_.split, shape_.lanes, shape_.each, shape_.ahead,
        p_.depth, s_.operands[p_.b], turns_.front().count);
  }

  /// Emits the calls for at most `rows` rows.
  [[nodiscard]] std::string calls(int rows) const {
    std::string out;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (i > 0) out += "    __syncthreads();\n";  // `meeting` is used again
      out += fmt::format(
          "    pw_stream<{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}LL, {}, {}LL, {}>(meeting, "
          "q{}, {}LL, block, count, x, column_{}, scale, finish_{});\n",
          element(stored()), element(p_.in), p_.scales.has_value(), rows, turns_[i].parts,
          shape_.warps, shape_.split, shape_.lanes, shape_.each, ahead(rows), p_.depth, wide(),
          blocks(), in_chain_ && before_, s_.operands[p_.b], turns_[i].count, i, i);
    }
    return out;
  }

  [[nodiscard]] std::string turn_functions() const {
    std::string out;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      const Turns& turns = turns_[i];
      out += fmt::format(
          "  const auto column_{} = [&](long long turn, int part) -> long long {{\n{}  }};\n"
          "  const auto finish_{} = [&](int r, long long turn, const float* sums) {{\n"
          "    const long long row = row0 + r;\n",
          i, turns.columns, i);
      for (std::int64_t part = 0; part < turns.parts; ++part)
        out += fmt::format("    const auto y{0} = y(row, column_{1}(turn, {0}), sums[{0}]);\n",
                           part, i);
      out += turns.finish + "  };\n";
    }
    return out;
  }

  const StreamedProduct& s_;
  const TensorProduct& p_;
  std::string_view arch_;
  StreamShape shape_;
  int resident_ = 1;  ///< blocks of a multiprocessor
  bool in_chain_ = false;
  std::optional<RowsInBlock> before_;
  std::vector<Turns> turns_;
  std::vector<PagedResult> paged_;
};

/// Assembles the kernel of one product, or of several one after another.
class ChainWriter {
 public:
  ChainWriter(const StreamedChain& chain, const std::vector<StreamedWriter>& products,
              Context& context)
      : chain_(chain), products_(products), context_(context) {}

  [[nodiscard]] Kernel kernel() const {
    WrittenKernel text;
    std::vector<std::string> ops;
    for (const StreamedProduct& p : chain_.products) ops.push_back(p.product.op);
    text.op = fmt::format("{}", fmt::join(ops, " + "));
    text.rows = chain_.products.front().product.rows;
    text.results = chain_.results;
    text.threads = products_.front().threads();
    text.resident = products_.front().resident();
    text.rows_per_block = kRows;
    text.column_blocks = static_cast<int>(blocks_before(products_.size()));
    text.why = "one element of each column";
    add_pointers(text);
    text.body = fmt::format("  PW_SHARED(float, meeting, {});\n",
                            most([](const StreamedWriter& w) { return w.meeting_floats(); }));
    text.body += products_.size() == 1 ? one() : several();
    Kernel out = written(text);
    out.source = fmt::format("{}\n{}", streamed_prelude(), out.source);
    out.schedule.resident = text.resident;
    out.group_reads = static_cast<int>(
        most([](const StreamedWriter& w) { return std::int64_t{w.shape().ahead}; }));
    for (const StreamedWriter& w : products_) out.paged += w.paged();
    out.phases = static_cast<int>(products_.size());
    out.zero = chain_.state;
    out.shared_bytes = most([](const StreamedWriter& w) { return w.staged_bytes(); });
    return out;
  }

 private:
  template <class F>
  [[nodiscard]] std::int64_t most(const F& of) const {
    std::int64_t out = 0;
    for (const StreamedWriter& w : products_) out = std::max(out, of(w));
    return out;
  }
  [[nodiscard]] std::int64_t blocks_before(std::size_t product) const {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < product; ++i) out += products_[i].blocks();
    return out;
  }

  /// Adds the parameters. A product writes a passed value while another reads it, so its pointer is
  /// neither const nor restrict.
  void add_pointers(WrittenKernel& text) const {
    for (std::size_t i = 0; i < chain_.arguments.size(); ++i) {
      const TypeId type = chain_.arguments[i];
      const std::string name = fmt::format("q{}", i);
      if (i == chain_.state || (i < chain_.passed.size() && chain_.passed[i] != 0)) {
        text.arguments.push_back(type);
        text.signature +=
            fmt::format("{}* {}, ", rows::cxx::storage(context_.types[type].dtype), name);
      } else {
        text.add_pointer(context_, type, name, i + chain_.results >= chain_.arguments.size());
      }
    }
    text.signature += "long long rows";
  }

  /// Emits the rows of a block.
  static std::string rows_of(std::string_view block) {
    return fmt::format(
        "  const long long row0 = (long long)({0}) * {1};\n"
        "  const int count = rows - row0 < {1} ? (int)(rows - row0) : {1};\n",
        block, kRows);
  }

  [[nodiscard]] std::string one() const {
    return rows_of("blockIdx.x") + "  const long long block = blockIdx.y;\n" +
           products_.front().body("");
  }

  [[nodiscard]] std::string several() const {
    const std::size_t n = products_.size();
    const std::string state = fmt::format("q{}", *chain_.state);
    std::string out = fmt::format(
        "  PW_SHARED(int, place, 1);\n"
        "  const int across = (int)((rows + {} - 1) / {});\n"
        "  if (threadIdx.x == 0) pw_put(place, 0, pw_next_block({}, across));\n"
        "  __syncthreads();\n  const int number = pw_at(place, 0);\n"
        "  long long block = number / across;\n{}",
        kRows, kRows, state, rows_of("number % across"));
    for (std::size_t i = 0; i < n; ++i) {
      const std::string wait = i == 0 ? ""
                                      : fmt::format("  pw_await({} + {}, across * {}, number);\n",
                                                    state, i, products_[i - 1].blocks());
      const std::string condition =
          i == 0       ? fmt::format("if (block < {})", products_[0].blocks())
          : i + 1 == n ? fmt::format("else {{\n  block -= {};\n", products_[i - 1].blocks())
                       : fmt::format("else if ((block -= {}) < {})", products_[i - 1].blocks(),
                                     products_[i].blocks());
      out += fmt::format("  {}{}{}{}  }}\n", condition, i > 0 && i + 1 == n ? "" : " {\n",
                         products_[i].body(wait),
                         i + 1 == n ? "" : fmt::format("  pw_announce({} + {});\n", state, i + 1));
    }
    return out + fmt::format("  pw_leave_grid({}, {}, across * {});\n", state, n, blocks_before(n));
  }

  const StreamedChain& chain_;
  const std::vector<StreamedWriter>& products_;
  Context& context_;
};

}  // namespace

StreamedProduct StreamedProduct::alone(TensorProduct product) {
  StreamedProduct out;
  out.arguments = product.operands;
  out.arguments.push_back(product.result);
  out.operands.resize(product.operands.size());
  std::iota(out.operands.begin(), out.operands.end(), std::size_t{0});
  out.result = product.operands.size();
  out.product = std::move(product);
  return out;
}

StreamShape stream_shape(std::int64_t depth, int warps) {
  constexpr int kMostLanes = 256;  // of a reduction's tree, see pw_lanes
  StreamShape out;
  out.warps = warps;
  while (out.lanes < kMostLanes && out.lanes * kGroup < depth) out.lanes *= 2;
  out.each = static_cast<int>(ceil_div(depth, out.lanes * kGroup));
  const int of_warps = std::max(out.lanes / 32, 1);
  while (out.split < std::min(of_warps, warps) && of_warps / out.split * out.each > kMostAhead)
    out.split *= 2;
  const int steps = of_warps / out.split * out.each;
  out.ahead = std::min(steps, kMostAhead);
  while (steps % out.ahead != 0) --out.ahead;
  return out;
}

std::optional<Kernel> streamed_product(const StreamedProduct& product, std::string_view arch,
                                       Context& context) {
  return streamed_chain({{product}, product.arguments, product.results, {}, {}}, arch, context);
}

TypeId StreamedChain::state_type(std::size_t products, Context& context) {
  return context.types.get(DType::i32,
                           {context.dims.constant(static_cast<std::int64_t>(products) + 1)});
}

std::optional<Kernel> streamed_chain(const StreamedChain& chain, std::string_view arch,
                                     Context& context) {
  constexpr int kWarps = 8;
  std::vector<StreamedWriter> products;
  int warps = 0;
  for (const StreamedProduct& product : chain.products) {
    StreamedWriter& made = products.emplace_back(product, arch);
    if (!made.prepare() || product.product.rows != chain.products.front().product.rows)
      return std::nullopt;
    if (warps == 0) warps = made.needed_warps();
    if (made.needed_warps() != 0 && made.needed_warps() != warps) return std::nullopt;
  }
  for (StreamedWriter& product : products)
    if (!product.divide(warps == 0 ? kWarps : warps, chain.products.size() > 1))
      return std::nullopt;
  return ChainWriter(chain, products, context).kernel();
}

}  // namespace pw::cuda
