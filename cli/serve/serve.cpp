#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/cache_option.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/run/run_backend.h"
#include "cli/serve/first_look.h"
#include "cli/serve/served.h"
#include "core/base/error.h"
#include "io/capture/capture_growth.h"
#include "viewer/remote/byte_line.h"
#include "viewer/remote/message_line.h"
#include "viewer/remote/tile_server.h"
#include "viewer/remote/web/assets/web_assets.h"
#include "viewer/remote/web/web_doors.h"
#include "viewer/remote/web/web_front.h"
#include "viewer/tiles/opened_maps.h"

namespace attnscope {
namespace {

constexpr double kLookSeconds = 0.5;

/// Waits for so many seconds; false: whoever it is for has gone.
using Wait = std::function<bool(double)>;

/// Standard input and output as a line of their own; whatever else is printed goes to standard
/// error.
std::unique_ptr<ByteLine> take_stdio() {
  if (::isatty(STDOUT_FILENO) == 1 || ::isatty(STDIN_FILENO) == 1) {
    throw usage_error(
        "serve --stdio: speaks to a window, which starts it by itself: attnscope view "
        "ssh://HOST/PATH");
  }
  const int in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || out < 0 || nothing < 0) {
    throw Error(ErrorCode::resource, "serve: the standard input or output is closed");
  }
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::close(nothing);
  return std::make_unique<ByteLine>(in, out);
}

/// Waits before it is looked again. Throws Error(interrupted) where nobody needs it any more.
void wait_or_end(const std::stop_token& stop, const Wait& wait) {
  if (!wait(kLookSeconds) || stop.stop_requested()) {
    throw Error(ErrorCode::interrupted, "interrupted");
  }
}

/// A capture that is followed need not be there yet.
void wait_for_capture(const ServeRequest& o, const Console& console, const std::stop_token& stop,
                      const Wait& wait) {
  if (!o.follow || has_capture_begun(o.capture.capture)) return;
  console.say("waiting for the first call of " + one_line(o.capture.capture));
  while (!has_capture_begun(o.capture.capture)) wait_or_end(stop, wait);
}

void check_follow(const ServeRequest& o) {
  if (!o.follow) return;
  if (!o.second.empty()) throw usage_error("--follow: follows one CAPTURE");
  if (o.capture.capture.empty()) throw usage_error("--follow: expected a CAPTURE");
  if (has_capture_begun(o.capture.capture) && !can_grow(o.capture.capture)) {
    throw usage_error("--follow " + one_line(o.capture.capture) +
                      ": expected a folder that calls are added to, got a file");
  }
}

void check_ways(const ServeRequest& o) {
  const std::string place = o.web.given();
  if (o.stdio && !place.empty()) {
    throw usage_error("--stdio: needs no " + place + ", which is for browsers");
  }
  check_web_options(o.web);
  if (o.stdio || !web_assets().empty()) return;
  throw Error(
      ErrorCode::unavailable,
      "serve: this program was built without the page for browsers: `scripts/build web` in its "
      "sources builds it with the page (docs/install.md); `attnscope view ssh://HOST/PATH` shows "
      "the same in a window");
}

/// All that is opened for whoever looks; `bell` rings when there is something new, and for the
/// interrupt.
class Opened {
 public:
  Opened(const ServeRequest& o, const Console& console, const InterruptWatch& interrupt,
         const EventBell& bell)
      : control_(read_control(o.capture, o.run, console)),
        maps_(open(o, control_)),
        backend_(make_run_backend(o.run, console)),
        served_(o, std::move(maps_), *backend_, control_, [&bell] { bell.ring(); }),
        ring_(interrupt.token(), [&bell] { bell.ring(); }) {}
  Served& served() { return served_; }

 private:
  static OpenedMaps open(const ServeRequest& o, const ReadControl& control) {
    const CaptureOrigin origin{o.capture.capture, o.capture.tensors, fact_overrides(o.capture)};
    return OpenedMaps::open(origin, control, o.second);
  }

