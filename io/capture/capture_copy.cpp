#include "io/capture/capture_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/capture_folder.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/mask_fact.h"
#include "io/files/json_types.h"
#include "io/tensors/safetensors_writer.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

bool is_whole(const std::vector<int64_t>& chosen, int64_t count) {
  return static_cast<int64_t>(chosen.size()) == count;
}

bool is_run(const std::vector<int64_t>& chosen) {
  return chosen.back() - chosen.front() + 1 == static_cast<int64_t>(chosen.size());
}

/// The key heads that the chosen query heads use, in such a number and order that grouped queries
/// still find theirs: all of them, whole groups of them, or one for every query head.
std::vector<int64_t> chosen_kv_heads(const SelectedCall& s) {
  const AttentionProblem& p = *s.call->problem;
  const int64_t group = p.num_heads() / p.num_kv_heads();
  std::map<int64_t, int64_t> uses;
  std::vector<int64_t> one_each;
  for (int64_t head : s.heads) {
    ++uses[p.kv_head(head)];
    one_each.push_back(p.kv_head(head));
  }
  std::vector<int64_t> once;
  for (const auto& [kv, count] : uses) {
    if (count != group) return one_each;
    once.push_back(kv);
  }
  return once;
}

/// The entries of a list fact for the chosen batch items; one that serves all stays.
OrderedJson chosen_items(const OrderedJson& list, const SelectedCall& s) {
  if (!list.is_array() || list.size() != static_cast<size_t>(s.call->problem->batch())) return list;
  OrderedJson chosen = OrderedJson::array();
  for (int64_t item : s.batch) chosen.push_back(list[static_cast<size_t>(item)]);
  return chosen;
}

/// One call of the copy: its facts and tensors.
class CallCopy {
 public:
  CallCopy(const CaptureCopy& copy, const SelectedCall& s) : copy_(copy), s_(s), call_(*s.call) {}

  OrderedJson facts() const {
    OrderedJson facts;
    for (const auto& [name, fact] : call_.facts) facts[name] = OrderedJson::parse(fact.json);
    facts["format"] = format();
    facts["layout"] = "bhsd";
    facts["mask"] = call_.mask_fact->text();
    for (const char* name : {"branches", "text_valid"}) {
      if (facts.contains(name)) facts[name] = chosen_items(facts[name], s_);
    }
    for (const char* name : {"queries", "keys"}) {
      for (size_t i = 0; facts.contains(name) && i < facts[name].size(); ++i) {
        choose_segment_items(facts[name][i]);
      }
    }
    if (facts.contains("tokens") && !facts["tokens"].empty() && facts["tokens"][0].is_array()) {
      facts["tokens"] = chosen_items(facts["tokens"], s_);
    }
    if (call_.problem->key_tokens().has_map()) {
      if (!copy_.tokens.empty()) set_words(facts);
    } else if (copy_.tokens.size() == 1) {
      facts["tokens"] = copy_.tokens.front();
    } else if (!copy_.tokens.empty()) {
      facts["tokens"] = copy_.tokens;
    }
    if (is_told_cap()) facts["score"] = score_name(call_.problem->score());
    if (!is_whole(s_.heads, call_.problem->num_heads())) choose_heads(facts);
    return facts;
  }

  std::vector<TensorToWrite> tensors() const {
    const AttentionProblem& p = *call_.problem;
    const std::vector<int64_t> kv_heads = chosen_kv_heads(s_);
    const auto& undivided = call_.undivided;
    const HeadTensor& q = undivided ? undivided->q : p.q();
    const HeadTensor& k = undivided ? undivided->k : p.k();
    std::vector<TensorToWrite> tensors{head_tensor_part("q", q, s_.batch, s_.heads),
                                       head_tensor_part("k", k, s_.batch, kv_heads)};
    if (undivided) {
      tensors.push_back(tensor_part("normaliser", undivided->normaliser, s_.batch, s_.heads));
    }
    if (p.v() && copy_.values) tensors.push_back(head_tensor_part("v", p.v(), s_.batch, kv_heads));
    if (call_.mask) tensors.push_back(mask());
    if (!p.sinks().is_none()) tensors.push_back(sinks());
    if (call_.alibi.tensor) tensors.push_back(place_bias("alibi_slopes", *call_.alibi.tensor, 0));
    if (const auto& bias = call_.relative_bias.tensor) {
      tensors.push_back(place_bias("relative_bias", *bias, is_grid_bias(bias->shape()) ? 3 : 1));
    }
    for (const auto& [name, source] : call_.map_tensors) tensors.push_back(map_part(name, source));
    if (call_.lse) tensors.push_back(tensor_part("lse", call_.lse, s_.batch, s_.heads));
    if (call_.out && copy_.values) {
      tensors.push_back(tensor_part("out", call_.out, s_.batch, s_.heads));
      tensors.push_back(tensor_part("out_rows", call_.out_rows, {}, {}));
    }
    return tensors;
  }

