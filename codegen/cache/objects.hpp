// Compiled objects in memory, with the names by which who finds no compiler asks for them: what an
// artifact carries.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace pw {

class CompiledObjects {
 public:
  void add(const std::string& key, std::string payload);
  void add_name(const std::string& name, std::string key);
  /// False where there is none.
  bool find(const std::string& key, std::string& payload) const;
  /// The key; empty where none is known.
  [[nodiscard]] std::string recall(const std::string& name) const;
  /// While nobody adds.
  [[nodiscard]] const std::map<std::string, std::string>& by_key() const { return by_key_; }
  [[nodiscard]] const std::map<std::string, std::string>& names() const { return names_; }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> by_key_, names_;
};

}  // namespace pw
