#include <algorithm>

#include "io/capture/capture.h"
#include "io/capture/name_pattern.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A .npy file of one head [tokens, 4] whose values all are `value`.
void write_head(const std::string& path, float value, int64_t tokens = 6) {
  write_bytes(path, npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                                  std::to_string(tokens) + ", 4), }\n",
                              raw(std::vector<float>(static_cast<size_t>(tokens * 4), value))));
}

float first_value(const HeadTensor& tensor, int64_t head) {
  std::vector<float> row(4);
  tensor.read_rows(0, head, {2, 3}, reinterpret_cast<std::byte*>(row.data()));
  return row[3];
}

std::string error_of(const std::string& folder, const FactOverrides& overrides = {}) {
  return thrown_text(ErrorCode::file, [&] { Capture::open(folder, overrides); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("name patterns: placeholders take what the name says") {
  const NamePattern pattern("{name}_It{step}_L{layer}_H{head}_{q|k|v}.npy");
  const auto fields = pattern.match("my_attn_It12_L3_H07_key.npy");
  REQUIRE(fields);
  CHECK(fields->name == "my_attn");
  CHECK(fields->step == 12);
  CHECK(fields->layer == 3);
  CHECK(fields->head == 7);
  CHECK(fields->role == "k");
  for (const char* other :
       {"my_attn_It12_L3_H07_w.npy", "_It12_L3_H07_q.npy", "a_It_L3_H0_q.npy", "a_It-1_L3_H0_q.npy",
        "a_It1_L3_H0_q.npy.txt", "a_It99999999999999999999_L3_H0_q.npy"}) {
    INFO(other);
    CHECK(!pattern.match(other));
  }
  for (const char* bad : {"x_{q|k}_{layer", "x_{lair}.npy", "{layer}{layer}.npy", "plain.npy",
                          "a/{layer}.npy", "x_{head}.npy", "x{step}{layer}_{q|k}.npy"}) {
    INFO(bad);
    CHECK(!thrown_text(ErrorCode::usage, [&] { NamePattern{bad}; }).empty());
  }
}

TEST_CASE("a folder of one file a head opens as its calls") {
  const TemporaryFolder folder;
  for (const int step : {0, 5}) {
    for (const int layer : {2, 11}) {
      for (const int head : {0, 1, 2}) {
        const std::string stem = folder / ("attn_It" + std::to_string(step) + "_L" +
                                           std::to_string(layer) + "_H" + std::to_string(head));
        write_head(stem + "_q.npy", static_cast<float>(1000 * step + 10 * layer + head));
        write_head(stem + "_k.npy", static_cast<float>(-1000 * step - 10 * layer - head));
      }
    }
  }
  write_bytes(folder / "notes.txt", "made on Tuesday");
  const Capture capture = Capture::open(folder.path());
  REQUIRE(capture.calls().size() == 4);
  const CallEntry& last = capture.calls().back();
  CHECK(last.id.step == 5);
  CHECK(last.id.layer == 11);
  CHECK(last.problem->num_heads() == 3);
  CHECK(last.problem->num_queries() == 6);
  for (const int64_t head : {0, 1, 2}) {
    CHECK(first_value(last.problem->q(), head) == static_cast<float>(5110 + head));
    CHECK(first_value(last.problem->k(), head) == static_cast<float>(-5110 - head));
  }
  const auto& notes = capture.notes();
  const auto told = [&](const std::string& part) {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return contains(note, part); });
  };
  CHECK(told("as {name}_It{step}_L{layer}_H{head}_{q|k|v}.npy"));
  CHECK(told("left out: 1 file: notes.txt"));
  const auto& named = capture.named_folder();
  REQUIRE(named);
  CHECK(named->pattern == "{name}_It{step}_L{layer}_H{head}_{q|k|v}.npy");
  CHECK(!named->pattern_given);
  CHECK(named->steps == std::vector<int64_t>{0, 5});
  CHECK(named->layers == std::vector<int64_t>{2, 11});
  CHECK(named->heads == std::vector<int64_t>{0, 1, 2});
  CHECK(named->files == 24);
  CHECK(named->left_out == std::vector<std::string>{"notes.txt"});
  CHECK(last.facts.at("step").origin == "from the file's name");

  std::filesystem::remove(folder / "attn_It5_L11_H1_q.npy");
  // A call that is not whole is left out, and told.
  const auto left_out = [&](const std::string& what) {
    const Capture rest = Capture::open(folder.path());
    CHECK(rest.calls().size() == 3);
    CHECK(rest.calls_left_out() == 1);
    REQUIRE(rest.warnings().size() == 1);
    CHECK(contains(rest.warnings().front(), what));
  };
  left_out("there is no file of head 1 before it");
  write_head(folder / "attn_It5_L11_H1_q.npy", 1, 7);
  left_out("another shape or type");
}

TEST_CASE("patterns of one's own, files that hold a call, and what cannot be told") {
  const TemporaryFolder folder;
  write_head(folder / "query-of-block-4.bin.npy", 4);
  write_head(folder / "key-of-block-4.bin.npy", -4);
  CHECK(contains(error_of(folder.path()), "--pattern tells"));
  FactOverrides overrides;
  overrides.pattern = "{q|k}-of-block-{layer}.bin.npy";
  const Capture capture = Capture::open(folder.path(), overrides);
  REQUIRE(capture.calls().size() == 1);
  CHECK(capture.calls()[0].id.layer == 4);
  CHECK(first_value(capture.calls()[0].problem->q(), 0) == 4.0f);
  overrides.pattern = "{q|k}-of-blok-{layer}.bin.npy";
  CHECK(contains(error_of(folder.path(), overrides),
                 "no file has a name like --pattern {q|k}-of-blok-{layer}.bin.npy (it has 2 files: "
                 "key-of-block-4.bin.npy, query-of-block-4.bin.npy)"));
  overrides.pattern = "{name}.bin.npy";
  CHECK(contains(error_of(folder.path(), overrides), "the pattern has no {q|k} that says which"));
  overrides.pattern = "{q|k}-of-{name}-{layer}.bin.npy";
  write_head(folder / "query-of-unit-4.bin.npy", 4);
  write_head(folder / "key-of-unit-4.bin.npy", -4);
  CHECK(contains(error_of(folder.path(), overrides),
                 "calls are told apart by {step}, {layer}, {branch} and {kind}"));
  std::filesystem::remove(folder / "query-of-unit-4.bin.npy");
  std::filesystem::remove(folder / "key-of-unit-4.bin.npy");
  std::filesystem::remove(folder / "key-of-block-4.bin.npy");
  overrides.pattern = "{q|k}-of-block-{layer}.bin.npy";
  CHECK(contains(error_of(folder.path(), overrides), "there is no file of k beside it"));
  CHECK(contains(error_of(folder / "query-of-block-4.bin.npy", overrides), "is one bare tensor"));
}
