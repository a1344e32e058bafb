#include "import/fx/statement_key.hpp"

#include <algorithm>
#include <bit>

namespace pw::fx {
namespace {

enum class Mark : std::uint64_t {
  tensor = 1,
  number,
  word,
  integer,
  real,
  string,
  boolean,
  none,
  list,
  tuple,
  call,
  item
};

}  // namespace

bool StatementKey::add_tensor(const Value& value) {
  if (!value.handle.valid()) return false;
  const Tensor& t = memory_.tensors[value.handle];
  const TypeId type = graph_.type(t.value);
  if (t.value != value.tensor || t.seen != 0 || !memory_.storage_of(value.handle).writes.empty() ||
      !t.unsure.empty() || !t.inexpressible.empty() || t.now.valid() || type == Types::unknown())
    return false;
  const auto known = std::ranges::find(arguments_, value.handle);
  words_.push_back(static_cast<std::uint64_t>(Mark::tensor));
  words_.push_back(static_cast<std::uint64_t>(known - arguments_.begin()));
  if (known != arguments_.end()) return true;
  // One value with two handles: it would be ambiguous which of them a result is a view of.
  for (const TensorId other : arguments_)
    if (memory_.tensors[other].value == t.value) return false;
  arguments_.push_back(value.handle);
  words_.push_back(type.index);
  if (!t.strides) {
    words_.push_back(~std::uint64_t{0});
  } else {
    for (const DimId stride : *t.strides) words_.push_back(stride.index);
  }
  if (!context_.types[type].shape.empty()) return true;
  const NodeId maker = graph_.producer(t.value);  // a literal of rank 0 yields in promotion
  words_.push_back(maker.valid() && graph_.op_of(maker).is_literal() ? 1 : 0);
  return true;
}

bool StatementKey::add_name(const Expr& e) {
  const Value* known = env_.find(e.text);
  if (known == nullptr) {
    if (e.text.starts_with("self")) return false;
    words_.push_back(static_cast<std::uint64_t>(Mark::word));
    words_.push_back(texts_.intern(e.text).index);
    return true;
  }
  const Value& value = *known;
  if (value.kind == Value::Kind::tensor) return add_tensor(value);
  if (value.kind != Value::Kind::integer) return false;
  words_.push_back(static_cast<std::uint64_t>(Mark::number));
  words_.push_back(symbols_.merged(value.dim).index);
  return true;
}

bool StatementKey::add_expression(const Expr& e) {
  const auto put = [&](Mark mark, std::uint64_t what) {
    words_.push_back(static_cast<std::uint64_t>(mark));
    words_.push_back(what);
  };
  switch (e.kind) {
    case Expr::Kind::name: return add_name(e);
    case Expr::Kind::integer:
      put(Mark::integer, static_cast<std::uint64_t>(e.integer));
      return true;
    case Expr::Kind::real: put(Mark::real, std::bit_cast<std::uint64_t>(e.real)); return true;
    case Expr::Kind::string: put(Mark::string, texts_.intern(e.text).index); return true;
    case Expr::Kind::boolean: put(Mark::boolean, e.integer != 0 ? 1 : 0); return true;
    case Expr::Kind::none: put(Mark::none, 0); return true;
    case Expr::Kind::list: put(Mark::list, e.args.size()); break;
    case Expr::Kind::tuple: put(Mark::tuple, e.args.size()); break;
    case Expr::Kind::call:
      put(Mark::call, texts_.intern(e.text).index);
      words_.push_back(e.args.size() << 32 | e.keywords.size());
      for (const std::string& word : e.keywords) words_.push_back(texts_.intern(word).index);
      break;
    case Expr::Kind::index:
    case Expr::Kind::slice:
    case Expr::Kind::binary: return false;
  }
  for (const Expr& arg : e.args)
    if (!add_expression(arg)) return false;
  return true;
}

bool StatementKey::read(const Statement& s) {
  words_.clear();
  arguments_.clear();
  const bool may = names_.distinct() && symbols_.empty() && s.kind == Statement::Kind::assign &&
                   s.targets.size() == 1 && s.targets[0].kind == Expr::Kind::name &&
                   s.value.kind == Expr::Kind::call && is_word(s.targets[0].text) &&
                   items_.keys(s.targets[0].text) == nullptr;
  if (!may || !add_expression(s.value)) return false;
  words_.push_back(texts_.intern(s.type).index);
  words_.push_back(texts_.intern(s.first_of.callee).index);
  words_.push_back(s.group.empty() && s.source.empty() ? 0 : 1);
  part_names_ = items_.items(s.targets[0].text);
  if (part_names_ != nullptr)
    for (const auto& [index, wanted] : *part_names_) {
      words_.push_back(static_cast<std::uint64_t>(Mark::item));
      words_.push_back(static_cast<std::uint64_t>(index));
      words_.push_back(wanted.type.index);
    }
  hash_ = 0;
  for (const std::uint64_t word : words_) hash_ = combine(hash_, word);
  return true;
}

}  // namespace pw::fx
