// Three invariants: names of live values differ; an unnamed value keeps the same derived name; a
// graph whose names are not queried keeps no set of names.
//
// An unnamed value N is called `op__N`, followed by as many `_` as reserved_ holds for N. A given
// name of that form reserves the next number of `_` for N, if N is not such a value yet; otherwise
// the name counts as taken. Reservations are never released, so a derived name depends only on
// earlier operations on the graph.
#include <charconv>
#include <optional>

#include "base/assert.hpp"
#include "base/characters.hpp"
#include "graph/graph.hpp"
#include "graph/storage/room.hpp"

namespace pw {
namespace {

struct Numbered {
  std::uint32_t number = 0;
  std::size_t underscores = 0;
};
/// Parses the number of a name like `text__17_`.
std::optional<Numbered> numbered(std::string_view name) {
  Numbered out;
  while (!name.empty() && name.back() == '_') {
    name.remove_suffix(1);
    ++out.underscores;
  }
  std::size_t begin = name.size();
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  if (begin == name.size() || !name.substr(0, begin).ends_with("__")) return std::nullopt;
  const auto [end, error] =
      std::from_chars(name.data() + begin, name.data() + name.size(), out.number);
  if (error != std::errc()) return std::nullopt;
  return out;
}

/// Returns the part before the number: the op's name as a plain word.
std::string stem(std::string_view op) { return as_name(op) + "__"; }

}  // namespace

// ---- unnamed values

std::size_t Graph::reserved(std::uint32_t number) const {
  const auto it = reserved_.find(number);
  return it == reserved_.end() ? 0 : it->second;
}

std::string Graph::unnamed(ValueId v) const {
  const std::string before = is_input(v) ? "input__" : stem(op_of(producer(v)).name);
  return before + std::to_string(v.index) + std::string(reserved(v.index), '_');
}

void Graph::reserve(std::string_view wanted) {
  const std::optional<Numbered> n = numbered(wanted);
  if (!n) return;
  const bool there = n->number < values_.size() && !values_[ValueId(n->number)].name.valid();
  if (!there && n->underscores >= reserved(n->number))
    reserved_[n->number] = static_cast<std::uint32_t>(n->underscores + 1);
}

void Graph::reserve_given(ValueNameId given) {
  if (context_->value_names.like_a_call(given)) reserve(context_->value_names.copy(given));
}

bool Graph::is_taken(std::string_view wanted) const {
  if (names_.contains(wanted)) return true;
  const std::optional<Numbered> n = numbered(wanted);
  return n && n->number < values_.size() && !values_[ValueId(n->number)].name.valid() &&
         n->underscores == reserved(n->number);
}

// ---- reading

std::string_view Graph::value_name(ValueId v) const {
  if (const ValueNameId given = values_[v].name; given.valid())
    return context_->value_names.text(given);
  return context_->strings.text(context_->strings.intern(unnamed(v)));
}

std::string_view Graph::node_name(NodeId n) const {
  if (!node_names_.empty())
    if (const auto it = node_names_.find(n.index); it != node_names_.end())
      return it->second.valid() ? context_->value_names.text(it->second) : std::string_view("node");
  if (result_count(n) > 0) return value_name(result(n));
  const std::string text = stem(op_of(n).name) + "node" + std::to_string(n.index);
  return context_->strings.text(context_->strings.intern(text));
}

ValueId Graph::find_value(std::string_view wanted) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& v = values_[ValueId(i)];
    if (!is_input(ValueId(i)) && !alive(v.producer)) continue;
    if (v.name.valid() && context_->value_names.is(v.name, wanted)) return ValueId(i);
  }
  const std::optional<Numbered> n = numbered(wanted);
  if (!n || n->number >= values_.size()) return {};
  const ValueId v(n->number);
  const bool live = is_input(v) || alive(producer(v));
  return live && !named(v) && unnamed(v) == wanted ? v : ValueId();
}

// ---- giving names

std::string Graph::fresh_name(std::string_view base) {
  know_names();
  if (!is_taken(base)) return std::string(base);
  // A counter per base keeps a million fresh names linear.
  auto counter = name_counters_.find(base);
  if (counter == name_counters_.end()) counter = name_counters_.emplace(std::string(base), 0).first;
  while (true) {
    std::string candidate = std::string(base) + "_" + std::to_string(++counter->second);
    if (!is_taken(candidate)) return candidate;
  }
}

ValueNameId Graph::claim(std::string_view wanted) {
  std::string fresh;
  if (trusting_) {
    if (wanted.empty()) return {};
  } else {
    know_names();
    if (wanted.empty() || is_taken(wanted)) {
      fresh = fresh_name(wanted.empty() ? "v" : wanted);
      wanted = fresh;
    }
    names_.emplace(wanted);
  }
  reserve(wanted);
  return context_->value_names.add(wanted);
}

void Graph::rename(ValueId v, std::string_view new_name) {
  know_names();
  release_name(v);
  record(Undo::Kind::name, v.index, values_[v].name.index);
  values_[v].name = claim(new_name);
}

void Graph::take_name(ValueId to, ValueId from) {
  const ValueNameId taken = values_[from].name;
  if (!taken.valid() || to == from) return;
  set_name(from, {});
  set_name(to, taken);
}

void Graph::set_name(ValueId v, ValueNameId name_id) {
  record(Undo::Kind::name, v.index, values_[v].name.index);
  release_name(v);
  values_[v].name = name_id;
  hold_name(v);
}

// ---- the set of names

void Graph::know_names() {
  if (names_known_) return;
  names_known_ = true;
  for (ValueId v : inputs_) hold_name(v);
  for (NodeId n = first(); n.valid(); n = next(n))
    for (std::size_t i = 0; i < result_count(n); ++i) hold_name(result(n, i));
}

void Graph::hold_name(ValueId v) {
  if (names_known_ && named(v)) names_.insert(context_->value_names.copy(values_[v].name));
}

void Graph::release_name(ValueId v) {
  if (names_known_ && named(v)) names_.erase(context_->value_names.copy(values_[v].name));
}

void Graph::forget_names() {
  NameSet().swap(names_);
  NameCounters().swap(name_counters_);
  names_known_ = false;
}

void Graph::trust_names(bool trust) {
  forget_names();
  trusting_ = trust;
}

void Graph::settle() {
  trust_names(false);
  provenances_.settle();
  order_.fit();
  fit_with_room(nodes_);
  fit_with_room(values_);
  uses_.fit(with_room(uses_.size()));
  inputs_.shrink_to_fit();
  outputs_.shrink_to_fit();
}

}  // namespace pw
