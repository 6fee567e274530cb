// Calls and pictures that are added to a capture while it is open.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/capture/capture.h"
#include "io/capture/capture_growth.h"
#include "io/files/input_set.h"
#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

ReferenceCall call_of(int64_t step) {
  ReferenceCall call({1, 1, 1, 12, 12, 8}, static_cast<uint64_t>(step));
  call.fact("kind", "self").fact("step", std::to_string(step)).fact("layer", "0");
  return call;
}

void list_calls(const fs::path& folder, const std::vector<std::string>& files) {
  Json calls = Json::array();
  for (const std::string& file : files) calls.push_back({{"file", file}});
  write_bytes(folder / "new.json",
              Json{{"format", "attnscope-capture/1"}, {"calls", calls}}.dump());
  fs::rename(folder / "new.json", folder / "capture.json");
}

std::string refusal(const fs::path& folder, std::span<const Capture* const> before) {
  try {
    Capture::open_added(folder, before);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("calls that were added are opened, and no others") {
  const TemporaryFolder folder;
  const fs::path& path = folder.path();
  for (const int64_t step : {1, 2, 3})
    call_of(step).write(path / (std::to_string(step) + ".safetensors"));
  list_calls(path, {"2.safetensors"});
  const Capture first = Capture::open(path);
  REQUIRE(first.calls().size() == 1);
  const Capture* before[] = {&first, nullptr};
  CHECK_FALSE(Capture::open_added(path, std::span(before, 1)));

  list_calls(path, {"2.safetensors", "3.safetensors", "1.safetensors"});
  const auto added = Capture::open_added(path, std::span(before, 1));
  REQUIRE(added);
  REQUIRE(added->calls().size() == 2);
  CHECK(added->calls()[0].id.step == 1);
  CHECK(added->calls()[1].id.step == 3);
  CHECK(added->calls()[1].problem->num_queries() == 12);
  before[1] = &*added;
  CHECK_FALSE(Capture::open_added(path, before));
  // Pictures come by themselves when the video has been made.
  const Json root = Json::parse(read_bytes(path / "capture.json"));
  const auto with_pictures = [&](const std::vector<std::string>& names) {
    Json more = root;
    for (size_t t = 0; t < names.size(); ++t) {
      write_bytes(path / names[t], "a picture");
      more["frames"].push_back({{"file", names[t]}, {"t", t}});
    }
    write_bytes(path / "new.json", more.dump());
    fs::rename(path / "new.json", path / "capture.json");
  };
  with_pictures({"p0.png", "p1.png"});
  const auto pictured = Capture::open_added(path, before);
  REQUIRE(pictured);
  CHECK(pictured->calls().empty());
  REQUIRE(pictured->frames().size() == 2);
  CHECK(pictured->frames()[1].t == 1);
  CHECK(keeps_pictures(first, *pictured));
  const Capture* all[] = {&first, &*added, &*pictured};
  CHECK_FALSE(Capture::open_added(path, all));
  with_pictures({"p0.png", "other.png"});
  CHECK_FALSE(keeps_pictures(*pictured, *Capture::open_added(path, all)));
  // Files of calls that were read stay unchanged; the catalogue may be replaced.
  first.require_unchanged();
  added->require_unchanged();
}

TEST_CASE("a call that is added once more is refused, and files told by their names are") {
  const TemporaryFolder folder;
  const fs::path& path = folder.path();
  call_of(4).write(path / "a.safetensors");
  list_calls(path, {"a.safetensors"});
  const Capture first = Capture::open(path);
  const Capture* before[] = {&first};
  call_of(4).write(path / "b.safetensors");
  list_calls(path, {"a.safetensors", "b.safetensors"});
  const std::string problem = refusal(path, before);
  CHECK(problem.find("b.safetensors: step 4, layer 0") != std::string::npos);
  CHECK(problem.find("is also in") != std::string::npos);

  const TemporaryFolder named;
  call_of(4).write_packed(named.path());
  fs::rename(named.path() / "q.npy", named.path() / "step0_layer0_q.npy");
  fs::rename(named.path() / "k.npy", named.path() / "step0_layer0_k.npy");
  CHECK(refusal(named.path(), before).find("told by their names") != std::string::npos);
}

TEST_CASE("a growing capture's catalogue may be replaced while it is opened") {
  const TemporaryFolder folder;
  const fs::path& path = folder.path();
  call_of(0).write(path / "a.safetensors");
  list_calls(path, {"a.safetensors"});
  ReadControl control;
  control.growing = true;
  const Capture capture = Capture::open(path, {}, control);
  CHECK(capture.inputs()->states().size() == 1);  // the call's file alone
  CHECK(Capture::open(path).inputs()->states().size() == 2);
}

TEST_CASE("a capture has begun when there is something that is complete") {
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  CHECK_FALSE(has_capture_begun(dump));
  fs::create_directory(dump);
  CHECK_FALSE(has_capture_begun(dump));
  for (const char* name : {"capture.json.lock", "a.safetensors.part", "b.safetensors.held", ".x"}) {
    write_bytes(dump / name, "x");
    CHECK_FALSE(has_capture_begun(dump));
  }
  const CaptureStamp stamp = CaptureStamp::of(dump);
  CHECK(CaptureStamp::of(dump) == stamp);
  call_of(0).write(dump / "a.safetensors");
  CHECK(has_capture_begun(dump));
  CHECK(has_capture_begun(dump / "a.safetensors"));
  CHECK(can_grow(dump));
  CHECK(can_grow(dump / "capture.json"));
  CHECK_FALSE(can_grow(dump / "a.safetensors"));
  const CaptureStamp more = CaptureStamp::of(dump);
  CHECK_FALSE(more == stamp);
  list_calls(dump, {"a.safetensors"});
  CHECK_FALSE(CaptureStamp::of(dump) == more);
}
