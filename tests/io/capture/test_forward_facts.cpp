// The facts forward, of_step and call, and what capture.json tells of forwards.
#include <set>

#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/told_late.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string refused_capture(const std::string& more, const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  const std::string path = write_untold(folder, {{0, 0, 0, 1}}, more);
  return refused([&] { (void)Capture::open(path); }, ErrorCode::file, parts);
}

std::string refused_call(const CallFile& call, const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  call.write(folder.path() / "call.safetensors");
  return refused([&] { (void)Capture::open(folder / "call.safetensors"); }, ErrorCode::file, parts);
}

}  // namespace

TEST_CASE("a branch that nobody told has the name of its forward") {
  const TemporaryFolder folder;
  std::vector<UntoldCall> calls = guided_calls();
  for (int64_t forward : {12, 4}) calls.push_back({forward, -1, -1, 3});
  const Capture capture = Capture::open(write_untold(folder, calls));
  REQUIRE(capture.calls().size() == 10);
  std::vector<std::string> names;
  for (const CallEntry& call : capture.calls()) {
    names.push_back(std::to_string(call.id.step) + call.id.branches.front());
    CHECK(!call.id.place.unrecorded.branch);
    CHECK(call.id.place.unrecorded.step == (call.id.place.forward.of_step < 0));
  }
  // The tenth forward comes after the second.
  CHECK(names == std::vector<std::string>{"0f0", "0f1", "0f0", "0f1", "0f4", "0f12", "1f0", "1f1",
                                          "1f0", "1f1"});
  CallSelection of_f1;
  of_f1.branches = {"f1"};
  const auto selected = capture.select(of_f1);
  REQUIRE(selected.size() == 4);
  for (const SelectedCall& call : selected) CHECK(call.call->id.place.forward.forward % 2 == 1);
  // Files of before keep the digests of their calls.
  const auto hashes = capture.call_hashes(capture.select({}), false);
  CHECK(std::set<std::string>(hashes.begin(), hashes.end()).size() == 10);
}

TEST_CASE("calls of one module in a forward are told apart by their numbers") {
  const TemporaryFolder folder;
  const Capture capture = Capture::open(
      write_untold(folder, {{5, -1, -1, -1, -1, "blocks.0"}, {5, -1, -1, -1, 1, "blocks.0"}}));
  REQUIRE(capture.calls().size() == 2);
  CHECK(capture.calls()[0].id.place.forward.call == 0);
  CHECK(capture.calls()[1].id.place.forward.call == 1);
  CHECK(contains(layer_text(kNoLayer, capture.calls()[1].id.place), "blocks.0.attn call 1"));
  const TemporaryFolder other;
  const std::string twice = write_untold(other, {{5, -1, -1, 2}, {5, -1, -1, 2, 0}});
  CHECK(refused([&] { (void)Capture::open(twice); }, ErrorCode::file, {"f5", "is also in"}) == "");
}

TEST_CASE("a told branch goes before the forward's name") {
  const TemporaryFolder folder;
  UntoldCall{3, 1, 1, 2}.file().fact("branches", "[\"cond\"]").write(folder / "a.safetensors");
  const Capture capture = Capture::open(folder / "a.safetensors");
  CHECK(capture.calls().front().id.branches == std::vector<std::string>{"cond"});
  CHECK(capture.calls().front().id.place.forward.forward == 3);
}

TEST_CASE("facts of forwards that cannot be are refused") {
  const auto call = [] { return CallFile().version(2).pair({1, 1, 2, 4}, {1, 1, 2, 4}); };
  CHECK(refused_call(call().fact("of_step", "1"), {"of_step", "forward, which is missing"}) == "");
  CHECK(refused_call(call().fact("call", "1"), {"call", "forward, which is missing"}) == "");
  CHECK(refused_call(call().fact("forward", "-1"), {"forward", "whole number"}) == "");
  CHECK(refused_call(CallFile().pair({1, 1, 2, 4}, {1, 1, 2, 4}).fact("forward", "1"),
                     {"forward", "attnscope-capture/2"}) == "");
}

TEST_CASE("forwards and refused calls of capture.json are read") {
  const TemporaryFolder folder;
  const std::string path = write_untold(
      folder, guided_calls(),
      guided_forwards(R"(,"partial":true,"calls":1,"branch":["a","b"],"context":"c","odd":1)") +
          R"(,"refused":[{"forward":3,"step":1,"block":"b.0","slot":"attn","why":"no mask"},
             {"forward":2,"why":"compiled"},{"layer_name":"x.y","branch":"cond","why":"no mask"}])");
  const Capture capture = Capture::open(path);
  const ForwardLog& log = capture.log();
  REQUIRE(log.forwards.size() == 4);
  CHECK(log.partial_count() == 1);
  const ForwardRecord& last = log.forwards.back();
  CHECK(last.branches == std::vector<std::string>{"a", "b"});
  CHECK((last.step == 1 && last.of_step == 1 && last.timestep == 899 && last.text == 1));
  CHECK((last.context == "c" && last.calls == 1 && last.chosen && last.latents == 1));
  CHECK(capture.unknown_keys() == std::vector<std::string>{"capture.json key forwards[3].odd"});
  const std::vector<Refusal> reasons = refusals(log);
  REQUIRE(reasons.size() == 2);
  CHECK((reasons[0].why == "no mask" && reasons[0].calls == 2 && reasons[1].forwards == 1));
  CHECK(refused_place(log.refused[0]) == "forward 3, step 1, b.0.attn");
  CHECK(refused_place(log.refused[2]) == "cond, x.y");
}

TEST_CASE("entries of forwards and refused that cannot be are named") {
  const std::string begin = R"("forwards":[{"forward":0,"transformer":"T")";
  CHECK(refused_capture(begin + "}]", {"capture.json", "forwards[0]", "\"chosen\" is missing"}) ==
        "");
  CHECK(refused_capture(begin + R"(,"chosen":1}])",
                        {"forwards[0].chosen", "true or false", "got 1"}) == "");
  CHECK(refused_capture(begin + R"(,"chosen":true,"step":-1}])",
                        {"forwards[0].step", "whole number", "got -1"}) == "");
  CHECK(refused_capture(begin + R"(,"chosen":true,"branch":[]}])",
                        {"forwards[0].branch", "a list of strings"}) == "");
  CHECK(refused_capture(begin + R"(,"chosen":true,"batch":"2"}])", {"forwards[0].batch"}) == "");
  CHECK(refused_capture(begin + R"(,"chosen":true},{"forward":0,"transformer":"T","chosen":true}])",
                        {"forwards[1].forward", "0 is there twice"}) == "");
  CHECK(refused_capture(R"("forwards":{})", {"forwards", "expected a list"}) == "");
  CHECK(refused_capture(R"("refused":[7])", {"refused[0]", "expected an object"}) == "");
  CHECK(refused_capture(R"("refused":[{"why":7}])", {"refused[0].why", "a string", "got 7"}) == "");
  CHECK(refused_capture(R"("refused":[{}])", {"refused[0]", "\"why\" is missing"}) == "");
}

TEST_CASE("a capture without calls says why they were refused") {
  const TemporaryFolder folder;
  const std::string path =
      write_untold(folder, {}, R"("refused":[{"forward":0,"slot":"a","why":"no scale"},
        {"forward":1,"slot":"a","why":"no scale"},{"forward":1,"why":"was compiled"}])");
  CHECK(refused([&] { (void)Capture::open(path); }, ErrorCode::file,
                {"calls", "2 calls: no scale; 1 forward: was compiled"}) == "");
}
