// Capped logits, sinks, scales a head, linear biases and windows, as captures, files in no format
// of ours and options tell them.
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/capture/computable.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// q and k of two batch items, three heads and four tokens.
CallFile plain_call(int version) {
  CallFile call;
  return call.version(version).pair({2, 3, 4, 8}, {2, 3, 4, 8});
}

std::vector<float> counted(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4;
  return values;
}

Capture opened(const TemporaryFolder& folder, const CallFile& call,
               const FactOverrides& overrides = {}) {
  call.write(folder.path() / "call.safetensors");
  return Capture::open(folder / "call.safetensors", overrides);
}

AttentionProblem problem_of(const CallFile& call, const FactOverrides& overrides = {}) {
  const TemporaryFolder folder;
  return *opened(folder, call, overrides).calls().front().problem;
}

void refuse(const CallFile& call, ErrorCode code, const std::vector<std::string>& parts,
            const FactOverrides& overrides = {}) {
  const TemporaryFolder folder;
  CHECK(refused([&] { (void)opened(folder, call, overrides); }, code, parts) == "");
}

}  // namespace

TEST_CASE("a cap is a score, a fact of its own, or a value by one of its usual names") {
  CHECK(problem_of(plain_call(2).fact("score", "softcap:50")).score() ==
        ScoreFunction::softcap(50));
  for (const double cap : {50.0, 0.1, 30.5, 1e-7, 1e20, 1.0 / 3, 12345678.0}) {
    const std::string name = score_name(ScoreFunction::softcap(cap));
    CHECK(parse_score(name) == ScoreFunction::softcap(cap));
  }
  CHECK(score_name(ScoreFunction::softcap(50)) == "softcap:50");
  CHECK(problem_of(plain_call(1).fact("softcap", "30")).score() == ScoreFunction::softcap(30));
  for (const char* name : {"softcap", "soft_cap", "logits_soft_cap", "attn_logit_softcapping"}) {
    INFO(name);
    const AttentionProblem problem = problem_of(plain_call(0).fact(name, "20.5"));
    CHECK(score_name(problem.score()) == "softcap:20.5");
    CHECK(problem_of(plain_call(0).fact(name, "0")).score() == ScoreFunction::softmax);
    CHECK(problem_of(plain_call(0).fact(name, "None")).score() == ScoreFunction::softmax);
  }
  const TemporaryFolder folder;
  const Capture capture = opened(folder, plain_call(0).fact("softcap", "5"));
  CHECK_NOTHROW(require_computable(capture));
  CHECK(capture.calls().front().unknown_keys.empty());
  FactOverrides told;
  told.score = ScoreFunction::softcap(7);
  CHECK(problem_of(plain_call(1), told).score() == ScoreFunction::softcap(7));
}

TEST_CASE("a cap that is none, or told in two ways, is refused") {
  for (const char* score : {"softcap", "softcap:", "softcap:0", "softcap:-3", "softcap:nan",
                            "softcap:inf", "softcap:50x"}) {
    INFO(score);
    refuse(plain_call(2).fact("score", score), ErrorCode::file, {"score", "softcap:C", score});
  }
  CHECK(problem_of(plain_call(1).fact("softcap", "-1")).score() == ScoreFunction::softmax);
  FactOverrides without;
  without.told["softcap"] = "none";
  CHECK(problem_of(plain_call(1).fact("softcap", "30"), without).score() == ScoreFunction::softmax);
  refuse(plain_call(0).fact("softcap", "2").fact("soft_cap", "3"), ErrorCode::file,
         {"softcap", "2", "3"});
  FactOverrides huge;
  huge.score = ScoreFunction::softcap(1e38);
  refuse(plain_call(1), ErrorCode::usage, {"softcap:1e+38", "too far from the scale"}, huge);
  refuse(plain_call(2).fact("score", "softcap:50").fact("softcap", "30"), ErrorCode::file,
         {"softcap", "30", "softcap:50"});
  refuse(plain_call(2).fact("score", "sigmoid").fact("softcap", "30"), ErrorCode::file,
         {"softcap", "30", "sigmoid"});
  FactOverrides other;
  other.score = ScoreFunction::softcap(7);
  refuse(plain_call(2).fact("score", "softcap:50"), ErrorCode::usage,
         {"--score softcap:7", "softcap:50"}, other);
}

