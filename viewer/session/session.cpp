#include "viewer/session/session.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/control_characters.h"
#include "core/base/error.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/files/file_text.h"
#include "io/files/json_types.h"
#include "io/files/output_file.h"
#include "viewer/session/remote_place.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/mask_text.h"
#include "viewer/view/view_actions.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

using std::filesystem::path;

constexpr int64_t kMaxSessionBytes = 1 << 20;
/// Of a file that may be a session, so much is looked at.
constexpr int64_t kLookBytes = 4096;

OrderedJson facts_json(const FactOverrides& facts, const path& folder) {
  OrderedJson json = OrderedJson::object();
  for (const TextFact& fact : kTextFacts) {
    if (const auto& value = facts.*fact.value) json[fact.name] = *value;
  }
  if (facts.mask) json["mask"] = stored_mask(*facts.mask, folder);
  if (facts.cu_seqlens) json["cu_seqlens"] = stored_cuts(*facts.cu_seqlens, folder);
  if (facts.cu_seqlens_k) json["cu_seqlens_k"] = stored_cuts(*facts.cu_seqlens_k, folder);
  if (facts.score != ScoreFunction::softmax) json["score"] = score_name(facts.score);
  if (!facts.told.empty()) json["as"] = facts.told;
  return json;
}

OrderedJson volume_json(const VolumeLook& look) {
  OrderedJson json{{"shown", look.shown},
                   {"mode", volume_mode_name(look.mode)},
                   {"threshold", look.threshold},
                   {"azimuth", look.azimuth},
                   {"elevation", look.elevation},
                   {"zoom", look.zoom},
                   {"slice", nullptr}};
  if (look.slice) json["slice"] = {volume_axis_name(look.slice->axis), look.slice->at};
  return json;
}

void add_words_and_film(const ViewState& view, OrderedJson& json) {
  if (view.words != WordsLook{}) {
    json["words"] = {{"shown", view.words.shown},
                     {"special", view.words.special},
                     {"by_mass", view.words.by_mass},
                     {"filter", view.words.filter},
                     {"chosen", view.words.chosen}};
  }
  if (view.film != FilmLook{}) {
    json["film"] = {{"over", view.film.over},
                    {"mode", film_mode_name(view.film.mode)},
                    {"opacity", std::stod(fmt::format("{}", view.film.opacity))},
                    {"time", film_time_name(view.film.time)},
                    {"one", view.film.one},
                    {"loop", view.film.loop},
                    {"moment", view.film.moment}};
    if (view.film.rate > 0) json["film"]["rate"] = view.film.rate;
  }
}

OrderedJson mask_json(const MaskLook& look, const path& folder) {
  OrderedJson json{{"shown", look.shown},
                   {"text", is_mask_file(look.text) ? stored_path(look.text, folder) : look.text},
                   {"block", look.block}};
  for (const MaskEdit& edit : look.edits) {
    json["edits"].push_back({{"rect", {edit.q0, edit.q1, edit.k0, edit.k1}}, {"keep", edit.keep}});
  }
  if (look.lost) json["lost"] = true;
  return json;
}

OrderedJson head_values_json(const HeadValues& head) {
  OrderedJson json{{"step", head.step},     {"layer", head.layer}, {"kind", kind_name(head.kind)},
                   {"branch", head.branch}, {"batch", head.batch}, {"head", head.head}};
  if (head.place.is_recorded()) {
    json["block"] = head.place.block;
    json["slot"] = head.place.slot;
  }
  if (head.place.has_chunk()) json["chunk"] = head.place.chunk;
  return json;
}

/// Side B; what is as at first is left out.
OrderedJson other_side_json(const Session& session, const path& folder) {
  OrderedJson json = OrderedJson::object();
  if (!session.other_capture.empty()) {
    json["capture"] = stored_path(session.other_capture.string(), folder);
  }
  if (!session.view.other) return json;
  const OtherSide& other = *session.view.other;
  json["head"] = head_values_json(session.other_head);
  if (other.difference != Difference::off) json["difference"] = difference_name(other.difference);
  // The shortest number that is this float.
  if (other.split) json["split"] = std::stod(fmt::format("{}", *other.split));
  if (other.range.whole) json["range"] = "minmax";
  if (!other.range.automatic) json["range"] = {other.range.low, other.range.high};
  if (!other.lock_zoom) {
    json["rect"] = {other.rect.q0, other.rect.q1, other.rect.k0, other.rect.k1};
  }
  if (!other.lock_range) json["lock_range"] = false;
  if (!other.lock_cursor) json["lock_cursor"] = false;
  if (other.ranked) json["ranked"] = true;
  return json;
}

