#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_names.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

ViewState after(const ViewState& state, const Action& action) {
  return apply_action(state, action, three_calls());
}

double height(const MapRect& rect) { return rect.q1 - rect.q0; }
double width(const MapRect& rect) { return rect.k1 - rect.k0; }

}  // namespace

TEST_CASE("a capture opens with all of its first head, and its sizes") {
  const TemporaryFolder folder;
  write_video_capture(folder);
  const ViewLimits limits = ViewLimits::of(map_sources(Capture::open(folder.path())));
  REQUIRE(limits.calls.size() == 4);
  CHECK(limits.calls[2] == CallLimits{26, 26, 2, 3, true, true, true, 2, {26, 1, 24}, {26, 1, 24}});
  CHECK(limits.has({3, 1, 2}));
  for (const HeadId head : {HeadId{4, 0, 0}, {-1, 0, 0}, {0, 2, 0}, {0, -1, 0}, {0, 0, 3}}) {
    CHECK_FALSE(limits.has(head));
  }
  CHECK(opened_view(limits).rect == MapRect{0, 26, 0, 26});
  CHECK(fit_rect(7, 9) == MapRect{0, 7, 0, 9});
  CallFile()
      .pair({1, 1, 24, 4}, {1, 1, 5, 4})
      .fact("grid", "2x3x4")
      .fact("kind", "cross")
      .write(folder.path() / "cross.safetensors");
  const ViewLimits cross = ViewLimits::of(map_sources(Capture::open(folder / "cross.safetensors")));
  CHECK(cross.calls[0] == CallLimits{24, 5, 1, 1, false, true, true, 5, {24, 1, 24}, {5, 0, 0}});
}

TEST_CASE("a view stays on the map") {
  CHECK(clamped_rect({0, 1000, 0, 1000}, 1000, 1000) == MapRect{0, 1000, 0, 1000});
  CHECK(clamped_rect({10.5, 20, 30, 39.25}, 1000, 1000) == MapRect{10.5, 20, 30, 39.25});
  // Not beyond an edge.
  CHECK(clamped_rect({-50, 50, 950, 1050}, 1000, 1000) == MapRect{0, 100, 900, 1000});
  CHECK(clamped_rect({-1e9, -1e9 + 100, 0, 100}, 1000, 1000) == MapRect{0, 100, 0, 100});
  // Four entries at least on each axis, about the middle.
  CHECK(clamped_rect({500, 501, 600, 602}, 1000, 1000) == MapRect{498.5, 502.5, 599, 603});
  CHECK(clamped_rect({0.5, 1.5, 0.5, 1.5}, 2, 1000) == MapRect{0, 2, 0, 4});
  CHECK(clamped_rect({0, 2, 0, 4}, 2, 1000) == MapRect{0, 2, 0, 4});
  // All of the map at most.
  CHECK(clamped_rect({-1500, 2500, 100, 200}, 1000, 1000) == MapRect{0, 1000, 100, 200});
  CHECK(clamped_rect({-20, 120, -20, 120}, 1000, 20) == MapRect{0, 140, 0, 20});
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const MapRect bad : {MapRect{5, 5, 0, 10},
                            {6, 5, 0, 10},
                            {0, 10, 3, 3},
                            {nan, 5, 0, 10},
                            {0, inf, 0, 10},
                            {-inf, 0, 0, 10},
                            {-1e308, 1e308, 0, 10}}) {
    CHECK(has(usage_text([&] { clamped_rect(bad, 1000, 1000); }), "Q0 < Q1"));
  }
}

TEST_CASE("clamping again changes nothing, and nothing beyond the map is seen") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> place(-3000, 3000), size(-2, 4);
  for (int i = 0; i < 2000; ++i) {
    const double q = place(random), k = place(random);
    const double h = std::pow(10, size(random)), w = std::pow(10, size(random));
    const MapRect once = clamped_rect({q, q + h, k, k + w}, 1000, 777);
    CHECK(clamped_rect(once, 1000, 777) == once);
    CHECK(height(once) == Approx(std::clamp(h, 4.0, 1000.0)));
    CHECK(width(once) == Approx(std::clamp(w, 4.0, 777.0)));
    CHECK(once.q0 >= 0);
    CHECK(once.q1 <= 1000);
    CHECK(once.k0 >= 0);
    CHECK(once.k1 <= 777);
  }
}