  const ReadControl control_;
  OpenedMaps maps_;
  const RunBackend backend_;
  Served served_;
  const std::stop_callback<std::function<void()>> ring_;
};

/// Opens what is served, as soon as the first file of a capture that is followed is complete.
std::unique_ptr<Opened> open_served(const ServeRequest& o, const Console& console,
                                    const InterruptWatch& interrupt, const EventBell& bell,
                                    const Wait& wait) {
  wait_for_capture(o, console, interrupt.token(), wait);
  return open_when_written(
      o.follow, [&] { wait_or_end(interrupt.token(), wait); },
      [&] { return std::make_unique<Opened>(o, console, interrupt, bell); });
}

void serve_stdio(const ServeRequest& o, const Console& console, const InterruptWatch& interrupt,
                 std::unique_ptr<ByteLine> line) {
  const EventBell bell;
  // Whoever asked knows from now on that the program is there.
  ByteMessages messages(std::move(line));
  const auto opened = open_served(o, console, interrupt, bell,
                                  [&](double seconds) { return messages.wait(seconds, -1); });
  Served& served = opened->served();
  TileServer server(served.tiles(), served.hello(), served.watched());
  serve_messages(server, messages, bell, interrupt.token(), [&] {
    for (const RemoteAdded& added : served.take_added()) server.add(added);
  });
  if (!messages.problem().empty()) throw Error(ErrorCode::file, "serve: " + messages.problem());
}

constexpr double kIdleSeconds = 5;

/// The hello holds all that came while nobody looked; a problem of that time is said again.
TileServer server_for_window(Served& served) {
  served.take_added();
  TileServer server(served.tiles(), served.hello(), served.watched());
  if (!served.problem().empty()) server.add({{}, {}, {}, served.problem()});
  return server;
}

void serve_window(Served& served, WebWindow& window, const EventBell& bell, const Console& console,
                  const std::stop_token& stop) {
  console.say("a window is open");
  try {
    TileServer server = server_for_window(served);
    serve_messages(server, window, bell, stop, [&] {
      for (const RemoteAdded& added : served.take_added()) server.add(added);
    });
  } catch (const Error& e) {
    window.refuse(e.what());
  }
  // Nothing is computed for nobody.
  served.tiles().want({});
  if (!window.ended().empty()) console.say("a window has gone: " + one_line(window.ended()));
}

/// Serves what is looked at to windows in browsers, one after the other, until a stop is requested,
/// which `bell` rings for. What a window says wrong ends that window.
void serve_windows(Served& served, WebFront& front, const EventBell& bell, const Console& console,
                   const std::stop_token& stop) {
  FirstLook first(served.tiles(), served.hello());
  while (!stop.stop_requested()) {
    if (const auto window = front.take_window()) {
      first.leave();
      serve_window(served, *window, bell, console, stop);
      continue;
    }
    front.wait(kIdleSeconds, bell.descriptor());
    bell.quiet();
    first.look();
  }
}

void serve_web(const ServeRequest& o, const Console& console, const InterruptWatch& interrupt) {
  const std::string token = web_token(o.web);
  const WebDoors doors = open_doors(o.web);
  const EventBell bell;
  WebFront front(doors.descriptors(), web_assets(), token, web_rules(o.web, doors.port()));
  warn_of_reach(o.web, doors, console);
  const auto tell = [&] {
    fmt::print("{}", web_addresses(o.web, doors, token));
    if (std::fflush(stdout) != 0) throw Error(ErrorCode::file, "standard output: it is closed");
    console.say(
        "the first line is the address for a browser, until Ctrl-C; the second one, in a shell of "
        "another machine, makes it reachable there");
  };
  const bool begun = !o.follow || has_capture_begun(o.capture.capture);
  // Who waits for a model to begin may open the window meanwhile.
  if (!begun) tell();
  const auto opened = open_served(o, console, interrupt, bell, [&](double seconds) {
    front.wait(seconds);
    return true;
  });
  if (begun) tell();
  serve_windows(opened->served(), front, bell, console, interrupt.token());
}

int run_serve(const ServeRequest& asked) {
  ServeRequest o = asked;
  o.capture.growing = o.follow;
  check_ways(o);
  check_follow(o);
  const Console console(o.quiet);
  auto line = o.stdio ? take_stdio() : nullptr;
  const InterruptWatch interrupt(console);
  if (o.stdio) {
    serve_stdio(o, console, interrupt, std::move(line));
  } else {
    serve_web(o, console, interrupt);
  }
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

Command add_serve_command(CLI::App& app) {
  auto options = std::make_shared<ServeRequest>();
  ServeRequest& o = *options;
  CommandParser command(app, "serve", "the window in a browser, here or on another machine");
  add_capture_options_of_two(command, o.capture, o.second);
  command.add_option("SECOND", o.second, "a second capture, of which a head is side B")
      .type_name("SECOND");
  add_web_options(command, o.web);
  command.add_flag("--stdio", o.stdio,
                   "speak to the window by standard input and output; `attnscope view "
                   "ssh://HOST/PATH` does that");
  command.add_flag("--follow", o.follow,
                   "show calls as a model that is still running adds them to the folder CAPTURE");
  add_run_options(command, o.run);
  add_cache_option(command, o.cache);
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "It prints an address for a browser of this machine, and the ssh line that makes it "
      "reachable from another one. Whoever has the address can look. Behind a proxy (JupyterHub, "
      "nginx) the address is the proxy's, with #token=... at its end.\n"
      "Examples:\n"
      "  attnscope serve dump/                     # the window in a browser, until Ctrl-C\n"
      "  attnscope serve dump/ --socket s.sock     # others on this machine cannot even connect\n"
      "  attnscope serve dump/ --port 8765 --allow-host hub.example.org   # behind a proxy\n"
      "  attnscope serve --stdio dump/             # what `attnscope view ssh://HOST/PATH` starts");
  return {command, [options] { return run_serve(*options); }};
}

}  // namespace attnscope
