// A panel's elements are copied as small squares that vectors turn, so each cache line of the
// operand is read once for a tile. Cost: to find the operands, one substitution for each load that
// reads across memory and each way to divide the rows.
#include "backends/cpu/turned.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/cpu/phases.hpp"

namespace pw::cpu {
namespace {

using rows::Block;
using rows::Index;
using rows::IndexId;
using rows::Indices;
using rows::Statement;
using rows::Terms;
using rows::VarId;
using namespace rows::cxx;

constexpr std::int64_t kFewestAcross = 8;                           // rows and columns that pay off
constexpr std::int64_t kTileSide = 64;                              // of a tile of some columns
constexpr std::int64_t kTileBytes = 1 << 17, kFewestTileRows = 16;  // of a tile of whole rows

/// A load in a loop over columns that are not neighbours in the operand.
struct Across {
  const Statement* load;
  const Statement* loop;
};

bool walks_columns(const Statement& s) {
  return s.kind == Statement::Kind::reduce || s.kind == Statement::Kind::loop;
}

/// Returns the factor of a variable; nothing if the form depends on it in another way.
std::optional<std::int64_t> step_along(const Indices& indices, const Terms& terms, VarId var) {
  std::int64_t out = 0;
  for (const auto& [atom, factor] : terms.factors) {
    if (!indices.depends(atom, var)) continue;
    if (indices[atom].kind != Index::Kind::variable) return std::nullopt;
    out = factor;
  }
  return out;
}

std::vector<Across> loads_across(const rows::RowProgram& program, const Block& body) {
  std::vector<Across> out;
  const Indices& indices = program.indices;
  for (const Statement& loop : body) {
    if (!walks_columns(loop) || !is_flat(loop.first)) continue;
    if (indices.interval(indices.extent(loop.var)).high < kFewestAcross) continue;
    for (const Statement& s : loop.first) {
      if (s.kind != Statement::Kind::load || !indices.depends(s.index, program.row)) continue;
      const auto terms = indices.terms(s.index);
      const auto step = terms ? step_along(indices, *terms, loop.var) : std::nullopt;
      if (step && *step >= kFewestAcross && !indices.reads_slot(s.index))
        out.push_back({&s, &loop});
    }
  }
  return out;
}

/// Finds the loads that read neighbours along some dims of the rows, and makes their panels.
class Division {
 public:
  /// The rows' dims from `first` to below `last` are the neighbours.
  Division(const rows::RowProgram& program, std::size_t first, std::size_t last)
      : program_(program) {
    out_.indices = program.indices;
    const ContextPtr& context = program.context;
    const auto product = [&](std::size_t from, std::size_t to) {
      std::int64_t count = 1;
      for (std::size_t i = from; i < to; ++i) {
        const std::int64_t extent = context->dims.value(program.domain[i]).value_or(0);
        if (__builtin_mul_overflow(count, extent, &count)) count = 0;
      }
      return count;
    };
    out_.inside = product(last, program.domain.size());
    out_.along = first == 0 ? 0 : product(first, last);
    valid_ = out_.inside > 0 && (first == 0 || out_.along >= kFewestAcross);
    if (!valid_) return;
    Indices& indices = out_.indices;
    const IndexId all = indices.extent(program.row);
    const IndexId inside = indices.constant(out_.inside), along = indices.constant(out_.along);
    const IndexId tall = indices.div(all, inside);
    out_.neighbour = indices.variable(first == 0 ? tall : along);
    row_ = indices.use(out_.neighbour);
    if (first != 0) {
      out_.group = indices.variable(indices.div(tall, along));
      row_ = indices.add(indices.mul(indices.use(out_.group), along), row_);
    }
    if (out_.inside == 1) return;
    out_.place = indices.variable(inside);
    row_ = indices.add(indices.mul(row_, inside), indices.use(out_.place));
  }

  void add(const Across& one) {
    if (!valid_) return;
    Indices& indices = out_.indices;
    const IndexId index = indices.substitute(one.load->index, program_.row, row_);
    const auto terms = indices.terms(index);
    if (!terms || indices.depends(index, program_.row)) return;
    const VarId column = one.loop->var;
    if (step_along(indices, *terms, out_.neighbour) != 1) return;
    const auto step = step_along(indices, *terms, column);
    if (!step || *step < kFewestAcross) return;
    for (VarId var : indices.vars(index))
      if (var != column && var != out_.neighbour && var != out_.group && var != out_.place) return;
    const rows::Interval width = indices.interval(indices.extent(column));
    exact_ = exact_ && width.low == width.high;
    const Turned::Panel panel{one.load->argument,
                              indices.substitute(index, column, indices.constant(0)), *step,
                              width.high};
    const auto same = [&](const Turned::Panel& other) {
      return other.argument == panel.argument && other.first == panel.first &&
             other.step == panel.step && other.width == panel.width;
    };
    const auto known = std::find_if(out_.panels.begin(), out_.panels.end(), same);
    const auto number = static_cast<std::size_t>(known - out_.panels.begin());
    if (known == out_.panels.end()) out_.panels.push_back(panel);
    out_.loads.emplace(one.load->slot, Turned::Load{number, column});
  }

  [[nodiscard]] std::size_t loads() const { return out_.loads.size(); }

