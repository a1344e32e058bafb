// Private to the importer: values of expressions.
#pragma once

#include <optional>
#include <string>

#include "import/fx/calls/python.hpp"
#include "import/fx/inputs.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Abstract interpretation of expressions, over values that are tensors, sizes, numbers, or lists
/// of them. Invariant: the arguments of a call are the present contents of its tensors.
class Evaluator : EmitterPart {
 public:
  Evaluator(BoundNames<Value>& env, UniqueNames& names, Emitter& emitter, Versions& versions,
            Inputs& inputs, Calls& calls, PythonCalls& python, Subscripts& subscripts)
      : EmitterPart(emitter),
        env_(env),
        names_(names),
        versions_(versions),
        inputs_(inputs),
        calls_(calls),
        python_(python),
        subscripts_(subscripts) {}

  Result<Value> evaluate(const Expr& e, const Site& site);
  /// Returns an item of a tuple or of a dict, or a part of a tensor.
  Result<Value> element(const Value& tuple, const Value& at, const Site& site);

 private:
  Result<Value> evaluate_name(const Expr& e);
  Result<Value> evaluate_index(const Expr& e, const Site& site);
  Result<Value> evaluate_binary(const Expr& e, const Site& site);
  Result<Value> evaluate_call(const Expr& e, const Site& site);
  Result<Value> part_of(const Value& list, const Value& at, const Site& site);
  void add_attribute_input(const std::string& name);

  BoundNames<Value>& env_;
  UniqueNames& names_;
  Versions& versions_;
  Inputs& inputs_;
  Calls& calls_;
  PythonCalls& python_;
  Subscripts& subscripts_;
};

}  // namespace pw::fx
