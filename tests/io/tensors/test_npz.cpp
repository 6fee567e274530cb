#include <algorithm>
#include <cstring>
#include <numeric>
#include <stop_token>

#include "io/tensors/open_tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string array_bytes(const std::vector<float>& values, const std::string& shape) {
  return npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n",
                   raw(values));
}

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

}  // namespace

TEST_CASE("npz: stored and deflated members have the values of the arrays") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npz";
  const auto values = counting(2 * 300 * 5);
  const std::string array = array_bytes(values, "(2, 300, 5)");
  write_bytes(path, zip_bytes({{"q.npy", array}, {"dir/k.npy", array, true}}));
  const auto file = open_tensor_file(path);
  CHECK(file->keys() == std::vector<std::string>{"q", "dir/k"});
  for (const std::string key : {"q", "dir/k"}) {
    INFO(key);
    const auto tensor = file->tensor(key);
    // Backwards first: the place that is wanted lies before where the last read ended.
    for (int64_t row = 299; row >= 0; row -= 37) {
      const auto got = read_values<float>(*tensor, {1, row, 1}, {1, 1, 3});
      const auto first = static_cast<float>((300 + row) * 5 + 1);
      CHECK(got == std::vector<float>{first, first + 1, first + 2});
    }
    CHECK(read_all<float>(*tensor) == values);
  }
  CHECK(thrown_text(ErrorCode::file, [&] { file->tensor("K"); }).find("dir/k") !=
        std::string::npos);
}

TEST_CASE("npz: a large deflated member is read at any place from kept states") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npz";
  constexpr size_t kRows = 80'000, kWidth = 128;  // 41 MB: several states
  const auto values = counting(kRows * kWidth);
  write_bytes(path, zip_bytes({{"x.npy", array_bytes(values, "(80000, 128)"), true}}));
  const auto tensor = open_tensor_file(path)->tensor("x");
  uint32_t state = 7;
  for (int i = 0; i < 40; ++i) {
    state = state * 1664525 + 1013904223;
    const auto row = static_cast<int64_t>((state >> 8) % kRows);
    const auto got = read_values<float>(*tensor, {row, 0}, {1, kWidth});
    INFO("row " << row);
    REQUIRE(std::equal(got.begin(), got.end(), values.begin() + row * int64_t{kWidth}));
  }
}

TEST_CASE("npz: numbers with usual names are values") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npz";
  const std::string array = array_bytes(counting(4), "(2, 2)");
  write_bytes(path, zip_bytes({{"q.npy", array},
                               {"layer_idx.npy", array_bytes({3}, "()")},
                               {"timestep.npy", array_bytes({750.5}, "(1,)")},
                               {"step.npy", array_bytes({-1}, "()")}}));
  const auto file = open_tensor_file(path);
  CHECK(file->metadata() == std::map<std::string, std::string>{
                                {"layer_idx", "3.0"}, {"timestep", "750.5"}, {"step", "-1.0"}});
  CHECK(file->keys() == std::vector<std::string>{"q"});
}

