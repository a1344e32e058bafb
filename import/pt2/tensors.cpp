#include "import/pt2/tensors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "import/pt2/pt2.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostRefused = 20;

bool is_row_major(const pt2::Payload& payload) {
  std::int64_t stride = 1;
  for (std::size_t i = payload.extents.size(); i-- > 0;) {
    if (payload.extents[i] != 1 && payload.strides[i] != stride) return false;
    stride *= payload.extents[i];
  }
  return true;
}

/// Elements in row-major order; every place is inside of `storage`, as find_payloads has seen to.
void gather(const pt2::Payload& payload, const char* storage, std::byte* to) {
  const auto size = static_cast<std::size_t>(size_of(payload.dtype));
  const std::int64_t count = element_count(payload.extents);
  if (is_row_major(payload)) {
    std::memcpy(to, storage + static_cast<std::size_t>(payload.offset) * size,
                static_cast<std::size_t>(count) * size);
    return;
  }
  std::vector<std::int64_t> index(payload.extents.size(), 0);
  std::int64_t place = payload.offset;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * size,
                storage + static_cast<std::size_t>(place) * size, size);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      place += payload.strides[axis];
      if (++index[axis] < payload.extents[axis]) break;
      place -= payload.strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
}

Diagnostics refusals(const std::vector<std::string>& refused, const std::string& file) {
  Diagnostics out;
  for (std::size_t i = 0; i < std::min(refused.size(), kMostRefused); ++i)
    out.push_back(error_in(file, "PW1274", "no contents for the input " + refused[i]));
  return out;
}

}  // namespace

Result<std::string> safetensors_of_pt2(std::string_view archive, const std::string& file,
                                       std::size_t number) {
  const pt2::Archive opened = PW_TRY(pt2::open_archive(archive, file));
  const pt2::Payloads payloads = PW_TRY(pt2::find_payloads(opened, number, archive.size()));
  if (!payloads.refused.empty()) return tl::unexpected(refusals(payloads.refused, file));
  std::vector<Tensor> tensors;
  std::vector<std::pair<std::string, TensorView>> named;
  std::string entry, storage;  // the last one read: inputs may share one
  for (const pt2::Payload& payload : payloads.read) {
    if (entry != payload.entry || tensors.empty())
      storage = PW_TRY(opened.zip.read(payload.entry, std::numeric_limits<std::size_t>::max()));
    entry = payload.entry;
    tensors.emplace_back(payload.dtype, payload.extents);
    if (element_count(payload.extents) > 0) gather(payload, storage.data(), tensors.back().data());
    named.emplace_back(payload.input, tensors.back().view());
  }
  return safetensors_text(std::move(named));
}

}  // namespace pw
