// The tries of Diagnosis beyond the scale: each is a mistake that people made when they dumped Q
// and K of a model.
#include "io/check/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/problem/rope.h"
#include "io/check/head_transforms.h"

namespace attnscope {
namespace {

/// Parts of a head that may come from elsewhere: the likeliest first.
constexpr std::array<const char*, 6> kParts{"kv", "k", "q", "v", "qkv", "qk"};

std::string parts_text(const std::string& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

/// True where the first rows are equal, and their values are not all alike.
bool same_first_rows(const RowSource& a, const RowSource& b) {
  const IndexRange rows{0, std::min<int64_t>(8, a.tokens())};
  std::vector<float> x(static_cast<size_t>(rows.size() * a.width())), y(x.size());
  a.read(rows, x.data());
  b.read(rows, y.data());
  return x == y && std::any_of(x.begin(), x.end(), [&](float v) { return v != x.front(); });
}

bool same_shapes(const CallEntry& a, const CallEntry& b) {
  const auto same = [](const HeadTensor& x, const HeadTensor& y) {
    return static_cast<bool>(x) == static_cast<bool>(y) &&
           (!x || (x.batch() == y.batch() && x.heads() == y.heads() && x.tokens() == y.tokens() &&
                   x.width() == y.width()));
  };
  return same(a.problem->q(), b.problem->q()) && same(a.problem->k(), b.problem->k()) &&
         same(a.problem->v(), b.problem->v());
}

/// "step 3, layer 7"; the file where neither was recorded.
std::string step_and_layer(const CallEntry& call) {
  const std::string words = call_words(call.id.step, call.id.layer, "", "", call.id.place, ", ");
  return words.empty() ? call.file.filename().string() : words;
}

}  // namespace

bool Diagnosis::try_masks() {
  struct Named {
    Mask mask;
    std::string name, option;
  };
  std::vector<Named> masks;
  const std::string stated_mask = call_.mask_beside_biases.describe();
  const std::string instead = " instead of " + stated_mask;
  if (stated_mask != "none") masks.push_back({{}, "with no mask" + instead, "none"});
  if (stated_mask != "causal") {
    masks.push_back({Mask::causal(), "with a causal mask" + instead, "causal"});
  }
  const int64_t shift = problem_.num_keys() - problem_.num_queries();
  if (shift != 0) {
    masks.push_back({last_aligned_causal(shift),
                     "with a causal mask aligned at the last query and key" + instead,
                     "window:-1,0"});
  }
  if (const auto padding = padding_mask(problem_)) {
    masks.push_back({*padding, "with padded text keys hidden (text_valid)" + instead, ""});
  }
  if (call_.mask && call_.mask_fact && call_.mask->dtype() == DType::boolean) {
    masks.push_back({make_mask(*call_.mask_fact, inverted_booleans(call_.mask),
                               problem_.query_tokens(), problem_.key_tokens()),
                     "with the mask's booleans inverted (true must mean: may attend)", ""});
  } else if (call_.mask && is_floating(call_.mask->dtype())) {
    masks.push_back({number_mask(call_.mask),
                     "with the mask's numbers taken as booleans (store it as bool)", ""});
  }
  for (Named& named : masks) {
    AttendInputs inputs = stated();
    inputs.mask = named.mask & call_.alibi.mask & call_.relative_bias.mask;
    const std::string option = named.option.empty() ? "" : " (--mask " + named.option + ")";
    if (attempt({"mask", named.name + option, std::move(inputs)})) return true;
  }
  return false;
}

bool Diagnosis::try_layouts() {
  const auto reshape = [&](const std::string& parts) {
    AttendInputs inputs = stated();
    const int64_t kv_head = problem_.kv_head(head_);
    if (parts.find('q') != std::string::npos) {
      inputs.q = reshaped_rows(problem_.q(), batch_, head_);
    }
    if (parts.find('k') != std::string::npos) {
      inputs.k = reshaped_rows(problem_.k(), batch_, kv_head);
    }
    if (parts.find('v') != std::string::npos && inputs.v) {
      inputs.v = reshaped_rows(problem_.v(), batch_, kv_head);
    }
    return inputs;
  };
  for (const char* parts : {"qkv", "qk", "v", "q", "k"}) {
    if (attempt({"layout",
                 fmt::format("with heads and tokens of {} the other way round in memory than the "
                             "shape says (a view or reshape where a transpose was meant)",
                             parts_text(parts)),
                 reshape(parts)})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::try_batches() {
  for (int64_t other = 0; other < problem_.batch(); ++other) {
    if (other == batch_) continue;
    for (const char* parts : {"qkv", "kv", "qk", "k", "q", "v"}) {
      const auto name = [&](int64_t item) {
        return fmt::format("{} ({})", item, branch_of(call_.id, item));
      };
      if (attempt({"batch",
                   fmt::format("with {} of batch item {} for the outputs of item {}",
                               parts_text(parts), name(other), name(batch_)),
                   taken_from(call_, other, head_, parts)})) {
        return true;
      }
    }
  }
  for (const CallEntry& other : capture_.calls()) {
    if (other.id.step != call_.id.step || other.id.layer != call_.id.layer ||
        other.id.place != call_.id.place || &other == &call_ || !same_shapes(call_, other)) {
      continue;
    }
    if (try_other_call(
            "batch", other,
            "branch " + branch_of(other.id, std::min(batch_, other.problem->batch() - 1)))) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::try_heads() {
  const int64_t kv_heads = problem_.num_kv_heads();
  if (kv_heads != problem_.num_heads() && kv_heads > 1) {
    AttendInputs inputs = stated();
    inputs.k = stored_rows(problem_.k(), batch_, head_ % kv_heads);
    if (inputs.v) inputs.v = stored_rows(problem_.v(), batch_, head_ % kv_heads);
    if (attempt(
            {"heads",
             "with key heads repeated in turn (query head h uses key head h mod Hkv) instead of "
             "in groups",
             std::move(inputs)})) {
      return true;
    }
  }
  for (int64_t other = 0; other < problem_.num_heads(); ++other) {
    if (other == head_) continue;
    for (const char* parts : {"qkv", "kv", "q", "v"}) {
      if (attempt({"heads",
                   fmt::format("with {} of head {} for the outputs of head {}", parts_text(parts),
                               other, head_),
                   taken_from(call_, batch_, other, parts)})) {
        return true;
      }
    }
  }
  return false;
}

bool Diagnosis::try_token_orders() {
  const TokenGrid& queries = problem_.query_tokens();
  const TokenGrid& keys = problem_.key_tokens();
  const auto reorder = [&](const std::string& parts, const auto& q_order, const auto& k_order) {
    AttendInputs inputs = stated();
    if (parts.find('q') != std::string::npos) inputs.q = reordered_rows(inputs.q, q_order);
    if (parts.find('k') != std::string::npos) inputs.k = reordered_rows(inputs.k, k_order);
    if (parts.find('v') != std::string::npos && inputs.v) {
      inputs.v = reordered_rows(inputs.v, k_order);
    }
    return inputs;
  };
  // Which of two tensors was reordered cannot be told from k or v alone: all the ways are tried.
  const auto try_order = [&](const std::string& name, const auto& q_order, const auto& k_order) {
    for (const char* parts : {"q", "k", "v", "qk", "qv"}) {
      if (attempt({"token-order",
                   fmt::format("with the tokens of {} taken to stand in the order {}",
                               parts_text(parts), name),
                   reorder(parts, q_order, k_order)})) {
        return true;
      }
    }
    return false;
  };
  if (queries.has_grid()) {
    const bool same = keys.has_grid();
    const auto stay = [](int64_t index) { return index; };
    for (const AxisOrder& order : kOtherOrders) {
      const auto in = standing_in(queries, order.axes);
      const auto at = standing_at(queries, order.axes);
      const TokenPlacement still = stay;
      if (try_order(order.name, in, same ? in : still)) return true;
      if (try_order(std::string("(t, y, x) where ") + order.name + " was meant", at,
                    same ? at : still)) {
        return true;
      }
    }
  }
  const TextPlace place = queries.text_place();
  if (problem_.num_queries() != problem_.num_keys() ||
      (place != TextPlace::start && place != TextPlace::end)) {
    return false;
  }
  const auto moved = text_moved(queries);
  return try_order(place == TextPlace::start ? "video, text" : "text, video", moved, moved);
}

std::vector<Diagnosis::Rotation> Diagnosis::suiting_rotations() const {
  std::vector<Rotation> rotations;
  for (const RopeVariant& variant : rope_variants()) {
    const bool line = variant.family == RopeFamily::gptj || variant.family == RopeFamily::llama ||
                      variant.family == RopeFamily::ltx2_audio;
    // Tables of a line grow with the sequence.
    if (line && problem_.num_keys() > 32768) continue;
    const int64_t head = head_ + call_.head_offset;
    const HeadRotation::Shape shape{problem_.head_dim(), std::max(problem_.num_heads(), head + 1),
                                    head, variant.numbers};
    auto q = HeadRotation::make(variant.family, problem_.query_tokens(), shape);
    auto k = HeadRotation::make(variant.family, problem_.key_tokens(), shape);
    if (q && k) rotations.push_back({std::string(variant.text), std::move(q), std::move(k)});
  }
  return rotations;
}

bool Diagnosis::try_positions() {
  std::vector<Rotation> rotations = suiting_rotations();
  rotations.insert(rotations.begin(), Rotation{});
  const auto turned = [](RowSourcePtr rows, const HeadRotation& rotation, bool back) {
    return changed_rows(std::move(rows), [rotation, back](int64_t token, float* row) {
      back ? rotation.undo(token, row) : rotation.apply(token, row);
    });
  };
  for (const Rotation& rotation : rotations) {
    for (Norm norm : {Norm::none, Norm::rms, Norm::layer, Norm::rms_all_heads}) {
      if (norm == Norm::none && !rotation.q) continue;
      AttendInputs inputs = stated();
      inputs.q = normalised_rows(inputs.q, norm, problem_.q(), batch_);
      inputs.k = normalised_rows(inputs.k, norm, problem_.k(), batch_);
      if (rotation.q) {
        inputs.q = turned(inputs.q, *rotation.q, false);
        inputs.k = turned(inputs.k, *rotation.k, false);
      }
      const std::string norm_name(norm_text(norm));
      const std::string what = norm_name + (norm_name.empty() || !rotation.q ? "" : ", then ") +
                               (rotation.q ? "RoPE of " + rotation.name : "");
      const std::string cure = norm == Norm::none ? "; --rope " + rotation.name : "";
      if (attempt({norm == Norm::none ? "rope" : "norm",
                   fmt::format("with {} applied to q and k (they were recorded before it{})", what,
                               cure),
                   std::move(inputs)})) {
        return true;
      }
    }
    if (!rotation.q) continue;
    // A layer norm's mean is not that of turned rows: they are turned back for it.
    AttendInputs inputs = stated();
    inputs.q = normalised_rows(turned(inputs.q, *rotation.q, true), Norm::layer, {}, batch_);
    inputs.k = normalised_rows(turned(inputs.k, *rotation.k, true), Norm::layer, {}, batch_);
    inputs.q = turned(inputs.q, *rotation.q, false);
    inputs.k = turned(inputs.k, *rotation.k, false);
    if (attempt({"norm",
                 fmt::format("with {} applied to q and k before the RoPE of {}",
                             norm_text(Norm::layer), rotation.name),
                 std::move(inputs)})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::try_other_call(const std::string& culprit, const CallEntry& other,
                               const std::string& name) {
  for (const char* parts : kParts) {
    if (attempt({culprit, fmt::format("with {} of {}", parts_text(parts), name),
                 taken_from(other, batch_, head_, parts)})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::try_layers() {
  std::vector<const CallEntry*> others;
  for (const CallEntry& other : capture_.calls()) {
    if (&other != &call_ && same_shapes(call_, other)) others.push_back(&other);
  }
  const auto distance = [&](const CallEntry* other) {
    const int64_t steps = std::abs(other->id.step - call_.id.step);
    const int64_t layers = std::abs(other->id.layer - call_.id.layer);
    return std::pair(steps != 0 && layers != 0 ? 1 : 0, steps + layers);
  };
  std::stable_sort(others.begin(), others.end(), [&](const CallEntry* a, const CallEntry* b) {
    return distance(a) < distance(b);
  });
  constexpr size_t kMost = 128;
  if (others.size() > kMost) others.resize(kMost);
  for (const CallEntry* other : others) {
    const std::string name =
        other->id.step == call_.id.step ? layer_text(other->id.layer, other->id.place) : "";
    if (try_other_call("layer", *other, name.empty() ? step_and_layer(*other) : name)) return true;
  }
  return false;
}

/// Suspects rows that another layer recorded too, even where the right ones were not recorded.
bool Diagnosis::find_same_rows() {
  for (const CallEntry& other : capture_.calls()) {
    const bool same_layer = other.id.layer == call_.id.layer && other.id.place == call_.id.place;
    if (same_layer || !same_shapes(call_, other)) continue;
    for (const char* part : {"k", "q", "v"}) {
      const AttendInputs own = stated();
      const AttendInputs its = taken_from(other, batch_, head_, part);
      const auto pick = [&](const AttendInputs& inputs) -> const RowSource& {
        return *part == 'k' ? *inputs.k : *part == 'q' ? *inputs.q : *inputs.v;
      };
      if (*part == 'v' && !own.v) continue;
      if (!same_first_rows(pick(own), pick(its))) continue;
      suspect_ = {"layer",
                  fmt::format("its {} is that of {} as well, number for number; its own is "
                              "in no call of this capture",
                              part, step_and_layer(other)),
                  check_.error};
      return true;
    }
  }
  return false;
}

}  // namespace attnscope
