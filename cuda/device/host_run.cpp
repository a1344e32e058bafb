// Definitions of CUDA's names; cooperative operations call the ThreadBlock.
#include "cuda/device/host_run.hpp"

#include <deque>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/thread_block.hpp"

namespace pw::cuda {
namespace {

/// Definitions of CUDA's names. Cooperative operations call the ThreadBlock.
constexpr std::string_view kPrologue = R"cpp(
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)
  struct uint2 {
    unsigned x, y;
  };
  struct uint4 {
    unsigned x, y, z, w;
  };
  struct pw_dim {
    unsigned x, y, z;
  };
  struct pw_any {
    void* p;
    template <class T>
    operator T*() const {
      return (T*)p;
    }
  };
  static const pw_host_api* pw_host;
  extern "C" void pw_bind(const pw_host_api* api) { pw_host = api; }
#define threadIdx (pw_dim{pw_host->thread(), 0, 0})
#define blockIdx (pw_dim{pw_host->block(), pw_host->block_y(), 0})
#define blockDim (pw_dim{pw_host->threads(), 1, 1})
#define __syncthreads() pw_host->barrier(__LINE__)
  // Accesses of the calling thread by kind and width, as in AccessCounts.
  static thread_local long long pw_counted[4][5];
  extern "C" void pw_take_counts(long long* out) {
    __builtin_memcpy(out, pw_counted, sizeof pw_counted);
    __builtin_memset(pw_counted, 0, sizeof pw_counted);
  }
  extern "C" long long pw_accesses() {
    long long all = 0;
    for (int i = 0; i < 20; ++i) all += (&pw_counted[0][0])[i];
    return all;
  }
#define pw_prefetch(p, bytes)
#define pw_after_wait(p) (p)
#define pw_wait_for_earlier() pw_host->wait_for_earlier(pw_accesses())
#define pw_wait_for_blocks_before(number) pw_host->wait_for_blocks(number)
#define pw_block_in_order(across) (int)(pw_host->block_y() * (across) + pw_host->block())
  template <class T>
  static inline void pw_count(int kind) {
    ++pw_counted[kind][sizeof(T) == 16 ? 4 : sizeof(T) == 8 ? 3 : sizeof(T) == 4 ? 2 : sizeof(T) - 1];
  }
  template <class T>
  static inline T pw_load(const T* p, long long i) {
    pw_count<T>(0);
    return p[i];
  }
  template <class T, class V>
  static inline void pw_store(T* p, long long i, V x) {
    pw_count<T>(1);
    p[i] = (T)x;
  }
  template <class T>
  struct pw_array {
    void* p;
  };
#define PW_SHARED(type, name, count) \
    static const char name##_site = 0; \
    pw_array<type> name { pw_host->shared(&name##_site, #name, count, sizeof(type)) }
#define PW_KEPT(name) \
    pw_array<uint4> name { pw_host->shared(0, #name, -1, sizeof(uint4)) }
#define PW_ALIGNED(p, bytes)             \
    if ((unsigned long long)(p) % (bytes)) \
    pw_host->fault("an address is not aligned to " #bytes " bytes")
  template <class T, class V>
  static inline void pw_put(pw_array<T>& shared, int i, V value) {
    const T x = value;
    pw_count<T>(3);
    pw_host->set(shared.p, i, &x);
  }
  template <class T>
  static inline T pw_at(pw_array<T>& shared, int i) {
    T x;
    pw_count<T>(2);
    pw_host->get(shared.p, i, &x);
    return x;
  }
  template <class T>
  static inline T __shfl_xor_sync(unsigned mask, T mine, int distance) {
    T other;
    pw_host->exchange(mask, distance, &mine, &other, sizeof(T));
    return other;
  }
  template <class T>
  static inline T __ldg(const T* p) {
    return pw_load(p, 0);
  }
)cpp";

std::string entry(const Kernel& kernel) {
  std::string call;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
    call += fmt::format("pw_any{{p[{}]}}, ", i);
  for (std::size_t i = 0; i < kernel.params.size(); ++i)
    call += fmt::format("{}d[{}]", i ? ", " : "", i);
  return fmt::format(
      "extern \"C\" void host_{0}(void* const* p, const long long* d) {{ {0}({1}); }}\n",
      kernel.name, call);
}

/// Returns the shared object of a source, cached or compiled.
Result<std::string> host_object(const std::string& source, CompileCache* cache) {
  const std::vector<std::string> flags{"-std=c++17", "-O1", "-w", "-ffp-contract=off"};
  const Toolchain toolchain = cache != nullptr && cache->sealed() ? Toolchain() : Toolchain::find();
  const auto compile = [&] { return toolchain.shared_object(source, flags); };
  if (cache == nullptr) return compile();
  const auto key = [&](const std::string& compiler) {
    KeyParts parts;
    parts.add("schema", "host 1").add("compiler", compiler);
    for (const std::string& flag : flags) parts.add("flag", flag);
    return parts.add("source", source);
  };
  return cache->get_compiled("host", toolchain.identity, key, compile);
}

}  // namespace

std::string host_source(std::span<const Kernel> kernels, std::string_view extra) {
  std::string source = fmt::format("struct pw_host_api {{\n{}}};\n{}\n{}\n{}\n{}\n", host_api(),
                                   kPrologue, host_names(), prelude(), team_prelude());
  std::set<std::string> done;
  for (const Kernel& kernel : kernels) {
    if (!done.insert(kernel.name).second) continue;
    source += kernel.source + entry(kernel);
  }
  return source + std::string(extra);
}

Result<HostKernels> HostKernels::build(std::span<const Kernel> kernels, std::string_view extra,
                                       CompileCache* cache) {
  std::string object = PW_TRY(host_object(host_source(kernels, extra), cache));
  SharedObject library = PW_TRY(SharedObject::load(object));
  HostKernels result;
  result.library_ = std::move(library);
  if (const auto bind = reinterpret_cast<void (*)(const HostApi*)>(result.symbol("pw_bind")))
    bind(&ThreadBlock::api());
  for (const Kernel& k : kernels)
    result.launches_[k.name] = {k.threads, k.rows_per_block, k.column_blocks, k.shared_bytes};
  return result;
}

/// Adds the accesses counted since the last call to the counts of this thread.
void HostKernels::take_counts(AccessCounts* counts) const {
  const auto take = reinterpret_cast<void (*)(long long*)>(symbol("pw_take_counts"));
  if (take == nullptr || counts == nullptr) return;
  long long taken[4][AccessesByWidth::kWidths] = {};
  take(&taken[0][0]);
  AccessesByWidth* const kinds[] = {&counts->global_reads, &counts->global_writes,
                                    &counts->shared_reads, &counts->shared_writes};
  for (std::size_t kind = 0; kind < 4; ++kind)
    for (std::size_t i = 0; i < AccessesByWidth::kWidths; ++i)
      kinds[kind]->times[i] += taken[kind][i];
}

void* HostKernels::symbol(const std::string& name) const { return library_.symbol(name.c_str()); }

std::vector<unsigned> HostKernels::block_order(const std::string& kernel, std::int64_t rows,
                                               std::uint64_t seed) const {
  const Shape& shape = launches_.at(kernel);
  return ThreadBlock::order(shape.blocks(rows) * static_cast<unsigned>(shape.column_blocks), seed);
}

Status HostKernels::run(const std::string& kernel, std::span<void* const> pointers,
                        std::span<const std::int64_t> params, std::uint64_t seed,
                        AccessCounts* counts, const std::function<Status()>& earlier) const {
  using Entry = void (*)(void* const*, const long long*);
  const auto function = reinterpret_cast<Entry>(symbol("host_" + kernel));
  const auto how = launches_.find(kernel);
  if (!function || how == launches_.end())
    return fail(error_in("host run", "PW1223", fmt::format("kernel {} was not compiled", kernel)));
  const std::vector<long long> values(params.begin(), params.end());
  AccessCounts unasked;  // of a run without a request for counts
  if (counts != nullptr) take_counts(&unasked);
  Launch launch;
  launch.blocks = how->second.blocks(params[0]);
  launch.column_blocks = static_cast<unsigned>(how->second.column_blocks);
  launch.threads = static_cast<unsigned>(how->second.threads);
  launch.shared_bytes = how->second.shared_bytes;
  launch.seed = seed;
  Status completed;
  launch.accesses = reinterpret_cast<long long (*)()>(symbol("pw_accesses"));
  if (earlier) launch.complete_earlier = [&] { completed = earlier(); };
  // A launch that starts early contains the run of its predecessor.
  thread_local std::deque<ThreadBlock> blocks;
  thread_local std::size_t depth = 0;
  if (blocks.size() == depth) blocks.emplace_back();
  const auto body = [&] { function(pointers.data(), values.data()); };
  launch.run_meanwhile = [&](const std::vector<unsigned>& some) {
    if (blocks.size() == depth) blocks.emplace_back();
    Launch inner = launch;
    if (earlier) inner.complete_earlier = [] {};  // the waiting block has completed it
    std::string fault = blocks[depth++].run(inner, some, body);
    --depth;
    return fault;
  };
  ThreadBlock& block = blocks[depth++];
  const std::string fault = block.run(launch, body);
  --depth;
  take_counts(counts);
  if (!completed) return completed;
  if (fault.empty()) return {};
  return fail(error_in("host run", "PW1225",
                       fmt::format("kernel {}, seed {}: {}", kernel, seed, fault),
                       "on a GPU the result would depend on the order of its threads"));
}

}  // namespace pw::cuda
