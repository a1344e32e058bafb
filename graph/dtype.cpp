#include "graph/dtype.hpp"

#include <array>

namespace pw {
namespace {

struct Row {
  std::string_view name;
  int size;
  int category;  // 0 b8, 1 integer, 2 float
};
constexpr std::array<Row, kDTypeCount> kRows{{{"b8", 1, 0},
                                              {"i8", 1, 1},
                                              {"i32", 4, 1},
                                              {"i64", 8, 1},
                                              {"u8", 1, 1},
                                              {"f8e4m3", 1, 2},
                                              {"f8e5m2", 1, 2},
                                              {"f16", 2, 2},
                                              {"bf16", 2, 2},
                                              {"f32", 4, 2},
                                              {"f64", 8, 2}}};
const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int size_of(DType dtype) { return row(dtype).size; }
bool is_float(DType dtype) { return row(dtype).category == 2; }
bool is_integer(DType dtype) { return row(dtype).category == 1; }

DType promote(DType a, bool a_weak, DType b, bool b_weak) {
  if (a == b) return a;
  int ca = row(a).category, cb = row(b).category;
  if (ca != cb) {
    // A number, which is a weak f64, meeting an integer tensor gives f32, PyTorch's default real
    // type; a tensor of rank 0 gives its own.
    DType winner = ca > cb ? a : b;
    bool weak = ca > cb ? a_weak : b_weak;
    bool other_weak = ca > cb ? b_weak : a_weak;
    return weak && !other_weak && winner == DType::f64 ? DType::f32 : winner;
  }
  if (a_weak != b_weak) return a_weak ? b : a;
  if (ca == 1) {
    if ((a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8)) return DType::i32;
    return row(a).size >= row(b).size ? a : b;
  }
  if (row(a).size == row(b).size)
    return row(a).size == 1 ? DType::f16 : DType::f32;  // f8 with f8, f16 with bf16
  return row(a).size > row(b).size ? a : b;
}

}  // namespace pw
