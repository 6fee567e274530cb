#include "viewer/script/place_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "viewer/script/script.h"
#include "viewer/script/view_script.h"
#include "viewer/view/maps/map_source.h"

namespace attnscope {
namespace {

constexpr const char* kBetween = " \u00b7 ";
/// Signs that a part of the map is written or typed with, and the ones that are read for them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSigns{
    {{"\u00b7", ";"}, {"\u2013", "-"}, {"\u2026", "-"}, {"\u00d7", "x"}, {"\u2212", "-"}}};

std::string plain_signs(std::string_view text) {
  std::string plain(text);
  for (const auto& [sign, read] : kSigns) {
    for (size_t at = plain.find(sign); at != std::string::npos; at = plain.find(sign, at)) {
      plain.replace(at, sign.size(), read);
    }
  }
  return plain;
}

std::string_view bare(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool consists_of(std::string_view text, std::string_view signs) {
  return !text.empty() && text.find_first_not_of(signs) == std::string_view::npos;
}

/// "q 3,5,6", "k text 4", or three numbers alone.
bool add_token(std::string_view part, std::vector<std::string>& lines) {
  const bool key = part.front() == 'k' || part.front() == 'K';
  const bool named = key || part.front() == 'q' || part.front() == 'Q';
  std::string token(bare(named ? part.substr(1) : part));
  const bool numbers = consists_of(token, "0123456789,: ");
  const bool words = token.starts_with("text ") || token.starts_with("token");
  const bool none = named && token == "none";
  if (!numbers && !(named && words) && !none) return false;
  if (!named && std::count(token.begin(), token.end(), ',') != 2) return false;
  if (!token.starts_with("tokens")) std::replace(token.begin(), token.end(), ',', ' ');
  if (named) lines.push_back(key ? "reverse on" : "reverse off");
  lines.push_back("query " + token);
  return true;
}

/// "448-592", of both sides, or "448-592 x 0-1024".
bool add_part(std::string_view part, std::vector<std::string>& lines) {
  if (!consists_of(part, "0123456789.-x ") || part.find('-') == std::string_view::npos)
    return false;
  const size_t cross = part.find('x');
  std::string line = "zoom";
  for (const std::string_view side :
       {part.substr(0, cross), cross == std::string_view::npos ? part : part.substr(cross + 1)}) {
    const size_t dash = side.find('-');
    if (dash == std::string_view::npos) return false;
    line += fmt::format(" {} {}", bare(side.substr(0, dash)), bare(side.substr(dash + 1)));
  }
  lines.push_back(line);
  return true;
}

void add_words(std::string_view part, std::vector<std::string>& lines) {
  const std::string text(part);
  const auto& help = script_word_help();
  const std::string name = text.substr(0, text.find(' '));
  const bool known = std::any_of(help.begin(), help.end(), [&](const ScriptWordHelp& word) {
    return word.usage.substr(0, word.usage.find(' ')) == name;
  });
  if (!known) {
    throw usage_error(one_line(text) +
                      ": expected a head (L2 H0), a token (q 3,5,6 or q text 4), a part of the map "
                      "(448-592) or a word of a script (layer 3), with ; between them");
  }
  if (!only_looks({1, text, parse_script_line(text)})) {
    throw usage_error(one_line(text) + ": a place has words that change what is looked at alone");
  }
  lines.push_back(text);
}

/// Of the head, what a layer and a head do not say.
std::vector<std::string> head_parts(const SettingPlace& at) {
  const HeadId& head = at.state.head;
  const HeadPicker& picker = *at.picker;
  const HeadValues values = picker.values(head);
  std::vector<std::string> parts;
  const auto add = [&](HeadAxis axis, const std::string& value) {
    if (picker.choices(head, axis).size() < 2) return;
    parts.push_back(fmt::format("{} {}", head_axis_name(axis), script_quoted(value)));
  };
  if (!values.place.unrecorded.step) add(HeadAxis::step, std::to_string(values.step));
  if (values.place.has_chunk()) add(HeadAxis::chunk, std::to_string(values.place.chunk));
  if (!values.place.unrecorded.branch) add(HeadAxis::branch, values.branch);
  add(HeadAxis::batch, std::to_string(values.batch));
  const bool in_stack = values.layer != kNoLayer && !values.place.unrecorded.layer;
  if (!in_stack && !values.place.block.empty()) add(HeadAxis::block, values.place.block);
  if (values.place.slot.empty()) {
    add(HeadAxis::kind, std::string(kind_name(values.kind)));
  } else {
    add(HeadAxis::slot, values.place.slot);
  }
  parts.push_back(in_stack ? fmt::format("L{} H{}", values.layer, values.head)
                           : fmt::format("head {}", values.head));
  return parts;
}

std::string token_part(const SettingPlace& at) {
  const auto query = std::find_if(settings().begin(), settings().end(),
                                  [](const Setting& each) { return each.name == "query"; });
  std::string token = query->lines(at);
  token = token.substr(token.find(' ') + 1);
  token.pop_back();  // the line's break
  if (consists_of(token, "0123456789: ")) std::replace(token.begin(), token.end(), ' ', ',');
  return (at.state.reverse ? "k " : "q ") + token;
}

std::string map_part(const MapRect& rect) {
  const auto side = [](double begin, double end) {
    return fmt::format("{:.0f}\u2013{:.0f}", std::floor(begin), std::ceil(end));
  };
  const std::string queries = side(rect.q0, rect.q1), keys = side(rect.k0, rect.k1);
  return queries == keys ? queries : queries + " \u00d7 " + keys;
}

}  // namespace

std::string place_text(const SettingPlace& at) {
  std::vector<std::string> parts = head_parts(at);
  if (at.state.query) parts.push_back(token_part(at));
  const MapSource& call = at.call();
  if (at.state.rect != fit_rect(call.queries.tokens(), call.keys.tokens())) {
    parts.push_back(map_part(at.state.rect));
  }
  return fmt::format("{}", fmt::join(parts, kBetween));
}

std::vector<std::string> place_lines(std::string_view text, const PaletteContext& context) {
  const std::string plain = plain_signs(text);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= plain.size();) {
    const size_t end = std::min(plain.find(';', begin), plain.size());
    const std::string_view part = bare(std::string_view(plain).substr(begin, end - begin));
    begin = end + 1;
    if (part.empty()) continue;
    if (const auto head = find_head(part, context)) {
      lines.push_back(head->line);
    } else if (!add_token(part, lines) && !add_part(part, lines)) {
      add_words(part, lines);
    }
  }
  return lines;
}

ViewState state_at(std::string_view text, const SettingPlace& from, const PaletteContext& context,
                   const ViewLimits& limits) {
  return state_after(place_lines(text, context), from, limits);
}

ViewState state_after(std::span<const std::string> lines, const SettingPlace& from,
                      const ViewLimits& limits) {
  ViewState state = from.state;
  for (const std::string& line : lines) {
    const ScriptWord word = parse_script_line(line);
    const SettingPlace there{.state = state,
                             .picker = from.picker,
                             .others = from.others,
                             .files = from.files,
                             .moments = from.moments};
    state = apply_action(state, std::get<word::Set>(word).change(there), limits);
  }
  return state;
}

}  // namespace attnscope
