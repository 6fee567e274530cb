#include "viewer/app/palette.h"

#include <filesystem>

#include "core/base/error.h"
#include "viewer/app/viewer_app.h"
#include "viewer/script/palette_search.h"

namespace attnscope {

void Palette::Host::print(const std::string& line) { app_.tell(line); }

void Palette::Host::shot(const std::string& path) {
  AppScriptHost::shot(path);
  app_.tell("picture saved: " + std::filesystem::absolute(path).string());
}

void Palette::Host::save_session(const std::string& path) {
  AppScriptHost::save_session(path);
  app_.tell("session saved: " + std::filesystem::absolute(path).string());
}

std::vector<PaletteItem> Palette::found() const {
  PaletteContext context;
  if (const Document* const document = app_.document()) {
    const ViewState& state = document->history.now();
    const MapSource& call = document->calls[static_cast<size_t>(state.head.call)];
    context = {&document->picker, state.head,
               TokenNames::of(call, state.head.batch, state.reverse)};
  }
  return palette_items(panel_.text(), context);
}

void Palette::draw(const Ui& ui, const ScreenRect& window) {
  items_ = found();
  if (const auto taken = panel_.draw(ui, window, items_)) take(items_[*taken]);
}

void Palette::take(const PaletteItem& item) {
  if (!item.fill.empty()) {
    panel_.set_text(item.fill);
    return;
  }
  panel_.close();
  taken_command_ = item.command;
  taken_line_ = item.line;
}

void Palette::go_on(double seconds) {
  if (taken_command_) app_.run_command(*std::exchange(taken_command_, {}));
  if (!taken_line_.empty()) {
    line_ = std::exchange(taken_line_, {});
    Script script;
    script.lines.push_back({1, line_, parse_script_line(line_)});
    runner_ = std::make_unique<ScriptRunner>(std::move(script), host_);
  }
  if (!runner_) return;
  const ScriptRunner::State state = runner_->step(seconds);
  if (state == ScriptRunner::State::running) return;
  const std::string problem = runner_->error();
  const bool quits = state == ScriptRunner::State::finished && line_ == "quit";
  runner_.reset();
  if (quits) app_.window().close();
  if (problem.empty()) return;
  panel_.open();
  panel_.set_text(line_);
  panel_.set_problem(problem.substr(problem.find(": ") + 2));
  app_.window().request_frames();
}

}  // namespace attnscope
