// Exports default_capture_sizes and make_capture_sizes: which token counts are captured, and what
// pads to what.
#include <algorithm>

#include "splitter/plan.hpp"

namespace pw {

std::int64_t CaptureSizes::pad(std::int64_t tokens) const {
  if (tokens < 0 || tokens >= static_cast<std::int64_t>(padding.size())) return -1;
  return padding[static_cast<std::size_t>(tokens)];
}

std::vector<std::int64_t> default_capture_sizes(std::int64_t max_requests, std::int64_t cap,
                                                std::int64_t max_tokens) {
  // Written so that no product of large options can overflow.
  const std::int64_t wanted = max_requests > cap / 2 ? cap : max_requests * 2;
  const std::int64_t largest = std::min({wanted, cap, max_tokens});
  std::vector<std::int64_t> sizes;
  for (const std::int64_t s : {1, 2, 4})
    if (s <= largest) sizes.push_back(s);
  for (std::int64_t s = 8; s < 256 && s <= largest; s += 8) sizes.push_back(s);
  for (std::int64_t s = 256; s <= largest; s += 16) sizes.push_back(s);
  if (max_tokens <= largest && (sizes.empty() || sizes.back() < max_tokens))
    sizes.push_back(max_tokens);
  return sizes;
}

CaptureSizes make_capture_sizes(std::vector<std::int64_t> sizes) {
  CaptureSizes out;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase_if(sizes, [](std::int64_t s) { return s < 1; });
  out.sizes = std::move(sizes);
  if (out.sizes.empty()) return out;
  out.padding.resize(static_cast<std::size_t>(out.sizes.back()) + 1);
  std::size_t next = 0;
  for (std::size_t tokens = 1; tokens < out.padding.size(); ++tokens) {
    if (out.sizes[next] < static_cast<std::int64_t>(tokens)) ++next;
    out.padding[tokens] = out.sizes[next];
  }
  return out;
}

}  // namespace pw
