#include "serve/http.hpp"

#include <algorithm>
#include <filesystem>

#include <strings.h>

#include "base/dynamic_library.hpp"

namespace pw::cli {
namespace {

/// Returns the path relative to the program, both in a build folder and when installed.
std::string module_path() {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return (program.parent_path().parent_path() / "lib/piecewise/http.so").string();
}

tl::unexpected<Diagnostics> missing(const std::string& why) {
  return fail(error_at({}, "PW1600", "cannot serve pages: " + why,
                       "install cpp-httplib (Debian: libcpp-httplib0.11), or write a page with "
                       "`pwviz -o page.html`"));
}

}  // namespace

std::vector<std::string> HttpRequest::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : headers)
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), name.size()) == 0)
      out.push_back(value);
  return out;
}

std::string HttpRequest::one(std::string_view name) const {
  std::vector<std::string> found = all(name);
  return found.size() == 1 ? std::move(found.front()) : std::string();
}

Result<std::unique_ptr<HttpServer>> make_http_server(HttpService service) {
  std::string problem;
  void* const module = load_library({module_path().c_str()}, problem);
  if (module == nullptr) return missing(problem);
  FunctionFinder find(module);
  MakeHttpServer make = nullptr;
  find(make, kMakeHttpServer);
  if (!find.problem().empty()) return missing(find.problem());
  return std::unique_ptr<HttpServer>(make(&service));
}

}  // namespace pw::cli
