#include "viewer/settings/setting_lists.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/products/differences/map_difference.h"
#include "viewer/settings/head_words.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_names.h"

// Side B, and the pane that is seen alone, which may be B's.

namespace attnscope {
namespace {

using Words = ScriptArguments;

Setting other_head_setting() {
  return {.name = "b",
          .usage = "b step|layer|chunk|kind|branch|block|slot|batch|head V | b head L H | b off",
          .help =
              "which head side B is; off: there is none. Further names and values may follow, "
              "as for A",
          .least = 1,
          .most = 18,
          .second = {"step", "layer", "chunk", "kind", "branch", "block", "slot", "batch", "head",
                     "off"},
          .parse = [](Words w) -> SettingChange {
            if (w[1] == "off" && w.size() > 2) throw usage_error("b off: stands alone");
            if (w[1] == "off") return always(action::DropOther{});
            return [words = parse_head_words(w, 1)](const SettingPlace& at) -> Action {
              at.call();
              const HeadId first = first_other(at.state, *at.picker, *at.others);
              return action::SetOther{head_of(words, *at.others, first)};
            };
          },
          .value = [](const SettingPlace& at) -> std::string {
            at.call();
            if (!at.state.other) return "none";
            return other_text(at.others->values(at.state.other->head));
          },
          .lines = [](const SettingPlace& at) -> std::string {
            if (!at.state.other) return "b off\n";
            // As it is found where there is no side B yet.
            const HeadId first = at.others->nearest_to(at.picker->values(at.state.head));
            return "b " + head_line(*at.others, first, at.state.other->head);
          }};
}

/// Of a comparison; where there is none there are no lines.
std::function<std::string(const SettingPlace&)> of_other(
    std::function<std::string(const OtherSide&)> lines) {
  return [lines = std::move(lines)](const SettingPlace& at) {
    return at.state.other ? lines(*at.state.other) : std::string();
  };
}

Setting difference_setting() {
  return {.name = "difference",
          .usage = "difference off|signed|abs|logratio",
          .help = "show A - B, its size, or log2(A / B)",
          .told = difference_names(),
          .parse = [](Words w) -> SettingChange {
            return always(action::SetDifference{
                named(w[0], w[1], parse_difference(w[1]), difference_names())});
          },
          .value =
              [](const SettingPlace& at) {
                const auto& other = at.state.other;
                return std::string(difference_name(other ? other->difference : Difference::off));
              },
          // The range of the difference's colours is set while it is shown.
          .lines = of_other([](const OtherSide& other) {
            const bool shown = other.difference != Difference::off;
            return fmt::format("difference {}\n{}", difference_name(other.difference),
                               shown ? "range " + range_text(other.range) + "\n" : "");
          })};
}

std::string split_text(const OtherSide& other) {
  return other.split ? fmt::format("{}", *other.split) : "off";
}

Setting split_setting() {
  return {.name = "b_split",
          .usage = "b split SHARE|off",
          .help = "A is shown left of a line at this share of the map's width, B right of it",
          .least = 2,
          .most = 2,
          .second = {"split"},
          .parse = [](Words w) -> SettingChange {
            if (w[2] == "off") return always(action::SetSplitLine{});
            const double share = number(w, 2);
            if (!(share >= 0) || !(share <= 1)) {
              throw usage_error(
                  "b split: expected a share of the map's width from 0 to 1, or off, got " +
                  one_line(w[2]));
            }
            return always(action::SetSplitLine{static_cast<float>(share)});
          },
          .value =
              [](const SettingPlace& at) {
                return at.state.other ? split_text(*at.state.other) : "off";
              },
          .lines = of_other(
              [](const OtherSide& other) { return "b split " + split_text(other) + "\n"; })};
}

Setting locks_setting() {
  return {.usage = "b lock|release zoom|range|cursor",
          .help =
              "B has A's part of the map, the ends of A's colours, and is read where A is "
              "read; or its own",
          .least = 2,
          .most = 2,
          .second = {"lock", "release"},
          .parse = [](Words w) -> SettingChange {
            const bool on = w[1] == "lock";
            if (w[2] == "zoom") return always(action::SetLock{action::Lock::zoom, on});
            if (w[2] == "range") return always(action::SetLock{action::Lock::range, on});
            if (w[2] == "cursor") return always(action::SetLock{action::Lock::cursor, on});
            throw unknown_name("b " + w[1], w[2], {"zoom", "range", "cursor"});
          },
          .lines = of_other([](const OtherSide& other) {
            const auto word = [](bool on) { return on ? "lock" : "release"; };
            return fmt::format("b {} cursor\nb {} range\nb {} zoom\n", word(other.lock_cursor),
                               word(other.lock_range), word(other.lock_zoom));
          })};
}

Setting other_zoom_setting() {
  return {.usage = "b zoom Q0 Q1 K0 K1",
          .help = "the part of the map that B shows, where its zoom is released",
          .least = 5,
          .most = 5,
          .second = {"zoom"},
          .parse = [](Words w) { return always(action::SetOtherRect{parse_rect(w, 2)}); },
          .lines = of_other([](const OtherSide& other) {
            return other.lock_zoom ? "" : "b zoom " + rect_text(other.rect, false) + "\n";
          })};
}

Setting ranked_setting() {
  return {
      .name = "b_ranked",
      .usage = "b ranked on|off",
      .help = "list the rows that differ most",
      .least = 2,
      .most = 2,
      .second = {"ranked"},
      .told = kOnOff,
      .parse = [](Words w) { return always(action::ShowRanked{is_on(w, 2)}); },
      .value =
          [](const SettingPlace& at) { return on_off(at.state.other && at.state.other->ranked); },
      .lines = of_other(
          [](const OtherSide& other) { return "b ranked " + on_off(other.ranked) + "\n"; })};
}

Setting pane_setting() {
  std::vector<std::string> names = pane_names();
  names.emplace_back("all");
  return {.name = "pane",
          .usage = "pane NAME",
          .help =
              "show one pane alone: matrix, query, histogram, atlas, words, volume, timeline "
              "(or metrics), mask, frames, ranked; or all of them",
          .told = names,
          .in_address = true,
          .parse = [names](Words w) -> SettingChange {
            if (w[1] == "all") return always(action::Maximise{});
            if (w[1] == "metrics") return always(action::Maximise{ViewPane::timeline});
            return always(action::Maximise{named(w[0], w[1], parse_pane(w[1]), names)});
          },
          .value =
              [](const SettingPlace& at) {
                return at.state.maximised ? std::string(pane_name(*at.state.maximised)) : "all";
              }};
}

}  // namespace

std::vector<Setting> comparison_settings() {
  return {other_head_setting(), difference_setting(), split_setting(), locks_setting(),
          other_zoom_setting(), ranked_setting(),     pane_setting()};
}

}  // namespace attnscope
