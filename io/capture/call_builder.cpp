#include "io/capture/call_builder.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/selection.h"
#include "io/capture/model_preset.h"
#include "io/capture/packed_sequences.h"
#include "io/capture/rope_option.h"
#include "io/tensors/file_tensor.h"
#include "io/tensors/open_tensor_file.h"

namespace attnscope {
namespace {

/// Runs `make` and puts the call's name before the message of what it throws.
template <typename Make>
auto with_name(const std::string& name, ErrorCode code, const Make& make) {
  try {
    return make();
  } catch (const Error& e) {
    const std::string message = e.what();
    const bool named = message.rfind(name, 0) == 0;
    const bool usage = e.code() == ErrorCode::usage;
    throw Error(usage ? code : e.code(), named ? message : name + ": " + message);
  }
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Builds one call; the steps run in the order of build().
class CallBuilder {
 public:
  CallBuilder(CallFacts facts, const CallTensors& tensors, const FactOverrides& overrides,
              std::vector<std::string>& notes)
      : facts_(std::move(facts)), tensors_(tensors), overrides_(overrides), notes_(notes) {}

  CallEntry build() {
    apply_overrides();
    parts_.name = facts_.name();
    parts_.score = overrides_.score;
    make_tensors();
    if (overrides_.preset) apply_preset();
    make_identity();
    make_grid();
    if (overrides_.rope) apply_rope();
    make_mask();
    add_packed_sequences();
    make_scale();
    check_recorded_rows();
    fill_entry();
    return std::move(entry_);
  }

 private:
  /// A recorded fact is wrong.
  [[noreturn]] void bad_fact(const std::string& fact, const std::string& what) const {
    const CallFacts::Fact* found = facts_.find(fact);
    if (found != nullptr && found->source.empty()) throw usage_error(option_of(fact) + ": " + what);
    throw file_error(facts_.name(), fact, what);
  }

  std::string option_of(const std::string& fact) const {
    return fact == "mask" ? overrides_.mask_option : "--" + fact;
  }

  void override_fact(const std::string& fact, const std::optional<std::string>& value) {
    if (!value) return;
    if (const CallFacts::Fact* recorded = facts_.find(fact)) {
      const std::string old =
          recorded->value.is_string() ? recorded->value.get<std::string>() : recorded->value.dump();
      if (old != *value) {
        notes_.push_back(facts_.name() + ": " + option_of(fact) + " " + *value +
                         " overrides the recorded " + old);
      }
    }
    facts_.set(fact, *value, "option " + option_of(fact));
  }

  void apply_overrides() {
    // A tensor mask beside q and k is a recorded mask, told or not.
    if (tensors_.mask && !facts_.has("mask")) facts_.set("mask", "tensor", "default");
    override_fact("layout", overrides_.layout);
    override_fact("grid", overrides_.grid);
    const bool text_changes = overrides_.text && facts_.text("text") != overrides_.text;
    override_fact("text", overrides_.text);
    override_fact("mask", overrides_.mask);
    override_fact("scale", overrides_.scale);
    if (!text_changes) return;
    // How much of the recorded text is valid, and its words, say nothing of another span.
    for (const char* fact : {"text_valid", "tokens"}) {
      if (!facts_.has(fact)) continue;
      notes_.push_back(facts_.name() + ": --text " + *overrides_.text + " drops the recorded " +
                       fact);
      facts_.drop(fact);
    }
  }

  HeadTensor head_tensor(const std::shared_ptr<const TensorSource>& source, Layout layout) {
    if (source->dtype() == DType::f64) notes_.push_back(source->name() + ": f64 is rounded to f32");
    return with_name(facts_.name(), ErrorCode::file, [&] { return HeadTensor(source, layout); });
  }

  void make_tensors() {
    const std::string name = facts_.text("layout").value_or("bhsd");
    const auto layout = parse_layout(name);
    if (!layout) bad_fact("layout", "expected bhsd, bshd, hsd, shd or sd (got " + name + ")");
    parts_.q = head_tensor(tensors_.q, *layout);
    parts_.k = head_tensor(tensors_.k, *layout);
    if (tensors_.v) parts_.v = head_tensor(tensors_.v, *layout);
  }

  void apply_preset() {
    const ModelPreset& preset = find_preset(*overrides_.preset);
    const int64_t queries = parts_.q.tokens();
    const int64_t keys = parts_.k.tokens();
    const int64_t cells = preset.grid[0] * preset.grid[1] * preset.grid[2];
    const std::string option = "--preset " + std::string(preset.name);
    if (preset.head_dim != parts_.q.width()) {
      throw usage_error(option + " has head dimension " + std::to_string(preset.head_dim) +
                        ", but " + facts_.name() + " has " + std::to_string(parts_.q.width()));
    }
    const bool cross = queries == cells && keys == preset.cross_text && preset.cross_text > 0;
    if (!cross && (queries != preset.tokens() || keys != queries)) {
      throw usage_error(option + " has " + std::to_string(preset.tokens()) + " tokens, but " +
                        facts_.name() + " has " + std::to_string(queries) + " queries and " +
                        std::to_string(keys) + " keys");
    }
    TokenGrid grid = TokenGrid::video(cells, preset.grid, 0, TextPlace::none);
    if (!facts_.has("grid")) facts_.set("grid", grid.grid_text(), "preset");
    if (facts_.has("text") || cross) return;
    const TokenGrid whole =
        TokenGrid::video(preset.tokens(), preset.grid, preset.text.count, preset.text.place);
    facts_.set("text", whole.text_text(), "preset");
  }

  void make_identity() {
    CallId& id = parts_.id;
    id.step = facts_.integer("step").value_or(0);
    id.layer = facts_.integer("layer").value_or(0);
    id.branches = facts_.strings("branches");
    if (id.branches.empty()) id.branches = {"all"};
    for (const std::string& branch : id.branches) check_branch_name(branch);
    const int64_t batch = parts_.q.batch();
    const auto count = static_cast<int64_t>(id.branches.size());
    if (count != 1 && count != batch) {
      bad_fact("branches", "expected one name a batch item (got " + std::to_string(count) +
                               " for " + std::to_string(batch) + " items)");
    }
    const bool cross = parts_.q.tokens() != parts_.k.tokens();
    const std::string text = facts_.text("text").value_or("none");
    const bool has_text = text != "none" && text != "all" && text.rfind("0@", 0) != 0;
    id.kind = cross                            ? CallKind::cross
              : facts_.has("grid") && has_text ? CallKind::joint
                                               : CallKind::self;
    if (const auto kind = facts_.text("kind")) {
      const auto parsed = parse_kind(*kind);
      if (!parsed) bad_fact("kind", "expected self, cross or joint (got " + *kind + ")");
      if (cross && *parsed != CallKind::cross) {
        bad_fact("kind", *kind + " attention has as many queries as keys (got " +
                             std::to_string(parts_.q.tokens()) + " and " +
                             std::to_string(parts_.k.tokens()) + ")");
      }
      id.kind = *parsed;
    }
  }

  /// Branch names become part of group names in exports.
  void check_branch_name(const std::string& branch) const {
    const bool odd = std::any_of(branch.begin(), branch.end(),
                                 [](unsigned char c) { return c <= ' ' || c == '/' || c == 0x7f; });
    if (branch.empty() || branch.size() > 64 || branch[0] == '.' || odd) {
      bad_fact("branches", "\"" + branch + "\" is no name (1 to 64 characters, no space or slash)");
    }
  }

  /// The grid of the query sequence: for factorised attention the part that the call sees.
  std::optional<std::array<int64_t, 3>> sequence_grid() const {
    const std::string axes = facts_.text("axes").value_or("full");
    if (axes != "full" && axes != "spatial" && axes != "temporal") {
      bad_fact("axes", "expected full, spatial or temporal (got " + axes + ")");
    }
    const auto text = facts_.text("grid");
    if (!text || *text == "none") return std::nullopt;
    std::array<int64_t, 3> grid = parse_grid(*text);
    const int64_t batch = parts_.q.batch();
    int64_t items = 1;
    if (axes == "spatial") {
      items = grid[0];
      grid = {1, grid[1], grid[2]};
    } else if (axes == "temporal") {
      items = grid[1] * grid[2];
      grid = {grid[0], 1, 1};
    }
    if (batch % items != 0) {
      bad_fact("axes", axes + " attention over the grid " + *text + " has a multiple of " +
                           std::to_string(items) + " batch items (got " + std::to_string(batch) +
                           ")");
    }
    return grid;
  }

  TokenGrid make_token_grid(int64_t tokens, const std::optional<std::array<int64_t, 3>>& grid,
                            const TextSpan& text) const {
    if (text.place == TextPlace::all) return TokenGrid::text_only(tokens);
    if (grid) return TokenGrid::video(tokens, *grid, text.count, text.place);
    if (text.count == 0) return TokenGrid::unknown(tokens);
    return TokenGrid::spans(tokens, text.count, text.place);
  }

  void make_grid() {
    const bool options = overrides_.grid || overrides_.text || overrides_.preset;
    with_name(facts_.name(), options ? ErrorCode::usage : ErrorCode::file, [&] {
      const auto grid = sequence_grid();
      const auto recorded_text = facts_.text("text");
      const bool cross = parts_.id.kind == CallKind::cross;
      TextSpan text = parse_text_span(recorded_text.value_or(cross ? "all" : "none"));
      if (cross) {
        // The grid belongs to the queries, the text to the keys.
        parts_.query_tokens = make_token_grid(parts_.q.tokens(), grid, {});
        const bool all = text.count == parts_.k.tokens() && text.place != TextPlace::none;
        if (all) text.place = TextPlace::all;
        parts_.key_tokens = make_token_grid(parts_.k.tokens(), std::nullopt, text);
      } else {
        parts_.query_tokens = make_token_grid(parts_.q.tokens(), grid, text);
      }
      TokenGrid& text_grid = cross ? parts_.key_tokens : parts_.query_tokens;
      if (const CallFacts::Fact* valid = facts_.find("text_valid"))
        set_text_valid(text_grid, *valid);
      if (!cross) parts_.key_tokens = parts_.query_tokens;
      if (!facts_.has("grid")) facts_.set("grid", "none", "default");
      if (!recorded_text) facts_.set("text", text_grid.text_text(), "default");
      return 0;
    });
  }

  /// Turns q and k as they are read; `q_state` says so from then on.
  void apply_rope() {
    const std::string option = "--rope " + *overrides_.rope;
    if (parts_.id.kind == CallKind::cross) {
      notes_.push_back(facts_.name() + ": " + option + " leaves cross attention as it is");
      return;
    }
    const std::string state = facts_.text("q_state").value_or("");
    if (("," + state + ",").find(",rope,") != std::string::npos) {
      throw usage_error(option + ": " + facts_.name() + " was recorded after it (q_state " + state +
                        ")");
    }
    const RopeOption rope = RopeOption::parse(*overrides_.rope);
    const int64_t offset = facts_.integer("head_offset").value_or(0);
    parts_.q = rope.apply(parts_.q, parts_.query_tokens, offset);
    // Where key heads are shared there is no telling which of the model's they are.
    const bool shared = parts_.k.heads() != parts_.q.heads();
    parts_.k = rope.apply(parts_.k, parts_.key_tokens, shared ? 0 : offset);
    facts_.set("q_state", state.empty() ? "rope" : state + ",rope", "option " + option);
  }

  void set_text_valid(TokenGrid& grid, const CallFacts::Fact& fact) const {
    const auto valid = fact.value.is_array() ? fact.value.get<std::vector<int64_t>>()
                                             : std::vector<int64_t>{fact.value.get<int64_t>()};
    if (valid.size() != 1 && static_cast<int64_t>(valid.size()) != parts_.q.batch()) {
      bad_fact("text_valid", "expected one number, or one a batch item (got " +
                                 std::to_string(valid.size()) + " for " +
                                 std::to_string(parts_.q.batch()) + " items)");
    }
    grid.set_text_valid(valid);
  }

  void make_mask() {
    const bool option = overrides_.mask.has_value();
    const std::string text = facts_.text("mask").value_or(tensors_.mask ? "tensor" : "none");
    if (!facts_.has("mask")) facts_.set("mask", text, "default");
    if (text == "causal") {
      parts_.mask = Mask::causal();
    } else if (text.rfind("window:", 0) == 0 && option) {
      const auto reach = parse_number(text.substr(7));
      if (!reach || *reach < 0 || *reach != std::floor(*reach) || *reach > 1e15) {
        throw usage_error(overrides_.mask_option + " " + text +
                          ": expected window:N, N a whole number of tokens");
      }
      parts_.mask = Mask::window(static_cast<int64_t>(*reach));
    } else if (text == "tensor" && !option) {
      if (!tensors_.mask) bad_fact("mask", "is tensor, but the file has no tensor mask");
      mask_source_ = tensors_.mask;
    } else if (text != "none") {
      if (!option) bad_fact("mask", "expected none, causal or tensor (got " + text + ")");
      check_mask_file(text);
      mask_source_ = open_tensor_reference(text, {"mask", "attn_mask", "attention_mask"});
    }
    if (mask_source_) {
      parts_.mask = with_name(mask_source_->name(), option ? ErrorCode::usage : ErrorCode::file,
                              [&] { return Mask::tensor(mask_source_); });
    }
    if (tensors_.mask && !option && text != "tensor") {
      bad_fact("mask", "is " + text + ", but the file has a tensor mask");
    }
  }

  void add_packed_sequences() {
    if (!tensors_.cu_seqlens_q) return;
    const ErrorCode code = overrides_.cu_seqlens ? ErrorCode::usage : ErrorCode::file;
    parts_.mask = with_name(facts_.name(), code, [&] {
      const bool causal = facts_.text("mask").value_or("none") == "causal";
      return parts_.mask & packed_mask(tensors_, parts_.q, parts_.k, causal, code, notes_);
    });
  }

  /// A word that names no file is a slip of the pen, not a missing file.
  void check_mask_file(const std::string& text) {
    std::error_code error;
    if (std::filesystem::exists(reference_file(text), error)) return;
    const std::vector<std::string> words{"none", "causal", "window:N"};
    const std::string nearest = nearest_word(text, words);
    throw usage_error(overrides_.mask_option + " " + text +
                      ": neither none, causal, window:N nor a file" +
                      (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }

  void make_scale() {
    const CallFacts::Fact* fact = facts_.find("scale");
    if (fact == nullptr || fact->value == "auto") {
      facts_.set("scale", 1.0 / std::sqrt(static_cast<double>(parts_.q.width())),
                 fact == nullptr ? "default" : "option --scale auto");
    } else if (fact->value.is_string()) {
      const auto number = parse_number(fact->value.get<std::string>());
      if (!number) {
        throw usage_error("--scale " + fact->value.get<std::string>() +
                          ": expected auto or a number");
      }
      facts_.set("scale", *number, fact->origin);
    }
    parts_.scale = *facts_.number("scale");
    if (!std::isfinite(parts_.scale) || parts_.scale <= 0) {
      // JSON has no word for NaN and infinity.
      const std::string got = std::isnan(parts_.scale)   ? "NaN"
                              : std::isinf(parts_.scale) ? "infinity"
                                                         : nlohmann::json(parts_.scale).dump();
      bad_fact("scale", "expected a finite number above 0 (got " + got + ")");
    }
  }

  void expect_shape(const TensorSource& tensor, std::initializer_list<int64_t> expected) const {
    const auto shape = tensor.shape();
    if (std::equal(shape.begin(), shape.end(), expected.begin(), expected.end())) return;
    throw file_error(tensor.name(), "",
                     "expected shape " + shape_text(std::vector<int64_t>(expected)) + " (got " +
                         shape_text(shape) + ")");
  }

  /// lse, out and out_rows, which only the self-check uses.
  void check_recorded_rows() {
    const int64_t batch = parts_.q.batch();
    const int64_t heads = parts_.q.heads();
    if (tensors_.lse) {
      if (tensors_.lse->dtype() != DType::f32) {
        throw file_error(
            tensors_.lse->name(), "",
            "expected f32 (got " + std::string(dtype_name(tensors_.lse->dtype())) + ")");
      }
      expect_shape(*tensors_.lse, {batch, heads, parts_.q.tokens()});
    }
    if (!tensors_.out && !tensors_.out_rows) return;
    if (!tensors_.out || !tensors_.out_rows) {
      throw file_error(facts_.name(), tensors_.out ? "out" : "out_rows",
                       "the tensors out and out_rows belong together, and one is missing");
    }
    const auto rows = tensors_.out_rows->shape();
    if (tensors_.out_rows->dtype() != DType::i64 || rows.size() != 1) {
      throw file_error(tensors_.out_rows->name(), "", "expected int64 [rows]");
    }
    if (!is_floating(tensors_.out->dtype())) {
      throw file_error(tensors_.out->name(), "", "expected a floating dtype");
    }
    const auto shape = tensors_.out->shape();
    const int64_t width = parts_.v ? parts_.v.width() : shape.empty() ? 0 : shape.back();
    expect_shape(*tensors_.out, {batch, heads, rows[0], width});
    std::vector<int64_t> values(static_cast<size_t>(rows[0]));
    const int64_t begin = 0;
    tensors_.out_rows->read({&begin, 1}, rows, reinterpret_cast<std::byte*>(values.data()));
    for (int64_t row : values) {
      if (row < 0 || row >= parts_.q.tokens()) {
        throw file_error(tensors_.out_rows->name(), "",
                         "row " + std::to_string(row) + " is outside the sequence (limit " +
                             std::to_string(parts_.q.tokens() - 1) + ")");
      }
    }
  }

  void fill_tokens() {
    const CallFacts::Fact* fact = facts_.find("tokens");
    if (fact == nullptr || fact->value.empty()) return;
    if (fact->value.front().is_string()) {
      entry_.tokens = {fact->value.get<std::vector<std::string>>()};
    } else {
      entry_.tokens = fact->value.get<std::vector<std::vector<std::string>>>();
    }
    const int64_t text = parts_.key_tokens.text_range().size();
    const auto lists = static_cast<int64_t>(entry_.tokens.size());
    if (lists != 1 && lists != parts_.q.batch()) {
      bad_fact("tokens", "expected one list, or one a batch item (got " + std::to_string(lists) +
                             " for " + std::to_string(parts_.q.batch()) + " items)");
    }
    for (const auto& list : entry_.tokens) {
      if (static_cast<int64_t>(list.size()) > text) {
        bad_fact("tokens", "more strings than text tokens (got " + std::to_string(list.size()) +
                               ", limit " + std::to_string(text) + ")");
      }
    }
  }

  void fill_entry() {
    entry_.id = parts_.id;
    entry_.step_recorded = facts_.has("step");
    entry_.layer_recorded = facts_.has("layer");
    entry_.branch_recorded = facts_.has("branches");
    entry_.layer_name = facts_.text("layer_name").value_or("");
    entry_.model = facts_.text("model").value_or("");
    entry_.prompt = facts_.text("prompt").value_or("");
    entry_.timestep = facts_.number("timestep");
    entry_.q_state = facts_.text("q_state").value_or("");
    entry_.head_offset = facts_.integer("head_offset").value_or(0);
    fill_tokens();
    entry_.unknown_keys = facts_.unknown_keys();
    entry_.lse = tensors_.lse;
    entry_.out = tensors_.out;
    entry_.out_rows = tensors_.out_rows;
    entry_.mask = mask_source_;
    for (const auto& [name, fact] : facts_.all()) {
      entry_.facts[name] = {
          fact.value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), fact.origin};
    }
    const bool options = overrides_.mask || overrides_.scale || overrides_.layout ||
                         overrides_.score != ScoreFunction::softmax;
    entry_.problem = with_name(facts_.name(), options ? ErrorCode::usage : ErrorCode::file, [&] {
      return std::make_shared<const AttentionProblem>(AttentionProblem::make(parts_));
    });
  }

  CallFacts facts_;
  const CallTensors& tensors_;
  const FactOverrides& overrides_;
  std::vector<std::string>& notes_;
  AttentionProblem::Parts parts_;
  std::shared_ptr<const TensorSource> mask_source_;
  CallEntry entry_;
};

}  // namespace

CallEntry build_call(CallFacts facts, const CallTensors& tensors, const FactOverrides& overrides,
                     std::vector<std::string>& notes) {
  return CallBuilder(std::move(facts), tensors, overrides, notes).build();
}

std::string reference_file(const std::string& reference) {
  // A file of that very name goes before FILE:KEY.
  std::error_code error;
  const size_t colon = reference.rfind(':');
  if (colon == std::string::npos || colon == 0 || std::filesystem::exists(reference, error)) {
    return reference;
  }
  return reference.substr(0, colon);
}

void add_option_files(const FactOverrides& overrides, std::vector<std::filesystem::path>& files) {
  if (overrides.mask) files.emplace_back(reference_file(*overrides.mask));
  for (const auto& boundaries : {overrides.cu_seqlens, overrides.cu_seqlens_k}) {
    const std::string file = boundaries ? packed_option_file(*boundaries) : "";
    if (!file.empty()) files.emplace_back(file);
  }
}

std::shared_ptr<const TensorSource> open_tensor_reference(
    const std::string& reference, const std::vector<std::string>& usual_names) {
  const std::string file = reference_file(reference);
  const std::string key =
      file.size() < reference.size() ? reference.substr(file.size() + 1) : std::string();
  const auto opened = open_tensor_file(file);
  if (!key.empty()) return opened->tensor(key);
  const std::vector<std::string> keys = opened->keys();
  if (keys.size() == 1) return opened->tensor(keys.front());
  for (const std::string& name : usual_names) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) return opened->tensor(name);
  }
  std::string list;
  for (const std::string& name : keys) list += (list.empty() ? "" : ", ") + name;
  throw usage_error(file + " has several tensors (" + list + "): say which, as " + file + ":KEY");
}

}  // namespace attnscope
