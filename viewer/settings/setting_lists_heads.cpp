#include "viewer/settings/setting_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "viewer/settings/head_words.h"
#include "viewer/view/comparison.h"

namespace attnscope {
namespace {

constexpr std::array kAxes{HeadAxis::step, HeadAxis::layer,  HeadAxis::chunk,
                           HeadAxis::kind, HeadAxis::branch, HeadAxis::block,
                           HeadAxis::slot, HeadAxis::batch,  HeadAxis::head};

bool is_word(HeadAxis axis) {
  return axis == HeadAxis::kind || axis == HeadAxis::branch || axis == HeadAxis::block ||
         axis == HeadAxis::slot;
}

std::string text_of(const HeadValues& v, HeadAxis axis) {
  switch (axis) {
    case HeadAxis::step:
      return std::to_string(v.step);
    case HeadAxis::layer:
      return std::to_string(v.layer);
    case HeadAxis::kind:
      return std::string(kind_name(v.kind));
    case HeadAxis::branch:
      return v.branch;
    case HeadAxis::batch:
      return std::to_string(v.batch);
    case HeadAxis::head:
      return std::to_string(v.head);
    case HeadAxis::block:
      return v.place.block;
    case HeadAxis::slot:
      return v.place.slot;
    case HeadAxis::chunk:
      return std::to_string(v.place.chunk);
  }
  return "";
}

HeadAxis axis_of(const std::string& what, const std::string& name) {
  std::vector<std::string> names;
  for (const HeadAxis axis : kAxes) {
    if (head_axis_name(axis) == name) return axis;
    names.emplace_back(head_axis_name(axis));
  }
  throw unknown_name(what, name, names);
}

}  // namespace

HeadWords parse_head_words(ScriptArguments w, size_t at) {
  HeadWords words;
  const std::string what = at == 0 ? w[0] : w[0] + " " + w[1];
  if (w[at] == "head" && w.size() == at + 3) {
    whole(w, at + 1);
    whole(w, at + 2);
    words.values = {{HeadAxis::layer, w[at + 1]}, {HeadAxis::head, w[at + 2]}};
    return words;
  }
  if ((w.size() - at) % 2 != 0) {
    throw usage_error(what + ": expected one value" +
                      (w[at] == "head" ? ", or a layer and a head" : "") +
                      ", or further names with one each");
  }
  for (size_t i = at; i < w.size(); i += 2) {
    const HeadAxis axis = axis_of(what, w[i]);
    if (!is_word(axis)) whole(w, i + 1);
    words.values.emplace_back(axis, w[i + 1]);
  }
  words.together = words.values.size() > 1;
  return words;
}

HeadId head_of(const HeadWords& words, const HeadPicker& picker, HeadId from) {
  // Values that are not together with those before them may be, once all the others stand.
  for (int pass = 0; pass < (words.together ? 2 : 1); ++pass) {
    for (const auto& [axis, value] : words.values) from = picker.select(from, axis, value);
  }
  if (!words.together) return from;
  const HeadValues found = picker.values(from);
  std::string text;
  bool same = true;
  for (const auto& [axis, value] : words.values) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", head_axis_name(axis), one_line(value));
    const std::string got = text_of(found, axis);
    same = same && (is_word(axis) ? got == value : std::stoll(got) == std::stoll(value));
  }
  if (!same) throw usage_error(text + ": not together in this capture");
  return from;
}

namespace {

/// As parse_head_words() reads it. `all`: also values that nobody recorded.
std::string head_text(const HeadValues& v, bool all) {
  std::string text;
  const auto add = [&](HeadAxis axis) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", head_axis_name(axis),
                        script_quoted(text_of(v, axis)));
  };
  const Unrecorded& unrecorded = v.place.unrecorded;
  if (all || !unrecorded.step) add(HeadAxis::step);
  if (v.layer != kNoLayer && (all || !unrecorded.layer)) add(HeadAxis::layer);
  if (v.place.has_chunk()) add(HeadAxis::chunk);
  if (all || v.place.slot.empty()) add(HeadAxis::kind);
  if (all || !unrecorded.branch) add(HeadAxis::branch);
  if (!v.place.block.empty()) add(HeadAxis::block);
  if (!v.place.slot.empty()) add(HeadAxis::slot);
  add(HeadAxis::batch);
  add(HeadAxis::head);
  return text;
}

}  // namespace

std::string head_line(const HeadPicker& picker, const HeadId& from, const HeadId& head) {
  for (const bool all : {false, true}) {
    const std::string text = head_text(picker.values(head), all);
    try {
      const HeadWords words = parse_head_words(script_line_words(text), 0);
      if (head_of(words, picker, from) == head) return text + "\n";
    } catch (const Error&) {
      // Values of several calls may not be told apart by so few words.
    }
  }
  throw Error(ErrorCode::file,
              "session: no recorded values tell this head from others: " + picker.title(head));
}

namespace {

Setting axis_setting(HeadAxis axis, std::string_view usage, std::string_view help) {
  constexpr size_t kMostWords = 2 * kAxes.size() - 1;
  Setting setting{.name = head_axis_name(axis),
                  .usage = usage,
                  .help = help,
                  .least = 1,
                  .most = kMostWords,
                  .number = !is_word(axis),
                  .in_address = true};
  setting.parse = [](ScriptArguments w) -> SettingChange {
    return [words = parse_head_words(w, 0)](const SettingPlace& at) -> Action {
      at.call();
      return action::SelectHead{head_of(words, *at.picker, at.state.head)};
    };
  };
  setting.value = [axis](const SettingPlace& at) {
    if (axis == HeadAxis::chunk && !at.call().place.has_chunk()) {
      throw usage_error("the call is no piece of a stream");
    }
    at.call();
    return text_of(at.picker->values(at.state.head), axis);
  };
  // One line has all of them, so that no other head is chosen in between.
  setting.lines = [axis](const SettingPlace& at) -> std::string {
    if (axis != HeadAxis::step || at.picker == nullptr) return "";
    return head_text(at.picker->values(at.state.head), false) + "\n";
  };
  return setting;
}

}  // namespace

std::vector<Setting> head_settings() {
  return {
      axis_setting(HeadAxis::step, "step V",
                   "show the denoising step that was recorded as V; further names of this kind "
                   "and their values may follow, and are found together then: step 10 layer 3"),
      axis_setting(HeadAxis::layer, "layer V", "show the layer that was recorded as V"),
      axis_setting(HeadAxis::chunk, "chunk V", "show the piece of a stream recorded as V"),
      axis_setting(HeadAxis::kind, "kind V", "show a kind of attention: self, cross, joint"),
      axis_setting(HeadAxis::branch, "branch V", "show a guidance branch: cond, uncond, ..."),
      axis_setting(HeadAxis::block, "block V", "show the model's block of this name"),
      axis_setting(HeadAxis::slot, "slot V",
                   "show the attention of this name in a block: attn1, ..."),
      axis_setting(HeadAxis::batch, "batch V", "show an item of the batch"),
      axis_setting(HeadAxis::head, "head V | head L H", "show a head; or a layer and a head"),
  };
}

}  // namespace attnscope
