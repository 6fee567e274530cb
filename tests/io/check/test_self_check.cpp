#include <limits>

#include "io/check/recorded_rows.h"
#include "tests/io/check/recording.h"
#include "tests/support/project_paths.h"

using namespace attnscope;
using namespace attnscope::test;

TEST_CASE("a right capture agrees with its recorded outputs") {
  RecordedCall call(1);
  call.attend();
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 2);
  CHECK(check.verdict == CheckVerdict::agrees);
  CHECK(check.against == "output rows");
  CHECK(check.heads_checked == 8);
  CHECK(check.rows_checked == 10);
  CHECK(check.error > 0);
  CHECK(check.error < 1e-5);
  CHECK_FALSE(quick_check(capture, means()));
}

TEST_CASE("the sample agrees within the rounding of bf16") {
  const Capture capture = Capture::open(project_folder() + "/samples/moving-shapes");
  for (const CallEntry& call : capture.calls()) {
    const CallCheck check = check_call(call, {}, means(), 2);
    CHECK(check.verdict == CheckVerdict::agrees);
    CHECK(check.error < 0x1p-8);
    CHECK(check.error > 0x1p-12);
  }
}

TEST_CASE("a mask tensor that the model used is part of what agrees") {
  RecordedCall call(2);
  call.mask.assign(static_cast<size_t>(RecordedCall::kTokens * RecordedCall::kTokens), '\1');
  for (size_t i = 0; i < call.mask.size(); i += 3) call.mask[i] = '\0';
  call.mask_fact = "tensor";
  call.attend([&](int64_t i, int64_t j) {
    return call.mask[static_cast<size_t>(i * RecordedCall::kTokens + j)] != 0 ? 0 : -kInfinity;
  });
  Recording recording;
  recording.add(call);
  CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::agrees);

  SECTION("inverted") {
    for (char& c : call.mask) c = c == 0 ? '\1' : '\0';
    CHECK(culprit_of(call) == "mask");
  }
  SECTION("forgotten") {
    call.attend();
    CHECK(culprit_of(call) == "mask");
  }
}

TEST_CASE("valid tokens that the model used are part of what agrees") {
  RecordedCall call(3);
  call.mask_valid.assign(static_cast<size_t>(RecordedCall::kTokens), '\1');
  for (size_t i = 0; i < call.mask_valid.size(); i += 4) call.mask_valid[i] = '\0';
  const auto is_valid = [&](int64_t token) {
    return call.mask_valid[static_cast<size_t>(token)] != 0;
  };
  for (const bool pairs : {false, true}) {
    call.mask_fact = pairs ? "valid_pairs" : "valid";
    call.attend([&](int64_t i, int64_t j) {
      return is_valid(j) && (!pairs || is_valid(i)) ? 0 : -kInfinity;
    });
    Recording recording;
    recording.add(call);
    CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
          CheckVerdict::agrees);
    RecordedCall inverted = call;
    for (char& c : inverted.mask_valid) c = c == 0 ? '\1' : '\0';
    CHECK(culprit_of(inverted) == "mask");
    RecordedCall forgotten = call;
    forgotten.attend();
    CHECK(culprit_of(forgotten) == "mask");
  }
}

TEST_CASE("outputs that are no numbers, or all zero, differ") {
  RecordedCall call(15);
  call.attend();
  SECTION("NaN") { call.out[0] = std::numeric_limits<float>::quiet_NaN(); }
  SECTION("zeros") { std::fill(call.out.begin(), call.out.end(), 0.0f); }
  Recording recording;
  recording.add(call);
  CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::differs);
}

TEST_CASE("a capture without outputs has nothing to check against") {
  TemporaryFolder folder;
  CallFile().pair({1, 2, 6, 8}, {1, 2, 6, 8}).write(folder.path() / "c.safetensors");
  const Capture capture = Capture::open(folder.path() / "c.safetensors");
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 1);
  CHECK(check.verdict == CheckVerdict::nothing);
  CHECK(check.reason.find("out_rows") != std::string::npos);
  CHECK_FALSE(quick_check(capture, means()));
}

TEST_CASE("recorded LSEs are compared where there are no outputs") {
  // Two keys of zeros: ln 2 in every row.
  TemporaryFolder folder;
  const auto write = [&](float lse) {
    CallFile()
        .pair({1, 1, 2, 4}, {1, 1, 2, 4})
        .tensor("lse", "F32", {1, 1, 2}, raw(std::vector<float>{0.6931472f, lse}))
        .write(folder.path() / "c.safetensors");
    return check_call(Capture::open(folder.path() / "c.safetensors").calls().front(), {}, means(),
                      1);
  };
  CHECK(write(0.6931472f).verdict == CheckVerdict::agrees);
  CHECK(write(0.6931472f).against == "LSE");
  const CallCheck wrong = write(0.8f);
  CHECK(wrong.verdict == CheckVerdict::differs);
  CHECK(wrong.row == 1);
}

