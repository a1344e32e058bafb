// Small PT2 archives for tests: zips, and programs in the JSON of torch.export's schema 8.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <zip.h>

namespace pw::test {

struct ArchiveEntry {
  std::string name, content;
  bool packed = false;
};

/// A zip of these entries, in order.
inline std::string zip_of(const std::vector<ArchiveEntry>& entries) {
  const auto need = [](bool holds) {
    if (!holds) throw std::logic_error("libzip cannot write an archive");
  };
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  need(target != nullptr);
  zip_source_keep(target);
  zip_t* zip = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  need(zip != nullptr);
  for (const ArchiveEntry& entry : entries) {
    zip_source_t* from = zip_source_buffer(zip, entry.content.data(), entry.content.size(), 0);
    const zip_int64_t at = zip_file_add(zip, entry.name.c_str(), from, 0);
    need(at >= 0);
    const int method = entry.packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    need(zip_set_file_compression(zip, static_cast<zip_uint64_t>(at), method, 0) == 0);
  }
  need(zip_close(zip) == 0 && zip_source_open(target) == 0);
  zip_source_seek(target, 0, SEEK_END);
  std::string out(static_cast<std::size_t>(zip_source_tell(target)), '\0');
  zip_source_seek(target, 0, SEEK_SET);
  need(zip_source_read(target, out.data(), out.size()) == static_cast<zip_int64_t>(out.size()));
  zip_source_close(target);
  zip_source_free(target);
  return out;
}

/// A TensorMeta: dtype 7 is f32; sizes as the archive writes them, strides and offset as numbers.
inline std::string meta(int dtype, std::string_view sizes, std::string_view strides = "[]",
                        int offset = 0, int layout = 7) {
  return fmt::format(
      R"({{"dtype":{},"sizes":{},"strides":{},"storage_offset":{{"as_int":{}}},)"
      R"("requires_grad":false,"device":{{"type":"cpu","index":null}},"layout":{}}})",
      dtype, sizes, strides, offset, layout);
}
/// A list of {"as_int": n}.
inline std::string ints(const std::vector<int>& numbers) {
  std::string out;
  for (const int n : numbers) out += fmt::format("{}{{\"as_int\":{}}}", out.empty() ? "" : ",", n);
  return "[" + out + "]";
}
inline std::string tensor(std::string_view name) {
  return fmt::format(R"({{"as_tensor":{{"name":"{}"}}}})", name);
}
/// A positional argument, or one with a keyword.
inline std::string argument(std::string_view value, std::string_view keyword = "") {
  return fmt::format(R"({{"name":"{}","arg":{},"kind":{}}})", keyword, value,
                     keyword.empty() ? 1 : 2);
}
inline std::string node(std::string_view target, std::string_view arguments,
                        std::string_view results, std::string_view name,
                        std::string_view more = "") {
  return fmt::format(R"({{"target":"{}","inputs":[{}],"outputs":[{}],"metadata":{{)"
                     R"("stack_trace":"  File \"m.py\", line 7, in forward\n    y = f"}},)"
                     R"("name":"{}"{}}})",
                     target, arguments, results, name, more);
}

/// The parts of a program's JSON, each as its text between the brackets.
struct ProgramText {
  std::string inputs, outputs, nodes, tensors, numbers, input_specs, output_specs;
  std::string ranges = R"("s0":{"min_val":2,"max_val":64})";
  int major = 8;

  [[nodiscard]] std::string json() const {
    return fmt::format(
        R"({{"graph_module":{{"graph":{{"inputs":[{}],"outputs":[{}],"nodes":[{}],)"
        R"("tensor_values":{{{}}},"sym_int_values":{{{}}},"sym_bool_values":{{}}}},)"
        R"("signature":{{"input_specs":[{}],"output_specs":[{}]}},"module_call_graph":[]}},)"
        R"("opset_version":{{"aten":10}},"range_constraints":{{{}}},)"
        R"("schema_version":{{"major":{},"minor":20}},"torch_version":"2.15.0"}})",
        inputs, outputs, nodes, tensors, numbers, input_specs, output_specs, ranges, major);
  }
};

