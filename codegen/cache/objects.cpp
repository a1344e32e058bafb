#include "codegen/cache/objects.hpp"

#include <utility>

namespace pw {

void CompiledObjects::add(const std::string& key, std::string payload) {
  const std::lock_guard guard(mutex_);
  by_key_.insert_or_assign(key, std::move(payload));
}

void CompiledObjects::add_name(const std::string& name, std::string key) {
  const std::lock_guard guard(mutex_);
  names_.insert_or_assign(name, std::move(key));
}

bool CompiledObjects::find(const std::string& key, std::string& payload) const {
  const std::lock_guard guard(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return false;
  payload = found->second;
  return true;
}

std::string CompiledObjects::recall(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace pw
