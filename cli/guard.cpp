// Exports guarded.
#include "cli/guard.hpp"

#include <csignal>
#include <filesystem>
#include <new>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/memory.hpp"
#include "cli/session.hpp"
#include "graph/attribute.hpp"

namespace pw::cli {
namespace {

void interrupted(int) { ::_exit(kInterrupted); }

void write_reproducer(int argc, char** argv, const std::string& message) {
  std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "pwr";
  std::error_code ignored;
  std::string text = "command:";
  for (int i = 0; i < argc; ++i) text += " " + quote(argv[i]);
  text +=
      "\nfolder: " + std::filesystem::current_path(ignored).string() + "\nerror: " + message + "\n";
  std::string path = name + "-reproducer.txt";
  bool written = write_file(path, text).has_value();
  fmt::print(stderr,
             "internal error: {}\nThis is a bug in {}. Please report it with its input files{}.\n",
             message, name, written ? " and " + path : std::string());
}

}  // namespace

int guarded(int argc, char** argv, const std::function<int()>& body) {
  keep_large_arrays_apart();
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGINT, interrupted);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
  } catch (const std::exception& e) {
    write_reproducer(argc, argv, e.what());
  }
  return kInternalError;
}

}  // namespace pw::cli
