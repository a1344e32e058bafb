// Private to the importer: the parts of one import.
#pragma once

#include <string_view>

#include "import/fx/calls/calls.hpp"
#include "import/fx/inputs.hpp"
#include "import/fx/read_names.hpp"

namespace pw::fx {

/// Parts of every import, in the order in which they refer to one another: the graph, the classes
/// that add to it, its inputs, and calls of ops. Only the two importers, of dumps (convert.hpp) and
/// of programs (call_importer.hpp), hold it; each part is given the few others that it needs.
struct Parts {
  /// Creates the parts; the arguments must outlive them.
  Parts(const ContextPtr& context, const FxOptions& options, const Function& function,
        std::string_view signature);
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const FxOptions& options;
  const Function& function;
  bool typed;  ///< the dump states the type of some input
  Graph graph;
  FxReport report = {};
  Symbols symbols;
  UniqueNames names = {};
  EqualSizes sizes;
  Effects effects;
  Emitter emitter;
  Versions versions;
  BoundNames<Value> env = {};
  StatedTypes types;
  Inputs inputs;
  ReadNames read_names;
  KnownCalls known;
  UnknownCalls unknown;
  Calls calls;
};

/// Ends an import: classifies the inputs, erases what is unused, and completes the report.
Result<FxImport> finish(Parts& parts, const ContextPtr& context);

}  // namespace pw::fx
