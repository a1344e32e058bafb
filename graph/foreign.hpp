// Foreign ops: the `foreign` items of rule files, which map ops of other systems to the library,
// and the translation of their calls to nodes. All readers of graphs use it: dumps, graph.json,
// .pwg.
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

/// Argument of a foreign call: a binding of the language, or something else that only an ignored
/// parameter accepts.
struct ForeignValue {
  Binding value = Absent{};
  std::string other = {};  ///< description of a value outside the language: "torch.strided"
  std::size_t place = 0;   ///< the caller's own number for it
};

struct ForeignParameter {
  std::vector<std::string>
      names;  ///< names in versions of the other system; the first is the one used here
  Span span;
  bool mut = false;      ///< read and written
  bool out = false;      ///< written only
  bool ignored = false;  ///< `device: _`
  bool used = false;     ///< by the body or the guard; one that is not must hold its default
  std::optional<TypeExpr> type;  ///< of a tensor
  std::string kind;  ///< `number`, `int`, `float`, `bool`, `str`: not a tensor; or empty
  std::optional<Binding> default_value;
  [[nodiscard]] bool written() const { return mut || out; }
  [[nodiscard]] bool called(std::string_view name) const;
};

struct ForeignOp {
  std::string target;  ///< without ".default"
  Span span;
  std::string text;  ///< as the formatter prints it
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

  /// Puts the items of one text before all earlier ones, in their own order. Items that exist
  /// already are not added.
  void add(Items items);
  [[nodiscard]] const Items* find(std::string_view target) const;  ///< with or without ".default"
  /// Returns the targets that torch_name() maps to this name, in order.
  [[nodiscard]] std::vector<std::string> called(std::string_view name) const;
};

/// Returns `aten.relu` for `torch.ops.aten.relu.default`.
[[nodiscard]] std::string_view foreign_target(std::string_view target);
/// Returns `softmax` for `torch.nn.functional.softmax`, `aten._softmax`, `aten.softmax.int`, and
/// `x.softmax`.
[[nodiscard]] std::string_view torch_name(std::string_view target);

/// Returns the declaration of an op of that name as a foreign op: `op mine.f(x: T[*s]) {k: int = 1}
/// -> …`. Nothing if there is none. A reason if its results do not state what it writes.
std::shared_ptr<const ForeignOp> declared_foreign(Context& context, std::string_view target);

struct ForeignArguments {
  std::vector<ForeignValue> positional;
  std::vector<std::pair<std::string, ForeignValue>> keywords;
};

/// Values by parameter; nothing: omitted.
using ForeignValues = std::vector<std::optional<ForeignValue>>;

template <class T>
using OrReason = tl::expected<T, std::string>;

/// Assigns the arguments to parameters, or returns why the item does not accept them. Defaults are
/// not filled in.
OrReason<ForeignValues> bind_foreign(const Context& context, const ForeignOp& op,
                                     const ForeignArguments& arguments);
/// Binds the names of the item's body, including defaults, or returns why the item does not apply.
OrReason<Env> match_foreign(Graph& graph, const ForeignOp& op, const ForeignValues& values);

struct ForeignResults {
  std::vector<ValueId> returned;
  std::vector<std::pair<std::size_t, ValueId>> written;  ///< (parameter, its contents from now on)
  std::vector<NodeId> nodes;                             ///< what was built, in order
  bool tuple = false;                                    ///< several values, or a list of them
};
/// Builds the body. On failure removes everything it built and returns the reason.
OrReason<ForeignResults> build_foreign(Graph& graph, const ForeignOp& op, Env env,
                                       const BuildOptions& options);

/// Lowers nodes whose op was unknown when the graph was written and is known now: by a `foreign`
/// item, or by a declaration of the same name. Nodes that do not apply stay unchanged; `reasons`
/// receives the reason by op.
Status refine_imported(Graph& graph, std::map<std::string, std::string>* reasons = nullptr);
/// Declares an op that a graph uses as unknown. If the rules declare the same name, the graph's op
/// becomes a separate one, which refine_imported() replaces by the declared op; `called` receives
/// its name.
Result<OpId> declare_imported(Context& context, Op op, std::string* called = nullptr);

}  // namespace pw
