#include "viewer/app/viewer_app.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "viewer/app/process_memory.h"
#include "viewer/script/place_words.h"
#include "viewer/view/comparison.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/window_place.h"

namespace attnscope {
namespace {

/// So long after the last input, somebody is taken to be at the mouse or the keys.
constexpr double kAttentiveSeconds = 1;
/// The milliseconds that uploads may take in a frame, so that the window follows the mouse.
constexpr double kUploadMsMoving = 4;
constexpr double kUploadMsStill = 12;

/// The rectangle that the panels are laid out in: the window, or more than is seen of it where it
/// is smaller than panels can be.
ScreenRect window_rect(float scale) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  return {0, 0, std::max(size.x, scale * kLeastWindow.width),
          std::max(size.y, scale * kLeastWindow.height)};
}

}  // namespace

ViewerApp::ViewerApp(Window& window, Settings settings)
    : window_(&window),
      settings_(std::move(settings)),
      textures_(settings_.texture_bytes),
      panels_(painter_, textures_),
      following_(settings_.read_control, [window = window_] { window->wake(); }),
      dialogs_({[this] { return palette_context(); },
                [this](CommandId command) { run_command(command); }, [this] { window_->close(); }}),
      start_(settings_.recent_list) {
  window_->set_handlers({[this](const KeyChord& chord) {
                           // Its field is not to take Enter for its own end.
                           const bool palettes = dialogs_.front() == Dialogs::Front::palette;
                           press(chord);
                           return palettes;
                         },
                         [this](const std::string& path) { try_open(path); },
                         [this](const KeyChord& chord) { release(chord); },
                         [this] { return dialogs_.keeps_keys(); }});
  link_textures();
}

void ViewerApp::link_textures() {
  if (!settings_.link_textures) return;
  try {
    textures_.set_link(settings_.link_textures(), settings_.note);
  } catch (const Error& e) {
    if (settings_.note) {
      settings_.note(std::string("tiles come to the window through the host: ") + e.what());
    }
  }
}

ViewerApp::~ViewerApp() { window_->set_handlers({}); }

void ViewerApp::fail(const std::string& title, const std::string& message) {
  dialogs_.notices().fail(title, message);
  window_->request_frames();
}

void ViewerApp::tell(const std::string& what) {
  dialogs_.notices().tell(what, seconds());
  window_->request_frames();
}

void ViewerApp::act(const Action& action) {
  if (!document_) throw usage_error("no capture is open");
  if (const auto* theme = std::get_if<action::SetTheme>(&action)) settings_.theme = theme->theme;
  document_->history.apply(action, document_->limits, seconds());
  changed_ = true;
  window_->request_frames();
}

ViewTheme ViewerApp::theme() const {
  if (document_) return document_->history.now().theme;
  return settings_.theme.value_or(ViewTheme::dark);
}

void ViewerApp::apply(PanelRequests& requests) {
  if (frame_ && frame_->hover(requests.hovered, requests.hovered_other)) window_->request_frames();
  if (frame_ && requests.follow && frame_->follow(*requests.follow)) window_->request_frames();
  if (frame_ && frame_->point(requests.follow)) window_->request_frames();
  take_film_requests(requests);
  if (document_ && document_->preview != requests.preview) {
    document_->preview = requests.preview;
    window_->request_frames();
  }
  // A drag is one step, of the first button or the middle one.
  const auto any_button = [](const auto& is) {
    return is(ImGuiMouseButton_Left) || is(ImGuiMouseButton_Middle);
  };
  const bool released = any_button([](int b) { return ImGui::IsMouseReleased(b); });
  if (document_ && (released || any_button([](int b) { return ImGui::IsMouseDown(b); }))) {
    document_->history.hold_gesture(seconds(),
                                    any_button([](int b) { return ImGui::IsMouseClicked(b); }));
  }
  if (document_ && requests.instead) document_->history.take_back();
  for (const Action& action : requests.actions) act_or_tell(action);
  if (requests.play) play(*requests.play);
  again_at_.reset();
  if (requests.again_in) again_at_ = seconds() + *requests.again_in;
  if (document_ && released) document_->history.end_gesture();
  if (requests.dismiss_warning) {
    document_->warning_dismissed = true;
    window_->request_frames();
  }
  if (requests.show_help) dialogs_.show_help(true);
  if (requests.command) run_command(*requests.command);
  if (requests.show_browser) run_command(CommandId::open);
  if (requests.place) go_to_place(*requests.place);
  if (requests.show_other) show_other(*requests.show_other);
  if (requests.save_mask) {
    write_first_free("attnscope-mask", ".npy", "The mask cannot be written",
                     [this](const std::filesystem::path& file) { save_mask(file); });
  }
  if (requests.open) {
    dialogs_.take_is_second() ? try_open_other(*requests.open) : try_open(*requests.open);
  }
  if (requests.open_sample) open_sample();
  if (requests.choose_sample_place) {
    dialogs_.browse_to_save("attnscope-sample");
  }
  if (!requests.save_sample.empty()) save_sample(requests.save_sample);
}

