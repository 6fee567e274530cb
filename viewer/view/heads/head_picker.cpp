#include "viewer/view/heads/head_picker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <tuple>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/selection.h"

namespace attnscope {
namespace {

constexpr std::array<std::string_view, 9> kAxes{"step", "layer", "kind", "branch", "batch",
                                                "head", "block", "slot", "chunk"};

std::optional<int64_t> parse_whole(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::vector<int64_t> numbers_of(const std::vector<std::string>& texts) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) numbers.push_back(*parse_whole(text));
  return numbers;
}

bool is_named(HeadAxis axis) {
  return axis == HeadAxis::kind || axis == HeadAxis::branch || axis == HeadAxis::block ||
         axis == HeadAxis::slot;
}

void add_once(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

/// "step 7: not in this capture (it has 0, 5, 10)".
Error unknown_value(HeadAxis axis, std::string_view value, const std::vector<std::string>& names) {
  const std::string asked = fmt::format("{} {}: ", head_axis_name(axis), one_line(value));
  if (is_named(axis)) {
    std::string has;
    for (const std::string& name : names) has += (has.empty() ? "" : ", ") + one_line(name);
    const std::string nearest = nearest_word(value, names);
    return usage_error(
        fmt::format("{}not in this capture{} (it has {})", asked,
                    nearest.empty() ? "" : ", did you mean " + one_line(nearest) + "?", has));
  }
  const std::string has = format_index_list(numbers_of(names));
  if (!parse_whole(value)) {
    return usage_error(fmt::format("{}expected a whole number, one of {}", asked, has));
  }
  const bool of_call = axis == HeadAxis::batch || axis == HeadAxis::head;
  return usage_error(
      fmt::format("{}not in this {} (it has {})", asked, of_call ? "call" : "capture", has));
}

std::vector<std::string> texts_of(const std::vector<int64_t>& numbers) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(std::to_string(number));
  return texts;
}

/// "step 0 · chunk 2": the step with the piece of a stream; what is not recorded is left out.
std::string step_text(int64_t step, const ModelPlace& place) {
  std::string text = place.unrecorded.step ? "" : fmt::format("step {}", step);
  if (!place.has_chunk()) return text;
  return text + fmt::format("{}chunk {}", text.empty() ? "" : " · ", place.chunk);
}

int64_t number_at(const std::vector<int64_t>& numbers, int64_t place) {
  return numbers[static_cast<size_t>(place)];
}

int64_t place_in(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

/// Where `number` stands among ascending ones; else the last place before it, or the first.
int64_t nearest_place(const std::vector<int64_t>& numbers, int64_t number) {
  const auto past = std::upper_bound(numbers.begin(), numbers.end(), number);
  return std::max<int64_t>(0, past - numbers.begin() - 1);
}

}  // namespace

/// The values that are looked for, and the one that must be met.
struct HeadPicker::Wish {
  HeadValues values;
  HeadAxis must = HeadAxis::step;
};

std::string_view head_axis_name(HeadAxis axis) { return kAxes[static_cast<size_t>(axis)]; }

bool HeadPicker::leaves_main_stack() const {
  const auto calls = chosen();
  return std::any_of(calls.begin(), calls.end(),
                     [](const MapSource& call) { return call.layer == kNoLayer; });
}

HeadValues HeadPicker::values(const HeadId& head) const {
  const MapSource& call = calls_[static_cast<size_t>(head.call)];
  return {call.step,
          call.layer,
          call.kind,
          call.branch(head.batch),
          number_at(call.batch, head.batch),
          number_at(call.heads, head.head),
          call.place};
}

std::string HeadPicker::title(const HeadId& head) const { return words_of(head, false); }

std::string HeadPicker::short_title(const HeadId& head) const { return words_of(head, true); }

std::string HeadPicker::words_of(const HeadId& head, bool brief) const {
  const HeadValues v = values(head);
  const Unrecorded& unrecorded = v.place.unrecorded;
  const bool first = brief && v.layer != kNoLayer && !unrecorded.layer;
  std::string text = first ? fmt::format("L{} H{}", v.layer, v.head) : "";
  const auto add = [&](const std::string& part) {
    text += (text.empty() || part.empty() ? "" : " · ") + part;
  };
  add(step_text(v.step, v.place));
  if (v.layer == kNoLayer) {
    add(one_line(v.place.block));
  } else if (!unrecorded.layer && !first) {
    add(fmt::format("layer {}", v.layer));
  }
  add(one_line(v.place.slot));
  if (v.place.slot.empty() && choices(head, HeadAxis::kind).size() > 1) {
    add(std::string(kind_name(v.kind)));
  }
  if (!unrecorded.branch) add(one_line(v.branch));
  if (calls_[static_cast<size_t>(head.call)].batch.size() > 1) add(fmt::format("item {}", v.batch));
  if (!first) add(fmt::format("head {}", v.head));
  return text;
}

std::optional<HeadId> HeadPicker::titled(std::string_view title) const {
  for (int64_t call = chosen_.begin; call < chosen_.end; ++call) {
    const MapSource& source = calls_[static_cast<size_t>(call)];
    for (size_t head = 0; head < source.heads.size(); ++head) {
      if (!title.ends_with(fmt::format("head {}", source.heads[head]))) continue;
      for (size_t item = 0; item < source.batch.size(); ++item) {
        const HeadId id{call, static_cast<int64_t>(item), static_cast<int64_t>(head)};
        if (this->title(id) == title) return id;
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> HeadPicker::choices(const HeadId& from, HeadAxis axis) const {
  const MapSource& current = calls_[static_cast<size_t>(from.call)];
  if (axis == HeadAxis::batch) return texts_of(current.batch);
  if (axis == HeadAxis::head) return texts_of(current.heads);
  std::vector<std::string> names;
  if (is_named(axis)) {
    for (const MapSource& call : chosen()) {
      const std::string& block = call.place.block;
      const std::string& slot = call.place.slot;
      if (axis == HeadAxis::kind) add_once(names, std::string(kind_name(call.kind)));
      if (axis == HeadAxis::block && !block.empty()) add_once(names, block);
      if (axis == HeadAxis::slot && !slot.empty()) add_once(names, slot);
      if (axis != HeadAxis::branch) continue;
      for (size_t item = 0; item < call.batch.size(); ++item) {
        add_once(names, call.branch(static_cast<int64_t>(item)));
      }
    }
    return names;
  }
  std::vector<int64_t> numbers;
  for (const MapSource& call : chosen()) {
    if (axis == HeadAxis::layer && call.layer == kNoLayer) continue;
    if (axis == HeadAxis::chunk && !call.place.has_chunk()) continue;
    numbers.push_back(axis == HeadAxis::step    ? call.step
                      : axis == HeadAxis::chunk ? call.place.chunk
                                                : call.layer);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (const int64_t number : numbers) names.push_back(std::to_string(number));
  return names;
}

HeadId HeadPicker::nearest(const HeadId& from, const Wish& wish) const {
  const HeadValues& w = wish.values;
  // Kinds and branches are different maps altogether; of layers and steps the nearest serves, and
  // what stays nearest to the present call where all else is equal.
  using Distance = std::tuple<int, int, int, int64_t, int, int64_t, int64_t, int64_t, int64_t>;
  std::optional<Distance> best;
  HeadId found = from;
  for (int64_t place = chosen_.begin; place < chosen_.end; ++place) {
    const MapSource& call = calls_[static_cast<size_t>(place)];
    for (int64_t item = 0; item < static_cast<int64_t>(call.batch.size()); ++item) {
      const bool other_branch = call.branch(item) != w.branch;
      const bool fits = (wish.must != HeadAxis::step || call.step == w.step) &&
                        (wish.must != HeadAxis::layer || call.layer == w.layer) &&
                        (wish.must != HeadAxis::kind || call.kind == w.kind) &&
                        (wish.must != HeadAxis::block || call.place.block == w.place.block) &&
                        (wish.must != HeadAxis::slot || call.place.slot == w.place.slot) &&
                        (wish.must != HeadAxis::chunk || call.place.chunk == w.place.chunk) &&
                        (wish.must != HeadAxis::branch || !other_branch);
      if (!fits) continue;
      // A slot has its kind.
      const bool other_kind = wish.must != HeadAxis::slot && call.kind != w.kind;
      const bool other_slot = wish.must != HeadAxis::kind && call.place.slot != w.place.slot;
      const Distance distance{other_kind,
                              other_slot,
                              other_branch,
                              std::abs(call.layer - w.layer),
                              call.place.block != w.place.block,
                              std::abs(call.step - w.step),
                              std::abs(call.place.chunk - w.place.chunk),
                              std::abs(place - from.call),
                              std::abs(number_at(call.batch, item) - w.batch)};
      if (best && *best <= distance) continue;
      best = distance;
      found = {place, item, nearest_place(call.heads, w.head)};
    }
  }
  return found;
}

HeadId HeadPicker::select(const HeadId& from, HeadAxis axis, std::string_view value) const {
  const auto names = choices(from, axis);
  std::string text(value);
  if (!is_named(axis)) {
    // "03" and "3" are the same layer.
    if (const auto number = parse_whole(value)) text = std::to_string(*number);
  }
  if (std::find(names.begin(), names.end(), text) == names.end()) {
    throw unknown_value(axis, value, names);
  }
  Wish wish{values(from), axis};
  switch (axis) {
    case HeadAxis::step:
      wish.values.step = *parse_whole(text);
      break;
    case HeadAxis::layer:
      wish.values.layer = *parse_whole(text);
      break;
    case HeadAxis::kind:
      wish.values.kind = *parse_kind(text);
      break;
    case HeadAxis::chunk:
      wish.values.place.chunk = *parse_whole(text);
      break;
    case HeadAxis::branch:
      wish.values.branch = text;
      break;
    case HeadAxis::block:
      wish.values.place.block = text;
      break;
    case HeadAxis::slot:
      wish.values.place.slot = text;
      break;
    case HeadAxis::batch:
      return {from.call, place_in(names, text), from.head};
    case HeadAxis::head:
      return {from.call, from.batch, place_in(names, text)};
  }
  return nearest(from, wish);
}

HeadId HeadPicker::move(const HeadId& from, HeadAxis axis, int64_t by) const {
  const auto names = choices(from, axis);
  const HeadValues v = values(from);
  const std::array<std::string, 9> now{std::to_string(v.step),
                                       std::to_string(v.layer),
                                       std::string(kind_name(v.kind)),
                                       v.branch,
                                       std::to_string(v.batch),
                                       std::to_string(v.head),
                                       v.place.block,
                                       v.place.slot,
                                       std::to_string(v.place.chunk)};
  if (names.empty()) return from;
  const int64_t place = place_in(names, now[static_cast<size_t>(axis)]);
  const auto last = static_cast<int64_t>(names.size()) - 1;
  const int64_t target = std::clamp(place + std::clamp(by, -last, last), int64_t{0}, last);
  return target == place ? from : select(from, axis, names[static_cast<size_t>(target)]);
}

HeadId HeadPicker::nearest_to(const HeadValues& values) const {
  // The number of a head excludes no call.
  return nearest({chosen_.begin, 0, 0}, {values, HeadAxis::head});
}

HeadId HeadPicker::find(const HeadValues& wanted) const {
  const HeadId start{chosen_.begin, 0, 0};
  HeadId found = select(start, HeadAxis::kind, kind_name(wanted.kind));
  found = nearest(found, {wanted, HeadAxis::kind});
  // Each of these is in the capture by itself, or the error says what is.
  select(found, HeadAxis::step, std::to_string(wanted.step));
  if (wanted.layer != kNoLayer) select(found, HeadAxis::layer, std::to_string(wanted.layer));
  if (!wanted.place.block.empty()) select(found, HeadAxis::block, wanted.place.block);
  if (!wanted.place.slot.empty()) select(found, HeadAxis::slot, wanted.place.slot);
  if (wanted.place.has_chunk()) {
    select(found, HeadAxis::chunk, std::to_string(wanted.place.chunk));
  }
  select(found, HeadAxis::branch, wanted.branch);
  HeadValues got = values(found);
  got.place.forward = wanted.place.forward;  // nobody asks for it: the branch is named by it
  const bool asked = wanted.place.is_recorded() || wanted.place.has_chunk();
  const bool same_place = !asked || got.place == wanted.place;
  if (got.step != wanted.step || got.layer != wanted.layer || got.branch != wanted.branch ||
      !same_place) {
    throw usage_error(fmt::format("step {}, {}, {}, branch {}: not together in this capture",
                                  wanted.step, one_line(layer_text(wanted.layer, wanted.place)),
                                  kind_name(wanted.kind), one_line(wanted.branch)));
  }
  found = select(found, HeadAxis::batch, std::to_string(wanted.batch));
  const std::string& branch = calls_[static_cast<size_t>(found.call)].branch(found.batch);
  if (branch != wanted.branch) {
    throw usage_error(fmt::format("batch {}: is of branch {}, not {}", wanted.batch,
                                  one_line(branch), one_line(wanted.branch)));
  }
  return select(found, HeadAxis::head, std::to_string(wanted.head));
}

}  // namespace attnscope
