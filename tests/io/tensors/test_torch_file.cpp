#include <algorithm>
#include <numeric>

#include "core/tensor/fp4_tensor.h"
#include "io/tensors/open_tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/pickle_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope;
using namespace attnscope::test;
using namespace attnscope::test::pickled;

namespace {

const std::string kPlain = tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1});

std::string data_bytes() {
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 0.0f);
  return raw(values);
}

std::string untyped_storage(int64_t bytes) {
  return tuple(text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
               text("cpu") + number(bytes)) +
         "Q";
}

/// A tensor of the 24 bytes of data/0, whose type stands beside its storage.
std::string untyped_tensor(const std::string& type, int64_t offset,
                           const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v3") +
         tuple(untyped_storage(24) + number(offset) + numbers(shape) + numbers(strides) + "\x89" +
               global("collections", "OrderedDict") + ")R" + global("torch", type)) +
         "R";
}

std::string archive(const std::string& pickle_bytes) {
  return zip_bytes(
      {{"a/data.pkl", pickle_bytes}, {"a/byteorder", "little"}, {"a/data/0", data_bytes()}});
}

}  // namespace

TEST_CASE("torch: dictionaries, lists and values become keys and facts") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.pt";
  const std::string nested = dict(text("q") + kPlain + text("list") + "](" + kPlain + number(1) +
                                  kPlain + "e" + text("ids") + "](" + number(4) + number(5) + "e");
  write_bytes(path,
              archive(pickle(dict(text("attn") + nested + text("layer_idx") + number(7) +
                                  text("timestep") + "G\x40\x87\x70" + std::string(5, '\0') +
                                  text("grid") + numbers({2, 3, 4}) + text("mask") + "N" +
                                  text("step") + number(-1) + text("note") + text("hello")))));
  const auto file = open_tensor_file(path);
  CHECK(file->keys() == std::vector<std::string>{"attn.q", "attn.list.0", "attn.list.2"});
  CHECK(file->metadata() == std::map<std::string, std::string>{{"layer_idx", "7"},
                                                               {"timestep", "750.0"},
                                                               {"grid", "[2,3,4]"},
                                                               {"note", "hello"},
                                                               {"attn.ids", "[4,5]"},
                                                               {"attn.list.1", "1"},
                                                               {"step", "-1"}});
  CHECK(read_all<float>(*file->tensor("attn.q")) == std::vector<float>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("torch: views of any strides have the right values") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.pt";
  constexpr int64_t kCount = 4000;
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0f);
  struct View {
    int64_t offset;
    std::vector<int64_t> shape, strides;
  };
  const std::vector<View> views{
      {0, {4, 10, 10, 10}, {1000, 100, 10, 1}},  // contiguous
      {0, {4, 10, 10, 10}, {1000, 10, 100, 1}},  // transposed
      {7, {4, 5, 6, 7}, {1000, 200, 20, 2}},     // every second, padded
      {300, {2, 10, 3, 8}, {1500, 8, 80, 1}},    // a third of a fused projection
      {5, {3, 4, 0, 2}, {1, 1, 1, 1}},           // nothing
      {11, {2, 3, 4, 5}, {1, 2, 6, 24}},         // Fortran order
      {0, {3, 5, 20, 6}, {0, 100, 1, 3}},        // repeated, overlapping windows
      {13, {6, 7, 3, 4}, {17, 101, 0, 13}},      // strides that do not nest
      {3999, {1, 1, 1, 1}, {9999, 9999, 0, 5}},  // one element
  };
  for (const View& view : views) {
    write_bytes(path,
                zip_bytes({{"a/data.pkl", pickle(tensor(storage("FloatStorage", "0", kCount),
                                                        view.offset, view.shape, view.strides))},
                           {"a/data/0", raw(values)}}));
    const auto source = open_tensor_file(path)->tensor("");
    std::vector<int64_t> begin(4, 0), count = view.shape;
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<float> expected;
      for (int64_t a = begin[0]; a < begin[0] + count[0]; ++a) {
        for (int64_t b = begin[1]; b < begin[1] + count[1]; ++b) {
          for (int64_t c = begin[2]; c < begin[2] + count[2]; ++c) {
            for (int64_t d = begin[3]; d < begin[3] + count[3]; ++d) {
              expected.push_back(static_cast<float>(view.offset + a * view.strides[0] +
                                                    b * view.strides[1] + c * view.strides[2] +
                                                    d * view.strides[3]));
            }
          }
        }
      }
      INFO("offset " << view.offset << " trial " << trial);
      REQUIRE(read_values<float>(*source, begin, count) == expected);
      for (size_t axis = 0; axis < 4; ++axis) {
        if (count[axis] < 2) continue;
        begin[axis] += trial == static_cast<int>(axis % 3) ? 1 : 0;
        count[axis] = std::max<int64_t>(1, view.shape[axis] - begin[axis] - trial % 2);
      }
    }
  }
}

