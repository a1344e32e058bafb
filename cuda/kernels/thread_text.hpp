// Internal to cuda/: emits the statements of one thread, alone or for one column of a distributed
// loop.
#pragma once

#include <set>
#include <string>

#include "cuda/kernels/access.hpp"
#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/expressions.hpp"

namespace pw::cuda {

/// The text of a kernel's body under construction.
struct KernelText {
  std::string out;
  AccessRecorder accesses;
  void line(int depth, const std::string& text) {
    out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
};

/// The loop whose column e the statements process.
struct ColumnPlace {
  const ColumnLoop* loop = nullptr;
  std::string groups;                 ///< prefix of its groups' names
  std::string live;                   ///< condition under which the thread may store; empty: always
  std::set<std::size_t> packed = {};  ///< arguments whose columns are rounded together afterwards
};

class ThreadText {
 public:
  ThreadText(const rows::RowProgram& program, Kernel& kernel, KernelText& text)
      : program_(program), kernel_(kernel), text_(text), expressions_(program) {}

  ColumnPlace place;
  std::int64_t one_of = 1;  ///< threads, of which one executes the statement

  void statement(const rows::Statement& s, int depth);
  void block(const rows::Block& body, int depth) {
    for (const rows::Statement& s : body) statement(s, depth);
  }
  /// Returns the store of an element, or its insertion into a group.
  std::string store(const rows::Statement& s);
  /// Adds to the kernel's accesses by element.
  void note(ElementAccess access);

  [[nodiscard]] const Expressions& expressions() const { return expressions_; }
  [[nodiscard]] std::string index(rows::IndexId id) const { return program_.indices.print(id); }
  [[nodiscard]] static std::string variable(rows::VarId id);
  [[nodiscard]] std::string width(rows::VarId var) const;
  /// Returns the number of columns; -1 if unknown at compile time.
  [[nodiscard]] std::int64_t columns(rows::VarId var) const;
  /// Returns the name of a reduction's function, "pw_sum<float>"; a mean adds.
  [[nodiscard]] static std::string function(const rows::Statement& reduce);
  /// Emits the lines of one more column: a = function(a, operand).
  void accumulate(const rows::Statement& reduce, int depth);
  /// Declares the reduction's slot from the total in `text`.
  void total(const rows::Statement& reduce, const std::string& text, int depth);

 private:
  [[nodiscard]] const Access* access(const rows::Statement& s) const;
  std::string load(const rows::Statement& s);
  [[nodiscard]] std::string taken(const rows::Statement& s, const Access& how) const;
  void record(const rows::Statement& s, bool uniform);
  [[nodiscard]] static AccessNode passes(rows::VarId var);
  void branch(const rows::Statement& s, int depth);
  void reduce(const rows::Statement& s, int depth);
  void reduce_alone(const rows::Statement& s, int depth);

  const rows::RowProgram& program_;
  Kernel& kernel_;
  KernelText& text_;
  Expressions expressions_;
};

}  // namespace pw::cuda
