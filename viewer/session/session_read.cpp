#include "viewer/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "io/pictures/colormap.h"
#include "io/tensors/token_order_file.h"
#include "viewer/session/remote_place.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/mask_text.h"
#include "viewer/view/view_names.h"

namespace attnscope {
namespace {

constexpr int64_t kLeastSide = 64, kMostSide = 16384;

/// An object of the file, of which every key must be asked for.
class Fields {
 public:
  Fields(const Json& json, std::string file, std::string where)
      : json_(json), file_(std::move(file)), where_(std::move(where)) {
    if (!json_.is_object()) throw fail("", "expected an object");
  }

  const std::string& file() const { return file_; }
  bool has(const char* key) {
    known_.insert(key);
    return json_.contains(key);
  }
  const Json& at(const char* key) {
    if (!has(key)) throw fail(key, "is missing");
    return json_[key];
  }
  Fields object(const char* key) { return {at(key), file_, place(key)}; }

  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string()) throw fail(key, "expected a text");
    return value.get<std::string>();
  }
  bool boolean(const char* key) {
    const Json& value = at(key);
    if (!value.is_boolean()) throw fail(key, "expected true or false");
    return value.get<bool>();
  }
  int64_t whole(const char* key, int64_t least, int64_t most) {
    return whole_of(at(key), key, least, most);
  }
  int64_t whole_of(const Json& value, const char* key, int64_t least, int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX) &&
                      value.get<int64_t>() >= least && value.get<int64_t>() <= most;
    if (fits) return value.get<int64_t>();
    throw fail(key, most == INT64_MAX && least == 0
                        ? "expected whole numbers from 0 on, got " + value.dump()
                        : fmt::format("expected a whole number from {} to {}, got {}", least, most,
                                      value.dump()));
  }
  double number(const char* key) { return number_of(at(key), key); }
  double number_of(const Json& value, const char* key) const {
    if (!value.is_number()) throw fail(key, "expected a number");
    return value.get<double>();
  }
  std::vector<double> numbers(const char* key, size_t count) {
    const Json& value = at(key);
    if (!value.is_array() || value.size() != count) {
      throw fail(key, fmt::format("expected {} numbers", count));
    }
    std::vector<double> numbers;
    for (const Json& each : value) numbers.push_back(number_of(each, key));
    return numbers;
  }
  /// A name that `parse` knows.
  template <typename Parse>
  auto name(const char* key, const Parse& parse, const std::vector<std::string>& names) {
    const std::string word = text(key);
    const auto value = parse(word);
    if (value) return *value;
    const std::string nearest = nearest_word(word, names);
    throw fail(key, fmt::format("{}: no such name{} ({})", one_line(word),
                                nearest.empty() ? "" : ", did you mean " + nearest + "?",
                                fmt::join(names, ", ")));
  }

  /// Throws for a key that nobody asked for.
  void check_all_known() const {
    for (const auto& [key, value] : json_.items()) {
      if (known_.contains(key)) continue;
      const std::vector<std::string> names(known_.begin(), known_.end());
      const std::string nearest = nearest_word(key, names);
      throw fail(
          one_line(key),
          "no such key" + (nearest.empty() ? std::string() : ", did you mean " + nearest + "?"));
    }
  }
  Error fail(const std::string& key, const std::string& what) const {
    return file_error(file_, place(key), what);
  }

 private:
  std::string place(const std::string& key) const {
    return where_.empty() || key.empty() ? where_ + key : where_ + "." + key;
  }

  const Json& json_;
  std::string file_, where_;
  std::set<std::string> known_;
};

FactOverrides read_facts(Fields fields, const std::filesystem::path& folder) {
  FactOverrides facts;
  for (const TextFact& fact : kTextFacts) {
    if (fields.has(fact.name)) facts.*fact.value = fields.text(fact.name);
  }
  if (facts.mask) facts.mask = opened_mask(*facts.mask, folder);
  if (facts.cu_seqlens) facts.cu_seqlens = opened_cuts(*facts.cu_seqlens, folder);
  if (facts.cu_seqlens_k) facts.cu_seqlens_k = opened_cuts(*facts.cu_seqlens_k, folder);
  if (fields.has("as")) {
    for (const auto& [name, value] : fields.at("as").items()) {
      if (!value.is_string()) throw fields.fail("as", one_line(name) + ": expected a string");
      facts.told[name] = value.get<std::string>();
    }
  }
  if (fields.has("score")) {
    facts.score = fields.name("score", [](const std::string& name) { return parse_score(name); },
                              {"softmax", "sigmoid", "linear:elu1", "linear:relu"});
  }
  fields.check_all_known();
  return facts;
}

