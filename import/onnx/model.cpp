// The fields of the messages by their numbers. Unknown fields are skipped, as newer versions of the
// format add some.
#include "import/onnx/model.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "import/onnx/wire.hpp"

namespace pw::onnx {
namespace {

constexpr std::int64_t kExternal = 1;  // TensorProto.DataLocation

/// Returns a string. Texts of messages are UTF-8; those of attributes are bytes.
std::string string_of(const WireField& field) {
  if (!is_utf8(field.text())) throw Malformed{field.offset, "a name is not UTF-8"};
  return std::string(field.text());
}

std::pair<std::string, std::string> entry_of(const WireField& message) {
  std::pair<std::string, std::string> out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) {
    if (f.number == 1) out.first = string_of(f);
    if (f.number == 2) out.second = string_of(f);
  }
  return out;
}

OnnxTensor tensor_message(const WireField& message) {
  OnnxTensor out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) switch (f.number) {
      case 1: f.append_to(out.extents); break;
      case 2: out.element = f.integer(); break;
      case 4: f.append_to(out.floats); break;
      case 5:
      case 7:
      case 11: f.append_to(out.integers); break;
      case 6: out.strings = true; break;
      case 8: out.name = string_of(f); break;
      case 9: out.raw = f.text(); break;
      case 10: f.append_to(out.doubles); break;
      case 13: out.external_data.push_back(entry_of(f)); break;
      case 14: out.external = f.integer() == kExternal; break;
      default: break;
    }
  return out;
}

OnnxAttribute attribute_message(const WireField& message) {
  OnnxAttribute out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) switch (f.number) {
      case 1: out.name = string_of(f); break;
      case 2: out.real = f.real(); break;
      case 3: out.integer = f.integer(); break;
      case 4: out.text = std::string(f.text()); break;
      case 5: out.tensor = tensor_message(f); break;
      case 7: f.append_to(out.reals); break;
      case 8: f.append_to(out.integers); break;
      case 9: out.texts.emplace_back(f.text()); break;
      case 6:
      case 10:
      case 11:
      case 14:
      case 15:
      case 22:
      case 23: out.other = true; break;
      case 20: out.type = f.integer(); break;
      case 21: out.reference = string_of(f); break;
      default: break;
    }
  return out;
}

/// Reads an entry of metadata_props: a key (1) and its value (2).
void take_scopes(const WireField& message, std::string& scopes) {
  std::string key, value;
  WireField f;
  for (WireReader reader(message); reader.next(f);) {
    if (f.number == 1) key = string_of(f);
    if (f.number == 2) value = string_of(f);
  }
  if (key == "pkg.torch.onnx.name_scopes") scopes = std::move(value);
}

OnnxNode node_message(const WireField& message) {
  OnnxNode out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) switch (f.number) {
      case 1: out.inputs.push_back(string_of(f)); break;
      case 2: out.outputs.push_back(string_of(f)); break;
      case 3: out.name = string_of(f); break;
      case 4: out.op = string_of(f); break;
      case 5: out.attributes.push_back(attribute_message(f)); break;
      case 7: out.domain = string_of(f); break;
      case 8: out.overload = string_of(f); break;
      case 9: take_scopes(f, out.scopes); break;
      default: break;
    }
  return out;
}

std::vector<OnnxDim> shape_message(const WireField& message) {
  std::vector<OnnxDim> out;
  WireField dim, f;
  for (WireReader dims(message); dims.next(dim);) {
    if (dim.number != 1) continue;
    out.emplace_back();
    for (WireReader reader(dim); reader.next(f);) {
      if (f.number == 1) out.back().extent = f.integer();
      if (f.number == 2) out.back().parameter = string_of(f);
    }
  }
  return out;
}

void read_type(const WireField& message, OnnxValue& out) {
  WireField type, f;
  for (WireReader types(message); types.next(type);) {
    if (type.number != 1) continue;  // a sequence, a map, …
    out.tensor = true;
    for (WireReader reader(type); reader.next(f);) {
      if (f.number == 1) out.element = f.integer();
      if (f.number == 2) out.shape = shape_message(f);
    }
  }
}

OnnxValue value_message(const WireField& message) {
  OnnxValue out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) {
    if (f.number == 1) out.name = string_of(f);
    if (f.number == 2) read_type(f, out);
  }
  return out;
}

OnnxGraph graph_message(const WireField& message) {
  OnnxGraph out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) switch (f.number) {
      case 1: out.nodes.push_back(node_message(f)); break;
      case 2: out.name = string_of(f); break;
      case 5: out.initializers.push_back(tensor_message(f)); break;
      case 11: out.inputs.push_back(value_message(f)); break;
      case 12: out.outputs.push_back(value_message(f)); break;
      case 13: out.values.push_back(value_message(f)); break;
      case 15: out.sparse = true; break;
      default: break;
    }
  return out;
}

std::pair<std::string, std::int64_t> opset_message(const WireField& message) {
  std::pair<std::string, std::int64_t> out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) {
    if (f.number == 1) out.first = string_of(f);
    if (f.number == 2) out.second = f.integer();
  }
  return out;
}

OnnxFunction function_message(const WireField& message) {
  OnnxFunction out;
  WireField f;
  for (WireReader reader(message); reader.next(f);) switch (f.number) {
      case 1: out.name = string_of(f); break;
      case 4: out.inputs.push_back(string_of(f)); break;
      case 5: out.outputs.push_back(string_of(f)); break;
      case 7: out.nodes.push_back(node_message(f)); break;
      case 9: out.opsets.push_back(opset_message(f)); break;
      case 10: out.domain = string_of(f); break;
      case 11: out.defaults.push_back(attribute_message(f)); break;
      case 13: out.overload = string_of(f); break;
      default: break;
    }
  return out;
}

OnnxModel model_message(std::string_view bytes, bool& has_graph) {
  OnnxModel out;
  WireField f;
  for (WireReader reader(bytes, 0); reader.next(f);) switch (f.number) {
      case 1: out.ir_version = f.integer(); break;
      case 7:
        out.graph = graph_message(f);
        has_graph = true;
        break;
      case 8: out.opsets.push_back(opset_message(f)); break;
      case 25: out.functions.push_back(function_message(f)); break;
      default: break;
    }
  return out;
}

}  // namespace

// ir_version comes first, then the producer's name, the graph or opsets.
bool looks_like_onnx(std::string_view bytes) {
  constexpr char kVersion = 0x08, kProducer = 0x12, kGraph = 0x3a, kOpset = 0x42;
  return bytes.size() > 2 && bytes[0] == kVersion && bytes[1] > 0 && bytes[1] < 32 &&
         (bytes[2] == kProducer || bytes[2] == kGraph || bytes[2] == kOpset);
}

Result<OnnxModel> read_model(std::string_view bytes, const std::string& file) {
  try {
    bool has_graph = false;
    OnnxModel out = model_message(bytes, has_graph);
    if (has_graph) return out;
    return fail(error_in(file, "PW0520", "the ONNX file has no graph"));
  } catch (const Malformed& at) {
    return fail(error_in(fmt::format("{} at byte {}", file, at.offset), "PW0520",
                         "this is not an ONNX model: " + at.reason,
                         "the file may be truncated or damaged"));
  }
}

}  // namespace pw::onnx
