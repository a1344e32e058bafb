// Compiled objects in memory, as an artifact carries them, with the names that identify them
// without a compiler.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace pw {

class CompiledObjects {
 public:
  void add(const std::string& key, std::string payload);
  void add_name(const std::string& name, std::string key);
  /// Copies the object of a key to `payload`; returns false if there is none.
  bool find(const std::string& key, std::string& payload) const;
  /// Returns the key of a name; empty if there is none.
  [[nodiscard]] std::string recall(const std::string& name) const;
  /// Returns all objects by key. Not safe while another thread adds objects.
  [[nodiscard]] const std::map<std::string, std::string>& by_key() const { return by_key_; }
  [[nodiscard]] const std::map<std::string, std::string>& names() const { return names_; }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> by_key_, names_;
};

}  // namespace pw
