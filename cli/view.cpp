#include <fmt/core.h>

#include <array>
#include <charconv>
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
#include "cli/common/pixel_query.h"
#include "cli/common/query_options.h"
#include "cli/common/stored_input.h"
#include "cli/common/unknown_state.h"
#include "cli/run/head_where.h"
#include "cli/run/run_backend.h"
#include "cli/run/shard_option.h"
#include "cli/serve/tiles_options.h"
#include "cli/serve/way_there.h"
#include "cli/view_options.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/stream/device_facet.h"
#include "io/capture/capture_growth.h"
#include "io/export/format/export_manifest.h"
#include "io/tensors/token_order_file.h"
#include "viewer/app/run_viewer.h"
#include "viewer/session/remote_place.h"
#include "viewer/tiles/capture_tiles.h"
#include "viewer/tiles/quick_check.h"
#include "viewer/tiles/texels/texel_reader.h"
#include "viewer/tiles/tile_service.h"
#include "viewer/view/query_words.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

/// How long until a file that may still be being written is looked at again.
constexpr std::chrono::milliseconds kLook{500};

/// "1280x800"
WindowSize parse_window_size(const std::string& text) {
  int width = 0, height = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, width);
  const bool cross = first.ec == std::errc() && first.ptr != end && *first.ptr == 'x';
  const auto second = cross ? std::from_chars(first.ptr + 1, end, height) : first;
  if (!cross || second.ec != std::errc() || second.ptr != end || !is_window_size({width, height})) {
    throw usage_error(
        fmt::format("--size {}: expected WxH in pixels, {}", one_line(text), window_size_limits()));
  }
  return {width, height};
}

/// "Q0,Q1,K0,K1", within the map.
MapRect parse_zoom(const std::string& text, const MapSource& call) {
  std::array<double, 4> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    const bool last = i + 1 == numbers.size();
    if (error != std::errc() || (last ? next != end : next == end || *next != ',')) {
      throw usage_error("--zoom " + one_line(text) +
                        ": expected Q0,Q1,K0,K1, queries and keys of the map");
    }
    at = last ? next : next + 1;
  }
  const auto within = [](double first, double past, int64_t tokens) {
    return 0 <= first && first < past && past <= static_cast<double>(tokens);
  };
  const int64_t queries = call.queries.tokens(), keys = call.keys.tokens();
  if (!within(numbers[0], numbers[1], queries) || !within(numbers[2], numbers[3], keys)) {
    throw usage_error(
        fmt::format("--zoom {}: is empty or outside the map (valid: 0,{},0,{}, half-open)",
                    one_line(text), queries, keys));
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

HeadId first_selected(const Capture& capture, const SelectionOptions& options) {
  const auto selected = capture.select(parse_selection(options));
  const SelectedCall& first = selected.front();
  return {first.call - capture.calls().data(), first.batch.front(), first.heads.front()};
}

/// Of an export.
HeadId first_selected(const std::vector<MapSource>& calls, const SelectionOptions& options,
                      const Console& console) {
  std::vector<HeadName> names;
  std::vector<HeadId> ids;
  for (size_t c = 0; c < calls.size(); ++c) {
    const MapSource& call = calls[c];
    for (size_t b = 0; b < call.batch.size(); ++b) {
      for (size_t h = 0; h < call.heads.size(); ++h) {
        const auto item = static_cast<int64_t>(b);
        names.push_back({call.step, call.layer, call.branch(item),
                         std::string(kind_name(call.kind)), call.batch[b], call.heads[h],
                         call.place});
        ids.push_back({static_cast<int64_t>(c), item, static_cast<int64_t>(h)});
      }
    }
  }
  return ids[select_stored(names, options, console).front()];
}

/// Of maps on another machine.
HeadId first_selected(const RemoteHello& hello, const SelectionOptions& options,
                      const Console& console) {
  const auto own = hello.calls.begin() + static_cast<ptrdiff_t>(hello.own_calls);
  return first_selected(std::vector<MapSource>(hello.calls.begin(), own), options, console);
}

/// The sequence that --at counts the pixels of.
PixelSequence pixel_sequence(const ViewRequest& o, const Document& document, HeadId head) {
  const auto number = static_cast<size_t>(head.call);
  if (document.capture) {
    return pixel_sequence(document.capture->calls()[number], o.reverse, o.capture);
  }
  const MapSource& call = document.calls[number];
  return {o.reverse ? call.keys : call.queries,
          call.name,
          o.capture.texts.preset.value_or(""),
          {},
          document.remote == nullptr};
}

/// The tokens of --query, --index and --at. A bare number of --query is an index.
ChosenQuery first_query(const ViewRequest& o, const Document& document, HeadId head) {
  QueryOptions query = o.query;
  std::erase_if(query.coords, [&](const std::string& text) {
    int64_t index = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, index);
    const bool bare = error == std::errc() && stop == end;
    if (bare) query.indices.push_back(index);
    return bare;
  });
  settle_pixels(std::array{pixel_sequence(o, document, head)}, query, Console(o.quiet));
  const MapSource& call = document.calls[static_cast<size_t>(head.call)];
  const TokenNames names = TokenNames::of(call, head.batch, o.reverse);
  return {resolve_tokens(query, {*names.grid, names.words, std::string(names.where)}).tokens};
}

