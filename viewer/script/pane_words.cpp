#include "viewer/script/pane_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/nearest_word.h"
#include "viewer/view/mask_text.h"

namespace attnscope {
namespace {

/// The third word, one of two.
std::string either(ScriptArguments w, const std::vector<std::string>& names) {
  if (w.size() != 3 || std::find(names.begin(), names.end(), w[2]) == names.end()) {
    throw unknown_name(w[0] + " " + w[1], w.size() > 2 ? w[2] : std::string(), names);
  }
  return w[2];
}

word::ShowMask parse_mask_edit(ScriptArguments w) {
  if (w.size() != 6) {
    throw usage_error("mask " + w[1] + ": expected Q0 Q1 K0 K1, queries and keys from and to");
  }
  word::ShowMask edit{"edit"};
  edit.edit = {whole(w, 2), whole(w, 3), whole(w, 4), whole(w, 5), w[1] == "keep"};
  edited_mask(Mask(), {edit.edit});  // an empty one is refused
  return edit;
}

}  // namespace

word::ShowWords parse_words(ScriptArguments w) {
  if (w[1] == "special") return {"special", either(w, {"on", "off"})};
  if (w[1] == "sort") return {"sort", either(w, {"prompt", "mass"})};
  if (w[1] == "filter" && w.size() > 2) {
    const std::string filter = fmt::format("{}", fmt::join(w.subspan(2), " "));
    return {"filter", filter == "none" ? "" : filter};
  }
  if (w.size() != 2 || (w[1] != "on" && w[1] != "off")) {
    throw usage_error(
        "words: expected on, off, special on, special off, sort prompt, sort mass, filter TEXT or "
        "filter none");
  }
  return {w[1], ""};
}

word::Film parse_film(ScriptArguments w) {
  static const std::vector<std::string> kParts{"none",   "tint", "outline", "contour",
                                               "all",    "one",  "latent",  "nearest",
                                               "linear", "play", "stop"};
  const std::string& part = w[1];
  if (w.size() == 2) {
    if (std::find(kParts.begin(), kParts.end(), part) != kParts.end()) return {part, "", 0};
    static constexpr std::array kEndings{".gif", ".mp4", ".png", ".svg", ".pdf", "/"};
    const auto ends = [&](const char* ending) { return part.ends_with(ending); };
    if (std::any_of(kEndings.begin(), kEndings.end(), ends)) return {"save", part, 0};
    std::vector<std::string> names = kParts;
    for (const char* more : {"opacity", "frame", "rate", "loop", "FILE.gif", "FILE.mp4", "FILE.png",
                             "FILE.pdf", "FOLDER/"}) {
      names.emplace_back(more);
    }
    throw unknown_name("film", part, names);
  }
  if (part == "loop") return {part, "", either(w, {"on", "off"}) == "on" ? 1.0 : 0.0};
  if (part == "frame") {
    const int64_t frame = whole(w, 2);
    if (frame < 0) throw usage_error("film frame: frames count from 0");
    return {part, "", static_cast<double>(frame)};
  }
  if (part == "rate") {
    const int64_t rate = w[2] == "auto" ? 0 : whole(w, 2);
    if (w[2] != "auto" && (rate < 1 || rate > kMostFilmRate)) {
      throw usage_error("film rate: expected 1 to " + std::to_string(kMostFilmRate) +
                        " moments a second, or auto, got " + w[2]);
    }
    return {part, "", static_cast<double>(rate)};
  }
  if (part != "opacity") throw usage_error("film " + part + ": takes nothing more");
  const double opacity = number(w, 2);
  if (!(opacity > 0) || opacity > 1) {
    throw usage_error("film opacity: expected a number above 0, at most 1, got " + w[2]);
  }
  return {part, "", opacity};
}

word::ShowMask parse_mask(ScriptArguments w) {
  if (w.size() == 2 && (w[1] == "on" || w[1] == "off" || w[1] == "unedited")) return {w[1]};
  if (w[1] == "keep" || w[1] == "drop") return parse_mask_edit(w);
  if (w.size() > 3) throw usage_error("mask: expected 1 to 2 words, or keep|drop Q0 Q1 K0 K1");
  if (w[1] == "lost") {
    word::ShowMask lost{"lost"};
    lost.lost = either(w, {"on", "off"}) == "on";
    return lost;
  }
  if (w[1] == "brush") {
    word::ShowMask brush{"brush"};
    const std::string how = either(w, {"keep", "drop", "off"});
    if (how != "off") brush.brush = how == "keep" ? MaskBrush::keep : MaskBrush::drop;
    return brush;
  }
  const bool file = is_mask_file(w[1]);
  if (w.size() == 3 && !file) {
    throw usage_error("mask " + one_line(w[1]) + ": only a FILE.npy is told its block");
  }
  const MaskLook look{true, w[1], w.size() == 3 ? whole(w, 2) : 128};
  check_mask_look(look);
  const std::string text =
      file ? std::filesystem::absolute(w[1]).lexically_normal().string() : w[1];
  return {"set", text, look.block};
}

word::ShowTrack parse_track(ScriptArguments w) {
  if (w[1] == "rows") {
    const auto track = parse_row_track(w[2]);
    if (!track) throw unknown_name("track rows", w[2], row_track_names());
    return {*track, {}};
  }
  if (w[1] != "keys") throw unknown_name("track", w[1], {"rows", "keys"});
  const auto track = parse_key_track(w[2]);
  if (!track) throw unknown_name("track keys", w[2], key_track_names());
  return {{}, *track};
}

word::ChooseWords parse_word(ScriptArguments w) {
  if (w[1].empty()) throw usage_error("word: expected a place within the text or a word of it");
  return {w[1] == "none" ? "" : w[1]};
}

word::ShowOrder parse_order(ScriptArguments words) {
  word::ShowOrder order{words[1], std::nullopt};
  // A word with a dot or a slash may name a file; that is looked at when the line is run.
  const bool file = words[1].find_first_of("./") != std::string::npos;
  if (!file || TokenOrder::is_name(words[1])) TokenOrder::parse(words[1]);
  if (words.size() == 2) return order;
  if (words[2] == "rows") order.side = action::MapSide::rows;
  if (words[2] == "keys") order.side = action::MapSide::keys;
  if (!order.side) throw unknown_name("order " + words[1], words[2], {"rows", "keys"});
  return order;
}

}  // namespace attnscope