TEST_CASE("sinks stand beside q in every format, in whatever shape broadcasts") {
  const auto with = [](int version, const char* name, const std::vector<int64_t>& shape,
                       std::vector<float> values) {
    return problem_of(plain_call(version).tensor(name, "F32", shape, raw(values))).sinks();
  };
  for (const int version : {0, 1, 2}) {
    const Sinks sinks = with(version, "sinks", {3}, {1, 2, 3});
    CHECK(sinks.describe() == "a logit a head");
    CHECK(sinks.logit(1, 2, 3) == 3);
  }
  CHECK(with(0, "s_aux", {3}, {1, 2, 3}).logit(0, 1, 0) == 2);
  CHECK(with(0, "attn.learnable_sink", {3}, {1, 2, 3}).logit(0, 1, 0) == 2);
  CHECK(with(1, "sinks", {}, {4}).logit(1, 2, 3) == 4);
  CHECK(with(1, "sinks", {1}, {4}).logit(1, 2, 3) == 4);
  CHECK(with(1, "sinks", {3, 1, 1}, {1, 2, 3}).logit(1, 2, 3) == 3);
  CHECK(with(1, "sinks", {1, 3, 1, 1}, {1, 2, 3}).logit(1, 2, 3) == 3);
  CHECK(with(1, "sinks", {2, 3}, counted(6)).logit(1, 0, 2) == 0.75);
  CHECK(with(1, "sinks", {3, 4}, counted(12)).logit(1, 2, 1) == 2.25);
  const Sinks all = with(1, "sinks", {2, 3, 4, 1}, counted(24));
  CHECK(all.describe() == "a logit a query");
  CHECK(all.logit(1, 2, 3) == 5.75);
  CHECK(with(1, "sinks", {2, 1, 4}, counted(8)).logit(1, 2, 3) == 1.75);
  const float none = -std::numeric_limits<float>::infinity();
  CHECK(with(1, "sinks", {3}, {1, none, 3}).logit(0, 1, 0) == double{none});
}

TEST_CASE("sinks that fit no call, fit in two ways, or are no numbers are refused") {
  const auto with = [](const std::vector<int64_t>& shape, std::vector<float> values) {
    return plain_call(1).tensor("sinks", "F32", shape, raw(values));
  };
  refuse(with({4}, counted(4)), ErrorCode::file, {"sinks", "[3]", "[2, 3, 4]", "got [4]"});
  refuse(with({2, 3, 4, 2}, counted(48)), ErrorCode::file, {"sinks", "got [2, 3, 4, 2]"});
  refuse(plain_call(1).tensor("sinks", "I64", {3}), ErrorCode::file, {"sinks", "i64"});
  const float inf = std::numeric_limits<float>::infinity();
  refuse(with({3}, {1, inf, 2}), ErrorCode::value, {"sinks", "head 1", "inf"});
  refuse(with({3}, {1, 2, std::nanf("")}), ErrorCode::value, {"sinks", "head 2", "nan"});
  refuse(with({3}, {1, 2, 3e6f}), ErrorCode::value, {"sinks", "head 2", "2900000"});
  // Three heads and three queries, and as many batch items.
  CallFile square;
  square.pair({3, 3, 3, 8}, {3, 3, 3, 8}).tensor("sinks", "F32", {3, 3}, raw(counted(9)));
  refuse(square, ErrorCode::file, {"[batch, heads] and [heads, queries]", "three axes"});
  refuse(plain_call(2).fact("score", "sigmoid").tensor("sinks", "F32", {3}), ErrorCode::file,
         {"score sigmoid has no sinks"});
}

TEST_CASE("sinks are told by an option, and left out") {
  const CallFile recorded =
      plain_call(1).tensor("sinks", "F32", {3}, raw(std::vector<float>{1, 2, 3}));
  FactOverrides overrides;
  overrides.sinks = "0";
  const TemporaryFolder folder;
  const Capture told = opened(folder, recorded, overrides);
  CHECK(told.calls().front().problem->sinks().logit(0, 2, 0) == 0);
  CHECK(told.notes().back().find("--sinks 0 overrides the recorded") != std::string::npos);
  overrides.sinks = "none";
  CHECK(problem_of(recorded, overrides).sinks().is_none());
  overrides.sinks = "nan";
  refuse(plain_call(1), ErrorCode::value, {"--sinks", "nan"}, overrides);
  CallFile()
      .tensor("s_aux", "F32", {3}, raw(std::vector<float>{7, 8, 9}))
      .write(folder / "s.safetensors");
  overrides.sinks = folder / "s.safetensors";
  CHECK(problem_of(plain_call(1), overrides).sinks().logit(0, 2, 0) == 9);
  CallFile().tensor("sinks", "F32", {4}).write(folder / "s.safetensors");
  refuse(plain_call(1), ErrorCode::usage, {"s.safetensors", "[3]", "got [4]"}, overrides);
  CallFile().tensor("sinks", "I64", {3}).write(folder / "s.safetensors");
  refuse(plain_call(1), ErrorCode::usage, {"s.safetensors", "expected f32", "i64"}, overrides);
  FactOverrides without;
  without.told["sinks"] = "none";
  CHECK(problem_of(recorded, without).sinks().is_none());
}

