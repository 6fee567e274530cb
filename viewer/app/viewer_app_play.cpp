// Going through the recorded steps, and the film of the query pane: playing it, writing it.
#include "viewer/app/viewer_app.h"

#include "core/base/error.h"
#include "io/pictures/joined_parts.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/comparison.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

std::optional<int64_t> ViewerApp::film_moments() const {
  const FilmView* const film = document_ ? panels_.query().film() : nullptr;
  if (film == nullptr) return std::nullopt;
  return static_cast<int64_t>(film->content().moments.size());
}

std::optional<int64_t> ViewerApp::film_moment() const {
  const FilmView* const film = document_ ? panels_.query().film() : nullptr;
  if (film == nullptr) return std::nullopt;
  const int64_t moment = document_->history.now().film.moment;
  return static_cast<int64_t>(film->content().clamped_moment(moment));
}

void ViewerApp::play_film(bool on) {
  window_->request_frames();
  if (!on) {
    film_player_.stop();
    return;
  }
  const auto moments = film_moments();
  if (!moments) throw usage_error("film play: the query pane shows no film");
  FilmLook look = document_->history.now().film;
  // From the end it begins again.
  if (film_moment() == *moments - 1) look.moment = 0;
  look.one = true;
  act(action::SetFilm{look});
  film_player_.start(seconds(), film_rate(look, panels_.query().film()->content()));
}

void ViewerApp::toggle_film() {
  if (film_player_.playing() || film_moments()) play_film(!film_player_.playing());
}

void ViewerApp::advance_film(double now) {
  const int64_t steps = film_player_.advance(now);
  if (steps == 0) return;
  const auto moments = film_moments();
  if (!moments || !document_->history.now().film.one) {
    film_player_.stop();
    window_->request_frames();
    return;
  }
  const FilmPlace place =
      film_place(*film_moment(), steps, *moments, document_->history.now().film.loop);
  act(action::SetMoment{place.moment});
  if (!place.goes_on) film_player_.stop();
}

void ViewerApp::save_film(const std::filesystem::path& file, bool waits) {
  FilmExport::check_name(file);
  const FilmView* const film = document_ ? panels_.query().film() : nullptr;
  const auto& scale = panels_.query().scale();
  if (film == nullptr || !scale) {
    throw usage_error("film " + one_line(file.string()) + ": the query pane shows no film");
  }
  document_->require_unchanged();
  const ViewState& state = frame_->shown();
  const MapSource& call = document_->call_of(state.head);
  const FilmCaption caption{
      one_line(document_->name_of(state.head)), shown_heads(state), panels_.query().what(),
      joined_parts({softmax_text(call), call.precision, call.about}), panels_.query().unit()};
  auto writing = std::make_unique<FilmExport>(
      FilmExport::Film{film->content(), state.film, *scale,
                       product_factor(state.product, call.keys.tokens()), caption, film->outlined(),
                       state.theme == ViewTheme::light},
      file, settings_.force, [window = window_] { window->wake(); });
  saving_.begin(std::move(writing), waits);
  window_->request_frames();
}

void ViewerApp::go_on_saving() {
  if (!saving_.is_on()) return;
  // Its pictures are wished for with those that are seen.
  if (!saving_.wants().empty()) window_->request_frames();
  try {
    if (const auto file = saving_.step(*document_)) tell("film saved: " + told_path(*file));
  } catch (const Error& error) {
    fail("The film cannot be written", error.what());
  }
}

void ViewerApp::take_film_requests(PanelRequests& requests) {
  if (!frame_) return;
  std::vector<FrameRequest> pictures = std::move(requests.frames);
  const std::vector<FrameRequest> wants = saving_.wants();
  pictures.insert(pictures.begin(), wants.begin(), wants.end());
  if (frame_->want_pictures(std::move(pictures))) window_->request_frames();
  if (requests.draw_again) draw_again_ = true;
  if (requests.play_film) toggle_film();
  if (requests.save_film.empty()) return;
  write_first_free("attnscope-film", requests.save_film, "The film cannot be written",
                   [this](const std::filesystem::path& file) {
                     save_film(file, false);
                     tell("the film is being written");
                   });
}

/// True where the map is complete, however coarse, or not seen at all.
bool ViewerApp::is_picture_there() const {
  if (!document_ || changed_) return false;
  return !is_map_seen() || panels_.matrix().seen().complete;
}

/// True unless the query's row is all that there is to be seen, and is still to come.
bool ViewerApp::is_line_there() const {
  const std::optional<ViewPane>& pane = document_->history.now().maximised;
  const bool alone = pane == ViewPane::query || pane == ViewPane::volume;
  return !alone || !frame_->line_pending() || !frame_->line_problem().empty();
}

void ViewerApp::play(bool on) {
  if (!document_) throw usage_error("no capture is open");
  if (on) {
    player_.start(seconds(), document_->history.now().timeline.speed);
  } else {
    player_.stop();
    document_->history.end_gesture();
  }
  window_->request_frames();
}

/// The last step that was recorded, of what is shown.
void ViewerApp::go_to_newest() {
  const HeadId here = document_->history.now().head;
  const HeadId newest = Timeline::of(document_->own(), here).newest();
  if (newest != here) act(action::Scrub{newest});
}

/// The next step, where playing has come to it.
void ViewerApp::advance() {
  if (!playing() || !document_) return;
  // From the head that is chosen, whatever the mouse points at.
  const ViewState& now = document_->history.now();
  const Timeline timeline = Timeline::of(document_->own(), now.head);
  const auto head =
      player_.next(timeline, now.timeline, is_picture_there() && is_line_there(), seconds());
  if (head) act(action::Scrub{*head});
  if (!playing()) window_->request_frames();
}

}  // namespace attnscope