TEST_CASE("torch: whatever is no plain tensor is refused by name") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.pt";
  const auto call = [](const std::string& module, const std::string& name) {
    return archive(pickle(global(module, name) + tuple(text("true")) + "R"));
  };
  const auto body = [](const std::string& bytes) { return archive(pickle(bytes)); };
  std::string deep = ")";
  for (int i = 0; i < 100'000; ++i) deep += "\x85";
  struct Case {
    std::string what, bytes, part;
  };
  const std::vector<Case> cases{
      {"os.system", call("os", "system"), "os.system"},
      {"posix.system", call("posix", "system"), "posix.system"},
      {"eval", call("builtins", "eval"), "builtins.eval"},
      {"a foreign class", call("numpy.core.multiarray", "_reconstruct"),
       "numpy.core.multiarray._reconstruct"},
      {"nearly torch", call("torch._utils", "_rebuild_tensor_v2x"), "_rebuild_tensor_v2x"},
      {"STACK_GLOBAL", body(text("os") + text("system") + "\x93" + ")R"), "os.system"},
      {"BUILD", body("}" + dict("") + "b"), "BUILD"},
      {"INST", body("(ios\nsystem\n"), "INST"},
      {"OBJ", body("(" + global("collections", "OrderedDict") + "o"), "OBJ"},
      {"NEWOBJ", body(global("collections", "OrderedDict") + ")\x81"), "NEWOBJ"},
      {"EXT", body("\x82\x01"), "EXT1"},
      {"bytes", body("C\x01x"), "SHORT_BINBYTES"},
      {"unknown opcode", body("\xff"), "0xff"},
      {"stack underflow", body("R"), "empty stack"},
      {"no MARK", body("t"), "no mark"},
      {"a mark as a value", body("(a"), "mark"},
      {"unset memo", body("h\x07"), "memo 7"},
      {"SETITEM on a list", body("]" + text("a") + number(1) + "s"), "no dictionary"},
      {"APPEND to a dictionary", body("}" + number(1) + "a"), "no list"},
      {"key without value", body("}(" + text("a") + "u"), "lacks its value"},
      {"no STOP", archive("\x80\x02}"), "needs 1 bytes more"},
      {"after STOP", archive(pickle(kPlain) + "x"), "follow the end"},
      {"two values", body(number(1) + number(2)), "one value"},
      {"length 2^63", body("\x8d" + little_endian(uint64_t{1} << 63, 8)), "more than stand there"},
      {"length beyond", body("X" + little_endian(1000, 4) + "x"), "more than stand there"},
      {"protocol 0", archive("(lp0\n."), "not allowed"},
      {"deep nesting", body(deep), "too deep"},
      {"contains itself", body("]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a"),
       "too deep"},
      {"storage size", body(tensor(storage("FloatStorage", "0", 7), 0, {2, 3}, {3, 1})),
       "storage's size"},
      {"storage type", body(tensor(storage("DoubleStorage", "0", 6), 0, {2, 3}, {3, 1})),
       "storage's size"},
      {"unknown storage", body(storage("QUInt8Storage", "0", 6)), "QUInt8Storage"},
      {"a class of tensors",
       body(global("torch._tensor", "_rebuild_from_type_v2") + "(" + global("mine", "Tagged") +
            "t"),
       "mine.Tagged"},
      {"a jagged tensor",
       body(global("torch._tensor", "_rebuild_from_type_v2") + "(" +
            global("torch.nested._internal.nested_tensor", "_rebuild_njt") + "t"),
       "a nested (jagged) tensor: save its values() as q and k"},
      {"a nested tensor", body(global("torch._utils", "_rebuild_nested_tensor")),
       "a nested (jagged) tensor"},
      {"bytes as numbers of no type", body(untyped_tensor("load", 0, {2}, {1})), "torch.load"},
      {"numbers as bytes", body(tensor(untyped_storage(24), 0, {2}, {1})), "do not fit each other"},
      {"two types",
       body(global("torch._utils", "_rebuild_tensor_v3") +
            tuple(storage("FloatStorage", "0", 6) + number(0) + numbers({2}) + numbers({1}) +
                  "\x89" + global("collections", "OrderedDict") + ")R" +
                  global("torch", "uint16")) +
            "R"),
       "do not fit each other"},
      {"16 bits beyond their bytes", body(untyped_tensor("uint16", 1, {12}, {1})),
       "does not fit its storage of 24"},
      {"missing storage", body(tensor(storage("FloatStorage", "1", 6), 0, {2}, {1})),
       "data/1: is missing"},
      {"unsafe key", body(storage("FloatStorage", "../0", 6)), "unsafe key"},
      {"view outside", body(tensor(storage("FloatStorage", "0", 6), 1, {2, 3}, {3, 1})),
       "does not fit its storage"},
      {"view overflows",
       body(tensor(storage("FloatStorage", "0", 6), 0, {0x7fffffff, 2}, {0x7fffffff, 0x7fffffff})),
       "does not fit its storage"},
      {"size overflows",
       body(tensor(storage("FloatStorage", "0", 6), 0, std::vector<int64_t>(3, 0x7fffffff),
                   {0, 0, 0})),
       "overflows"},
      {"negative size", body(tensor(storage("FloatStorage", "0", 6), 0, {-2}, {1})), "from 0"},
      {"ranks differ", body(tensor(storage("FloatStorage", "0", 6), 0, {2, 3}, {1})),
       "do not fit each other"},
      {"two keys", body(dict(text("q") + kPlain + text("q") + kPlain)), "there twice"},
      {"no tensor", body(dict(text("layer") + number(1))), "no tensor"},
      {"two data.pkl", zip_bytes({{"a/data.pkl", pickle(kPlain)}, {"b/data.pkl", pickle(kPlain)}}),
       "second"},
      {"big-endian",
       zip_bytes({{"a/data.pkl", pickle(kPlain)}, {"a/byteorder", "big"}, {"a/data/0", "x"}}),
       "expected little"},
      {"damaged pickle", zip_bytes({{"a/data.pkl", pickle(kPlain), false, 0, -1, 99}}), "checksum"},
      {"old tar", std::string(257, 'x') + "ustar" + std::string(300, '\0'), "as safetensors"},
      {"old pickle", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "as safetensors"},
      {"any pickle", "\x80\x04\x95" + std::string(30, ' '), "never executed"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    write_bytes(path, c.bytes);
    const std::string error = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(error);
    CHECK(error.rfind(path.string() + ": ", 0) == 0);
    CHECK(error.find(c.part) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
  write_bytes(path, zip_bytes({{"a/data.pkl", pickle(kPlain)},
                               {"a/data/0", data_bytes(), false, 0, -1, 99}}));
  const auto source = open_tensor_file(path)->tensor("");
  CHECK(thrown_text(ErrorCode::file, [&] { read_all<float>(*source); }).find("checksum") !=
        std::string::npos);
}

TEST_CASE("torch: a type that nobody knows locks its own tensor alone") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "types.pt";
  const std::string items = text("q") + kPlain + text("u") + untyped_tensor("uint16", 3, {3}, {2}) +
                            text("v") + untyped_tensor("float8_e4m3fn", 0, {24}, {1}) + text("e8") +
                            untyped_tensor("float8_e8m0fnu", 0, {24}, {1}) + text("w4") +
                            untyped_tensor("float4_e2m1fn_x2", 2, {2, 3}, {3, 1}) + text("new") +
                            untyped_tensor("float3_later", 0, {64}, {1}) + text("freqs_cis") +
                            tensor(storage("ComplexFloatStorage", "0", 3), 0, {3}, {1}) +
                            text("dtype") + global("torch", "float8_e8m0fnu");
  write_bytes(path, archive(pickle(dict(items))));
  const auto file = open_tensor_file(path);
  CHECK(file->keys() == std::vector<std::string>{"q", "u", "v", "e8", "w4", "new", "freqs_cis"});
  CHECK(file->metadata() == std::map<std::string, std::string>{{"dtype", "torch.float8_e8m0fnu"}});
  CHECK(read_all<float>(*file->tensor("q")) == std::vector<float>{0, 1, 2, 3, 4, 5});
  // The upper halves of 1, 2 and 3.
  CHECK(file->tensor("u")->dtype() == DType::u16);
  CHECK(file->tensor("v")->dtype() == DType::e4m3);
  CHECK(read_all<uint16_t>(*file->tensor("u")) == std::vector<uint16_t>{0x3f80, 0x4000, 0x4040});
  CHECK(file->tensor("e8")->dtype() == DType::u8);
  // Sizes and offsets of codes of 4 bits count their bytes.
  const auto w4 = file->tensor("w4");
  CHECK(as_fp4(*w4) != nullptr);
  CHECK(read_all<uint8_t>(*w4) == std::vector<uint8_t>{0, 0, 0, 0, 0x80, 0x3f});
  for (const auto& [name, type] :
       {std::pair("new", "torch.float3_later"), {"freqs_cis", "torch.ComplexFloatStorage"}}) {
    CHECK(thrown_text(ErrorCode::file, [&] { file->tensor(name); }) ==
          path.string() + ": tensor " + name + ": unknown dtype (got " + type + ")");
  }
}

TEST_CASE("torch: a checksum of 0 is none where the archive has none") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.pt";
  const auto write = [&](const std::string& data, bool deflate, int64_t pickle_crc) {
    write_bytes(path, zip_bytes({{"a/data.pkl", pickle(kPlain), false, 0, -1, pickle_crc},
                                 {"a/byteorder", "little", false, 0, -1, pickle_crc},
                                 {"a/data/0", data, deflate, 0, -1, 0}}));
  };
  for (const bool deflate : {false, true}) {
    write(data_bytes(), deflate, 0);
    CHECK(read_all<float>(*open_tensor_file(path)->tensor("")) ==
          std::vector<float>{0, 1, 2, 3, 4, 5});
    // Room for values that were never written, with and without checksums.
    write(std::string(24, '\0'), deflate, 0);
    CHECK(thrown_text(ErrorCode::file, [&] {
            open_tensor_file(path);
          }).find("skip_data saves no values") != std::string::npos);
    write(std::string(24, '\0'), deflate, -1);
    CHECK(thrown_text(ErrorCode::file, [&] {
            read_all<float>(*open_tensor_file(path)->tensor(""));
          }).find("recorded 00000000") != std::string::npos);
    write(data_bytes(), deflate, -1);
    CHECK(thrown_text(ErrorCode::file, [&] {
            read_all<float>(*open_tensor_file(path)->tensor(""));
          }).find("recorded 00000000") != std::string::npos);
  }
}

TEST_CASE("torch: a hundred thousand values are no reason to refuse a file") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "many.pt";
  constexpr int kTensors = 20'000;
  std::string items;
  for (int i = 0; i < kTensors; ++i) items += text("t" + std::to_string(i)) + kPlain;
  write_bytes(path, archive(pickle(dict(items))));
  CHECK(open_tensor_file(path)->keys().size() == kTensors);
  CHECK(thrown_text(ErrorCode::resource,
                    [&] { open_tensor_file(path, {.memory = int64_t{16} << 20}); }) ==
        path.string() +
            ": data.pkl: what it holds takes more memory than it may (limit 16.00 MiB; "
            "a larger --memory allows more)");
}

