#include "pipeline/format.hpp"

#include "base/try.hpp"
#include "dsl/dsl.hpp"

namespace pw {

Result<FormattedRules> format_rules(const ContextPtr& context, const std::string& name,
                                    const std::string& text) {
  const SourceId source = context->sources.add(name, text);
  const ast::File file = PW_TRY(parse_file(context->sources, source));
  std::string formatted = format_file(file, context->sources);
  const bool changed = formatted != text;
  return FormattedRules{std::move(formatted), changed};
}

}  // namespace pw
