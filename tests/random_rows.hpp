// Random graphs of row ops, for tests of everything that generates code for them: chains of
// pointwise ops, reductions along a row and over groups of its columns, casts through narrow types,
// slices and gathers. A graph is a function of its seed alone.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.hpp"

namespace pw::test {

struct RandomRows {
  std::string text;    ///< a graph, with the symbol n for its rows; ids are called i…, tables t…
  std::int64_t rows;   ///< how many to run
  std::int64_t width;  ///< columns
};

class RowsGenerator {
 public:
  explicit RowsGenerator(std::uint64_t seed) : random_(seed) {}

  RandomRows run() {
    static constexpr std::int64_t kWidths[] = {1,   2,   7,    8,    24,   32,   131,  128,
                                               256, 384, 1000, 1024, 2048, 4096, 8192, 65536};
    width_ = kWidths[random_.below(std::size(kWidths))];
    const std::int64_t rows = width_ > 8192   ? 1
                              : width_ > 1024 ? pick({1, 2, 5})
                                              : pick({1, 3, 9, 37});
    std::string x = input("x", fmt::format("{}[n, {}]", wide(), width_));
    if (random_.below(6) == 0) x = gather();
    std::string h = define(fmt::format("f32({})", x));
    const std::size_t steps = 1 + random_.below(8);
    for (std::size_t i = 0; i < steps; ++i) h = step(h);
    std::vector<std::string> out{define(fmt::format("{}({})", any_float(), h))};
    if (random_.below(3) == 0 && h != x) out.push_back(h);
    for (const std::string& r : row_values_) {
      if (random_.below(3) == 0) out.push_back(r);
    }
    std::string text = "graph { in ";
    for (std::size_t i = 0; i < inputs_.size(); ++i) text += (i ? ", " : "") + inputs_[i];
    text += "\n" + body_ + "  out ";
    for (std::size_t i = 0; i < out.size(); ++i) text += (i ? ", " : "") + out[i];
    return {text + " }", rows, width_};
  }

 private:
  std::int64_t pick(std::initializer_list<std::int64_t> from) {
    return *(from.begin() + random_.below(from.size()));
  }
  const char* wide() {
    static constexpr const char* kTypes[] = {"bf16", "bf16", "f16", "f32"};
    return kTypes[random_.below(4)];
  }
  const char* any_float() {
    static constexpr const char* kTypes[] = {"bf16", "f16", "f32", "f8e4m3", "f8e5m2"};
    return kTypes[random_.below(5)];
  }
  std::string input(const char* base, const std::string& type) {
    std::string name = fmt::format("{}{}", base, inputs_.size());
    inputs_.push_back(name + ": " + type);
    return name;
  }
  std::string define(const std::string& expression) {
    std::string name = fmt::format("v{}", values_++);
    body_ += fmt::format("  {} = {}\n", name, expression);
    return name;
  }
  std::string gather() {
    const std::string table = input("t", fmt::format("{}[7, {}]", wide(), width_));
    return define(fmt::format("embedding({}, {})", table, input("i", "i64[n]")));
  }
  /// A value that broadcasts against a row.
  std::string other() {
    switch (random_.below(4)) {
      case 0: return fmt::format("f32({})", input("w", fmt::format("{}[{}]", wide(), width_)));
      case 1: return fmt::format("f32({})", input("y", fmt::format("{}[n, {}]", wide(), width_)));
      case 2: return row_values_.empty() ? "0.75" : row_values_[random_.below(row_values_.size())];
      default: return fmt::format("{}.25", 1 + random_.below(5));
    }
  }

  std::string step(const std::string& h) {
    switch (random_.below(12)) {
      case 0: return define(fmt::format("neg({})", h));
      case 1: return define(fmt::format("sqrt(abs({}))", h));
      case 2: return define(fmt::format("{} * {}", h, other()));
      case 3: return define(fmt::format("{} + {}", h, other()));
      case 4: return define(fmt::format("{} - {}", h, other()));
      case 5: return define(fmt::format("maximum({}, {})", h, other()));
      case 6: return define(fmt::format("f32({}({}))", any_float(), h));
      case 7: return define(fmt::format("select(lt({0}, {1}), {1}, {0} * 0.5)", h, other()));
      case 8: return rotated(h);
      case 9:
      case 10: return along_row(h);
      default: return over_groups(h);
    }
  }
  /// The halves are swapped.
  std::string rotated(const std::string& h) {
    if (width_ % 2 != 0) return define(fmt::format("abs({})", h));
    const std::string a = fmt::format("v{}", values_++), b = fmt::format("v{}", values_++);
    body_ += fmt::format("  {}, {} = split({}){{dim = 1, sizes = [{}, {}]}}\n", a, b, h, width_ / 2,
                         width_ / 2);
    return define(fmt::format("cat(neg({}), {}){{dim = 1}}", b, a));
  }
  const char* reduction() {
    static constexpr const char* kOps[] = {"sum", "mean", "amax", "amin"};
    return kOps[random_.below(4)];
  }
  std::string along_row(const std::string& h) {
    const std::string factor = random_.below(2) == 0 ? h : "0.5";
    const std::string r =
        define(fmt::format("{}({} * {}){{dim = -1, keepdim = true}}", reduction(), h, factor));
    row_values_.push_back(r);
    if (random_.below(2) == 0) return define(fmt::format("{} - {}", h, r));
    return define(fmt::format("{} / (abs({}) + 1.0)", h, r));
  }
  std::string over_groups(const std::string& h) {
    for (std::int64_t group : {std::int64_t{128}, std::int64_t{32}, std::int64_t{8}}) {
      if (width_ % group != 0 || width_ == group || random_.below(2) == 0) continue;
      const std::string g =
          define(fmt::format("reshape({}){{shape = [n, {}, {}]}}", h, width_ / group, group));
      const std::string m =
          define(fmt::format("{}(abs({})){{dim = -1, keepdim = true}}", reduction(), g));
      return define(fmt::format("reshape({} / ({} + 0.5)){{shape = [n, {}]}}", g, m, width_));
    }
    return define(fmt::format("{} * 0.5", h));
  }

  Random random_;
  std::int64_t width_ = 0;
  std::vector<std::string> inputs_, row_values_;
  std::string body_;
  int values_ = 0;
};

inline RandomRows random_rows(std::uint64_t seed) { return RowsGenerator(seed).run(); }

}  // namespace pw::test
