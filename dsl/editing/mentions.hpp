// Every name of a text with its role, read off the tokens: for editors, where most texts do not
// parse most of the time. Text that parses is read as parse_file() reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/syntax/token.hpp"

namespace pw {

enum class MentionKind : std::uint8_t {
  // kinds of declaration, each by an item or a part of one
  op,
  pattern,
  rule,
  group,
  table,
  row,
  column,
  pass,
  pipeline,
  split,
  explore,
  param,
  extern_,
  test,
  foreign,
  // kinds of use
  callee,     ///< an op, a shared pattern, a dtype, an extern, a function
  reference,  ///< a rule, family, group, pass or pipeline; `noop.slice_full` has two
  name,       ///< of the scope: a value, dim, sequence, dtype or attribute; or a param
  attribute,  ///< of the callee `of`
  property,   ///< after the dot of `x.shape` and `k.quant`; of the name `of`
  trait,
  kind,  ///< int, float, …
};

/// Role in which a name is used.
enum class NamePlace : std::uint8_t { value, dim, sequence, dtype, attribute, guard };

inline constexpr std::uint32_t kNoScope = 0xffffffffu;

struct Mention {
  std::uint32_t begin = 0, end = 0;
  MentionKind kind = MentionKind::name;
  NamePlace place = NamePlace::value;
  bool declares = false;  ///< binds the name, or declares what it names
  /// True for `{eps}`: an attribute and a name at once, as two mentions at one place.
  bool shorthand = false;
  std::uint32_t scope = kNoScope;
  std::string name;  ///< of a reference after a dot: all of it, "noop.slice_full"
  std::string of;    ///< see MentionKind; of a rule its group, of a row its family
};

/// Scope in which equal names refer to the same thing: a rule, an op, a pattern, a foreign op, or a
/// graph.
struct NameScope {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t item = 0;
  std::string table;  ///< of a rule `for k in table`
};

struct OutlineItem {
  Tok kind = Tok::rule;  ///< its first word
  std::string name;      ///< empty if it has none
  std::uint32_t begin = 0, end = 0;
  std::uint32_t name_begin = 0, name_end = 0;
  std::int32_t group = -1;  ///< the item of its group
};

struct UseOf {
  std::uint32_t begin = 0, end = 0;  ///< of the string
  std::string path;
};

struct Mentions {
  std::vector<Token> tokens;  ///< the last one is Tok::end
  std::vector<Mention> all;   ///< by place
  std::vector<NameScope> scopes;
  std::vector<OutlineItem> items;
  std::vector<UseOf> uses;
};
Mentions find_mentions(std::string_view text);

}  // namespace pw
