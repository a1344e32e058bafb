// Writes the kernel of a product of few rows: the program before it fills rows of a in shared
// memory, pw_stream computes sums of columns, and the program after it takes them from registers.
// Each block computes the rows of a for itself, which costs less than a launch. Only the first
// block stores the other results of that program.
#include "cuda/kernels/matmul/streamed_product.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

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
constexpr std::int64_t kStagedBytes = 64 << 10;  // of a block, so that several are resident

/// Turns with equally many columns each, and the texts of their columns and results.
struct Turns {
  std::int64_t count = 0, parts = 1;
  std::string columns, finish;
};

class StreamedWriter {
 public:
  StreamedWriter(const StreamedProduct& product, std::string_view arch, Context& context)
      : s_(product), p_(product.product), context_(context), arch_(arch) {}

  std::optional<Kernel> run() {
    if (!rows::cxx::is_narrow(p_.in) || !p_.b_transposed || p_.depth < 1 || p_.columns < 1)
      return std::nullopt;
    if (s_.before && !stage()) return std::nullopt;
    shape_ = stream_shape(p_.depth, before_ ? before_->threads / 32 : 8);
    if (!find_turns()) return std::nullopt;
    return kernel();
  }

 private:
  [[nodiscard]] std::int64_t groups() const { return ceil_div(p_.depth, kGroup); }
  [[nodiscard]] bool wide() const { return p_.depth % kGroup == 0; }
  [[nodiscard]] std::string element() const { return fmt::format("pw_of_{}", name(p_.in)); }

  /// Emits the program before the product. Returns false if it does not fill whole groups of a, if
  /// its rows are others, or if a block has no room for them.
  bool stage() {
    const rows::RowProgram& program = *s_.before->program;
    const std::int64_t bytes = kRows * groups() * 16;
    if (!wide() || bytes > kStagedBytes || !has_rows(program)) return false;
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
      if (i != p_.a && i != p_.b)
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
        element(), p_.depth, wide(), s_.operands[p_.a], p_.depth);
  }

  [[nodiscard]] std::string before_text() const {
    if (!before_) return {};
    return fmt::format(
        "  PW_KEPT(kept);\n{}  for (int r = 0; r < count; ++r) {{\n"
        "    const long long row = row0 + r;\n    const bool first = blockIdx.y == 0;\n{}{}"
        "    __syncthreads();\n  }}\n",
        before_->declarations, aliases(*s_.before), before_->body);
  }

  /// Returns the groups that a thread reads ahead. With many rows, sums take these registers.
  [[nodiscard]] int ahead(int rows) const {
    return rows == kRows && shape_.ahead % 2 == 0 ? shape_.ahead / 2 : shape_.ahead;
  }

  /// Emits the calls for at most `rows` rows.
  [[nodiscard]] std::string calls(int rows) const {
    std::string out;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (i > 0) out += "    __syncthreads();\n";  // `meeting` is used again
      out += fmt::format(
          "    pw_stream<{}, {}, {}, {}, {}, {}, {}, {}, {}LL, {}, {}LL>(meeting, q{}, {}LL, "
          "count, x, column_{}, finish_{});\n",
          element(), rows, turns_[i].parts, shape_.warps, shape_.split, shape_.lanes, shape_.each,
          ahead(rows), p_.depth, wide(), blocks(), s_.operands[p_.b], turns_[i].count, i, i);
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

  /// Returns the blocks that share the turns: at most those that the device runs at once.
  [[nodiscard]] std::int64_t blocks() const {
    std::int64_t turns = 0;
    for (const Turns& t : turns_) turns = std::max(turns, t.count);
    const std::int64_t at_once =
        std::int64_t{resident()} * tensor_machine_or_nearest(arch_).multiprocessors;
    return std::clamp<std::int64_t>(ceil_div(turns, shape_.teams()), 1, at_once);
  }
  [[nodiscard]] int resident() const { return std::max(kResident * 8 / shape_.warps, 1); }

  [[nodiscard]] std::int64_t meeting_floats() const {
    std::int64_t parts = 1;
    for (const Turns& t : turns_) parts = std::max(parts, t.parts);
    return shape_.split > 1 ? 2 * shape_.warps * parts * kRows * 32 : 1;
  }

  [[nodiscard]] Kernel kernel() const {
    WrittenKernel text;
    text.op = p_.op;
    text.rows = p_.rows;
    text.results = s_.results;
    text.threads = shape_.warps * 32;
    text.resident = resident();
    text.rows_per_block = kRows;
    text.column_blocks = static_cast<int>(blocks());
    text.why = "one element of each column";
    for (std::size_t i = 0; i < s_.arguments.size(); ++i)
      text.add_pointer(context_, s_.arguments[i], fmt::format("q{}", i),
                       i + s_.results >= s_.arguments.size());
    text.signature += "long long rows";
    text.body = fmt::format(
        "  const long long row0 = (long long)blockIdx.x * {0};\n"
        "  const int count = rows - row0 < {0} ? (int)(rows - row0) : {0};\n"
        "  PW_SHARED(float, meeting, {1});\n",
        kRows, meeting_floats());
    text.body += before_text() + rows_text() + product_text() + turn_functions();
    static_assert(kRows == 4, "the cases below");
    text.body += fmt::format(
        "  if (count == 1) {{\n{}  }} else if (count == 2) {{\n{}  }} else {{\n{}  }}\n", calls(1),
        calls(2), calls(kRows));
    Kernel out = written(text);
    out.source = fmt::format("{}\n{}", streamed_prelude(), out.source);
    out.schedule.resident = resident();
    out.group_reads = shape_.ahead;
    out.paged = paged_.size();
    out.shared_bytes = before_ ? kRows * groups() * 16 : 0;
    return out;
  }

  const StreamedProduct& s_;
  const TensorProduct& p_;
  Context& context_;
  std::string_view arch_;
  StreamShape shape_;
  std::optional<RowsInBlock> before_;
  std::vector<Turns> turns_;
  std::vector<PagedResult> paged_;
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
  return StreamedWriter(product, arch, context).run();
}

}  // namespace pw::cuda