TEST_CASE("rows that biases mask are left out, whatever a kernel recorded of them") {
  // Queries 0 and 3 have no key; kernels return the mean of V for them.
  RecordedCall call(18);
  const auto masked = [](int64_t i) { return i == 0 || i == 3; };
  call.attend();
  std::vector<float> bias;
  for (int64_t i = 0; i < RecordedCall::kTokens; ++i) {
    bias.insert(bias.end(), RecordedCall::kTokens, masked(i) ? -1e9f : 0.0f);
    if (!masked(i)) continue;
    for (int64_t b = 0; b < RecordedCall::kBatch; ++b) {
      for (int64_t h = 0; h < RecordedCall::kHeads; ++h) {
        for (int64_t c = 0; c < RecordedCall::kWidth; ++c) {
          float sum = 0;
          for (int64_t j = 0; j < RecordedCall::kTokens; ++j) {
            sum += call.row(call.v, b, h / (RecordedCall::kHeads / RecordedCall::kKvHeads), j)[c];
          }
          call.row(call.out, b, h, i)[c] = sum / float{RecordedCall::kTokens};
        }
      }
    }
  }
  call.mask_fact = "tensor";
  const TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  call.file()
      .tensor("mask", "F32", {RecordedCall::kTokens, RecordedCall::kTokens}, raw(bias))
      .write(path);
  CHECK(check_call(Capture::open(path).calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::agrees);
}

TEST_CASE("the LSE of a row that biases mask is as low as they are") {
  const TemporaryFolder folder;
  const auto verdict = [&](float lse) {
    CallFile()
        .pair({1, 1, 2, 4}, {1, 1, 2, 4})
        .tensor("mask", "F32", {2, 2}, raw(std::vector<float>{0, 0, -1e9f, -1e9f}))
        .tensor("lse", "F32", {1, 1, 2}, raw(std::vector<float>{0.6931472f, lse}))
        .write(folder.path() / "c.safetensors");
    return check_call(Capture::open(folder.path() / "c.safetensors").calls().front(), {}, means(),
                      1)
        .verdict;
  };
  CHECK(verdict(-1e9f) == CheckVerdict::agrees);
  CHECK(verdict(-std::numeric_limits<float>::infinity()) == CheckVerdict::agrees);
  CHECK(verdict(0.6931472f) == CheckVerdict::differs);
}

TEST_CASE("a check keeps to its budget: fewer threads, or none of it") {
  RecordedCall call(21);
  call.attend();
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  const CallEntry& entry = capture.calls().front();
  const int64_t bytes = computed_rows_bytes(entry, means().backend);
  MemoryBudget one(bytes + bytes / 2);
  CHECK(check_call(entry, {}, {means().backend, one}, 4).verdict == CheckVerdict::agrees);
  CHECK(one.peak() == bytes);
  MemoryBudget less(bytes - 1);
  const auto code = thrown_text(ErrorCode::resource, [&] {
    check_call(entry, {}, {means().backend, less}, 1);
  });
  CHECK(code.find("the check of a head") != std::string::npos);
  CHECK_FALSE(quick_check(capture, {means().backend, less}));
}

TEST_CASE("recorded rows may stand in any order, and more than once") {
  const RecordedCall call(22);
  Recording recording;
  recording.add([&] {
    RecordedCall right = call;
    right.attend();
    return right;
  }());
  const Capture capture = recording.open();
  const CallEntry& entry = capture.calls().front();
  std::vector<int64_t> rows{27, 3, 3, 20};
  for (int64_t i = 0; i < RecordedCall::kTokens; ++i) rows.push_back(i);
  const AttendedRows got = computed_rows(entry, 1, 2, rows, means());
  const AttendedRows expected = attend_rows(stated_inputs(entry, 1, 2), rows);
  REQUIRE(got.lse.size() == expected.lse.size());
  REQUIRE(got.outputs.size() == expected.outputs.size());
  for (size_t i = 0; i < got.lse.size(); ++i) {
    CHECK(got.lse[i] == Approx(expected.lse[i]).epsilon(1e-6));
    CHECK(got.spread[i] == Approx(expected.spread[i]).epsilon(1e-5));
  }
  for (size_t i = 0; i < got.outputs.size(); ++i) {
    CHECK(got.outputs[i] == Approx(expected.outputs[i]).margin(1e-6));
  }
}

TEST_CASE("a stop ends a check") {
  RecordedCall call(16);
  call.attend();
  Recording recording;
  recording.add(call);
  std::stop_source stop;
  stop.request_stop();
  const Capture capture = recording.open();
  CHECK_THROWS_AS(check_call(capture.calls().front(), {}, means(), 2, stop.get_token()), Error);
}
