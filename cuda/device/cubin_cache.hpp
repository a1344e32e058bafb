// Cubins that are there already: in the compile cache, or in a folder that was prepared for a
// machine without NVRTC.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/cache/cache.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// The kernel's cubin for a target: from the cache, else compiled and kept; without a cache
/// always compiled. May be called from several threads. One of the cache that `loads` refuses is
/// thrown away and compiled anew, once; `loads` also sees what was just compiled for the cache.
Result<Cubin> cubin_of(const Nvrtc& nvrtc, CompileCache* cache, const Kernel& kernel,
                       const Target& target,
                       const std::function<bool(const Cubin&)>& loads = nullptr);

/// Compiles the kernel into a folder, which must exist; what is in it already costs nothing.
Status prepare_cubin(const Nvrtc& nvrtc, const std::string& folder, const Kernel& kernel,
                     const Target& target);
/// From such a folder; PW1223 where it is not in it.
Result<Cubin> prepared_cubin(const std::string& folder, const Kernel& kernel, const Target& target);

/// A cubin with its numbers and log, as bytes and back; nothing if the bytes are no cubin.
[[nodiscard]] std::string pack(const Cubin& cubin);
[[nodiscard]] std::optional<Cubin> unpack(std::string_view bytes);

}  // namespace pw::cuda