TEST_CASE("caps and sinks are part of what a call is") {
  const auto stamp = [](const CallFile& call) {
    const TemporaryFolder folder;
    const Capture capture = opened(folder, call);
    return capture.call_hashes(capture.select({}), true, {}).front();
  };
  const std::string plain = stamp(plain_call(1));
  const std::string capped = stamp(plain_call(1).fact("softcap", "5"));
  const std::string one = stamp(plain_call(1).tensor("sinks", "F32", {3}));
  const std::string other = stamp(plain_call(1).tensor("sinks", "F32", {3}, raw(counted(3))));
  CHECK(std::set<std::string>{plain, capped, one, other}.size() == 4);
}

TEST_CASE("a scale a head is a list in every format, and in an option") {
  const auto scales = [](const CallFile& call, const FactOverrides& overrides = {}) {
    return problem_of(call, overrides).scales().each();
  };
  const std::vector<double> each{0.5, 0.25, 2};
  for (const int version : {0, 1, 2}) {
    CHECK(scales(plain_call(version).fact("scale", "[0.5, 0.25, 2]")) == each);
    CHECK(scales(plain_call(version).fact("scale", "[0.5, 0.5]")) == std::vector{0.5});
    refuse(plain_call(version).fact("scale", "[0.5, 0.25]"), ErrorCode::file,
           {"scale", "one for each of the 3 heads", "got 2 numbers"});
  }
  FactOverrides overrides;
  overrides.scale = "0.5,0.25,2";
  CHECK(scales(plain_call(1), overrides) == each);
  for (const char* bad : {"0.5,", "0.5,x,2", ",", "0.5,0.25"}) {
    overrides.scale = bad;
    refuse(plain_call(1), ErrorCode::usage, {"scale"}, overrides);
  }
  overrides.scale = "0.5,-1,2";
  refuse(plain_call(1), ErrorCode::usage, {"scale", "above 0", "-1"}, overrides);
}

TEST_CASE("linear biases stand beside q, and are told by an option") {
  const auto bias = [](const AttentionProblem& problem, int64_t batch, int64_t head) {
    std::vector<float> row(4);
    const int64_t query = 1;
    problem.mask().fill_bias(batch, head, {&query, 1}, {0, 4}, row.data(), 4);
    return row;
  };
  const std::vector<float> falling{-0.5f, 0, -0.5f, -1};
  for (const int version : {0, 1, 2}) {
    const AttentionProblem problem = problem_of(plain_call(version).tensor(
        "alibi_slopes", "F32", {3}, raw(std::vector<float>{1, 0.5f, 0})));
    CHECK(problem.mask().describe() == "alibi");
    CHECK(bias(problem, 1, 1) == falling);
    CHECK(bias(problem, 1, 2) == std::vector<float>(4));
  }
  const CallFile recorded =
      plain_call(1)
          .fact("mask", "causal")
          .tensor("alibi_slopes", "F32", {2, 3}, raw(std::vector<float>{1, 1, 1, 1, 0.5f, 1}));
  const AttentionProblem causal = problem_of(recorded);
  CHECK(causal.mask().describe() == "causal & alibi");
  const float masked = -std::numeric_limits<float>::infinity();
  CHECK(bias(causal, 1, 1) == std::vector<float>{-0.5f, 0, masked, masked});
  FactOverrides overrides;
  overrides.alibi = "none";
  CHECK(problem_of(recorded, overrides).mask().describe() == "causal");
  const TemporaryFolder folder;
  CallFile()
      .tensor("alibi_slopes", "F32", {3}, raw(std::vector<float>{0, 0.5f, 0}))
      .write(folder / "s.safetensors");
  overrides.alibi = folder / "s.safetensors";
  CHECK(bias(problem_of(plain_call(1), overrides), 0, 1) == falling);
  refuse(plain_call(1).tensor("alibi_slopes", "F32", {4}, raw(counted(4))), ErrorCode::file,
         {"alibi_slopes", "[3]", "[2, 3]", "got [4]"});
  refuse(plain_call(1).tensor("alibi_slopes", "F32", {3},
                              raw(std::vector<float>{0, std::nanf(""), 1})),
         ErrorCode::value, {"alibi", "head 1"});
  overrides.alibi = folder / "four.safetensors";
  CallFile().tensor("a", "F32", {4}).write(*overrides.alibi);
  refuse(plain_call(1), ErrorCode::usage, {"four.safetensors", "[3]", "[2, 3]", "got [4]"},
         overrides);
  CallFile().tensor("a", "I64", {3}).write(*overrides.alibi);
  refuse(plain_call(1), ErrorCode::usage, {"four.safetensors", "expected f32", "i64"}, overrides);
  FactOverrides without;
  without.told["alibi_slopes"] = "none";
  CHECK(problem_of(recorded, without).mask().describe() == "causal");
}

