#include "io/capture/name_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>
#include <tuple>

#include "core/base/error.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlaceholders[] = {"step", "layer", "head", "branch",
                                              "kind", "name",  "q|k",  "q|k|v"};

struct RoleWord {
  std::string_view word, role;
};
/// Longer words first: "key" is no "k" followed by "ey".
constexpr std::array kRoleWords{
    RoleWord{"queries", "q"}, RoleWord{"values", "v"}, RoleWord{"keys", "k"},
    RoleWord{"query", "q"},   RoleWord{"value", "v"},  RoleWord{"key", "k"},
    RoleWord{"q", "q"},       RoleWord{"k", "k"},      RoleWord{"v", "v"},
    RoleWord{"Q", "q"},       RoleWord{"K", "k"},      RoleWord{"V", "v"}};

bool is_number(const std::string& placeholder) {
  return placeholder == "step" || placeholder == "layer" || placeholder == "head";
}

std::optional<int64_t>& number_of(NameFields& fields, const std::string& placeholder) {
  return placeholder == "step" ? fields.step : placeholder == "layer" ? fields.layer : fields.head;
}

std::string& text_of(NameFields& fields, const std::string& placeholder) {
  return placeholder == "branch" ? fields.branch
         : placeholder == "kind" ? fields.kind
                                 : fields.name;
}

}  // namespace

NamePattern::NamePattern(const std::string& text, Of of) : text_(text) {
  const auto fail = [&](const std::string& what) {
    return usage_error("--pattern " + text + ": " + what);
  };
  std::set<std::string> seen;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = std::min(text.find('{', at), text.size());
    if (open > at) pieces_.push_back({text.substr(at, open - at), false});
    if (open == text.size()) break;
    const size_t close = text.find('}', open);
    if (close == std::string::npos) throw fail("a { is not closed");
    std::string name = text.substr(open + 1, close - open - 1);
    if (std::find(std::begin(kPlaceholders), std::end(kPlaceholders), name) ==
        std::end(kPlaceholders)) {
      throw fail("{" + name +
                 "} is none of {step} {layer} {head} {branch} {kind} {name} {q|k} "
                 "{q|k|v}");
    }
    if (name.find('|') != std::string::npos) {
      name = "role";
      has_role_ = true;
    }
    if (!seen.insert(name).second) throw fail("a placeholder occurs twice");
    const bool touches = !pieces_.empty() && pieces_.back().placeholder && open == at;
    if (touches && is_number(name) && is_number(pieces_.back().text)) {
      throw fail("nothing stands between {" + pieces_.back().text + "} and {" + name +
                 "}, so that nobody can tell where one number ends");
    }
    pieces_.push_back({name, true});
    at = close + 1;
  }
  if (seen.empty()) throw fail("has no placeholder, such as {layer}");
  if (of == Of::files && text.find('/') != std::string::npos) {
    throw fail("is for file names, not for paths");
  }
  if (seen.count("head") != 0 && !has_role_) throw fail("{head} needs {q|k} too");
}

std::optional<NameFields> NamePattern::match(std::string_view name) const {
  NameFields fields;
  if (!match_from(0, name, fields)) return std::nullopt;
  // They were counted from the end.
  const auto size = static_cast<int64_t>(name.size());
  if (has_role_) fields.role_place = {size - fields.role_place.begin, size - fields.role_place.end};
  return fields;
}

bool NamePattern::match_from(size_t index, std::string_view rest, NameFields& fields) const {
  if (index == pieces_.size()) return rest.empty();
  const WorkItem& piece = pieces_[index];
  if (!piece.placeholder) {
    return rest.starts_with(piece.text) &&
           match_from(index + 1, rest.substr(piece.text.size()), fields);
  }
  if (piece.text == "role") {
    for (const RoleWord& word : kRoleWords) {
      if (!rest.starts_with(word.word)) continue;
      if (!match_from(index + 1, rest.substr(word.word.size()), fields)) continue;
      fields.role = word.role;
      const auto left = static_cast<int64_t>(rest.size());
      fields.role_place = {left, left - static_cast<int64_t>(word.word.size())};
      return true;
    }
    return false;
  }
  if (is_number(piece.text)) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || rest.front() == '-') return false;
    const auto length = static_cast<size_t>(end - rest.data());
    if (!match_from(index + 1, rest.substr(length), fields)) return false;
    number_of(fields, piece.text) = value;
    return true;
  }
  for (size_t length = 1; length <= rest.size(); ++length) {
    if (!match_from(index + 1, rest.substr(length), fields)) continue;
    text_of(fields, piece.text) = rest.substr(0, length);
    return true;
  }
  return false;
}

