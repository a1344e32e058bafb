#include "import/onnx/wire.hpp"

#include <bit>

#include <fmt/format.h>

namespace pw::onnx {
namespace {

constexpr unsigned kLongestVarint = 10;
constexpr std::uint32_t kLastField = (1u << 29) - 1;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    out = out << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

[[noreturn]] void refuse_kind(const WireField& field) {
  throw Malformed{field.offset, fmt::format("field {} has the wrong wire type", field.number)};
}

/// Reads `Bits` of one number; `convert` turns them into a number.
template <class Bits, class T, class Convert>
void append_fixed(const WireField& field, WireField::Kind single, std::vector<T>& out,
                  Convert convert) {
  if (field.kind == single) return out.push_back(convert(static_cast<Bits>(field.bits)));
  if (field.kind != WireField::Kind::bytes || field.bytes.size() % sizeof(Bits) != 0)
    refuse_kind(field);
  for (std::size_t i = 0; i < field.bytes.size(); i += sizeof(Bits))
    out.push_back(convert(static_cast<Bits>(little_endian(field.bytes.substr(i, sizeof(Bits))))));
}

}  // namespace

std::int64_t WireField::integer() const {
  if (kind != Kind::varint) refuse_kind(*this);
  return static_cast<std::int64_t>(bits);
}

float WireField::real() const {
  if (kind != Kind::fixed32) refuse_kind(*this);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

std::string_view WireField::text() const {
  if (kind != Kind::bytes) refuse_kind(*this);
  return bytes;
}

void WireField::append_to(std::vector<std::int64_t>& out) const {
  if (kind == Kind::varint) return out.push_back(integer());
  for (WireReader packed(*this); !packed.empty();)
    out.push_back(static_cast<std::int64_t>(packed.varint()));
}

void WireField::append_to(std::vector<float>& out) const {
  append_fixed<std::uint32_t>(*this, Kind::fixed32, out,
                              [](std::uint32_t b) { return std::bit_cast<float>(b); });
}

void WireField::append_to(std::vector<double>& out) const {
  append_fixed<std::uint64_t>(*this, Kind::fixed64, out,
                              [](std::uint64_t b) { return std::bit_cast<double>(b); });
}

std::string_view WireReader::take(std::size_t count) {
  if (count > rest_.size())
    throw Malformed{offset_, fmt::format("a length of {} bytes exceeds the {} bytes left", count,
                                         rest_.size())};
  const std::string_view out = rest_.substr(0, count);
  rest_.remove_prefix(count);
  offset_ += count;
  return out;
}

std::uint64_t WireReader::varint() {
  std::uint64_t out = 0;
  for (unsigned i = 0; i < kLongestVarint; ++i) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    out |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return out;
  }
  throw Malformed{offset_, "a number has more than ten bytes"};
}

bool WireReader::next(WireField& field) {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint();
  field = {};
  field.kind = static_cast<WireField::Kind>(key & 7);
  if (key >> 3 == 0 || key >> 3 > kLastField) throw Malformed{offset_, "invalid field number"};
  field.number = static_cast<std::uint32_t>(key >> 3);
  switch (field.kind) {
    case WireField::Kind::varint: field.bits = varint(); break;
    case WireField::Kind::fixed64: field.bits = little_endian(take(8)); break;
    case WireField::Kind::fixed32: field.bits = little_endian(take(4)); break;
    case WireField::Kind::bytes: {
      const std::uint64_t count = varint();
      field.offset = offset_;
      field.bytes = take(count);
      return true;
    }
    default:
      throw Malformed{offset_, fmt::format("field {} has an unknown wire type", field.number)};
  }
  field.offset = offset_;
  return true;
}

void WireWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void WireWriter::key(std::uint32_t number, WireField::Kind kind) {
  varint(std::uint64_t{number} << 3 | static_cast<std::uint64_t>(kind));
}

WireWriter& WireWriter::integer(std::uint32_t number, std::int64_t value) {
  key(number, WireField::Kind::varint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireWriter& WireWriter::real(std::uint32_t number, float value) {
  key(number, WireField::Kind::fixed32);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (unsigned i = 0; i < 4; ++i) text_ += static_cast<char>(bits >> (8 * i));
  return *this;
}

WireWriter& WireWriter::text(std::uint32_t number, std::string_view value) {
  key(number, WireField::Kind::bytes);
  varint(value.size());
  text_ += value;
  return *this;
}

}  // namespace pw::onnx
