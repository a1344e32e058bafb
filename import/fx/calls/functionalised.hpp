// Private to the importer: calls that AOT autograd has functionalised.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/fx/calls/calls.hpp"

namespace pw::fx {

/// Calls of auto_functionalized. Invariant: the arguments of such a call are copies, and the call
/// returns what it writes.
class FunctionalisedCalls : EmitterPart {
 public:
  FunctionalisedCalls(Emitter& emitter, Versions& versions, Calls& calls, KnownCalls& known,
                      UnknownCalls& unknown)
      : EmitterPart(emitter),
        versions_(versions),
        memory_(versions.memory()),
        calls_(calls),
        known_(known),
        unknown_(unknown) {}

  /// Makes a call whose item 0 is what the op returns, then its written arguments in the order of
  /// its schema.
  Result<Value> call(const Arguments& arguments, const Site& site);
  /// Makes a call of v2, which names the written arguments by the tensors they are in:
  /// `_all_bases = [b]`, `_x_base_index = 0`, and for a part of a base its layout. The items are
  /// the op's return value and the new bases.
  Result<Value> call_v2(const Arguments& arguments, const Site& site);

 private:
  Result<Value> call_unknown(std::string_view target, const Arguments& arguments, const Site& site,
                             std::string why);
  void copy_tensors(Value& value);
  Value contents_of(const Value& copy);
  void name_call(std::size_t first_new, const Site& site);
  Result<Value> argument_of_base(const Arguments& arguments, const std::string& name,
                                 const std::vector<Value>& bases, std::string_view target,
                                 const Site& site);
  Result<Value> strided_view(const Value& base, const Value& size, const Value& stride,
                             const Value& offset, std::string_view target, const Site& site);

  Versions& versions_;
  Memory& memory_;
  Calls& calls_;
  KnownCalls& known_;
  UnknownCalls& unknown_;
};

}  // namespace pw::fx
