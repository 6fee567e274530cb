#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/common/cache_option.h"
#include "cli/common/command.h"
#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/common/run_backend.h"
#include "cli/serve/capture_tiles.h"
#include "core/base/error.h"
#include "core/base/version.h"
#include "io/capture/capture_growth.h"
#include "viewer/remote/byte_line.h"
#include "viewer/remote/tile_server.h"
#include "viewer/tiles/capture_follower.h"
#include "viewer/tiles/opened_maps.h"

namespace attnscope {
namespace {

struct ServeRequest {
  CaptureOptions capture;
  RunOptions run;
  std::string second, cache;
  bool stdio = false;
  bool follow = false;
  bool quiet = false;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

/// What is served, with all that brings it. Members end from the last to the first.
class Served {
 public:
  Served(const ServeRequest& request, OpenedMaps maps, const TileBackend& backend,
         const ReadControl& control, std::function<void()> wake)
      : maps_(std::move(maps)) {
    const TilesOptions options{request.run, request.cache, request.follow};
    if (maps_.exported) {
      tiles_ = tiles_of_export(maps_.exported, backend, options, std::move(wake));
      return;
    }
    if (maps_.other) {
      tiles_ = tiles_of_two(*maps_.capture, *maps_.other, backend, options, wake);
    } else {
      auto growing = std::make_unique<CaptureTiles>(*maps_.capture, backend, options, wake);
      growing_ = growing.get();
      tiles_ = std::move(growing);
    }
    const FactOverrides facts = fact_overrides(request.capture);
    if (!facts.mask && facts.score == ScoreFunction::softmax) {
      check_ = quick_check_of(*maps_.capture, backend, options, wake);
    }
    if (request.follow) {
      follower_ = std::make_unique<CaptureFollower>(request.capture.capture, facts, control,
                                                    CaptureFollower::Captures{maps_.capture},
                                                    std::move(wake));
    }
  }

  TileSource& tiles() { return *tiles_; }
  RemoteHello hello() const {
    RemoteHello hello;
    hello.version = version();
    hello.calls = maps_.calls;
    hello.own_calls = maps_.own_calls;
    hello.computed = maps_.exported == nullptr;
    hello.sketches = tiles_->has_sketches();
    hello.masses = tiles_->has_masses();
    hello.tracks = tiles_->has_tracks();
    hello.masks = tiles_->has_masks();
    if (maps_.capture) {
      hello.pictures = picture_frames(*maps_.capture);
      hello.warnings = maps_.capture->warnings();
    }
    if (maps_.other) {
      for (const std::string& more : maps_.other->warnings()) hello.warnings.push_back(more);
    }
    return hello;
  }
  TileServer::Watched watched() const {
    return {[this] { return check_ ? check_->warning() : ""; }, [this] { return changed_file(); }};
  }
  /// What came to a capture that grows since it was last asked.
  std::vector<RemoteAdded> take_added() {
    std::vector<RemoteAdded> all;
    if (!follower_) return all;
    try {
      for (const auto& more : follower_->take()) all.push_back(add(more));
    } catch (const Error& e) {
      follower_.reset();
      all.push_back({{}, {}, {}, std::string("it is not followed any more: ") + e.what()});
      return all;
    }
    const std::string problem = follower_->take_problem();
    if (!problem.empty()) all.push_back({{}, {}, {}, problem});
    return all;
  }

