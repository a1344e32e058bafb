#include "base/io/zip.hpp"

#include <utility>

#include <fmt/format.h>
#include <zip.h>

#include "base/dynamic_library.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostEntries = 1 << 20;
/// Weights hardly compress. An entry that unpacks to more than this many times the archive, and to
/// more than kSmall bytes, was made to fill the memory.
constexpr std::uint64_t kMostUnpacked = 16, kSmall = std::uint64_t{64} << 20;

/// Functions of libzip that are used.
struct Library {
  decltype(&::zip_source_buffer_create) from_bytes = nullptr;
  decltype(&::zip_source_free) free_source = nullptr;
  decltype(&::zip_open_from_source) open = nullptr;
  decltype(&::zip_discard) close = nullptr;
  decltype(&::zip_get_num_entries) count = nullptr;
  decltype(&::zip_stat_index) stat = nullptr;
  decltype(&::zip_fopen_index) open_entry = nullptr;
  decltype(&::zip_fread) read = nullptr;
  decltype(&::zip_fclose) close_entry = nullptr;
  decltype(&::zip_error_init) init_error = nullptr;
  decltype(&::zip_error_fini) end_error = nullptr;
  decltype(&::zip_error_strerror) text = nullptr;
  std::string problem;  ///< why libzip is not available; empty if it is

  Library();
};

Library::Library() {
  void* const zip = load_library({"libzip.so.5", "libzip.so.4"}, problem);  // upstream's, Debian's
  if (zip == nullptr) return;
  FunctionFinder find(zip);
  find(from_bytes, "zip_source_buffer_create");
  find(free_source, "zip_source_free");
  find(open, "zip_open_from_source");
  find(close, "zip_discard");
  find(count, "zip_get_num_entries");
  find(stat, "zip_stat_index");
  find(open_entry, "zip_fopen_index");
  find(read, "zip_fread");
  find(close_entry, "zip_fclose");
  find(init_error, "zip_error_init");
  find(end_error, "zip_error_fini");
  find(text, "zip_error_strerror");
  problem = find.problem();
}

const Library& libzip() {
  static const Library loaded;
  return loaded;
}

/// libzip's own error description.
struct ZipError {
  zip_error_t error{};
  ZipError() { libzip().init_error(&error); }
  ~ZipError() { libzip().end_error(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  [[nodiscard]] std::string text() { return libzip().text(&error); }
};

bool is_encrypted(const zip_stat_t& about) {
  return (about.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && about.encryption_method != ZIP_EM_NONE;
}

}  // namespace

struct Zip::Archive {
  zip_t* zip = nullptr;
  explicit Archive(zip_t* opened) : zip(opened) {}
  ~Archive() { libzip().close(zip); }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
};

tl::unexpected<Diagnostics> Zip::wrong(std::string_view entry, std::string why) const {
  return fail(error_in(entry.empty() ? file_ : fmt::format("{} at {}", file_, printable(entry)),
                       "PW0004", std::move(why)));
}

Result<Zip> Zip::open(std::string_view bytes, std::string file) {
  if (!libzip().problem.empty())
    return fail(error_in(file, "PW0003", "libzip is missing: " + libzip().problem,
                         "reading archives such as .pt2 requires it; Debian's package is libzip4"));
  Zip out;
  out.file_ = std::move(file);
  ZipError error;
  zip_source_t* source = libzip().from_bytes(bytes.data(), bytes.size(), 0, &error.error);
  zip_t* zip = source == nullptr ? nullptr : libzip().open(source, ZIP_RDONLY, &error.error);
  if (zip == nullptr) {
    libzip().free_source(source);
    return out.wrong("", "this is not a readable zip archive: " + error.text());
  }
  out.archive_ = std::make_shared<Archive>(zip);
  PW_TRY(out.list(bytes.size()));
  return out;
}

Status Zip::list(std::size_t bytes) {
  const std::int64_t count = libzip().count(archive_->zip, 0);
  if (count > kMostEntries) return wrong("", fmt::format("it has {} entries", count));
  std::uint64_t packed = 0, unpacked = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    zip_stat_t about{};
    constexpr std::uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (libzip().stat(archive_->zip, static_cast<zip_uint64_t>(i), 0, &about) != 0 ||
        (about.valid & kNeeded) != kNeeded)
      return wrong("", fmt::format("its record of entry {} cannot be read", i));
    const std::string name = about.name;
    if (!places_.emplace(name, entries_.size()).second)
      return wrong(name, "this entry is duplicated");
    if (is_encrypted(about)) return wrong(name, "this entry is encrypted");
    if (__builtin_add_overflow(packed, about.comp_size, &packed) || packed > bytes)
      return wrong(name, "the entries up to this one are larger than the archive");
    if (__builtin_add_overflow(unpacked, about.size, &unpacked) ||
        unpacked > kSmall + kMostUnpacked * bytes)
      return wrong(
          name,
          fmt::format(
              "the entries up to this one unpack to more than {} times the size of the archive",
              kMostUnpacked));
    entries_.push_back({name, about.size});
  }
  return {};
}

const ZipEntry* Zip::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

Result<std::string> Zip::read(std::string_view name, std::size_t limit) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) return wrong(name, "the entry does not exist");
  if (entry->size > limit)
    return wrong(name, fmt::format("it has {} bytes; the limit is {}", entry->size, limit));
  const std::shared_ptr<zip_file_t> file(
      libzip().open_entry(archive_->zip, static_cast<zip_uint64_t>(entry - entries_.data()), 0),
      [](zip_file_t* opened) {
        if (opened != nullptr) libzip().close_entry(opened);
      });
  if (file == nullptr) return wrong(name, "the entry cannot be opened");
  std::string out(entry->size, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const std::int64_t n = libzip().read(file.get(), out.data() + done, out.size() - done);
    if (n <= 0) return wrong(name, "the entry is damaged or ends early");
    done += static_cast<std::size_t>(n);
  }
  char more = 0;  // libzip compares the checksum where it finds the end
  if (libzip().read(file.get(), &more, 1) != 0)
    return wrong(name, "the entry is damaged: its checksum or size is wrong");
  return out;
}

}  // namespace pw
