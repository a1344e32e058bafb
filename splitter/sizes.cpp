#include "splitter/sizes.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace pw {
namespace {

void sort_once(std::vector<std::int64_t>& sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

/// a · b, but at most `most`: no product of large options overflows.
std::int64_t product_up_to(std::int64_t a, std::int64_t b, std::int64_t most) {
  return a > most / b ? most : std::min(a * b, most);
}

}  // namespace

std::int64_t CaptureSizes::pad(std::int64_t tokens) const {
  if (tokens < 0 || tokens >= static_cast<std::int64_t>(padding.size())) return -1;
  return padding[static_cast<std::size_t>(tokens)];
}

CaptureSizes make_capture_sizes(std::vector<std::int64_t> sizes) {
  CaptureSizes out;
  sort_once(sizes);
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

std::int64_t SizeRules::multiple() const {
  return std::lcm(1 + speculative_tokens, sequence_parallel);
}

std::vector<std::int64_t> default_capture_sizes(const SizeRules& rules) {
  const std::int64_t decode =
      product_up_to(rules.max_requests, 1 + rules.speculative_tokens, rules.cap);
  const std::int64_t largest =
      std::min({product_up_to(decode, 2, rules.cap), rules.cap, rules.max_tokens});
  std::vector<std::int64_t> sizes{1, 2, 4};
  for (std::int64_t s = 8; s < 256 && s <= largest; s += 8) sizes.push_back(s);
  for (std::int64_t s = 256; s <= largest; s += 16) sizes.push_back(s);
  sizes.push_back(rules.max_tokens);
  for (std::int64_t& s : sizes) s = round_up(s, rules.multiple());
  std::erase_if(sizes, [&](std::int64_t s) { return s > largest; });
  sort_once(sizes);
  return sizes;
}

KeptSizes keep_multiples(std::vector<std::int64_t> sizes, std::int64_t multiple,
                         const std::string& what) {
  KeptSizes out;
  sort_once(sizes);
  std::vector<std::int64_t> dropped;
  for (const std::int64_t s : sizes) (s % multiple == 0 ? out.sizes : dropped).push_back(s);
  if (!dropped.empty())
    out.dropped =
        fmt::format("{} {} {} dropped: no multiple{} of {}", what, fmt::join(dropped, ", "),
                    dropped.size() == 1 ? "is" : "are", dropped.size() == 1 ? "" : "s", multiple);
  return out;
}

std::int64_t round_up(std::int64_t tokens, std::int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

}  // namespace pw
