#pragma once

#include <filesystem>

#include "viewer/app/viewer_app.h"
#include "viewer/script/script_runner.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// Carries out the lines of a script in the window, or those of its palette.
class AppScriptHost : public ScriptHost {
 public:
  /// Borrows the app. Pictures and sessions replace what is there only with `force`. `tells`: what
  /// lines print and write is told in the status line.
  explicit AppScriptHost(ViewerApp& app, bool force, bool tells = false)
      : app_(&app), force_(force), tells_(tells) {}

  void open(const std::string& path) override;
  void resize(int width, int height) override;
  const std::vector<MapSource>* calls() const override;
  const ViewState& state() const override;
  void act(const Action& action) override;
  bool click(const std::string& label) override;
  bool drag(const word::Drag& drag) override;
  bool wheel(const word::Wheel& wheel) override;
  bool hover(const std::string& label) override;
  std::vector<std::string> labels() const override;
  void press(const KeyChord& chord) override;
  bool type(const std::string& text) override { return app_->type(text); }
  bool input_done() const override;
  void play(bool on) override;
  bool follows() const override { return app_->follows(); }
  bool reached(WaitFor what) const override;
  std::string problem_before(WaitFor what) const override { return app_->problem_before(what); }
  std::string waiting_for() const override;
  Measured measured() const override;
  std::optional<ProbedEntry> probe(int64_t query, int64_t key) override;
  SettingPlace place() const override;
  void open_other(const std::string& path) override { app_->open_other(path); }
  void show_other(bool on) override { app_->show_other(on); }
  std::optional<ProbedEntry> probe_other(int64_t query, int64_t key) override {
    return app_->probe(query, key, true);
  }
  /// Of side B nothing is asked.
  bool wants_tracks() const override;
  std::shared_ptr<const HeadTracks> tracks() const override { return app_->frame()->tracks(); }
  void print(const std::string& line) override;
  void shot(const std::string& path) override;
  bool shot_done() const override { return true; }
  void save_session(const std::string& path) override;
  void save_mask(const std::string& path) override;
  void save_figure(const std::string& path) override { app_->save_figure(path); }
  void save_heads(const std::string& path) override;
  void walk_entry(bool larger) override { app_->walk_entry(larger); }
  void play_film(bool on) override { app_->play_film(on); }
  void save_film(const std::string& path) override { app_->save_film(path); }
  bool film_saved() override { return app_->film_saved(); }

 private:
  static void measure_heads(const DocumentFrame& frame, Measured& all);
  void measure_map(const DocumentFrame& frame, Measured& all) const;
  static void measure_words(const DocumentFrame& frame, Measured& all);

  ViewerApp* app_;
  bool force_, tells_;
  ViewState nothing_;  ///< the state of a window without a capture
};

}  // namespace attnscope