  /// Chooses the tile. Returns nothing if whole rows are needed and too long.
  std::optional<Turned> with_tile(const Block& body) && {
    const auto nested = std::count_if(body.begin(), body.end(), walks_columns);
    const auto loop = std::find_if(body.begin(), body.end(), walks_columns);
    const bool branches = std::any_of(body.begin(), body.end(), [](const Statement& s) {
      return s.kind == Statement::Kind::branch;
    });
    if (nested == 1 && loop->kind == Statement::Kind::loop && !branches) {
      out_.loop = &*loop;
      out_.rows = out_.columns = kTileSide;
      for (Turned::Panel& panel : out_.panels) panel.width = kTileSide;
      return std::move(out_);
    }
    if (!exact_) return std::nullopt;
    std::int64_t bytes = 0;
    for (const Turned::Panel& panel : out_.panels) {
      if (panel.width > kTileBytes) return std::nullopt;
      bytes += panel.width * size_of(program_.type(panel.argument).dtype);
    }
    out_.rows = kTileSide;
    while (out_.rows > kFewestTileRows && out_.rows * bytes > kTileBytes) out_.rows /= 2;
    if (out_.rows * bytes > 2 * kTileBytes) return std::nullopt;
    return std::move(out_);
  }

 private:
  const rows::RowProgram& program_;
  Turned out_;
  IndexId row_;
  bool valid_ = false, exact_ = true;  ///< exact: the number of columns is known
};

}  // namespace

std::optional<Turned> turned_operands(const rows::RowProgram& program, const Block& body) {
  const std::vector<Across> across = loads_across(program, body);
  if (across.empty()) return std::nullopt;
  std::optional<Division> best;
  for (std::size_t last = program.domain.size(); last > 0; --last)
    for (std::size_t first = 0; first < last; ++first) {
      Division division(program, first, last);
      for (const Across& one : across) division.add(one);
      if (division.loads() > (best ? best->loads() : 0)) best.emplace(std::move(division));
    }
  if (!best) return std::nullopt;
  return std::move(*best).with_tile(body);
}

std::string element_of(const Turned& turned, rows::SlotId load) {
  const Turned::Load& one = turned.loads.at(load);
  return fmt::format("z{}[high * {} + {}{}]", one.panel, turned.panels[one.panel].width,
                     variable(one.column), turned.loop == nullptr ? "" : " - wide");
}

void emit_tiles(
    const rows::RowProgram& program, const Turned& turned, CppText& text,
    const std::function<void(int depth, const std::string& from, const std::string& to)>& row) {
  int depth = 1;
  const auto line = [&](const std::string& one) { text.line(depth, one); };
  const auto open = [&](const std::string& one) { text.line(depth++, one + " {"); };
  const auto inside = [&](const std::string& of) {
    return turned.inside == 1 ? of : fmt::format("{} / {}", of, turned.inside);
  };
  for (std::size_t i = 0; i < turned.panels.size(); ++i)
    line(fmt::format("alignas(64) {} z{}[{}];",
                     storage(program.type(turned.panels[i].argument).dtype), i,
                     turned.rows * turned.panels[i].width));
  const std::string end = inside("end");
  open(fmt::format("for (long long tile = {}, tall; tile < {}; tile += tall)", inside("begin"),
                   end));
  line(fmt::format("tall = {0} - tile < {1} ? {0} - tile : {1};", end, turned.rows));
  if (turned.along == 0) {
    line(fmt::format("const long long {} = tile;", variable(turned.neighbour)));
  } else {
    line(fmt::format("const long long {0} = tile / {2}, {1} = tile % {2};", variable(turned.group),
                     variable(turned.neighbour), turned.along));
    line(fmt::format("if ({0} - {1} < tall) tall = {0} - {1};", turned.along,
                     variable(turned.neighbour)));
  }
  if (turned.inside != 1)
    open(fmt::format("for (long long {0} = 0; {0} < {1}; ++{0})", variable(turned.place),
                     turned.inside));
  std::string from = "0", to, count;
  if (turned.loop != nullptr) {
    to = program.indices.print(program.indices.extent(turned.loop->var));
    open(fmt::format("for (long long wide = 0; wide < {}; wide += {})", to, turned.columns));
    line(fmt::format("const long long most = {0} - wide < {1} ? {0} : wide + {1};", to,
                     turned.columns));
    from = "wide", to = "most", count = "most - wide";
  }
  for (std::size_t i = 0; i < turned.panels.size(); ++i) {
    const Turned::Panel& panel = turned.panels[i];
    const std::string first = turned.indices.print(panel.first);
    line(fmt::format("pw_turn(z{}, {}, p{} + {}{}, {}, tall, {});", i, panel.width, panel.argument,
                     first, turned.loop ? fmt::format(" + wide * {}", panel.step) : "", panel.step,
                     turned.loop ? count : std::to_string(panel.width)));
  }
  open("for (long long high = 0; high < tall; ++high)");
  line(turned.inside == 1 ? "const long long row = tile + high;"
                          : fmt::format("const long long row = (tile + high) * {} + {};",
                                        turned.inside, variable(turned.place)));
  row(depth, from, to);
  while (depth > 1) text.line(--depth, "}");
}

}  // namespace pw::cpu
