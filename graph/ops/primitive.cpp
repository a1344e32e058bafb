#include "graph/ops/primitive.hpp"

#include <map>

namespace pw {
namespace {

struct PrimitiveRow {
  std::string_view name;
  PrimitiveClass of = PrimitiveClass::none;
};

#define PW_POINTWISE(name, ...) {#name, PrimitiveClass::pointwise},
#define PW_ROW(name, kind) {#name, PrimitiveClass::kind},
#define PW_REDUCTION(name) PW_ROW(name, reduction)
#define PW_LAYOUT(name) PW_ROW(name, layout)
#define PW_SOURCE(name) PW_ROW(name, source)
#define PW_GATHER(name) PW_ROW(name, gather)
#define PW_SCAN(name) PW_ROW(name, scan)
#define PW_PRODUCT(name) PW_ROW(name, product)
#define PW_WINDOW(name) PW_ROW(name, window)
#define PW_COLLECTIVE(name) PW_ROW(name, collective)
#define PW_ATTENTION(name) PW_ROW(name, attention)
constexpr PrimitiveRow kPrimitiveRows[] = {
    {"", PrimitiveClass::none},
    PW_NUMBER_PRIMITIVES(PW_POINTWISE) PW_INTEGER_PRIMITIVES(PW_POINTWISE)
        PW_REAL_PRIMITIVES(PW_POINTWISE){"cast", PrimitiveClass::pointwise},
    PW_REDUCTION_PRIMITIVES(PW_REDUCTION) PW_LAYOUT_PRIMITIVES(PW_LAYOUT)
        PW_SOURCE_PRIMITIVES(PW_SOURCE) PW_GATHER_PRIMITIVES(PW_GATHER) PW_SCAN_PRIMITIVES(PW_SCAN)
            PW_PRODUCT_PRIMITIVES(PW_PRODUCT) PW_WINDOW_PRIMITIVES(PW_WINDOW)
                PW_COLLECTIVE_PRIMITIVES(PW_COLLECTIVE) PW_ATTENTION_PRIMITIVES(PW_ATTENTION)};
static_assert(std::size(kPrimitiveRows) == kPrimitives);

const PrimitiveRow& primitive_row(Primitive primitive) {
  return kPrimitiveRows[static_cast<std::size_t>(primitive)];
}

}  // namespace

std::string_view name(Primitive primitive) { return primitive_row(primitive).name; }
PrimitiveClass class_of(Primitive primitive) { return primitive_row(primitive).of; }

Primitive primitive_named(std::string_view name) {
  static const auto kByName = [] {
    std::map<std::string_view, Primitive> out;
    for (std::size_t i = 1; i < kPrimitives; ++i)
      out.emplace(kPrimitiveRows[i].name, static_cast<Primitive>(i));
    return out;
  }();
  const auto found = kByName.find(name);
  return found == kByName.end() ? Primitive::none : found->second;
}

}  // namespace pw
