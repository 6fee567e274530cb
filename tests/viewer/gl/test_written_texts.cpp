// The texts in the window, word for word. Needs a display: run by ctest under xvfb-run.
#include <algorithm>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const WindowSize kUsual{1280, 800};

/// The first text of the last frame that holds `part`.
std::optional<WrittenText> written(const HiddenApp& hidden, const std::string& part) {
  const std::vector<WrittenText>& texts = hidden.app.labels().texts();
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const WrittenText& text) {
    return text.whole.find(part) != std::string::npos;
  });
  return found == texts.end() ? std::nullopt : std::optional(*found);
}

/// Turns the wheel over a place of the window.
void wheel(HiddenApp& hidden, float x, float y, int notches) {
  hidden.app.mouse().wheel(x, y, notches);
  hidden.settle();
}

void show_everything(HiddenApp& hidden) {
  hidden.app.act(action::SetAtlas{{.shown = true, .sort = "effective_keys"}});
  hidden.app.act(action::SetWords{{.shown = true}});
  hidden.app.act(action::SetTracks{{RowTrack::text, KeyTrack::mass}});
  hidden.app.act(action::Switch{&ViewState::show_frames, true});
  hidden.app.act(action::SetMask{{.shown = true, .text = "topk:block=32,keep=0.2", .lost = true}});
}

}  // namespace

TEST_CASE("the rows of a mask's pane that have no room are reached by its scroll bar") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.act(action::SetMask{{.shown = true, .text = "topk:block=32,keep=0.2", .lost = true}});
  REQUIRE(hidden.wait_for(WaitFor::mask));
  hidden.settle();
  const auto header = hidden.app.labels().find("Mask/Header");
  REQUIRE(header);
  CHECK(written(hidden, "density"));
  for (int turns = 0; turns < 20 && !written(hidden, "output error"); ++turns) {
    wheel(hidden, header->x0 + 40, header->y1 + 60, -1);
  }
  REQUIRE(written(hidden, "oracle of this density"));
  REQUIRE(written(hidden, "output error"));
  wheel(hidden, header->x0 + 40, header->y1 + 60, -20);
  // All of the last row is seen, above the next pane.
  CHECK(written(hidden, "output error")->rect.y1 <= 800 - 28);
  wheel(hidden, header->x0 + 40, header->y1 + 60, 20);
  REQUIRE(hidden.app.labels().find("Mask/Pattern"));
  CHECK(hidden.app.labels().find("Mask/Pattern")->y0 > header->y1);
}

TEST_CASE("what is said of the words stands below them where their pane is low") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size({800, 600}));
  hidden.app.act(action::SetAtlas{{.shown = true}});
  hidden.app.act(action::SetWords{{.shown = true}});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  const auto header = hidden.app.labels().find("Words/Header");
  REQUIRE(header);
  const float x = header->x0 + 40, y = header->y1 + 70;
  bool bars = written(hidden, "bars to").has_value();
  for (int turns = 0; turns < 20; ++turns) {
    wheel(hidden, x, y, -1);
    bars = bars || written(hidden, "bars to").has_value();
  }
  CHECK(bars);
}

TEST_CASE("the foot of the words is of two lines at most, and tells the rest under the mouse") {
  HiddenApp hidden(true, hidden_window(), first_settings());
  hidden.open_sample();
  for (const bool special : {true, false}) {
    for (const WindowSize size : {kUsual, WindowSize{1920, 1080}}) {
      REQUIRE(hidden.force_size(size));
      hidden.app.act(action::SetWords{{.shown = true, .special = special, .chosen = {1, 2}}});
      hidden.app.act(action::PickQuery{{{200}}});
      REQUIRE(hidden.wait_for(WaitFor::exact));
      hidden.settle();
      const auto foot = hidden.app.labels().find("Words/Foot");
      REQUIRE(foot);
      CHECK(foot->height() <= 2 * (hidden.window.fonts().secondary->FontSize + 3));
      CHECK(written(hidden, special ? "\u00b7 special " : "without 5 special"));
      CHECK_FALSE(written(hidden, "softmax over all keys\n"));
      hidden.app.mouse().hover(foot->x0 + 40, foot->y0 + 4);
      hidden.settle();
      CHECK(written(hidden, "softmax over all keys\n"));
      hidden.app.mouse().hover(2, 2);
      hidden.settle();
    }
  }
}

TEST_CASE("all keys stand in a usual window, none of their lines cut") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.press("?");
  const auto panel = hidden.app.labels().find("Help/Panel");
  REQUIRE(panel);
  int lines = 0;
  for (const char* text :
       {"pick the token beside, above or below", "command palette: search and do",
        "give up a drag, or lead back: from one pane, words, the query",
        "zoom in; on a pane's header: that pane alone", "Esc or a click closes"}) {
    INFO(text);
    const auto line = written(hidden, text);
    REQUIRE(line);
    CHECK_FALSE(line->cut);
    CHECK(line->rect.y1 <= panel->y1);
    CHECK(line->rect.x1 <= panel->x1);
  }
  for (const WrittenText& text : hidden.app.labels().texts()) {
    if (text.rect.y0 < panel->y0 || text.rect.y1 > panel->y1) continue;
    lines += text.cut ? 0 : 1;
  }
  CHECK(lines > 120);
  CHECK(hidden.lost_texts() == "");
}

