#include <algorithm>
#include <numeric>

#include "io/capture/capture.h"
#include "io/capture/capture_location.h"
#include "io/capture/computable.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/zip_bytes.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool any_contains(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return contains(line, part); });
}

/// Values `from`, `from` + 1 … as float32.
std::string ramp(int64_t count, float from = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), from);
  return raw(values);
}

std::string npy_member(const std::string& shape, const std::string& data,
                       const std::string& type = "<f4") {
  return npy_bytes("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n",
                   data);
}

/// The first channel of a row.
float first_channel(const HeadTensor& tensor, int64_t batch, int64_t head, int64_t token) {
  std::vector<float> row(static_cast<size_t>(tensor.width()));
  tensor.read_rows(batch, head, {token, token + 1}, reinterpret_cast<std::byte*>(row.data()));
  return row.front();
}

/// q [..] and k [..] of zeros, as one file in somebody's format.
Capture open_shapes(const TemporaryFolder& folder, const std::vector<int64_t>& q,
                    const std::vector<int64_t>& k, const FactOverrides& overrides = {}) {
  const auto path = folder.path() / "qk.safetensors";
  CallFile().version(0).pair(q, k).write(path);
  return Capture::open(path, overrides);
}

}  // namespace

TEST_CASE(
    "a format that is no capture's means tensors, and one of ours that is not known an error") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "qk.safetensors";
  CallFile().version(0).fact("format", "pt").pair({1, 2, 24, 4}, {1, 2, 24, 4}).write(path);
  for (const auto& name : {path, folder.path()}) {
    // A folder's file is told by its name then, and this one's says nothing.
    if (name == folder.path())
      std::filesystem::rename(path, folder.path() / "x_layer4.safetensors");
    const Capture capture = Capture::open(name);
    REQUIRE(capture.calls().size() == 1);
    CHECK(capture.calls()[0].problem->num_heads() == 2);
    CHECK(capture.calls()[0].facts.count("format") == 0);
    CHECK(capture.calls()[0].unknown_keys.empty());
    if (name == path) CHECK(any_contains(capture.notes(), "(got \"pt\"): taken as one call"));
    if (name != path) CHECK(capture.calls()[0].id.layer == 4);
  }
  CallFile()
      .version(0)
      .fact("format", "attnscope-capture/9")
      .pair({1, 2, 8, 4}, {1, 2, 8, 4})
      .write(path);
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "(got \"attnscope-capture/9\")"));
}

TEST_CASE("v of an unknown type is left out and told; a mask of one is not") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "qk.safetensors";
  const auto write = [&](const std::string& name) {
    CallFile()
        .version(0)
        .pair({1, 2, 8, 4}, {1, 2, 8, 4})
        .tensor(name, "F8_E3M4", {1, 2, 8, 4}, std::string(64, 'x'))
        .tensor("scales", "F8_E3M4", {8}, std::string(8, 'x'))
        .write(path);
  };
  write("v");
  const Capture capture = Capture::open(path);
  REQUIRE(capture.calls().size() == 1);
  CHECK_FALSE(capture.calls()[0].problem->v());
  CHECK(any_contains(capture.notes(), "tensor v: unknown dtype (got \"F8_E3M4\"): left out"));
  CHECK(capture.calls()[0].unknown_keys == std::vector<std::string>{"tensor scales"});
  write("mask");
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "tensor mask: unknown dtype (got \"F8_E3M4\")"));
}

TEST_CASE("the order of axes comes from q and k") {
  const TemporaryFolder folder;
  struct Case {
    std::vector<int64_t> q, k;
    std::string layout;
    int64_t heads, queries, keys;
  };
  const std::vector<Case> cases{
      // Decoding: only tokens before heads let 8 heads of k serve 32 of q.
      {{1, 1, 32, 4}, {1, 500, 8, 4}, "bshd", 32, 1, 500},
      {{1, 32, 1, 4}, {1, 8, 500, 4}, "bhsd", 32, 1, 500},
      {{40, 4, 4}, {60, 4, 4}, "shd", 4, 40, 60},
      {{4, 40, 4}, {4, 60, 4}, "hsd", 4, 40, 60},
      {{1, 12, 100, 4}, {1, 12, 77, 4}, "bhsd", 12, 100, 77},
      // Both orders fit, and one axis is too long for heads.
      {{1, 200, 32, 4}, {1, 200, 8, 4}, "bshd", 32, 200, 200},
      {{1, 24, 4096, 4}, {1, 24, 512, 4}, "bhsd", 24, 4096, 512},
      // As many of everything: the usual order.
      {{1, 2, 24, 4}, {1, 2, 24, 4}, "bhsd", 2, 24, 24},
  };
  for (const Case& c : cases) {
    const Capture capture = open_shapes(folder, c.q, c.k);
    const AttentionProblem& problem = *capture.calls().front().problem;
    INFO(c.layout << " " << c.heads);
    CHECK(layout_name(problem.q().layout()) == c.layout);
    CHECK(problem.num_heads() == c.heads);
    CHECK(problem.num_queries() == c.queries);
    CHECK(problem.num_keys() == c.keys);
    CHECK(any_contains(capture.notes(), "guessed layout " + c.layout));
  }
}

