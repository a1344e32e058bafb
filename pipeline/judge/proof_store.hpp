// Cache of rule verdicts, keyed by the text of everything that they depend on, in the compile
// cache. Without a cache folder, every rule is proved again.
#pragma once

#include <functional>
#include <memory>

#include "codegen/cache/cache.hpp"
#include "pipeline/judge/judge.hpp"

namespace pw {

class ProofStore {
 public:
  /// `keep`: read and write the user's cache.
  explicit ProofStore(bool keep);
  /// Returns the stored verdict, or stores what `judge` returns. `kind` lists the options that
  /// influence it.
  RuleJudgement get(const LoadedRules& rules, RuleId rule, const std::string& kind,
                    const std::function<RuleJudgement()>& judge);

 private:
  std::unique_ptr<CompileCache> cache_;
};

}  // namespace pw
