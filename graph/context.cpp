// Exports fork.
#include "graph/context.hpp"

#include "graph/import/foreign.hpp"

namespace pw {

Context::Context(const Context& other)
    : strings(other.strings),
      value_names(other.value_names, strings),
      dims(other.dims, strings),
      types(other.types, dims),
      attributes(other.attributes, strings, dims),
      ops(other.ops),
      sources(other.sources),
      agreed_bodies(other.agreed_bodies),
      natives(other.natives),
      foreign(other.foreign ? std::make_shared<ForeignOps>(*other.foreign) : nullptr),
      host_functions(other.host_functions) {}

ContextPtr fork(const Context& context) { return ContextPtr(new Context(context)); }

}  // namespace pw
