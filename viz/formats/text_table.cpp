#include "viz/formats/text_table.hpp"

#include "base/characters.hpp"
#include "viz/label.hpp"

namespace pw::viz {
namespace {

constexpr std::size_t kMostDigits = 9;  // so that a number stays one in JavaScript

}  // namespace

std::uint32_t TextTable::add(std::string_view text) {
  if (known_.empty()) {
    known_.emplace("", 0);
    templates_.emplace_back();
    templates_known_.emplace("", 0);
    codes_.push_back(0);
  }
  const auto [known, fresh] =
      known_.try_emplace(std::string(text), static_cast<std::uint32_t>(known_.size()));
  if (!fresh) return known->second;
  const std::string valid = clean(text);  // has no \x01
  std::string form;
  std::vector<std::int64_t> numbers;
  for (std::size_t at = 0; at < valid.size();) {
    std::size_t end = at;
    while (end < valid.size() && is_digit(valid[end])) ++end;
    const std::size_t count = end - at;
    if (count == 0) {
      form += valid[at++];
    } else if (count > kMostDigits || (count > 1 && valid[at] == '0')) {
      form.append(valid, at, count);
      at = end;
    } else {
      numbers.push_back(std::stoll(valid.substr(at, count)));
      form += '\x01';
      at = end;
    }
  }
  const auto [shape, new_shape] =
      templates_known_.try_emplace(form, static_cast<std::uint32_t>(templates_.size()));
  if (new_shape) templates_.push_back(form);
  codes_.push_back(shape->second);
  codes_.insert(codes_.end(), numbers.begin(), numbers.end());
  return known->second;
}

}  // namespace pw::viz
