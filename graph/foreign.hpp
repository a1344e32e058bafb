// Foreign ops: the `foreign` items of rule files, which map ops of other systems to the library,
// and how a call of one becomes nodes. All readers of graphs use it: dumps, graph.json, .pwg.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/build.hpp"

namespace pw {

/// An argument of a foreign call: what the language has a binding for, or something else, which
/// only a parameter that does not matter can take.
struct ForeignValue {
  Binding value = Absent{};
  std::string other = {};  ///< what it is, where it is nothing of the language: "torch.strided"
  std::size_t place = 0;   ///< the caller's own number for it
};

struct ForeignParameter {
  std::vector<std::string> names;  ///< as versions of the other system have called it; first: here
  Span span;
  bool mut = false;      ///< read and written
  bool out = false;      ///< written only
  bool ignored = false;  ///< `device: _`
  bool used = false;     ///< by the body or the guard; one that is not must hold its default
  std::optional<TypeExpr> type;  ///< of a tensor
  std::string kind;              ///< `number`, `int`, `float`, `bool`, `str`: no tensor; or empty
  std::optional<Binding> default_value;
  [[nodiscard]] bool written() const { return mut || out; }
  [[nodiscard]] bool called(std::string_view name) const;
};

struct ForeignOp {
  std::string target;  ///< without ".default"
  Span span;
  std::string text;  ///< as the formatter would have it
  std::vector<ForeignParameter> parameters;
  std::vector<Expr> where;
  std::vector<Statement> body;
  std::vector<std::string> returns;  ///< names that the body binds
  std::string op;                    ///< what the last statement calls; may be empty
  bool by_kind =
      false;  ///< an op's own declaration: tensors are operands in order, others attributes
};

struct ForeignOps {
  using Items = std::vector<std::shared_ptr<const ForeignOp>>;
  std::map<std::string, Items, std::less<>> by_target;

  /// Puts the items of one text before all that were there, in their own order. One that is there
  /// already is left alone.
  void add(Items items);
  [[nodiscard]] const Items* find(std::string_view target) const;  ///< with or without ".default"
};

/// `aten.relu` of `torch.ops.aten.relu.default`.
[[nodiscard]] std::string_view foreign_target(std::string_view target);

/// The declaration of an op of that name as a foreign op: `op mine.f(x: T[*s]) {k: int = 1} -> …`.
/// Nothing where there is none. A reason where its results do not say what it writes.
std::shared_ptr<const ForeignOp> declared_foreign(Context& context, std::string_view target);

struct ForeignArguments {
  std::vector<ForeignValue> positional;
  std::vector<std::pair<std::string, ForeignValue>> keywords;
};

/// By parameter; nothing: left out.
using ForeignValues = std::vector<std::optional<ForeignValue>>;

template <class T>
using OrReason = tl::expected<T, std::string>;

/// The arguments by parameter, or why the item does not take them. Defaults are not filled in.
OrReason<ForeignValues> bind_foreign(const Context& context, const ForeignOp& op,
                                     const ForeignArguments& arguments);
/// The names of the item's body, with the defaults; or why the item does not apply.
OrReason<Env> match_foreign(Graph& graph, const ForeignOp& op, const ForeignValues& values);

struct ForeignResults {
  std::vector<ValueId> returned;
  std::vector<std::pair<std::size_t, ValueId>> written;  ///< (parameter, its contents from now on)
  std::vector<NodeId> nodes;                             ///< what was built, in order
  bool tuple = false;                                    ///< several values, or a list of them
};
/// Builds the body. Where that fails, nothing is left of it, and the reason comes back.
OrReason<ForeignResults> build_foreign(Graph& graph, const ForeignOp& op, Env env,
                                       const BuildOptions& options);

/// Nodes of ops that were unknown when a graph was written, and are known now, become what they
/// are: by a `foreign` item, or by a declaration of the same name. What does not apply stays as it
/// is; `reasons` says why, by op.
Status refine_imported(Graph& graph, std::map<std::string, std::string>* reasons = nullptr);
/// Declares an op that a graph calls unknown. Where the rules have declared one of that name, the
/// graph's own is another, which refine_imported() makes the declared one; `called` is its name.
Result<OpId> declare_imported(Context& context, Op op, std::string* called = nullptr);

}  // namespace pw
