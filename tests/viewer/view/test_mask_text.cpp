#include "core/patterns/mask_pattern.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/maps/head_mask.h"
#include "viewer/view/mask_text.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const TokenGrid kGrid = TokenGrid::video(60, {4, 3, 5}, 0, TextPlace::start);

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  for (const MaskParameter& each : mask_parameters(text, kGrid)) names.push_back(each.name);
  return names;
}

}  // namespace

TEST_CASE("every pattern's first text can be read, and so can its parameters at their ends") {
  for (const std::string& name : mask_pattern_names()) {
    const std::string text = first_mask_text(name);
    INFO(text);
    CHECK(mask_pattern_name(text) == name);
    CHECK(mask_pattern_about(name).empty() == (name == "none"));
    check_mask_look({true, text, 128});
    for (MaskParameter each : mask_parameters(text, kGrid)) {
      CHECK(each.low < each.high);
      CHECK(each.low <= each.value);
      CHECK(each.value <= each.high);
      for (const double end : {each.low, each.high}) {
        // A pattern of no line at all is none.
        if (name == "vertical-slash" && end == 0) continue;
        each.value = end;
        const std::string moved = with_parameter(text, each);
        check_mask_look({true, moved, 128});
        bool found = false;
        for (const MaskParameter& now : mask_parameters(moved, kGrid)) {
          if (now.name == each.name) found = now.value == Approx(end).epsilon(1e-3);
        }
        CHECK(found);
      }
    }
  }
}

TEST_CASE("one number of a pattern changes, what else was written stays") {
  CHECK(with_parameter("window:64", {"", 9}) == "window:9");
  CHECK(with_parameter("spatial", {"frames", 2}) == "spatial:frames=2");
  CHECK(with_parameter("topk:block=32,keep=0.2,text=drop", {"keep", 0.25, 0, 1, false}) ==
        "topk:block=32,keep=0.25,text=drop");
  CHECK(with_parameter("topk:block=32,text=drop", {"keep", 0.5, 0, 1, false}) ==
        "topk:block=32,text=drop,keep=0.5");
  // `block` is no `blocks`.
  CHECK(with_parameter("topk:blocks=3,block=32", {"block", 64}) == "topk:blocks=3,block=64");
  CHECK(names_of("topk:blocks=3") == std::vector<std::string>{"block", "blocks"});
  CHECK(names_of("topk") == std::vector<std::string>{"block", "keep"});
  CHECK(names_of("a.npy").empty());
  CHECK(names_of("nonsense").empty());
  // 4·(2·band + 1)² ≤ 15.
  CHECK(mask_parameters("temporal", kGrid).front().value == 0);
}

TEST_CASE("a mask that cannot be read leaves the state as it is") {
  const ViewLimits limits = three_calls();
  ViewHistory history(opened_view(limits));
  history.apply(action::SetMask{{true, "window:4", 128}}, limits, 0);
  const auto refused = [&](const MaskLook& look) {
    return usage_text([&] { history.apply(action::SetMask{look}, limits, 1); });
  };
  CHECK(refused({true, "spatail", 128}).find("did you mean spatial?") != std::string::npos);
  CHECK(refused({true, "window:x", 128}).find("whole number") != std::string::npos);
  CHECK(refused({true, "a.npy", 0}).find("at least 1 token") != std::string::npos);
  CHECK(history.now().mask.text == "window:4");
  ViewLimits read = limits;
  read.computed = false;
  CHECK(usage_text([&] {
          apply_action(history.now(), action::SetMask{{true, "causal", 128}}, read);
        }).find("export") != std::string::npos);
  // A slider that is dragged is one step of undo.
  for (int i = 5; i < 15; ++i) {
    const std::string text = "window:" + std::to_string(i);
    history.apply(action::SetMask{{true, text, 128}, true}, limits, 10 + i * 0.01);
  }
  CHECK(history.undo());
  CHECK(history.now().mask.text == "window:4");
  CHECK(history.undo());
  CHECK(history.now().mask == MaskLook{});
  history.apply(action::Maximise{ViewPane::mask}, limits, 20);
  CHECK(history.now().mask.shown);
  history.apply(action::SetMask{{}}, limits, 21);
  CHECK_FALSE(history.now().maximised);
}

TEST_CASE("a mask is drawn in at most 512 blocks a side") {
  CHECK(mask_block(1, 1) == 1);
  CHECK(mask_block(512, 3) == 1);
  CHECK(mask_block(513, 3) == 2);
  CHECK(mask_block(3, 17776) == 64);
  CHECK(mask_block(118800, 118800) == 256);
}
