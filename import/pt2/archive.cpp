#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "import/pt2/pt2.hpp"

namespace pw::pt2 {
namespace {

constexpr std::string_view kFormatEntry = "archive_format", kModels = "models/", kJson = ".json";
constexpr std::size_t kShortEntry = 4096;
constexpr std::string_view kSaveAgain =
    "load it with the PyTorch that wrote it, and save it with 2.8 or later";

tl::unexpected<Diagnostics> no_archive(const std::string& file, std::string why,
                                       std::string_view help) {
  return fail(error_in(file, "PW0530", std::move(why), std::string(help)));
}

/// Describes a zip without the entry archive_format.
tl::unexpected<Diagnostics> something_else(const Zip& zip) {
  const auto has = [&](std::string_view end) {
    return std::ranges::any_of(zip.entries(),
                               [&](const ZipEntry& entry) { return entry.name.ends_with(end); });
  };
  if (has("serialized_exported_program.json"))
    return no_archive(zip.file(), "this .pt2 is from PyTorch before 2.8 and has pickled weights",
                      kSaveAgain);
  if (has("data.pkl"))
    return no_archive(zip.file(), "this is a pickle from torch.save or torch.jit.save",
                      "write the graph with torch.export.save");
  return no_archive(zip.file(), "this zip file is not a PT2 archive",
                    "write the graph with torch.export.save");
}

Status expect_content(const Zip& zip, const std::string& entry, std::string_view wanted) {
  const std::string content = PW_TRY(zip.read(entry, kShortEntry));
  if (trimmed(content) == wanted) return {};
  return no_archive(zip.file() + " at " + printable(entry),
                    fmt::format("the archive states `{}`, but only `{}` is supported",
                                printable(std::string_view(content).substr(0, 80)), wanted),
                    kSaveAgain);
}

}  // namespace

std::string Archive::program(std::string_view model) const {
  return fmt::format("{}{}{}{}", root, kModels, model, kJson);
}

Result<Archive> open_archive(std::string_view bytes, const std::string& file) {
  Archive out{PW_TRY(Zip::open(bytes, file)), "", {}};
  const auto& entries = out.zip.entries();
  const auto marked = std::ranges::find_if(entries, [](const ZipEntry& entry) {
    const std::size_t slash = entry.name.find('/');
    return slash != std::string::npos && entry.name.substr(slash + 1) == kFormatEntry;
  });
  if (marked == entries.end()) return something_else(out.zip);
  out.root = marked->name.substr(0, marked->name.size() - kFormatEntry.size());
  PW_TRY(expect_content(out.zip, marked->name, "pt2"));
  PW_TRY(expect_content(out.zip, out.root + "archive_version", "0"));
  const std::string folder = out.root + std::string(kModels);
  for (const ZipEntry& entry : entries)
    if (entry.name.starts_with(folder) && entry.name.ends_with(kJson) &&
        entry.name.find('/', folder.size()) == std::string::npos)
      out.models.push_back(
          entry.name.substr(folder.size(), entry.name.size() - folder.size() - kJson.size()));
  std::ranges::sort(out.models);
  if (out.models.empty())
    return no_archive(file, "this PT2 archive has no exported program (models/*.json)",
                      "packages of AOTInductor contain compiled code instead of a graph");
  return out;
}

Result<std::string> choose_model(const Archive& archive, std::size_t number) {
  const std::vector<std::string>& models = archive.models;
  if (number > models.size())
    return fail(error_in(fmt::format("--graph {}", number), "PW0506",
                         fmt::format("this archive has {} models", models.size())));
  if (number > 0) return models[number - 1];
  if (models.size() == 1) return models.front();
  return fail(
      error_in(archive.zip.file(), "PW0504",
               fmt::format("this archive has {} models; choose one with --graph N", models.size()),
               printable(fmt::format("{}", fmt::join(models, ", ")).substr(0, 1000))));
}

}  // namespace pw::pt2