HeadValues read_head(Fields fields) {
  HeadValues head;
  head.step = fields.whole("step", INT64_MIN, INT64_MAX);
  head.layer = fields.whole("layer", INT64_MIN, INT64_MAX);
  head.kind = fields.name("kind", [](const std::string& name) { return parse_kind(name); },
                          {"self", "cross", "joint"});
  head.branch = fields.text("branch");
  head.batch = fields.whole("batch", 0, INT64_MAX);
  head.head = fields.whole("head", 0, INT64_MAX);
  if (fields.has("block")) head.place.block = fields.text("block");
  if (fields.has("slot")) head.place.slot = fields.text("slot");
  if (fields.has("chunk")) head.place.chunk = fields.whole("chunk", 0, INT64_MAX);
  fields.check_all_known();
  return head;
}

/// Tokens that ascend.
std::vector<int64_t> read_tokens(Fields& fields, const char* key) {
  std::vector<int64_t> tokens;
  for (const Json& each : fields.at(key)) {
    tokens.push_back(fields.whole_of(each, key, 0, INT64_MAX));
  }
  if (std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) != tokens.end()) {
    throw fields.fail(key, "the tokens must ascend");
  }
  return tokens;
}

std::optional<ChosenQuery> read_query(Fields& fields) {
  const Json& value = fields.at("query");
  if (value.is_null()) return std::nullopt;
  if (!value.is_array() || value.empty()) {
    throw fields.fail("query", "expected null or a list of tokens");
  }
  return ChosenQuery{read_tokens(fields, "query")};
}

WordsLook read_words(Fields fields) {
  WordsLook look;
  look.shown = fields.boolean("shown");
  look.special = fields.boolean("special");
  look.by_mass = fields.boolean("by_mass");
  look.filter = fields.text("filter");
  if (!fields.at("chosen").is_array()) throw fields.fail("chosen", "expected a list of tokens");
  look.chosen = read_tokens(fields, "chosen");
  fields.check_all_known();
  return look;
}

FilmLook read_film(Fields fields) {
  FilmLook look;
  look.over = fields.boolean("over");
  look.mode = fields.name("mode", parse_film_mode, film_mode_names());
  look.opacity = static_cast<float>(fields.number("opacity"));
  if (!(look.opacity > 0) || look.opacity > 1) {
    throw fields.fail("opacity", "expected a number above 0, at most 1");
  }
  look.time = fields.name("time", parse_film_time, film_time_names());
  look.one = fields.boolean("one");
  look.loop = fields.boolean("loop");
  look.moment = fields.whole("moment", 0, INT64_MAX);
  if (fields.has("rate")) look.rate = static_cast<int>(fields.whole("rate", 1, kMostFilmRate));
  fields.check_all_known();
  return look;
}

ColourRange ends_of(const Fields& fields, const std::vector<double>& ends) {
  if (!(ends[0] < ends[1])) throw fields.fail("range", "the low end must be below the high end");
  return {false, ends[0], ends[1]};
}

ColourRange read_range(Fields& fields) {
  ColourRange range;
  range.whole = fields.at("range") == "minmax";
  if (range.whole || fields.at("range") == "auto") return range;
  if (!fields.at("range").is_array()) {
    throw fields.fail("range", "expected \"auto\", \"minmax\" or two numbers");
  }
  return ends_of(fields, fields.numbers("range", 2));
}

MapRect read_rect(Fields& fields) {
  const auto rect = fields.numbers("rect", 4);
  if (!(rect[0] < rect[1]) || !(rect[2] < rect[3])) {
    throw fields.fail("rect", "expected Q0 < Q1 and K0 < K1");
  }
  return {rect[0], rect[1], rect[2], rect[3]};
}

/// Side B into the session; its second capture alone where no head is named.
void read_other_side(Fields fields, const std::filesystem::path& folder, Session& session) {
  if (fields.has("capture")) {
    const std::string name = fields.text("capture");
    if (name.empty()) throw fields.fail("capture", "is empty");
    session.other_capture = opened_path(name, folder);
  }
  if (!fields.has("head")) {
    if (session.other_capture.empty()) throw fields.fail("head", "is missing");
    return fields.check_all_known();
  }
  session.other_head = read_head(fields.object("head"));
  OtherSide other;
  other.rect = session.view.rect;
  if (fields.has("difference")) {
    other.difference = fields.name("difference", parse_difference, difference_names());
  }
  if (fields.has("split")) {
    const double share = fields.number("split");
    if (!(share >= 0) || !(share <= 1)) {
      throw fields.fail("split", "expected a share of the map's width from 0 to 1");
    }
    other.split = static_cast<float>(share);
  }
  if (fields.has("range")) other.range = read_range(fields);
  if (fields.has("rect")) {
    other.rect = read_rect(fields);
    other.lock_zoom = false;
  }
  if (fields.has("lock_range")) other.lock_range = fields.boolean("lock_range");
  if (fields.has("lock_cursor")) other.lock_cursor = fields.boolean("lock_cursor");
  if (fields.has("ranked")) other.ranked = fields.boolean("ranked");
  fields.check_all_known();
  session.view.other = other;
}

