#include <algorithm>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "import/pt2/document.hpp"
#include "import/pt2/dtypes.hpp"
#include "import/pt2/pt2.hpp"

namespace pw::pt2 {
namespace {

constexpr std::size_t kLargestConfig = std::size_t{64} << 20;
constexpr std::uint64_t kMostTimes = 16, kAlways = std::uint64_t{64} << 20;  // bytes of all tensors
constexpr std::size_t kMostDims = 32;

struct Folder {
  std::string entries;  ///< "m/data/weights/"
  std::string config;   ///< its entry
  std::string place;    ///< for messages
  Json json;
};

Result<Folder> read_folder(const Archive& archive, std::string_view kind,
                           const std::string& model) {
  Folder out;
  out.entries = fmt::format("{}data/{}/", archive.root, kind);
  out.config = fmt::format("{}{}_{}_config.json", out.entries, model, kind);
  out.place = fmt::format("{}/{}", archive.zip.file(), printable(out.config));
  if (archive.zip.find(out.config) == nullptr) return out;
  const std::string text = PW_TRY(archive.zip.read(out.config, kLargestConfig));
  out.json = PW_TRY(read_document(text, out.place));
  return out;
}

Result<std::vector<std::int64_t>> numbers(const Part& list) {
  const std::vector<Part> items = PW_TRY(list.items());
  if (items.size() > kMostDims) return list.wrong(fmt::format("{} dims", items.size()));
  std::vector<std::int64_t> out;
  for (const Part& item : items) {
    out.push_back(PW_TRY(PW_TRY(item.member("as_int")).integer()));
    if (out.back() < 0) return item.wrong("an extent or stride is negative");
  }
  return out;
}

/// Counts the elements of the tensor. `last`: the place of its last element, from its first.
bool count_elements(const Payload& payload, std::uint64_t& count, std::uint64_t& last) {
  count = 1;
  last = static_cast<std::uint64_t>(payload.offset);
  bool fits = true, none = false;
  for (std::size_t i = 0; i < payload.extents.size(); ++i) {
    const auto extent = static_cast<std::uint64_t>(payload.extents[i]);
    none = none || extent == 0;
    std::uint64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(count, std::max<std::uint64_t>(extent, 1), &count) &&
           !__builtin_mul_overflow(extent == 0 ? 0 : extent - 1,
                                   static_cast<std::uint64_t>(payload.strides[i]), &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (none) count = 0;
  return fits;
}

class PayloadReader {
 public:
  PayloadReader(const Archive& archive, std::uint64_t bytes)
      : archive_(archive), left_(kAlways + kMostTimes * bytes) {}

  Result<Payloads> read(const std::string& model) {
    PW_TRY(check_byte_order());
    const std::string entry = archive_.program(model);
    SourceMap sources;
    const Program program =
        PW_TRY(read_program(sources, PW_TRY(archive_.zip.read(entry, kLargestConfig * 2)),
                            fmt::format("{}/{}", archive_.zip.file(), printable(entry)), 0));
    const Folder weights = PW_TRY(read_folder(archive_, "weights", model));
    const Folder constants = PW_TRY(read_folder(archive_, "constants", model));
    for (const auto& [input, stored] : program.tensors)
      PW_TRY(add(input, stored.name, stored.constant ? constants : weights));
    return std::move(out_);
  }

 private:
  Status check_byte_order() const {
    const std::string entry = archive_.root + "byteorder";
    if (archive_.zip.find(entry) == nullptr) return {};
    constexpr std::size_t kWord = 64;
    if (trimmed(PW_TRY(archive_.zip.read(entry, kWord))) == "little") return {};
    return fail(error_in(fmt::format("{} at {}", archive_.zip.file(), printable(entry)), "PW0530",
                         "the tensors are not little-endian"));
  }

  Status add(const std::string& input, const std::string& name, const Folder& folder) {
    if (folder.json.kind == Json::Kind::null)
      return refuse(input, fmt::format("there is no {}", printable(folder.config)));
    const Part config = PW_TRY(Part(folder.json, folder.place).member("config"));
    const auto meta = PW_TRY(config.maybe(name));
    if (!meta)
      return refuse(input, fmt::format("{} lacks `{}`", printable(folder.config), printable(name)));
    if (PW_TRY(PW_TRY(meta->member("use_pickle")).boolean()))
      return refuse(input, "it is pickled, and pickles are not supported");
    return describe(input, *meta, folder);
  }

  Status refuse(const std::string& input, const std::string& why) {
    out_.refused.push_back(input + ": " + why);
    return {};
  }

  Status describe(const std::string& input, const Part& meta, const Folder& folder) {
    const Part about = PW_TRY(meta.member("tensor_meta"));
    const Part dtype = PW_TRY(about.member("dtype"));
    const ScalarType* type = scalar_type(PW_TRY(dtype.integer()));
    if (type == nullptr)
      return dtype.wrong("invalid dtype number: PyTorch defines no such dtype", "", "PW0532");
    if (!type->dtype) return refuse(input, fmt::format("dtype {} is not supported", type->torch));
    if (PW_TRY(PW_TRY(about.member("layout")).integer()) != kStrided)
      return refuse(input, "it is not strided");
    const Part offset = PW_TRY(PW_TRY(about.member("storage_offset")).member("as_int"));
    const Part strides = PW_TRY(about.member("strides"));
    Payload payload{input,
                    folder.entries + PW_TRY(PW_TRY(meta.member("path_name")).text()),
                    *type->dtype,
                    PW_TRY(numbers(PW_TRY(about.member("sizes")))),
                    PW_TRY(numbers(strides)),
                    PW_TRY(offset.integer())};
    if (payload.offset < 0) return offset.wrong("the offset is negative");
    if (payload.strides.size() != payload.extents.size())
      return strides.wrong("the number of strides differs from the number of dims");
    PW_TRY(check_size(about, payload));
    out_.read.push_back(std::move(payload));
    return {};
  }

  Status check_size(const Part& about, const Payload& payload) {
    const ZipEntry* entry = archive_.zip.find(payload.entry);
    if (entry == nullptr)
      return about.wrong(fmt::format("the archive has no entry {}", printable(payload.entry)));
    const auto size = static_cast<std::uint64_t>(size_of(payload.dtype));
    std::uint64_t count = 0, last = 0, bytes = 0;
    if (!count_elements(payload, count, last) || __builtin_mul_overflow(count, size, &bytes))
      return about.wrong("the tensor is larger than any file");
    if (count > 0 && last >= entry->size / size)
      return about.wrong(fmt::format("the tensor extends to element {}, but {} has only {} bytes",
                                     last, printable(payload.entry), entry->size));
    if (bytes > left_)
      return about.wrong("the tensors up to this one are many times larger than the archive");
    left_ -= bytes;
    return {};
  }

  const Archive& archive_;
  std::uint64_t left_;
  Payloads out_;
};

}  // namespace

Result<Payloads> find_payloads(const Archive& archive, std::size_t number, std::uint64_t bytes) {
  return PayloadReader(archive, bytes).read(PW_TRY(choose_model(archive, number)));
}

}  // namespace pw::pt2
