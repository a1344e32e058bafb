#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "import/pt2/pt2.hpp"
#include "import/pt2/tensors.hpp"

namespace pw {
namespace pt2 {
namespace {

constexpr std::size_t kLargestProgram = std::size_t{128} << 20;  // bytes of JSON

/// Replaces the importer's places, which are lines of a list, by JSON pointers.
Diagnostics with_pointers(Diagnostics errors, const SourceMap& sources, SourceId places) {
  for (Diagnostic& error : errors) {
    if (!error.span.valid() || error.span.source != places) continue;
    error.place =
        fmt::format("{} at {}", sources.name(places), sources.line(places, error.span.begin));
    error.span = {};
  }
  return errors;
}

/// Returns the entries that are neither the program, nor tensors, nor descriptions of the archive.
std::vector<std::string> unread_entries(const Archive& archive) {
  constexpr std::string_view kRead[] = {"archive_format", "archive_version", "byteorder",
                                        ".data/",         "models/",         "data/weights/",
                                        "data/constants/"};
  std::vector<std::string> out;
  for (const ZipEntry& entry : archive.zip.entries()) {
    std::string_view name = entry.name;
    if (name.starts_with(archive.root)) name.remove_prefix(archive.root.size());
    if (std::none_of(std::begin(kRead), std::end(kRead),
                     [&](std::string_view read) { return name.starts_with(read); }))
      out.push_back(printable(name.substr(0, 80)));
  }
  return out;
}

std::string unread_line(const std::vector<std::string>& entries) {
  constexpr std::size_t kListed = 3;
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(std::min(entries.size(), kListed));
  return fmt::format("not read: {}{}", fmt::join(entries.begin(), end, ", "),
                     entries.size() > kListed ? ", …" : "");
}

Result<ReadGraph> read_archive(const ContextPtr& context, const std::string& text,
                               const FxOptions& options) {
  const Archive archive = PW_TRY(open_archive(text, options.file));
  const std::string entry = archive.program(PW_TRY(choose_model(archive, options.graph)));
  const std::string json = PW_TRY(archive.zip.read(entry, kLargestProgram));
  FxImport done = PW_TRY(import_program(context, json, printable(entry), options));
  if (const auto unread = unread_entries(archive); !unread.empty())
    done.report.notes.push_back(unread_line(unread));
  return ReadGraph{std::move(done.graph), std::move(done.report)};
}

}  // namespace

Result<FxImport> import_program(const ContextPtr& context, std::string_view json,
                                const std::string& entry, const FxOptions& options) {
  Program program = PW_TRY(read_program(
      context->sources, json, fmt::format("{}/{}", options.file, entry), options.symbol_max));
  FxOptions all = options;
  all.kinds.merge(program.kinds);  // the caller's kinds take precedence
  all.ranges.merge(program.ranges);
  all.guards = std::move(program.guards);
  const auto replace = [&](Result<FxImport> result) -> Result<FxImport> {
    if (result) return result;
    return tl::unexpected(
        with_pointers(std::move(result.error()), context->sources, program.places));
  };
  Result<fx::Function> function = fx::inline_modules(std::move(program.module));
  if (!function) return replace(forward(function));
  Result<FxImport> done =
      replace(import_fx(context, std::move(*function), all,
                        fmt::format("a PT2 archive of torch.export{}{}",
                                    program.torch.empty() ? "" : ", PyTorch ", program.torch)));
  if (done && !program.tensors.empty())
    done->report.notes.push_back(
        fmt::format("the archive has the contents of {} inputs: pass --weights {} to run with them",
                    program.tensors.size(), options.file));
  if (done)
    done->report.notes.insert(done->report.notes.end(), program.notes.begin(), program.notes.end());
  return done;
}

}  // namespace pt2

GraphFormat pt2_format() {
  GraphFormat format{".pt2", [](std::string_view text) { return looks_like_zip(text); },
                     pt2::read_archive};
  format.tensors = safetensors_of_pt2;
  return format;
}

}  // namespace pw
