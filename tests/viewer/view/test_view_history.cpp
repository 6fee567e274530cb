#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const ViewLimits kLimits = three_calls();

}  // namespace

TEST_CASE("steps go back and forth") {
  ViewHistory history(opened_view(kLimits));
  const ViewState start = history.now();
  CHECK_FALSE(history.can_undo());
  CHECK_FALSE(history.undo());
  history.apply(action::SetColormap{"magma"}, kLimits, 0);
  history.apply(action::SetReverse{true}, kLimits, 0.01);
  const ViewState end = history.now();
  CHECK(history.undo());
  CHECK_FALSE(history.now().reverse);
  CHECK(history.now().colormap == "magma");
  CHECK(history.undo());
  CHECK(history.now() == start);
  CHECK_FALSE(history.undo());
  CHECK(history.redo());
  CHECK(history.redo());
  CHECK(history.now() == end);
  CHECK_FALSE(history.redo());
  // Something new leaves nothing to go forth to.
  history.undo();
  history.apply(action::SetPool{Pool::mean}, kLimits, 1);
  CHECK_FALSE(history.can_redo());
  history.restart(start);
  CHECK_FALSE(history.can_undo());
  CHECK(history.now() == start);
}

TEST_CASE("what changes nothing, or fails, is no step") {
  ViewHistory history(opened_view(kLimits));
  history.apply(action::SetColormap{"viridis"}, kLimits, 0);
  history.apply(action::Fit{}, kLimits, 1);
  CHECK_FALSE(history.can_undo());
  CHECK_FALSE(usage_text([&] { history.apply(action::SetColormap{"?"}, kLimits, 2); }).empty());
  CHECK_FALSE(history.can_undo());
}

TEST_CASE("moves of one gesture are one step") {
  ViewHistory history(opened_view(kLimits));
  const ViewState start = history.now();
  history.apply(action::ZoomAt{500, 500, 2}, kLimits, 0);
  for (int i = 1; i <= 20; ++i) history.apply(action::Pan{1, 2}, kLimits, i * 0.5);
  CHECK(history.now().rect.q0 == 270);
  const ViewState moved = history.now();
  history.apply(action::Pan{5, 0}, kLimits, 10 + kGestureGap + 0.01);
  CHECK(history.undo());
  CHECK(history.now() == moved);
  CHECK(history.undo());
  CHECK(history.now() == start);
  CHECK_FALSE(history.undo());
}

TEST_CASE("what is moved while the button is held is one step, however slow the frames are") {
  ViewHistory history(opened_view(kLimits));
  history.apply(action::ZoomAt{500, 500, 2}, kLimits, 0);
  const ViewState zoomed = history.now();
  for (int i = 0; i < 4; ++i) {
    history.hold_gesture(2.0 * i + 2, i == 0);
    history.apply(action::Pan{1, 2}, kLimits, 2.0 * i + 2);
  }
  CHECK(history.now().rect.q0 == 254);
  history.end_gesture();
  CHECK(history.undo());
  CHECK(history.now() == zoomed);
}

TEST_CASE("another action, a released button and a step back end a gesture") {
  ViewHistory history(opened_view(kLimits));
  history.apply(action::ZoomAt{500, 500, 2}, kLimits, 0);
  history.apply(action::SetPool{Pool::mean}, kLimits, 0.1);
  history.apply(action::Pan{1, 0}, kLimits, 0.2);
  history.end_gesture();
  history.apply(action::Pan{1, 0}, kLimits, 0.3);
  CHECK(history.now().rect.q0 == 252);
  history.undo();
  CHECK(history.now().rect.q0 == 251);
  history.undo();
  CHECK(history.now().rect.q0 == 250);
  CHECK(history.now().pool == Pool::mean);
  history.apply(action::Pan{1, 0}, kLimits, 0.4);
  history.undo();
  CHECK(history.now().pool == Pool::mean);
  CHECK(history.now().rect.q0 == 250);
}

TEST_CASE("a move against the edge does not swallow the step before it") {
  ViewHistory history(opened_view(kLimits));
  history.apply(action::SetRect{{0, 100, 0, 100}}, kLimits, 0);
  history.apply(action::SetPool{Pool::mean}, kLimits, 1);
  history.apply(action::Pan{-10, 0}, kLimits, 2);
  history.apply(action::Pan{10, 0}, kLimits, 2.1);
  CHECK(history.now().rect.q0 == 10);
  history.undo();
  CHECK(history.now().rect.q0 == 0);
  CHECK(history.now().pool == Pool::mean);
}

TEST_CASE("drags of the splitter and of the range are one step each") {
  ViewHistory history(opened_view(kLimits));
  const ViewState start = history.now();
  for (int i = 0; i < 10; ++i) {
    history.apply(action::SetSplit{0.4f + 0.01f * static_cast<float>(i)}, kLimits, i * 0.1);
  }
  for (int i = 0; i < 10; ++i) {
    history.apply(action::SetRange{{false, 0.1 + 0.01 * i, 1}}, kLimits, 1 + i * 0.1);
  }
  history.undo();
  CHECK(history.now().range.automatic);
  CHECK(history.now().split_query == Approx(0.49f));
  history.undo();
  CHECK(history.now() == start);
}

TEST_CASE("old steps are forgotten") {
  ViewHistory history(opened_view(kLimits));
  for (size_t i = 0; i < kHistorySteps + 50; ++i) {
    history.apply(action::SetReverse{i % 2 == 0}, kLimits, static_cast<double>(i));
  }
  size_t steps = 0;
  while (history.undo()) ++steps;
  CHECK(steps == kHistorySteps);
}

TEST_CASE("a step that something else comes in place of leaves no trace") {
  ViewHistory history(opened_view(kLimits));
  const ViewState start = history.now();
  history.take_back();
  history.apply(action::SetRect{{0, 10, 0, 10}}, kLimits, 0);
  history.end_gesture();
  history.take_back();
  CHECK(history.now() == start);
  CHECK_FALSE(history.can_undo());
  CHECK_FALSE(history.can_redo());
  // What changed nothing made no step that could be taken back.
  history.apply(action::SetRect{{0, 10, 0, 10}}, kLimits, 1);
  history.apply(action::SetRect{{0, 10, 0, 10}}, kLimits, 2);
  history.take_back();
  CHECK(history.now().rect == MapRect{0, 10, 0, 10});
}
