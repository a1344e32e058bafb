// Exit codes of the programs.
#pragma once

namespace pw {

enum ExitCode : int {
  kOk = 0,
  kNegative = 1,  ///< differences, a failed test, no match, not formatted
  kUsage = 2,
  kInvalidInput = 3,
  kNumericMismatch = 4,
  kMissingCapability = 5,
  kInternalError = 70,
  kInterrupted = 130,
};

}  // namespace pw
