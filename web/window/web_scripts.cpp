#include "web/window/web_scripts.h"

#include <utility>

#include "core/base/error.h"
#include "web/window/browser.h"

namespace attnscope {

void WebScripts::add(int number, std::string text) { asked_.push_back({number, std::move(text)}); }

void WebScripts::done(std::string problem) {
  const int number = asked_.front().number;
  asked_.pop_front();
  runner_.reset();
  const std::string lines = std::exchange(lines_, "");
  browser_script_done(number, lines.c_str(), problem.c_str());
}

bool WebScripts::step() {
  // No script goes on before a document is open, which then draws a frame by itself.
  if (asked_.empty() || app_.document() == nullptr) return false;
  try {
    if (!runner_) {
      runner_ = std::make_unique<ScriptRunner>(parse_script(asked_.front().text, "script"), host_);
    }
    switch (runner_->step(app_.seconds())) {
      case ScriptRunner::State::running:
        break;
      case ScriptRunner::State::finished:
        done("");
        break;
      case ScriptRunner::State::failed:
        done(runner_->error());
        break;
    }
  } catch (const Error& e) {
    done(e.what());
  }
  return !asked_.empty();
}

}  // namespace attnscope
