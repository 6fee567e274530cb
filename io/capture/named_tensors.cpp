#include "io/capture/named_tensors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "io/capture/call/call_tensors.h"
#include "io/capture/call_in_file.h"

namespace attnscope {
namespace {

/// Patterns that are tried: those that fit most names.
constexpr size_t kMostTried = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool ends_part(char c) { return c == '.' || c == '/'; }

/// A name's letters, digits, and single characters of other kinds.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (size_t at = 0; at < name.size();) {
    size_t end = at + 1;
    const auto of_kind = is_digit(name[at]) ? is_digit : is_letter;
    if (of_kind(name[at])) {
      while (end < name.size() && of_kind(name[end])) ++end;
    }
    words.push_back(name.substr(at, end - at));
    at = end;
  }
  return words;
}

/// The placeholder of a number behind this word; empty where the word says nothing.
std::string placeholder_behind(std::string word) {
  static const std::map<std::string, std::string> kWords{
      {"layer", "layer"}, {"layers", "layer"}, {"block", "layer"},   {"blocks", "layer"},
      {"l", "layer"},     {"step", "step"},    {"steps", "step"},    {"iteration", "step"},
      {"iter", "step"},   {"it", "step"},      {"timestep", "step"}, {"t", "step"},
      {"head", "head"},   {"heads", "head"},   {"h", "head"}};
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = kWords.find(word);
  return found == kWords.end() ? "" : found->second;
}

bool is_usual(const std::string& part, std::initializer_list<std::string_view> roles) {
  return std::any_of(roles.begin(), roles.end(), [&](std::string_view role) {
    const std::vector<std::string>& names = usual_names(role);
    return std::find(names.begin(), names.end(), part) != names.end();
  });
}

/// True where the text has numbers, and no words but those that tell what a number counts.
bool tells_place_alone(const std::string& text) {
  bool numbers = false;
  for (const std::string& word : words_of(text)) {
    numbers = numbers || is_digit(word[0]);
    if (is_letter(word[0]) && placeholder_behind(word).empty()) return false;
  }
  return numbers;
}

/// Where a name says q, k or v.
struct RolePlace {
  size_t word = 0, word_end = 0;  ///< the word
  size_t name = 0, name_end = 0;  ///< with what makes a usual name of it: query_states
};

/// The role that the part [begin, end) of a name says.
std::optional<RolePlace> role_in_part(const std::string& key, size_t begin, size_t end) {
  const std::string part = key.substr(begin, end - begin);
  const std::vector<std::string> words = words_of(part);
  if (words.empty()) return std::nullopt;
  const size_t first_end = begin + words.front().size();
  if (is_usual(part, {"q", "k", "v"})) return RolePlace{begin, first_end, begin, end};
  if (is_role_word(words.front()) && tells_place_alone(key.substr(first_end, end - first_end))) {
    return RolePlace{begin, first_end, begin, first_end};
  }
  const size_t last = end - words.back().size();
  const bool stands_apart =
      words.size() > 1 && !is_digit(key[last - 1]) && !is_letter(key[last - 1]);
  const bool has_number = std::any_of(part.begin(), part.end(), is_digit);
  if (!stands_apart || !has_number || !is_role_word(words.back())) return std::nullopt;
  return RolePlace{last, end, last, end};
}

/// The last part of a name that says q, k or v by itself (blocks.3.q, q.3), or beside a number
/// (layer3_q, q_layer3). What stands behind it tells a place: blocks.3.q.weight is nobody's q.
std::optional<RolePlace> role_place(const std::string& key) {
  for (size_t end = key.size();;) {
    size_t begin = end;
    while (begin > 0 && !ends_part(key[begin - 1])) --begin;
    if (end < key.size() && !tells_place_alone(key.substr(end))) return std::nullopt;
    if (const auto place = role_in_part(key, begin, end)) return place;
    if (begin == 0) return std::nullopt;
    end = begin - 1;
  }
}

/// The placeholder for the number `at` by the word before it among `words`; empty where none tells.
std::string told_placeholder(const std::vector<std::string>& words, size_t at) {
  if (at > 0 && is_letter(words[at - 1][0])) return placeholder_behind(words[at - 1]);
  const bool apart = at > 1 && is_letter(words[at - 2][0]);
  // In h.3 of a list of blocks it is no head.
  return apart && words[at - 2].size() > 1 ? placeholder_behind(words[at - 2]) : "";
}

/// `words` with placeholders for the numbers that tell a place: each that a word tells, and the
/// layer where one number alone is left. False where neither step nor layer is told.
bool put_placeholders(std::vector<std::string>& words) {
  std::map<size_t, std::string> placeholders;
  std::set<std::string> taken;
  std::vector<size_t> alone;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!is_digit(words[i][0])) continue;
    const std::string told = told_placeholder(words, i);
    const bool glued = (i > 0 && is_letter(words[i - 1][0])) ||
                       (i + 1 < words.size() && is_letter(words[i + 1][0]));
    if (!told.empty() && taken.insert(told).second) placeholders[i] = told;
    if (told.empty() && !glued) alone.push_back(i);
  }
  if (taken.count("layer") == 0 && alone.size() == 1) {
    placeholders[alone.front()] = "layer";
    taken.insert("layer");
  }
  for (const auto& [at, placeholder] : placeholders) words[at] = "{" + placeholder + "}";
  return taken.count("layer") != 0 || taken.count("step") != 0;
}