TEST_CASE("zooming keeps the entry under the cursor in its place, also where it is cut") {
  const ViewState fit = opened_view(three_calls());
  ViewState state = after(fit, action::ZoomAt{250, 750, 2});
  CHECK(state.rect == MapRect{125, 625, 375, 875});
  state = after(state, action::ZoomAt{250, 750, 1e9});
  CHECK(height(state.rect) == Approx(4));
  CHECK((250 - state.rect.q0) / height(state.rect) == Approx(0.25));
  CHECK((750 - state.rect.k0) / width(state.rect) == Approx(0.75));
  CHECK(after(state, action::Fit{}).rect == fit.rect);
  CHECK(after(fit, action::SetRect{{1, 11, 2, 22}}).rect == MapRect{1, 11, 2, 22});
  for (const double factor : {0.0, -1.0, std::nan("")}) {
    CHECK(has(usage_text([&] { after(fit, action::ZoomAt{0, 0, factor}); }), "above 0"));
  }
}

TEST_CASE("zooming and moving end at the edges of the map") {
  const ViewState fit = opened_view(three_calls());
  const ViewState near = after(fit, action::SetRect{{0, 10, 990, 1000}});
  for (const double factor : {1e-9, 1e-300, 1e-3}) {
    CHECK(after(near, action::ZoomAt{5, 995, factor}).rect == fit.rect);
  }
  CHECK(after(near, action::ZoomAt{5, 995, 0.5}).rect == MapRect{0, 20, 980, 1000});
  CHECK(after(fit, action::Pan{100, -200}).rect == fit.rect);
  CHECK(after(near, action::Pan{1e7, 1e7}).rect == MapRect{990, 1000, 990, 1000});
  CHECK(after(near, action::Pan{-3, 3}).rect == near.rect);
  // A map that is whole on one side goes on growing on the other.
  const ViewState band = after(fit, action::SetRect{{0, 1000, 100, 200}});
  CHECK(after(band, action::ZoomAt{500, 150, 0.5}).rect == MapRect{0, 1000, 50, 250});
}

TEST_CASE("one side can be zoomed alone") {
  const ViewState fit = opened_view(three_calls());
  const ViewState rows = after(fit, action::ZoomAt{250, 750, 2, action::MapSide::rows});
  CHECK(rows.rect == MapRect{125, 625, 0, 1000});
  CHECK(after(rows, action::ZoomAt{250, 750, 2, action::MapSide::keys}).rect ==
        MapRect{125, 625, 375, 875});
}

TEST_CASE("another head of the same size keeps view and query, another size starts anew") {
  ViewState state = opened_view(three_calls());
  state = after(state, action::SetRect{{100, 200, 300, 400}});
  state = after(state, action::PickQuery{{{999, 7, 7}}});
  CHECK(state.query == ChosenQuery{{7, 999}});
  const ViewState same = after(state, action::SelectHead{{2, 1, 3}});
  CHECK(same.head == HeadId{2, 1, 3});
  CHECK(same.rect == state.rect);
  CHECK(same.query == state.query);
  const ViewState other = after(state, action::SelectHead{{1, 0, 0}});
  CHECK(other.rect == MapRect{0, 1000, 0, 20});
  CHECK_FALSE(other.query);
  CHECK(has(usage_text([&] { after(state, action::SelectHead{{3, 0, 0}}); }), "call 3"));
}

TEST_CASE("queries are tokens of the side that is asked") {
  ViewState cross = after(opened_view(three_calls()), action::SelectHead{{1, 0, 0}});
  CHECK(after(cross, action::PickQuery{{{999}}}).query);
  CHECK(has(usage_text([&] { after(cross, action::PickQuery{{{1000}}}); }), "valid 0 to 999"));
  CHECK(has(usage_text([&] { after(cross, action::PickQuery{{{-1}}}); }), "token -1"));
  CHECK_FALSE(usage_text([&] { after(cross, action::PickQuery{}); }).empty());
  cross = after(cross, action::PickQuery{{{5}}});
  const ViewState reversed = after(cross, action::SetReverse{true});
  CHECK(reversed.reverse);
  CHECK_FALSE(reversed.query);
  CHECK(
      has(usage_text([&] { after(reversed, action::PickQuery{{{20}}}); }), "keys (valid 0 to 19"));
  CHECK(after(cross, action::SetReverse{false}).query == cross.query);
  // Of one sequence, the token stays the same.
  const ViewState joint = after(opened_view(three_calls()), action::PickQuery{{{5}}});
  CHECK(after(joint, action::SetReverse{true}).query == joint.query);
  CHECK_FALSE(after(joint, action::DropQuery{}).query);
}

