#include "viewer/session/view_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/products/tokens/token_box.h"
#include "viewer/session/remote_place.h"
#include "viewer/session/session_paths.h"
#include "viewer/settings/script_arguments.h"
#include "viewer/view/heads/head_selection.h"

namespace attnscope {
namespace {

/// The arguments of a command that name the opened input, with the facts that were given.
std::string input_words(const Session& session) {
  std::string line;
  if (!session.capture.empty()) line += " " + shell_quoted(session.capture.string());
  if (session.capture.empty()) {
    line += " --q " + shell_quoted(session.tensors.q) + " --k " + shell_quoted(session.tensors.k);
    if (!session.tensors.v.empty()) line += " --v " + shell_quoted(session.tensors.v);
  }
  return line + fact_words(session.facts);
}

}  // namespace

std::string fact_words(const FactOverrides& facts) {
  std::string line;
  for (const auto& [option, value] : fact_options(facts, {})) {
    line += fmt::format(" {} {}", option, shell_quoted(value));
  }
  return line;
}

namespace {

bool has_several(const HeadPicker& picker, const HeadId& head, HeadAxis axis) {
  return picker.choices(head, axis).size() > 1;
}

/// What commands choose beside step, layer and head, where the capture has several of it.
std::string call_words(const HeadPicker& picker, const HeadId& head) {
  const HeadValues v = picker.values(head);
  const auto several = [&](HeadAxis axis) { return has_several(picker, head, axis); };
  std::string line;
  if (several(HeadAxis::branch)) line += " --branch " + shell_quoted(v.branch);
  if (several(HeadAxis::batch)) line += fmt::format(" --batch {}", v.batch);
  if (several(HeadAxis::kind)) line += fmt::format(" --kind {}", kind_name(v.kind));
  if (several(HeadAxis::slot) && !v.place.slot.empty()) {
    line += " --slots " + shell_quoted(v.place.slot);
  }
  if (v.place.has_chunk()) line += fmt::format(" --chunks {}", v.place.chunk);
  return line;
}

/// The one head, as the commands choose it; what the capture has one of alone is left out.
std::string head_words(const HeadPicker& picker, const HeadId& head) {
  const HeadValues v = picker.values(head);
  std::string line = fmt::format(" --steps {}", v.step);
  if (v.layer != kNoLayer) line += fmt::format(" --layers {}", v.layer);
  line += fmt::format(" --heads {}", v.head);
  if (v.layer == kNoLayer && !v.place.block.empty()) {
    line += " --blocks " + shell_quoted(v.place.block);
  }
  return line + call_words(picker, head);
}

/// The selected heads, or without any the one that is seen.
std::string chosen_words(const Session& session, const HeadPicker& picker, const HeadId& head) {
  const AtlasLook& atlas = session.view.atlas;
  const bool selected = atlas.shown && !atlas.selected.empty();
  return selected ? " " + heads_options(atlas.selected, picker, head) : head_words(picker, head);
}

/// A command on the machine that the capture is on; `line` has it for a session there.
std::string command_there(const Session& session,
                          const std::function<std::string(const Session&)>& line) {
  if (!is_remote_name(session.capture.string())) return line(session);
  const RemotePlace place = parse_remote_place(session.capture.string());
  Session there = session;
  there.capture = place.path;
  const std::string port = place.port == 0 ? "" : fmt::format("-p {} ", place.port);
  return "ssh " + port + place.login() + " " + shell_quoted(line(there));
}

struct WholeRect {
  int64_t q0 = 0, q1 = 0, k0 = 0, k1 = 0;
};

/// The entries that a view shows any of.
WholeRect seen_entries(const MapRect& rect, const MapSource& call) {
  const auto first = [](double value, int64_t count) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(value)), 0, count - 1);
  };
  const auto past = [](double value, int64_t begin, int64_t count) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(value)), begin + 1, count);
  };
  const int64_t rows = call.queries.tokens(), cols = call.keys.tokens();
  WholeRect whole;
  whole.q0 = first(rect.q0, rows);
  whole.q1 = past(rect.q1, whole.q0, rows);
  whole.k0 = first(rect.k0, cols);
  whole.k1 = past(rect.k1, whole.k0, cols);
  return whole;
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

namespace {

/// The words of a shell's line; backslashes and quotes as a shell has them, nothing else.
std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool in_word = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (quote == 0 ? c == '\'' || c == '"' : c == quote) {
      quote = quote == 0 ? c : '\0';
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) throw usage_error(one_line(line) + ": a quote does not end");
  return words;
}

