// What graphs and rules of one run share: the interning tables and the op table. Not thread-safe
// while something interns: a thread takes a fork.
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

/// What an `extern` of the language is bound to: a pure function of its arguments. A predicate
/// returns a bool, or none where it cannot tell.
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
  /// Calls whose declared result types were found to agree with the op's body: op, operand types,
  /// attributes.
  std::set<std::tuple<OpId, std::vector<TypeId>, AttributesId>> agreed_bodies;
  std::map<std::string, Native, std::less<>> natives;  ///< by the name of the extern
  std::shared_ptr<ForeignOps> foreign;  ///< what ops of other systems are here; may be null
  std::shared_ptr<HostFunctions> host_functions;  ///< what runs opaque ops; null, or of all forks

  Context() = default;
  Context& operator=(const Context&) = delete;

 private:
  /// What is declared later in one is not there in the other.
  Context(const Context& other);
  friend std::shared_ptr<Context> fork(const Context& context);
  friend bool fork_into(Context& fresh, const Context& of);
};
using ContextPtr = std::shared_ptr<Context>;

/// A context of its own with all that this one has, by the same ids: rules that were loaded in this
/// one run on graphs of the fork. A thread that works in a fork may intern while others read this
/// one, or work in forks of theirs.
[[nodiscard]] ContextPtr fork(const Context& context);
/// Makes a context what fork() returns, where nothing was put into it yet; false where it is not
/// so.
[[nodiscard]] bool fork_into(Context& fresh, const Context& of);

}  // namespace pw