OrderedJson order_json(const MapOrder& order, const path& folder) {
  const auto text = [&](const TokenOrder& side) {
    return side.kind == TokenOrder::Kind::listed ? stored_path(side.file, folder) : side.text();
  };
  return {{"rows", text(order.rows)}, {"keys", text(order.keys)}};
}

/// `files`: of the files that masks are read from.
OrderedJson view_json(const ViewState& view, const path& folder, const path& files) {
  OrderedJson json;
  json["rect"] = {view.rect.q0, view.rect.q1, view.rect.k0, view.rect.k1};
  json["query"] = nullptr;
  if (view.query) json["query"] = view.query->tokens;
  json["reverse"] = view.reverse;
  if (!view.segment.empty()) json["segment"] = view.segment;
  json["product"] = product_name(view.product);
  json["pool"] = pool_name(view.pool);
  json["scale"] = scale_kind_name(view.scale);
  json["colormap"] = view.colormap;
  json["range"] = view.range.whole ? "minmax" : "auto";
  if (!view.range.automatic) json["range"] = {view.range.low, view.range.high};
  if (view.equal_axes) json["equal_axes"] = true;
  if (!view.order.is_stored()) json["order"] = order_json(view.order, folder);
  if (view.other_order != ViewState{}.other_order) {
    json["other_order"] = order_json(view.other_order, folder);
  }
  json["theme"] = theme_name(view.theme);
  json["maximised"] = nullptr;
  if (view.maximised) json["maximised"] = pane_name(*view.maximised);
  json["show_histogram"] = view.show_histogram;
  if (view.atlas != AtlasLook{}) {
    json["atlas"] = {{"shown", view.atlas.shown},
                     {"metric", view.atlas.metric},
                     {"sort", view.atlas.sort},
                     {"filter", view.atlas.filter},
                     {"exact", view.atlas.exact}};
  }
  if (view.volume != VolumeLook{}) json["volume"] = volume_json(view.volume);
  if (view.timeline != TimelineLook{}) {
    json["timeline"] = {{"shown", view.timeline.shown},
                        {"metric", view.timeline.metric},
                        {"over", curve_axis_name(view.timeline.over)},
                        {"loop", view.timeline.loop},
                        {"speed", view.timeline.speed},
                        {"follow", view.timeline.follow}};
  }
  add_words_and_film(view, json);
  if (view.mask != MaskLook{}) json["mask"] = mask_json(view.mask, files);
  if (view.tracks != TracksLook{}) {
    json["tracks"] = {{"rows", row_track_name(view.tracks.rows)},
                      {"keys", key_track_name(view.tracks.keys)}};
  }
  for (int64_t number = 1; number <= kPins; ++number) {
    if (const auto pin = view.pins.at(number)) {
      json["pins"].push_back({{"number", number}, {"query", pin->query}, {"key", pin->key}});
    }
  }
  if (view.show_frames) json["show_frames"] = true;
  // The shortest number that is this float.
  json["split_query"] = std::stod(fmt::format("{}", view.split_query));
  return json;
}

path folder_of_session(const path& file) { return std::filesystem::absolute(file).parent_path(); }

}  // namespace

std::string session_text(const Session& session, const path& folder) {
  OrderedJson json;
  json["format"] = kSessionFormat;
  if (!session.capture.empty()) json["capture"] = stored_path(session.capture.string(), folder);
  if (session.capture.empty()) {
    json["tensors"]["q"] = stored_path(session.tensors.q, folder);
    json["tensors"]["k"] = stored_path(session.tensors.k, folder);
    if (!session.tensors.v.empty()) json["tensors"]["v"] = stored_path(session.tensors.v, folder);
  }
  // On another machine files have the names that they have there.
  const path there = is_remote_name(session.capture.string()) ? path() : folder;
  const OrderedJson facts = facts_json(session.facts, there);
  if (!facts.empty()) json["facts"] = facts;
  json["window"] = {{"width", session.width}, {"height", session.height}};
  json["head"] = head_values_json(session.head);
  json["view"] = view_json(session.view, folder, there);
  if (session.view.other || !session.other_capture.empty()) {
    json["b"] = other_side_json(session, folder);
  }
  try {
    return json_without_controls(json.dump(2)) + "\n";
  } catch (const Json::exception&) {
    throw Error(ErrorCode::file, "session: a path or name in it is no valid UTF-8: " +
                                     one_line(session.capture.string()));
  }
}