/// Options that say where one is, and the lines that lead there, in the order in which these find a
/// head: {} is the value as a script's word, [] its numbers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kPlaceOptions{
    {{"--slots", "slot {}"},
     {"--kind", "kind {}"},
     {"--branch", "branch {}"},
     {"--layers", "layer {}"},
     {"--blocks", "block {}"},
     {"--steps", "step {}"},
     {"--chunks", "chunk {}"},
     {"--batch", "batch {}"},
     {"--heads", "head {}"},
     {"--product", "product {}"},
     {"--order", "order {}"},
     {"--order-keys", "order {} keys"},
     {"--index", "query token {}"},
     {"--query", "query []"},
     {"--zoom", "zoom []"},
     {"--pick", "heads select {}"},
     {"--theme", "theme {}"}}};
constexpr std::array<std::string_view, 9> kFlags{"--reverse", "--follow", "--quiet",
                                                 "--force",   "--alone",  "--tf32",
                                                 "--profile", "--json",   "--dry-run"};
/// A place has no room for what these choose.
constexpr std::array<std::string_view, 7> kElsewhere{
    "--where", "--from", "--at", "--queries", "--script", "--session", "--screenshot"};

std::string place_line(std::string_view form, const std::string& value) {
  std::string line(form);
  if (const size_t at = line.find("[]"); at != std::string::npos) {
    std::string numbers = value;
    std::replace(numbers.begin(), numbers.end(), ',', ' ');
    const bool bare = numbers.find_first_not_of("0123456789") == std::string::npos;
    return line.replace(at, 2, (bare ? "token " : "") + numbers);
  }
  return line.replace(line.find("{}"), 2, script_quoted(value));
}

}  // namespace

std::optional<ToldPlace> read_view_command(const std::string& text, const MapRect& whole) {
  // A place without quotes is none of a shell's lines.
  if (text.find("attnscope") == std::string::npos) return std::nullopt;
  const std::vector<std::string> words = shell_words(text);
  if (words.size() > 1 && words.front() == "ssh") return read_view_command(words.back(), whole);
  if (words.size() < 2 || std::filesystem::path(words.front()).filename() != "attnscope" ||
      (words[1] != "view" && words[1] != "export" && words[1] != "stats")) {
    return std::nullopt;
  }
  ToldPlace place;
  std::array<std::string, kPlaceOptions.size()> values;
  std::string rows, cols;
  bool reverse = false;
  for (size_t i = 2; i < words.size(); ++i) {
    const size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    const std::string option = words[i].substr(0, equals);
    if (!option.starts_with("-")) {
      (place.input.empty() ? place.input : place.second) = option;
      continue;
    }
    reverse = reverse || option == "--reverse";
    if (std::find(kFlags.begin(), kFlags.end(), option) != kFlags.end()) continue;
    if (std::find(kElsewhere.begin(), kElsewhere.end(), option) != kElsewhere.end()) {
      throw usage_error(option +
                        ": the place of a command has heads, a token, an order and a part "
                        "of the map (--zoom)");
    }
    if (equals == std::string::npos && i + 1 == words.size()) {
      throw usage_error(option + ": its value is missing");
    }
    const std::string value =
        equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
    if (option == "--q") place.input = value;
    if (option == "--rows") rows = value;
    if (option == "--cols") cols = value;
    const auto known = std::find_if(kPlaceOptions.begin(), kPlaceOptions.end(),
                                    [&](const auto& each) { return each.first == option; });
    if (known == kPlaceOptions.end()) continue;
    std::string& kept = values[static_cast<size_t>(known - kPlaceOptions.begin())];
    if (!kept.empty()) throw usage_error(option + ": is there twice, and a place has one of it");
    kept = value;
  }
  if (reverse) place.lines.emplace_back("reverse on");
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [option, form] = kPlaceOptions[i];
    if (values[i].empty()) continue;
    if (!reverse && (option == "--query" || option == "--index")) {
      place.lines.emplace_back("reverse off");
    }
    place.lines.push_back(place_line(form, values[i]));
  }
  if (rows.empty() && cols.empty()) return place;
  if (rows.empty()) rows = fmt::format("0:{:.0f}", whole.q1);
  if (cols.empty()) cols = fmt::format("0:{:.0f}", whole.k1);
  std::replace(rows.begin(), rows.end(), ':', ',');
  std::replace(cols.begin(), cols.end(), ':', ',');
  place.lines.push_back(place_line("zoom []", rows + "," + cols));
  return place;
}

