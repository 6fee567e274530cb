#include "viewer/script/pane_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace attnscope {
namespace {

/// The third word, one of two.
std::string either(ScriptArguments w, const std::vector<std::string>& names) {
  if (w.size() != 3 || std::find(names.begin(), names.end(), w[2]) == names.end()) {
    throw unknown_name(w[0] + " " + w[1], w.size() > 2 ? w[2] : std::string(), names);
  }
  return w[2];
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

word::ChooseWords parse_word(ScriptArguments w) {
  if (w[1].empty()) throw usage_error("word: expected a place within the text or a word of it");
  return {w[1] == "none" ? "" : w[1]};
}

}  // namespace attnscope