AtlasLook read_atlas(Fields fields) {
  AtlasLook look;
  look.shown = fields.boolean("shown");
  look.metric = fields.text("metric");
  look.sort = fields.text("sort");
  look.filter = fields.text("filter");
  look.exact = fields.boolean("exact");
  fields.check_all_known();
  return look;
}

VolumeLook read_volume(Fields fields) {
  VolumeLook look;
  look.shown = fields.boolean("shown");
  look.mode = fields.name("mode", parse_volume_mode, volume_mode_names());
  look.threshold = fields.number("threshold");
  look.azimuth = fields.number("azimuth");
  look.elevation = fields.number("elevation");
  look.zoom = fields.number("zoom");
  if (const Json& slice = fields.at("slice"); !slice.is_null()) {
    const bool pair = slice.is_array() && slice.size() == 2 && slice[0].is_string();
    const auto axis =
        pair ? parse_volume_axis(slice[0].get<std::string>()) : std::optional<VolumeAxis>();
    if (!axis) throw fields.fail("slice", "expected null or an axis (t, y, x) and a plane");
    look.slice = VolumeSlice{*axis, fields.whole_of(slice[1], "slice", 0, INT64_MAX)};
  }
  fields.check_all_known();
  return look;
}

TimelineLook read_timeline(Fields fields) {
  TimelineLook look;
  look.shown = fields.boolean("shown");
  look.metric = fields.text("metric");
  look.over = fields.name("over", parse_curve_axis, curve_axis_names());
  look.loop = fields.boolean("loop");
  look.speed = fields.number("speed");
  look.follow = fields.boolean("follow");
  fields.check_all_known();
  return look;
}

MaskEdit read_mask_edit(Fields& fields) {
  const Json& rect = fields.at("rect");
  if (!rect.is_array() || rect.size() != 4) throw fields.fail("rect", "expected 4 numbers");
  const auto end = [&](size_t i) { return fields.whole_of(rect[i], "rect", 0, INT64_MAX); };
  return {end(0), end(1), end(2), end(3), fields.boolean("keep")};
}

MaskLook read_mask_look(Fields fields, const std::filesystem::path& folder) {
  MaskLook look;
  look.shown = fields.boolean("shown");
  look.text = fields.text("text");
  if (is_mask_file(look.text)) look.text = opened_path(look.text, folder);
  look.block = fields.whole("block", 1, int64_t{1} << 30);
  if (fields.has("lost")) look.lost = fields.boolean("lost");
  if (fields.has("edits")) {
    const Json& list = fields.at("edits");
    if (!list.is_array()) throw fields.fail("edits", "expected a list of rectangles");
    for (const Json& each : list) {
      Fields edit(each, fields.file(), "view.mask.edits");
      look.edits.push_back(read_mask_edit(edit));
      edit.check_all_known();
    }
  }
  fields.check_all_known();
  return look;
}

TracksLook read_tracks(Fields fields) {
  TracksLook look;
  look.rows = fields.name("rows", parse_row_track, row_track_names());
  look.keys = fields.name("keys", parse_key_track, key_track_names());
  fields.check_all_known();
  return look;
}

Pins read_pins(const Json& list, const Fields& of, const std::string& file) {
  if (!list.is_array()) throw of.fail("pins", "expected a list of pins");
  Pins pins;
  for (const Json& each : list) {
    Fields fields(each, file, "view.pins");
    const int64_t number = fields.whole("number", 1, kPins);
    if (pins.at(number)) throw fields.fail("number", fmt::format("there are two pins {}", number));
    const int64_t query = fields.whole("query", 0, INT64_MAX);
    pins.set(number, Pin{query, fields.whole("key", 0, INT64_MAX)});
    fields.check_all_known();
  }
  return pins;
}

