// Rule files while they are written: what can be known of texts that may be broken.
#pragma once

#include <string>
#include <vector>

#include "dsl/build/inferred_types.hpp"
#include "dsl/dsl.hpp"

namespace pw {

struct RecoveredFile {
  ast::File file;           ///< the items that parse
  Diagnostics diagnostics;  ///< those of parse_file()
};
RecoveredFile recover_file(const SourceMap& sources, SourceId source);

struct Draft {
  RuleSet rules;                    ///< what passed its checks
  Diagnostics diagnostics;          ///< those of load_rules(): errors and warnings alike
  std::vector<InferredType> types;  ///< of the names in files that were named, where it is known
};
/// What load_rules() does, without an end at the first stage that fails.
Draft load_draft(const ContextPtr& context, const std::vector<std::string>& paths,
                 LoadOptions options = {});

}  // namespace pw
