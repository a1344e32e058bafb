// Private to the importer: methods and functions of torch as ATen's overloads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/calls/calls.hpp"

namespace pw::fx {

/// Calls of methods of tensors, and of functions of torch and torch.nn.functional. Each becomes a
/// call of the first overload of ATen that accepts its arguments, after these are made ATen's.
class TorchCalls : EmitterPart {
 public:
  TorchCalls(Emitter& emitter, Versions& versions, Calls& calls)
      : EmitterPart(emitter), memory_(versions.memory()), calls_(calls) {}

  /// Makes a call of `torch.NAME`, or of the method NAME of the first argument.
  Result<Value> call(const std::string& name, bool method, Arguments arguments, const Site& site);

 private:
  std::optional<Value> size_call(const std::string& name, const Shape& shape, Arguments& arguments,
                                 std::string& target);
  void take_dropout(const std::string& name, Arguments& arguments, std::string& target);
  void take_shape_of(const std::string& name, std::vector<Value>& args, std::string& target);
  std::optional<Value> rewritten(const std::string& name, Arguments& arguments,
                                 std::string& target);
  void as_vector_norm(Arguments& arguments, std::string& target);
  void as_axes_of_tensordot(Arguments& arguments, std::size_t rank);
  Result<Value> chain_of_products(const Arguments& arguments, const Site& site);
  [[nodiscard]] std::string overload_of(const std::string& name, const Arguments& arguments);
  Result<Value> to_method(const Arguments& arguments, const Site& site);
  Result<Value> itself(const std::string& method, const Value& x, const Site& site);

  Memory& memory_;
  Calls& calls_;
  std::map<std::string, std::vector<std::string_view>> overloads_;  ///< of ATen, by name
};

}  // namespace pw::fx