TEST_CASE("products, scales and ranges go together") {
  const ViewState start = opened_view(three_calls());
  CHECK(has(usage_text([&] { after(start, action::SetRange{{false, 0, 1}}); }), "above 0"));
  CHECK(has(usage_text([&] { after(start, action::SetRange{{false, 2, 1}}); }), "below the high"));
  const ViewState ranged = after(start, action::SetRange{{false, 1e-4, 0.1}});
  CHECK(ranged.range == ColourRange{false, 1e-4, 0.1});
  CHECK(after(ranged, action::SetScale{ScaleKind::sqrt}).range == ranged.range);
  ViewState linear = after(ranged, action::SetScale{ScaleKind::linear});
  linear = after(linear, action::SetRange{{false, -1, 1}});
  CHECK(after(linear, action::SetScale{ScaleKind::symlog}).range == linear.range);
  for (const ScaleKind scale : {ScaleKind::log2, ScaleKind::sqrt}) {
    CHECK(after(linear, action::SetScale{scale}).range.automatic);
  }
  const ViewState root = after(start, action::SetScale{ScaleKind::sqrt});
  CHECK(after(root, action::SetRange{{false, 0, 1}}).range.high == 1);
  CHECK(has(usage_text([&] { after(root, action::SetRange{{false, -1, 1}}); }), "sqrt"));

  const ViewState logits = after(ranged, action::SetProduct{ViewProduct::logits});
  CHECK(logits.scale == ScaleKind::linear);
  CHECK(logits.range.automatic);
  CHECK(has(usage_text([&] { after(logits, action::SetScale{ScaleKind::log2}); }), "symlog"));
  CHECK(after(logits, action::SetProduct{ViewProduct::lift}).scale == ScaleKind::log2);
  const ViewState both = after(logits, action::SetScale{ScaleKind::symlog});
  CHECK(after(both, action::SetProduct{ViewProduct::weights}).scale == ScaleKind::symlog);
  CHECK(after(root, action::SetProduct{ViewProduct::lift}).scale == ScaleKind::sqrt);
  CHECK(after(ranged, action::SetProduct{ViewProduct::weights}).range == ranged.range);
}

TEST_CASE("the rest of the actions do what they say") {
  const ViewState start = opened_view(three_calls());
  CHECK(after(start, action::SetPool{Pool::mean}).pool == Pool::mean);
  CHECK(after(start, action::SetColormap{"magma"}).colormap == "magma");
  const std::string text = usage_text([&] { after(start, action::SetColormap{"virids"}); });
  CHECK(has(text, "did you mean viridis?"));
  CHECK(has(text, "turbo"));
  CHECK(after(start, action::SetTheme{ViewTheme::light}).theme == ViewTheme::light);
  const ViewState hidden = after(start, action::Switch{&ViewState::show_histogram, false});
  CHECK_FALSE(hidden.show_histogram);
  const ViewState alone = after(hidden, action::Maximise{ViewPane::histogram});
  CHECK(alone.show_histogram);
  CHECK(alone.maximised == ViewPane::histogram);
  CHECK_FALSE(after(alone, action::Switch{&ViewState::show_histogram, false}).maximised);
  CHECK_FALSE(after(alone, action::Maximise{}).maximised);
  CHECK(after(start, action::SetSplit{0.5f}).split_query == 0.5f);
  CHECK(after(start, action::SetSplit{0}).split_query == Approx(0.1f));
  CHECK(after(start, action::SetSplit{2}).split_query == Approx(0.9f));
  CHECK_FALSE(usage_text([&] { after(start, action::SetSplit{NAN}); }).empty());
}

