#include "base/try.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/ops.hpp"

namespace pw {
namespace {

Result<ReadGraph> read_fx(const ContextPtr& context, const std::string& text,
                          const FxOptions& options) {
  auto import = PW_TRY(import_fx(context, text, options));
  return ReadGraph{std::move(import.graph), std::move(import.report)};
}

std::map<std::string, std::set<std::string>> foreign_names(const ForeignOps* foreign) {
  std::map<std::string, std::set<std::string>> out;
  fx::Table table(foreign);
  for (const std::string& target : table.targets())
    for (const fx::Mapping& mapping : *table.find(target))
      out[std::string(mapping.op)].insert(target);
  return out;
}

}  // namespace

GraphFormat fx_format() {
  GraphFormat format{"torch.fx text", looks_like_fx, read_fx};
  format.mistaken = "a dump of torch.fx";
  format.foreign_names = foreign_names;
  return format;
}

}  // namespace pw