std::span<const std::string> common_patterns() {
  static const std::vector<std::string> patterns = [] {
    // First the placeholders of the numbers, with and without the head; then the place of the role.
    const std::vector<std::string> numbers{"It{step}_L{layer}_H{head}",
                                           "step{step}_layer{layer}_head{head}",
                                           "step{step}_L{layer}_H{head}",
                                           "layer{layer}_head{head}",
                                           "L{layer}_H{head}",
                                           "It{step}_L{layer}",
                                           "step{step}_layer{layer}",
                                           "step_{step}_layer_{layer}",
                                           "layer{layer}_step{step}",
                                           "step{step}_L{layer}",
                                           "L{layer}_It{step}",
                                           "layer_{layer}",
                                           "layer{layer}",
                                           "L{layer}",
                                           "step{step}",
                                           "It{step}"};
    std::vector<std::string> list;
    for (const std::string ending : {".npy", ".pt", ".pth", ".safetensors"}) {
      for (const std::string& n : numbers) {
        for (const char* form : {"{name}_#_{q|k|v}", "#_{q|k|v}", "{q|k|v}_#"}) {
          std::string text = form;
          list.push_back(text.replace(text.find('#'), 1, n) + ending);
        }
      }
      list.push_back("{q|k|v}" + ending);
      list.push_back("{name}_{q|k|v}" + ending);
    }
    for (const std::string ending : {".pt", ".pth", ".npz", ".h5", ".hdf5", ".safetensors"}) {
      for (const std::string& n : numbers) {
        if (n.find("{head}") != std::string::npos) continue;
        list.push_back("{name}_" + n + ending);
        list.push_back(n + ending);
      }
    }
    return list;
  }();
  return patterns;
}

namespace {

using CallKey = std::tuple<std::optional<int64_t>, std::optional<int64_t>, std::string, std::string,
                           std::string>;

}  // namespace

NamedFiles group_named(const std::vector<std::string>& names, const NamePattern& pattern,
                       const std::function<NamedPart(const std::string& name)>& part) {
  NamedFiles result;
  result.pattern = pattern.text();
  std::map<CallKey, NamedCall> calls;
  for (const std::string& name : names) {
    auto fields = pattern.match(name);
    if (!fields) {
      result.left_out.push_back(name);
      continue;
    }
    NamedCall& call =
        calls[{fields->step, fields->layer, fields->branch, fields->kind, fields->name}];
    NamedPart& added = call.parts[fields->role].emplace_back(part(name));
    added.head = fields->head;
    call.fields = std::move(*fields);
  }
  for (auto& [key, call] : calls) {
    for (auto& [role, parts] : call.parts) {
      std::sort(parts.begin(), parts.end(), [](const NamedPart& a, const NamedPart& b) {
        return std::tie(a.head, a.path, a.key) < std::tie(b.head, b.path, b.key);
      });
      for (size_t i = 1; i < parts.size(); ++i) {
        const NamedPart &one = parts[i - 1], &other = parts[i];
        if (one.head != other.head) continue;
        throw file_error(other.path.string(), other.key.empty() ? "" : "tensor " + other.key,
                         "is the same tensor as " +
                             (one.key.empty() ? one.path.filename().string() : one.key) +
                             " by the pattern " + pattern.text());
      }
    }
    result.calls.push_back(std::move(call));
  }
  return result;
}

bool are_whole_calls(const NamedFiles& files) {
  return !files.calls.empty() &&
         std::all_of(files.calls.begin(), files.calls.end(), [](const NamedCall& c) {
           return c.parts.count("") != 0 || (c.parts.count("q") != 0 && c.parts.count("k") != 0);
         });
}

bool is_role_word(std::string_view word) {
  return std::any_of(kRoleWords.begin(), kRoleWords.end(),
                     [&](const RoleWord& known) { return known.word == word; });
}

std::string role_of_file(const fs::path& file) {
  const std::string name = file.stem().string();
  for (const char* pattern : {"{q|k|v}", "{name}_{q|k|v}", "{name}-{q|k|v}", "{name}.{q|k|v}",
                              "{q|k|v}_{name}", "{q|k|v}-{name}", "{q|k|v}.{name}"}) {
    if (const auto fields = NamePattern(pattern).match(name)) return fields->role;
  }
  return "";
}

NamedFiles find_named_files(const fs::path& folder, const std::optional<std::string>& pattern) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    if (item->is_regular_file()) names.push_back(item->path().filename().string());
  }
  if (error) {
    throw file_error(folder.string(), "", "cannot be read: " + errno_text(error.value()));
  }
  std::sort(names.begin(), names.end());
  const auto part = [&](const std::string& name) {
    return NamedPart{.head = {}, .path = folder / name, .key = {}};
  };
  if (pattern) return group_named(names, NamePattern(*pattern), part);
  for (const std::string& text : common_patterns()) {
    const NamePattern common(text);
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return common.match(name).has_value(); })) {
      continue;
    }
    NamedFiles files = group_named(names, common, part);
    if (are_whole_calls(files)) return files;
  }
  return {"", {}, names};
}

}  // namespace attnscope