void ViewerApp::draw_frame() {
  const double start = clock_.milliseconds(), cpu_start = thread_cpu_ms();
  const bool first_drawn = counters_.first_picture_ms.has_value();
  changed_ = false;
  drew_busy_ = is_source_busy();
  if (const std::pair now(theme(), window_->scale()); applied_theme_ != now) {
    applied_theme_ = now;
    apply_theme(theme_of(theme()), window_->scale());
  }
  labels_.clear();
  window_->begin_frame([&] {
    if (!settings_.scripted_mouse) return;
    // Frames go on until the last step of a click is drawn.
    if (!mouse_.done()) window_->request_frames();
    mouse_.feed();
  });
  const std::vector<KeyChord> list_keys = dialogs_.take_list_keys();
  const Ui ui{theme_of(theme()), window_->fonts(), labels_, window_->scale(), list_keys};
  const ScreenRect window = window_rect(ui.scale);
  PanelRequests requests;
  draw_root(ui, window, requests);
  dialogs_.draw(ui, window, requests);
  glViewport(0, 0, window_->width(), window_->height());
  const ImVec4 ground = to_vec4(ui.theme.window);
  glDisable(GL_SCISSOR_TEST);
  glClearColor(ground.x, ground.y, ground.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  window_->render();
  const double worked = clock_.milliseconds() - start;
  const double cpu_worked = thread_cpu_ms() - cpu_start;
  window_->swap();
  window_->frame_done();
  ++counters_.frames;
  if (first_drawn) {
    counters_.frame_ms_max = std::max(counters_.frame_ms_max, worked);
    counters_.frame_cpu_ms_max = std::max(counters_.frame_cpu_ms_max, cpu_worked);
  }
  apply(requests);
}

EmptyState ViewerApp::empty_state() {
  EmptyState state = start_.state();
  if (const CaptureOrigin* awaited = following_.awaited()) {
    state.awaited = std::filesystem::absolute(awaited->path);
  }
  state.notice = notice();
  state.has_sample = kWindowHasFiles;
  return state;
}

/// Draws the panels, or the empty state. Behind a dialog they take no mouse and cannot be clicked.
void ViewerApp::draw_root(const Ui& ui, const ScreenRect& window, PanelRequests& requests) {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize({window.width(), window.height()});
  ImGui::Begin("root", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNav);
  // Disabled items look as they do otherwise.
  ImGui::PushStyleVar(ImGuiStyleVar_DisabledAlpha, 1.0f);
  ImGui::BeginDisabled(dialogs_.is_mouse_held_back());
  if (document_) {
    draw_document(ui, window, requests);
  } else {
    draw_empty_state(ui, window, empty_state(), requests);
  }
  ImGui::EndDisabled();
  ImGui::PopStyleVar();
  ImGui::End();
  if (dialogs_.dialog() != Dialogs::Front::panels) labels_.clear();
}

/// Asks for what the frame needs. A failure is told once in a dialog, and ends nothing.
void ViewerApp::ask(PaneSize pane) {
  try {
    frame_->ask(pane, panels_.atlas().seen(), clock_.milliseconds());
    ask_problem_.clear();
  } catch (const Error& e) {
    if (ask_problem_ == e.what()) return;
    ask_problem_ = e.what();
    fail("This cannot be shown", ask_problem_);
  }
}

SideB ViewerApp::side_b() const {
  const Document& d = *document_;
  const std::optional<OtherSide>& other = d.history.now().other;
  return {.picker = d.other_picker,
          .head = other ? std::optional(other->head) : std::nullopt,
          .call = other ? &d.call_of(other->head) : nullptr,
          .state = frame_->other_shown(),
          .scale = frame_->other_scale(),
          .shown = d.shows_other && other,
          .of_second = d.has_second(),
          .divergence = frame_->divergence(),
          .divergence_problem = frame_->divergence_problem()};
}

/// Everything as it is in this frame.
Scene ViewerApp::scene_now() const {
  const Document& d = *document_;
  const ViewState& state = frame_->shown();
  const MapSource& call = d.call_of(state.head);
  const int64_t keys = call.keys.tokens();
  const SideB other = side_b();
  // They are of the first capture's video.
  const bool own_video = !(other.of_second && other.shown);
  const Colours colours = *this->colours();
  return {
      .state = state,
      .call = call,
      .picker = d.picker,
      .queries = TokenNames::of(call, state.head.batch, false),
      .keys = TokenNames::of(call, state.head.batch, true),
      .tiles = *d.tiles,
      .geometry = d.tiles->geometry(state.head),
      .placed = d.placed(state),
      .scale = colours.scale,
      .factor = shown_factor(state, keys),
      .histogram = frame_->histogram(),
      .beyond = colours.beyond,
      .readout = frame_->readout(),
      .line = frame_->line(),
      .line_pending = frame_->line_pending(),
      .magnified = frame_->magnified(),
      .atlas = frame_->atlas() ? &*frame_->atlas() : nullptr,
      .words = frame_->words() ? &*frame_->words() : nullptr,
      .words_pending = !frame_->has_words_line() || !frame_->has_masses(),
      .locked = d.history.now().head,
      .pictures = own_video ? std::span<const int64_t>(d.pictures) : std::span<const int64_t>(),
      .plays_film = film_player_.playing(),
      .source = d.tiles->status(),
      .texture_mib = texture_mib(),
      .chosen = d.shows_other ? d.history.now() : state,
      .other = other,
      .mask = frame_->mask(),
      .tracks = frame_->tracks(),
      .tracks_problem = frame_->tracks_problem(),
      .line_problem = frame_->line_problem(),
      .tiles_problem = frame_->tiles_problem(),
      .words_problem = frame_->words_problem(),
      .place = place_text(setting_place()),
      .place_problem = place_problem_,
      .memory_bytes = resident_bytes(),
      .memory_limit = settings_.memory_limit,
      .notice = notice(),
      .is_sample = sample_ != nullptr,
      .warning = d.warning(),
      .now = seconds(),
      .timeline = &frame_->timeline(),
      .curve = frame_->curve() ? &*frame_->curve() : nullptr,
      .playing = playing(),
      .follows = follows(),
  };
}

/// Tells what a frame brings to light, once.
void ViewerApp::tell_of(const Scene& scene) {
  Document& d = *document_;
  if (!d.warning_told && d.quick_check && d.quick_check->done()) {
    d.warning_told = true;
    if (!scene.warning.empty()) dialogs_.notices().keep(scene.warning);
    if (settings_.warn && !scene.warning.empty()) settings_.warn(scene.warning);
  }
  if (!scene.source.busy) tell_kept_folder();
  if (scene.source.problem != told_problem_) {
    told_problem_ = scene.source.problem;
    if (!told_problem_.empty()) dialogs_.notices().keep(told_problem_);
  }
}

void ViewerApp::draw_document(const Ui& ui, const ScreenRect& window, PanelRequests& requests) {
  Document& d = *document_;
  const bool moved = panels_.matrix().interacting();
  const PaneSize pane = panels_.matrix().pane_size();
  ask(pane);
  uploads_left_ =
      textures_.upload(*d.tiles, frame_->tiles(), moved ? kUploadMsMoving : kUploadMsStill);
  draw_again_ = uploads_left_;
  frame_->take(pane, moved);
  counters_.query_ms = frame_->line_ms();
  const Scene scene = scene_now();
  tell_of(scene);
  panels_.draw(ui, window, scene, requests);
  const PaneSize after = panels_.matrix().pane_size();
  // Wishes are for a pane's size, which is known once it was drawn.
  if (pane.width != after.width || pane.height != after.height) draw_again_ = true;
  const bool complete = !is_map_seen() || panels_.matrix().seen().complete;
  if (complete && !counters_.first_picture_ms) {
    counters_.first_picture_ms = clock_.milliseconds() - opened_at_;
  }
}

std::optional<ViewerApp::Colours> ViewerApp::colours() const {
  if (!document_ || !frame_) return std::nullopt;
  const ViewState& state = frame_->shown();
  const MapSource& call = document_->call_of(state.head);
  const int64_t keys = call.keys.tokens();
  const ColourScale scale =
      shown_scale(state, frame_->histogram(), keys, shown_most(state, call.score, keys));
  return Colours{scale, shown_beyond(state, frame_->histogram(), scale, keys)};
}

bool ViewerApp::is_source_busy() const { return document_ && document_->tiles->status().busy; }

/// The end of the work is news: who did the last of it may not have said so yet.
bool ViewerApp::has_come_to_rest() const { return drew_busy_ && !is_source_busy(); }

/// Work goes on whose progress is shown, or has ended since.
bool ViewerApp::working() const {
  return is_source_busy() || (frame_ && frame_->histogram_stale()) || drew_busy_;
}

/// Something has come that somebody is waiting for.
bool ViewerApp::is_awaited() const {
  if (!document_ || !counters_.first_picture_ms) return true;
  return frame_->has_news();
}

bool ViewerApp::step(double limit) {
  window_->wait(wait_seconds(limit));
  news_ = window_->woken() || news_ || has_come_to_rest();
  take_added();
  if (dialogs_.palette().go_on(seconds(), counters_.frames)) window_->request_frames();
  const double began = seconds();
  advance();
  if (again_at_ && began >= *again_at_) {
    again_at_.reset();
    draw_again_ = true;
  }
  if (dialogs_.notices().forget(began)) window_->request_frames();
  advance_film(began);
  go_on_saving();
  const bool input = window_->frames_due() > 0 || !mouse_.done();
  if (input) input_at_ = began;
  if (!input && !draw_again_ && !(news_ && is_awaited()) && !pacer_.due(began, news_, working())) {
    return false;
  }
  news_ = false;
  draw_again_ = false;
  draw_frame();
  if (!picture_kept_) keep_picture();
  pacer_.drew(began, seconds(), began < input_at_ + kAttentiveSeconds);
  return true;
}

/// How long the loop may sleep: `limit`, or until a frame is due.
double ViewerApp::wait_seconds(double limit) const {
  if (!mouse_.done() || draw_again_) return 0;
  const auto until = [&](double left) { limit = limit < 0 ? left : std::min(limit, left); };
  if (const auto left = dialogs_.notices().left(seconds())) until(*left);
  if (again_at_) until(std::max(0.0, *again_at_ - seconds()));
  // A picture or a line that is not there yet wakes the loop when it comes.
  if (playing() && is_picture_there() && is_line_there()) until(player_.wait(seconds()));
  if (const double next = film_player_.wait(seconds()); next >= 0) until(next);
  const double due = pacer_.wait(seconds(), news_ || has_come_to_rest(), working());
  if (due < 0 || limit < 0) return std::max(due, limit);
  return std::min(limit, due);
}

gl::ReadPixels ViewerApp::picture() {
  if (document_) document_->require_unchanged();
  return drawn();
}

gl::ReadPixels ViewerApp::drawn() {
  gl::Framebuffer target(window_->width(), window_->height());
  target.bind();
  const ImVec4 ground = to_vec4(theme_of(theme()).window);
  glDisable(GL_SCISSOR_TEST);
  glClearColor(ground.x, ground.y, ground.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  window_->render();
  gl::Framebuffer::unbind();
  return target.read();
}

void ViewerApp::keep_picture() {
  if (!document_ || sample_ || !start_.keeps(*document_)) return;
  const auto map = labels_.find("Matrix/Map");
  // A list or a dialog may lie over it.
  if (!map || dialogs_.front() != Dialogs::Front::panels || !exact()) return;
  const gl::ReadPixels all = drawn();
  const auto within = [](float at, int size) { return std::clamp(static_cast<int>(at), 0, size); };
  const int x0 = within(map->x0, all.width), y0 = within(map->y0, all.height);
  gl::ReadPixels part{within(map->x1, all.width) - x0, within(map->y1, all.height) - y0, {}};
  for (int y = 0; y < part.height; ++y) {
    const auto row = all.pixels.begin() + (int64_t{y0 + y} * all.width + x0);
    part.pixels.insert(part.pixels.end(), row, row + part.width);
  }
  start_.keep_picture(*document_, part);
  picture_kept_ = true;
}

std::optional<ProbedEntry> ViewerApp::probe(int64_t query, int64_t key, bool of_other) {
  auto entry = of_other ? frame_->probe_other(query, key) : frame_->probe(query, key);
  if (entry) document_->require_unchanged();
  return entry;
}

double ViewerApp::texture_mib() const {
  return static_cast<double>(textures_.pool().bytes() + panels_.atlas().texture_bytes() +
                             panels_.matrix().mask_texture_bytes() +
                             panels_.volume().texture_bytes()) /
         0x1p20;
}

TileSourceStatus ViewerApp::source_status() const {
  return document_ ? document_->tiles->status() : TileSourceStatus{};
}

/// Not where another pane has the whole window.
bool ViewerApp::is_map_seen() const {
  return document_->history.now().maximised.value_or(ViewPane::matrix) == ViewPane::matrix;
}

bool ViewerApp::exact() const {
  if (!document_) return false;
  if (is_map_seen() && !panels_.matrix().seen().exact) return false;
  return !frame_->histogram_stale() && !uploads_left_;
}

bool ViewerApp::reached(WaitFor what) const {
  if (!document_ || changed_) return false;
  const MapSource& call = document_->call_of(frame_->shown().head);
  const bool no_film = call.block > 1 || !no_words_film(frame_->shown(), call).empty();
  const bool followed =
      (no_film || frame_->has_line()) && frame_->has_words_line() && frame_->has_entry();
  switch (what) {
    case WaitFor::picture:
      return is_picture_there();
    case WaitFor::query:
      return followed;
    case WaitFor::exact:
      return exact() && followed && frame_->has_masses() && has_film() &&
             frame_->are_tracks_exact() && frame_->is_magnified_exact() &&
             window_->frames_due() == 0 && !again_at_;
    case WaitFor::atlas:
      return has_atlas();
    case WaitFor::mask:
      return frame_->has_mask() && (!frame_->mask() || frame_->mask()->problem.empty());
    case WaitFor::idle: {
      const bool looked = !document_->quick_check || document_->warning_told;
      return looked && is_at_rest() && !film_player_.playing() && !saving_.is_on();
    }
  }
  return false;
}

/// True once the film and the volume, if shown, have all the video's pictures that they lie over.
bool ViewerApp::has_film() const {
  const FilmView* const film = panels_.query().film();
  const ViewState& state = document_->history.now();
  const bool volume = state.volume.shown || state.maximised == ViewPane::volume;
  return (film == nullptr || film->complete()) && (!volume || panels_.volume().complete());
}

/// True once every head of the atlas that can be there is there, and drawn.
bool ViewerApp::has_atlas() const {
  const std::optional<AtlasCells>& cells = frame_->atlas();
  if (!cells) return false;
  // They were counted for the frame that was drawn last; news may be of anything else.
  const bool exact = document_->history.now().atlas.exact;
  if ((exact ? cells->exact : cells->sketched) == cells->heads) return true;
  return is_at_rest();
}

/// Nothing is wanted that may still come, and all that has come is drawn.
bool ViewerApp::is_at_rest() const {
  const TileSourceStatus status = document_->tiles->status();
  return !playing() && !status.busy && status.queue == 0 && !drew_busy_ &&
         !frame_->histogram_stale() && !uploads_left_ && window_->frames_due() == 0 &&
         !draw_again_ && !again_at_ && !news_;
}

std::string ViewerApp::problem_before(WaitFor what) const {
  if (!document_ || changed_ || reached(what)) return "";
  if (what == WaitFor::mask && frame_->mask()) return frame_->mask()->problem;
  if (!is_at_rest()) return "";
  return document_->tiles->status().problem;
}

}  // namespace attnscope
