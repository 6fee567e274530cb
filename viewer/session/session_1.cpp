#include "viewer/session/session_1.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "io/files/json_types.h"
#include "io/files/strict_json.h"
#include "viewer/session/remote_place.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/mask_text.h"

// Sessions as JSON, the format of version 0.1: every key becomes the line of a setting.

namespace attnscope {
namespace {

constexpr std::string_view kFormat1 = "attnscope-session/1";
constexpr int64_t kLeastSide1 = 64, kMostSide1 = 16384;

/// An object of the file, of which every key must be asked for.
class Fields {
 public:
  Fields(const Json& json, std::string file, std::string where)
      : json_(json), file_(std::move(file)), where_(std::move(where)) {
    if (!json_.is_object()) throw fail("", "expected an object");
  }

  bool has(const char* key) {
    known_.insert(key);
    return json_.contains(key);
  }
  const Json& at(const char* key) {
    if (!has(key)) throw fail(key, "is missing");
    return json_[key];
  }
  Fields object(const char* key) { return {at(key), file_, place(key)}; }
  /// The objects of a list.
  std::vector<Fields> objects(const char* key) {
    const Json& list = at(key);
    if (!list.is_array()) throw fail(key, std::string("expected a list of ") + key);
    std::vector<Fields> all;
    for (const Json& each : list) all.emplace_back(each, file_, place(key));
    return all;
  }

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
  std::string number(const char* key) { return number_of(at(key), key); }
  std::string number_of(const Json& value, const char* key) const {
    if (!value.is_number()) throw fail(key, "expected a number");
    return fmt::format("{}", value.get<double>());
  }
  std::vector<std::string> numbers(const char* key, size_t count) {
    const Json& value = at(key);
    if (!value.is_array() || value.size() != count) {
      throw fail(key, fmt::format("expected {} numbers", count));
    }
    std::vector<std::string> numbers;
    for (const Json& each : value) numbers.push_back(number_of(each, key));
    return numbers;
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
  std::string whole_place(const std::string& key) const { return file_ + ": " + place(key); }

 private:
  std::string place(const std::string& key) const {
    return where_.empty() || key.empty() ? where_ + key : where_ + "." + key;
  }

  const Json& json_;
  std::string file_, where_;
  std::set<std::string> known_;
};

/// Adds lines of settings to a session.
class Lines {
 public:
  explicit Lines(StoredSession& session) : session_(session) {}

  /// The line of these words, which `key` stands for.
  void say(const Fields& fields, const char* key, const std::vector<std::string>& words) {
    try {
      add(fields, key, parse_setting(words)->change);
    } catch (const Error& error) {
      throw fields.fail(key, error.what());
    }
  }
  void add(const Fields& fields, const char* key, SettingChange change) {
    session_.lines.push_back({fields.whole_place(key), std::move(change)});
  }
  void text(Fields& fields, const char* key, std::vector<std::string> words) {
    words.push_back(fields.text(key));
    say(fields, key, words);
  }
  /// A text that may be empty, for which `none` stands.
  void text_or(Fields& fields, const char* key, std::vector<std::string> words,
               const std::string& none) {
    words.push_back(text_word(fields.text(key), none));
    say(fields, key, words);
  }
  void number(Fields& fields, const char* key, std::vector<std::string> words) {
    words.push_back(fields.number(key));
    say(fields, key, words);
  }
  void flag(Fields& fields, const char* key, std::vector<std::string> words, const char* on = "on",
            const char* off = "off") {
    words.emplace_back(fields.boolean(key) ? on : off);
    say(fields, key, words);
  }
  void numbers(Fields& fields, const char* key, std::vector<std::string> words, size_t count) {
    for (std::string& each : fields.numbers(key, count)) words.push_back(std::move(each));
    say(fields, key, words);
  }

