// Splits a row program into nests of loops and emits their turns. A turn is executed by one thread,
// so every statement is scalar. Cost: linear in the program.
#include "cuda/kernels/matmul/column_nests.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cuda/kernels/expressions.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::RowProgram;
using rows::Statement;
using StatementKind = Statement::Kind;

class NestFinder {
 public:
  NestFinder(const RowProgram& program, std::size_t argument)
      : program_(program), argument_(argument) {}

  std::optional<std::vector<ColumnNest>> run(std::int64_t columns) {
    if (!block(program_.body, {}) || nests_.empty()) return std::nullopt;
    std::int64_t computed = 0;
    for (const ColumnNest& nest : nests_)
      computed += nest.turns * static_cast<std::int64_t>(nest.columns.size());
    return computed <= columns ? std::optional(std::move(nests_)) : std::nullopt;
  }

 private:
  /// Adds the nests of a block, whose statements follow those of `outer`. A block has loops, or is
  /// the innermost one and stores.
  bool block(const Block& body, ColumnNest outer) {
    bool loops = false;
    for (const Statement& s : body) {
      if (s.kind == StatementKind::loop) {
        loops = true;
        if (!loop(s, outer)) return false;
      } else if (s.kind == StatementKind::reduce) {
        return false;
      } else {
        outer.statements.push_back(&s);
      }
    }
    const auto stores = [](const Statement* s) { return s->kind == StatementKind::store; };
    if (loops)  // a store outside the loops would run in every turn of them
      return std::none_of(outer.statements.begin(), outer.statements.end(), stores);
    return outer.vars.empty() ? !std::any_of(body.begin(), body.end(),
                                             [&](const Statement& s) { return stores(&s); })
                              : add(std::move(outer));
  }

  bool loop(const Statement& s, ColumnNest outer) {
    const rows::Interval extent = program_.indices.interval(program_.indices.extent(s.var));
    if (extent.low != extent.high || extent.high < 1) return false;
    outer.vars.push_back(s.var);
    outer.extents.push_back(extent.high);
    outer.turns *= extent.high;
    return block(s.first, std::move(outer));
  }

  bool add(ColumnNest nest) {
    for (const Statement* s : nest.statements)
      if (!collect(*s, nest)) return false;
    constexpr std::size_t kMost = 6;  // a pair of each of q, k, and v
    if (nest.columns.empty() || nest.columns.size() > kMost) return false;
    nests_.push_back(std::move(nest));
    return true;
  }

  /// Collects the columns that a statement reads, including those of its branches.
  bool collect(const Statement& s, ColumnNest& nest) {
    if (s.kind == StatementKind::loop || s.kind == StatementKind::reduce) return false;
    if (s.kind == StatementKind::load && s.argument == argument_) {
      if (program_.indices.reads_slot(s.index)) return false;
      if (std::find(nest.columns.begin(), nest.columns.end(), s.index) == nest.columns.end())
        nest.columns.push_back(s.index);
    }
    const auto all = [&](const Block& body) {
      return std::all_of(body.begin(), body.end(), [&](const Statement& inner) {
        return inner.kind != StatementKind::store && collect(inner, nest);
      });
    };
    return all(s.first) && all(s.second);
  }

  const RowProgram& program_;
  std::size_t argument_;
  std::vector<ColumnNest> nests_;
};

/// Emits the statements of turns.
class TurnText {
 public:
  TurnText(const RowProgram& program, std::size_t argument, const std::vector<PagedResult>& paged)
      : program_(program), argument_(argument), paged_(paged), expressions_(program) {}

  std::string nest(const ColumnNest& nest) {
    nest_ = &nest;
    out_.clear();
    for (const Statement* s : nest.statements) statement(*s);
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += "      " + text + "\n"; }
  [[nodiscard]] std::string index(rows::IndexId id) const { return program_.indices.print(id); }

  void statement(const Statement& s) {
    switch (s.kind) {
      case StatementKind::constant:
      case StatementKind::compute: return line(expressions_.defined(s));
      case StatementKind::place: return line(expressions_.given(s.slot, index(s.index)));
      case StatementKind::load: return line(expressions_.loaded(s.slot, element(s)));
      case StatementKind::store: return store(s);
      case StatementKind::branch: return branch(s);
      case StatementKind::check:  // device programs have no checks
      case StatementKind::loop:
      case StatementKind::reduce: return;
    }
  }

  void store(const Statement& s) {
    const std::string value = expressions_.stored(s.operands[0]);
    line(fmt::format("pw_store(p{}, {}, {});", s.argument, index(s.index), value));
    for (const PagedResult& result : paged_)
      if (result.argument == s.argument)
        line(fmt::format("if (slot >= 0) pw_store({}, (slot - row) * {}LL + ({}), {});",
                         result.pages, result.width, index(s.index), value));
  }

