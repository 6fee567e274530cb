#include "viewer/app/palette.h"

#include <utility>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kFramesAfterClose = 2;
/// Of what was done lately.
constexpr size_t kMostDone = 5;

}  // namespace

/// What fits the text as it is now; before a text there is, what was done lately comes first.
void Palette::find() {
  items_ = palette_items(panel_.text(), window_.context());
  const bool empty = panel_.text().find_first_not_of(' ') == std::string::npos;
  if (empty) items_.insert(items_.begin(), done_.begin(), done_.end());
}

void Palette::draw(const Ui& ui, const ScreenRect& window) {
  find();
  if (const auto taken = panel_.draw(ui, window, items_)) take(items_[*taken]);
}

void Palette::press(const KeyChord& chord) {
  find();
  if (const auto taken = panel_.press(chord, items_.size())) take(items_[*taken]);
}

void Palette::take(const PaletteItem& item) {
  if (!item.fill.empty()) {
    panel_.set_text(item.fill);
    return;
  }
  panel_.close();
  taken_command_ = item.command;
  taken_line_ = item.line;
  keep(item);
}

void Palette::keep(PaletteItem item) {
  const auto is_same = [&](const PaletteItem& each) {
    return each.command == item.command && each.line == item.line;
  };
  std::erase_if(done_, is_same);
  done_.insert(done_.begin(), std::move(item));
  if (done_.size() > kMostDone) done_.pop_back();
}

void Palette::begin(const std::string& line) {
  line_ = line;
  if (!host_) {
    tell("scripts do not run in this window");
    return;
  }
  Script script;
  script.lines.push_back({1, line, parse_script_line(line)});
  runner_ = std::make_unique<ScriptRunner>(std::move(script), *host_);
}

void Palette::tell(const std::string& problem) {
  panel_.open();
  panel_.set_text(line_);
  panel_.set_problem(problem);
}

bool Palette::go_on(double seconds, int64_t frames) {
  const bool taken = has_taken();
  if (!taken) taken_at_.reset();
  if (taken && !taken_at_) taken_at_ = frames;
  // Pictures that are taken then are of the window without it.
  if (taken && frames < *taken_at_ + kFramesAfterClose) return true;
  if (taken_command_) window_.run(*std::exchange(taken_command_, {}));
  if (!taken_line_.empty()) begin(std::exchange(taken_line_, {}));
  if (!runner_) return taken;
  const ScriptRunner::State state = runner_->step(seconds);
  if (state == ScriptRunner::State::running) return taken;
  const std::string problem = runner_->error();
  runner_.reset();
  if (state == ScriptRunner::State::finished && line_ == "quit") window_.close();
  // Behind the script's name and the line's number.
  if (!problem.empty()) tell(problem.substr(problem.find(": ") + 2));
  return true;
}

}  // namespace attnscope
