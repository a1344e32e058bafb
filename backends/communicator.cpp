#include "backends/communicator.hpp"

#include <algorithm>
#include <cstring>

#include "backends/collectives.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

/// Returns part i of n equal parts of a row-major array, as a vector.
Array slab(const Array& whole, std::int64_t i, std::int64_t n) {
  Array part = whole;
  part.extents = {whole.count() / n};
  part.strides = {1};
  part.data = whole.at(i * part.extents[0]);
  return part;
}

Array bytes_of(std::int64_t count) { return make_array(DType::u8, {count}); }

}  // namespace

Status HostCommunicator::reduce_scatter(const Array& x, DType declared, const Array& part,
                                        RankGroup group) {
  const std::int64_t n = ranks_in(group, size());
  const Array received = make_array(x.dtype, {x.count()});
  PW_TRY(all_to_all(x, received, group));
  std::vector<Array> parts;
  for (std::int64_t i = 0; i < n; ++i) parts.push_back(slab(received, i, n));
  add_in_order(parts, declared, slab(part, 0, 1));
  return {};
}

/// Each rank sums one part and sends it to all, which moves as many bytes as a ring.
Status HostCommunicator::all_reduce(const Array& x, DType declared, const Array& sum,
                                    RankGroup group) {
  const std::int64_t n = ranks_in(group, size()), count = x.count();
  const std::int64_t part = (count + n - 1) / n;
  const Array padded = make_array(x.dtype, {n * part}), whole = make_array(sum.dtype, {n * part});
  const std::int64_t width = size_of(x.dtype);
  if (count > 0) std::memcpy(padded.data, x.data, static_cast<std::size_t>(count * width));
  std::memset(padded.at(count), 0, static_cast<std::size_t>((n * part - count) * width));
  const Array own = make_array(sum.dtype, {part});
  PW_TRY(reduce_scatter(padded, declared, own, group));
  PW_TRY(all_gather(own, whole, group));
  if (count > 0)
    std::memcpy(sum.data, whole.data, static_cast<std::size_t>(count * size_of(sum.dtype)));
  return {};
}

Result<std::vector<std::string>> gather_texts(Communicator& ranks, const std::string& own) {
  const auto all = static_cast<std::size_t>(ranks.size());
  const Array length = make_array(DType::i64, {1}),
              lengths = make_array(DType::i64, {ranks.size()});
  const auto size = static_cast<std::int64_t>(own.size());
  std::memcpy(length.data, &size, sizeof size);
  PW_TRY(ranks.all_gather(length, lengths, {}));
  const std::vector<std::int64_t> sizes = elements_of<std::int64_t>(lengths);
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> out(all);
  if (longest == 0) return out;
  const Array text = bytes_of(longest), texts = bytes_of(longest * ranks.size());
  std::memset(text.data, 0, static_cast<std::size_t>(longest));
  std::memcpy(text.data, own.data(), own.size());
  PW_TRY(ranks.all_gather(text, texts, {}));
  for (std::size_t r = 0; r < all; ++r)
    out[r].assign(reinterpret_cast<const char*>(texts.at(static_cast<std::int64_t>(r) * longest)),
                  static_cast<std::size_t>(sizes[r]));
  return out;
}

}  // namespace pw