inline constexpr const char* kS0 =
    R"json({"as_expr":{"expr_str":"Symbol('s0', positive=True, integer=True)","hint":null}})json";

/// y = relu(x @ w) + n, and n += 1 at the end: x is the user's, w a parameter, n a buffer.
inline ProgramText small_program() {
  ProgramText out;
  const std::string rows = fmt::format("[{},{{\"as_int\":3}}]", kS0);
  out.inputs = tensor("p_w") + "," + tensor("b_n") + "," + tensor("x");
  out.input_specs = R"({"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},)"
                    R"({"buffer":{"arg":{"name":"b_n"},"buffer_name":"n","persistent":true}},)"
                    R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}})";
  out.nodes =
      node("torch.ops.aten.mm.default", argument(tensor("x")) + "," + argument(tensor("p_w")),
           tensor("mm"), "mm") +
      "," + node("torch.ops.aten.relu.default", argument(tensor("mm")), tensor("relu"), "relu") +
      "," +
      node("torch.ops.aten.add.Tensor", argument(tensor("relu")) + "," + argument(tensor("b_n")),
           tensor("y"), "y") +
      "," +
      node("torch.ops.aten.add.Tensor", argument(tensor("b_n")) + "," + argument(R"({"as_int":1})"),
           tensor("next"), "next");
  out.outputs = tensor("next") + "," + tensor("y");
  out.output_specs = R"({"buffer_mutation":{"arg":{"name":"next"},"buffer_name":"n"}},)"
                     R"({"user_output":{"arg":{"as_tensor":{"name":"y"}}}})";
  out.tensors = fmt::format(R"("p_w":{},"b_n":{},"x":{},"mm":{},"relu":{},"y":{},"next":{})",
                            meta(7, ints({4, 3})), meta(7, ints({3})),
                            meta(7, fmt::format("[{},{{\"as_int\":4}}]", kS0)), meta(7, rows),
                            meta(7, rows), meta(7, rows), meta(7, ints({3})));
  return out;
}

/// The bytes of f32 elements.
inline std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

inline std::string payload(std::string_view name, std::string_view entry, const std::string& meta,
                           bool pickled = false) {
  return fmt::format(
      R"("{}":{{"path_name":"{}","is_param":true,"use_pickle":{},"tensor_meta":{}}})", name, entry,
      pickled, meta);
}
inline std::string config(std::string_view payloads) {
  return fmt::format(R"({{"config":{{{}}}}})", payloads);
}

/// The small program with its tensors.
inline std::vector<ArchiveEntry> small_archive() {
  const std::string weights = payload("w", "weight_0", meta(7, ints({4, 3}), ints({3, 1}))) + "," +
                              payload("n", "weight_1", meta(7, ints({3}), ints({1})));
  return {{"m/data/weights/weight_0", floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
          {"m/data/weights/weight_1", floats({-1, -2, -3})},
          {"m/data/weights/model_weights_config.json", config(weights)},
          {"m/data/constants/model_constants_config.json", config("")},
          {"m/models/model.json", small_program().json()},
          {"m/archive_format", "pt2"},
          {"m/archive_version", "0"},
          {"m/byteorder", "little"}};
}

/// Returns the archive with one entry changed or added.
inline std::vector<ArchiveEntry> with_entry(std::vector<ArchiveEntry> entries,
                                            const std::string& name, const std::string& content) {
  for (ArchiveEntry& entry : entries)
    if (entry.name == name) {
      entry.content = content;
      return entries;
    }
  entries.push_back({name, content});
  return entries;
}

/// Returns the archive without one entry.
inline std::vector<ArchiveEntry> without_entry(std::vector<ArchiveEntry> entries,
                                               const std::string& name) {
  std::erase_if(entries, [&](const ArchiveEntry& entry) { return entry.name == name; });
  return entries;
}

}  // namespace pw::test