TEST_CASE("torch: what would take more memory than a file's head may is left before it does") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bomb.pt";
  const auto put = [](int i) { return "q" + std::string(1, static_cast<char>(i)); };
  const auto get = [](int i) { return "h" + std::string(1, static_cast<char>(i)); };
  const auto times = [](int count, const std::string& piece) {
    std::string all;
    for (int i = 0; i < count; ++i) all += piece;
    return all;
  };
  std::string doubling = "]" + kPlain + "a" + put(0);
  for (int i = 1; i < 40; ++i) doubling += "](" + get(i - 1) + get(i - 1) + "e" + put(i);
  // A key of 64 KiB at each of 30 levels, 2000 times.
  const std::string keys = text(std::string(1 << 16, 'k')) + put(0) + kPlain + put(1);
  std::string nested = get(1);
  for (int i = 0; i < 30; ++i) nested = "}" + get(0) + nested + "s";
  const std::string size = global("torch", "Size");
  const std::vector<std::pair<std::string, std::string>> bombs{
      {"values", "(" + std::string(3 << 20, '\x88') + "t"},
      {"marks and places", "(" + kPlain + put(0) + times(4 << 20, get(0)) + "t"},
      {"a list told again and again", "(" + doubling + "t"},
      {"a string told again and again", "(" + keys + times(2000, get(0)) + "t"},
      {"nested keys", "(" + keys + nested + put(2) + times(2000, get(2)) + "t"},
      {"sizes of many numbers", "((" + times(50'000, "K\x01") + "t" + put(0) +
                                    times(2000, size + get(0) + "\x85R") + kPlain + "t"}};
  for (const auto& [what, body] : bombs) {
    INFO(what);
    write_bytes(path, archive(pickle(body)));
    const std::string refusal = thrown_text(
        ErrorCode::resource, [&] { open_tensor_file(path, {.memory = int64_t{64} << 20}); });
    CHECK(refusal == path.string() +
                         ": data.pkl: what it holds takes more memory than it may "
                         "(limit 64.00 MiB; a larger --memory allows more)");
  }
}