TEST_CASE("of the panes below the query one is shown, before the histogram") {
  const ViewState first = opened_view(three_calls());
  CHECK(pane_below(first) == ViewPane::histogram);
  const ViewState frames = after(first, action::Switch{&ViewState::show_frames, true});
  CHECK(pane_below(frames) == ViewPane::frames);
  const ViewState mask = after(frames, action::SetMask{{.shown = true, .text = "causal"}});
  CHECK(pane_below(mask) == ViewPane::mask);
  CHECK_FALSE(mask.show_frames);
  const ViewState alone = after(mask, action::Maximise{ViewPane::mask});
  const ViewState again = after(alone, action::Switch{&ViewState::show_frames, true});
  CHECK(pane_below(again) == ViewPane::frames);
  CHECK_FALSE(again.maximised);
  CHECK(again.mask == MaskLook{.text = "causal"});
  CHECK(pane_below(after(again, action::Switch{&ViewState::show_frames, false})) ==
        ViewPane::histogram);
  const ViewState histogram = after(again, action::Switch{&ViewState::show_histogram, true});
  CHECK(pane_below(histogram) == ViewPane::histogram);
  CHECK_FALSE(histogram.show_frames);
  CHECK_FALSE(pane_below(after(histogram, action::Switch{&ViewState::show_histogram, false})));
  CHECK(pane_below(after(mask, action::Maximise{ViewPane::histogram})) == ViewPane::histogram);
}

TEST_CASE("every name is read back, and no other") {
  for (const std::string& name : product_names()) CHECK(product_name(*parse_product(name)) == name);
  for (const std::string& name : pane_names()) CHECK(pane_name(*parse_pane(name)) == name);
  for (const std::string& name : theme_names()) CHECK(theme_name(*parse_theme(name)) == name);
  CHECK(product_names().size() == 3);
  CHECK_FALSE(parse_product("Weights"));
}

TEST_CASE("a call that lacks the product shows what it has") {
  ViewLimits limits;
  limits.calls = {{10, 10, 1, 2, true}, {10, 10, 1, 2, true, false, true}};
  ViewState state = opened_view(limits);
  CHECK(state.product == ViewProduct::weights);
  state = apply_action(state, action::SelectHead{{1, 0, 1}}, limits);
  CHECK(state.product == ViewProduct::logits);
  CHECK(state.scale == ScaleKind::linear);
  CHECK(has(usage_text([&] {
              (void)apply_action(state, action::SetProduct{ViewProduct::weights}, limits);
            }),
            "there are logits only"));
  state = apply_action(state, action::SelectHead{{0, 0, 0}}, limits);
  CHECK(state.product == ViewProduct::weights);
  CHECK(state.scale == ScaleKind::log2);
  // Between calls that have both, what is shown stays.
  limits.calls[1].weights = true;
  state = apply_action(state, action::SetProduct{ViewProduct::logits}, limits);
  state = apply_action(state, action::SelectHead{{1, 0, 0}}, limits);
  CHECK(state.product == ViewProduct::logits);
}

TEST_CASE("chosen words stay with heads whose prompt has as many tokens, and go with others") {
  ViewLimits limits{{{100, 100, 1, 2, true, true, true, 8},
                     {100, 100, 1, 2, true, true, true, 8},
                     {100, 100, 1, 2, true, true, true, 4}}};
  WordsLook look;
  look.shown = true;
  look.chosen = {6, 2, 6};
  ViewState state = apply_action(opened_view(limits), action::SetWords{look}, limits);
  CHECK(state.words.chosen == std::vector<int64_t>{2, 6});
  state = apply_action(state, action::SelectHead{{1, 0, 1}}, limits);
  CHECK(state.words.chosen == std::vector<int64_t>{2, 6});
  state = apply_action(state, action::SelectHead{{2, 0, 0}}, limits);
  CHECK(state.words.chosen.empty());
  CHECK(state.words.shown);
  CHECK(usage_text([&] { apply_action(state, action::SetWords{look}, limits); }) ==
        "word 6: outside the text (valid 0 to 3)");
  // The pane that is alone is shown, and one that is hidden is not alone.
  state = apply_action(opened_view(limits), action::Maximise{ViewPane::words}, limits);
  CHECK(state.words.shown);
  look = state.words;
  look.shown = false;
  CHECK_FALSE(apply_action(state, action::SetWords{look}, limits).maximised);
}
