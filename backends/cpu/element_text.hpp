// Internal to cpu/: emits loads, computations and stores of single elements, and chooses the form
// in which a slot is held. A narrow float is held as its value, as its bits in memory too, or not
// yet rounded, so that a store need not convert again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "backends/cpu/emitter.hpp"
#include "backends/cpu/uses.hpp"
#include "codegen/rowprogram/cxx.hpp"

namespace pw::cpu {

/// The text of a kernel's body under construction.
struct CppText {
  std::string out;
  void line(int depth, const std::string& text) {
    out += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
};

class ElementText {
 public:
  ElementText(const rows::RowProgram& program, const EmitOptions& options, CppText& text);

  std::optional<int> half;  ///< current column of a pair

  void define(int depth, const rows::Statement& s, const std::string& value);
  void load(const rows::Statement& s, int depth);
  void compute(const rows::Statement& s, int depth);
  void store(const rows::Statement& s, int depth);

  /// Defines a slot by a kept value, which is rounded.
  void define_kept(const rows::Statement& s, const std::string& kept, int depth);
  /// States that another phase reads a slot from its buffer.
  void keep(rows::SlotId slot) { read_.insert(slot); }
  /// States that only the slot's value is still visible, not its bits.
  void forget_bits(rows::SlotId slot) { with_bits_.erase(slot); }
  /// States that `read` is the kept value: stored unchanged, it must be rounded when it is kept.
  void share(rows::SlotId read, rows::SlotId kept);
  /// Emits the reciprocal of a slot that columns are divided by.
  void define_reciprocal(const rows::Statement& s, int depth);
  /// Emits tables of elements that every iteration of a loop reads, unless they exist.
  void make_tables(const rows::Statement& outer, int depth);

  /// States where the current row's element of a load is, in place of the argument.
  void place(rows::SlotId load, std::string element) { places_[load] = std::move(element); }

  /// Names the word that holds an element of both columns of a pair.
  std::string add_word(const rows::Statement& s);
  [[nodiscard]] const std::string& word(const rows::Statement& s) const { return words_.at(&s); }

 private:
  /// Elements of an argument, even columns first.
  struct Table {
    std::size_t number = 0;
    std::int64_t columns = 0;
    rows::VarId var;  ///< of the loop that reads it
  };
  void define_bits(int depth, const rows::Statement& s, const std::string& bits);
  void load_from_word(const rows::Statement& s, const std::string& word, int depth);
  [[nodiscard]] std::string value_of(const rows::Statement& s) const;
  [[nodiscard]] std::string of_table(const Table& table) const;
  [[nodiscard]] std::string index(rows::IndexId id) const { return indices_.print(id); }
  [[nodiscard]] DType dtype(rows::SlotId id) const { return program_.slots[id]; }
  void line(int depth, const std::string& text) { text_.line(depth, text); }

  const rows::RowProgram& program_;
  rows::Indices indices_;  // the program's, and those of first elements of tables
  const EmitOptions& options_;
  CppText& text_;
  std::set<rows::SlotId> stored_, read_, with_bits_, exact_, late_;
  Divisions divisions_;
  std::set<rows::SlotId> reciprocals_;                   // divisors with a reciprocal
  std::map<const rows::Statement*, std::string> words_;  // statements that move a pair's elements
  std::map<rows::SlotId, std::string> places_;           // of loads that do not read the argument
  std::map<const rows::Statement*, Table> tables_;       // statements that read one
  /// Number of each table, by argument, first element and columns.
  std::map<std::tuple<std::size_t, rows::IndexId, std::int64_t>, std::size_t> table_numbers_;
};

/// Returns the variable of a loop.
[[nodiscard]] std::string variable(rows::VarId id);

}  // namespace pw::cpu