 private:
  RemoteAdded add(const std::shared_ptr<const Capture>& more) {
    growing_->add_capture(*more);
    added_.push_back(more);
    RemoteAdded added;
    added.calls = map_sources(*more);
    added.warnings = more->warnings();
    const Capture& pictured = pictured_ == nullptr ? *maps_.capture : *pictured_;
    if (keeps_pictures(pictured, *more)) {
      pictured_ = more.get();
      added.pictures = picture_frames(*more);
    } else {
      added.warnings.emplace_back(
          "the capture's pictures of its video were replaced: open it again to see them");
    }
    return added;
  }
  std::string changed_file() const {
    try {
      if (maps_.capture) maps_.capture->require_unchanged();
      for (const auto& more : added_) more->require_unchanged();
      if (maps_.other) maps_.other->require_unchanged();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  OpenedMaps maps_;
  std::vector<std::shared_ptr<const Capture>> added_;
  const Capture* pictured_ = nullptr;
  std::unique_ptr<TileSource> tiles_;
  CaptureTiles* growing_ = nullptr;
  std::unique_ptr<QuickCheck> check_;
  std::unique_ptr<CaptureFollower> follower_;
};

/// Until the other side ends, or a stop is requested.
void serve_line(Served& served, ByteLine& line, const EventBell& bell,
                const std::stop_token& stop) {
  TileServer server(served.tiles(), served.hello(), served.watched());
  line.set_most_received(2 * kMostFromClient);
  for (bool going_on = true; going_on && !stop.stop_requested();) {
    while (auto message = take_frame(line.received(), kMostFromClient)) server.take(*message);
    if (bell.quiet()) {
      for (const RemoteAdded& added : served.take_added()) server.add(added);
      server.look();
    }
    // What the line does not take yet need not be computed yet either.
    while (line.unsent() < static_cast<size_t>(TileServer::kMostUnderWay)) {
      const auto message = server.next(now_seconds());
      if (!message) break;
      line.send(to_frame(*message));
    }
    const double due = server.due().value_or(now_seconds() + 1);
    going_on = line.wait(std::max(0.0, due - now_seconds()), bell.descriptor());
  }
}

/// A capture that is followed need not be there yet.
void wait_for_capture(const ServeRequest& o, ByteLine& line, const Console& console,
                      const std::stop_token& stop) {
  if (!o.follow || has_capture_begun(o.capture.capture)) return;
  console.say("waiting for the first call of " + one_line(o.capture.capture));
  while (!has_capture_begun(o.capture.capture)) {
    if (!line.wait(0.5) || stop.stop_requested())
      throw Error(ErrorCode::interrupted, "interrupted");
  }
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

int run_serve(const ServeRequest& asked) {
  ServeRequest o = asked;
  o.capture.growing = o.follow;
  if (!o.stdio) {
    throw usage_error("serve: expected --stdio, which `attnscope view ssh://HOST/PATH` gives");
  }
  check_follow(o);
  const Console console(o.quiet);
  const auto line = take_stdio();
  const InterruptWatch interrupt(console);
  // Whoever asked knows from now on that the program is there.
  line->send(greeting());
  line->wait(0);
  wait_for_capture(o, *line, console, interrupt.token());
  const ReadControl control = read_control(o.capture, o.run, console);
  const CaptureOrigin origin{o.capture.capture, o.capture.tensors, fact_overrides(o.capture)};
  OpenedMaps maps = OpenedMaps::open(origin, control, o.second);
  const auto backend = make_run_backend(o.run, console);
  const EventBell bell;
  const std::stop_callback ring(interrupt.token(), [&] { bell.ring(); });
  Served served(o, std::move(maps), *backend, control, [&bell] { bell.ring(); });
  serve_line(served, *line, bell, interrupt.token());
  if (!line->problem().empty()) throw Error(ErrorCode::file, "serve: " + line->problem());
  return interrupt.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

Command add_serve_command(CLI::App& app) {
  auto options = std::make_shared<ServeRequest>();
  ServeRequest& o = *options;
  CommandParser command(app, "serve",
                        "maps for a window on another machine, which starts this by ssh");
  add_capture_options(command, o.capture);
  command.add_option("SECOND", o.second, "a second capture, of which a head is side B");
  command.add_flag("--stdio", o.stdio,
                   "speak to the window by standard input and output; `attnscope view "
                   "ssh://HOST/PATH` does that");
  command.add_flag("--follow", o.follow,
                   "show calls as a model that is still running adds them to the folder CAPTURE");
  add_run_options(command, o.run);
  add_cache_option(command, o.cache);
  command.add_flag("--quiet", o.quiet, "no narration");
  command.footer(
      "Examples:\n"
      "  attnscope view ssh://server/data/dump     # on the laptop: the window\n"
      "  attnscope serve --stdio /data/dump        # what that starts on the server");
  return {command, [options] { return run_serve(*options); }};
}

}  // namespace attnscope