TEST_CASE("relative biases stand beside q, and are told by an option") {
  const auto bias = [](const AttentionProblem& problem, int64_t batch, int64_t head,
                       int64_t query) {
    const int64_t keys = problem.num_keys();
    std::vector<float> row(static_cast<size_t>(keys));
    problem.mask().fill_bias(batch, head, {&query, 1}, {0, keys}, row.data(), keys);
    return row;
  };
  // Number i - j + 3 of a head: 0, 1/4 … 6/4, then the next head's.
  const CallFile recorded = plain_call(1).tensor("relative_bias", "F32", {3, 7}, raw(counted(21)));
  const AttentionProblem problem = problem_of(recorded);
  CHECK(problem.mask().describe() == "relative_bias");
  CHECK(bias(problem, 0, 0, 0) == std::vector<float>{0.75f, 0.5f, 0.25f, 0});
  CHECK(bias(problem, 1, 2, 3) == std::vector<float>{5, 4.75f, 4.5f, 4.25f});
  const AttentionProblem of_all =
      problem_of(plain_call(2)
                     .tensor("relative_bias", "F32", {2, 1, 7}, raw(counted(14)))
                     .fact("mask", "causal"));
  const float masked = -std::numeric_limits<float>::infinity();
  CHECK(bias(of_all, 1, 2, 1) == std::vector<float>{2.75f, 2.5f, masked, masked});
  FactOverrides overrides;
  overrides.relative_bias = "none";
  CHECK(problem_of(recorded, overrides).mask().is_none());
  const TemporaryFolder folder;
  CallFile().tensor("b", "F32", {1, 7}, raw(counted(7))).write(folder / "b.safetensors");
  overrides.relative_bias = folder / "b.safetensors:b";
  CHECK(bias(problem_of(plain_call(1), overrides), 1, 2, 0) ==
        std::vector<float>{0.75f, 0.5f, 0.25f, 0});
  refuse(plain_call(1).tensor("relative_bias", "F32", {3, 8}, raw(counted(24))), ErrorCode::file,
         {"relative_bias", "queries + keys - 1", "[3, 7]", "[2, 3, 7]", "got [3, 8]"});
  overrides.relative_bias = folder / "c.safetensors";
  CallFile().tensor("b", "F32", {3, 8}).write(*overrides.relative_bias);
  refuse(plain_call(1), ErrorCode::usage, {"c.safetensors", "[3, 7]", "got [3, 8]"}, overrides);
  CallFile().tensor("b", "F32", {3, 1, 3, 3}).write(*overrides.relative_bias);
  refuse(plain_call(1), ErrorCode::usage, {"c.safetensors", "one grid", "--grid"}, overrides);
  CallFile().tensor("b", "BOOL", {3, 7}).write(*overrides.relative_bias);
  refuse(plain_call(1), ErrorCode::usage, {"c.safetensors", "expected f32"}, overrides);
  write_bytes(*overrides.relative_bias, "no tensor file");
  refuse(plain_call(1), ErrorCode::file, {"c.safetensors"}, overrides);
  std::vector<float> bad = counted(21);
  bad[16] = std::nanf("");
  // A head's numbers are read, and held to be numbers, where its map is wanted.
  const AttentionProblem spoilt =
      problem_of(plain_call(1).tensor("relative_bias", "F32", {3, 7}, raw(bad)));
  CHECK(bias(spoilt, 0, 1, 3) == std::vector<float>{3.25f, 3, 2.75f, 2.5f});
  try {
    bias(spoilt, 0, 2, 0);
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::value);
    CHECK(std::string(error.what()).find("head 2, place 2") != std::string::npos);
  }
  FactOverrides without;
  without.told["relative_bias"] = "none";
  CHECK(problem_of(recorded, without).mask().is_none());
  // On a grid of 1x2x2 cells: differences of rows and of columns.
  const auto on_grid = [&](std::vector<int64_t> shape, int64_t count) {
    return plain_call(1).tensor("relative_bias", "F32", shape, raw(counted(count)));
  };
  const AttentionProblem of_grid = problem_of(on_grid({3, 1, 3, 3}, 27).fact("grid", "1x2x2"));
  CHECK(bias(of_grid, 0, 0, 0) == std::vector<float>{1, 0.75f, 0.25f, 0});
  CHECK(bias(of_grid, 1, 1, 2) == std::vector<float>{4, 3.75f, 3.25f, 3});
  refuse(on_grid({3, 1, 3, 3}, 27), ErrorCode::file, {"relative_bias", "one grid", "--grid"});
  refuse(on_grid({3, 1, 3, 5}, 45).fact("grid", "1x2x2"), ErrorCode::file,
         {"[3, 1, 3, 3]", "got [3, 1, 3, 5]"});
}

