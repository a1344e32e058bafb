#include "graph/text/type_text.hpp"

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("types: texts of dims are normal forms", "[graph][types]") {
  Context context;
  const std::pair<const char*, const char*> cases[] = {
      {"7", "7"},
      {"n", "n"},
      {"2*n + 1", "2*n + 1"},
      {"1 + n*2", "2*n + 1"},
      {"(n + 1)*(n - 1)", "n*n - 1"},
      {"n - n", "0"},
      {"-(n - 3)", "-n + 3"},
      {"2**3*n", "8*n"},
      {"4*n // 2", "2*n"},
      {"4*n / 2", "2*n"},
      {"FloorDiv(4*n, 2)", "2*n"},
      {"-((n//(-4)))", "-(-n // 4)"},
      {"CeilToInt(IntTrueDiv(n, 4))", "-(n//(-4))"},
      {"CeilToInt(IntTrueDiv(8*n, 4))", "2*n"},
      {"FloorToInt(IntTrueDiv(n, 4))", "n // 4"},
      {"ceiling(n/4)", "-(n//(-4))"},
      {"CeilToInt(7)", "7"},
      {"((n//2)//2)", "n // 4"},
      {"((n//2) + 3)//5", "(n + 6)//10"},
      {"(4*n)//(-4)", "-n"},
      {"PythonMod(n + 4*k, 4)", "Mod(n, 4)"},
      {"ModularIndexing(n, 2, 3)", "(n//2) % 3"},
      {"CleanDiv(6*n, 3)", "2*n"},
      {"IntTrueDiv(6*n, 3)", "2*n"},
      {"Identity(n)", "n"},
      {"Max(1, n)", "max(n, 1)"},
      {"Max(n, Max(2, k), 1)", "Max(2, k, n)"},
      {"Min(n, n)", "n"},
      {"Max(3, 7) + Min(3, 7)", "10"},
  };
  for (const auto& [text, same_as] : cases) {
    CAPTURE(text);
    TextResult<DimId> dim = parse_dim(context.dims, text), other = parse_dim(context.dims, same_as);
    REQUIRE(dim);
    REQUIRE(other);
    CHECK(*dim == *other);
  }
}

TEST_CASE("types: what the printer writes is read as the same dim", "[graph][types]") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  Context context;
  Dims& dims = context.dims;
  std::vector<DimId> made = {dims.constant(1), dims.constant(3), dims.constant(8), dims.symbol("n"),
                             dims.symbol("k")};
  for (int i = 0; i < 400; ++i) {
    DimId a = made[random.below(made.size())], b = made[random.below(made.size())], d;
    switch (random.below(7)) {
      case 0: d = dims.add(a, b); break;
      case 1: d = dims.sub(a, b); break;
      case 2: d = dims.mul(a, b); break;
      case 3: d = dims.div(a, b); break;
      case 4: d = dims.mod(a, b); break;
      case 5: d = dims.max(a, b); break;
      default: d = dims.min(a, b); break;
    }
    if (!d.valid() || dims.print(d).size() > 100) continue;
    if (std::optional<std::int64_t> v = dims.value(d); v && (*v > kMaxDim || *v < -kMaxDim))
      continue;
    made.push_back(d);
    CAPTURE(dims.print(d));
    TextResult<DimId> back = parse_dim(dims, dims.print(d));
    REQUIRE(back);
    CHECK(*back == d);
  }
}

TEST_CASE("types: texts of types", "[graph][types]") {
  Context context;
  for (const char* text : {"bf16[n, 4096]", "f32[]", "?", "i64[2*n + 1]"}) {
    TextResult<TypeId> type = parse_type(context, text);
    REQUIRE(type);
    CHECK(context.types.print(*type) == text);
  }
  CHECK(context.types.print(*parse_fx_type(context, "f8e4m3fn[s0, 64][64, 1]cuda:0")) ==
        "f8e4m3[s0, 64]");
  CHECK(context.types.print(*parse_fx_type(context, "f32[Mod(s0, 8), 2][2, 1]cpu")) ==
        context.types.print(*parse_type(context, "f32[s0 % 8, 2]")));
}

TEST_CASE("types: mistakes have an offset", "[graph][types]") {
  Context context;
  struct Bad {
    std::string text;
    std::size_t offset;
    std::string message;
  };
  const Bad cases[] = {
      {"", 0, "expected a type"},
      {"bf16", 4, "expected `[`"},
      {"bf61[4]", 0, "unknown dtype `bf61`"},
      {"bf16[4", 6, "expected `]`"},
      {"bf16[4]x", 7, "expected the end of the type"},
      {"bf16[4,]", 7, "expected a number or a symbol"},
      {"bf16[4, n n]", 10, "expected an operator"},
      {"bf16[-4]", 5, "a dim must be from 0 to 2^40, not -4"},
      {"bf16[1099511627777]", 5, "out of range"},
      {"bf16[123456789012345678901234567890]", 5, "out of range"},
      {"bf16[n // 0]", 7, "divides by zero"},
      {"bf16[1 + Foo(n, 2)]", 9, "no function `Foo` of 2 in dims"},
      {"bf16[Max(n, ]", 12, "expected a number or a symbol"},
      {"bf16[CeilToInt(IntTrueDiv(n, 4)]", 31, "expected `)`"},
      {"bf16[2**9]", 6, "an exponent must be from 0 to 8"},
      {"bf16[" + std::string(40, '(') + "1" + std::string(40, ')') + "]", 38,
       "nested deeper than 32"},
      {"bf16[" + std::string(20000, '1') + "]", 5, "longer than 16384 bytes"},
      {"bf16[" + std::string(40, '-') + "1]", 38, "nested deeper than 32"},
      {"bf16[1099511627776, 1099511627776]", 4, "more than 2^60 elements"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.text);
    TextResult<TypeId> type = parse_type(context, bad.text);
    REQUIRE_FALSE(type);
    CHECK(type.error().offset == bad.offset);
    CHECK(type.error().message.find(bad.message) != std::string::npos);
  }
  std::string many = "bf16[1";
  for (int i = 0; i < 40; ++i) many += ", 1";
  CHECK_FALSE(parse_type(context, many + "]"));
}