bool is_session_file(const path& file) {
  const std::string text = beginning_of_file(file, kLookBytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{' &&
         text.find("\"attnscope-session/") != std::string::npos;
}

Session read_session(const path& file) {
  return parse_session(read_file_text(file, "a session", kMaxSessionBytes), file.string(),
                       folder_of_session(file));
}

void write_session(const Session& session, const path& file, bool force) {
  const std::string text = session_text(session, folder_of_session(file));
  std::vector<path> inputs;
  for (const std::string& input :
       {session.capture.string(), session.other_capture.string(), session.tensors.q,
        session.tensors.k, session.tensors.v,
        is_mask_file(session.view.mask.text) ? session.view.mask.text : std::string()}) {
    // Of FILE:KEY the file too.
    if (!input.empty()) inputs.emplace_back(input);
    if (const size_t key = input.rfind(':'); key != std::string::npos && key > 0) {
      inputs.emplace_back(input.substr(0, key));
    }
  }
  // A session may stand in the folder of its capture, and goes with it then.
  for (path& input : inputs) {
    std::error_code error;
    if (std::filesystem::is_directory(input, error)) input /= kCatalogueName;
  }
  OutputFile out(file, {.force = force, .inputs = inputs});
  out.create_part();
  out.write_at(std::as_bytes(std::span(text.data(), text.size())), 0);
  out.commit();
}

namespace {

/// The actions that bring side B back.
std::vector<Action> other_side_actions(const OtherSide& other, const HeadId& head) {
  std::vector<Action> actions{action::SetOther{head},
                              action::SetDifference{other.difference},
                              action::SetSplitLine{other.split},
                              action::SetLock{action::Lock::zoom, other.lock_zoom},
                              action::SetLock{action::Lock::range, other.lock_range},
                              action::SetLock{action::Lock::cursor, other.lock_cursor},
                              action::ShowRanked{other.ranked}};
  if (!other.lock_zoom) actions.emplace_back(action::SetOtherRect{other.rect});
  // It belongs to the difference, where there is one.
  if (other.difference != Difference::off) actions.emplace_back(action::SetRange{other.range});
  return actions;
}

}  // namespace

ViewState restored_view(const Session& session, const HeadPicker& picker, const ViewLimits& limits,
                        const HeadPicker& others) {
  const ViewState& view = session.view;
  ViewState state = opened_view(limits);
  // Rows are ranked where there is a side B.
  const bool ranked = view.maximised == ViewPane::ranked;
  try {
    std::vector<Action> actions{action::SelectHead{picker.find(session.head)},
                                action::SetReverse{view.reverse},
                                action::SetSegment{view.segment},
                                action::SetProduct{view.product},
                                action::SetPool{view.pool},
                                action::SetScale{view.scale},
                                action::SetRange{view.range},
                                action::EqualAxes{view.equal_axes},
                                action::SetColormap{view.colormap},
                                action::SetTheme{view.theme},
                                action::Maximise{ranked ? std::nullopt : view.maximised},
                                action::ShowHistogram{view.show_histogram},
                                action::SetAtlas{view.atlas},
                                action::SetVolume{view.volume},
                                action::SetTimeline{view.timeline},
                                action::SetTracks{view.tracks},
                                action::ShowFrames{view.show_frames},
                                action::SetSplit{view.split_query},
                                action::SetWords{view.words},
                                action::SetFilm{view.film},
                                action::SetMask{view.mask},
                                action::SetOrder{view.order.rows, action::MapSide::rows},
                                action::SetOrder{view.order.keys, action::MapSide::keys},
                                action::SetRect{view.rect}};
    if (view.query) actions.emplace_back(action::PickQuery{*view.query});
    for (int64_t number = 1; number <= kPins; ++number) {
      if (const auto pin = view.pins.at(number)) actions.emplace_back(action::SetPin{number, pin});
    }
    if (view.other) {
      const auto more = other_side_actions(*view.other, others.find(session.other_head));
      actions.insert(actions.end(), more.begin(), more.end());
    }
    if (ranked) actions.emplace_back(action::Maximise{view.maximised});
    for (const Action& each : actions) state = apply_action(state, each, limits);
  } catch (const Error& error) {
    throw usage_error(std::string("session: ") + error.what());
  }
  state.other_order = view.other_order;
  return state;
}

}  // namespace attnscope
