// Private to the importer: subscripts of tensors.
#pragma once

#include "import/fx/calls/calls.hpp"

namespace pw::fx {

/// Reads and writes of `x[…]` as calls of ATen: views, then one gather of what tensors index.
class Subscripts : EmitterPart {
 public:
  Subscripts(Emitter& emitter, Calls& calls, UnknownCalls& unknown)
      : EmitterPart(emitter), calls_(calls), unknown_(unknown) {}

  Result<Value> get(const Value& x, const Value& at, const Site& site);
  Result<Value> set(const Value& x, const Value& at, const Value& to, const Site& site);

 private:
  Calls& calls_;
  UnknownCalls& unknown_;
};

}  // namespace pw::fx
