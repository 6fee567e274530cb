#include "viewer/panels/row/film_menu.h"

#include <algorithm>

#include "io/pictures/film/film_writer.h"
#include "viewer/panels/widgets.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

constexpr const char* kFilmMenu = "film menu";

const char* const kNoVideo = "none";

void set_film(const Scene& scene, PanelRequests& requests,
              const std::function<void(FilmLook&)>& change) {
  FilmLook look = scene.state.film;
  change(look);
  requests.act(action::SetFilm{look});
}

/// Moments a second, of the player and of what is saved.
void rate_choice(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  std::vector<int> rates{0, 1, 2, 4, 8, 12, 16, 24, 30};
  const int now = scene.state.film.rate;
  if (std::find(rates.begin(), rates.end(), now) == rates.end()) rates.push_back(now);
  std::vector<std::string> names;
  for (const int rate : rates) names.push_back(rate == 0 ? "auto" : std::to_string(rate));
  const auto at = std::find(rates.begin(), rates.end(), now) - rates.begin();
  const int taken = choice(ui, "Film", "A second", names, static_cast<int>(at), 72);
  if (taken < 0) return;
  set_film(scene, requests, [&](FilmLook& to) { to.rate = rates[static_cast<size_t>(taken)]; });
}

void frame_choices(const Ui& ui, const Scene& scene, PanelRequests& requests) {
  const FilmLook& look = scene.state.film;
  const int frames = segmented(ui, "Film", {"All", "One"}, look.one ? 1 : 0,
                               "all frames side by side, or one as large as it goes");
  if (frames >= 0) set_film(scene, requests, [&](FilmLook& to) { to.one = frames == 1; });
  ImGui::SameLine(0, ui.px(12));
  // Played from here, whether it is seen large already or not.
  if (tool_button(ui, "Film/Start", scene.plays_film ? "Pause" : "Play", scene.plays_film,
                  "play through time (Space)")) {
    requests.play_film = true;
  }
  ImGui::SameLine(0, ui.px(4));
  if (tool_button(ui, "Film/Loop", "Loop", look.loop, "begin again at the end")) {
    set_film(scene, requests, [](FilmLook& to) { to.loop = !to.loop; });
  }
  rate_choice(ui, scene, requests);
}

void video_choices(const Ui& ui, const Scene& scene, const FilmContent& content,
                   PanelRequests& requests) {
  const FilmLook& look = scene.state.film;
  if (!content.has_pictures) {
    ImGui::PushFont(ui.fonts.secondary);
    ImGui::TextUnformatted(scene.pictures.empty()
                               ? "The capture has no pictures of its video."
                               : "The capture's pictures are of its video, not of this.");
    ImGui::PopFont();
    return;
  }
  std::vector<std::string> modes = film_mode_names();
  modes.insert(modes.begin(), kNoVideo);
  int taken =
      choice(ui, "Film", "Video", modes, look.over ? static_cast<int>(look.mode) + 1 : 0, 96);
  if (taken >= 0) {
    set_film(scene, requests, [&](FilmLook& to) {
      to.over = taken > 0;
      if (taken > 0) to.mode = static_cast<FilmMode>(taken - 1);
    });
  }
  if (look.over && look.mode == FilmMode::tint) {
    ImGui::SameLine(0, ui.px(12));
    ImGui::SetNextItemWidth(ui.px(96));
    float percent = 100 * look.opacity;
    if (ImGui::SliderFloat("##opacity", &percent, 5, 100, "%.0f %%")) {
      set_film(scene, requests,
               [&](FilmLook& to) { to.opacity = std::clamp(percent / 100, 0.05f, 1.0f); });
    }
    mark(ui, "Film/Opacity");
  }
  const std::vector<std::string> times = film_time_names();
  taken = choice(ui, "Film", "Frames", times, static_cast<int>(look.time), 96);
  if (taken >= 0) {
    set_film(scene, requests, [&](FilmLook& to) { to.time = static_cast<FilmTime>(taken); });
  }
}

void save_buttons(const Ui& ui, PanelRequests& requests) {
  const auto save = [&](const char* label, const char* text, const char* ending, const char* hint) {
    if (!tool_button(ui, label, text, false, hint)) return;
    requests.save_film = ending;
    ImGui::CloseCurrentPopup();
  };
  save("Film/Save GIF", "Save GIF", ".gif", "the film as an animation");
  ImGui::SameLine(0, ui.px(4));
  if (can_write_mp4()) {
    save("Film/Save MP4", "Save MP4", ".mp4", "the film as a video, by ffmpeg");
  } else {
    lacking_button(ui, "Film/Save MP4", "Save MP4", "a video needs ffmpeg, which is not in PATH");
  }
  ImGui::SameLine(0, ui.px(4));
  save("Film/Save PDF", "Save PDF", ".pdf", "all moments side by side on a page for print");
  ImGui::SameLine(0, ui.px(4));
  save("Film/Save PNG", "Save PNG", ".png", "all moments side by side, in the window's theme");
  ImGui::SameLine(0, ui.px(4));
  save("Film/Save PNGs", "Save PNGs", "/", "a folder with a picture of each moment");
}

}  // namespace

float film_button_width(const Ui& ui) {
  return text_size(ui.fonts.secondary, "Film").x + ui.px(16);
}

void draw_film_button(const Ui& ui, float right, float y, const Scene& scene,
                      const FilmContent& content, PanelRequests& requests) {
  ImGui::PushFont(ui.fonts.secondary);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ui.px(8), ui.px(2)));
  ImGui::SetCursorScreenPos({right - film_button_width(ui), y});
  const FilmLook& look = scene.state.film;
  const bool changed = look.over || look.one || look.time != FilmTime::latent;
  if (tool_button(ui, "Query/Film", "Film", changed, "over the video, played, saved")) {
    ImGui::OpenPopup(kFilmMenu);
  }
  const ScreenRect button = item_rect();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SetNextWindowPos({right, button.y1 + ui.px(4)}, ImGuiCond_Always, {1, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(10), ui.px(10)));
  if (ImGui::BeginPopup(kFilmMenu)) {
    const bool list = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId);
    frame_choices(ui, scene, requests);
    video_choices(ui, scene, content, requests);
    if (kWindowHasFiles) save_buttons(ui, requests);
    const auto is_escape = [](const KeyChord& chord) { return chord.key == Key::escape; };
    if (!list && std::any_of(ui.list_keys.begin(), ui.list_keys.end(), is_escape)) {
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace attnscope
