#include "bench/measure.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

namespace pw::bench {
namespace {

/// Columns, not bytes: a code point is one wide.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

double processor_time(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void empty_caches() {
  static std::vector<unsigned char> other(std::size_t{64} << 20);
  for (std::size_t i = 0; i < other.size(); i += 64) ++other[i];
}

}  // namespace

double seconds(const std::function<void()>& body) {
  const double start = processor_time(CLOCK_THREAD_CPUTIME_ID);
  body();
  return processor_time(CLOCK_THREAD_CPUTIME_ID) - start;
}

double all_threads_seconds(const std::function<void()>& body) {
  const double start = processor_time(CLOCK_PROCESS_CPUTIME_ID);
  body();
  return processor_time(CLOCK_PROCESS_CPUTIME_ID) - start;
}

double cold_seconds(const std::function<void()>& body) {
  empty_caches();
  return seconds(body);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void give_back_free_memory() { malloc_trim(0); }

std::size_t resident_bytes() {
  give_back_free_memory();
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string processor() {
  std::map<std::string, std::string> first;  // of each field
  std::string line;
  for (std::ifstream info("/proc/cpuinfo"); std::getline(info, line) && !line.empty();)
    if (const std::size_t colon = line.find(": "); colon != std::string::npos)
      first[line.substr(0, line.find_first_of("\t:"))] = line.substr(colon + 2);
  if (!first.contains("model name")) return "unknown processor";
  if (!first.contains("cpu family")) return first["model name"];
  return fmt::format("{}, family {} model {}", first["model name"], first["cpu family"],
                     first["model"]);
}

std::string machine() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return fmt::format("One thread of {} cores, {}; load {:.1f} when it began",
                     sysconf(_SC_NPROCESSORS_ONLN), processor(), load);
}

void die(const std::string& message) {
  std::fputs((message + (message.empty() || message.back() != '\n' ? "\n" : "")).c_str(), stderr);
  std::exit(3);
}

std::string Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size(), 3);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    out += "|";
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string gap(widths[i] - width(rows_[r][i]), ' ');
      out += i == 0 ? " " + rows_[r][i] + gap + " |" : " " + gap + rows_[r][i] + " |";
    }
    out += "\n";
    if (r > 0) continue;
    out += "|";
    for (std::size_t i = 0; i < widths.size(); ++i)
      out +=
          i == 0 ? std::string(widths[i] + 2, '-') + "|" : std::string(widths[i] + 1, '-') + ":|";
    out += "\n";
  }
  return out;
}

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

std::string grouped(std::size_t number) {
  std::string out = std::to_string(number);
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ' ');
  return out;
}

void Promises::at_most(const std::string& what, double measured, double limit,
                       const std::string& unit) {
  add(what, measured, limit, unit, measured <= limit, "**over**");
}

void Promises::at_least(const std::string& what, double measured, double limit,
                        const std::string& unit) {
  add(what, measured, limit, unit, measured >= limit, "**below**");
}

void Promises::add(const std::string& what, double measured, double limit, const std::string& unit,
                   bool ok, const char* otherwise) {
  kept_ = kept_ && ok;
  table_.add({what, fmt::format("{:.2f}{}", measured, unit), fmt::format("{:g}{}", limit, unit),
              ok ? "ok" : otherwise});
}

}  // namespace pw::bench
