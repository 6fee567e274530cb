#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/commands/command_actions.h"
#include "viewer/view/maps/head_tracks.h"
#include "viewer/view/maps/token_groups.h"
#include "viewer/view/view_history.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

ViewLimits one_call(bool computed = true) {
  CallLimits call;
  call.rows = call.cols = 100;
  call.batch = 1;
  call.heads = 2;
  ViewLimits limits;
  limits.calls = {call};
  limits.computed = computed;
  return limits;
}

}  // namespace

TEST_CASE("every token is in one pixel of a track where pixels are the larger") {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::sin(i * 0.7) * i);
  values[500] = kNone;
  for (const int64_t pixels : {1, 7, 333, 1000}) {
    const std::vector<TrackBin> bins = track_bins(values, 0, 1000, pixels);
    REQUIRE(static_cast<int64_t>(bins.size()) == pixels);
    int64_t count = 0;
    double sum = 0, low = 1e9, high = -1e9;
    for (const TrackBin& bin : bins) {
      if (bin.count == 0) continue;
      count += bin.count;
      sum += bin.mean * static_cast<double>(bin.count);
      low = std::min(low, bin.low);
      high = std::max(high, bin.high);
      CHECK(bin.low <= bin.mean);
      CHECK(bin.mean <= bin.high);
    }
    double expected = 0, least = 1e9, most = -1e9;
    for (const double value : values) {
      if (std::isnan(value)) continue;
      expected += value;
      least = std::min(least, value);
      most = std::max(most, value);
    }
    CHECK(count == 999);
    CHECK(sum == Approx(expected).margin(1e-6));
    CHECK(low == least);
    CHECK(high == most);
  }
}

TEST_CASE("a track's pixels are in line with the view, also beyond the map and within a token") {
  const std::vector<double> values{1, 2, kNone, 4};
  // Half a token a pixel, from one before the first token to one behind the last.
  const std::vector<TrackBin> bins = track_bins(values, -1, 5, 12);
  const std::vector<int64_t> counts{0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0};
  const std::vector<double> means{0, 0, 1, 1, 2, 2, 0, 0, 4, 4, 0, 0};
  for (size_t i = 0; i < bins.size(); ++i) {
    INFO(i);
    CHECK(bins[i].count == counts[i]);
    CHECK(bins[i].mean == means[i]);
  }
  CHECK(track_bins(values, 0, 4, 0).empty());
  CHECK(track_bins({}, 0, 4, 2) == std::vector<TrackBin>(2));
  // Two tokens and a bit: pixel 1 begins in token 2.
  const std::vector<TrackBin> wide = track_bins(values, 0.5, 4.5, 2);
  CHECK(wide[0] == TrackBin{1, 2, 1.5, 2});
  CHECK(wide[1] == TrackBin{4, 4, 4, 1});
}

TEST_CASE("a track's axis goes from the least to the greatest number, masses by the logarithm") {
  const TrackRange linear = track_range(std::vector<double>{3, kNone, -1, 2}, false);
  CHECK(linear.low == -1);
  CHECK(linear.high == 3);
  CHECK(linear.share(1) == 0.5);
  CHECK(linear.share(9) == 1);
  const TrackRange mass = track_range(std::vector<double>{0, 1e-4, 1e-2}, true);
  CHECK(mass.low == 1e-4);
  CHECK(mass.share(1e-3) == Approx(0.5));
  CHECK(mass.share(0) == 0);
  CHECK(track_range(std::vector<double>{1e-30, 1}, true).low == Approx(1e-6));
  CHECK(track_range(std::vector<double>{kNone}, false).empty);
  CHECK(track_range(std::vector<double>{0, 0}, true).empty);
  CHECK(track_range(std::vector<double>{2, 2}, false).share(2) == 0.5);
}

TEST_CASE("tracks are part of the state: undone, kept, gone through by keys, none of an export") {
  const ViewLimits limits = one_call();
  const std::vector<MapSource> calls(1);
  const HeadPicker picker(calls);
  ViewHistory history(opened_view(limits));
  const auto press = [&](CommandId command) {
    const auto action = command_action(command, history.now(), picker);
    REQUIRE(action);
    history.apply(*action, limits, 0);
  };
  std::vector<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    press(CommandId::next_row_track);
    seen.emplace_back(row_track_name(history.now().tracks.rows));
  }
  CHECK(seen == std::vector<std::string>{"entropy", "lse", "text", "off"});
  press(CommandId::next_key_track);
  CHECK(history.now().tracks.keys == KeyTrack::mass);
  REQUIRE(history.undo());
  CHECK(history.now().tracks.keys == KeyTrack::off);
  REQUIRE(history.undo());
  CHECK(history.now().tracks.rows == RowTrack::text);

  const ViewLimits read = one_call(false);
  const action::SetTracks wish{{RowTrack::entropy, KeyTrack::off}};
  CHECK(has(usage_text([&] { apply_action(opened_view(read), wish, read); }),
            "track: an export has no sums"));
  CHECK_FALSE(apply_action(opened_view(read), action::SetTracks{}, read).tracks.any());
}

TEST_CASE("groups of tokens are the text and the frames, in the order of the sequence") {
  const TokenGrid before = TokenGrid::video(28, {4, 2, 3}, 4, TextPlace::start);
  const std::vector<TokenGroup> groups = token_groups(before);
  REQUIRE(groups.size() == 5);
  CHECK(groups[0] == TokenGroup{0, {0, 4}, "text"});
  CHECK(groups[1] == TokenGroup{1, {4, 10}, "t0"});
  CHECK(groups[4] == TokenGroup{4, {22, 28}, "t3"});
  const std::vector<TokenGroup> after =
      token_groups(TokenGrid::video(28, {4, 2, 3}, 4, TextPlace::end));
  CHECK(after.front() == TokenGroup{1, {0, 6}, "t0"});
  CHECK(after.back() == TokenGroup{0, {24, 28}, "text"});
  const std::vector<TokenGroup> bare =
      token_groups(TokenGrid::video(24, {4, 2, 3}, 0, TextPlace::none));
  CHECK(bare.size() == 4);
  CHECK(bare.front().name == "t0");
}

TEST_CASE("the frames' pane is part of the state, and shown where it is maximised") {
  const ViewLimits limits = one_call();
  ViewState state = apply_action(opened_view(limits), action::Maximise{ViewPane::frames}, limits);
  CHECK(state.show_frames);
  CHECK(state.maximised == ViewPane::frames);
  state = apply_action(state, action::Switch{&ViewState::show_frames, false}, limits);
  CHECK_FALSE(state.maximised);
  const ViewLimits read = one_call(false);
  CHECK(has(usage_text(
                [&] { apply_action(opened_view(read), action::Maximise{ViewPane::frames}, read); }),
            "frames on: an export has no sums"));
}
