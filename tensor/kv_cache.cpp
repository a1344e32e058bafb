#include "tensor/kv_cache.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.hpp"

namespace pw {
namespace {

std::size_t row_bytes(const Array& x) {
  return static_cast<std::size_t>(x.extents[1] * x.extents[2] * size_of(x.dtype));
}

Status refuse(const KvCache::Layer& layer, std::int64_t sequence, const std::string& why) {
  return fail(error_in(fmt::format("attention layer {}, sequence {}", layer.name, sequence),
                       "PW1209", why));
}

}  // namespace

Status KvCache::extend(const Layer& layer, std::int64_t sequence, std::int64_t past,
                       std::int64_t count) {
  Pool& pool = pools_[layer];
  Sequence& s = pool.sequences[sequence];
  if (past > s.tokens)
    return refuse(
        layer, sequence,
        fmt::format("has {} tokens in the cache, but the step states {}", s.tokens, past));
  s.tokens = past + count;
  const auto wanted = static_cast<std::size_t>((s.tokens + page_tokens_ - 1) / page_tokens_);
  for (; s.pages.size() > wanted; s.pages.pop_back()) pool.free.push_back(s.pages.back());
  while (s.pages.size() < wanted) {
    if (pool.free.empty()) {
      pool.free.push_back(pool.pages.size());
      pool.pages.emplace_back(static_cast<std::size_t>(page_tokens_) * (pool.k_row + pool.v_row));
    }
    s.pages.push_back(pool.free.back());
    pool.free.pop_back();
  }
  return {};
}

Status KvCache::put(const Layer& layer, std::int64_t sequence, std::int64_t past, const Array& k,
                    const Array& v) {
  Pool& pool = pools_[layer];
  if (pool.pages.empty()) {
    pool.k_type = k.dtype;
    pool.v_type = v.dtype;
    pool.k_row = row_bytes(k);
    pool.v_row = row_bytes(v);
  }
  if (pool.k_type != k.dtype || pool.v_type != v.dtype || pool.k_row != row_bytes(k) ||
      pool.v_row != row_bytes(v))
    return refuse(layer, sequence, "its keys or values differ in type or width from earlier steps");
  const std::int64_t count = k.extents[0];
  if (auto done = extend(layer, sequence, past, count); !done) return done;
  const Sequence& s = pool.sequences[sequence];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = past + i;
    const auto slot = static_cast<std::size_t>(at % page_tokens_);
    std::byte* page = pool.pages[s.pages[static_cast<std::size_t>(at / page_tokens_)]].data();
    std::memcpy(page + slot * pool.k_row, k.data + static_cast<std::size_t>(i) * pool.k_row,
                pool.k_row);
    std::memcpy(page + static_cast<std::size_t>(page_tokens_) * pool.k_row + slot * pool.v_row,
                v.data + static_cast<std::size_t>(i) * pool.v_row, pool.v_row);
  }
  return {};
}

void KvCache::get(const Layer& layer, std::int64_t sequence, std::int64_t tokens, std::byte* k,
                  std::byte* v) const {
  const Pool& pool = pools_.at(layer);
  const Sequence& s = pool.sequences.at(sequence);
  PW_ASSERT(tokens <= s.tokens, "a cache is read as far as it is filled");
  for (std::int64_t at = 0; at < tokens; at += page_tokens_) {
    const auto rows = static_cast<std::size_t>(std::min(page_tokens_, tokens - at));
    const std::byte* page = pool.pages[s.pages[static_cast<std::size_t>(at / page_tokens_)]].data();
    std::memcpy(k + static_cast<std::size_t>(at) * pool.k_row, page, rows * pool.k_row);
    std::memcpy(v + static_cast<std::size_t>(at) * pool.v_row,
                page + static_cast<std::size_t>(page_tokens_) * pool.k_row, rows * pool.v_row);
  }
}

void KvCache::end(std::int64_t sequence) {
  for (auto& [layer, pool] : pools_) {
    const auto s = pool.sequences.find(sequence);
    if (s == pool.sequences.end()) continue;
    pool.free.insert(pool.free.end(), s->second.pages.rbegin(), s->second.pages.rend());
    pool.sequences.erase(s);
  }
}

std::int64_t KvCache::tokens(const Layer& layer, std::int64_t sequence) const {
  const auto pool = pools_.find(layer);
  if (pool == pools_.end()) return 0;
  const auto s = pool->second.sequences.find(sequence);
  return s == pool->second.sequences.end() ? 0 : s->second.tokens;
}

std::size_t KvCache::pages() const {
  std::size_t n = 0;
  for (const auto& [layer, pool] : pools_) n += pool.pages.size();
  return n;
}

std::size_t KvCache::free_pages() const {
  std::size_t n = 0;
  for (const auto& [layer, pool] : pools_) n += pool.free.size();
  return n;
}

}  // namespace pw
