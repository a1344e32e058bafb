// The tensors of PT2 archives: their bytes; sizes, offsets and pickles are not trusted.
#include "import/pt2/tensors.hpp"

#include <cstring>

#include <fmt/ranges.h>

#include "tensor/safetensors.hpp"
#include "tests/catch.hpp"
#include "tests/pt2/archives.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::string header_of(const std::string& bytes) {
  const auto header = parse_safetensors(bytes, "w");
  REQUIRE(header);
  std::string out;
  for (const StoredTensor& tensor : header->tensors)
    out += fmt::format("{} {} {} ", tensor.name, tensor.dtype, fmt::join(tensor.extents, "x"));
  return out;
}

std::vector<float> values(const std::string& bytes, const std::string& name) {
  const auto header = parse_safetensors(bytes, "w");
  REQUIRE(header);
  for (const StoredTensor& tensor : header->tensors) {
    if (tensor.name != name) continue;
    std::vector<float> out((tensor.end - tensor.begin) / sizeof(float));
    if (!out.empty())
      std::memcpy(out.data(), bytes.data() + header->data + tensor.begin,
                  tensor.end - tensor.begin);
    return out;
  }
  FAIL("there is no " << name);
  return {};
}

/// The archive whose parameter `w` is this.
std::vector<ArchiveEntry> with_weight(const std::string& payload_json) {
  const std::string n = payload("n", "weight_1", meta(7, ints({3}), ints({1})));
  return with_entry(small_archive(), "m/data/weights/model_weights_config.json",
                    config(payload_json + "," + n));
}

std::string refused_tensors(const std::vector<ArchiveEntry>& entries) {
  const auto done = safetensors_of_pt2(zip_of(entries), "m.pt2");
  REQUIRE(!done);
  const Diagnostic& first = done.error()[0];
  return first.code + " " + first.place + ": " + first.message;
}

constexpr const char* kConfig = "m.pt2/m/data/weights/model_weights_config.json at /config/w";

}  // namespace

TEST_CASE("pt2: tensors have the names of the graph's inputs", "[pt2][tensors]") {
  const auto bytes = safetensors_of_pt2(zip_of(small_archive()), "m.pt2");
  REQUIRE(bytes);
  CHECK(header_of(*bytes) == "b_n F32 3 p_w F32 4x3 ");
  CHECK(values(*bytes, "b_n") == std::vector<float>{-1, -2, -3});
  CHECK(values(*bytes, "p_w") == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("pt2: strides and offsets are followed", "[pt2][tensors]") {
  const auto transposed =
      with_weight(payload("w", "weight_0", meta(7, ints({4, 3}), ints({1, 4}))));
  CHECK(values(safetensors_of_pt2(zip_of(transposed), "m.pt2").value(), "p_w") ==
        std::vector<float>{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  const auto part = with_weight(payload("w", "weight_0", meta(7, ints({2, 2}), ints({3, 1}), 4)));
  CHECK(values(safetensors_of_pt2(zip_of(part), "m.pt2").value(), "p_w") ==
        std::vector<float>{5, 6, 8, 9});
  const auto spread = with_weight(payload("w", "weight_0", meta(7, ints({2, 2}), ints({0, 1}), 3)));
  CHECK(values(safetensors_of_pt2(zip_of(spread), "m.pt2").value(), "p_w") ==
        std::vector<float>{4, 5, 4, 5});
  const auto empty = with_weight(payload("w", "weight_0", meta(7, ints({0, 9}), ints({9, 1}), 99)));
  CHECK(values(safetensors_of_pt2(zip_of(empty), "m.pt2").value(), "p_w").empty());
}

TEST_CASE("pt2: two inputs may share an entry, and one may be packed", "[pt2][tensors]") {
  const std::string weights = payload("w", "weight_0", meta(7, ints({4, 3}), ints({3, 1}))) + "," +
                              payload("n", "weight_0", meta(7, ints({3}), ints({4})));
  auto entries =
      with_entry(small_archive(), "m/data/weights/model_weights_config.json", config(weights));
  entries[0].packed = true;
  const auto bytes = safetensors_of_pt2(zip_of(entries), "m.pt2");
  REQUIRE(bytes);
  CHECK(values(*bytes, "b_n") == std::vector<float>{1, 5, 9});
}

TEST_CASE("pt2: pickles are not read", "[pt2][tensors]") {
  CHECK(refused_tensors(with_weight(payload("w", "weight_0", "null", true))) ==
        "PW1274 m.pt2: no contents for the input p_w: it is pickled, and pickles are not "
        "supported");
}

TEST_CASE("pt2: dtypes that graphs lack, and contents that are not there", "[pt2][tensors]") {
  CHECK(refused_tensors(with_weight(payload("w", "weight_0", meta(3, ints({2}), ints({1}))))) ==
        "PW1274 m.pt2: no contents for the input p_w: dtype torch.int16 is not supported");
  CHECK(refused_tensors(with_weight(payload("v", "weight_0", meta(7, ints({2}), ints({1}))))) ==
        "PW1274 m.pt2: no contents for the input p_w: "
        "m/data/weights/model_weights_config.json lacks `w`");
  CHECK(refused_tensors(without_entry(small_archive(), "m/data/weights/model_weights_config.json"))
            .find("there is no m/data/weights/model_weights_config.json") != std::string::npos);
  CHECK(refused_tensors(with_entry(small_archive(), "m/byteorder", "big")) ==
        "PW0530 m.pt2 at m/byteorder: the tensors are not little-endian");
}

TEST_CASE("pt2: no element is read outside of its entry", "[pt2][tensors]") {
  const auto weight = [](const std::string& about, const char* entry = "weight_0") {
    return refused_tensors(with_weight(payload("w", entry, about)));
  };
  const std::string reaches =
      std::string("PW0531 ") + kConfig + "/tensor_meta: the tensor extends to element ";
  CHECK(weight(meta(7, ints({4, 4}), ints({4, 1}))) ==
        reaches + "15, but m/data/weights/weight_0 has only 48 bytes");
  CHECK(weight(meta(7, ints({4, 3}), ints({3, 1}), 1)) ==
        reaches + "12, but m/data/weights/weight_0 has only 48 bytes");
  CHECK(weight(meta(8, ints({4, 3}), ints({3, 1}))) ==
        reaches + "11, but m/data/weights/weight_0 has only 48 bytes");
  CHECK(weight(meta(7, ints({2}), ints({-1}))) ==
        std::string("PW0531 ") + kConfig +
            "/tensor_meta/strides/0: an extent or stride is negative");
  CHECK(weight(meta(7, ints({2}), ints({1}), -1)) ==
        std::string("PW0531 ") + kConfig +
            "/tensor_meta/storage_offset/as_int: the offset is negative");
  CHECK(weight(meta(7, ints({2, 2}), ints({1}))) ==
        std::string("PW0531 ") + kConfig +
            "/tensor_meta/strides: the number of strides differs from the number of dims");
  CHECK(weight(meta(7, ints({2}), ints({1})), "../../etc/passwd") ==
        std::string("PW0531 ") + kConfig +
            "/tensor_meta: the archive has no entry m/data/weights/../../etc/passwd");
  const std::string huge = R"([{"as_int":4611686018427387904},{"as_int":4611686018427387904}])";
  CHECK(weight(meta(7, huge, ints({0, 0}))) ==
        std::string("PW0531 ") + kConfig + "/tensor_meta: the tensor is larger than any file");
  CHECK(weight(meta(7, ints({100000, 100000}), ints({0, 0}))) ==
        std::string("PW0531 ") + kConfig +
            "/tensor_meta: the tensors up to this one are many times larger than the archive");
}
