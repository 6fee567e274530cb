#include "viewer/app/run_viewer.h"

#include <cstdlib>

#include "core/base/error.h"
#include "io/capture/capture_growth.h"
#include "io/files/output_file.h"
#include "viewer/app/app_script_host.h"
#include "viewer/app/picture_file.h"
#include "viewer/app/viewer_app.h"
#include "viewer/session/recent_files.h"
#include "viewer/session/remote_place.h"

namespace attnscope {
namespace {

/// How often a script looks whether what it waits for is there.
constexpr double kScriptSeconds = 0.02;

void open_first(ViewerApp& app, const ViewerSettings& settings) {
  const bool remote = settings.origin && is_remote_name(settings.origin->path.string());
  if (settings.origin && settings.follow && !remote && !has_capture_begun(settings.origin->path)) {
    app.await(*settings.origin, settings.prepare);
    return;
  }
  if (settings.origin) {
    app.open(*settings.origin, settings.second);
  } else if (!settings.session.empty() && is_session_file(settings.session)) {
    app.open(settings.session);
  }
  if (app.document() != nullptr && settings.prepare) settings.prepare(*app.document());
}

/// A session may be missing and is written later; where something else stands than a file, none
/// ever is. Throws Error(file) there.
void check_session_place(const std::filesystem::path& session) {
  std::error_code none;
  const auto there = std::filesystem::status(session, none);
  if (!std::filesystem::exists(there) || std::filesystem::is_regular_file(there)) return;
  throw file_error(session.string(), "", "is no regular file");
}

ViewerEnd run_script(ViewerApp& app, const ViewerSettings& settings, const Script& script,
                     const std::function<void(const std::string&)>& complain) {
  AppScriptHost host(app, settings.force);
  ScriptRunner runner(script, host);
  while (!app.window().should_close() && !settings.stop.stop_requested()) {
    app.step(kScriptSeconds);
    const ScriptRunner::State state = runner.step(app.seconds());
    if (state == ScriptRunner::State::failed) {
      complain(runner.error());
      return ViewerEnd::failed;
    }
    if (state == ScriptRunner::State::finished) return ViewerEnd::closed;
  }
  return settings.stop.stop_requested() ? ViewerEnd::stopped : ViewerEnd::closed;
}

ViewerEnd take_screenshot(ViewerApp& app, const ViewerSettings& settings) {
  while (!settings.stop.stop_requested()) {
    app.step(kScriptSeconds);
    const std::string problem = app.problem_before(WaitFor::exact);
    if (!problem.empty()) throw Error(ErrorCode::file, problem);
    const bool ready = app.reached(WaitFor::exact);
    // Whoever looks on waits until the line is there again; nobody looks on here.
    const Document* document = app.document();
    if (!ready && document != nullptr && document->remote != nullptr) {
      const std::string lost = document->remote->link_problem();
      if (!lost.empty()) throw Error(ErrorCode::unavailable, lost);
    }
    if (!ready) continue;
    if (app.frame() != nullptr && app.frame()->atlas() && !app.reached(WaitFor::atlas)) continue;
    write_picture(app.picture(), settings.screenshot, settings.force, app.guarded());
    return ViewerEnd::closed;
  }
  return ViewerEnd::stopped;
}

ViewerEnd run_window(ViewerApp& app, const ViewerSettings& settings) {
  while (!app.window().should_close() && !settings.stop.stop_requested()) app.step(-1);
  app.keep_picture();
  return settings.stop.stop_requested() ? ViewerEnd::stopped : ViewerEnd::closed;
}

Window::Settings window_settings(const ViewerSettings& settings, bool hidden) {
  Window::Settings of;
  of.visible = !hidden;
  of.size = settings.size;
  if (!of.size && !settings.session.empty() && is_session_file(settings.session)) {
    const StoredSession session = read_session(settings.session);
    of.size = WindowSize{session.width, session.height};
  }
  return of;
}

AppSettings app_settings(const AppSettings& asked, bool hidden) {
  AppSettings settings = asked;
  settings.scripted_mouse = hidden;
  // Scripts and pictures look the same whatever a capture has.
  settings.begin_by_data = !hidden;
  if (hidden) {
    settings.kept_in = {};
  } else {
    settings.recent_list =
        recent_files_path(std::getenv("XDG_STATE_HOME"), std::getenv("HOME")).value_or("");
  }
  return settings;
}

}  // namespace

ViewerEnd run_viewer(const ViewerSettings& settings,
                     const std::function<void(const std::string&)>& complain) {
  // A script with a mistake, and a capture without one, are told before a window is opened.
  std::optional<Script> script;
  if (!settings.script.empty()) script = read_script(settings.script);
  check_session_place(settings.session);
  if (!settings.screenshot.empty()) {
    check_picture_name(settings.screenshot);
    std::vector<std::filesystem::path> inputs{settings.second};
    if (settings.origin) inputs.push_back(settings.origin->path);
    OutputFile::check_target(settings.screenshot, {.force = settings.force, .inputs = inputs});
  }
  const bool hidden = script || !settings.screenshot.empty();
  Window window(window_settings(settings, hidden));
  ViewerApp app(window, app_settings(settings, hidden));
  app.set_script_host(std::make_unique<AppScriptHost>(app, false, true));
  const std::stop_callback wake(settings.stop, [&] { window.wake(); });
  open_first(app, settings);
  if (script) {
    const ViewerEnd end = run_script(app, settings, *script, complain);
    if (end != ViewerEnd::closed || settings.screenshot.empty()) return end;
  }
  if (!settings.screenshot.empty()) return take_screenshot(app, settings);
  return run_window(app, settings);
}

}  // namespace attnscope
