#include "viewer/app/app_script_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "io/tensors/token_order_file.h"
#include "viewer/app/picture_file.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

void AppScriptHost::open(const std::string& path) { app_->open(std::filesystem::path(path)); }

void AppScriptHost::resize(int width, int height) { app_->window().resize({width, height}); }

const std::vector<MapSource>* AppScriptHost::calls() const {
  return app_->document() != nullptr ? &app_->document()->calls : nullptr;
}

const ViewState& AppScriptHost::state() const {
  return app_->document() != nullptr ? app_->document()->history.now() : nothing_;
}

void AppScriptHost::act(const Action& action) { app_->act(action); }

bool AppScriptHost::drag(const word::Drag& drag) {
  const auto rect = app_->labels().find(drag.label);
  if (!rect) return false;
  const auto at = [](float low, float high, double share) {
    return low + (high - low) * static_cast<float>(share);
  };
  app_->mouse().drag(at(rect->x0, rect->x1, drag.x0), at(rect->y0, rect->y1, drag.y0),
                     at(rect->x0, rect->x1, drag.x1), at(rect->y0, rect->y1, drag.y1), drag.shift,
                     drag.ctrl);
  app_->window().request_frames();
  return true;
}

bool AppScriptHost::wheel(const word::Wheel& wheel) {
  const auto rect = app_->labels().find(wheel.label);
  if (!rect) return false;
  app_->mouse().wheel((rect->x0 + rect->x1) / 2, (rect->y0 + rect->y1) / 2,
                      static_cast<int>(wheel.notches));
  app_->window().request_frames();
  return true;
}

bool AppScriptHost::click(const std::string& label) {
  const auto rect = app_->labels().find(label);
  if (!rect) return false;
  app_->mouse().click((rect->x0 + rect->x1) / 2, (rect->y0 + rect->y1) / 2);
  app_->window().request_frames();
  return true;
}

bool AppScriptHost::hover(const std::string& label) {
  const auto rect = app_->labels().find(label);
  if (!rect) return false;
  app_->mouse().hover((rect->x0 + rect->x1) / 2, (rect->y0 + rect->y1) / 2);
  app_->window().request_frames();
  return true;
}

std::vector<std::string> AppScriptHost::labels() const { return app_->labels().names(); }

void AppScriptHost::press(const KeyChord& chord) { app_->press(chord); }

/// Over when the mouse's last move was drawn, and what it brought about.
bool AppScriptHost::input_done() const {
  return app_->mouse().done() && app_->window().frames_due() == 0;
}

void AppScriptHost::play(bool on) { app_->play(on); }

bool AppScriptHost::reached(WaitFor what) const { return app_->reached(what); }

std::string AppScriptHost::waiting_for() const {
  if (app_->failed()) return app_->failure();
  const TileSourceStatus status = app_->source_status();
  if (!status.problem.empty()) return status.problem;
  return fmt::format("{} pieces of work are left", status.queue);
}

SettingPlace AppScriptHost::place() const {
  static const SettingFiles kFiles{
      .read_order = open_token_order,
      .whole_mask =
          [](const std::string& name) {
            return std::filesystem::absolute(name).lexically_normal().string();
          },
      .written_mask = [](const std::string& name) { return name; },
      .written_order = [](const std::string& name) { return name; }};
  SettingPlace place{.state = state(), .files = &kFiles, .moments = app_->film_moments()};
  if (const Document* const document = app_->document()) {
    place.picker = &document->picker;
    place.others = &document->other_picker;
  }
  return place;
}

