// Private to the importer: values of a dump's expressions, and what passes between the parts that
// convert its calls. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/foreign.hpp"
#include "graph/size_condition.hpp"
#include "import/fx/emit/memory.hpp"
#include "import/fx/ops.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Value of an expression of the dump.
struct Value {
  enum class Kind : std::uint8_t {
    none,
    tensor,
    boolean,
    integer,
    real,
    string,
    dtype,
    list,
    other
  } kind = Kind::none;
  TensorId handle;  ///< tensor: the memory that holds its contents
  ValueId tensor;   ///< the present contents, after resolution
  bool boolean = false;
  DimId dim;  ///< integer: a constant or symbolic
  double real = 0;
  std::string text;  ///< string; other: the path or callee, as "torch.strided"
  DType dtype = DType::f32;
  std::vector<Value> items;  ///< list; items of a result that were never named are `none`; other,
                             ///< "slice": start, end, step
  std::vector<std::string> keys;  ///< of a list that is a dict: the keys of its items
  /// Other, "bool": comparisons that are all true if the value is; null if they are not known.
  std::shared_ptr<const SizeConditions> comparisons;
  bool own_name = false;  ///< its tensor's name is known to be the name that it is bound to
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// A name and a type that the dump gives to a result.
struct Wanted {
  std::string name;
  TypeId type = Types::unknown();
  Span span;  ///< of the type
};

/// The statement that contains a call.
struct Site {
  Span span;
  std::string source;
  bool bound = true;                   ///< something is assigned
  Wanted result;                       ///< the assigned name; of a tuple, the tuple's
  std::map<int, Wanted> items;         ///< names that later `getitem` statements give the parts
  std::vector<std::string> keys = {};  ///< of the items, where statements take them by key
  TupleCall first_of = {};             ///< called if no row applies; the value is its first result
};

/// Arguments of a call by parameter of a mapping.
struct Bound {
  const Mapping* mapping = nullptr;
  std::vector<std::optional<Value>> values;  ///< by parameter; nothing: omitted, without a default
  std::shared_ptr<const Env> env = {};       ///< of an item of a rule file: the names of its body
  [[nodiscard]] const Value* find(std::string_view parameter) const;
};

/// Attributes of a node by name.
using NamedAttributes = std::vector<std::pair<std::string_view, Attribute>>;

/// Returns a target without `torch.ops.`.
[[nodiscard]] std::string_view strip(std::string_view target);
/// Returns a keyword argument, or null.
[[nodiscard]] const Value* keyword(const Arguments& arguments, std::string_view name);

/// Returns the value of a name of torch's, such as torch.float32 or inf; nothing for other names.
[[nodiscard]] std::optional<Value> torch_word(const std::string& text);
[[nodiscard]] Value integer(Dims& dims, std::int64_t v);
/// Returns a constant integer; nothing for other values.
[[nodiscard]] std::optional<std::int64_t> as_int(const Dims& dims, const Value& value);
/// Returns a constant integer or a real number as such; nothing for other values.
[[nodiscard]] std::optional<double> as_real(const Dims& dims, const Value& value);
/// Returns an integer as a shape of one extent, or a list of integers.
[[nodiscard]] std::optional<Shape> as_shape(const Value& value);
[[nodiscard]] std::optional<Attribute> as_any_attribute(const Dims& dims, const Value& value);
[[nodiscard]] std::optional<Attribute> as_attribute(const Dims& dims, const Value& value,
                                                    AttributeKind kind);

}  // namespace pw::fx