TEST_CASE("cells of frames with room have their mass in per cent, as the tooltip has it") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.act(action::Switch{&ViewState::show_frames, true});
  hidden.app.act(action::Maximise{ViewPane::frames});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  CHECK(written(hidden, "numbers in %"));
  // A frame's row of numbers adds up to all of the mass.
  double sum = 0;
  for (const char* key : {"text", "t0", "t1", "t2", "t3", "t4", "t5", "t6"}) {
    const auto cell = hidden.app.labels().find(std::string("Frames/t2/") + key);
    REQUIRE(cell);
    for (const WrittenText& text : hidden.app.labels().texts()) {
      const bool inside =
          cell->contains((text.rect.x0 + text.rect.x1) / 2, (text.rect.y0 + text.rect.y1) / 2);
      if (inside) sum += std::stod(text.whole);
    }
  }
  CHECK(sum == Approx(100).margin(1.5));
  hidden.app.act(action::Maximise{});
  hidden.settle();
  CHECK_FALSE(written(hidden, "numbers in %"));
}

TEST_CASE("no edge cuts a text without a sign where everything is shown") {
  HiddenApp hidden;
  hidden.open_sample();
  show_everything(hidden);
  REQUIRE(hidden.force_size(kUsual));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  REQUIRE(hidden.wait_for(WaitFor::atlas));
  for (const WindowSize size :
       {kUsual, WindowSize{800, 600}, WindowSize{500, 400}, WindowSize{320, 240}}) {
    REQUIRE(hidden.force_size(size));
    INFO(size.width << "x" << size.height << "\n" << hidden.lost_texts());
    CHECK(hidden.lost_texts().empty());
  }
  REQUIRE(hidden.force_size(kUsual));
  hidden.settle();
  const auto sort = written(hidden, "effective keys");
  REQUIRE(sort);
  CHECK_FALSE(sort->cut);
}

TEST_CASE("ends of an axis keep their zero, and frames their first name beside the text") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.act(action::SetTracks{{RowTrack::text, KeyTrack::off}});
  hidden.app.act(action::Switch{&ViewState::show_frames, true});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  for (const WrittenText& text : hidden.app.labels().texts()) {
    INFO(text.whole);
    CHECK_FALSE(text.whole.starts_with("."));
  }
  const auto cell = hidden.app.labels().find("Frames/text/t0");
  REQUIRE(cell);
  // Above the cells stand the names of the keys' frames, t0 among them.
  int above = 0;
  for (const WrittenText& text : hidden.app.labels().texts()) {
    const bool near = text.rect.y1 <= cell->y0 + 4 && text.rect.y0 >= cell->y0 - 24;
    above += near && (text.whole == "t0" || text.whole == "text") ? 1 : 0;
  }
  CHECK(above == 2);
}

TEST_CASE("numbers in narrow cells are in a power of ten that the legend tells") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.act(action::SetAtlas{{.shown = true}});
  hidden.app.act(action::SetRect{{0, 16, 0, 16}});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  const auto legend = written(hidden, "numbers \u00d710");
  REQUIRE(legend);
  const auto map = hidden.app.labels().find("Matrix/Map");
  REQUIRE(map);
  int numbers = 0, digits = 0;
  for (const WrittenText& text : hidden.app.labels().texts()) {
    const bool inside =
        map->contains((text.rect.x0 + text.rect.x1) / 2, (text.rect.y0 + text.rect.y1) / 2);
    if (!inside) continue;
    INFO(text.whole);
    CHECK(text.whole.find('e') == std::string::npos);
    ++numbers;
    const size_t first = text.whole.find_first_of("123456789");
    if (first == std::string::npos) continue;
    digits += std::count_if(text.whole.begin() + static_cast<std::ptrdiff_t>(first),
                            text.whole.end(), [](char c) { return c != '.'; }) >= 2
                  ? 1
                  : 0;
  }
  CHECK(numbers > 100);
  CHECK(digits > numbers * 9 / 10);
  // Cells in which two digits have no room have none.
  hidden.app.act(action::SetRect{{0, 64, 0, 64}});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  CHECK_FALSE(written(hidden, "numbers \u00d710"));
}

TEST_CASE("heads and map say that they are being computed, and have no bar meanwhile") {
  HiddenApp hidden;
  REQUIRE(hidden.force_size(kUsual));
  hidden.open_sample();
  hidden.app.act(action::SetAtlas{{.shown = true}});
  bool computing = false;
  const double limit = hidden.app.seconds() + 60;
  while (!hidden.app.reached(WaitFor::atlas) && hidden.app.seconds() < limit) {
    hidden.app.step(0);
    computing = computing || written(hidden, "thumbnails are being computed").has_value();
    CHECK_FALSE(written(hidden, "nothing to scale"));
  }
  CHECK(computing);
  hidden.settle();
  CHECK_FALSE(written(hidden, "being computed"));
  CHECK(written(hidden, "weight of"));
}

