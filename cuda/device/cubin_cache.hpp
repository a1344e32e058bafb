// Compiled cubins, from the compile cache or from a folder prepared for a machine without NVRTC.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/cache/cache.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Returns the kernel's cubin for a target: cached, or compiled and stored; without a cache always
/// compiled. Thread-safe. A cached cubin that `loads` rejects is discarded and recompiled once;
/// `loads` also checks a new cubin for the cache.
Result<Cubin> cubin_of(const Nvrtc& nvrtc, CompileCache* cache, const Kernel& kernel,
                       const Target& target,
                       const std::function<bool(const Cubin&)>& loads = nullptr);

/// Compiles the kernel into an existing folder; existing entries are not recompiled.
Status prepare_cubin(const Nvrtc& nvrtc, const std::string& folder, const Kernel& kernel,
                     const Target& target);
/// Reads a cubin from such a folder; fails with PW1223 if it is missing.
Result<Cubin> prepared_cubin(const std::string& folder, const Kernel& kernel, const Target& target);

/// Serialises a cubin with its numbers and log, and parses it; nothing if the bytes are not a
/// cubin.
[[nodiscard]] std::string pack(const Cubin& cubin);
[[nodiscard]] std::optional<Cubin> unpack(std::string_view bytes);

}  // namespace pw::cuda
