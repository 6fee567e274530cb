#include "viewer/settings/setting_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "viewer/settings/look_settings.h"
#include "viewer/view/mask_text.h"

// The film of the query pane, and the sparse mask over the matrix.

namespace attnscope {
namespace {

using Words = ScriptArguments;

void check_film_look(const FilmLook& look) {
  if (look.opacity > 0 && look.opacity <= 1) return;
  throw usage_error(
      fmt::format("film opacity: expected a number above 0, at most 1, got {}", look.opacity));
}

Setting film_setting() {
  return {.name = "film",
          .usage = "film none|tint|outline|contour",
          .help = "the query's film over the video",
          .second = {"none", "tint", "outline", "contour"},
          .told = {"none", "tint", "outline", "contour"},
          .parse = [](Words w) -> SettingChange {
            return change_of<action::SetFilm>(&ViewState::film,
                                              [mode = parse_film_mode(w[1])](FilmLook& look) {
                                                look.mode = mode.value_or(look.mode);
                                                look.over = mode.has_value();
                                              });
          },
          .value =
              [](const SettingPlace& at) {
                const FilmLook& look = at.state.film;
                return look.over ? std::string(film_mode_name(look.mode)) : "none";
              },
          .lines =
              [](const SettingPlace& at) {
                const FilmLook& look = at.state.film;
                return fmt::format("film {}\n{}", film_mode_name(look.mode),
                                   look.over ? "" : "film none\n");
              }};
}

Setting moment_setting() {
  return {.name = "film_moment",
          .usage = "film frame N",
          .help = "the moment that is shown large",
          .least = 2,
          .most = 2,
          .second = {"frame"},
          .number = true,
          .parse = [](Words w) -> SettingChange {
            const int64_t moment = whole(w, 2);
            if (moment < 0) throw usage_error("film frame: frames count from 0");
            return [moment](const SettingPlace& at) -> Action {
              if (at.moments && moment >= *at.moments) {
                throw usage_error(fmt::format("film frame {}: outside the film (valid 0 to {})",
                                              moment, *at.moments - 1));
              }
              FilmLook look = at.state.film;
              look.moment = moment;
              return action::SetFilm{look};
            };
          },
          .value = [](const SettingPlace& at) { return std::to_string(at.state.film.moment); }};
}

std::string rate_text(int rate) { return rate == 0 ? "auto" : std::to_string(rate); }

Setting rate_setting() {
  return {.name = "film_rate",
          .usage = "film rate N|auto",
          .help = "moments a second",
          .least = 2,
          .most = 2,
          .second = {"rate"},
          .parse = [](Words w) -> SettingChange {
            const int64_t rate = w[2] == "auto" ? 0 : whole(w, 2);
            if (w[2] != "auto" && (rate < 1 || rate > kMostFilmRate)) {
              throw usage_error(
                  fmt::format("film rate: expected 1 to {} moments a second, or auto, got {}",
                              kMostFilmRate, w[2]));
            }
            return change_of<action::SetFilm>(
                &ViewState::film, [rate](FilmLook& look) { look.rate = static_cast<int>(rate); });
          },
          .value = [](const SettingPlace& at) { return rate_text(at.state.film.rate); }};
}

std::vector<Setting> film_look_settings() {
  using Do = action::SetFilm;
  constexpr auto kLook = &ViewState::film;
  std::vector<Setting> all{
      film_setting(),
      look_number<Do>({"film_opacity", "film opacity X", "of the tint, above 0 to 1"}, "opacity",
                      kLook, &FilmLook::opacity, check_film_look),
      look_switch<Do>({"film_shown", "film all|one", "all moments as a strip, or one large"}, "",
                      kLook, &FilmLook::one, {"one", "all"}),
      moment_setting(),
      look_choice<Do>({"film_time", "film latent|nearest|linear",
                       "moments as they are, or those of the video's frames"},
                      "", kLook, &FilmLook::time, film_time_names(), parse_film_time,
                      film_time_name),
      rate_setting(),
      look_switch<Do>({"film_loop", "film loop on|off", "playing begins again at the end"}, "loop",
                      kLook, &FilmLook::loop)};
  return all;
}

SettingChange parse_mask(Words w) {
  const bool file = is_mask_file(w[1]);
  if (w.size() == 3 && !file) {
    throw usage_error("mask " + one_line(w[1]) + ": only a FILE.npy is told its block");
  }
  const MaskLook look{true, w[1], w.size() == 3 ? whole(w, 2) : MaskLook().block};
  check_mask_look(look);
  return [file, look](const SettingPlace& at) -> Action {
    MaskLook changed = at.state.mask;
    changed.shown = true;
    changed.text = file && at.files != nullptr ? at.files->whole_mask(look.text) : look.text;
    changed.block = look.block;
    changed.edits.clear();
    return action::SetMask{.look = changed, .of_this_head = at.of_this_head};
  };
}

Setting mask_setting() {
  return {.name = "mask",
          .usage = "mask PATTERN|FILE.json|FILE.npy [BLOCK]",
          .help =
              "a sparse mask over the matrix, as attnscope mask reads it: blocks as "
              "FILE.npy.json says, else of 128 tokens unless told",
          .most = 2,
          .parse = parse_mask,
          .value =
              [](const SettingPlace& at) {
                return at.state.mask.text.empty() ? "none" : at.state.mask.text;
              },
          .lines = [](const SettingPlace& at) -> std::string {
            const MaskLook& look = at.state.mask;
            if (look.text.empty()) return "mask off\n";
            const bool file = is_mask_file(look.text);
            if (file && at.files == nullptr) return "";
            const std::string text = file ? at.files->written_mask(look.text) : look.text;
            const bool told = file && look.block != MaskLook().block;
            return fmt::format("mask {}{}\n", script_quoted(text),
                               told ? fmt::format(" {}", look.block) : "");
          }};
}

Setting mask_pane_setting() {
  return {
      .name = "mask_pane",
      .usage = "mask on|hide|off",
      .help = "the mask's pane; off: no mask either",
      .second = {"on", "hide", "off"},
      .told = {"on", "off"},
      .parse = [](Words w) -> SettingChange {
        return change_of<action::SetMask>(&ViewState::mask, [word = w[1]](MaskLook& look) {
          if (word == "off") look = {};
          look.shown = word == "on";
        });
      },
      .value = [](const SettingPlace& at) { return on_off(at.state.mask.shown); },
      .lines =
          [](const SettingPlace& at) { return at.state.mask.shown ? "mask on\n" : "mask hide\n"; }};
}

Setting mask_edits_setting() {
  return {
      .name = "mask_edits",
      .usage = "mask keep|drop Q0 Q1 K0 K1 | mask unedited",
      .help = "entries of the mask kept or dropped by hand; none of them any more",
      .least = 1,
      .most = 5,
      .second = {"keep", "drop", "unedited"},
      .parse = [](Words w) -> SettingChange {
        if (w[1] == "unedited" && w.size() == 2) {
          return change_of<action::SetMask>(&ViewState::mask,
                                            [](MaskLook& look) { look.edits.clear(); });
        }
        if (w[1] == "unedited") throw usage_error("mask unedited: takes nothing more");
        if (w.size() != 6) {
          throw usage_error("mask " + w[1] +
                            ": expected Q0 Q1 K0 K1, queries and keys from and to");
        }
        const MaskEdit edit{whole(w, 2), whole(w, 3), whole(w, 4), whole(w, 5), w[1] == "keep"};
        edited_mask(Mask(), {edit});  // an empty one is refused
        return change_of<action::SetMask>(&ViewState::mask, [edit](MaskLook& look) {
          if (look.text.empty()) look.text = "none";
          look.edits.push_back(edit);
        });
      },
      .value = [](const SettingPlace& at) { return std::to_string(at.state.mask.edits.size()); },
      .lines =
          [](const SettingPlace& at) {
            std::string text = "mask unedited\n";
            for (const MaskEdit& edit : at.state.mask.edits) {
              text += fmt::format("mask {} {} {} {} {}\n", edit.keep ? "keep" : "drop", edit.q0,
                                  edit.q1, edit.k0, edit.k1);
            }
            return text;
          }};
}

std::optional<MaskBrush> parse_brush(std::string_view name) {
  if (name == "off") return MaskBrush::off;
  if (name == "keep") return MaskBrush::keep;
  return name == "drop" ? std::optional(MaskBrush::drop) : std::nullopt;
}
std::string_view brush_name(MaskBrush brush) {
  return brush == MaskBrush::off ? "off" : brush == MaskBrush::keep ? "keep" : "drop";
}

std::vector<Setting> mask_look_settings() {
  using Do = action::SetMask;
  constexpr auto kLook = &ViewState::mask;
  std::vector<Setting> all{
      mask_pane_setting(), mask_setting(), mask_edits_setting(),
      look_choice<Do>({"mask_brush", "mask brush keep|drop|off", "what dragging over the map does"},
                      "brush", kLook, &MaskLook::brush, {"keep", "drop", "off"}, parse_brush,
                      brush_name),
      look_switch<Do>(
          {"mask_lost", "mask lost on|off", "what is dropped is coloured by the weight lost there"},
          "lost", kLook, &MaskLook::lost)};
  return all;
}

}  // namespace

std::vector<Setting> film_and_mask_settings() {
  std::vector<Setting> all = film_look_settings(), masks = mask_look_settings();
  std::move(masks.begin(), masks.end(), std::back_inserter(all));
  // An address neither plays nor names files; it says what lies over the video.
  for (Setting& setting : all) setting.in_address = setting.name == "film";
  return all;
}

}  // namespace attnscope