std::string view_command(const Session& session, const HeadPicker& picker, const HeadId& head,
                         const TokenNames& tokens) {
  const MapSource& call = picker.calls()[static_cast<size_t>(head.call)];
  std::string line = "attnscope view" + input_words(session);
  if (!session.other_capture.empty()) line += " " + shell_quoted(session.other_capture.string());
  line += head_words(picker, head);
  const ViewState& view = session.view;
  if (view.query && view.query->tokens.size() == 1) {
    const int64_t token = view.query->tokens.front();
    const auto coord = tokens.grid->coord(token);
    line += coord ? fmt::format(" --query {},{},{}", coord->t, coord->y, coord->x)
                  : fmt::format(" --query {}", token);
  } else if (view.query) {
    // Other tokens than those of a box are in sessions alone.
    const auto box = box_of(view.query->tokens, *tokens.grid);
    if (box) line += " --query " + box_text(*box);
  }
  if (view.reverse) line += " --reverse";
  if (!view.order.is_stored()) {
    const bool alike = view.order.rows == view.order.keys;
    line += " --order " + shell_quoted(view.order.rows.text());
    if (!alike) line += " --order-keys " + shell_quoted(view.order.keys.text());
  }
  if (view.rect != fit_rect(call.queries.tokens(), call.keys.tokens())) {
    const WholeRect seen = seen_entries(view.rect, call);
    line += fmt::format(" --zoom {},{},{},{}", seen.q0, seen.q1, seen.k0, seen.k1);
  }
  return line;
}

std::string entry_text(const ProbedEntry& entry, const std::string& head, const std::string& pair) {
  std::string line = fmt::format("{}: {}, row {}, column {}", head, pair, entry.query, entry.key);
  if (entry.block > 1) {
    line += fmt::format(", block of {0}\u00d7{0}: max {1:.9g}, mean {2:.9g}", entry.block,
                        entry.weight, entry.mean);
  } else if (!std::isnan(entry.weight)) {
    line += fmt::format(", weight {:.9g}", entry.weight);
  }
  if (!std::isnan(entry.logit)) line += fmt::format(", logit {:.9g}", entry.logit);
  return line;
}

std::optional<ToldEntry> read_entry_text(const std::string& text) {
  // Words of a prompt may hold either sign; the numbers stand behind them all.
  constexpr std::string_view kRow = ", row ", kColumn = ", column ";
  const size_t pair = text.find(": q"), row = text.rfind(kRow);
  if (pair == std::string::npos || row == std::string::npos || row < pair) return std::nullopt;
  ToldEntry told{.head = text.substr(0, pair)};
  const char* const end = text.data() + text.size();
  const auto query = std::from_chars(text.data() + row + kRow.size(), end, told.query);
  if (query.ec != std::errc{} ||
      !std::string_view(query.ptr, static_cast<size_t>(end - query.ptr)).starts_with(kColumn)) {
    return std::nullopt;
  }
  const auto key = std::from_chars(query.ptr + kColumn.size(), end, told.key);
  if (key.ec != std::errc{} || told.query < 0 || told.key < 0) return std::nullopt;
  return told;
}

std::string heads_options(const std::string& list, const HeadPicker& picker, const HeadId& head) {
  const int64_t step = picker.values(head).step;
  const PickedHeads picked = picked_heads(list, step);
  const bool of_step = !picked.steps && has_several(picker, head, HeadAxis::step);
  return (of_step ? fmt::format("--steps {} ", step) : "") + "--pick " + shell_quoted(picked.pick) +
         call_words(picker, head);
}

std::string stats_command(const Session& session, const HeadPicker& picker, const HeadId& head) {
  return command_there(session, [&](const Session& there) {
    return "attnscope stats" + input_words(there) + chosen_words(there, picker, head);
  });
}

namespace {

/// As export_command(), on the machine that the capture is on.
std::string export_line(const Session& session, const HeadPicker& picker, const HeadId& head) {
  const MapSource& call = picker.calls()[static_cast<size_t>(head.call)];
  const HeadValues v = picker.values(head);
  const WholeRect seen = seen_entries(session.view.rect, call);
  std::string line =
      "attnscope export" + input_words(session) + chosen_words(session, picker, head);
  if (session.view.product == ViewProduct::logits) line += " --product logits";
  if (seen.q0 > 0 || seen.q1 < call.queries.tokens()) {
    line += fmt::format(" --rows {}:{}", seen.q0, seen.q1);
  }
  if (seen.k0 > 0 || seen.k1 < call.keys.tokens()) {
    line += fmt::format(" --cols {}:{}", seen.k0, seen.k1);
  }
  if (session.view.atlas.shown && !session.view.atlas.selected.empty())
    return line + " -o heads.h5";
  const Unrecorded& unrecorded = v.place.unrecorded;
  const bool no_layer = v.layer == kNoLayer || unrecorded.layer;
  const std::string step = unrecorded.step ? "" : fmt::format("step{}_", v.step);
  const std::string layer = no_layer ? "" : fmt::format("layer{}_", v.layer);
  return line + fmt::format(" -o {}{}head{}.h5", step, layer, v.head);
}

}  // namespace

std::string export_command(const Session& session, const HeadPicker& picker, const HeadId& head) {
  return command_there(session,
                       [&](const Session& there) { return export_line(there, picker, head); });
}

}  // namespace attnscope
