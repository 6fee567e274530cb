// The fact minus of differential attention.
#include "io/capture/call/call_minus.h"
#include "io/capture/capture.h"
#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

CallFile call_with(const std::string& minus) {
  return CallFile().version(2).pair({1, 4, 2, 4}, {1, 4, 2, 4}).fact("minus", minus);
}

std::string refused_call(const CallFile& call, const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  call.write(folder / "call.safetensors");
  return refused([&] { (void)Capture::open(folder / "call.safetensors"); }, ErrorCode::file, parts);
}

}  // namespace

TEST_CASE("a call says which result is taken from its own") {
  const TemporaryFolder folder;
  call_with(R"({"slot":"attn.2","factor":-0.5})").write(folder / "whole.safetensors");
  const Capture whole = Capture::open(folder / "whole.safetensors");
  CHECK(whole.calls().front().unknown_keys.empty());
  const auto minus = minus_of(whole.calls().front());
  REQUIRE(minus);
  CHECK((minus->slot == "attn.2" && minus->factor == -0.5 && !minus->heads));
  call_with(R"({"slot":"attn","factor":1,"heads":2})").write(folder / "heads.safetensors");
  CHECK(minus_of(Capture::open(folder / "heads.safetensors").calls().front())->heads == 2);
  CallFile().pair({1, 1, 2, 4}, {1, 1, 2, 4}).write(folder / "none.safetensors");
  CHECK_FALSE(minus_of(Capture::open(folder / "none.safetensors").calls().front()));
}

TEST_CASE("what cannot be taken from a result is refused") {
  for (const char* value :
       {"0.5", "{}", R"({"slot":"a"})", R"({"factor":1})", R"({"slot":"","factor":1})",
        R"({"slot":"a","factor":"1"})", R"({"slot":1,"factor":1})",
        R"({"slot":"a","factor":1,"heads":0})", R"({"slot":"a","factor":1,"heads":-1})",
        R"({"slot":"a","factor":1,"heads":1.5})", R"({"slot":"a","factor":1,"head":1})"}) {
    INFO(value);
    CHECK(refused_call(call_with(value), {"minus", "\"slot\": NAME", "got ", "--as minus=VALUE"}) ==
          "");
  }
  CHECK(refused_call(call_with(R"({"slot":"a","factor":1})").version(1),
                     {"minus", "is a fact", "attnscope-capture/2"}) == "");
}

TEST_CASE("an option tells what is taken from a result, or leaves it out") {
  const TemporaryFolder folder;
  const std::string path = folder / "call.safetensors";
  call_with(R"({"slot":"attn.2","factor":0.5})").write(path);
  FactOverrides overrides;
  overrides.told = {{"minus", R"({"slot":"other","factor":2})"}};
  const Capture told = Capture::open(path, overrides);
  CHECK(minus_of(told.calls().front())->slot == "other");
  CHECK(minus_of(told.calls().front())->factor == 2);
  overrides.told = {{"minus", "none"}};
  CHECK_FALSE(minus_of(Capture::open(path, overrides).calls().front()));
}
