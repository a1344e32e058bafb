// Host functions: what runs an opaque op, one that has neither a kernel nor a body. An engine calls
// it between its kernels, in the graph's order, with row-major tensors of the declared dtypes, and
// without the rows that pad a step.
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

/// The value of an attribute, its dims evaluated.
using HostValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, DType,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

/// An argument as the caller wrote it.
struct HostArgument {
  enum class Kind : std::uint8_t {
    operand,  ///< `operand` is its number
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
  /// None: absent. An operand that is written is the buffer to write: it holds the contents before
  /// the call.
  std::vector<std::optional<TensorView>> operands;
  std::vector<TensorView> results;  ///< returned ones; no data: one that nobody reads, of no type
  std::vector<std::size_t> writes;  ///< operands that may be written, ascending
  std::int64_t rank = 0;
};

/// What it reports as failed ends the run.
using HostFunction = std::function<Status(const HostCall&)>;

struct HostFunctions {
  std::map<std::string, HostFunction, std::less<>> by_op;
};

/// The function for an op: of its name, or of its name without the overload (`mine.f` for
/// `mine.f.default`); null where there is none.
[[nodiscard]] const HostFunction* host_function(const Context& context, std::string_view op);
void give_host_function(Context& context, std::string op, HostFunction function);

/// Which operand's contents after the call a result is, by result; none for what a call returns.
[[nodiscard]] std::vector<std::optional<std::size_t>> contents_of_results(const Graph& graph,
                                                                          NodeId node);
/// What runs a node by the function of its op; empty where no function is given. PW1213 where the
/// node cannot be called: the skeleton of its call does not read, or a result that is read has no
/// type.
Result<RunCall> host_call(const Graph& graph, NodeId node);
/// Whether host_call would give one.
[[nodiscard]] bool has_host_function(const Graph& graph, NodeId node);

}  // namespace pw
