// Rule files while they are being written: everything that can be derived from texts that may be
// broken.
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
  std::vector<InferredType> types;  ///< of the names in named files, as far as known
};
/// Does what load_rules() does, without stopping at the first stage that fails.
Draft load_draft(const ContextPtr& context, const std::vector<std::string>& paths,
                 LoadOptions options = {});

}  // namespace pw
