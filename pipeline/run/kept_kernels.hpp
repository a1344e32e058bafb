// What the user's compile cache holds of compiled kernels. PW1434 where there is no such folder.
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
/// Reads every object; damaged ones and unfinished files are thrown away.
Result<CacheContents> verify_kept_kernels();
/// Removes all of them; how many there were.
Result<std::size_t> clear_kept_kernels();

[[nodiscard]] Table kept_table(const KeptKernels& kept);
[[nodiscard]] Table verified_table(const CacheContents& contents);
[[nodiscard]] Table cleared_table(std::size_t removed);

}  // namespace pw
