// Tables that graphs and rules of one run share: the interning tables and the op table. Not
// thread-safe during interning: each thread takes a fork.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/strings.hpp"
#include "graph/attribute.hpp"
#include "graph/dim.hpp"
#include "graph/op.hpp"
#include "graph/type.hpp"
#include "graph/value_names.hpp"

namespace pw {

/// Function that implements an `extern` of the language: pure in its arguments. A predicate returns
/// a bool, or none if it cannot decide.
using Native = std::function<Result<Attribute>(std::span<const Attribute> arguments)>;

struct ForeignOps;     // graph/foreign.hpp
struct HostFunctions;  // backends/host_functions.hpp

struct Context {
  Strings strings;
  ValueNames value_names{strings};
  Dims dims{strings};
  Types types{dims};
  Attributes attributes{strings, dims};
  OpTable ops;
  SourceMap sources;
  /// Calls whose declared result types agree with the op's body: op, operand types, attributes.
  std::set<std::tuple<OpId, std::vector<TypeId>, AttributesId>> agreed_bodies;
  std::map<std::string, Native, std::less<>> natives;  ///< by the name of the extern
  std::shared_ptr<ForeignOps> foreign;  ///< the translation of other systems' ops; may be null
  std::shared_ptr<HostFunctions>
      host_functions;  ///< functions that run opaque ops; null, or shared by all forks

  Context() = default;
  Context& operator=(const Context&) = delete;

 private:
  /// Copies a context. Later declarations in one do not appear in the other.
  Context(const Context& other);
  friend std::shared_ptr<Context> fork(const Context& context);
  friend bool fork_into(Context& fresh, const Context& of);
};
using ContextPtr = std::shared_ptr<Context>;

/// Returns a separate context with all that this one has, by the same ids. Rules loaded here run on
/// graphs of the fork. A thread that works in a fork may intern while others read this context or
/// work in other forks.
[[nodiscard]] ContextPtr fork(const Context& context);
/// Makes an empty context equal to fork(); returns false if something was added to it already.
[[nodiscard]] bool fork_into(Context& fresh, const Context& of);

}  // namespace pw
