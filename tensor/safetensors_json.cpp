#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/io/file_kind.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

using Parsed = nlohmann::json;

constexpr std::uint64_t kMostHeader = 100'000'000;
constexpr std::size_t kLength = 8;    // bytes of the header's length
constexpr std::size_t kAligned = 64;  // of the first tensor, in files that are written here
constexpr int kDeepest = 3;           // the header, an entry, a list
constexpr std::size_t kMostHeaderMembers = std::size_t{1}
                                           << 17;  // tensors, and texts of the metadata
constexpr std::size_t kMostTensorDims = 32;
constexpr std::size_t kMostHeaderText = std::size_t{16} << 20;  // bytes of one text
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMaxErrors = 20;

/// Bytes of an element, of any dtype of the format; 0 for others.
std::uint64_t element_bytes(std::string_view dtype) {
  if (const auto known = dtype_stored_as(dtype)) return static_cast<std::uint64_t>(size_of(*known));
  if (dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U32") return 4;
  return dtype == "U64" ? 8 : 0;
}

std::string shown(std::string_view name) { return std::string(name.substr(0, 120)); }

/// Checks the header's size and form before building a tree, and stops at the first error. A parser
/// with callbacks would be quadratic in the number of tensors.
class Look final : public nlohmann::json_sax<Parsed> {
 public:
  std::string at, problem;  ///< the tensor, if it is one's, and what is wrong

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t& text) override { return value() && fits(text); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return (!open_.empty() || value()) && open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.size() == 1) {
      at = shown(name);
      if (!names_.insert(name).second) return stop("duplicate name");
    }
    return fits(name);
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    at.clear();
    return stop(fmt::format("the header is not JSON, at its byte {}", position));
  }

 private:
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool fits(const std::string& text) {
    return text.size() <= kMostHeaderText ||
           stop(fmt::format("a string has more than {} bytes", kMostHeaderText));
  }
  /// Counts a value of what is open: members of an object, or the numbers of a list.
  bool value() {
    if (open_.empty()) return stop("the header is not a JSON object");
    if (open_.size() > kDeepest) return true;
    const std::size_t most = open_.size() < kDeepest ? kMostHeaderMembers : kMostTensorDims;
    if (++open_.back() <= most) return true;
    if (open_.size() == 1) at.clear();
    return stop(fmt::format("there are more than {} {}", most,
                            open_.size() == 1         ? "tensors"
                            : most == kMostTensorDims ? "numbers in a list"
                                                      : "members"));
  }
  bool open() {
    if (!open_.empty() && !value()) return false;
    open_.push_back(0);
    if (open_.size() > kDeepest) {  // the text may not be JSON at all, which shows at its end
      at.clear();
      problem = fmt::format("the header is nested deeper than {}", kDeepest);
    }
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<std::size_t> open_;  ///< by depth: values so far
  std::set<std::string> names_;
};