TEST_CASE("a sample is never called one of 1 row") {
  const MapSource call;
  SeenExactness seen{true, false, 0, 0, 1, false};
  CHECK(resolution_text(seen, call, Pool::max) == "sampled rows");
  seen.failed = true;
  CHECK(resolution_text(seen, call, Pool::max) == "sampled rows, the rest failed");
  seen = {true, false, 3, 3, 2, false};
  CHECK(resolution_text(seen, call, Pool::max) == "sampled 2 of 8 rows");
  seen = {true, true, 0, 0, 0, false};
  CHECK(resolution_text(seen, call, Pool::max) == "exact");
}

TEST_CASE("a right click on a head makes it side B, and both sides have their names at once") {
  HiddenApp hidden(false);
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.act(action::SetAtlas{{.shown = true}});
  REQUIRE(hidden.wait_for(WaitFor::atlas));
  REQUIRE(hidden.wait_for(WaitFor::exact));
  GLFWwindow* const handle = glfwGetCurrentContext();
  const GLFWcursorposfun moved = glfwSetCursorPosCallback(handle, nullptr);
  glfwSetCursorPosCallback(handle, moved);
  const GLFWmousebuttonfun button = glfwSetMouseButtonCallback(handle, nullptr);
  glfwSetMouseButtonCallback(handle, button);
  const HeadId before = hidden.state().head;
  const auto cell = hidden.app.labels().find("Atlas/L3/H2");
  REQUIRE(cell);
  moved(handle, (cell->x0 + cell->x1) / 2, (cell->y0 + cell->y1) / 2);
  hidden.settle();
  button(handle, GLFW_MOUSE_BUTTON_RIGHT, GLFW_PRESS, 0);
  button(handle, GLFW_MOUSE_BUTTON_RIGHT, GLFW_RELEASE, 0);
  hidden.settle();
  REQUIRE(hidden.state().other);
  CHECK(hidden.state().head == before);
  // The mouse is still there.
  const auto names = written(hidden, "A: ");
  REQUIRE(names);
  INFO(names->whole);
  const size_t b = names->whole.find("B: ");
  REQUIRE(b != std::string::npos);
  CHECK(names->whole.substr(0, b).find("A: L0 H0 \u00b7 step 10") != std::string::npos);
  CHECK(names->whole.substr(b).find("B: L3 H2 \u00b7 step 10") != std::string::npos);
  const auto side = [&](const char* label) {
    const auto rect = hidden.app.labels().find(label);
    REQUIRE(rect);
    for (const WrittenText& text : hidden.app.labels().texts()) {
      if (text.rect.x0 == rect->x0 && text.rect.y0 == rect->y0) return text.whole;
    }
    return std::string("none");
  };
  CHECK(side("Toolbar/Layer") == "0");
  CHECK(side("B/Layer") == "3");
  CHECK(side("B/Head") == "2");
}

TEST_CASE("the button of side B compares with another head") {
  HiddenApp hidden;
  hidden.open_sample();
  REQUIRE(hidden.force_size(kUsual));
  REQUIRE(hidden.wait_for(WaitFor::picture));
  hidden.click("Toolbar/B");
  REQUIRE(hidden.state().other);
  CHECK(hidden.state().other->head != hidden.state().head);
  CHECK(hidden.app.document()->picker.values(hidden.state().other->head).layer == 1);
}

TEST_CASE("bars of the tokens of cross attention are as long as their weights, and end at 1") {
  const TemporaryFolder folder;
  ReferenceCall({1, 1, 1, 12, 30, 8}, 5).write(folder.path() / "cross.safetensors");
  ReferenceCall({1, 1, 1, 1, 1, 8}, 5).write(folder.path() / "one.safetensors");
  HiddenApp hidden;
  REQUIRE(hidden.force_size(kUsual));
  hidden.app.open(folder.path() / "cross.safetensors");
  hidden.app.act(action::PickQuery{{{3}}});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  std::vector<double> row = ReferenceCall({1, 1, 1, 12, 30, 8}, 5).row(0, 0, 3);
  std::sort(row.begin(), row.end(), std::greater<>());
  const auto first = hidden.app.labels().find("Query/Bar 0");
  REQUIRE(first);
  for (const int i : {1, 2, 3, 5}) {
    const auto bar = hidden.app.labels().find("Query/Bar " + std::to_string(i));
    REQUIRE(bar);
    const auto at = static_cast<size_t>(i);
    CHECK(static_cast<double>(bar->width()) ==
          Approx(static_cast<double>(first->width()) * row[at] / row[0]).margin(1.5));
  }
  CHECK(written(hidden, "bars from 0 to"));
  hidden.app.open(folder.path() / "one.safetensors");
  hidden.app.act(action::PickQuery{{{0}}});
  REQUIRE(hidden.wait_for(WaitFor::exact));
  hidden.settle();
  REQUIRE(hidden.app.colours());
  CHECK(hidden.app.colours()->scale.range().high == 1);
}
