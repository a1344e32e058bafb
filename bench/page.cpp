#include "bench/page.hpp"

#include <filesystem>
#include <map>

#include "base/io/file.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"

namespace pw::bench {

Status write_section(const std::string& path, const std::string& title, const std::string& section,
                     const std::string& lines) {
  std::map<std::string, std::string> sections;
  constexpr std::string_view kHeading = "\n## ";
  std::string text;
  if (std::filesystem::exists(path)) text = PW_TRY(read_file(path));
  for (std::size_t at = text.find(kHeading); at != std::string::npos;) {
    const std::size_t name = at + kHeading.size(), body = text.find('\n', name);
    if (body == std::string::npos) break;
    at = text.find(kHeading, body);
    sections[text.substr(name, body - name)] =
        trimmed(std::string_view(text).substr(body, at == std::string::npos ? at : at - body));
  }
  sections[section] = trimmed(lines);
  std::string page = "# " + title + "\n";
  for (const auto& [name, body] : sections) page += "\n## " + name + "\n\n" + body + "\n";
  return write_file(path, page);
}

}  // namespace pw::bench