  [[nodiscard]] std::string element(const Statement& s) const {
    if (s.argument != argument_) return fmt::format("pw_load(p{}, {})", s.argument, index(s.index));
    const auto at = std::find(nest_->columns.begin(), nest_->columns.end(), s.index);
    return fmt::format("y{}", at - nest_->columns.begin());
  }

  void branch(const Statement& s) {
    const std::string own = "u" + std::to_string(s.slot.index);
    line(fmt::format("{} {};", held(expressions_.dtype(s.slot)), own));
    line(fmt::format("if ({} < {}) {{", index(s.index), index(s.bound)));
    for (const Statement& inner : s.first) statement(inner);
    line(fmt::format("{} = {};", own, Expressions::slot(s.operands[0])));
    line("} else {");
    for (const Statement& inner : s.second) statement(inner);
    line(fmt::format("{} = {};", own, Expressions::slot(s.operands[1])));
    line("}");
    line(expressions_.given(s.slot, own));
  }

  const RowProgram& program_;
  std::size_t argument_;
  const std::vector<PagedResult>& paged_;
  Expressions expressions_;
  const ColumnNest* nest_ = nullptr;
  std::string out_;
};

/// Returns the declarations of a nest's variables in a turn.
std::string variables(const ColumnNest& nest) {
  std::string out;
  std::int64_t below = nest.turns;
  for (std::size_t i = 0; i < nest.vars.size(); ++i) {
    below /= nest.extents[i];
    out += fmt::format("      const long long i{} = turn / {}LL % {}LL;\n", nest.vars[i].index,
                       below, nest.extents[i]);
  }
  return out;
}

/// Emits `text` of each nest for its turns, which follow those of earlier nests.
template <class Text>
std::string by_nest(const std::vector<ColumnNest>& nests, const Text& text) {
  std::string out;
  for (std::size_t i = 0; i < nests.size(); ++i) {
    const bool last = i + 1 == nests.size();
    out += last ? "    {\n" : fmt::format("    if (turn < {}LL) {{\n", nests[i].turns);
    out += variables(nests[i]) + text(nests[i]);
    out += last ? "    }\n" : fmt::format("    }}\n    turn -= {}LL;\n", nests[i].turns);
  }
  return out;
}

}  // namespace

std::optional<std::vector<ColumnNest>> column_nests(const RowProgram& program, std::size_t argument,
                                                    std::int64_t columns) {
  if (program.params.size() != 1 || program.valid || program.domain.size() != 1)
    return std::nullopt;
  return NestFinder(program, argument).run(columns);
}

std::vector<std::vector<ColumnNest>> grouped(std::vector<ColumnNest> nests) {
  std::vector<std::vector<ColumnNest>> out;
  for (ColumnNest& nest : nests) {
    const auto like = std::find_if(out.begin(), out.end(), [&](const auto& group) {
      return group.front().columns.size() == nest.columns.size();
    });
    if (like == out.end())
      out.emplace_back().push_back(std::move(nest));
    else
      like->push_back(std::move(nest));
  }
  return out;
}

std::string columns_text(const RowProgram& program, const std::vector<ColumnNest>& nests) {
  return "    const long long row = 0;\n" + by_nest(nests, [&](const ColumnNest& nest) {
           std::string out;
           for (std::size_t i = 0; i < nest.columns.size(); ++i)
             out +=
                 fmt::format("      {}return {};\n",
                             i + 1 == nest.columns.size() ? "" : fmt::format("if (part == {}) ", i),
                             program.indices.print(nest.columns[i]));
           return out;
         });
}

bool stores_rows(const RowProgram& program, const std::vector<ColumnNest>& nests,
                 std::size_t argument, std::int64_t width) {
  rows::Indices indices = program.indices;
  const auto is_in_row = [&](rows::IndexId index) {
    auto terms = indices.terms(index);
    if (!terms) return false;
    const auto row = terms->factors.find(indices.use(program.row));
    if (row == terms->factors.end() || row->second != width) return false;
    terms->factors.erase(row);
    return indices.within(indices.sum(*terms), indices.constant(width));
  };
  return std::all_of(nests.begin(), nests.end(), [&](const ColumnNest& nest) {
    return std::all_of(nest.statements.begin(), nest.statements.end(), [&](const Statement* s) {
      return s->kind != StatementKind::store || s->argument != argument || is_in_row(s->index);
    });
  });
}

std::string turns_text(const RowProgram& program, std::size_t argument,
                       const std::vector<ColumnNest>& nests,
                       const std::vector<PagedResult>& paged) {
  TurnText text(program, argument, paged);
  return by_nest(nests,
                 [&](const ColumnNest& nest) { return text.nest(nest) + "      return;\n"; });
}

}  // namespace pw::cuda
