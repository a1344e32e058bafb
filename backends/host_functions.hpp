// Host functions run opaque ops, which have neither a kernel nor a body. An engine calls them
// between its kernels, in graph order. Tensors are row-major in their declared dtypes, without
// padding rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/program.hpp"

namespace pw {

/// The value of an attribute, with its dims evaluated.
using HostValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, DType,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

/// An argument as the caller wrote it.
struct HostArgument {
  enum class Kind : std::uint8_t {
    operand,  ///< `operand` is the operand's index
    value,
    list,
    tuple,
    call,  ///< `slice(items…)`, `dict(key = item, …)`; other calls are texts
  };
  Kind kind = Kind::value;
  std::string keyword;  ///< empty: by position
  std::size_t operand = 0;
  HostValue value;
  std::string word;
  std::vector<HostArgument> items;
};

struct HostCall {
  std::string op, node;
  std::vector<HostArgument> arguments;
  std::vector<std::pair<std::string, HostValue>> attributes;  ///< sorted by name
  /// Operands; an empty entry is an absent operand. A written operand is the buffer to write, with
  /// its contents from before the call.
  std::vector<std::optional<TensorView>> operands;
  std::vector<TensorView>
      results;  ///< returned results; no data: an untyped result that nothing reads
  std::vector<std::size_t> writes;  ///< operands that may be written, ascending
  std::int64_t rank = 0;
};

/// Runs one call; an error ends the run.
using HostFunction = std::function<Status(const HostCall&)>;

struct HostFunctions {
  std::map<std::string, HostFunction, std::less<>> by_op;
};

/// Returns the function registered for an op, by its name or by its name without the overload
/// (`mine.f` for `mine.f.default`); null if none is registered.
[[nodiscard]] const HostFunction* host_function(const Context& context, std::string_view op);
void give_host_function(Context& context, std::string op, HostFunction function);

/// Returns, for each result, the operand whose contents after the call it is; nothing for a result
/// that the call returns.
[[nodiscard]] std::vector<std::optional<std::size_t>> contents_of_results(const Graph& graph,
                                                                          NodeId node);
/// Returns the call that runs a node by its op's host function; empty if none is registered. Fails
/// with PW1213 if the call's skeleton does not parse or a result that is read has no type.
Result<RunCall> host_call(const Graph& graph, NodeId node);
/// Returns true if host_call would return a call.
[[nodiscard]] bool has_host_function(const Graph& graph, NodeId node);

}  // namespace pw
