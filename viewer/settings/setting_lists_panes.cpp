#include "viewer/settings/setting_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "viewer/settings/look_settings.h"
#include "viewer/view/heads/atlas_filter.h"
#include "viewer/view/heads/head_atlas.h"
#include "viewer/view/heads/head_list.h"
#include "viewer/view/query_words.h"
#include "viewer/view/row/prompt_words.h"
#include "viewer/view/row/words_view.h"

namespace attnscope {
namespace {

using Words = ScriptArguments;

void check_filter(const std::string& words) { AtlasFilter::parse(words); }
void check_selection(const std::string& list) { parse_head_list(list, "heads select"); }

std::vector<Setting> atlas_settings() {
  using Do = action::SetAtlas;
  constexpr auto kLook = &ViewState::atlas;
  return {look_switch<Do>({"atlas", "atlas on|off", "all heads of the step"}, "", kLook,
                          &AtlasLook::shown),
          look_text<Do>({"atlas_cells", "atlas thumbnails|class|METRIC",
                         "heads as pictures, or by their class, or by a number of stats"},
                        "", kLook, &AtlasLook::metric, "thumbnails", atlas_contents()),
          look_text<Do>({"atlas_sort", "atlas sort layers|METRIC",
                         "heads in the order of layers, or of a number"},
                        "sort", kLook, &AtlasLook::sort, "layers", atlas_metrics()),
          look_text<Do>({"atlas_filter", "atlas filter WORDS|none",
                         "heads of which the words are true: layers=0-7 temporal entropy<5"},
                        "filter", kLook, &AtlasLook::filter, "none", {}, check_filter),
          look_switch<Do>(
              {"atlas_rows", "atlas exact|sampled", "numbers of heads from all rows, or from some"},
              "", kLook, &AtlasLook::exact, {"exact", "sampled"}),
          look_text<Do>({"selected_heads", "heads select LIST|none",
                         "mark heads, which copied commands then choose: 3.1,12.7 as --pick"},
                        "select", kLook, &AtlasLook::selected, "none", {}, check_selection)};
}

SettingChange parse_slice(Words w) {
  std::optional<VolumeSlice> slice;
  if (w[2] != "none" || w.size() != 3) {
    const auto axis = parse_volume_axis(w[2]);
    if (!axis) throw unknown_name("volume slice", w[2], {"t", "y", "x", "none"});
    if (w.size() != 4) throw usage_error("volume slice: expected t N, y N, x N or none");
    slice = VolumeSlice{*axis, whole(w, 3)};
    VolumeLook probe;
    probe.slice = slice;
    check_volume_look(probe);
  }
  return [slice](const SettingPlace& at) -> Action {
    if (slice && at.of_this_head) {
      const MapSource& call = at.call();
      const TokenGrid& side = film_of_columns(at.state) ? call.queries : call.keys;
      check_volume_slice(filmed(side, at.state.segment), *slice);
    }
    VolumeLook look = at.state.volume;
    look.shown = true;
    look.slice = slice;
    return action::SetVolume{look};
  };
}

Setting volume_setting() {
  return {.name = "volume",
          .usage = "volume on|off|max|emission",
          .help =
              "the query's row as a volume in the film's place: of a ray the largest value "
              "that it meets, or all of them",
          .second = {"on", "off", "max", "emission"},
          .told = {"off", "max", "emission"},
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            return change_of<action::SetVolume>(
                &ViewState::volume,
                [mode = parse_volume_mode(w[1]), on = w[1] != "off"](VolumeLook& look) {
                  look.mode = mode.value_or(look.mode);
                  look.shown = on;
                });
          },
          .value =
              [](const SettingPlace& at) {
                const VolumeLook& look = at.state.volume;
                return look.shown ? std::string(volume_mode_name(look.mode)) : "off";
              },
          .lines =
              [](const SettingPlace& at) {
                const VolumeLook& look = at.state.volume;
                return fmt::format("volume {}\nvolume {}\n", volume_mode_name(look.mode),
                                   on_off(look.shown));
              }};
}

Setting orbit_setting() {
  return {.name = "volume_orbit",
          .usage = "volume orbit AZ EL",
          .help = "where the volume is seen from, in degrees",
          .least = 3,
          .most = 3,
          .second = {"orbit"},
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            VolumeLook probe;
            probe.azimuth = number(w, 2);
            probe.elevation = number(w, 3);
            check_volume_look(probe);
            return change_of<action::SetVolume>(&ViewState::volume, [probe](VolumeLook& look) {
              look.azimuth = probe.azimuth;
              look.elevation = probe.elevation;
            });
          },
          .value =
              [](const SettingPlace& at) {
                return fmt::format("{} {}", at.state.volume.azimuth, at.state.volume.elevation);
              }};
}

std::string slice_text(const std::optional<VolumeSlice>& slice) {
  return slice ? fmt::format("{} {}", volume_axis_name(slice->axis), slice->at) : "none";
}