TEST_CASE("a window of two ends is counted from the last token") {
  const auto keys = [](const std::string& mask, bool option, int64_t query) {
    CallFile call;
    call.version(2).pair({1, 1, 3, 8}, {1, 1, 5, 8}).fact("kind", "cross");
    FactOverrides overrides;
    if (option) {
      overrides.mask = mask;
    } else {
      call.fact("mask", mask);
    }
    const AttentionProblem problem = problem_of(call, overrides);
    CHECK(problem.mask().describe() == mask);
    std::vector<float> row(5);
    problem.mask().fill_bias(0, 0, {&query, 1}, {0, 5}, row.data(), 5);
    std::string seen;
    for (const float bias : row) seen += bias == 0 ? 'x' : '.';
    return seen;
  };
  for (const bool option : {false, true}) {
    CHECK(keys("window:1,0", option, 0) == ".xx..");
    CHECK(keys("window:0,1", option, 0) == "..xx.");
    CHECK(keys("window:-1,0", option, 0) == "xxx..");
    CHECK(keys("window:-1,0", option, 2) == "xxxxx");
    CHECK(keys("window:1,-1", option, 2) == "...xx");
    CHECK(keys("window:-1,-1", option, 1) == "xxxxx");
  }
  for (const char* bad : {"window:1,", "window:1,-2", "window:x,1", "window:1,2,3"}) {
    refuse(plain_call(2).fact("mask", bad), ErrorCode::file, {"mask", "window:L,R", bad});
    FactOverrides overrides;
    overrides.mask = bad;
    refuse(plain_call(2), ErrorCode::usage, {"--mask", bad, "window:L,R"}, overrides);
  }
  refuse(plain_call(1).fact("mask", "window:1,0"), ErrorCode::file, {"mask"});
}

