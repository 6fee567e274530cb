#include "cli/info/info_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace attnscope {
namespace {

/// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-:@+=,").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// The preset that states the token map of bare tensors, which no other option can.
std::string preset_of(const CaptureOptions& o, const CallEntry& call) {
  if (!o.preset.empty()) return o.preset;
  constexpr std::string_view kGuessed = "guessed from preset ";
  const auto map = call.facts.find("queries");
  if (map == call.facts.end() || !map->second.origin.starts_with(kGuessed)) return "";
  return map->second.origin.substr(kGuessed.size());
}

}  // namespace

std::string full_command(const CaptureOptions& o, const CallEntry& call) {
  const AttentionProblem& p = *call.problem;
  std::string command = "attnscope view";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--q", o.tensors.q);
  add("--k", o.tensors.k);
  add("--v", o.tensors.v);
  // Not that of the problem: a rotary embedding gives its tensors a layout of its own.
  const auto layout = call.facts.find("layout");
  if (!o.layout.empty()) {
    add("--layout", o.layout);
  } else if (layout != call.facts.end() && layout->second.json.size() > 2) {
    add("--layout", layout->second.json.substr(1, layout->second.json.size() - 2));
  }
  if (p.query_tokens().has_map()) {
    add("--preset", preset_of(o, call));
  } else {
    if (p.query_tokens().has_grid()) add("--grid", p.query_tokens().grid_text());
    add("--text", p.key_tokens().text_text());
  }
  add("--scale", fmt::format("{}", p.scale()));
  add("--mask", o.mask.empty() ? "none" : o.mask);
  if (o.score != "softmax") add("--score", o.score);
  add("--rope", o.rope);
  add("--cu-seqlens", o.cu_seqlens);
  add("--cu-seqlens-k", o.cu_seqlens_k);
  for (const std::string& told : o.told) add("--as", told);
  return command;
}

}  // namespace attnscope