  /// The version of the format that can say what the call is.
  std::string_view format() const {
    const bool second = call_.mask_fact->is_second_format() || is_told_cap() ||
                        !call_.problem->scales().is_one() ||
                        std::any_of(call_.facts.begin(), call_.facts.end(),
                                    [](const auto& fact) { return is_format_2_fact(fact.first); });
    return second ? kCaptureFormat2 : kCaptureFormat;
  }

  CallToWrite to_write() const {
    return {call_.id, branch_of(call_.id, s_.batch.front()), facts(), tensors()};
  }

 private:
  /// A cap that an option tells, and no fact.
  bool is_told_cap() const {
    return call_.problem->score().cap != 0 && !call_.facts.contains("score") &&
           !call_.facts.contains("softcap");
  }
  /// In three axes, of the chosen items and heads.
  TensorToWrite sinks() const {
    const Sinks& sinks = call_.problem->sinks();
    const Sinks::Shape& shape = sinks.shape();
    const auto bytes = std::as_bytes(sinks.logits());
    const auto source = std::make_shared<MemoryTensor>(
        "sinks", DType::f32, std::vector<int64_t>(shape.begin(), shape.end()),
        std::vector<std::byte>(bytes.begin(), bytes.end()));
    return tensor_part("sinks", source, shape[0] > 1 ? s_.batch : std::vector<int64_t>(),
                       shape[1] > 1 ? s_.heads : std::vector<int64_t>());
  }
  /// With an axis of items, of the chosen items and heads; the last `axes` are a head's numbers.
  TensorToWrite place_bias(const std::string& name, const TensorSource& tensor, size_t axes) const {
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (shape.size() == axes + 1) shape.insert(shape.begin(), 1);
    const std::vector<float> numbers = all_floats(tensor);
    const auto bytes = std::as_bytes(std::span(numbers));
    const auto source = std::make_shared<MemoryTensor>(
        name, DType::f32, shape, std::vector<std::byte>(bytes.begin(), bytes.end()));
    return tensor_part(name, source, shape[0] > 1 ? s_.batch : std::vector<int64_t>(),
                       shape[1] > 1 ? s_.heads : std::vector<int64_t>());
  }
  /// Reduces a segment's lists that have one entry a batch item to the chosen items.
  void choose_segment_items(OrderedJson& segment) const {
    if (segment.contains("valid")) segment["valid"] = chosen_items(segment["valid"], s_);
    const bool lists =
        segment.contains("words") && !segment["words"].empty() && segment["words"][0].is_array();
    if (lists) segment["words"] = chosen_items(segment["words"], s_);
  }

  /// The copy's own words, shared out to the keys' segments of text in the order of the sequence.
  void set_words(OrderedJson& facts) const {
    const TokenGrid& keys = call_.problem->key_tokens();
    OrderedJson& segments = facts[facts.contains("keys") ? "keys" : "queries"];
    for (size_t i = 0; i < keys.segments().size(); ++i) {
      const IndexRange tokens = keys.segments()[i].tokens;
      if (!keys.text_range().contains(tokens.begin)) continue;
      const int64_t first = tokens.begin - keys.text_range().begin;
      OrderedJson lists = OrderedJson::array();
      for (const std::vector<std::string>& words : copy_.tokens) {
        const auto count = static_cast<int64_t>(words.size());
        const int64_t begin = std::min(first, count);
        const int64_t end = std::min(first + tokens.size(), count);
        lists.push_back(std::vector<std::string>(words.begin() + begin, words.begin() + end));
      }
      segments[i]["words"] = lists.size() == 1 ? lists.front() : lists;
    }
  }

  /// A tensor of the token map; [batch, tokens] of the chosen items. Positions are of all items.
  TensorToWrite map_part(const std::string& name,
                         const std::shared_ptr<const TensorSource>& source) const {
    const auto shape = source->shape();
    const bool items = shape.size() == 2 && shape[0] > 1 && name != kPositionIds;
    return tensor_part(name, source, items ? s_.batch : std::vector<int64_t>(), {});
  }