Measured AppScriptHost::measured() const {
  const FrameCounters& counters = app_->counters();
  const TileSourceStatus status = app_->source_status();
  Measured all;
  all.first_picture_ms = counters.first_picture_ms;
  all.query_ms = counters.query_ms;
  all.frame_ms_max = counters.frame_ms_max;
  all.frame_cpu_ms_max = counters.frame_cpu_ms_max;
  all.cpu_ms = program_cpu_ms();
  all.frames = static_cast<double>(counters.frames);
  all.texture_mib = app_->texture_mib();
  all.host_mib = static_cast<double>(status.host_bytes) / 0x1p20;
  all.queue = static_cast<double>(status.queue);
  all.level = app_->level();
  all.film_frame = app_->film_moment();
  all.film_frames = app_->film_moments();
  if (const DocumentFrame* const frame = app_->frame()) {
    measure_heads(*frame, all);
    measure_map(*frame, all);
    measure_words(*frame, all);
  }
  all.exact = app_->exact();
  all.playing = app_->playing();
  all.upload = app_->upload_way();
  all.clipboard = app_->clipboard();
  if (const Document* const document = app_->document()) {
    all.pictures = static_cast<double>(document->pictures.size());
    const RemoteTileSource* const remote = document->remote;
    if (remote != nullptr) all.connection = remote->connected() ? "open" : "lost";
  }
  return all;
}

void AppScriptHost::measure_heads(const DocumentFrame& frame, Measured& all) {
  if (frame.curve()) all.curve_points = static_cast<double>(frame.curve()->known);
  if (const std::optional<AtlasCells>& atlas = frame.atlas()) {
    all.atlas_heads = static_cast<double>(atlas->shown);
    all.atlas_sketched = static_cast<double>(atlas->sketched);
    all.atlas_exact = static_cast<double>(atlas->exact);
  }
  const auto divergence = frame.divergence();
  if (!divergence) return;
  all.js_rows = static_cast<double>(divergence->computed);
  double sum = 0, rows = 0;
  for (const double each : divergence->rows) {
    if (std::isnan(each)) continue;
    sum += each;
    rows += 1;
    all.js_max = std::max(all.js_max.value_or(0), each);
  }
  if (rows > 0) all.js = sum / rows;
}

void AppScriptHost::measure_map(const DocumentFrame& frame, Measured& all) const {
  if (const auto tracks = frame.tracks()) all.tracks_rows = static_cast<double>(tracks->computed);
  if (const auto colours = app_->colours(); colours && !colours->scale.is_of_nothing()) {
    all.range_low = colours->scale.range().low;
    all.range_high = colours->scale.range().high;
    all.share_below = colours->beyond.below;
    all.share_above = colours->beyond.above;
  }
  if (const std::shared_ptr<const HeadMask> mask = frame.mask(); mask && mask->quality) {
    all.density = mask->quality->density;
    all.recall = mask->quality->recall;
    all.oracle_recall = mask->quality->oracle_recall;
    all.output_error = mask->quality->output_error;
  }
}

void AppScriptHost::measure_words(const DocumentFrame& frame, Measured& all) {
  if (!frame.words() || !frame.words()->none.empty()) return;
  const std::optional<WordsView>& view = frame.words();
  const WordList& list = view->list;
  all.words = static_cast<double>(list.words.size());
  if (!view->has_masses()) return;
  all.word_mass = list.chosen_mass;
  all.special_mass = list.special_mass;
  all.text_mass = list.words_mass + list.special_mass;
}

std::optional<ProbedEntry> AppScriptHost::probe(int64_t query, int64_t key) {
  if (app_->document() == nullptr) throw usage_error("no capture is open");
  return app_->probe(query, key);
}

bool AppScriptHost::wants_tracks() const {
  return app_->document() != nullptr && !app_->document()->shows_other &&
         app_->frame()->wants_tracks();
}

void AppScriptHost::print(const std::string& line) {
  if (tells_) return app_->tell(line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void AppScriptHost::shot(const std::string& path) {
  write_picture(app_->picture(), path, force_, app_->guarded());
  if (tells_) app_->tell("picture saved: " + told_path(path));
}

void AppScriptHost::save_heads(const std::string& path) {
  try {
    app_->save_heads(path);
  } catch (const Error& error) {
    throw Error(error.code(), "save-heads " + one_line(path) + ": " + error.what());
  }
}

void AppScriptHost::save_mask(const std::string& path) { app_->save_mask(path); }

void AppScriptHost::save_session(const std::string& path) {
  app_->save_session(path);
  if (tells_) app_->tell("session saved: " + told_path(path));
}

}  // namespace attnscope
