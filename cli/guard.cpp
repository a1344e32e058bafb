#include "cli/guard.hpp"

#include <csignal>
#include <filesystem>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/unfinished_files.hpp"
#include "base/memory.hpp"
#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/session.hpp"
#include "graph/attribute.hpp"

namespace pw::cli {
namespace {

void interrupted(int) {
  remove_unfinished_files();
  ::_exit(kInterrupted);
}

/// Exits as if the signal were uncaught, but removes incomplete files.
void ended(int signal) {
  remove_unfinished_files();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Leaves ignored signals ignored, for example under nohup.
void catch_end(int signal) {
  if (std::signal(signal, ended) == SIG_IGN) std::signal(signal, SIG_IGN);
}

void write_reproducer(int argc, char** argv, const std::string& message) {
  std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "pwr";
  std::error_code ignored;
  std::string text = "command:";
  for (int i = 0; i < argc; ++i) text += " " + quote(argv[i]);
  text +=
      "\nfolder: " + std::filesystem::current_path(ignored).string() + "\nerror: " + message + "\n";
  std::string path = name + "-reproducer.txt";
  bool written = write_file(path, text).has_value();
  print_error(fmt::format(
      "internal error: {}\nThis is a bug in {}. Please report it with its input files{}.\n",
      printable_lines(message), name, written ? " and " + path : std::string()));
}

int run_body(int argc, char** argv, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    print_error("error: out of memory\n");
  } catch (const std::system_error& e) {
    // A thread needs memory for its stack.
    if (e.code() == std::errc::resource_unavailable_try_again)
      print_error("error: out of memory: no thread can be started\n");
    else
      write_reproducer(argc, argv, e.what());
  } catch (const std::exception& e) {
    write_reproducer(argc, argv, e.what());
  }
  return kInternalError;
}

}  // namespace

int guarded(int argc, char** argv, const std::function<int()>& body) {
  keep_large_arrays_apart();
  open_standard_streams();
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // writing a file over the limit fails with an error
  std::signal(SIGINT, interrupted);
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) catch_end(signal);
  return finish_output(run_body(argc, argv, body));
}

}  // namespace pw::cli
