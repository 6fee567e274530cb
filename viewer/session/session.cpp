#include "viewer/session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/problem_names.h"
#include "io/capture/facts/capture_catalogue.h"
#include "io/files/file_text.h"
#include "io/files/output_file.h"
#include "io/tensors/token_order_file.h"
#include "viewer/session/remote_place.h"
#include "viewer/session/session_1.h"
#include "viewer/session/session_paths.h"
#include "viewer/settings/head_words.h"
#include "viewer/view/mask_text.h"
#include "viewer/view/view_actions.h"

namespace attnscope {
namespace {

using std::filesystem::path;
using Words = ScriptArguments;

constexpr int64_t kMaxSessionBytes = 1 << 20;
/// Of a file that may be a session, so much is looked at.
constexpr int64_t kLookBytes = 4096;
constexpr std::string_view kFormats = "attnscope-session/";
constexpr int64_t kLeastSide = 64, kMostSide = 16384;

path folder_of_session(const path& file) { return std::filesystem::absolute(file).parent_path(); }

/// The folder that files of facts and masks are named from: on another machine they have the names
/// that they have there.
path fact_folder(const SessionInput& input, const path& folder) {
  return is_remote_name(input.capture.string()) ? path() : folder;
}

SettingFiles files_of(const SessionInput& input, const path& folder) {
  const path there = fact_folder(input, folder);
  return {
      .read_order =
          [folder](const std::string& name) { return open_token_order(opened_path(name, folder)); },
      .whole_mask = [there](const std::string& name) { return opened_path(name, there); },
      .written_mask = [there](const std::string& name) { return stored_path(name, there); },
      .written_order = [folder](const std::string& name) { return stored_order(name, folder); }};
}

/// A name that is no option where a path is expected.
std::string written_path(const std::string& name, const path& folder) {
  const std::string stored = stored_path(name, folder);
  return script_quoted(stored.starts_with("-") ? "./" + stored : stored);
}

std::string open_line(const SessionInput& input, const path& folder) {
  std::string line = "open";
  const auto add = [&line](std::string_view option, const std::string& value) {
    line += fmt::format(" {} {}", option, script_quoted(value));
  };
  if (!input.capture.empty()) line += " " + written_path(input.capture.string(), folder);
  if (input.capture.empty()) {
    add("--q", stored_path(input.tensors.q, folder));
    add("--k", stored_path(input.tensors.k, folder));
    if (!input.tensors.v.empty()) add("--v", stored_path(input.tensors.v, folder));
  }
  for (const auto& [option, value] : fact_options(input.facts, fact_folder(input, folder))) {
    add(option, value);
  }
  return line + "\n";
}

/// A fact of the command line. Throws Error(usage) for an option that is none.
void take_fact(const std::string& option, const std::string& value, FactOverrides& facts) {
  std::vector<std::string> names{"--q", "--k", "--v", "--as", "--score"};
  for (const TextFact& fact : kTextFacts) {
    if (fact.option == option) {
      facts.*fact.value = value;
      return;
    }
    names.emplace_back(fact.option);
  }
  if (option == "--as") {
    const size_t equal = value.find('=');
    if (equal == std::string::npos || equal == 0) {
      throw usage_error("open: --as: expected NAME=VALUE, got " + one_line(value));
    }
    facts.told[value.substr(0, equal)] = value.substr(equal + 1);
  } else if (option == "--score") {
    const auto score = parse_score(value);
    if (!score) {
      throw unknown_name("open: --score", value, score_names());
    }
    facts.score = *score;
  } else {
    throw unknown_name("open:", option, names);
  }
}

void read_open(const Words& w, const path& folder, SessionInput& input) {
  BareTensors& tensors = input.tensors;
  for (size_t i = 1; i < w.size(); ++i) {
    const std::string& word = w[i];
    if (!word.starts_with("--")) {
      if (!input.capture.empty()) throw usage_error("open: expected one capture, got two");
      if (word.empty()) throw usage_error("open: the capture's name is empty");
      input.capture = opened_path(word, folder);
      continue;
    }
    if (i + 1 == w.size()) throw usage_error("open: " + one_line(word) + ": its value is missing");
    const std::string& value = w[++i];
    std::string* const tensor = word == "--q"   ? &tensors.q
                                : word == "--k" ? &tensors.k
                                : word == "--v" ? &tensors.v
                                                : nullptr;
    if (tensor != nullptr) {
      *tensor = opened_path(value, folder);
    } else {
      take_fact(word, value, input.facts);
    }
  }
  const bool bare = !tensors.q.empty() && !tensors.k.empty();
  const bool any = !tensors.q.empty() || !tensors.k.empty() || !tensors.v.empty();
  if (input.capture.empty() ? !bare : any) {
    throw usage_error("open: a session names either a capture or tensors, --q and --k");
  }
  const path there = fact_folder(input, folder);
  open_files(input.facts, there);
}

void read_size(const Words& w, SessionInput& input) {
  const auto side = [&](size_t at) {
    const int64_t pixels = whole(w, at);
    if (pixels >= kLeastSide && pixels <= kMostSide) return static_cast<int>(pixels);
    throw usage_error(fmt::format("size: expected {} to {} pixels, got {}", kLeastSide, kMostSide,
                                  one_line(w[at])));
  };
  if (w.size() != 3) {
    throw usage_error(fmt::format("size: expected size W H, got {} words", w.size() - 1));
  }
  input.width = side(1);
  input.height = side(2);
}

/// One line behind the first.
void read_line(const Words& w, const std::string& place, StoredSession& session) {
  const bool opened = !session.capture.empty() || !session.tensors.q.empty();
  if (w[0] == "open") {
    if (opened) throw usage_error("open: stands once in a session");
    return read_open(w, session.folder, session);
  }
  if (!opened) {
    throw usage_error(one_line(w[0]) + ": a session says first what is to be opened");
  }
  if (w[0] == "size") return read_size(w, session);
  if (w[0] == "b" && w.size() == 3 && w[1] == "capture") {
    if (w[2].empty()) throw usage_error("b capture: its name is empty");
    session.other_capture = opened_path(w[2], session.folder);
    return;
  }
  if (auto parsed = parse_setting(w)) {
    session.lines.push_back({place, std::move(parsed->change)});
    return;
  }
  std::vector<std::string> names{"open", "size"};
  for (const Setting& setting : settings()) names.emplace_back(setting.word());
  const std::string nearest = nearest_word(w[0], names);
  throw usage_error(fmt::format("{}: no setting{}: a session has those, open, size and b capture",
                                one_line(w[0]),
                                nearest.empty() ? "" : ", did you mean " + nearest + "?"));
}

/// The inputs that a session must not replace.
std::vector<path> inputs_of(const Session& session) {
  std::vector<path> inputs;
  const std::string& mask = session.view.mask.text;
  for (const std::string& input :
       {session.capture.string(), session.other_capture.string(), session.tensors.q,
        session.tensors.k, session.tensors.v, is_mask_file(mask) ? mask : std::string()}) {
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
  return inputs;
}

}  // namespace

std::string session_text(const Session& session, const SessionHeads& heads, const path& folder) {
  std::vector<std::string> lines{std::string(kSessionFormat) + "\n", open_line(session, folder),
                                 fmt::format("size {} {}\n", session.width, session.height)};
  if (!session.other_capture.empty()) {
    lines.push_back("b capture " + written_path(session.other_capture.string(), folder) + "\n");
  }
  SettingFiles files = files_of(session, folder);
  // What was read once is not read again: its file may be gone by now.
  files.read_order = [&](const std::string& name) {
    const ViewState& view = session.view;
    for (const TokenOrder& order :
         {view.order.rows, view.order.keys, view.other_order.rows, view.other_order.keys}) {
      const bool listed = order.kind == TokenOrder::Kind::listed;
      if (listed && stored_order(order.file, folder) == name) return order;
    }
    return open_token_order(opened_path(name, folder));
  };
  const SettingPlace place{.state = session.view,
                           .picker = &heads.picker,
                           .others = &heads.others,
                           .files = &files,
                           .of_this_head = false};
  // The head is named also where it is the first: the capture may grow.
  ViewState now = opened_view(heads.limits);
  lines.push_back(head_line(heads.picker, now.head, session.view.head));
  now = apply_action(now, action::SelectHead{session.view.head}, heads.limits);
  // A brush is taken up anew.
  const auto stays = [](const Setting& setting) { return setting.name != "mask_brush"; };
  for (std::string& line : setting_lines(place, heads.limits, stays, now)) {
    lines.push_back(std::move(line));
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

StoredSession parse_session(std::string_view text, const std::string& file, const path& folder) {
  if (is_session_1(text)) return parse_session_1(text, file, folder);
  StoredSession session;
  session.folder = folder;
  bool begun = false;
  int64_t number = 0;
  if (text.find('\0') != std::string_view::npos) throw file_error(file, "", "is no session");
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string place = fmt::format("{}:{}", file, number);
    try {
      const std::vector<std::string> words = script_line_words(line);
      if (words.empty()) continue;
      if (!begun && (words.size() != 1 || words[0] != kSessionFormat)) {
        throw usage_error(fmt::format("expected {}, got {}", kSessionFormat, one_line(words[0])));
      }
      if (begun) read_line(words, place, session);
      begun = true;
    } catch (const Error& error) {
      throw Error(ErrorCode::file, place + ": " + error.what());
    }
  }
  if (session.capture.empty() && session.tensors.q.empty()) {
    throw file_error(file, "", begun ? "open is missing" : "is empty");
  }
  return session;
}

bool is_session_file(const path& file) {
  const std::string text = beginning_of_file(file, kLookBytes);
  if (is_session_1(text)) return text.find("\"attnscope-session/1\"") != std::string::npos;
  // Blank lines and comments may stand before the format.
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos && text[at] == '#') {
    at = std::min(text.find('\n', at), text.size());
  }
  return at != std::string::npos && std::string_view(text).substr(at).starts_with(kFormats);
}

StoredSession read_session(const path& file) {
  return parse_session(read_file_text(file, "a session", kMaxSessionBytes), file.string(),
                       folder_of_session(file));
}

void write_session(const Session& session, const SessionHeads& heads, const path& file,
                   bool force) {
  const std::string text = session_text(session, heads, folder_of_session(file));
  OutputFile out(file, {.force = force, .inputs = inputs_of(session)});
  out.create_part();
  out.write_at(std::as_bytes(std::span(text.data(), text.size())), 0);
  out.commit();
}

ViewState restored_view(const StoredSession& session, const SessionHeads& heads) {
  const SettingFiles files = files_of(session, session.folder);
  ViewState state = opened_view(heads.limits);
  for (const StoredSession::Line& line : session.lines) {
    try {
      const Action action = line.change({.state = state,
                                         .picker = &heads.picker,
                                         .others = &heads.others,
                                         .files = &files,
                                         .of_this_head = false});
      state = apply_action(state, action, heads.limits);
    } catch (const Error& error) {
      throw Error(error.code(), line.place + ": " + error.what());
    }
  }
  return state;
}

}  // namespace attnscope
