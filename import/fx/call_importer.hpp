// Private to the importers: a graph made call by call, by importers of other forms.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/parts.hpp"

namespace pw::fx {

/// Imports a program whose calls another importer makes, one by one, in PyTorch's terms. Invariant:
/// such calls are pure, so that no tensor is written.
class CallImporter {
 public:
  /// Creates an importer. `function`: its parameters are the inputs; it must outlive the importer,
  /// as must the options.
  CallImporter(const ContextPtr& context, const FxOptions& options, const Function& function)
      : context_(context), parts_(context, options, function, "") {}

  Status begin();  ///< reads the function's parameters
  /// Adds a call with this name in the graph, in PyTorch's types; `items`: names of the parts of
  /// its result. The call writes nothing.
  Result<Value> add_call(std::string_view target, const Arguments& arguments, std::string name,
                         std::map<int, Wanted> items);
  /// Adds a node for a call of which only its operands are known. If its type is empty, only other
  /// such nodes may read it.
  Result<Value> add_unseen(const std::string& name, const std::vector<Value>& reads,
                           const std::string& type);
  /// Reserves a name: no generated name will equal it.
  void reserve(const std::string& name) { parts_.names.insert(name); }
  /// States the type of a value that has none yet, in torch's notation.
  Status state_type(const Value& value, const std::string& type);
  Value add_weight(const std::string& name, TypeId type);
  [[nodiscard]] const Value* input(std::string_view name) const;
  /// Makes a call if a row of its target applies; otherwise returns the reason and adds nothing to
  /// the graph. `name`: the prefix of generated names.
  OrReason<Value> try_call(std::string_view target, const Arguments& arguments,
                           const std::string& name);
  /// Makes a node of an op of the library, with its results; otherwise returns the reason.
  OrReason<std::vector<Value>> try_op(std::string_view op, const std::vector<Value>& operands,
                                      const NamedAttributes& attributes, const std::string& name);
  /// Keeps a call unchanged, for the reason `why`. The results are the items of a list.
  Result<Value> keep_call(std::string_view target, const Arguments& arguments,
                          const Outputs& results, bool random, const std::string& why);
  [[nodiscard]] const Type* type(const Value& value) const {
    return parts_.emitter.type_of(value.tensor);
  }
  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] const Facts& facts() const { return parts_.graph.facts; }
  [[nodiscard]] std::string name_of(const Value& value) const {
    return std::string(parts_.graph.value_name(value.tensor));
  }
  /// Gives a generated value this name, if it is free.
  void name(const Value& value, const std::string& name);
  void set_group(std::string group) { parts_.emitter.set_group(std::move(group)); }
  Result<FxImport> finish(const std::vector<std::pair<std::string, Value>>& outputs);

 private:
  ContextPtr context_;
  Parts parts_;
};

}  // namespace pw::fx
