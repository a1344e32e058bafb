// Private to the importer: conversion of dumps. convert.cpp describes the method.
#pragma once

#include <string>
#include <string_view>

#include "import/fx/evaluator.hpp"
#include "import/fx/parts.hpp"
#include "import/fx/repeater.hpp"
#include "import/fx/tuple_items.hpp"

namespace pw::fx {

/// Converts a function of a dump, statement by statement. Invariant: names map to values in order;
/// a later binding replaces an earlier one.
class Converter {
 public:
  /// Creates a converter; the arguments must outlive it. `signature`: the text that torch.export
  /// writes below its graph, or empty.
  Converter(const ContextPtr& context, const FxOptions& options, const Function& function,
            std::string_view signature);
  Result<FxImport> convert();

 private:
  void find_getitems();
  void find_functional(const Expr& e);
  void find_names(const Expr& target);
  Status convert_statement(const Statement& s);
  Status outputs(const Expr& e);
  void name_output(const Expr& e, std::size_t at);
  Status assign(const Expr& target, const Value& value, const Site& site);
  /// Returns a value whose type is stated as Sym(…), and that is not a dim yet.
  Result<Value> as_stated(Value value, const Statement& s);
  Status write_back();

  ContextPtr context_ptr_;
  Context& context_;
  const Function& function_;
  Parts parts_;
  Graph& graph_;
  Emitter& emitter_;
  Versions& versions_;
  Memory& memory_;
  UniqueNames& names_;
  TorchCalls torch_;
  Subscripts subscripts_;
  PythonCalls python_;
  Evaluator evaluator_;
  TupleItems items_;
  Repeater repeater_;
};

}  // namespace pw::fx
