// Private to the importer: Python operations without an op of ATen, and Dynamo's forms of ops.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/calls/subscript.hpp"
#include "import/fx/calls/torch.hpp"

namespace pw::fx {

/// Python's own operations: operators and functions of numbers, attributes of tensors, and calls
/// that affect the run only. What is known of numbers is calculated; what is not has no node.
class PythonCalls : EmitterPart {
 public:
  PythonCalls(Emitter& emitter, Calls& calls, KnownCalls& known, UnknownCalls& unknown,
              TorchCalls& torch, Subscripts& subscripts, FxReport& report)
      : EmitterPart(emitter),
        calls_(calls),
        known_(known),
        unknown_(unknown),
        torch_(torch),
        subscripts_(subscripts),
        report_(report) {}

  /// Makes a call of a Python operation; nothing if it is a call of an op, by its target.
  Result<std::optional<Value>> call(const std::string& callee, const Arguments& arguments,
                                    const Site& site);
  Result<Value> infix(std::string_view op, const Value& a, const Value& b, Span span,
                      const Site& site);

 private:
  Result<std::optional<Value>> operator_call(const std::string& callee, const Arguments& arguments,
                                             const Site& site);
  Result<std::optional<Value>> number_call(const std::string& callee, const Arguments& arguments,
                                           const Site& site);
  Result<std::optional<Value>> named_in_torch(const std::string& callee, const Arguments& arguments,
                                              const Site& site);
  Result<Value> of_number(std::string_view op, std::string_view method, const Value& a,
                          const Value& x, const Site& site);
  Result<Value> unary(std::string_view op, const Value& x, const Site& site);
  Result<Value> attribute(const Value& x, const std::string& name, const Site& site);
  std::optional<Value> number(std::string_view function, const std::vector<Value>& of);
  std::optional<SizeConditions> required(const std::string& callee, const Arguments& arguments);
  std::optional<SizeConditions> metadata(const Arguments& arguments);
  bool bookkeeping(const std::string& callee, const Arguments& arguments, const Site& site);

  Calls& calls_;
  KnownCalls& known_;
  UnknownCalls& unknown_;
  TorchCalls& torch_;
  Subscripts& subscripts_;
  FxReport& report_;
};

}  // namespace pw::fx
