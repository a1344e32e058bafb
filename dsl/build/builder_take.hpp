// Moves the values above a mark off a stack of the Builder; private to its .cpp files.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

namespace pw {

template <class T>
std::vector<T> take(std::vector<T>& from, std::size_t mark) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(mark);
  std::vector<T> out(std::make_move_iterator(begin), std::make_move_iterator(from.end()));
  from.erase(begin, from.end());
  return out;
}

/// Moves them off a stack that holds depths with its values.
template <class D>
auto take_values(std::vector<D>& from, std::size_t mark) {
  std::vector<decltype(D::value)> out;
  out.reserve(from.size() - mark);
  for (std::size_t i = mark; i < from.size(); ++i) out.push_back(std::move(from[i].value));
  from.resize(mark);
  return out;
}

}  // namespace pw