/// The pattern that a tensor's name makes; empty where it makes none.
std::string pattern_of(const std::string& key) {
  if (key.find_first_of("{}") != std::string::npos) return "";
  std::vector<std::string> words;
  if (const auto place = role_place(key)) {
    words = words_of(key.substr(0, place->word));
    words.push_back("{q|k|v}");
    const std::vector<std::string> behind = words_of(key.substr(place->word_end));
    words.insert(words.end(), behind.begin(), behind.end());
  } else {
    const size_t last = key.find_last_of("./");
    if (last == std::string::npos || !is_usual(key.substr(last + 1), {"qkv", "kv"})) return "";
    words = words_of(key.substr(0, last));
  }
  if (!put_placeholders(words)) return "";
  std::string pattern;
  for (const std::string& word : words) pattern += word;
  return pattern;
}

/// The frame of the call that this name of q, k or v belongs to.
KeyFrame frame_of(const std::string& key, const IndexRange& role) {
  const auto begin = static_cast<size_t>(role.begin), end = static_cast<size_t>(role.end);
  const auto place = role_place(key);
  // query_states as a whole is a name; other letters beside the word belong to the frame.
  if (place && place->word == begin)
    return {key.substr(0, place->name), key.substr(place->name_end)};
  return {key.substr(0, begin), key.substr(end)};
}

/// The names that may stand before those of a call's tensors, with the character behind them:
/// "blocks.3.attn" and "blocks.3" of blocks.3.attn.q.
std::map<std::string, char> outer_names(const std::vector<std::string>& keys) {
  std::map<std::string, char> names;
  for (const std::string& key : keys) {
    for (size_t at = key.size(); at-- > 1;) {
      if (ends_part(key[at])) names.emplace(key.substr(0, at), key[at]);
    }
  }
  return names;
}

/// The calls that a pattern makes, each as a file of its own where its tensors are no single heads.
NamedFiles calls_of_pattern(const std::shared_ptr<const TensorFile>& file,
                            const NamePattern& pattern) {
  std::vector<std::string> names = file->keys();
  std::map<std::string, char> outer;
  if (!pattern.has_role()) {
    outer = outer_names(names);
    names.clear();
    for (const auto& [name, divider] : outer) names.push_back(name);
  }
  NamedFiles found = group_named(names, pattern, [&](const std::string& name) {
    return NamedPart{
        .head = {}, .path = file->path(), .key = outer.empty() ? name : name + outer.at(name)};
  });
  std::vector<KeyFrame> frames;
  for (NamedCall& call : found.calls) {
    call.file = file;
    const auto& [role, parts] = *call.parts.begin();
    if (parts.front().head) continue;
    const std::string& key = parts.front().key;
    frames.push_back(role.empty() ? KeyFrame{key, ""}
                                  : frame_of(key, pattern.match(key)->role_place));
  }
  // Heads are there in every call or in none.
  if (frames.empty()) return found;
  CallsInFile calls = calls_in_file(file, frames);
  for (size_t i = 0; i < frames.size(); ++i) found.calls[i].within = calls.calls[i];
  found.left_out = std::move(calls.left_out);
  return found;
}

/// True where every call has a q and a k.
bool are_whole(const NamedFiles& found) {
  return are_whole_calls(found) &&
         std::all_of(found.calls.begin(), found.calls.end(), [](const NamedCall& call) {
           return call.within == nullptr || tell_call(call.within->keys());
         });
}

}  // namespace

NamedFiles find_named_tensors(const std::shared_ptr<const TensorFile>& file,
                              const std::optional<std::string>& pattern) {
  if (pattern) return calls_of_pattern(file, NamePattern(*pattern, NamePattern::Of::tensors));
  std::map<std::string, std::pair<int64_t, size_t>> uses;  // less how many names; which was first
  for (const std::string& key : file->keys()) {
    const std::string made = pattern_of(key);
    if (!made.empty()) --uses.emplace(made, std::pair(0, uses.size())).first->second.first;
  }
  std::vector<std::pair<std::pair<int64_t, size_t>, std::string>> tried;
  for (const auto& [made, use] : uses) tried.emplace_back(use, made);
  std::sort(tried.begin(), tried.end());
  NamedFiles best{"", {}, file->keys()};
  for (size_t i = 0; i < tried.size() && i < kMostTried; ++i) {
    NamedFiles found =
        calls_of_pattern(file, NamePattern(tried[i].second, NamePattern::Of::tensors));
    if (are_whole(found) && found.calls.size() > best.calls.size()) best = std::move(found);
  }
  return best;
}

}  // namespace attnscope