 private:
  StoredSession& session_;
};

FactOverrides read_facts(Fields fields, const std::filesystem::path& folder) {
  FactOverrides facts;
  for (const TextFact& fact : kTextFacts) {
    if (fields.has(fact.name)) facts.*fact.value = fields.text(fact.name);
  }
  open_files(facts, folder);
  if (fields.has("as")) {
    for (const auto& [name, value] : fields.at("as").items()) {
      if (!value.is_string()) throw fields.fail("as", one_line(name) + ": expected a string");
      facts.told[name] = value.get<std::string>();
    }
  }
  if (fields.has("score")) {
    const auto score = parse_score(fields.text("score"));
    if (!score) throw fields.fail("score", "expected softmax, sigmoid, linear:elu1 or linear:relu");
    facts.score = *score;
  }
  fields.check_all_known();
  return facts;
}

HeadValues read_head(Fields fields) {
  HeadValues head;
  head.step = fields.whole("step", INT64_MIN, INT64_MAX);
  head.layer = fields.whole("layer", INT64_MIN, INT64_MAX);
  const auto kind = parse_kind(fields.text("kind"));
  if (!kind) {
    throw fields.fail("kind",
                      unknown_name("kind", fields.text("kind"), {"self", "cross", "joint"}).what());
  }
  head.kind = *kind;
  head.branch = fields.text("branch");
  head.batch = fields.whole("batch", 0, INT64_MAX);
  head.head = fields.whole("head", 0, INT64_MAX);
  if (fields.has("block")) head.place.block = fields.text("block");
  if (fields.has("slot")) head.place.slot = fields.text("slot");
  if (fields.has("chunk")) head.place.chunk = fields.whole("chunk", 0, INT64_MAX);
  fields.check_all_known();
  return head;
}

/// "3,25" of tokens that ascend.
std::string read_tokens(Fields& fields, const char* key) {
  const Json& list = fields.at(key);
  if (!list.is_array()) throw fields.fail(key, "expected a list of tokens");
  std::vector<int64_t> tokens;
  for (const Json& each : list) tokens.push_back(fields.whole_of(each, key, 0, INT64_MAX));
  if (std::adjacent_find(tokens.begin(), tokens.end(), std::greater_equal<>()) != tokens.end()) {
    throw fields.fail(key, "the tokens must ascend");
  }
  return fmt::format("{}", fmt::join(tokens, ","));
}

void read_range(Fields& fields, Lines& lines) {
  const Json& range = fields.at("range");
  if (range.is_array()) return lines.numbers(fields, "range", {"range"}, 2);
  if (range != "auto" && range != "minmax") {
    throw fields.fail("range", "expected \"auto\", \"minmax\" or two numbers");
  }
  lines.text(fields, "range", {"range"});
}

void read_order(Fields fields, const std::string& word, Lines& lines) {
  // One file for both sides is one order.
  const auto order = [&fields](const char* key) {
    const std::string text = fields.text(key);
    return TokenOrder::is_name(text) ? text : order_file_word(text);
  };
  if (order("rows") == order("keys")) {
    lines.say(fields, "rows", {word, order("rows")});
  } else {
    lines.say(fields, "rows", {word, order("rows"), "rows"});
    lines.say(fields, "keys", {word, order("keys"), "keys"});
  }
  fields.check_all_known();
}

void read_atlas(Fields fields, Lines& lines) {
  lines.text_or(fields, "metric", {"atlas"}, "thumbnails");
  lines.text_or(fields, "sort", {"atlas", "sort"}, "layers");
  lines.text_or(fields, "filter", {"atlas", "filter"}, "none");
  lines.flag(fields, "exact", {"atlas"}, "exact", "sampled");
  lines.flag(fields, "shown", {"atlas"});
  fields.check_all_known();
}

void read_volume(Fields fields, Lines& lines) {
  lines.text(fields, "mode", {"volume"});
  lines.number(fields, "threshold", {"volume", "threshold"});
  lines.say(fields, "azimuth",
            {"volume", "orbit", fields.number("azimuth"), fields.number("elevation")});
  lines.number(fields, "zoom", {"volume", "zoom"});
  const Json& slice = fields.at("slice");
  if (slice.is_null()) {
    lines.say(fields, "slice", {"volume", "slice", "none"});
  } else {
    if (!slice.is_array() || slice.size() != 2 || !slice[0].is_string()) {
      throw fields.fail("slice", "expected null or an axis (t, y, x) and a plane");
    }
    lines.say(fields, "slice",
              {"volume", "slice", slice[0].get<std::string>(),
               std::to_string(fields.whole_of(slice[1], "slice", 0, INT64_MAX))});
  }
  lines.flag(fields, "shown", {"volume"});
  fields.check_all_known();
}

void read_timeline(Fields fields, Lines& lines) {
  lines.text_or(fields, "metric", {"timeline"}, "none");
  lines.text(fields, "over", {"timeline", "over"});
  lines.flag(fields, "loop", {"timeline", "loop"});
  lines.number(fields, "speed", {"timeline", "speed"});
  lines.flag(fields, "follow", {"timeline", "follow"});
  lines.flag(fields, "shown", {"timeline"});
  fields.check_all_known();
}

void read_words(Fields fields, Lines& lines) {
  const std::string chosen = read_tokens(fields, "chosen");
  lines.say(fields, "chosen", {"word", chosen.empty() ? "none" : chosen});
  lines.flag(fields, "special", {"words", "special"});
  lines.flag(fields, "by_mass", {"words", "sort"}, "mass", "prompt");
  lines.text_or(fields, "filter", {"words", "filter"}, "none");
  lines.flag(fields, "shown", {"words"});
  fields.check_all_known();
}

void read_film(Fields fields, Lines& lines) {
  lines.text(fields, "mode", {"film"});
  if (!fields.boolean("over")) lines.say(fields, "over", {"film", "none"});
  lines.number(fields, "opacity", {"film", "opacity"});
  lines.text(fields, "time", {"film"});
  lines.flag(fields, "one", {"film"}, "one", "all");
  lines.flag(fields, "loop", {"film", "loop"});
  lines.say(fields, "moment",
            {"film", "frame", std::to_string(fields.whole("moment", 0, INT64_MAX))});
  if (fields.has("rate")) lines.number(fields, "rate", {"film", "rate"});
  fields.check_all_known();
}

void read_mask(Fields fields, Lines& lines) {
  const std::string text = fields.text("text");
  std::vector<std::string> words{"mask", text};
  const std::string block = std::to_string(fields.whole("block", 1, int64_t{1} << 30));
  if (is_mask_file(text)) words.push_back(block);
  // There is none at first, and `mask off` would close a pane that is seen alone.
  if (!text.empty()) lines.say(fields, "text", words);
  if (fields.has("edits")) {
    for (Fields& edit : fields.objects("edits")) {
      lines.numbers(edit, "rect", {"mask", edit.boolean("keep") ? "keep" : "drop"}, 4);
      edit.check_all_known();
    }
  }
  if (fields.has("lost")) lines.flag(fields, "lost", {"mask", "lost"});
  lines.flag(fields, "shown", {"mask"}, "on", "hide");
  fields.check_all_known();
}

void read_tracks(Fields fields, Lines& lines) {
  lines.text(fields, "rows", {"track", "rows"});
  lines.text(fields, "keys", {"track", "keys"});
  fields.check_all_known();
}

void read_pins(Fields& view, Lines& lines) {
  std::set<int64_t> numbers;
  for (Fields& pin : view.objects("pins")) {
    const int64_t number = pin.whole("number", 1, kPins);
    if (!numbers.insert(number).second) {
      throw pin.fail("number", fmt::format("there are two pins {}", number));
    }
    lines.say(pin, "number",
              {"pin", std::to_string(number), std::to_string(pin.whole("query", 0, INT64_MAX)),
               std::to_string(pin.whole("key", 0, INT64_MAX))});
    pin.check_all_known();
  }
}

/// All but the pane that is seen alone, which may be side B's, and keys that are read here.
void read_view(Fields& view, Lines& lines) {
  lines.flag(view, "reverse", {"reverse"});
  if (view.has("segment")) lines.text_or(view, "segment", {"segment"}, "none");
  lines.text(view, "product", {"product"});
  lines.text(view, "pool", {"pool"});
  lines.text(view, "scale", {"scale"});
  lines.text(view, "colormap", {"colormap"});
  read_range(view, lines);
  if (view.has("equal_axes")) lines.flag(view, "equal_axes", {"aspect"}, "equal", "fill");
  lines.text(view, "theme", {"theme"});
  lines.flag(view, "show_histogram", {"histogram"});
  if (view.has("atlas")) read_atlas(view.object("atlas"), lines);
  if (view.has("volume")) read_volume(view.object("volume"), lines);
  if (view.has("timeline")) read_timeline(view.object("timeline"), lines);
  if (view.has("tracks")) read_tracks(view.object("tracks"), lines);
  if (view.has("show_frames")) lines.flag(view, "show_frames", {"frames"});
  lines.number(view, "split_query", {"column"});
  if (view.has("words")) read_words(view.object("words"), lines);
  if (view.has("film")) read_film(view.object("film"), lines);
  if (view.has("mask")) read_mask(view.object("mask"), lines);
  if (view.has("order")) read_order(view.object("order"), "order", lines);
  // That which was seen before the first order is the usual one.
  if (view.has("other_order")) {
    read_order(view.object("other_order"), "other-order", lines);
  } else {
    lines.say(view, "other_order", {"other-order", "yxt"});
  }
  lines.numbers(view, "rect", {"zoom"}, 4);
  const Json& query = view.at("query");
  if (!query.is_null()) {
    const std::string tokens = read_tokens(view, "query");
    if (tokens.empty()) throw view.fail("query", "expected null or a list of tokens");
    lines.say(view, "query", {"query", "tokens", tokens});
  }
  if (view.has("pins")) read_pins(view, lines);
}

/// Side B; its second capture alone where no head is named.
void read_other_side(Fields fields, const std::filesystem::path& folder, StoredSession& session) {
  Lines lines(session);
  if (fields.has("capture")) {
    const std::string name = fields.text("capture");
    if (name.empty()) throw fields.fail("capture", "is empty");
    session.other_capture = opened_path(name, folder);
  }
  if (!fields.has("head")) {
    if (session.other_capture.empty()) throw fields.fail("head", "is missing");
    return fields.check_all_known();
  }
  lines.add(fields, "head",
            [head = read_head(fields.object("head"))](const SettingPlace& at) -> Action {
              return action::SetOther{at.others->find(head)};
            });
  if (fields.has("difference")) lines.text(fields, "difference", {"difference"});
  if (fields.has("split")) lines.number(fields, "split", {"b", "split"});
  // The range is the difference's; without one it would be A's.
  const bool subtracted = fields.has("difference") && fields.text("difference") != "off";
  if (fields.has("range") && subtracted) read_range(fields, lines);
  if (fields.has("rect")) {
    lines.say(fields, "rect", {"b", "release", "zoom"});
    lines.numbers(fields, "rect", {"b", "zoom"}, 4);
  }
  const auto read_lock = [&](const char* key, const char* lock) {
    if (!fields.has(key)) return;
    lines.say(fields, key, {"b", fields.boolean(key) ? "lock" : "release", lock});
  };
  read_lock("lock_range", "range");
  read_lock("lock_cursor", "cursor");
  if (fields.has("ranked")) lines.flag(fields, "ranked", {"b", "ranked"});
  fields.check_all_known();
}

void read_input(Fields& fields, StoredSession& session) {
  const bool tensors = fields.has("tensors");
  if (fields.has("capture") == tensors) {
    throw fields.fail("capture", "a session names either a capture or tensors");
  }
  if (tensors) {
    Fields files = fields.object("tensors");
    session.tensors.q = opened_path(files.text("q"), session.folder);
    session.tensors.k = opened_path(files.text("k"), session.folder);
    if (files.has("v")) session.tensors.v = opened_path(files.text("v"), session.folder);
    files.check_all_known();
  } else {
    const std::string name = fields.text("capture");
    if (name.empty()) throw fields.fail("capture", "is empty");
    session.capture = opened_path(name, session.folder);
  }
  const bool remote = is_remote_name(session.capture.string());
  const std::filesystem::path there = remote ? std::filesystem::path() : session.folder;
  if (fields.has("facts")) session.facts = read_facts(fields.object("facts"), there);
  Fields window = fields.object("window");
  session.width = static_cast<int>(window.whole("width", kLeastSide1, kMostSide1));
  session.height = static_cast<int>(window.whole("height", kLeastSide1, kMostSide1));
  window.check_all_known();
}

}  // namespace

bool is_session_1(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

StoredSession parse_session_1(std::string_view text, const std::string& file,
                              const std::filesystem::path& folder) {
  const Json json = parse_strict_json(text, file, "");
  Fields fields(json, file, "");
  StoredSession session;
  session.folder = folder;
  if (const std::string format = fields.text("format"); format != kFormat1) {
    throw fields.fail("format",
                      fmt::format("expected \"{}\", got \"{}\"", kFormat1, one_line(format)));
  }
  read_input(fields, session);
  Lines lines(session);
  lines.add(fields, "head",
            [head = read_head(fields.object("head"))](const SettingPlace& at) -> Action {
              return action::SelectHead{at.picker->find(head)};
            });
  Fields view = fields.object("view");
  const Json& pane = view.at("maximised");
  const std::string alone = pane.is_null() ? "all" : view.text("maximised");
  read_view(view, lines);
  view.check_all_known();
  if (fields.has("b")) read_other_side(fields.object("b"), folder, session);
  // Behind those that show other panes in its place.
  lines.say(view, "maximised", {"pane", alone});
  fields.check_all_known();
  return session;
}

}  // namespace attnscope
