#pragma once

#include <deque>
#include <memory>
#include <string>

#include "viewer/app/app_script_host.h"

namespace attnscope {

/// Scripts of the window (docs/window-scripts.md) that the page's developers' console asks for, one
/// after the other. On the page's thread.
class WebScripts {
 public:
  /// Borrows the app.
  explicit WebScripts(ViewerApp& app) : app_(app), host_(*this, app) {}

  /// browser_script_done() is called with its number when it has ended.
  void add(int number, std::string text);
  /// Goes on with them, after a frame's turn. Whether there is something left to do.
  bool step();

 private:
  /// Keeps the lines that scripts print, instead of writing them.
  class Host : public AppScriptHost {
   public:
    Host(WebScripts& scripts, ViewerApp& app) : AppScriptHost(app, false), scripts_(scripts) {}
    void print(const std::string& line) override { scripts_.lines_ += line + "\n"; }

   private:
    WebScripts& scripts_;
  };
  struct Asked {
    int number = 0;
    std::string text;
  };
  /// The problem may be the runner's own text, and the runner goes: hence a copy.
  void done(std::string problem);

  ViewerApp& app_;
  Host host_;
  std::deque<Asked> asked_;
  std::unique_ptr<ScriptRunner> runner_;  ///< of the first one
  std::string lines_;
};

}  // namespace attnscope