class Parser {
 public:
  Parser(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Result<SafetensorsHeader> run() {
    if (!find_header()) return tl::unexpected(std::move(errors_));
    Parsed json;
    if (!parse(json)) return tl::unexpected(std::move(errors_));
    for (const auto& [name, entry] : json.items()) {
      if (errors_.size() >= kMaxErrors) break;
      if (name == kMetadata)
        metadata(entry);
      else
        add(name, entry);
    }
    if (errors_.empty()) check_places();
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    return std::move(out_);  // items() is sorted by name
  }

 private:
  bool wrong(const std::string& at, std::string why, std::string help = {}) {
    errors_.push_back(error_in(at.empty() ? file_ : file_ + " at " + at, "PW1271", std::move(why),
                               std::move(help)));
    return false;
  }

  bool find_header() {
    if (bytes_.size() < kLength)
      return wrong(
          "",
          fmt::format("has {} bytes, but the length of a header takes {}", bytes_.size(), kLength),
          "is it a safetensors file?");
    std::uint64_t length = 0;
    for (std::size_t i = kLength; i-- > 0;)
      length = length << 8 | static_cast<unsigned char>(bytes_[i]);
    if (const std::string kind = file_kind(bytes_); length > kMostHeader && !kind.empty())
      return wrong("", "this is " + kind, "pass a safetensors file or a .pt2");
    if (length > kMostHeader)
      return wrong("", fmt::format("its header has {} bytes; the limit is {}", length, kMostHeader),
                   "is it a safetensors file?");
    if (length > bytes_.size() - kLength)
      return wrong("",
                   fmt::format("the header of {} bytes extends beyond the file, which has {}",
                               length, bytes_.size()),
                   "the file may be truncated");
    header_ = bytes_.substr(kLength, length);
    out_.data = kLength + length;
    return true;
  }

  bool parse(Parsed& json) {
    Look look;
    if (!Parsed::sax_parse(header_.begin(), header_.end(), &look) || !look.problem.empty())
      return wrong(look.at, look.problem, look.at.empty() ? "is it a safetensors file?" : "");
    json = Parsed::parse(header_.begin(), header_.end());
    return true;
  }

  void metadata(const Parsed& entry) {
    const bool texts =
        entry.is_object() && std::all_of(entry.begin(), entry.end(),
                                         [](const Parsed& value) { return value.is_string(); });
    if (!texts) wrong(std::string(kMetadata), "metadata must map names to strings");
  }

  /// Returns a number from 0 to `most`.
  static std::optional<std::uint64_t> number(const Parsed& json, std::uint64_t most) {
    if (!json.is_number_unsigned() || json.get<std::uint64_t>() > most) return std::nullopt;
    return json.get<std::uint64_t>();
  }

  bool add(const std::string& name, const Parsed& entry) {
    const std::string at = shown(name);
    if (!entry.is_object()) return wrong(at, "an entry must be an object");
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) return wrong(at, fmt::format("`{}` is missing", key));
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        return wrong(at, fmt::format("unknown member `{}`", shown(key)));
    StoredTensor tensor;
    tensor.name = name;
    if (!entry["dtype"].is_string()) return wrong(at, "the dtype is not a string");
    tensor.dtype = entry["dtype"].get<std::string>();
    std::uint64_t size = element_bytes(tensor.dtype);
    if (size == 0)
      return wrong(at, fmt::format("unknown dtype `{}`", shown(tensor.dtype)),
                   "BOOL, U8, I8, I16, U16, I32, U32, I64, U64, F8_E4M3, F8_E5M2, F16, BF16, F32 "
                   "and F64 are known");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
    const Parsed& shape = entry["shape"];
    if (!shape.is_array()) return wrong(at, "the shape is not a list");
    for (const Parsed& extent : shape) {
      const auto n = number(extent, kMost);
      if (!n) return wrong(at, "the shape contains an invalid extent: " + shown(extent.dump()));
      if (__builtin_mul_overflow(size, *n, &size) || size > kMost)
        return wrong(at, "the tensor is larger than any file");
      tensor.extents.push_back(static_cast<std::int64_t>(*n));
    }
    const Parsed& places = entry["data_offsets"];
    const auto begin =
        places.is_array() && places.size() == 2 ? number(places[0], kMost) : std::nullopt;
    const auto end = begin ? number(places[1], kMost) : std::nullopt;
    if (!end || *end < *begin) return wrong(at, "data_offsets are not a beginning and an end");
    tensor.begin = *begin;
    tensor.end = *end;
    if (tensor.end > bytes_.size() - out_.data)
      return wrong(at,
                   fmt::format("its bytes end at {}, but the file has only {} bytes of tensors",
                               tensor.end, bytes_.size() - out_.data),
                   "the file may be truncated");
    if (tensor.end - tensor.begin != size)
      return wrong(at, fmt::format("it has {} bytes, but its shape requires {}",
                                   tensor.end - tensor.begin, size));
    out_.tensors.push_back(std::move(tensor));
    return true;
  }

  void check_places() {
    std::vector<const StoredTensor*> order;
    for (const StoredTensor& tensor : out_.tensors) order.push_back(&tensor);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    std::uint64_t end = 0;
    const StoredTensor* before = nullptr;
    for (const StoredTensor* tensor : order) {
      if (tensor->begin < end) {
        wrong(shown(tensor->name), "its bytes overlap those of " + shown(before->name));
        return;
      }
      if (tensor->begin > end) {
        wrong(shown(tensor->name),
              fmt::format("no tensor has the bytes from {} to {} before it", end, tensor->begin));
        return;
      }
      end = tensor->end;
      before = tensor;
    }
    if (end != bytes_.size() - out_.data)
      wrong("", fmt::format("no tensor has the last {} bytes", bytes_.size() - out_.data - end));
  }

  std::string_view bytes_, header_;
  const std::string& file_;
  SafetensorsHeader out_;
  Diagnostics errors_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::string_view bytes, const std::string& file) {
  return Parser(bytes, file).run();
}

std::string safetensors_text(std::vector<std::pair<std::string, TensorView>> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t end = 0;
  for (const auto& [name, view] : tensors) {
    header[name] = {{"dtype", stored_name(view.dtype)},
                    {"shape", view.extents},
                    {"data_offsets", {end, end + view.bytes()}}};
    end += view.bytes();
  }
  std::string text = header.dump(-1, ' ', false, Parsed::error_handler_t::replace);
  while ((kLength + text.size()) % kAligned != 0) text += ' ';
  std::string out;
  for (std::size_t i = 0; i < kLength; ++i) out += static_cast<char>(text.size() >> (8 * i) & 0xff);
  out += text;
  for (const auto& [name, view] : tensors)
    out.append(reinterpret_cast<const char*>(view.data), view.bytes());
  return out;
}

}  // namespace pw
