// Internal to cpu/: loops whose reductions and inner loops run across memory, such as a sum over
// the first axis. They take a strip of neighbouring elements at a time, so that vectors hold
// neighbours and each element keeps its own accumulator.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "backends/cpu/element_text.hpp"
#include "backends/cpu/phases.hpp"

namespace pw::cpu {

/// The body of a loop as the bodies of two loops; both are empty or complete.
struct DividedLoop {
  rows::Block strips;  ///< accesses neighbours more often than the loops inside it do
  rows::Block rest;
};
[[nodiscard]] DividedLoop divide(const rows::RowProgram& program, const rows::Block& block,
                                 rows::VarId var);

class Strips {
 public:
  /// Emits flat statements inside a loop over a variable.
  using Inner = std::function<void(const rows::Block&, int depth, const Phases&, rows::VarId)>;

  Strips(const rows::RowProgram& program, ElementText& elements, CppText& text, Inner inner)
      : program_(program), elements_(elements), text_(text), inner_(std::move(inner)) {}

  /// Emits the loop over `var` from `from` to below `to`.
  void emit(const rows::Block& block, rows::VarId var, const std::string& from,
            const std::string& to, int depth);

 private:
  struct Strip {
    rows::VarId var;
    std::int64_t width;
    const Phases& phases;
    std::set<rows::SlotId> kept;  ///< slots with an array, one element for each place of the strip
  };
  void places(const Strip& strip, const rows::Block& body, int depth,
              const std::function<void(int depth)>& work);
  void reduce(Strip& strip, const rows::Statement& s, int depth);
  void add(const Strip& strip, const rows::Statement& s, int depth, const std::string& from,
           const std::string& to, const std::string& sum);
  void add_in_blocks(const Strip& strip, const rows::Statement& s, int depth,
                     const std::string& sum, std::string_view wide);
  void keep(Strip& strip, const rows::Block& statements, int depth);
  [[nodiscard]] std::string name_of(rows::VarId var) const;
  [[nodiscard]] Phases shared(const rows::Block& block);
  [[nodiscard]] std::int64_t width_of(const rows::Block& block, rows::VarId var) const;
  [[nodiscard]] std::string extent(rows::VarId var) const {
    return program_.indices.print(program_.indices.extent(var));
  }
  void line(int depth, const std::string& text) { text_.line(depth, text); }

  const rows::RowProgram& program_;
  ElementText& elements_;
  CppText& text_;
  Inner inner_;
};

}  // namespace pw::cpu
