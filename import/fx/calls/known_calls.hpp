// Private to the importer: calls of known ops, by the rows of the table.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/calls/ranks.hpp"
#include "import/fx/emit/emitter.hpp"
#include "import/fx/emit/versions.hpp"
#include "import/fx/ops.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Results and writes of a known call.
struct Outcome {
  Results results;     ///< what it returns, in order; empty if it returns nothing
  bool tuple = false;  ///< it returns a tuple, even of one
  std::vector<std::pair<Value, ValueId>> written;  ///< arguments, and their contents afterwards
  bool copies = false;  ///< what it returns never shares memory with an argument
  /// True if its result shares memory with its first argument, although no view of the library
  /// leads there.
  bool gathered = false;
  std::string memory_format = {};  ///< as the call names it; empty: it does not
};

/// Calls of targets that have rows in the table or items in rule files. The first row whose
/// conditions hold applies. Invariant: a row that does not apply leaves no node that is used.
class KnownCalls : EmitterPart {
 public:
  /// Creates the calls of a function, which must outlive them, as must the options.
  KnownCalls(Emitter& emitter, Versions& versions, const FxOptions& options,
             const Function& function)
      : EmitterPart(emitter),
        versions_(versions),
        options_(options),
        table_(context_.foreign.get()),
        groups_(function, table_, context_) {}

  [[nodiscard]] Table& table() { return table_; }
  /// Makes a known call; nothing if no row of the target applies, with the reason in `why`.
  /// `functionalised`: item 0 is what it returns, then its written arguments.
  Result<std::optional<Outcome>> make(std::string_view target, const Arguments& arguments,
                                      const Site& site, bool functionalised, std::string& why);
  /// Erases what a row left that did not apply after all.
  void erase_unused(std::size_t first_new);

 private:
  Applied as_strided(const Bound& bound, const Outputs& wanted, const Site& site);
  Applied apply_row(const Bound& bound, const Outputs& wanted, const Site& site);
  Applied apply(const Bound& bound, const Outputs& wanted, const Site& site);
  void drop_buffers(const Bound& bound, const Results& results);
  Outputs wanted_of(const Bound& bound, const Site& site, bool functionalised);

  Versions& versions_;
  const FxOptions& options_;
  Table table_;
  RankGroups groups_;
};

/// Binds arguments to the parameters of a row; nothing if it does not accept them, with the reason.
[[nodiscard]] std::optional<Bound> bind(Graph& graph, const Mapping& mapping,
                                        const Arguments& arguments, std::string& why);

}  // namespace pw::fx
