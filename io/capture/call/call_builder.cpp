#include "io/capture/call/call_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/problem/head_limit.h"
#include "core/problem/normalised_tensor.h"
#include "core/problem/problem_names.h"
#include "core/problem/score.h"
#include "io/capture/call/call_mask.h"
#include "io/capture/call/call_part.h"
#include "io/capture/call/call_place_bias.h"
#include "io/capture/call/call_sinks.h"
#include "io/capture/call/call_tensors.h"
#include "io/capture/call/call_tokens.h"
#include "io/capture/call/code_tensors.h"
#include "io/capture/call/head_tensors.h"
#include "io/capture/call/rope_option.h"
#include "io/capture/facts/call_facts.h"
#include "io/capture/facts/fact_errors.h"
#include "io/files/json_types.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/value_names.h"

namespace attnscope {
namespace {

/// The facts and the tensors of a call that --rope changes.
struct TurnedCall {
  CallFacts facts;
  HeadTensors heads;
};

/// True where q and k were taken where attention is called, after what the model did to them.
bool is_of_the_call_itself(const std::string& state) {
  return state == "as given to attention" || state == "final";
}

/// The positions of the call's tokens for a family that takes them; null where nobody recorded
/// them, which a note says.
std::shared_ptr<const TokenPositions> rope_positions(const RopeOption& rope,
                                                     const CallTensors& tensors,
                                                     const std::string& name,
                                                     std::vector<std::string>& notes) {
  if (!takes_positions(rope.family)) return nullptr;
  if (tensors.position_ids) return read_positions(*tensors.position_ids);
  notes.push_back(fmt::format(
      "{}: --rope {} counts t, y and x of the cells from 0 on, since there is no tensor "
      "position_ids [tokens, 3]: the model's own positions are no integers, and this is not the "
      "map of a real dump",
      name, rope.text));
  return nullptr;
}

/// Turns q and k as they are read; `q_state` says so from then on.
TurnedCall apply_rope(TurnedCall call, CallKind kind, const CallTokens& tokens,
                      const CallTensors& tensors, const std::string& name,
                      const ReadControl& control, std::vector<std::string>& notes) {
  const std::string option = "--rope " + name;
  // Of audio and video that attend to each other both are turned; words are not.
  const RopeOption rope = RopeOption::parse(name, control);
  const bool both = rope.family == RopeFamily::ltx2_audio && tokens.keys.text_range().empty();
  if (kind == CallKind::cross && !both) {
    notes.push_back(call.facts.name() + ": " + option + " leaves cross attention as it is");
    return call;
  }
  const std::string state = call.facts.text("q_state").value_or("");
  if (("," + state + ",").find(",rope,") != std::string::npos) {
    throw usage_error(option + ": " + call.facts.name() + " was recorded after it (q_state " +
                      state + ")");
  }
  if (is_of_the_call_itself(state)) {
    notes.push_back(fmt::format(
        "{}: {} turns q and k that were recorded as \"{}\" (q_state): most models have turned them "
        "before, and then this is not their map; `verify` tells where outputs were recorded",
        call.facts.name(), option, state));
  }
  const int64_t offset = call.facts.integer("head_offset").value_or(0);
  HeadTensors& heads = call.heads;
  const auto positions = rope_positions(rope, tensors, call.facts.name(), notes);
  heads.q = rope.apply(heads.q, tokens.queries, offset, positions);
  // Where key heads are shared there is no telling which of the model's they are.
  const bool shared = heads.k.heads() != heads.q.heads();
  heads.k = rope.apply(heads.k, tokens.keys, shared ? 0 : offset, positions);
  call.facts.set("q_state", state.empty() ? "rope" : state + ",rope", "option " + option);
  return call;
}

/// Throws Error(file) where q or k has no channels or more heads than any call, whatever options
/// say of them.
void require_possible_heads(const HeadTensors& heads) {
  for (const HeadTensor* tensor : {&heads.q, &heads.k}) {
    const TensorSource& source = tensor->source();
    const std::string many = too_many_heads(*tensor);
    if (!many.empty()) throw file_error(source.name(), "", many);
    if (tensor->width() > 0) continue;
    throw file_error(source.name(), "",
                     fmt::format("has no channels (shape [{}])", fmt::join(source.shape(), ", ")));
  }
}

/// How a call's logits become weights, and its tensors as this takes them.
struct CallScore {
  ScoreFunction score = ScoreFunction::softmax;
  HeadTensors heads;
};

/// The cap that files of other formats tell by itself; 0 and less say that there is none.
std::optional<ScoreFunction> recorded_cap(const CallFacts& facts) {
  const CallFacts::Fact* const fact = facts.find("softcap");
  if (fact == nullptr || !fact->value.is_number()) return std::nullopt;  // "none": left out as told
  const auto cap = fact->value.get<double>();
  if (cap <= 0) return std::nullopt;
  if (std::isfinite(cap)) return ScoreFunction::softcap(cap);
  throw bad_fact(facts, "softcap", fmt::format("expected a number (got {})", cap));
}

std::optional<ScoreFunction> recorded_score(const CallFacts& facts) {
  const auto name = facts.text("score");
  const auto cap = recorded_cap(facts);
  if (!name) return cap;
  const auto score = parse_score(*name);
  if (!score) {
    throw bad_fact(facts, "score",
                   fmt::format("expected one of {} (got {})", fmt::join(score_names(), ", "),
                               one_line(*name)));
  }
  if (!cap || *score == *cap || *score == ScoreFunction::softmax) return cap ? cap : score;
  throw bad_fact(facts, "softcap",
                 fmt::format("is {}, but the score is {}", cap->cap, score_name(*score)));
}

ScoreFunction chosen_score(const CallFacts& facts, const FactOverrides& overrides) {
  const auto recorded = recorded_score(facts);
  if (!recorded || overrides.score == ScoreFunction::softmax) {
    return recorded.value_or(overrides.score);
  }
  if (*recorded == overrides.score) return *recorded;
  throw usage_error("--score " + score_name(overrides.score) + ": " + facts.name() +
                    " was recorded with score " + score_name(*recorded));
}

void check_normaliser(const TensorSource& normaliser, const HeadTensor& q) {
  const std::array<int64_t, 3> expected{q.batch(), q.heads(), q.tokens()};
  const auto shape = normaliser.shape();
  if (normaliser.dtype() == DType::f32 && std::ranges::equal(shape, expected)) return;
  throw file_error(normaliser.name(), "",
                   "expected f32 " +
                       shape_text(std::vector<int64_t>(expected.begin(), expected.end())) +
                       ", a number a query (got " + std::string(dtype_name(normaliser.dtype())) +
                       " " + shape_text(shape) + ")");
}

/// The score that was recorded, or that an option says. Queries of linear:normaliser are divided by
/// the tensor of that name. Throws Error(file), Error(usage) where the fact is none, where the
/// tensor is missing, of another shape or of no use, and where option and fact differ.
CallScore call_score(const CallFacts& facts, const CallTensors& tensors, const HeadTensors& heads,
                     const FactOverrides& overrides) {
  const ScoreFunction score = chosen_score(facts, overrides);
  const std::string name(score_name(score));
  if (!is_signed(score)) {
    if (!tensors.normaliser) return {score, heads};
    throw file_error(facts.name(), "score",
                     "is " + name + ", which does not need the tensor normaliser that is there");
  }
  if (!tensors.normaliser) {
    throw file_error(facts.name(), "score",
                     "is " + name +
                         ", but there is no tensor normaliser, f32 [batch, heads, queries], which "
                         "a file of the capture format 2 states");
  }
  check_normaliser(*tensors.normaliser, heads.q);
  HeadTensors divided = heads;
  divided.q = HeadTensor(normalised_tensor(heads.q, tensors.normaliser), Layout::bhsd);
  // Products are of one dtype.
  if (heads.k.dtype() != DType::f32) {
    divided.k = HeadTensor(normalised_tensor(heads.k, nullptr), Layout::bhsd);
  }
  return {score, divided};
}

/// The facts with the scale as numbers, finite and above 0.
CallFacts with_scale(CallFacts facts, int64_t head_dim, ScoreFunction score) {
  const CallFacts::Fact* fact = facts.find("scale");
  if (fact == nullptr || fact->value == "auto") {
    const double scale = is_signed(score) ? 1.0 : 1.0 / std::sqrt(static_cast<double>(head_dim));
    facts.set("scale", scale, fact == nullptr ? "default" : "option --scale auto");
  } else if (fact->value.is_string()) {
    const auto numbers = parse_numbers(fact->value.get<std::string>());
    if (!numbers) {
      throw usage_error("--scale " + fact->value.get<std::string>() +
                        ": expected auto, a number, or one a head (0.1,0.2)");
    }
    facts.set("scale", one_or_list<Json>(*numbers), fact->origin);
  }
  for (const double scale : facts.numbers("scale")) {
    if (std::isfinite(scale) && scale > 0) continue;
    // JSON has no word for NaN and infinity.
    const std::string got = std::isnan(scale)   ? "NaN"
                            : std::isinf(scale) ? "infinity"
                                                : Json(scale).dump();
    throw bad_fact(facts, "scale", "expected a finite number above 0 (got " + got + ")");
  }
  return facts;
}

HeadScales head_scales(const CallFacts& facts, int64_t heads) {
  std::vector<double> each = facts.numbers("scale");
  if (each.size() == 1 || std::ssize(each) == heads) return HeadScales(std::move(each));
  throw bad_fact(facts, "scale",
                 fmt::format("expected a number, or one for each of the {} heads (got {} numbers)",
                             heads, each.size()));
}

/// True where an option was given that the way out of `shaping` names.
bool is_answered(const ShapingName& shaping, const FactOverrides& overrides) {
  const auto tells = [&](std::string_view option) {
    return shaping.way_out.find(option) != std::string_view::npos;
  };
  return (overrides.mask && tells("--mask")) || (overrides.sinks && tells("--sinks")) ||
         (overrides.alibi && tells("--alibi")) ||
         (overrides.relative_bias && tells("--relative-bias")) ||
         (overrides.score.cap != 0 && tells("--score")) || (overrides.scale && tells("--scale"));
}

void expect_shape(const TensorSource& tensor, std::initializer_list<int64_t> expected) {
  const auto shape = tensor.shape();
  if (std::equal(shape.begin(), shape.end(), expected.begin(), expected.end())) return;
  throw file_error(tensor.name(), "",
                   "expected shape " + shape_text(std::vector<int64_t>(expected)) + " (got " +
                       shape_text(shape) + ")");
}

void check_rows(const TensorSource& rows, int64_t queries) {
  const auto shape = rows.shape();
  std::vector<int64_t> values(static_cast<size_t>(shape[0]));
  const int64_t begin = 0;
  rows.read({&begin, 1}, shape, reinterpret_cast<std::byte*>(values.data()));
  for (int64_t row : values) {
    if (row >= 0 && row < queries) continue;
    throw file_error(rows.name(), "",
                     "row " + std::to_string(row) + " is outside the sequence (limit " +
                         std::to_string(queries - 1) + ")");
  }
}

/// Checks lse, out and out_rows, which only the self-check uses, against Q, K and V: dtypes, shapes
/// and rows. Throws Error(file); `name` is how messages name the call.
void check_outputs(const CallTensors& tensors, const HeadTensors& heads, const std::string& name) {
  const int64_t batch = heads.q.batch();
  const int64_t count = heads.q.heads();
  if (tensors.lse) {
    if (tensors.lse->dtype() != DType::f32) {
      throw file_error(tensors.lse->name(), "",
                       "expected f32 (got " + std::string(dtype_name(tensors.lse->dtype())) + ")");
    }
    expect_shape(*tensors.lse, {batch, count, heads.q.tokens()});
  }
  if (!tensors.out && !tensors.out_rows) return;
  if (!tensors.out || !tensors.out_rows) {
    throw file_error(name, tensors.out ? "out" : "out_rows",
                     "the tensors out and out_rows belong together, and one is missing");
  }
  const auto rows = tensors.out_rows->shape();
  if (tensors.out_rows->dtype() != DType::i64 || rows.size() != 1) {
    throw file_error(tensors.out_rows->name(), "", "expected int64 [rows]");
  }
  if (!is_floating(tensors.out->dtype())) {
    throw file_error(tensors.out->name(), "", "expected a floating dtype");
  }
  const auto shape = tensors.out->shape();
  const int64_t width = heads.v ? heads.v.width() : shape.empty() ? 0 : shape.back();
  expect_shape(*tensors.out, {batch, count, rows[0], width});
  check_rows(*tensors.out_rows, heads.q.tokens());
}

/// Describes the call by its facts and tensors, all but its problem.
CallEntry describe_call(const CallFacts& facts, const CallTensors& tensors) {
  CallEntry entry;
  entry.layer_name = facts.text("layer_name").value_or("");
  entry.model = facts.text("model").value_or("");
  entry.prompt = facts.text("prompt").value_or("");
  entry.timestep = facts.number("timestep");
  entry.q_state = facts.text("q_state").value_or("");
  entry.approximation = facts.text("approximation").value_or("");
  entry.head_offset = facts.integer("head_offset").value_or(0);
  entry.unknown_keys = facts.unknown_keys();
  entry.lse = tensors.lse;
  entry.out = tensors.out;
  entry.out_rows = tensors.out_rows;
  for (const auto& [name, fact] : facts.all()) {
    if (is_code_fact(name)) continue;
    entry.facts[name] = {fact.value.dump(-1, ' ', false, Json::error_handler_t::replace),
                         fact.origin};
  }
  return entry;
}

}  // namespace

BuiltCall build_call(CollectedCall call, const FactOverrides& overrides,
                     const ReadControl& control) {
  require_possible_heads(call.heads);
  const CallId id = call_id(call.facts, call.heads);
  std::erase_if(call.unknown, [&](const std::string& what) {
    return what.starts_with("tensor ") && call.facts.ignores(unknown_key(what));
  });
  for (const auto& [role, place] : {std::pair("sinks", &CallTensors::sinks),
                                    {"alibi_slopes", &CallTensors::alibi_slopes},
                                    {"relative_bias", &CallTensors::relative_bias}}) {
    for (const std::string& name : usual_names(role)) {
      if (call.tensors.*place && call.facts.ignores(name)) call.tensors.*place = nullptr;
    }
  }
  auto& positions = call.tensors.position_ids;
  if (positions && !is_token_positions(*positions, call.heads.q.tokens())) {
    call.unknown.push_back("tensor " + std::string(kPositionIds));
    positions = nullptr;
  }
  const std::set<std::string> left_out = call.facts.ignored();
  for (const std::string& name : left_out) {
    // A copy says that it has no longer what shaped the map.
    if (shaping_name(name) != nullptr) call.facts.set(name, "none", kToldOrigin);
  }
  const bool token_options = overrides.grid || overrides.text || overrides.preset;
  CallTokens tokens = call_tokens(call.facts, call.tensors, call.heads, id.kind,
                                  token_options ? ErrorCode::usage : ErrorCode::file);
  if (const auto part = call_part(call.facts, call.heads)) {
    for (const std::string& name : part_tensors(*part)) {
      if (call.tensors.others.count(name) == 0) {
        throw bad_fact(call.facts, "part", "the file has no tensor " + one_line(name));
      }
      tokens.tensors.insert(name);
    }
  }
  std::erase_if(call.unknown, [&](const std::string& what) {
    return what.rfind("tensor ", 0) == 0 && tokens.tensors.count(what.substr(7)) != 0;
  });
  TurnedCall turned{with_token_facts(std::move(call.facts), tokens, id.kind),
                    std::move(call.heads)};
  if (overrides.rope) {
    turned = apply_rope(std::move(turned), id.kind, tokens, call.tensors, *overrides.rope, control,
                        call.notes);
  }
  const CallScore score = call_score(turned.facts, call.tensors, turned.heads, overrides);
  const HeadTensors& heads = score.heads;
  CallMask mask =
      call_mask(turned.facts, call.tensors, heads, tokens, overrides, control, call.notes);
  const CallFacts facts = with_scale(std::move(turned.facts), heads.q.width(), score.score);
  check_outputs(call.tensors, heads, facts.name());
  Sinks sinks = call_sinks(call.tensors, heads.q, overrides, control, call.notes);

  CallEntry entry = describe_call(facts, call.tensors);
  entry.file = std::move(call.file);
  entry.id = id;
  entry.mask = std::move(mask.source);
  entry.alibi = call_alibi(call.tensors, heads, overrides, control, call.notes);
  entry.relative_bias =
      call_relative_bias(call.tensors, heads, tokens, overrides, control, call.notes);
  entry.mask_beside_biases = mask.mask;
  for (const std::string& name : tokens.tensors) {
    entry.map_tensors[name] = call.tensors.others.at(name);
  }
  if (positions) entry.map_tensors[std::string(kPositionIds)] = positions;
  entry.tokens = tokens.words;
  if (is_signed(score.score)) {
    entry.undivided = {turned.heads.q, turned.heads.k, call.tensors.normaliser};
  }
  entry.codes = turned.heads.codes;
  entry.scale_names = turned.heads.scale_names;
  const DType recorded = call.tensors.q->dtype();
  if (recorded == DType::i8 || is_float8(recorded)) entry.code_dtype = recorded;
  entry.mask_fact = mask.fact;
  entry.unknown_keys.insert(entry.unknown_keys.end(), call.unknown.begin(), call.unknown.end());
  std::erase_if(entry.unknown_keys, [&](const std::string& what) {
    const ShapingName* shaping = shaping_name(unknown_key(what));
    return shaping != nullptr && is_answered(*shaping, overrides);
  });
  const bool options = overrides.mask || overrides.scale || overrides.layout || overrides.sinks ||
                       overrides.alibi || overrides.relative_bias ||
                       overrides.score != ScoreFunction::softmax;
  entry.problem = with_name(facts.name(), options ? ErrorCode::usage : ErrorCode::file, [&] {
    return std::make_shared<const AttentionProblem>(
        AttentionProblem::make({.q = heads.q,
                                .k = heads.k,
                                .v = heads.v,
                                .scale = head_scales(facts, heads.q.heads()),
                                .score = score.score,
                                .mask = mask.mask & entry.alibi.mask & entry.relative_bias.mask,
                                .sinks = std::move(sinks),
                                .query_tokens = tokens.queries,
                                .key_tokens = tokens.keys,
                                .id = id,
                                .name = facts.name()}));
  });
  return {std::move(entry), std::move(call.notes), left_out};
}

}  // namespace attnscope
