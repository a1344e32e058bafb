// Verdicts on rules by the text of all that they read, in the folder of compiled objects: what is
// there is not proved again. Without a folder each is proved.
#pragma once

#include <functional>
#include <memory>

#include "codegen/cache/cache.hpp"
#include "pipeline/judge/judge.hpp"

namespace pw {

class ProofStore {
 public:
  /// `keep`: look into the user's folder, and write to it.
  explicit ProofStore(bool keep);
  /// Returns the stored verdict, or stores what `judge` returns. `kind`: options that decide it.
  RuleJudgement get(const LoadedRules& rules, RuleId rule, const std::string& kind,
                    const std::function<RuleJudgement()>& judge);

 private:
  std::unique_ptr<CompileCache> cache_;
};

}  // namespace pw
