// Q and K that were stored as codes of one byte, with their scales, in every container.
#include "core/problem/attention_problem.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Codes of 1, 2, 3 … as the type has them, of [1, 2, 3, 2].
std::string e4m3_codes() {
  return {0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e, 0x50, 0x51, 0x52, 0x53, 0x54};
}
std::string i8_codes() { return {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; }
const std::vector<int64_t> kShape{1, 2, 3, 2};

CallFile call_of(const std::string& type, const std::string& codes, int version = 2) {
  CallFile call;
  call.tensor("q", type, kShape, codes).tensor("k", type, kShape, codes).version(version);
  return call;
}

Capture opened(const TemporaryFolder& folder, const CallFile& call,
               const FactOverrides& overrides = {}) {
  call.write(folder.path() / "call.safetensors");
  return Capture::open(folder / "call.safetensors", overrides);
}

void check_refusal(const CallFile& call, ErrorCode code, const std::vector<std::string>& parts,
                   const FactOverrides& overrides = {}) {
  const TemporaryFolder folder;
  CHECK(refused([&] { (void)opened(folder, call, overrides); }, code, parts).empty());
}

std::vector<float> head(const HeadTensor& tensor, int64_t number) {
  std::vector<float> rows(static_cast<size_t>(tensor.tokens() * tensor.width()));
  tensor.read_rows(0, number, {0, tensor.tokens()}, reinterpret_cast<std::byte*>(rows.data()));
  return rows;
}

bool has_note(const Capture& capture, const std::string& part) {
  return std::any_of(capture.notes().begin(), capture.notes().end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("codes with scales beside them are read as numbers") {
  const TemporaryFolder folder;
  CallFile file = call_of("F8_E4M3", e4m3_codes());
  file.tensor("q_scale", "F32", {2}, raw<float>({2, 0.5f}))
      .tensor("k_scale", "F32", {1, 2, 3}, raw<float>({1, 2, 3, 4, 5, 6}));
  const Capture capture = opened(folder, file);
  const CallEntry& call = capture.calls().front();
  CHECK(call.unknown_keys.empty());
  CHECK(call.recorded_dtype() == DType::e4m3);
  CHECK(call.problem->q().dtype() == DType::f32);
  CHECK(head(call.problem->q(), 0) == std::vector<float>{2, 4, 6, 8, 10, 12});
  CHECK(head(call.problem->q(), 1) == std::vector<float>{3.5f, 4, 4.5f, 5, 5.5f, 6});
  CHECK(head(call.problem->k(), 1) == std::vector<float>{28, 32, 45, 50, 66, 72});
  CHECK(has_note(capture, "tensor q: e4m3 with a scale a head"));
  CHECK(has_note(capture, "tensor k: e4m3 with a scale each token of a head"));
}

TEST_CASE("dumps name their scales in their own ways") {
  const TemporaryFolder folder;
  CallFile file = call_of("I8", i8_codes(), 0);
  file.tensor("q_descale", "F32", {1}, raw<float>({0.5f})).fact("k_scale", "0.25");
  const Capture capture = opened(folder, file);
  const AttentionProblem& problem = *capture.calls().front().problem;
  CHECK(capture.calls().front().recorded_dtype() == DType::i8);
  CHECK(head(problem.q(), 0) == std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 3});
  CHECK(head(problem.k(), 1) == std::vector<float>{1.75f, 2, 2.25f, 2.5f, 2.75f, 3});
  // SageAttention's scales have the softmax scale in them, which the user is told.
  CHECK(has_note(capture, "i8 with one scale; SageAttention's kernels"));
}

TEST_CASE("e4m3 without scales is taken as it is, and said") {
  const TemporaryFolder folder;
  const Capture capture = opened(folder, call_of("F8_E4M3", e4m3_codes()));
  CHECK(head(capture.calls().front().problem->q(), 0) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(has_note(capture, "e4m3 with no scale: its values are taken as they are"));
}

TEST_CASE("integers without scales, and bytes of no type, are asked for") {
  check_refusal(call_of("I8", i8_codes()), ErrorCode::usage,
                {"tensor q", "i8 without scales", "--q-scale NUMBER|FILE[:KEY]"});
  check_refusal(call_of("U8", e4m3_codes()), ErrorCode::usage,
                {"tensor q", "--q-dtype TYPE says what they are: e4m3, e5m2"});
  CallFile plain;
  plain.pair({1, 1, 2, 2}, {1, 1, 2, 2}).version(2).tensor("q_scale", "F32", {1}, raw<float>({1}));
  check_refusal(plain, ErrorCode::file, {"tensor q_scale", "f32 and takes no scales"});
  check_refusal(call_of("I8", i8_codes()).tensor("q_scale", "I64", {1}, raw<int64_t>({1})),
                ErrorCode::file, {"tensor q_scale", "expected f32, f16, bf16 or f64 (got i64)"});
  check_refusal(
      call_of("I8", i8_codes()).tensor("q_scale", "F32", {7}, raw<float>({1, 1, 1, 1, 1, 1, 1})),
      ErrorCode::file, {"tensor q_scale", "[7] is no shape of scales"});
  check_refusal(call_of("F8_E4M3", e4m3_codes()).fact("q_block", "2"), ErrorCode::file,
                {"no tensor q_scale"});
  check_refusal(call_of("F8_E4M3", e4m3_codes())
                    .fact("q_block", "0")
                    .tensor("q_scale", "F32", {1}, raw<float>({1})),
                ErrorCode::file, {"q_block", "above 0"});
  check_refusal(call_of("F8_E4M3", e4m3_codes()).fact("scales", "rows"), ErrorCode::file,
                {"scales", "sage-thread"});
  // The first version of the format has none of it.
  check_refusal(call_of("F8_E4M3", e4m3_codes(), 1).fact("q_block", "2"), ErrorCode::file,
                {"q_block", "attnscope-capture/2"});
}

TEST_CASE("beside codes a tensor of two bytes is widened") {
  const TemporaryFolder folder;
  CallFile file;
  file.tensor(
          "q", "BF16", kShape,
          raw<uint16_t>({0x3f80, 0x4000, 0x4040, 0x3f80, 0x3f80, 0x3f80, 0, 0, 0, 0, 0, 0xbf80}))
      .tensor("k", "F8_E4M3", kShape, e4m3_codes())
      .version(2);
  const Capture capture = opened(folder, file);
  const CallEntry& call = capture.calls().front();
  CHECK(call.recorded_dtype() == DType::f32);
  CHECK(head(call.problem->q(), 0) == std::vector<float>{1, 2, 3, 1, 1, 1});
  CHECK(head(call.problem->q(), 1)[5] == -1);
  CHECK(head(call.problem->k(), 0) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("v whose codes cannot be scaled is left out, and said") {
  const TemporaryFolder folder;
  CallFile file;
  const Capture capture = opened(folder, file.pair({1, 1, 2, 2}, {1, 1, 2, 2})
                                             .tensor("v", "I8", {1, 1, 2, 2}, {1, 2, 3, 4})
                                             .version(2));
  CHECK_FALSE(capture.calls().front().problem->v());
  CHECK(has_note(capture, "tensor v: is i8 without scales: --as v_scale=NUMBER"));
}

TEST_CASE("the type and the scale of v are told by --as") {
  const TemporaryFolder folder;
  CallFile file;
  file.pair({1, 1, 2, 2}, {1, 1, 2, 2}).tensor("v", "U8", {1, 1, 2, 2}, {1, 2, 3, 4}).version(2);
  file.tensor("v_scale", "F32", {1}, raw<float>({5}));
  FactOverrides overrides;
  overrides.told = {{"v_dtype", "i8"}, {"v_scale", "0.5"}};
  const Capture capture = opened(folder, file, overrides);
  const HeadTensor v = capture.calls().front().problem->v();
  REQUIRE(v);
  CHECK(head(v, 0) == std::vector<float>{0.5f, 1, 1.5f, 2});
  CHECK(has_note(capture, "--as v_scale 0.5 overrides the recorded"));
}

TEST_CASE("scales that are told in two ways are refused") {
  CallFile file = call_of("F8_E4M3", e4m3_codes());
  file.fact("q_scale", "2").tensor("q_scale", "F32", {1}, raw<float>({3}));
  check_refusal(file, ErrorCode::file, {"q_scale", "is 2", "tensor q_scale", "--q-scale"});
  check_refusal(call_of("F8_E4M3", e4m3_codes()).fact("q_scale", "2").fact("q_block", "2"),
                ErrorCode::file, {"no tensor q_scale"});
}

TEST_CASE("scales a channel that may be those of SageAttention's threads are asked for") {
  CallFile file;  // 128 queries of 32 channels: 32 threads
  file.tensor("q", "I8", {1, 1, 128, 32}).tensor("k", "I8", {1, 1, 128, 32}).version(2);
  file.tensor("q_scale", "F32", {1, 1, 32}).tensor("k_scale", "F32", {1});
  check_refusal(file, ErrorCode::file, {"tensor q_scale", "--as scales=sage-thread"});
}

TEST_CASE("a copy has no facts of codes, and opens") {
  const TemporaryFolder folder;
  CallFile file = call_of("U8", e4m3_codes());
  file.fact("q_dtype", "e4m3").fact("k_dtype", "e4m3").fact("k_scale", "2").fact("q_block", "2");
  file.tensor("q_scale", "F32", {1, 2, 2}, raw<float>({1, 2, 3, 4}));
  const Capture capture = opened(folder, file);
  CHECK(head(capture.calls().front().problem->q(), 0) == std::vector<float>{1, 2, 3, 4, 10, 12});
  for (const auto& [name, fact] : capture.calls().front().facts) {
    INFO(name);
    CHECK_FALSE(is_code_fact(name));
  }
}

TEST_CASE("files of a pattern have their scales beside them") {
  const TemporaryFolder folder;
  for (const std::string name : {"q", "k"}) {
    CallFile file;
    file.tensor(name, "I8", kShape, i8_codes()).version(0);
    file.tensor(name + "_scale", "F32", {1}, raw<float>({name == "q" ? 0.5f : 2.f}));
    file.write(folder.path() / ("layer3_" + name + ".safetensors"));
  }
  const Capture capture = Capture::open(folder.path());
  const AttentionProblem& problem = *capture.calls().front().problem;
  CHECK(head(problem.q(), 0) == std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 3});
  CHECK(head(problem.k(), 0) == std::vector<float>{2, 4, 6, 8, 10, 12});
}

TEST_CASE("options tell scales and types") {
  const TemporaryFolder folder;
  FactOverrides overrides;
  overrides.q_dtype = overrides.k_dtype = "i8";
  overrides.q_scale = "0.5";
  CallFile scales;
  scales.tensor("other", "F32", {1}, raw<float>({7}))
      .tensor("mine", "F32", {2}, raw<float>({2, 3}))
      .version(0);
  scales.write(folder.path() / "scales.safetensors");
  overrides.k_scale = (folder.path() / "scales.safetensors").string() + ":mine";
  const Capture capture = opened(folder, call_of("U8", i8_codes()), overrides);
  const AttentionProblem& problem = *capture.calls().front().problem;
  CHECK(head(problem.q(), 0) == std::vector<float>{0.5f, 1, 1.5f, 2, 2.5f, 3});
  CHECK(head(problem.k(), 1) == std::vector<float>{21, 24, 27, 30, 33, 36});

  overrides = {};
  overrides.q_dtype = "e4m4";
  check_refusal(call_of("U8", i8_codes()), ErrorCode::usage, {"--q-dtype", "e4m4", "e4m3"},
                overrides);
  overrides.q_dtype = "bf16";
  check_refusal(call_of("U8", i8_codes()), ErrorCode::usage,
                {"--q-dtype", "have 1 bytes (expected 2)"}, overrides);
  overrides = {};
  overrides.q_scale = "2";
  CallFile plain;
  check_refusal(plain.pair({1, 1, 2, 2}, {1, 1, 2, 2}), ErrorCode::usage,
                {"--q-scale", "is f32, which takes no scales"}, overrides);
}

TEST_CASE("a capture's hash knows codes and scales") {
  const TemporaryFolder folder;
  const auto hash = [&](float scale) {
    CallFile file = call_of("F8_E4M3", e4m3_codes());
    const Capture capture = opened(folder, file.tensor("q_scale", "F32", {1}, raw<float>({scale})));
    return capture.content_hash(capture.select({}), false);
  };
  CHECK(hash(1) != hash(2));
  CHECK(hash(2) == hash(2));
}
