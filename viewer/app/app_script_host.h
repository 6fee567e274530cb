#pragma once

#include <filesystem>

#include "io/tensors/token_order_file.h"
#include "viewer/app/viewer_app.h"
#include "viewer/script/script_runner.h"
#include "viewer/view/view_actions.h"

namespace attnscope {

/// Carries out the lines of a script in the window.
class AppScriptHost : public ScriptHost {
 public:
  /// Borrows the app. Pictures and sessions replace what is there only with `force`.
  AppScriptHost(ViewerApp& app, bool force) : app_(&app), force_(force) {}

  void open(const std::string& path) override;
  void resize(int width, int height) override;
  TokenOrder read_order(const std::string& path) override { return open_token_order(path); }
  const std::vector<MapSource>* calls() const override;
  int64_t pictures() const override;
  const ViewState& state() const override;
  void act(const Action& action) override;
  bool click(const std::string& label) override;
  bool drag(const word::Drag& drag) override;
  bool wheel(const word::Wheel& wheel) override;
  bool hover(const std::string& label) override;
  std::vector<std::string> labels() const override;
  void press(const KeyChord& chord) override;
  bool type(const std::string& text) override { return app_->type(text); }
  std::string clipboard() const override { return app_->clipboard(); }
  bool input_done() const override;
  void play(bool on) override;
  bool playing() const override { return app_->playing(); }
  bool follows() const override { return app_->follows(); }
  bool reached(WaitFor what) const override;
  std::string problem_before(WaitFor what) const override { return app_->problem_before(what); }
  std::string waiting_for() const override;
  std::optional<double> measured(ScriptName name) const override;
  std::string upload_way() const override { return std::string(app_->upload_way()); }
  std::string connection() const override;
  bool exact() const override { return app_->exact(); }
  std::optional<ProbedEntry> probe(int64_t query, int64_t key) override;
  HeadPicker picker() const override { return app_->document()->picker; }
  HeadPicker other_picker() const override { return app_->document()->other_picker; }
  void open_other(const std::string& path) override { app_->open_other(path); }
  void show_other(bool on) override { app_->show_other(on); }
  std::optional<ProbedEntry> probe_other(int64_t query, int64_t key) override {
    return app_->probe_other(query, key);
  }
  /// Of side B nothing is asked.
  bool wants_tracks() const override;
  std::shared_ptr<const HeadTracks> tracks() const override { return app_->tracks(); }
  void print(const std::string& line) override;
  void shot(const std::string& path) override;
  bool shot_done() const override { return true; }
  void save_session(const std::string& path) override;
  void save_mask(const std::string& path) override;
  void play_film(bool on) override { app_->play_film(on); }
  void save_film(const std::string& path) override { app_->save_film(path); }
  bool film_saved() override { return app_->film_saved(); }

 private:
  std::optional<double> of_colours(ScriptName name) const;
  std::optional<double> of_mask(ScriptName name) const;
  std::optional<double> of_words(ScriptName name) const;

  ViewerApp* app_;
  bool force_;
  ViewState nothing_;  ///< the state of a window without a capture
};

}  // namespace attnscope