TEST_CASE("a neighbourhood on the grid is a fact of the second format, and an option") {
  const auto call = [](int64_t tokens) {
    CallFile file;
    return file.version(2).pair({1, 2, tokens, 8}, {1, 2, tokens, 8});
  };
  const auto on_grid = [&](const std::string& mask) {
    return call(38).fact("grid", "3x4x3").fact("text", "2@end").fact("mask", mask);
  };
  const auto seen = [](const AttentionProblem& problem, int64_t query) {
    std::vector<float> row(38);
    problem.mask().fill_bias(0, 1, {&query, 1}, {0, 38}, row.data(), 38);
    std::string keys;
    for (const float bias : row) keys += bias == 0 ? 'x' : '.';
    return keys;
  };
  for (const bool option : {false, true}) {
    FactOverrides overrides;
    if (option) overrides.mask = "natten:1x3x2,causal=t";
    const AttentionProblem problem =
        problem_of(on_grid(option ? "causal" : "natten:1x3x2,causal=t"), overrides);
    CHECK(problem.mask().describe() == "natten:1x3x2,causal=t");
    CHECK(seen(problem, 0) == "xx.xx.xx............................xx");
    CHECK(seen(problem, 23) == "................xx.xx.xx............xx");
    CHECK(seen(problem, 37) == std::string(38, 'x'));
  }
  refuse(on_grid("natten:1x3x2").version(1), ErrorCode::file, {"natten:1x3x2", "capture/2"});
  refuse(on_grid("natten:1x3x4"), ErrorCode::file,
         {"call.safetensors", "4 cells along x", "3x4x3", "has 3"});
  refuse(call(38).fact("mask", "natten:1x3x2"), ErrorCode::file,
         {"natten:1x3x2", "no token grid", "--grid"});
  FactOverrides overrides;
  overrides.mask = "natten:1x3";
  refuse(on_grid("none"), ErrorCode::usage, {"--mask natten:1x3", "natten:TxHxW", "causal=t"},
         overrides);
  overrides.mask = "natten:1x3x2";
  CallFile cross;
  cross.version(1).pair({1, 2, 36, 8}, {1, 2, 5, 8}).fact("grid", "3x4x3").fact("kind", "cross");
  CHECK(problem_of(cross, overrides).mask().is_none());
  overrides.mask = "natten:4x3x2";
  refuse(on_grid("none"), ErrorCode::usage, {"4 cells along t"}, overrides);
  // Cells in tiles have no grid that --grid could tell.
  overrides.mask = "natten:1x3x2";
  const std::string tiles =
      R"([{"name":"v","modality":"video","count":36,"grid":[3,4,3],"order":{"tiles":[1,2,3]}}])";
  refuse(call(36).fact("queries", tiles), ErrorCode::usage,
         {"natten:1x3x2", "cells of v stand in tiles of 1x2x3", "row by row"}, overrides);
  const std::string part = R"({"rank":0,"ranks":2,"queries":[[0,5]],"whole":{"grid":"1x5x2"}})";
  refuse(
      call(5).fact("part", part).fact("queries", R"([{"name":"v","modality":"video","count":5}])"),
      ErrorCode::usage,
      {"natten:1x3x2", "no token grid", "a part of its sequence's tokens", "--stitch"}, overrides);
}

TEST_CASE("key padding a batch item is taken, and numbers 0 and 1 earn a note") {
  const TemporaryFolder folder;
  CallFile padded;
  padded.version(0).pair({2, 3, 5, 8}, {2, 3, 5, 8});
  padded.tensor("attention_mask", "BOOL", {2, 5}, std::string("\1\1\1\1\1\1\1\0\0\0", 10));
  const Capture capture = opened(folder, padded);
  const CallEntry& call = capture.calls().front();
  CHECK(call.problem->mask().classify(0, 0, {0, 5}, {0, 5}) == TileClass::full);
  CHECK(call.problem->mask().classify(1, 2, {0, 5}, {0, 2}) == TileClass::full);
  CHECK(call.problem->mask().classify(1, 2, {0, 5}, {2, 5}) == TileClass::empty);
  CHECK(call.mask_fact->text() == "valid");
  CHECK(capture.notes().back().find("key padding") != std::string::npos);
  std::vector<float> lower(16);
  for (size_t i = 0; i < 16; ++i) lower[i] = i % 4 <= i / 4 ? 1 : 0;
  const Capture numbers = opened(folder, plain_call(1).tensor("mask", "F32", {4, 4}, raw(lower)));
  CHECK(numbers.notes().back().find("0 and 1 alone") != std::string::npos);
  CHECK(numbers.calls().front().problem->mask().has_finite_bias());
  const Capture biases =
      opened(folder, plain_call(1).tensor("mask", "F32", {4, 4}, raw(counted(16))));
  CHECK(biases.notes().empty());
}

TEST_CASE("what is counted by places is refused where packed sequences are cut elsewhere") {
  const auto packed = [](std::vector<int64_t> queries, std::vector<int64_t> keys,
                         const char* mask) {
    CallFile call;
    call.version(2).pair({1, 2, queries.back(), 8}, {1, 2, keys.back(), 8});
    call.tensor("cu_seqlens_q", "I64", {std::ssize(queries)}, raw(queries));
    call.tensor("cu_seqlens_k", "I64", {std::ssize(keys)}, raw(keys));
    return call.fact("mask", mask).fact("kind", "cross");
  };
  refuse(packed({0, 2, 6}, {0, 3, 6}, "window:4,2"), ErrorCode::file,
         {"window:4,2", "sequence 0", "last key"});
  CHECK(problem_of(packed({0, 2, 6}, {0, 5, 9}, "window:4,2"))
            .mask()
            .describe()
            .starts_with("window:4,2 & segments"));
  CallFile biased = packed({0, 2, 6}, {0, 3, 6}, "none");
  biased.tensor("alibi_slopes", "F32", {2}, raw(std::vector<float>{1, 2}));
  refuse(biased, ErrorCode::file, {"alibi", "sequence 0"});
}
