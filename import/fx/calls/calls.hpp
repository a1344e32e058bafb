// Private to the importer: calls of ops by their targets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "import/fx/calls/known_calls.hpp"
#include "import/fx/calls/unknown_calls.hpp"

namespace pw::fx {

/// Calls of ops: those of the table, in-place and out variants of these, views made in place, and
/// all others as they are. Invariant: what a call writes is written in memory before it returns.
class Calls : EmitterPart {
 public:
  Calls(Emitter& emitter, Versions& versions, KnownCalls& known, UnknownCalls& unknown,
        const FxOptions& options)
      : EmitterPart(emitter),
        versions_(versions),
        memory_(versions.memory()),
        known_(known),
        unknown_(unknown),
        options_(options) {}

  Result<Value> call(std::string_view target, const Arguments& arguments, const Site& site);
  /// Returns the value of a known call, whose tensors share memory with arguments as it states.
  /// `first_new`: the first node of the call.
  Value as_result(const Outcome& outcome, const Arguments& arguments, std::size_t first_new,
                  std::string_view target);

 private:
  Result<std::optional<Value>> view_in_place(std::string_view target, const Arguments& arguments,
                                             const Site& site);
  Result<std::optional<Value>> in_place(std::string_view target, const Arguments& arguments,
                                        const Site& site, std::string& why);
  Result<std::optional<Value>> out_variant(std::string_view target, const Arguments& arguments,
                                           const Site& site, std::string& why);
  Result<Value> size_of(const Bound& bound, const Site& site);
  Result<Value> first_of(const Arguments& arguments, const Site& site);
  void take_memory_format(TensorId made, ValueId result, std::string_view format,
                          std::string_view target);

  Versions& versions_;
  Memory& memory_;
  KnownCalls& known_;
  UnknownCalls& unknown_;
  const FxOptions& options_;
};

}  // namespace pw::fx
