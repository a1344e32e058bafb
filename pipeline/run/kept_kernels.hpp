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

[[nodiscard]] Table kept_table(const KeptKernels& kept);
[[nodiscard]] Table verified_table(const CacheContents& contents);
[[nodiscard]] Table cleared_table(std::size_t removed);

}  // namespace pw