TEST_CASE("heads that share keys, or queries and keys of other numbers: nobody guesses") {
  const TemporaryFolder folder;
  const std::string refusal = thrown_text(ErrorCode::usage, [&] {
    open_shapes(folder, {1, 7, 32, 4}, {1, 7, 8, 4});
  });
  CHECK(contains(refusal, "q [1, 7, 32, 4] and k [1, 7, 8, 4] can be read in two ways"));
  CHECK(contains(refusal, "--layout bhsd (7 heads; 32 queries, 8 keys)"));
  CHECK(contains(refusal, "--layout bshd (32 heads, 8 of k; 7 queries, 7 keys)"));
  CHECK(contains(thrown_text(ErrorCode::usage,
                             [&] {
                               open_shapes(folder, {32, 7, 4}, {8, 7, 4});
                             }),
                 "--layout shd (7 heads; 32 queries, 8 keys)"));
  FactOverrides overrides;
  overrides.layout = "bshd";
  CHECK(open_shapes(folder, {1, 7, 32, 4}, {1, 7, 8, 4}, overrides)
            .calls()[0]
            .problem->num_kv_heads() == 8);
  FactOverrides grid;
  grid.grid = "1x4x8";
  const Capture cross = open_shapes(folder, {1, 7, 32, 4}, {1, 7, 8, 4}, grid);
  CHECK(cross.calls()[0].problem->num_queries() == 32);
}

TEST_CASE("packed sequences that end before the tokens do say where") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "packed.safetensors";
  const auto write = [&](const std::vector<int64_t>& boundaries) {
    CallFile()
        .version(0)
        .pair({32, 2, 4}, {32, 2, 4})
        .tensor("cu_seqlens", "I64", {static_cast<int64_t>(boundaries.size())}, raw(boundaries))
        .write(path);
  };
  write({0, 10, 27});
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "ends at 27 of 32 queries (by the layout shd): where the rest is padding"));
  write({0, 10, 40});
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "ends at 40, beyond the 32 queries (by the layout shd)"));
  FactOverrides overrides;
  overrides.cu_seqlens = "0,10,27,32";
  CHECK(Capture::open(path, overrides).calls()[0].problem->num_heads() == 2);
}

TEST_CASE("fused q, k and v are read where they stand") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "fused.npz";
  // [B, N, 3, H, d]: element (b, n, part, h, 0) is 4 · (h + 2 · (part + 3 · (n + 5 · b))).
  write_bytes(path, zip_bytes({{"attn/qkv.npy", npy_member("(2, 5, 3, 2, 4)", ramp(240))}}));
  {
    const Capture capture = Capture::open(path);
    const AttentionProblem& p = *capture.calls().at(0).problem;
    CHECK(p.batch() == 2);
    CHECK(p.num_heads() == 2);
    CHECK(p.num_queries() == 5);
    for (const auto& [tensor, part] : {std::pair(&p.q(), 0), {&p.k(), 1}, {&p.v(), 2}}) {
      CHECK(first_channel(*tensor, 1, 1, 3) ==
            static_cast<float>(4 * (1 + 2 * (part + 3 * (3 + 5)))));
    }
    CHECK(any_contains(capture.notes(),
                       "tensor attn/qkv: taken as q, k and v along axis 2 of [2, 5, 3, 2, 4]"));
    CHECK(any_contains(capture.notes(), "taken as one call for its tensor attn/qkv"));
    CHECK(capture.calls()[0].facts.at("layout").json == "\"bshd\"");
  }
  // Packed, and k and v beside q.
  const std::string boundaries = raw(std::vector<int64_t>{0, 4, 10});
  write_bytes(path, zip_bytes({{"qkv.npy", npy_member("(10, 3, 2, 4)", ramp(240))},
                               {"cu_seqlens.npy", npy_member("(3,)", boundaries, "<i8")}}));
  CHECK(first_channel(Capture::open(path).calls().at(0).problem->k(), 0, 1, 9) ==
        static_cast<float>(4 * (1 + 2 * (1 + 3 * 9))));
  write_bytes(path, zip_bytes({{"q.npy", npy_member("(1, 5, 4, 4)", ramp(80))},
                               {"kv.npy", npy_member("(1, 6, 2, 2, 4)", ramp(96))}}));
  {
    const Capture capture = Capture::open(path);
    const AttentionProblem& p = *capture.calls().at(0).problem;
    CHECK(p.num_heads() == 4);
    CHECK(p.num_kv_heads() == 2);
    CHECK(first_channel(p.v(), 0, 1, 5) == static_cast<float>(4 * (1 + 2 * (1 + 2 * 5))));
  }
  // Stacked in front: the order of the others is guessed.
  write_bytes(path, zip_bytes({{"qkv.npy", npy_member("(3, 1, 2, 40, 4)", ramp(960))}}));
  CHECK(first_channel(Capture::open(path).calls().at(0).problem->k(), 0, 1, 7) ==
        static_cast<float>(4 * (7 + 40 * (1 + 2))));
  write_bytes(path, zip_bytes({{"qkv.npy", npy_member("(1, 5, 48)", ramp(240))}}));
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(path); }),
                 "tensor qkv: is fused, but not as [batch, tokens, 3, heads, channels]"));
}

