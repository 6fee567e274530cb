#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Two steps with different layers, self and cross calls; the branches in files of their own.
HeadPicker uneven() {
  std::vector<MapSource> calls;
  for (const char* branch : {"cond", "uncond"}) {
    const auto add = [&](int64_t step, int64_t layer, CallKind kind, std::vector<int64_t> heads) {
      MapSource call;
      call.step = step;
      call.layer = layer;
      call.kind = kind;
      call.branches = {branch};
      call.batch = {0};
      call.heads = std::move(heads);
      calls.push_back(std::move(call));
    };
    add(0, 2, CallKind::self, {0, 1, 2, 3, 4, 5, 6, 7});
    add(0, 2, CallKind::cross, {0, 1, 2, 3, 4, 5, 6, 7});
    add(0, 5, CallKind::self, {0, 1, 2, 3});
    add(7, 3, CallKind::self, {0, 1, 2, 3, 4, 5, 6, 7});
  }
  return HeadPicker(std::move(calls));
}

}  // namespace

TEST_CASE("heads are found by what was recorded") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const HeadPicker picker(map_sources(Capture::open(folder.path())));
  HeadId head;
  CHECK(picker.values(head) == HeadValues{0, 1, CallKind::joint, "uncond", 0, 0});
  head = picker.select(head, HeadAxis::step, "10");
  head = picker.select(head, HeadAxis::layer, "3");
  head = picker.select(head, HeadAxis::head, "2");
  head = picker.select(head, HeadAxis::branch, "cond");
  CHECK(head == HeadId{3, 1, 2});
  CHECK(picker.values(head) == HeadValues{10, 3, CallKind::joint, "cond", 1, 2});
  CHECK(picker.title(head) == "step 10 · layer 3 · cond · item 1 · head 2");
  CHECK(picker.titled(picker.title(head)) == head);
  CHECK(picker.short_title(head) == "L3 H2 · step 10 · cond · item 1");
  CHECK_FALSE(picker.titled("step 10 · layer 3 · cond · item 1 · head 22"));
  CHECK_FALSE(picker.titled("head 2"));
  head = picker.select(head, HeadAxis::batch, "0");
  CHECK(picker.values(head).branch == "uncond");
  CHECK(picker.find({10, 1, CallKind::joint, "cond", 1, 1}) == HeadId{2, 1, 1});
  CHECK(picker.choices(head, HeadAxis::layer) == std::vector<std::string>{"1", "3"});
  CHECK(picker.choices(head, HeadAxis::branch) == std::vector<std::string>{"uncond", "cond"});
  CHECK(picker.choices(head, HeadAxis::head) == std::vector<std::string>{"0", "1", "2"});
  CHECK(picker.choices(head, HeadAxis::batch).size() == 2);
}

TEST_CASE("values that do not exist are refused with those that do") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const HeadPicker picker(map_sources(Capture::open(folder.path())));
  const auto refused = [&](HeadAxis axis, const char* value) {
    return usage_text([&] { picker.select({}, axis, value); });
  };
  CHECK(refused(HeadAxis::step, "7") == "step 7: not in this capture (it has 0, 10)");
  CHECK(refused(HeadAxis::layer, "0") == "layer 0: not in this capture (it has 1, 3)");
  CHECK(refused(HeadAxis::head, "3") == "head 3: not in this call (it has 0-2)");
  CHECK(refused(HeadAxis::head, "-1") == "head -1: not in this call (it has 0-2)");
  CHECK(refused(HeadAxis::batch, "2") == "batch 2: not in this call (it has 0-1)");
  CHECK(refused(HeadAxis::layer, "two") == "layer two: expected a whole number, one of 1, 3");
  CHECK(refused(HeadAxis::branch, "cnd") ==
        "branch cnd: not in this capture, did you mean cond? (it has uncond, cond)");
  CHECK(picker.values(picker.select({}, HeadAxis::layer, "03")).layer == 3);
  const auto lost = [&](HeadValues values) { return usage_text([&] { picker.find(values); }); };
  CHECK(has(lost({5, 1, CallKind::joint, "cond", 1, 0}), "step 5"));
  CHECK(has(lost({0, 1, CallKind::cross, "cond", 1, 0}), "kind cross"));
  CHECK(has(lost({0, 1, CallKind::joint, "cond", 0, 0}), "of branch uncond, not cond"));
  CHECK(has(lost({0, 1, CallKind::joint, "cond", 1, 9}), "head 9"));
}

TEST_CASE("keys go to the next value and stop at the last") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const HeadPicker picker(map_sources(Capture::open(folder.path())));
  const HeadId start{1, 1, 1};
  CHECK(picker.move(start, HeadAxis::head, 1) == HeadId{1, 1, 2});
  CHECK(picker.move(start, HeadAxis::head, 5) == HeadId{1, 1, 2});
  CHECK(picker.move(start, HeadAxis::head, -1) == HeadId{1, 1, 0});
  CHECK(picker.move({1, 1, 0}, HeadAxis::head, -1) == HeadId{1, 1, 0});
  CHECK(picker.move(start, HeadAxis::layer, -1) == HeadId{0, 1, 1});
  CHECK(picker.move(start, HeadAxis::layer, 1) == start);
  CHECK(picker.move(start, HeadAxis::step, 1) == HeadId{3, 1, 1});
  CHECK(picker.move({3, 1, 1}, HeadAxis::step, INT64_MAX) == HeadId{3, 1, 1});
  CHECK(picker.values(picker.move(start, HeadAxis::branch, -1)).branch == "uncond");
}

