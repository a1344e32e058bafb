// The compiled kernels in the user's compile cache. Fails with PW1434 if there is no such folder.
#pragma once

#include <string>

#include "codegen/cache/cache.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct KeptKernels {
  std::string folder;
  CacheContents contents;
  CacheCounts totals;  ///< over all runs
};
Result<KeptKernels> kept_kernels();
/// Reads every object; removes damaged ones and unfinished files.
Result<CacheContents> verify_kept_kernels();
/// Removes all objects and returns their number.
Result<std::size_t> clear_kept_kernels();

/// Returns a row for each of the newest objects, at most 50, with what its key has that differs
/// from its predecessor's; see codegen/cache/origins.hpp.
Result<Table> explain_kept_kernels();
/// Returns a row for each part of the key that begins with `digits`, with its value and the
/// predecessor's if it differs. Fails with PW1447 unless one object has such a key.
Result<Table> explain_kept_kernel(const std::string& digits);

[[nodiscard]] Table kept_table(const KeptKernels& kept);
[[nodiscard]] Table verified_table(const CacheContents& contents);
[[nodiscard]] Table cleared_table(std::size_t removed);

}  // namespace pw