/// A file is read: it is part of what is seen.
MapOrder read_order(Fields fields, const std::filesystem::path& folder) {
  const auto side = [&](const char* key) {
    const std::string name = fields.text(key);
    try {
      return TokenOrder::is_name(name) ? TokenOrder::parse(name)
                                       : open_token_order(opened_path(name, folder));
    } catch (const Error& e) {
      throw fields.fail(key, e.what());
    }
  };
  MapOrder order{side("rows"), side("keys")};
  // One file for both sides is one order.
  if (order.rows.file == order.keys.file) order.keys.list = order.rows.list;
  fields.check_all_known();
  return order;
}

/// `files`: of the files that masks are read from.
ViewState read_view(Fields fields, const std::filesystem::path& folder,
                    const std::filesystem::path& files) {
  ViewState view;
  view.rect = read_rect(fields);
  view.query = read_query(fields);
  view.reverse = fields.boolean("reverse");
  if (fields.has("segment")) view.segment = fields.text("segment");
  view.product = fields.name("product", parse_product, product_names());
  view.pool = fields.name("pool", parse_pool, pool_names());
  view.scale = fields.name("scale", parse_scale_kind, scale_kind_names());
  fields.name("colormap", parse_colormap, colormap_names());
  view.colormap = fields.text("colormap");
  view.range = read_range(fields);
  if (fields.has("order")) view.order = read_order(fields.object("order"), folder);
  if (fields.has("other_order")) {
    view.other_order = read_order(fields.object("other_order"), folder);
  }
  if (fields.has("equal_axes")) view.equal_axes = fields.boolean("equal_axes");
  view.theme = fields.name("theme", parse_theme, theme_names());
  if (!fields.at("maximised").is_null()) {
    view.maximised = fields.name("maximised", parse_pane, pane_names());
  }
  view.show_histogram = fields.boolean("show_histogram");
  if (fields.has("atlas")) view.atlas = read_atlas(fields.object("atlas"));
  if (fields.has("volume")) view.volume = read_volume(fields.object("volume"));
  if (fields.has("timeline")) view.timeline = read_timeline(fields.object("timeline"));
  if (fields.has("tracks")) view.tracks = read_tracks(fields.object("tracks"));
  if (fields.has("pins")) view.pins = read_pins(fields.at("pins"), fields, fields.file());
  if (fields.has("show_frames")) view.show_frames = fields.boolean("show_frames");
  if (fields.has("words")) view.words = read_words(fields.object("words"));
  if (fields.has("film")) view.film = read_film(fields.object("film"));
  if (fields.has("mask")) view.mask = read_mask_look(fields.object("mask"), files);
  const double share = fields.number("split_query");
  if (!(share > 0) || !(share < 1)) {
    throw fields.fail("split_query", "expected a share of the width between 0 and 1");
  }
  view.split_query = static_cast<float>(share);
  fields.check_all_known();
  return view;
}

}  // namespace

Session parse_session(std::string_view text, const std::string& file,
                      const std::filesystem::path& folder) {
  const Json json = parse_strict_json(text, file, "");
  Fields fields(json, file, "");
  Session session;
  if (const std::string format = fields.text("format"); format != kSessionFormat) {
    throw fields.fail("format",
                      fmt::format("expected \"{}\", got \"{}\"", kSessionFormat, one_line(format)));
  }
  const bool tensors = fields.has("tensors");
  if (fields.has("capture") == tensors) {
    throw fields.fail("capture", "a session names either a capture or tensors");
  }
  if (tensors) {
    Fields files = fields.object("tensors");
    session.tensors.q = opened_path(files.text("q"), folder);
    session.tensors.k = opened_path(files.text("k"), folder);
    if (files.has("v")) session.tensors.v = opened_path(files.text("v"), folder);
    files.check_all_known();
  } else {
    const std::string name = fields.text("capture");
    if (name.empty()) throw fields.fail("capture", "is empty");
    session.capture = opened_path(name, folder);
  }
  const bool remote = is_remote_name(session.capture.string());
  const std::filesystem::path there = remote ? std::filesystem::path() : folder;
  if (fields.has("facts")) session.facts = read_facts(fields.object("facts"), there);
  Fields window = fields.object("window");
  session.width = static_cast<int>(window.whole("width", kLeastSide, kMostSide));
  session.height = static_cast<int>(window.whole("height", kLeastSide, kMostSide));
  window.check_all_known();
  session.head = read_head(fields.object("head"));
  session.view = read_view(fields.object("view"), folder, there);
  if (fields.has("b")) read_other_side(fields.object("b"), folder, session);
  fields.check_all_known();
  return session;
}

}  // namespace attnscope
