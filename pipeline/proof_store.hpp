// Verdicts on rules by the text of all that they read, in the folder of compiled objects: what is
// there is not proved again. Without a folder each is proved.
#pragma once

#include <functional>
#include <memory>

#include "backends/cache/cache.hpp"
#include "pipeline/proving.hpp"

namespace pw {

class ProofStore {
 public:
  /// `keep`: look into the user's folder, and write to it.
  explicit ProofStore(bool keep);
  /// `kind`: what else decides the answer.
  RuleProof get(const LoadedRules& rules, RuleId rule, const std::string& kind,
                const std::function<RuleProof()>& prove);

 private:
  std::unique_ptr<CompileCache> cache_;
};

}  // namespace pw