TEST_CASE("an index of safetensors files is one file of their tensors") {
  const TemporaryFolder folder;
  const auto index = folder.path() / "model.safetensors.index.json";
  CallFile()
      .version(0)
      .fact("format", "pt")
      .tensor("q", "F32", {1, 2, 6, 4}, ramp(48))
      .write(folder.path() / "a-1.safetensors");
  CallFile()
      .version(0)
      .fact("format", "pt")
      .fact("scale", "0.5")
      .tensor("k", "F32", {1, 2, 6, 4}, ramp(48, 100))
      .write(folder.path() / "a-2.safetensors");
  const auto write = [&](const std::string& map) {
    write_bytes(index, R"({"metadata":{"total_size":384},"weight_map":{)" + map + "}}");
  };
  const std::string both = R"("q":"a-1.safetensors","k":"a-2.safetensors")";
  write(both + R"(,"lost":"a-3.safetensors")");
  for (const auto& name : {folder.path(), index}) {
    const Capture capture = Capture::open(name);
    REQUIRE(capture.calls().size() == 1);
    const CallEntry& call = capture.calls().front();
    CHECK(first_channel(call.problem->q(), 0, 1, 2) == 32);
    CHECK(first_channel(call.problem->k(), 0, 1, 2) == 132);
    CHECK(call.problem->scale(0) == 0.5);
    CHECK(capture.files().size() == 4);
    CHECK(call.unknown_keys == std::vector<std::string>{"tensor lost"});
  }
  CHECK(Capture::from_tensors({index.string() + ":q", index.string() + ":q", ""}, {})
            .calls()
            .size() == 1);
  CHECK(contains(
      thrown_text(
          ErrorCode::file,
          [&] {
            Capture::from_tensors({index.string() + ":q", index.string() + ":lost", ""}, {});
          }),
      "a-3.safetensors: "));
  // A fact that the files state differently is taken from none of them, and is told.
  CallFile()
      .version(0)
      .fact("format", "pt")
      .fact("scale", "0.25")
      .tensor("q", "F32", {1, 2, 6, 4}, ramp(48))
      .write(folder.path() / "a-1.safetensors");
  write(both);
  const Capture differing = Capture::open(index);
  CHECK(differing.calls().front().problem->scale(0) == 0.5);  // 1/sqrt(4 channels)
  CHECK(differing.calls().front().unknown_keys ==
        std::vector<std::string>{"metadata key a-1.safetensors/scale",
                                 "metadata key a-2.safetensors/scale"});
  // One that shapes the map still stops it.
  for (const char* file : {"a-1.safetensors", "a-2.safetensors"}) {
    CallFile()
        .version(0)
        .fact("format", "pt")
        .fact("alibi_slopes", file[2] == '1' ? "30" : "50")
        .tensor(file[2] == '1' ? "q" : "k", "F32", {1, 2, 6, 4}, ramp(48))
        .write(folder.path() / file);
  }
  CHECK(contains(shaping_fault(Capture::open(index)), "--ignore alibi_slopes"));
  const auto refusal = [&] { return thrown_text(ErrorCode::file, [&] { Capture::open(index); }); };
  for (const char* outside : {"../a-1.safetensors", "/etc/passwd", ""}) {
    write(R"("q":")" + std::string(outside) + "\"");
    CHECK(contains(refusal(), "must be relative and inside the folder"));
  }
  write(R"("q":5)");
  CHECK(contains(refusal(), "weight_map: q: expected the name of a file"));
  write_bytes(index, "{\"q\":1}");
  CHECK(contains(refusal(), "no index of safetensors files"));
  write(both);
  std::filesystem::copy_file(index, folder.path() / "other.safetensors.index.json");
  CHECK(contains(thrown_text(ErrorCode::file, [&] { Capture::open(folder.path()); }),
                 "has 2 indices of safetensors files"));
}
