// State shared by the parts of a sketch: the general graph of one case while it is built.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "dsl/build/pattern_graph.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/build.hpp"
#include "graph/infer/dim_value.hpp"
#include "proof/schema.hpp"

namespace pw::proof {

/// Thrown after a symbol was solved for: restarts the construction.
struct Restart {};
/// Thrown if the left side is not well typed in this case.
struct Mistyped {
  std::string why;
};
/// Thrown if it is not known whether the left side is well typed in this case.
struct Undecided {
  std::string why;
};

inline constexpr DType kDTypes[] = {DType::bf16, DType::f16,    DType::f32,   DType::f64,
                                    DType::i64,  DType::i32,    DType::i8,    DType::u8,
                                    DType::b8,   DType::f8e4m3, DType::f8e5m2};

using SolvedSizes = std::map<std::string, DimId, std::less<>>;

/// Returns a valid symbol name for dims.
[[nodiscard]] std::string plain_name(std::string_view name);
[[nodiscard]] bool broadcasts(const Op& op);
[[nodiscard]] std::optional<std::size_t> axis_of(const Attribute* value, std::size_t rank);

/// Sizes in `solved` come from earlier attempts; those in `found` are new, and end this attempt.
struct SketchState {
  Context& context;
  const Rule& rule;
  Choices& choices;
  Integers& integers;
  const SolvedSizes& solved;
  SolvedSizes& found;
  std::map<std::string, std::size_t>& answers;  ///< choices of this case, across restarts
  std::set<std::string>& zero;                  ///< symbols that may be 0
  std::set<std::string>& any;                   ///< symbols that may be any number
  std::set<std::string>& granted;
  SchemaOptions::AnyDType any_dtype;
  Graph graph;
  Env env;
  PatternValues values;
  std::size_t site = 0;  ///< number of the node that is added
};

class SketchPart {
 protected:
  explicit SketchPart(SketchState& state)
      : context_(state.context),
        rule_(state.rule),
        integers_(state.integers),
        found_(state.found),
        granted_(state.granted),
        graph_(state.graph),
        env_(state.env),
        values_(state.values),
        site_(state.site),
        state_(state) {}
  /// Returns a choice that is made once for each case, across restarts.
  std::size_t ask(const std::string& key, std::size_t count);
  DimId symbol(std::string_view name);
  DimId fresh(std::string_view name) { return symbol(fmt::format("{}_{}", name, site_)); }
  /// Returns the size that an expression computes; nothing if it is not one.
  std::optional<DimId> dim_of(const Expr& expr, const Env& env);

  Context& context_;
  const Rule& rule_;
  Integers& integers_;
  SolvedSizes& found_;
  std::set<std::string>& granted_;
  Graph& graph_;
  Env& env_;
  PatternValues& values_;
  std::size_t& site_;
  SketchState& state_;
};

}  // namespace pw::proof
