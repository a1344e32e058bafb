// Builds a general graph of a rule's left side, node by node in text order, with a symbol for each
// free size. If the next node requires two sizes to be equal, a symbol is eliminated and the
// construction restarts with that solution.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "proof/schema.hpp"

namespace pw::proof {

/// Thrown after a symbol was solved for: restarts the construction.
struct Restart {};
/// Thrown if the left side is not well typed in this case.
struct Mistyped {
  std::string why;
};

inline constexpr DType kDTypes[] = {DType::bf16, DType::f16,    DType::f32,   DType::f64,
                                    DType::i64,  DType::i32,    DType::i8,    DType::u8,
                                    DType::b8,   DType::f8e4m3, DType::f8e5m2};

/// Adds the variables of an expression to `names`.
void collect_names(const Expr& expr, std::vector<std::string>& names);
/// Returns a valid symbol name for dims.
[[nodiscard]] std::string plain_name(std::string_view name);

class Sketch {
 public:
  Sketch(const RuleSet& rules, const Rule& rule, const Env& params, Choices& choices,
         Integers& integers, const std::map<std::string, DimId, std::less<>>& solved,
         std::map<std::string, DimId, std::less<>>& found,
         std::map<std::string, std::size_t>& answers, std::set<std::string>& zero,
         std::set<std::string>& any, std::set<std::string>& granted,
         SchemaOptions::AnyDType any_dtype);
  [[nodiscard]] std::size_t any_dtypes() const { return generic_; }
  Graph build();

 private:
  [[nodiscard]] bool read(const std::string& param) const;
  std::size_t ask(const std::string& key, std::size_t count);
  void replicate();
  void replicate(const Expr& guard);

  // ---- sizes
  DimId symbol(std::string_view name);
  DimId fresh(std::string_view name) { return symbol(fmt::format("{}_{}", name, site_)); }
  void equal(DimId a, DimId b);
  void four_numbers(Ix x, Ix y);
  [[noreturn]] void learn(const std::string& name, Ix value);
  void equal_dims(const Expr& guard, bool early);
  void multiple(DimId a, DimId b);
  void admit(const Expr& guard);
  [[nodiscard]] std::optional<std::int64_t> number_of(const Expr& expr) const;
  std::optional<DimId> dim_of(const Expr& expr);
  void bind_names(const Expr& expr, Env& env, bool own);

  // ---- sequences of axes repeated by `expand`
  void pair_stars();
  void bind_star(const std::string& name);
  [[nodiscard]] std::size_t axis_variables() const;
  void bind_repeated(const std::string& from);
  void bind_pair(const std::string& from, const std::string& to);
  Shape expanded(const Shape& shape, const std::string& base);
  std::optional<DimId> as_dim(const Attribute& value);

  // ---- dtypes
  void choose_dtype(const std::string& name, Env& env, bool own);
  [[nodiscard]] std::optional<DType> any_dtype(const std::string& name) const;
  std::size_t ask_dtype(const std::string& key, const std::string& name);
  [[nodiscard]] bool guard_allows(const std::string& name, DType dtype) const;

  // ---- types
  void fit(const TypeExpr& text, TypeId type, Env& env, bool own);
  void fit_dims(const TypeExpr& text, const Shape& shape, Env& env, bool own);
  static const TypeExpr* declared(const Op& op, std::size_t i);

  // ---- nodes
  void add_node(const PatternNode& node);
  void bind_result(PatternValueId id, ValueId value);
  void bind_attributes(const PatternNode& node, const Op& op, Env& local);
  void bind_attribute_names(const Expr& value, const std::string& attribute);
  void may_be_zero(const std::string& attribute, DimId dim);
  ValueId operand(const PatternNode& node, const Op& op, std::size_t i, Env& local);
  ValueId literal(const Attribute& value);
  double any_number();
  ValueId constant_variable(PatternValueId id);
  TypeId made_type(DType dtype, const Shape& shape) { return context_.types.get(dtype, shape); }
  TypeId free_type(const PatternValue& pattern, const PatternNode& node, const Op& op,
                   std::size_t i, Env& local);
  void choose_like(const std::string& name, const PatternNode&, Env& local);
  static std::optional<DType> dtype_of(const std::string& name, const Env& env);
  std::optional<Shape> signature_shape(const TypeExpr& text, const PatternNode& node, const Op& op,
                                       std::size_t i, Env& local);
  Shape open_shape(const PatternNode& node, const Op& op, std::size_t i);
  std::optional<Shape> but_along_axes(const PatternNode& node, const Op& op, Shape shape,
                                      const std::string& base);
  std::string name_of(PatternValueId id, std::size_t i) const;
  Shape beside(Shape shape, const std::string& base, bool variadic);
  Shape by_axes(const PatternNode& node, const Op& op, const std::string& base);
  [[nodiscard]] bool rank_is_fixed(const PatternNode& node) const;
  static bool shape_attribute(const Op& op) { return op.attribute("shape") != nullptr; }

  // ---- attributes
  void attributes(const PatternNode& node, const Op& op, NodeRequest& request);
  Attribute written_value(const PatternAttribute& attribute, const AttributeDecl* decl,
                          const NodeRequest& request, std::size_t results);
  void bind_list(const PatternAttribute& attribute, const NodeRequest& request);
  Attribute any_step(const std::string& name, std::string_view attribute);
  static bool is_step(std::string_view attribute);
  Attribute any_attribute(const std::string& name, const AttributeDecl& decl,
                          const NodeRequest& request, std::size_t results);
  static bool broadcasts(const Op& op);
  void fit_broadcast(const Op& op, const NodeRequest& request);
  void fit_put(const Op& op, const NodeRequest& request, const Attribute* dim);
  void fit_cat(const Op& op, const NodeRequest& request, const Attribute* dim);
  void fit_attributes(const Op& op, const NodeRequest& request, std::size_t results);
  void fit_body(const Op& op, const NodeRequest& request);
  void whole_fractions(const Expr& expr, const Env& env);
  static const ValueId* value_of(const Expr& arg, const Env& env);
  Result<Attribute> given(const AttributeArg& attribute, const Env& env);
  void fit_called(const Expr& call, const Env& env);
  void fit_call(const Expr& expr, const Env& env);
  static std::optional<std::size_t> axis_of(const Attribute* value, std::size_t rank);

  Context& context_;
  const Rule& rule_;
  Choices& choices_;
  Integers& integers_;
  const std::map<std::string, DimId, std::less<>>& solved_;
  std::map<std::string, DimId, std::less<>>& found_;
  std::map<std::string, std::size_t>& answers_;
  std::set<std::string>& zero_;
  std::set<std::string>& any_;
  std::set<std::string>& granted_;
  SchemaOptions::AnyDType any_dtype_;
  std::size_t generic_ = 0;                                    ///< dtypes assigned to variables
  std::vector<std::pair<std::string, std::string>> repeated_;  ///< see pair_stars
  Graph graph_;
  Env env_;
  IdVec<PatternValueId, ValueId> values_;
  std::size_t site_ = 0;
  int numbers_ = 0;
};

}  // namespace pw::proof