  /// head_offset is the number of the first head; where the others do not follow it, their numbers
  /// are told beside it. Scales are those of the chosen heads.
  void choose_heads(OrderedJson& facts) const {
    const int64_t offset = call_.head_offset;
    facts["head_offset"] = offset + s_.heads.front();
    if (const HeadScales& scales = call_.problem->scales(); !scales.is_one()) {
      facts["scale"] = OrderedJson::array();
      for (const int64_t head : s_.heads) facts["scale"].push_back(scales.of(head));
    }
    if (is_run(s_.heads)) return;
    OrderedJson numbers = OrderedJson::array();
    for (int64_t head : s_.heads) numbers.push_back(offset + head);
    OrderedJson extra = facts.contains("extra") ? facts["extra"] : OrderedJson::object();
    if (!extra.is_object()) extra = {{"recorded", extra}};
    extra["heads"] = numbers;
    facts["extra"] = extra;
  }

  /// The chosen places of the axes that are batch items and heads, where there are several: of
  /// four axes the two first, of three the first. What is told token by token is [B, tokens] or
  /// [tokens]; spans are the same for all.
  TensorToWrite mask() const {
    const auto shape = call_.mask->shape();
    const MaskForm form = call_.mask_fact->form;
    const bool tokens =
        form == MaskForm::valid || form == MaskForm::valid_pairs || form == MaskForm::segments;
    std::vector<int64_t> first, second;
    if (shape.size() == 4) {
      if (shape[0] > 1) first = s_.batch;
      if (shape[1] > 1) second = s_.heads;
    } else if (shape.size() == 3 && shape[0] > 1) {
      first = s_.heads;
    } else if (tokens && shape.size() == 2 && shape[0] > 1) {
      first = s_.batch;
    }
    return tensor_part(std::string(call_.mask_fact->tensor()), call_.mask, first, second);
  }

  const CaptureCopy& copy_;
  const SelectedCall& s_;
  const CallEntry& call_;
};

void check_recordable(const SelectedCall& s) {
  const CallEntry& call = *s.call;
  const AttentionProblem& p = *call.problem;
  if (!is_softmax(p.score()) && !call.facts.contains("score")) {
    throw usage_error(
        fmt::format("--score {}: is not recorded; give it to the command that shows "
                    "or exports the maps",
                    score_name(p.score())));
  }
  if (!call.mask_fact) {
    throw usage_error(
        fmt::format("{}: its mask is {}, and a capture records {}: it cannot be "
                    "converted; give --mask to the command that shows or exports the maps",
                    call.file.string(), p.mask().describe(), mask_fact_words()));
  }
  const auto axes = call.facts.find("axes");
  const bool factorised = axes != call.facts.end() && axes->second.json != "\"full\"";
  if (factorised && !is_whole(s.batch, p.batch())) {
    throw usage_error(
        fmt::format("{}: the batch items of {} attention are places of the grid: all "
                    "of them are needed (got {} of {})",
                    call.file.string(), axes->second.json, s.batch.size(), p.batch()));
  }
}

/// A capture that is read must not be replaced.
void check_not_an_input(const CaptureCopy& copy, const fs::path& out) {
  std::error_code error;
  for (const fs::path& file : copy.capture->files()) {
    const fs::path folder = fs::absolute(file, error).parent_path();
    if (fs::equivalent(file, out, error) || fs::equivalent(folder, out, error)) {
      throw file_error(out.string(), "", "is what is read, and is not replaced");
    }
  }
}

/// The version of the format of a folder: that of the calls whose version is the latest.
std::string_view folder_format(const CaptureCopy& copy) {
  const bool second = std::any_of(copy.calls.begin(), copy.calls.end(), [&](const SelectedCall& s) {
    return CallCopy(copy, s).format() == kCaptureFormat2;
  });
  return second ? kCaptureFormat2 : kCaptureFormat;
}

/// capture.json without its pictures and calls.
OrderedJson catalogue_root(const CaptureCopy& copy) {
  const Capture& capture = *copy.capture;
  OrderedJson root{{"format", folder_format(copy)}};
  if (!capture.model().empty()) root["model"] = capture.model();
  if (!capture.prompt().empty()) root["prompt"] = capture.prompt();
  // Model and prompt stand in the root where they hold for each call: several models go without.
  for (const SelectedCall& s : copy.calls) {
    if (s.call->model != capture.model()) root.erase("model");
    if (s.call->prompt != capture.prompt()) root.erase("prompt");
  }
  if (!capture.extra().empty()) root["extra"] = OrderedJson::parse(capture.extra());
  add_forward_log(root, capture.log());
  if (copy.own) root.update(copy.part);
  return root;
}

