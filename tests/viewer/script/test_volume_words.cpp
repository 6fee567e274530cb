// The words of the volume and of the time line.
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/script/script.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

template <typename Word>
Word word_of(const char* line) {
  const ScriptWord word = parse_script_line(line);
  INFO(line);
  REQUIRE(std::holds_alternative<Word>(word));
  return std::get<Word>(word);
}

/// The look after a line of its words.
VolumeLook changed(const char* line, const VolumeLook& look) {
  ViewState state;
  state.volume = look;
  const SettingPlace place{.state = state, .of_this_head = false};
  return std::get<action::SetVolume>(word_of<word::Set>(line).change(place)).look;
}
TimelineLook changed(const char* line, const TimelineLook& look) {
  ViewState state;
  state.timeline = look;
  return std::get<action::SetTimeline>(word_of<word::Set>(line).change({.state = state})).look;
}

std::string refused(const std::string& line) {
  return usage_text([&] { parse_script(line, "a.script"); });
}

}  // namespace

TEST_CASE("words of the volume change a part of its look") {
  VolumeLook look;
  for (const char* line : {"volume on", "volume emission", "volume threshold 0.25",
                           "volume orbit -120 45.5", "volume zoom 2", "volume slice y 3"}) {
    look = changed(line, look);
    CHECK(look.shown);
  }
  CHECK(look ==
        VolumeLook{true, VolumeMode::emission, 0.25, -120, 45.5, 2, VolumeSlice{VolumeAxis::y, 3}});
  look = changed("volume slice none", look);
  CHECK_FALSE(look.slice);
  CHECK_FALSE(changed("volume off", look).shown);
  CHECK(has(refused("volume emision"),
            "a.script:1: volume emision: no such name, did you mean emission?"));
  CHECK(has(refused("volume threshold 1.5"), "volume threshold 1.5: expected 0 to 1"));
  CHECK(has(refused("volume threshold x"), "expected a number"));
  CHECK(has(refused("volume orbit 10"), "volume: expected volume orbit AZ EL, got 2 words"));
  CHECK(has(refused("volume orbit 10 91"), "elevation 91: expected -90 to 90"));
  CHECK(has(refused("volume zoom 0"), "volume zoom 0: expected 0.25 to 16"));
  CHECK(has(refused("volume slice z 1"), "volume slice z: no such name"));
  CHECK(has(refused("volume slice t"), "volume slice: expected t N"));
  CHECK(has(refused("volume slice t -1"), "planes count from 0"));
}

TEST_CASE("words of the time line change a part of its look") {
  TimelineLook look;
  for (const char* line : {"timeline text_mass", "timeline over layers", "timeline loop off",
                           "timeline speed 5", "timeline follow on"}) {
    look = changed(line, look);
  }
  CHECK(look == TimelineLook{true, "text_mass", CurveAxis::layers, false, 5, true});
  CHECK(changed("timeline none", look).metric.empty());
  CHECK_FALSE(changed("timeline off", look).shown);
  CHECK(word_of<word::Play>("play on").on);
  CHECK_FALSE(word_of<word::Play>("play off").on);
  CHECK(has(refused("timeline entropi"), "did you mean entropy?"));
  CHECK(has(refused("timeline over heads"), "(steps, layers)"));
  CHECK(has(refused("timeline speed 0"), "timeline speed 0: expected 0.1 to 30"));
  CHECK(has(refused("timeline loop maybe"), "(on, off)"));
  CHECK(has(refused("timeline over"), "expected timeline over steps|layers, got 1 word"));
  CHECK(has(refused("play fast"), "play fast: no such name"));
  CHECK(has(refused("expect playing == yes"), "(on, off)"));
  CHECK(has(refused("expect volume == flat"), "(off, max, emission)"));
}