TEST_CASE("where not every combination was recorded the nearest call is taken") {
  const HeadPicker picker = uneven();
  const HeadId start = picker.find({0, 2, CallKind::self, "uncond", 0, 6});
  CHECK(start == HeadId{4, 0, 6});
  // Layer 2 is not in step 7: layer 3 is nearest. The branch stays.
  CHECK(picker.values(picker.select(start, HeadAxis::step, "7")) ==
        HeadValues{7, 3, CallKind::self, "uncond", 0, 6});
  CHECK(picker.values(picker.select(start, HeadAxis::layer, "3")) ==
        HeadValues{7, 3, CallKind::self, "uncond", 0, 6});
  // A call with fewer heads has its last one.
  CHECK(picker.values(picker.select(start, HeadAxis::layer, "5")) ==
        HeadValues{0, 5, CallKind::self, "uncond", 0, 3});
  const HeadId cross = picker.select(start, HeadAxis::kind, "cross");
  CHECK(picker.values(cross) == HeadValues{0, 2, CallKind::cross, "uncond", 0, 6});
  CHECK(picker.values(picker.select(cross, HeadAxis::branch, "cond")) ==
        HeadValues{0, 2, CallKind::cross, "cond", 0, 6});
  CHECK(picker.title(cross) == "step 0 · layer 2 · cross · uncond · head 6");
  CHECK(has(usage_text([&] {
              picker.find({7, 5, CallKind::self, "cond", 0, 0});
            }),
            "not together"));
}

TEST_CASE("blocks and slots choose heads, also where there is no layer") {
  std::vector<MapSource> calls;
  const auto add = [&](int64_t layer, const char* block, const char* slot) {
    MapSource call;
    call.layer = layer;
    call.place = {block, slot};
    call.branches = {"all"};
    call.batch = {0};
    call.heads = {0, 1, 2};
    calls.push_back(std::move(call));
  };
  add(kNoLayer, "refiner.0", "attn");
  for (const int64_t layer : {0, 1}) {
    const std::string block = "blocks." + std::to_string(layer);
    add(layer, block.c_str(), "attn1");
    add(layer, block.c_str(), "audio_attn1");
  }
  const HeadPicker picker(calls);
  CHECK(picker.leaves_main_stack());
  CHECK(picker.choices({}, HeadAxis::layer) == std::vector<std::string>{"0", "1"});
  CHECK(picker.choices({}, HeadAxis::slot) ==
        std::vector<std::string>{"attn", "attn1", "audio_attn1"});
  CHECK(picker.title({}) == "step 0 · refiner.0 · attn · all · head 0");
  CHECK(picker.short_title({}) == picker.title({}));
  HeadId head = picker.select({}, HeadAxis::slot, "audio_attn1");
  CHECK(picker.title(head) == "step 0 · layer 0 · audio_attn1 · all · head 0");
  // Of the next layer the same slot.
  head = picker.move(head, HeadAxis::layer, 1);
  CHECK(picker.values(head).place == ModelPlace{"blocks.1", "audio_attn1"});
  head = picker.select(head, HeadAxis::block, "refiner.0");
  CHECK(head.call == 0);
  HeadValues wanted{0, 1, CallKind::self, "all", 0, 2, {"blocks.1", "attn1"}};
  CHECK(picker.values(picker.find(wanted)) == wanted);
  wanted.place.block = "blocks.0";
  CHECK(has(usage_text([&] { picker.find(wanted); }), "not together in this capture"));
  wanted.place.block = "blocks.7";
  CHECK(has(usage_text([&] { picker.find(wanted); }), "block blocks.7: not in this capture"));
}

TEST_CASE("chunks of a stream choose heads") {
  std::vector<MapSource> calls;
  for (const int64_t layer : {0, 1}) {
    for (const int64_t chunk : {0, 1, 3}) {
      MapSource call;
      call.layer = layer;
      call.place = {"", "", chunk};
      call.branches = {"all"};
      call.batch = {0};
      call.heads = {0};
      calls.push_back(std::move(call));
    }
  }
  const HeadPicker picker(calls);
  CHECK(picker.choices({}, HeadAxis::chunk) == std::vector<std::string>{"0", "1", "3"});
  HeadId head = picker.select({}, HeadAxis::chunk, "3");
  CHECK(picker.title(head) == "step 0 · chunk 3 · layer 0 · all · head 0");
  // Of the next layer the same piece.
  head = picker.move(head, HeadAxis::layer, 1);
  CHECK(picker.values(head).place.chunk == 3);
  head = picker.move(head, HeadAxis::chunk, -1);
  CHECK(picker.values(head) == HeadValues{0, 1, CallKind::self, "all", 0, 0, {"", "", 1}});
  CHECK(picker.values(picker.find(picker.values(head))).place.chunk == 1);
  CHECK(usage_text([&] { picker.select(head, HeadAxis::chunk, "2"); }) ==
        "chunk 2: not in this capture (it has 0-1, 3)");
}

TEST_CASE("titles leave out what nobody recorded, which is chosen as 0") {
  MapSource call;
  call.branches = {"all"};
  call.batch = {0};
  call.heads = {0, 1};
  call.place.unrecorded = {true, true, true};
  const HeadPicker unknown(std::vector<MapSource>{call});
  CHECK(unknown.title({0, 0, 1}) == "head 1");
  CHECK(unknown.short_title({0, 0, 1}) == "head 1");
  CHECK(unknown.select({0, 0, 1}, HeadAxis::layer, "0") == HeadId{0, 0, 1});
  call.layer = 4;
  call.place.unrecorded = {true, false, true};
  call.place.chunk = 2;
  CHECK(HeadPicker(std::vector<MapSource>{call}).title({}) == "chunk 2 · layer 4 · head 0");
}
