// The text form of a row program, one statement a line. It is deterministic and complete, so that
// equal texts mean equal programs; keys of tuned schedules are hashes of it (without the name).
// Linear in the program.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/rowprogram/row_program.hpp"
#include "graph/attribute.hpp"

namespace pw::rows {
namespace {

std::string slot(SlotId id) { return fmt::format("v{}", id.index); }
std::string variable(VarId id) { return id.index == 0 ? "row" : fmt::format("i{}", id.index); }

class Printer {
 public:
  explicit Printer(const RowProgram& program) : program_(program) {}

  std::string run() {
    const Context& context = *program_.context;
    std::vector<std::string> dims, params;
    for (DimId d : program_.domain) dims.push_back(context.dims.print(d));
    out_ = fmt::format("row program {}\n  rows {}\n", program_.op,
                       dims.empty() ? "1" : fmt::format("{}", fmt::join(dims, " * ")));
    for (std::size_t i = 1; i < program_.params.size(); ++i)
      out_ += fmt::format("  d{} = {}\n", i, context.dims.print(program_.params[i]));
    for (std::size_t i = 0; i < program_.arguments.size(); ++i) {
      out_ += fmt::format("  {} p{}: {}{}\n", program_.arguments[i].result ? "out" : "in", i,
                          context.types.print(program_.arguments[i].type),
                          program_.valid == i ? ", the valid tokens" : "");
    }
    block(program_.body, 1);
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
  void block(const Block& statements, int depth) {
    for (const Statement& s : statements) statement(s, depth);
  }
  std::string range(VarId var) const {
    return fmt::format("{} in 0..{}", variable(var),
                       program_.indices.print(program_.indices.extent(var)));
  }

  void statement(const Statement& s, int depth) {
    using Kind = Statement::Kind;
    const std::string head =
        s.slot.valid() ? fmt::format("{}: {} = ", slot(s.slot), name(program_.slots[s.slot])) : "";
    switch (s.kind) {
      case Kind::constant: return line(depth, head + print_real(s.real));
      case Kind::place: return line(depth, head + program_.indices.print(s.index));
      case Kind::load:
        return line(depth,
                    fmt::format("{}p{}[{}]", head, s.argument, program_.indices.print(s.index)));
      case Kind::store:
        return line(depth, fmt::format("p{}[{}] = {}", s.argument, program_.indices.print(s.index),
                                       slot(s.operands[0])));
      case Kind::compute: {
        std::vector<std::string> operands;
        for (SlotId o : s.operands) operands.push_back(slot(o));
        return line(depth, fmt::format("{}{}({}) in {}", head, name(s.operation),
                                       fmt::join(operands, ", "), name(s.unit)));
      }
      case Kind::reduce:
        line(depth, fmt::format("{}{} for {} in {} {{", head, name(s.operation), range(s.var),
                                name(s.unit)));
        block(s.first, depth + 1);
        line(depth + 1, slot(s.operands[0]));
        return line(depth, "}");
      case Kind::branch:
        line(depth, fmt::format("{}if {} < {} {{", head, program_.indices.print(s.index),
                                program_.indices.print(s.bound)));
        block(s.first, depth + 1);
        line(depth + 1, slot(s.operands[0]));
        line(depth, "} else {");
        block(s.second, depth + 1);
        line(depth + 1, slot(s.operands[1]));
        return line(depth, "}");
      case Kind::check:
        return line(depth, fmt::format("check {} < {}", slot(s.operands[0]),
                                       program_.indices.print(s.bound)));
      case Kind::loop:
        line(depth, fmt::format("for {} {{", range(s.var)));
        block(s.first, depth + 1);
        return line(depth, "}");
    }
  }

  const RowProgram& program_;
  std::string out_;
};

}  // namespace

std::string print(const RowProgram& program) { return Printer(program).run(); }

}  // namespace pw::rows