/// Shows the first of the selected heads, and the query.
void prepare(const ViewRequest& o, Document& document) {
  const auto apply = [&](const Action& action) {
    document.history.apply(action, document.limits, 0);
  };
  const HeadId first = document.capture
                           ? first_selected(*document.capture, o.selection)
                           : first_selected(document.calls, o.selection, Console(true).silenced());
  apply(action::SelectHead{first});
  if (document.other || (document.remote != nullptr && document.has_second())) {
    const HeadValues values = document.picker.values(first);
    apply(action::SetOther{document.other_picker.nearest_to(values)});
  }
  if (o.reverse) apply(action::SetReverse{true});
  if (o.query.any()) apply(action::PickQuery{first_query(o, document, first)});
  if (!o.order.empty()) {
    std::optional<action::MapSide> side;
    if (!o.order_keys.empty()) side = action::MapSide::rows;
    apply(action::SetOrder{open_token_order(o.order), side});
  }
  if (!o.order_keys.empty()) {
    apply(action::SetOrder{open_token_order(o.order_keys), action::MapSide::keys});
  }
  if (!o.zoom.empty()) {
    const MapSource& call = document.calls[static_cast<size_t>(first.call)];
    apply(action::SetRect{parse_zoom(o.zoom, call)});
  }
  document.history.restart(document.history.now());
}

bool selects_something(const ViewRequest& o) {
  SelectionOptions all;
  all.cache = o.selection.cache;
  return o.selection != all || o.query.any() || !o.zoom.empty() || !o.order.empty() ||
         !o.order_keys.empty() || o.reverse;
}

/// Throws where what is named cannot be one that a recorder adds to.
void check_followed(const ViewRequest& o) {
  const std::string& path = o.capture.capture;
  const bool bare = !o.capture.tensors.q.empty() || !o.capture.tensors.k.empty();
  if (bare || (path.empty() && o.session.empty())) {
    throw usage_error("--follow: expected a CAPTURE, the folder that calls are added to");
  }
  if (!o.second.empty()) {
    throw usage_error("--follow: follows one CAPTURE, and " + one_line(o.second) +
                      " is a second one");
  }
  if (path.empty() || is_remote_name(path) || !has_capture_begun(path)) return;
  if (!can_grow(path)) {
    throw usage_error("--follow " + one_line(path) +
                      ": expected a folder that calls are added to, got a file");
  }
}

/// How this machine computes: of maps on another one the options are the server's.
RunOptions remote_run(const ViewRequest& o) {
  if (!is_remote_name(o.capture.capture)) return o.run;
  RunOptions here;
  here.memory = o.run.memory;
  return here;
}

/// Before there is a window, which opens it once more: its notes, what is wrong with it, and the
/// heads of --where.
void tell_of_capture(ViewRequest& o, const Console& console) {
  if (is_export_file(o.capture.capture)) {
    check_export_options(o.capture, o.run);
    first_selected(read_export_texels(o.capture.capture)->calls(), o.selection, console);
    return;
  }
  const Capture capture = open_capture(o.capture, o.run, console);
  if (o.follow && capture.named_folder()) {
    throw usage_error("--follow " + one_line(o.capture.capture) +
                      ": its files are told by their names, which do not say when a call is "
                      "complete (the capture format does)");
  }
  settle_where(o.selection, capture, o.run, console);
  first_selected(capture, o.selection);
  select_and_tell(capture, o.selection, console);
}

/// What is opened at once; it is opened here as well, for what it tells.
void take_origin(ViewRequest& o, const Console& console, ViewerSettings& settings) {
  const bool bare = !o.capture.tensors.q.empty() || !o.capture.tensors.k.empty();
  if (bare || !o.capture.capture.empty()) {
    if (is_remote_name(o.capture.capture)) {
      if (asks_for_numbers(o.selection)) {
        throw usage_error(
            "--where compares numbers of heads, which are found where the capture is");
      }
      // It is opened below, before the window is.
    } else if (!o.follow || has_capture_begun(o.capture.capture)) {
      open_when_written(
          o.follow, [] { std::this_thread::sleep_for(kLook); },
          [&] { tell_of_capture(o, console); });
    } else if (asks_for_numbers(o.selection)) {
      throw usage_error("--where compares numbers of heads, and " + one_line(o.capture.capture) +
                        " has none yet");
    } else {
      console.say("waiting for the first call of " + one_line(o.capture.capture));
    }
    settings.origin =
        CaptureOrigin{o.capture.capture, o.capture.tensors, fact_overrides(o.capture)};
  } else if (!o.screenshot.empty() && o.session.empty() && o.script.empty()) {
    throw usage_error("--screenshot needs a CAPTURE, a --session or a --script");
  }
}

