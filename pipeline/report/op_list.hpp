// Every op: its signature, its meaning, its names elsewhere, and what runs it.
#pragma once

#include <string>
#include <vector>

#include "graph/context.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct OpRequest {
  std::vector<std::string> names;  ///< ops, or their names elsewhere; empty: all
  std::string backend;             ///< only what it runs; empty: whatever runs it
  bool splitting = false;          ///< only ops at which a graph is cut
};

struct OpLine {
  std::string name, signature, meaning, traits;  ///< meaning: body, native or none
  bool splits = false;
  std::vector<std::string> backends, foreign;
};

/// Of the ops that the context knows. PW1425 for a backend, PW1440 for an op that there is not.
Result<std::vector<OpLine>> list_ops(const Context& context, const OpRequest& request);

/// `whole`: signatures and traits, too.
[[nodiscard]] Table op_table(const std::vector<OpLine>& lines, bool whole);
/// One op for people, with the lines that map foreign names to it.
[[nodiscard]] std::string op_text(const Context& context, const OpLine& line);
/// The page docs/ops.md.
[[nodiscard]] std::string op_page(const Context& context, const std::vector<OpLine>& lines);

}  // namespace pw
