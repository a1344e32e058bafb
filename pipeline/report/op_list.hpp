// Lists ops: signature, meaning, foreign names, and backends.
#pragma once

#include <string>
#include <vector>

#include "graph/context.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct OpRequest {
  std::vector<std::string> names;  ///< ops, or their names elsewhere; empty: all
  std::string backend;             ///< only ops that it runs; all if empty
  bool splitting = false;          ///< only ops at which a graph is cut
};

struct OpLine {
  std::string name, signature, meaning, traits;  ///< meaning: body, native or none
  bool splits = false;
  std::vector<std::string> backends, foreign;
};

/// Returns the context's ops. Fails with PW1425 for an unknown backend, PW1440 for an unknown op.
Result<std::vector<OpLine>> list_ops(const Context& context, const OpRequest& request);

/// `whole` adds signatures and traits.
[[nodiscard]] Table op_table(const std::vector<OpLine>& lines, bool whole);
/// Describes one op, with the lines that map foreign names to it.
[[nodiscard]] std::string op_text(const Context& context, const OpLine& line);
/// Prints the foreign items that translate a name, such as `softmax`; empty for the name of an op.
[[nodiscard]] std::string foreign_text(const Context& context, const std::string& name);
/// Returns the page docs/ops.md.
[[nodiscard]] std::string op_page(const Context& context, const std::vector<OpLine>& lines);

}  // namespace pw
