#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/kernels.hpp"

namespace pw::eager {
namespace {

Status embedding(Call& call) {
  const Array table = contiguous(call.operand(0));
  const Array ids = contiguous(call.operand(1));
  Array& y = call.result();
  const std::int64_t rows = table.extents[0];
  const std::int64_t width = rows == 0 ? 0 : table.count() / rows;
  std::vector<std::int64_t> index(static_cast<std::size_t>(ids.count()));
  load_run(ids.dtype, ids.data, 1, ids.count(), index.data());
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= rows)
      return fail_call(call, "PW1204",
                       fmt::format("index {} is outside a table of {} rows", index[i], rows));
    std::memcpy(y.at(static_cast<std::int64_t>(i) * width), table.at(index[i] * width),
                static_cast<std::size_t>(width * size_of(y.dtype)));
  }
  return {};
}

constexpr KernelEntry kGathers[] = {{Primitive::embedding, embedding}};

}  // namespace

KernelTable gathers() { return kGathers; }

}  // namespace pw::eager