std::vector<PictureToWrite> pictures_of(const CaptureCopy& copy) {
  std::vector<PictureToWrite> pictures;
  for (size_t t = 0; t < copy.frames.size(); ++t) {
    pictures.push_back(
        {std::make_shared<const InputFile>(copy.frames[t]), static_cast<int64_t>(t)});
  }
  return copy.frames.empty() ? recorded_pictures(*copy.capture) : pictures;
}

}  // namespace

std::vector<std::string> CaptureCopy::notes(const fs::path& out) const {
  std::set<std::string> lines;
  for (const SelectedCall& s : calls) {
    const AttentionProblem& p = *s.call->problem;
    for (const std::string& key : s.call->unknown_keys) lines.insert("not carried over: " + key);
    if (!is_whole(s.heads, p.num_heads()) && p.num_kv_heads() != p.num_heads() &&
        chosen_kv_heads(s).size() == s.heads.size()) {
      lines.insert("the chosen heads share keys: k (and v) are written once for each of them");
    }
    for (const auto& [name, fact] : s.call->facts) {
      if (fact.origin.rfind("guessed", 0) == 0) {
        lines.insert(fmt::format("recorded from now on: {} {} ({})", name, fact.json, fact.origin));
      }
    }
  }
  if (is_single_capture_file(out) && !capture->log().empty()) {
    lines.insert("not carried over: the forwards and refused calls that only a folder lists");
  }
  const size_t pictures = capture->frames().size();
  if (is_single_capture_file(out) && pictures > 0) {
    lines.insert(
        fmt::format("not carried over: {} picture{} of the video, which only a folder holds",
                    pictures, pictures == 1 ? "" : "s"));
  } else if (frames.empty()) {
    std::error_code missing;
    for (const FrameFile& frame : capture->frames()) {
      if (fs::is_regular_file(frame.file, missing)) continue;
      lines.insert("not carried over: " + one_line(frame.file.string()) + ", which is missing");
    }
  }
  for (const std::string& key : capture->unknown_keys()) lines.insert("not carried over: " + key);
  return {lines.begin(), lines.end()};
}

int64_t check_capture_copy(const CaptureCopy& copy, const fs::path& out) {
  const bool single = is_single_capture_file(out);
  if (single && copy.calls.size() != 1) {
    throw usage_error(
        fmt::format("-o {}: a .safetensors file holds one call, and {} are selected "
                    "(--steps, --layers, --branch): give the name of a folder",
                    out.string(), copy.calls.size()));
  }
  if (single && !copy.frames.empty()) {
    throw usage_error("--video-frames: pictures need a folder; " + out.string() +
                      " is a single file");
  }
  int64_t bytes = 0, place = -1;
  for (const SelectedCall& s : copy.calls) {
    ++place;
    check_recordable(s);
    const int64_t text = s.call->problem->key_tokens().text_range().size();
    for (const auto& tokens : copy.tokens) {
      if (static_cast<int64_t>(tokens.size()) <= text) continue;
      throw usage_error(fmt::format("--tokens: has {} tokens, and {} has {} of text", tokens.size(),
                                    s.call->file.string(), text));
    }
    if (copy.tokens.size() > 1 && copy.tokens.size() != s.batch.size()) {
      throw usage_error(fmt::format("--tokens: has {} lists, and {} has {} batch items",
                                    copy.tokens.size(), s.call->file.string(), s.batch.size()));
    }
    if (copy.own && std::find(copy.own->begin(), copy.own->end(), place) == copy.own->end()) {
      continue;
    }
    const auto sum = checked_add(bytes, CallCopy(copy, s).to_write().bytes());
    if (!sum) throw usage_error("the copy would take more than 2^63 bytes");
    bytes = *sum;
  }
  check_not_an_input(copy, out);
  return bytes;
}

void write_capture_copy(const CaptureCopy& copy, const fs::path& out, const CopyControl& control) {
  const int64_t bytes = check_capture_copy(copy, out);
  CaptureWriter writer(control, {copy.capture->inputs()});
  check_capture_target(out,
                       {.force = control.force, .bytes = bytes, .inputs = copy.capture->files()});
  if (is_single_capture_file(out)) {
    writer.write_file(CallCopy(copy, copy.calls.front()).to_write(), out);
    return;
  }
  const auto call = [&](size_t i) {
    const size_t place = copy.own ? static_cast<size_t>((*copy.own)[i]) : i;
    return CallCopy(copy, copy.calls[place]).to_write();
  };
  writer.write_folder({catalogue_root(copy), pictures_of(copy),
                       copy.own ? copy.own->size() : copy.calls.size(), call},
                      out);
}

}  // namespace attnscope
