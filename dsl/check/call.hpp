// Checks a call of an op against its declaration: arity, `none`, and attributes. Shared by bodies,
// patterns and right sides.
#pragma once

#include <string_view>

#include "graph/context.hpp"

namespace pw {

enum class Side : std::uint8_t {
  pattern,  ///< closed: unwritten attributes must hold their defaults
  build,    ///< bodies and right sides: makes a node
};

/// Checks `call` as a call of the op. Nested calls are not checked.
void check_call(const Context& context, const Op& op, const Expr& call, Side side,
                Diagnostics& out);
/// Checks `count` binders against the op's results.
void check_result_count(const Op& op, std::size_t count, bool spread, Span span, Diagnostics& out);
/// Returns "unknown op `x`", with a did-you-mean.
Diagnostic unknown_op(const Context& context, std::string_view name, Span span);

}  // namespace pw