TEST_CASE("npz: malformed archives are refused in one line that names the place") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.npz";
  const std::string array = array_bytes(counting(6), "(2, 3)");
  const ZipPart good{"q.npy", array};
  const auto broken = [&](auto change) {
    ZipPart part = good;
    change(part);
    return zip_bytes({part, {"k.npy", array}});
  };
  const std::string whole = zip_bytes({good});
  const std::string zeros(1000, '\0');
  struct Case {
    std::string what, bytes, part;
  };
  const std::vector<Case> cases{
      {"no directory", whole.substr(0, whole.size() - 60), "no directory"},
      {"cut", whole.substr(0, whole.size() / 2), "no directory"},
      {"bomb", broken([&](ZipPart& p) {
         p = {"q.npy", zeros, true, 0, 1 << 30};
       }),
       "more than deflate can pack"},
      {"stored with two sizes", broken([](ZipPart& p) { p.claimed_bytes = 5; }), "two sizes"},
      {"overlap", zip_bytes({good, {"k.npy", array, false, 0, -1, -1, "q.npy", 0}}), "disagree"},
      {"local header", broken([](ZipPart& p) { p.local_name = "v.npy"; }), "disagree"},
      {"duplicate", zip_bytes({good, good}), "twice"},
      {"climbing name", broken([](ZipPart& p) { p.name = "../q.npy"; }), "unsafe name"},
      {"absolute name", broken([](ZipPart& p) { p.name = "/q.npy"; }), "unsafe name"},
      {"bad UTF-8", broken([](ZipPart& p) { p.name = "\xff.npy"; }), "UTF-8"},
      {"overlong UTF-8", broken([](ZipPart& p) { p.name = "\xc1\xb1.npy"; }), "UTF-8"},
      {"name with a backslash", broken([](ZipPart& p) { p.name = "..\\q.npy"; }), "unsafe name"},
      {"name with a line break", broken([](ZipPart& p) { p.name = "q\n.npy"; }), "unsafe name"},
      {"no name", broken([](ZipPart& p) { p.name = ""; }), "without a name"},
      {"empty", "", "no directory"},
      {"encrypted", broken([](ZipPart& p) { p.flags = 1; }), "encrypted"},
      {"another method", broken([](ZipPart& p) { p.method = 12; }), "method 12"},
      {"beyond the data", broken([](ZipPart& p) { p.claimed_offset = 1 << 20; }), "beyond"},
      {"not at a header", broken([](ZipPart& p) { p.claimed_offset = 3; }), "no local header"},
      {"no array", zip_bytes({good, {"readme.txt", "hello"}}), "no array"},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    write_bytes(path, c.bytes);
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    INFO(text);
    CHECK(text.rfind(path.string() + ": ", 0) == 0);
    CHECK(text.find(c.part) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("npz: a local header that says something else than the directory is refused") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.npz";
  const std::string whole = zip_bytes({{"q.npy", array_bytes(counting(6), "(2, 3)")}});
  write_bytes(path, whole);
  REQUIRE(open_tensor_file(path)->keys() == std::vector<std::string>{"q"});
  // Flags, method, checksum, stored size, size, and the length and a letter of the name.
  for (const size_t place : {6, 8, 14, 18, 22, 26, 30}) {
    INFO("byte " << place);
    std::string changed = whole;
    changed[place] = static_cast<char>(changed[place] ^ 1);
    write_bytes(path, changed);
    const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
    CHECK(text == path.string() + ": member q.npy: its local header and the directory disagree");
  }
  std::string split = whole;
  split[whole.size() - 22 + 4] = 1;  // number of this disk
  write_bytes(path, split);
  CHECK(thrown_text(ErrorCode::file, [&] { open_tensor_file(path); }).find("split archive") !=
        std::string::npos);
}

TEST_CASE("npz: a directory may be as large as the memory for a file's head") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "many.npz";
  std::vector<ZipPart> parts;
  for (int i = 0; i < 50'000; ++i) parts.push_back({"tensor" + std::to_string(i) + ".npy", ""});
  write_bytes(path, zip_bytes(parts));
  CHECK(open_tensor_file(path)->keys().size() == parts.size());
  CHECK(thrown_text(ErrorCode::resource,
                    [&] { open_tensor_file(path, {.memory = int64_t{16} << 20}); }) ==
        path.string() +
            ": zip: its directory takes more memory than it may (limit 16.00 MiB; a "
            "larger --memory allows more)");
}

TEST_CASE("npz: two members may not share bytes") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.npz";
  // A whole archive's member within another: its local header is in order.
  const std::string inner = zip_bytes({{"k.npy", std::string(40, 'x')}});
  const std::string member = inner.substr(0, 30 + 5 + 40);
  const ZipPart outer{"q.npy", std::string(8, '-') + member};
  const std::string bytes =
      zip_bytes({outer, {"k.npy", std::string(40, 'x'), false, 0, -1, -1, "", 43}});
  write_bytes(path, bytes);
  const std::string text = thrown_text(ErrorCode::file, [&] { open_tensor_file(path); });
  INFO(text);
  CHECK(text.find("overlaps the member q.npy") != std::string::npos);
}

TEST_CASE("npz: damaged data are an error before any value is served") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bad.npz";
  const std::string array = array_bytes(counting(5000), "(5000,)");
  const auto error = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const auto tensor = open_tensor_file(path)->tensor("q");
    return thrown_text(ErrorCode::file, [&] { read_values<float>(*tensor, {0}, {1}); });
  };
  CHECK(error(zip_bytes({{"q.npy", array, false, 0, -1, 1234}})).find("checksum") !=
        std::string::npos);
  CHECK(error(zip_bytes({{"q.npy", array, true, 0, -1, 1234}})).find("checksum") !=
        std::string::npos);
  std::string flipped = zip_bytes({{"q.npy", array, true}});
  flipped[5000] = static_cast<char>(flipped[5000] ^ 0x55);
  CHECK(!error(flipped).empty());
  // More data than the header says: the array claims all of it.
  const std::string shorter = array.substr(0, array.size() - 4000);
  const std::string says = array_bytes(counting(4000), "(4000,)");
  CHECK(error(zip_bytes({{"q.npy", says + shorter, true, 0, static_cast<int64_t>(says.size())}}))
            .find("more bytes") != std::string::npos);
  CHECK(error(zip_bytes({{"q.npy", says, true, 0, static_cast<int64_t>(says.size())}})).empty());
}

TEST_CASE("npz: a requested stop ends the check of a member") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npz";
  const std::string array = array_bytes(counting(5000), "(5000,)");
  for (const bool deflated : {false, true}) {
    write_bytes(path, zip_bytes({{"q.npy", array, deflated}}));
    std::stop_source stop;
    const auto tensor = open_tensor_file(path, {.stop = stop.get_token()})->tensor("q");
    stop.request_stop();
    CHECK(thrown_text(ErrorCode::interrupted, [&] { read_values<float>(*tensor, {0}, {1}); }) ==
          "interrupted while reading " + path.string() + ": member q.npy");
  }
}
