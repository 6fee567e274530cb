#include "viewer/script/script_values.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/error.h"
#include "viewer/view/comparison.h"
#include "viewer/view/maps/map_source.h"
#include "viewer/view/query_words.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

const MapSource& shown_call(ScriptName name, const ScriptHost& host) {
  if (host.calls() == nullptr) {
    throw usage_error(fmt::format("{}: no capture is open", script_name_text(name)));
  }
  return (*host.calls())[static_cast<size_t>(host.state().head.call)];
}

/// Whole numbers as such, others with six digits.
std::string number_text(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.6g}", value);
}

}  // namespace

std::string script_value(ScriptName name, const ScriptHost& host) {
  const ViewState& state = host.state();
  switch (name) {
    case ScriptName::first_picture_ms:
    case ScriptName::query_ms:
    case ScriptName::frame_ms_max:
    case ScriptName::frame_cpu_ms_max:
    case ScriptName::cpu_ms:
    case ScriptName::frames:
    case ScriptName::texture_mib:
    case ScriptName::host_mib:
    case ScriptName::queue:
    case ScriptName::level:
    case ScriptName::atlas_heads:
    case ScriptName::atlas_sketched:
    case ScriptName::atlas_exact:
    case ScriptName::curve_points:
    case ScriptName::words:
    case ScriptName::word_mass:
    case ScriptName::text_mass:
    case ScriptName::special_mass:
    case ScriptName::js:
    case ScriptName::js_max:
    case ScriptName::js_rows:
    case ScriptName::film_frame:
    case ScriptName::film_frames:
    case ScriptName::range_low:
    case ScriptName::range_high:
    case ScriptName::share_below:
    case ScriptName::share_above:
    case ScriptName::density:
    case ScriptName::recall:
    case ScriptName::oracle_recall:
    case ScriptName::output_error:
    case ScriptName::tracks_rows: {
      const auto value = host.measured(name);
      if (!value) throw usage_error(fmt::format("{}: not known yet", script_name_text(name)));
      return number_text(*value);
    }
    case ScriptName::calls:
      return std::to_string(host.calls() == nullptr ? 0 : host.calls()->size());
    case ScriptName::rows:
      return std::to_string(shown_call(name, host).queries.tokens());
    case ScriptName::cols:
      return std::to_string(shown_call(name, host).keys.tokens());
    case ScriptName::step:
      return std::to_string(shown_call(name, host).step);
    case ScriptName::layer:
      return std::to_string(shown_call(name, host).layer);
    case ScriptName::chunk: {
      const int64_t chunk = shown_call(name, host).place.chunk;
      if (chunk == kNoChunk) throw usage_error("chunk: the call is no piece of a stream");
      return std::to_string(chunk);
    }
    case ScriptName::batch:
      return std::to_string(shown_call(name, host).batch[static_cast<size_t>(state.head.batch)]);
    case ScriptName::head:
      return std::to_string(shown_call(name, host).heads[static_cast<size_t>(state.head.head)]);
    case ScriptName::exact:
      shown_call(name, host);
      return host.exact() ? "true" : "false";
    case ScriptName::branch:
      return shown_call(name, host).branch(state.head.batch);
    case ScriptName::block:
      return shown_call(name, host).place.block;
    case ScriptName::slot:
      return shown_call(name, host).place.slot;
    case ScriptName::query: {
      const MapSource& call = shown_call(name, host);
      return query_words(TokenNames::of(call, state.head.batch, state.reverse), state.query);
    }
    case ScriptName::reverse:
      return state.reverse ? "on" : "off";
    case ScriptName::segment:
      return state.segment.empty() ? "none" : state.segment;
    case ScriptName::word:
      return state.words.chosen.empty() ? "none"
                                        : fmt::format("{}", fmt::join(state.words.chosen, ","));
    case ScriptName::product:
      return std::string(product_name(state.product));
    case ScriptName::pool:
      return std::string(pool_name(state.pool));
    case ScriptName::scale:
      return std::string(scale_kind_name(state.scale));
    case ScriptName::colormap:
      return state.colormap;
    case ScriptName::order:
      return state.order.rows == state.order.keys
                 ? state.order.rows.text()
                 : state.order.rows.text() + " " + state.order.keys.text();
    case ScriptName::volume:
      return state.volume.shown ? std::string(volume_mode_name(state.volume.mode)) : "off";
    case ScriptName::row_track:
      return std::string(row_track_name(state.tracks.rows));
    case ScriptName::key_track:
      return std::string(key_track_name(state.tracks.keys));
    case ScriptName::frame_matrix:
      return state.show_frames ? "on" : "off";
    case ScriptName::pins:
      return state.pins.text();
    case ScriptName::playing:
      return host.playing() ? "on" : "off";
    case ScriptName::b:
      shown_call(name, host);
      return state.other ? other_text(host.other_picker().values(state.other->head)) : "none";
    case ScriptName::difference:
      return std::string(difference_name(state.other ? state.other->difference : Difference::off));
    case ScriptName::mask:
      return state.mask.text.empty() ? "none" : state.mask.text;
    case ScriptName::clipboard:
      return host.clipboard();
    case ScriptName::connection:
      return host.connection();
    case ScriptName::upload:
      return host.upload_way();
  }
  return "";
}

}  // namespace attnscope
