// Cubins through the compile cache: what is found there starts no compilation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/cache/cache.hpp"
#include "backends/cuda/emitter.hpp"
#include "backends/cuda/nvrtc.hpp"

namespace pw::cuda {

/// The kernel's cubin for a target: from the cache, else compiled and kept; without a cache
/// always compiled. May be called from several threads.
Result<Cubin> cubin_of(const Nvrtc& nvrtc, CompileCache* cache, const Kernel& kernel,
                       const Target& target);

/// A cubin with what was said of it, as bytes and back; nothing where the bytes are no cubin.
[[nodiscard]] std::string pack(const Cubin& cubin);
[[nodiscard]] std::optional<Cubin> unpack(std::string_view bytes);

}  // namespace pw::cuda