/// Borrows all, for as long as windows are open.
TileSourceMaker source_maker(const ViewRequest& o, const TileBackend& backend,
                             const TilesOptions& tiles, const WayThere& way,
                             std::unique_ptr<RemoteLink>& first_link, std::stop_token stop) {
  TileSourceMaker make;
  make.of_capture = [&](const Capture& capture, std::function<void()> wake) {
    return std::make_unique<CaptureTiles>(capture, backend, tiles.of_captures(capture),
                                          tiles.follow, std::move(wake));
  };
  make.add = [](TileSource& of, const Capture& more) {
    dynamic_cast<CaptureTiles&>(of).add_capture(more);
  };
  make.of_two = [&](const Capture& capture, const Capture& second, std::function<void()> wake) {
    return tiles_of_two(capture, second, backend, tiles.of_captures(capture, &second),
                        std::move(wake));
  };
  make.check = [&](const Capture& capture, std::function<void()> wake) {
    return tiles.quick_check(capture, backend, std::move(wake));
  };
  make.of_export = [&](std::shared_ptr<const TexelReader> reader, std::function<void()> wake) {
    return std::make_unique<TileService>(std::move(reader), tiles.of_exports(backend),
                                         std::move(wake));
  };
  make.of_remote = [&, stop](const CaptureOrigin& origin, const std::filesystem::path& second,
                             std::function<void()> wake) {
    const std::string name = origin.path.string();
    // The window shows first the maps that were opened before there was a window.
    const bool prepared = first_link && name == o.capture.capture && second == o.second;
    auto link = prepared ? std::move(first_link)
                         : open_link(name, second.string(), origin.facts, way, stop);
    return linked_tiles(std::move(link), one_line(name), memory_limit(o.run), std::move(wake));
  };
  return make;
}

int run_view(const ViewRequest& asked) {
  ViewRequest o = asked;
  o.capture.growing = o.follow;
  const Console console(o.quiet);
  refuse_tasks("", o.alone, o.screenshot, kOneProcess, "--screenshot");
  refuse_tasks("", o.alone, o.script, kOneProcess, "what is written by --script");
  ViewerSettings settings;
  if (!o.size.empty()) settings.size = parse_window_size(o.size);
  if (!o.theme.empty()) settings.theme = parse_theme(o.theme);
  settings.session = o.session;
  settings.second = o.second;
  settings.script = o.script;
  settings.screenshot = o.screenshot;
  settings.force = o.force;
  settings.follow = o.follow;
  if (o.follow) check_followed(o);
  settings.memory_limit = memory_limit(o.run);
  settings.texture_bytes = parse_size(o.texture_memory, "--texture-memory", int64_t{512} << 20);
  take_origin(o, console, settings);
  if (selects_something(o)) {
    settings.prepare = [&o](Document& document) { prepare(o, document); };
  }
  const InterruptWatch interrupt(console);
  const WayThere way{o.remote_program, o.run, o.selection.cache, o.follow};
  std::unique_ptr<RemoteLink> first_link;
  if (is_remote_name(o.capture.capture)) {
    first_link =
        open_link(o.capture.capture, o.second, settings.origin->facts, way, interrupt.token());
    first_selected(first_link->hello(), o.selection, console);
  }
  const auto backend = make_run_backend(remote_run(o), console);
  const TilesOptions tiles{o.run, o.selection.cache, o.follow};
  settings.make_source = source_maker(o, *backend, tiles, way, first_link, interrupt.token());
  settings.kept_in = [&](const Capture& capture) {
    return cache_folders(o.selection.cache, capture);
  };
  if (const DeviceFacet* const device = backend->device(); device != nullptr) {
    settings.link_textures = [device] { return device->link_textures(); };
  }
  settings.note = [&console](const std::string& note) { console.say(one_line(note)); };
  settings.stop = interrupt.token();
  settings.read_control = read_control(o.capture, o.run, console);
  settings.warn = [&console](const std::string& warning) {
    console.warn("warning: " + one_line(warning));
  };
  const ViewerEnd end = run_viewer(settings, [](const std::string& problem) {
    write_error_text("attnscope: " + one_line(problem) + "\n");
  });
  if (end == ViewerEnd::stopped) return kExitInterrupted;
  return end == ViewerEnd::failed ? kExitFailure : kExitOk;
}

}  // namespace

Command add_view_command(CLI::App& app) {
  auto options = std::make_shared<ViewRequest>();
  CommandParser command = add_view_options(app, *options);
  return {command, [options] { return run_view(*options); }};
}

}  // namespace attnscope