std::vector<Setting> volume_settings() {
  using Do = action::SetVolume;
  constexpr auto kLook = &ViewState::volume;
  return {
      volume_setting(),
      look_number<Do>({"volume_threshold", "volume threshold V",
                       "the place on the colours, from 0 to 1, below which values are left out"},
                      "threshold", kLook, &VolumeLook::threshold, check_volume_look),
      orbit_setting(),
      look_number<Do>({"volume_zoom", "volume zoom Z", "1: the volume fits from every side"},
                      "zoom", kLook, &VolumeLook::zoom, check_volume_look),
      {.name = "volume_slice",
       .usage = "volume slice t|y|x N|none",
       .help = "a plane of frames, rows or columns before which the volume is cut away",
       .least = 2,
       .most = 3,
       .second = {"slice"},
       .in_address = true,
       .parse = parse_slice,
       .value = [](const SettingPlace& at) { return slice_text(at.state.volume.slice); }}};
}

std::vector<Setting> timeline_settings() {
  using Do = action::SetTimeline;
  constexpr auto kLook = &ViewState::timeline;
  std::vector<Setting> all{
      look_switch<Do>({"timeline", "timeline on|off", "the strip of steps"}, "", kLook,
                      &TimelineLook::shown),
      look_text<Do>({"timeline_curve", "timeline none|METRIC", "a number of the head as a curve"},
                    "", kLook, &TimelineLook::metric, "none", atlas_metrics()),
      look_choice<Do>({"timeline_over", "timeline over steps|layers", "what the curve goes over"},
                      "over", kLook, &TimelineLook::over, curve_axis_names(), parse_curve_axis,
                      curve_axis_name),
      look_switch<Do>({"timeline_loop", "timeline loop on|off",
                       "playing goes on with the first step after the last"},
                      "loop", kLook, &TimelineLook::loop),
      look_switch<Do>({"timeline_follow", "timeline follow on|off",
                       "the window goes to steps as they are added"},
                      "follow", kLook, &TimelineLook::follow),
      look_number<Do>({"timeline_speed", "timeline speed N", "how it plays, in steps a second"},
                      "speed", kLook, &TimelineLook::speed, check_timeline_look)};
  // An address does not play.
  for (Setting& setting : all) setting.in_address = false;
  return all;
}

std::vector<Setting> track_settings() {
  using Do = action::SetTracks;
  constexpr auto kLook = &ViewState::tracks;
  return {
      look_choice<Do>({"row_track", "track rows entropy|lse|text|off",
                       "a number of every query, beside the map"},
                      "rows", kLook, &TracksLook::rows, row_track_names(), parse_row_track,
                      row_track_name),
      look_choice<Do>(
          {"key_track", "track keys mass|off", "the mean weight of every key, beside the map"},
          "keys", kLook, &TracksLook::keys, key_track_names(), parse_key_track, key_track_name)};
}

Setting pins_setting() {
  return {.name = "pins",
          .usage = "pin N Q K",
          .help = "keep an entry of the map under a number from 1 to 8",
          .least = 3,
          .most = 3,
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            return always(action::SetPin{whole(w, 1), Pin{whole(w, 2), whole(w, 3)}});
          },
          .value = [](const SettingPlace& at) { return at.state.pins.text(); },
          .lines =
              [](const SettingPlace& at) {
                std::string text;
                for (int64_t number = 1; number <= kPins; ++number) {
                  const auto pin = at.state.pins.at(number);
                  if (pin) text += fmt::format("pin {} {} {}\n", number, pin->query, pin->key);
                }
                return text;
              }};
}

Setting word_setting() {
  return {.name = "word",
          .usage = "word N[,N...]|A-B|\"TEXT\"|none",
          .help = "the film of these words, added up; none: the query's again",
          .in_address = true,
          .parse = [](Words w) -> SettingChange {
            if (w[1].empty()) {
              throw usage_error("word: expected a place within the text or a word of it");
            }
            return [text = w[1]](const SettingPlace& at) -> Action {
              WordsLook look = at.state.words;
              look.chosen.clear();
              if (text != "none") {
                const MapSource& call = at.call();
                const bool keys = !call.keys.text_range().empty();
                look.chosen = chosen_words(TokenNames::of(call, at.state.head.batch, keys), text);
              }
              return action::SetWords{look};
            };
          },
          .value =
              [](const SettingPlace& at) {
                const std::vector<int64_t>& chosen = at.state.words.chosen;
                return chosen.empty() ? "none" : fmt::format("{}", fmt::join(chosen, ","));
              }};
}

std::vector<Setting> words_settings() {
  using Do = action::SetWords;
  constexpr auto kLook = &ViewState::words;
  return {pins_setting(),
          word_setting(),
          look_switch<Do>({"words_shown", "words on|off", "the prompt's words and what they get"},
                          "", kLook, &WordsLook::shown),
          look_switch<Do>({"words_special", "words special on|off",
                           "special tokens and padding are listed too"},
                          "special", kLook, &WordsLook::special),
          look_switch<Do>({"words_sort", "words sort prompt|mass",
                           "words in the prompt's order, or the largest mass first"},
                          "sort", kLook, &WordsLook::by_mass, {"mass", "prompt"}),
          look_text<Do>({"words_filter", "words filter TEXT|none", "words that hold this"},
                        "filter", kLook, &WordsLook::filter, "none")};
}

}  // namespace

std::vector<Setting> pane_settings() {
  std::vector<Setting> all;
  for (auto* const list :
       {atlas_settings, volume_settings, timeline_settings, track_settings, words_settings}) {
    std::vector<Setting> more = list();
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace attnscope
