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

// clang-format off: a table
#define PW_ZIP_FUNCTIONS(X)                                                                       \
  X(source_buffer_create) X(source_free) X(open_from_source) X(discard) X(get_num_entries)        \
  X(stat_index) X(fopen_index) X(fread) X(fclose) X(error_init) X(error_fini) X(error_strerror)
// clang-format on

/// Functions of libzip that are used.
struct Library {
#define PW_POINTER(name) decltype(&::zip_##name) name = nullptr;
  PW_ZIP_FUNCTIONS(PW_POINTER)
#undef PW_POINTER
  std::string problem;  ///< why libzip is not available; empty if it is

  Library();
};

Library::Library() {
  void* const zip = load_library({"libzip.so.5", "libzip.so.4"}, problem);  // upstream's, Debian's
  if (zip == nullptr) return;
  FunctionFinder find(zip);
#define PW_FIND(name) find(name, "zip_" #name);
  PW_ZIP_FUNCTIONS(PW_FIND)
#undef PW_FIND
  problem = find.problem();
}

const Library& libzip() {
  static const Library loaded;
  return loaded;
}

/// libzip's own error description.
struct ZipError {
  zip_error_t error{};
  ZipError() { libzip().error_init(&error); }
  ~ZipError() { libzip().error_fini(&error); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  [[nodiscard]] std::string text() { return libzip().error_strerror(&error); }
};

bool is_encrypted(const zip_stat_t& about) {
  return (about.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && about.encryption_method != ZIP_EM_NONE;
}

}  // namespace

struct Zip::Archive {
  zip_t* zip = nullptr;
  explicit Archive(zip_t* opened) : zip(opened) {}
  ~Archive() { libzip().discard(zip); }
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
  zip_source_t* source = libzip().source_buffer_create(bytes.data(), bytes.size(), 0, &error.error);
  zip_t* zip =
      source == nullptr ? nullptr : libzip().open_from_source(source, ZIP_RDONLY, &error.error);
  if (zip == nullptr) {
    libzip().source_free(source);
    return out.wrong("", "this is not a readable zip archive: " + error.text());
  }
  out.archive_ = std::make_shared<Archive>(zip);
  PW_TRY(out.list(bytes.size()));
  return out;
}

Status Zip::list(std::size_t bytes) {
  const std::int64_t count = libzip().get_num_entries(archive_->zip, 0);
  if (count > kMostEntries) return wrong("", fmt::format("it has {} entries", count));
  std::uint64_t packed = 0, unpacked = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    zip_stat_t about{};
    constexpr std::uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if (libzip().stat_index(archive_->zip, static_cast<zip_uint64_t>(i), 0, &about) != 0 ||
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
      libzip().fopen_index(archive_->zip, static_cast<zip_uint64_t>(entry - entries_.data()), 0),
      [](zip_file_t* opened) {
        if (opened != nullptr) libzip().fclose(opened);
      });
  if (file == nullptr) return wrong(name, "the entry cannot be opened");
  std::string out(entry->size, '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const std::int64_t n = libzip().fread(file.get(), out.data() + done, out.size() - done);
    if (n <= 0) return wrong(name, "the entry is damaged or ends early");
    done += static_cast<std::size_t>(n);
  }
  char more = 0;  // libzip compares the checksum where it finds the end
  if (libzip().fread(file.get(), &more, 1) != 0)
    return wrong(name, "the entry is damaged: its checksum or size is wrong");
  return out;
}

}  // namespace pw
