#include "viewer/app/app_script_host.h"

#include <fmt/core.h>

#include <cstdio>

#include "core/base/error.h"
#include "viewer/app/picture_file.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

void AppScriptHost::open(const std::string& path) { app_->open(std::filesystem::path(path)); }

void AppScriptHost::resize(int width, int height) { app_->window().resize({width, height}); }

const std::vector<MapSource>* AppScriptHost::calls() const {
  return app_->document() != nullptr ? &app_->document()->calls : nullptr;
}

int64_t AppScriptHost::pictures() const {
  const Document* const document = app_->document();
  return document == nullptr ? 0 : static_cast<int64_t>(document->pictures.size());
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

std::optional<double> AppScriptHost::measured(ScriptName name) const {
  const FrameCounters& counters = app_->counters();
  switch (name) {
    case ScriptName::first_picture_ms:
      return counters.first_picture_ms;
    case ScriptName::query_ms:
      return counters.query_ms;
    case ScriptName::frame_ms_max:
      return counters.frame_ms_max;
    case ScriptName::frame_cpu_ms_max:
      return counters.frame_cpu_ms_max;
    case ScriptName::cpu_ms:
      return program_cpu_ms();
    case ScriptName::frames:
      return static_cast<double>(counters.frames);
    case ScriptName::texture_mib:
      return app_->texture_mib();
    case ScriptName::host_mib:
      return static_cast<double>(app_->source_status().host_bytes) / 0x1p20;
    case ScriptName::queue:
      return static_cast<double>(app_->source_status().queue);
    case ScriptName::level:
      return app_->level();
    case ScriptName::curve_points: {
      const HeadCurve* const curve = app_->curve();
      return curve == nullptr ? std::nullopt : std::optional(static_cast<double>(curve->known));
    }
    case ScriptName::atlas_heads:
    case ScriptName::atlas_sketched:
    case ScriptName::atlas_exact: {
      const std::optional<AtlasCells>& atlas = app_->atlas();
      if (!atlas) return std::nullopt;
      if (name == ScriptName::atlas_heads) return static_cast<double>(atlas->shown);
      const bool exact = name == ScriptName::atlas_exact;
      return static_cast<double>(exact ? atlas->exact : atlas->sketched);
    }
    case ScriptName::words:
    case ScriptName::word_mass:
    case ScriptName::text_mass:
    case ScriptName::special_mass:
      return of_words(name);
    case ScriptName::js:
    case ScriptName::js_max:
    case ScriptName::js_rows:
      return app_->divergence_number(name);
    case ScriptName::film_frame:
      return app_->film_moment();
    case ScriptName::film_frames:
      return app_->film_moments();
    case ScriptName::tracks_rows: {
      const auto tracks = app_->tracks();
      return tracks ? std::optional(static_cast<double>(tracks->computed)) : std::nullopt;
    }
    case ScriptName::range_low:
    case ScriptName::range_high:
    case ScriptName::share_below:
    case ScriptName::share_above:
      return of_colours(name);
    case ScriptName::density:
    case ScriptName::recall:
    case ScriptName::oracle_recall:
    case ScriptName::output_error:
      return of_mask(name);
    default:
      return std::nullopt;
  }
}

std::optional<double> AppScriptHost::of_colours(ScriptName name) const {
  const auto colours = app_->colours();
  if (!colours || colours->scale.is_of_nothing()) return std::nullopt;
  if (name == ScriptName::range_low) return colours->scale.range().low;
  if (name == ScriptName::range_high) return colours->scale.range().high;
  return name == ScriptName::share_below ? colours->beyond.below : colours->beyond.above;
}

std::optional<double> AppScriptHost::of_mask(ScriptName name) const {
  const std::shared_ptr<const HeadMask> mask = app_->mask();
  if (!mask || !mask->quality) return std::nullopt;
  const MaskQuality& quality = *mask->quality;
  if (name == ScriptName::density) return quality.density;
  if (name == ScriptName::recall) return quality.recall;
  return name == ScriptName::oracle_recall ? quality.oracle_recall : quality.output_error;
}

std::optional<double> AppScriptHost::of_words(ScriptName name) const {
  const std::optional<WordsView>& view = app_->words();
  if (!view || !view->none.empty()) return std::nullopt;
  const WordList& list = view->list;
  if (name == ScriptName::words) return static_cast<double>(list.words.size());
  if (!view->has_masses()) return std::nullopt;
  if (name == ScriptName::word_mass) return list.chosen_mass;
  return name == ScriptName::special_mass ? list.special_mass : list.words_mass + list.special_mass;
}

std::optional<ProbedEntry> AppScriptHost::probe(int64_t query, int64_t key) {
  if (app_->document() == nullptr) throw usage_error("no capture is open");
  return app_->probe(query, key);
}

bool AppScriptHost::wants_tracks() const {
  return app_->document() != nullptr && !app_->document()->shows_other && app_->wants_tracks();
}

void AppScriptHost::print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void AppScriptHost::shot(const std::string& path) {
  write_picture(app_->picture(), path, force_, app_->guarded());
}

void AppScriptHost::save_mask(const std::string& path) { app_->save_mask(path); }

void AppScriptHost::save_session(const std::string& path) { app_->save_session(path); }

std::string AppScriptHost::connection() const {
  const Document* const document = app_->document();
  if (document == nullptr || document->remote == nullptr) return "none";
  return document->remote->connected() ? "open" : "lost";
}

}  // namespace attnscope
