// Private to the importer: types that a dump states.
#pragma once

#include <string>
#include <unordered_map>

#include "import/fx/emit/symbols.hpp"
#include "import/fx/fx.hpp"

namespace pw::fx {

/// Types in torch's notation. Invariant: a type has the present names of its symbols.
class StatedTypes {
 public:
  StatedTypes(Context& context, Symbols& symbols, FxReport& report)
      : context_(context), symbols_(symbols), report_(report) {}
  /// Reads a type; unknown if the text is another annotation, or has a dtype that the library
  /// lacks, which is reported. PW0505 if it is neither.
  Result<TypeId> read(const std::string& text, Span span);

 private:
  Context& context_;
  Symbols& symbols_;
  FxReport& report_;
  std::unordered_map<std::string, TypeId> known_;  ///< by what states them
  std::size_t changes_ = 0;                        ///< of symbols, that `known_` has
};

}  // namespace pw::fx
