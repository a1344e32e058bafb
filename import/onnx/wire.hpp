// The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding): reads the fields
// of a message in sequence without copies, and writes them. Decision 019 explains why libprotobuf
// is not used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pw::onnx {

/// Thrown by the readers of this folder at malformed bytes; read_model() catches it.
struct Malformed {
  std::size_t offset;  ///< in the file
  std::string reason;
};

/// One field of a message. Groups, which proto3 no longer has, are malformed.
struct WireField {
  enum class Kind : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint32_t number = 0;
  Kind kind = Kind::varint;
  std::uint64_t bits = 0;  ///< of a number
  std::string_view bytes;  ///< of a string, a message or packed numbers
  std::size_t offset = 0;  ///< of its contents, in the file

  // Accessors by the schema's type; Malformed if the field has another one.
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] float real() const;
  [[nodiscard]] std::string_view text() const;
  /// Appends repeated numbers, packed or one by one.
  void append_to(std::vector<std::int64_t>& out) const;
  void append_to(std::vector<float>& out) const;
  void append_to(std::vector<double>& out) const;
};

/// Reader of the fields of a message, in stored order.
class WireReader {
 public:
  /// Creates a reader. `offset`: the beginning of the message in the file, for error messages.
  WireReader(std::string_view message, std::size_t offset) : rest_(message), offset_(offset) {}
  /// Creates a reader of the message in a field.
  explicit WireReader(const WireField& field) : WireReader(field.text(), field.offset) {}
  /// Reads the next field; returns false at the end. Malformed: a field that exceeds the message,
  /// or has an unknown kind.
  bool next(WireField& field);
  std::uint64_t varint();
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(std::size_t count);
  std::string_view rest_;
  std::size_t offset_;
};

/// Writer of the fields of one message, which is its text.
class WireWriter {
 public:
  WireWriter& integer(std::uint32_t number, std::int64_t value);
  WireWriter& real(std::uint32_t number, float value);
  WireWriter& text(std::uint32_t number, std::string_view value);
  WireWriter& message(std::uint32_t number, const WireWriter& value) {
    return text(number, value.text_);
  }
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  void key(std::uint32_t number, WireField::Kind kind);
  void varint(std::uint64_t value);
  std::string text_;
};

}  // namespace pw::onnx
