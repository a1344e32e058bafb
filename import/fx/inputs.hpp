// Private to the importer: inputs of a graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/emit/versions.hpp"
#include "import/fx/stated_types.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Inputs of a function: their types, symbols and kinds, as the dump and the options state them.
/// Invariant: each symbol of an input's type has a fact in the graph.
class Inputs : EmitterPart {
 public:
  /// Creates the inputs; all arguments must outlive them. `signature`: the text that torch.export
  /// writes below its graph, or empty.
  Inputs(const FxOptions& options, const Function& function, std::string_view signature,
         StatedTypes& types, Emitter& emitter, Versions& versions, BoundNames<Value>& env)
      : EmitterPart(emitter),
        options_(options),
        function_(function),
        signature_(signature),
        types_(types),
        versions_(versions),
        memory_(versions.memory()),
        env_(env) {}

  /// Adds the function's parameters to the graph, and binds their names.
  Status read();
  /// Returns the type that an option gives an attribute of the module, by its name without dots.
  TypeId given_type(const std::string& attribute);
  /// Takes the strides of a tensor from the second brackets of `f32[4, 8][8, 1]`.
  void take_strides(const Value& value, std::string_view text);
  /// Rejects options that state the type of anything else.
  Status check_given_types();
  /// Sets the kind of each input; guesses those that nothing states, and reports the guesses.
  void classify(FxReport& report);

 private:
  Status read_symbols();
  Status read_symbol_input(const Parameter& p);
  void declare_symbols(const Shape& shape);
  void fix_symbols();
  Result<DimId> named_dim(const std::string& place, const std::string& input, int axis);
  Status rename_symbols(const std::string& place, const std::string& name,
                        const std::vector<DimId>& dims);
  void read_ranges();
  [[nodiscard]] std::optional<InputKind> known_kind(const std::string& name);

  const FxOptions& options_;
  const Function& function_;
  std::string_view signature_;
  StatedTypes& types_;
  Versions& versions_;
  Memory& memory_;
  BoundNames<Value>& env_;
  std::map<std::string, InputKind> signed_kinds_;
  std::optional<bool> lifted_;  ///< Dynamo made parameters inputs, and named them so
};

}  // namespace pw::fx
