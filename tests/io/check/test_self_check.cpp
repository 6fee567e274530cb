#include <cmath>
#include <fstream>
#include <limits>

#include "core/problem/rope.h"
#include "io/check/recorded_rows.h"
#include "io/check/self_check.h"
#include "kernels/backend_factory.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/project_paths.h"
#include "tests/support/recorded_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The cpu, and plenty of memory.
CheckMeans means() {
  static const std::unique_ptr<TileBackend> backend =
      make_backend(BackendKind::cpu, {.threads = 2});
  static MemoryBudget budget(int64_t{1} << 30);
  return {*backend, budget};
}

/// A folder of calls.
class Recording {
 public:
  void add(const RecordedCall& call) {
    call.file().write(folder_.path() / ("layer" + std::to_string(call.layer) + ".safetensors"));
  }
  Capture open() const { return Capture::open(folder_.path()); }

  /// What is found out about the first call.
  Suspect culprit() const {
    const Capture capture = open();
    const CallCheck check = check_call(capture.calls().front(), {}, means(), 2);
    REQUIRE(check.verdict == CheckVerdict::differs);
    CHECK(check.error > 10 * check.tolerance);
    return find_culprit(check, capture);
  }

 private:
  TemporaryFolder folder_;
};

/// The culprit of a single call, whose error must be gone then.
std::string culprit_of(const RecordedCall& call) {
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  INFO(suspect.explanation);
  CHECK((suspect.culprit == "unknown" || suspect.error < 1e-4));
  return suspect.culprit;
}

/// Turns pair (a, b) of a row by an angle, as the definition of rotary embeddings says.
void turn(float* row, int64_t a, int64_t b, double angle) {
  const double x = row[a], y = row[b];
  row[a] = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
  row[b] = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
}

/// RoPE with three bands of neighbouring channels, on the video tokens of a RecordedCall.
void apply_bands(RecordedCall& call, std::array<int64_t, 3> bands, double base) {
  call.change_rows([&](int64_t token, float* row) {
    const int64_t video = token - RecordedCall::kText;
    if (video < 0) return;
    const std::array<int64_t, 3> place{video / 12, video / 4 % 3, video % 4};
    int64_t channel = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      for (int64_t i = 0; i < bands[axis]; i += 2, channel += 2) {
        const double frequency =
            std::pow(base, -static_cast<double>(i) / static_cast<double>(bands[axis]));
        turn(row, channel, channel + 1, static_cast<double>(place[axis]) * frequency);
      }
    }
  });
}

void apply_halves(RecordedCall& call) {
  call.change_rows([&](int64_t token, float* row) {
    for (int64_t i = 0; i < 32; ++i) {
      turn(row, i, i + 32, static_cast<double>(token) * std::pow(10000.0, -i / 32.0));
    }
  });
}

void apply_rms(RecordedCall& call) {
  call.change_rows([&](int64_t, float* row) {
    double squares = 0;
    for (int64_t c = 0; c < 64; ++c) squares += double{row[c]} * double{row[c]};
    const double factor = 1 / std::sqrt(squares / 64 + 1e-6);
    for (int64_t c = 0; c < 64; ++c) row[c] = static_cast<float>(row[c] * factor);
  });
}

/// Keeps the recorded q and k, but gives `out` as the model computed it after `step`.
template <typename Step>
RecordedCall recorded_before(const Step& step) {
  RecordedCall call(3);
  const auto q = call.q, k = call.k;
  step(call);
  call.attend();
  call.q = q;
  call.k = k;
  return call;
}

/// The rows of a tensor in another order: row `order(token)` goes to `token`.
template <typename Order>
std::vector<float> reordered(const RecordedCall& call, std::vector<float> tensor,
                             const Order& order) {
  std::vector<float> result = tensor;
  const int64_t rows = static_cast<int64_t>(tensor.size()) / RecordedCall::kWidth;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / RecordedCall::kTokens, token = r % RecordedCall::kTokens;
    const auto from =
        tensor.begin() + (head * RecordedCall::kTokens + order(token)) * RecordedCall::kWidth;
    std::copy(from, from + RecordedCall::kWidth, result.begin() + r * RecordedCall::kWidth);
  }
  (void)call;
  return result;
}

}  // namespace

TEST_CASE("a right capture agrees with its recorded outputs") {
  RecordedCall call(1);
  call.attend();
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 2);
  CHECK(check.verdict == CheckVerdict::agrees);
  CHECK(check.against == "output rows");
  CHECK(check.heads_checked == 8);
  CHECK(check.rows_checked == 10);
  CHECK(check.error > 0);
  CHECK(check.error < 1e-5);
  CHECK_FALSE(quick_check(capture, means()));
}

TEST_CASE("the sample agrees within the rounding of bf16") {
  const Capture capture = Capture::open(project_folder() + "/samples/moving-shapes");
  for (const CallEntry& call : capture.calls()) {
    const CallCheck check = check_call(call, {}, means(), 2);
    CHECK(check.verdict == CheckVerdict::agrees);
    CHECK(check.error < 0x1p-8);
    CHECK(check.error > 0x1p-12);
  }
}

TEST_CASE("a mask tensor that the model used is part of what agrees") {
  RecordedCall call(2);
  call.mask.assign(static_cast<size_t>(RecordedCall::kTokens * RecordedCall::kTokens), '\1');
  for (size_t i = 0; i < call.mask.size(); i += 3) call.mask[i] = '\0';
  call.mask_fact = "tensor";
  call.attend([&](int64_t i, int64_t j) {
    return call.mask[static_cast<size_t>(i * RecordedCall::kTokens + j)] != 0 ? 0 : -kInfinity;
  });
  Recording recording;
  recording.add(call);
  CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::agrees);

  SECTION("inverted") {
    for (char& c : call.mask) c = c == 0 ? '\1' : '\0';
    CHECK(culprit_of(call) == "mask");
  }
  SECTION("forgotten") {
    call.attend();
    CHECK(culprit_of(call) == "mask");
  }
}

TEST_CASE("valid tokens that the model used are part of what agrees") {
  RecordedCall call(3);
  call.mask_valid.assign(static_cast<size_t>(RecordedCall::kTokens), '\1');
  for (size_t i = 0; i < call.mask_valid.size(); i += 4) call.mask_valid[i] = '\0';
  const auto is_valid = [&](int64_t token) {
    return call.mask_valid[static_cast<size_t>(token)] != 0;
  };
  for (const bool pairs : {false, true}) {
    call.mask_fact = pairs ? "valid_pairs" : "valid";
    call.attend([&](int64_t i, int64_t j) {
      return is_valid(j) && (!pairs || is_valid(i)) ? 0 : -kInfinity;
    });
    Recording recording;
    recording.add(call);
    CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
          CheckVerdict::agrees);
    RecordedCall inverted = call;
    for (char& c : inverted.mask_valid) c = c == 0 ? '\1' : '\0';
    CHECK(culprit_of(inverted) == "mask");
    RecordedCall forgotten = call;
    forgotten.attend();
    CHECK(culprit_of(forgotten) == "mask");
  }
}

TEST_CASE("wrong scales are named with the right one") {
  for (double recorded : {1.0, 0.125 * 0.125, 0.25, 0.111}) {
    RecordedCall call(4);
    call.attend();
    call.scale = recorded;
    Recording recording;
    recording.add(call);
    const Suspect suspect = recording.culprit();
    INFO(suspect.explanation);
    CHECK(suspect.culprit == "scale");
    CHECK(suspect.explanation.find("with scale 0.125") != std::string::npos);
  }
}

TEST_CASE("a scale that has no name is found too") {
  RecordedCall call(5);
  call.scale = 0.0377;
  call.attend();
  call.scale = 0.125;
  CHECK(culprit_of(call) == "scale");
}

TEST_CASE("a causal mask that was not recorded, or was recorded and not used") {
  RecordedCall call(6);
  call.attend([](int64_t i, int64_t j) { return j <= i ? 0 : -kInfinity; });
  CHECK(culprit_of(call) == "mask");
  call.attend();
  call.mask_fact = "causal";
  CHECK(culprit_of(call) == "mask");
}

TEST_CASE("heads and tokens the other way round in memory") {
  RecordedCall call(7);
  call.attend();
  const auto transposed = [&](const std::vector<float>& tensor) {
    const int64_t heads = static_cast<int64_t>(tensor.size()) /
                          (RecordedCall::kBatch * RecordedCall::kTokens * RecordedCall::kWidth);
    std::vector<float> result;
    for (int64_t b = 0; b < RecordedCall::kBatch; ++b) {
      for (int64_t t = 0; t < RecordedCall::kTokens; ++t) {
        for (int64_t h = 0; h < heads; ++h) {
          const auto at =
              tensor.begin() + ((b * heads + h) * RecordedCall::kTokens + t) * RecordedCall::kWidth;
          result.insert(result.end(), at, at + RecordedCall::kWidth);
        }
      }
    }
    return result;
  };
  call.q = transposed(call.q);
  call.k = transposed(call.k);
  call.v = transposed(call.v);
  CHECK(culprit_of(call) == "layout");
}

TEST_CASE("Q and K recorded before RoPE") {
  CHECK(culprit_of(recorded_before([](RecordedCall& c) {
          apply_bands(c, {16, 24, 24}, 10000);
        })) == "rope");
  CHECK(culprit_of(recorded_before([](RecordedCall& c) {
          apply_bands(c, {8, 28, 28}, 256);
        })) == "rope");
  CHECK(culprit_of(recorded_before([](RecordedCall& c) {
          apply_bands(c, {24, 20, 20}, 10000);
        })) == "rope");
  CHECK(culprit_of(recorded_before(apply_halves)) == "rope");
}

TEST_CASE("Q and K recorded before the RoPE of any published model are told with the option") {
  const TokenGrid tokens = TokenGrid::video(RecordedCall::kTokens, RecordedCall::kGrid,
                                            RecordedCall::kText, TextPlace::start);
  for (const RopeVariant& variant : rope_variants()) {
    // Those of all heads together are the other tests'.
    if (variant.family == RopeFamily::ltx || variant.family == RopeFamily::ltx2) continue;
    if (variant.family == RopeFamily::ltx2_audio) continue;
    // Of minimax-h3 nobody knows where the text is.
    if (variant.family == RopeFamily::minimax_h3) continue;
    const auto rotation =
        HeadRotation::make(variant.family, tokens, {RecordedCall::kWidth, 1, 0, variant.numbers});
    REQUIRE(rotation);
    Recording recording;
    recording.add(recorded_before([&](RecordedCall& call) {
      call.change_rows([&](int64_t token, float* row) { rotation->apply(token, row); });
    }));
    const Suspect suspect = recording.culprit();
    INFO(suspect.explanation);
    CHECK(suspect.culprit == "rope");
    CHECK(suspect.explanation.find("; --rope " + std::string(variant.text) + ")") !=
          std::string::npos);
    CHECK(suspect.error < 1e-4);
  }
}

TEST_CASE("Q and K recorded before the norm") {
  CHECK(culprit_of(recorded_before(apply_rms)) == "norm");
  CHECK(culprit_of(recorded_before([](RecordedCall& c) {
          apply_rms(c);
          apply_bands(c, {16, 24, 24}, 10000);
        })) == "norm");
}

TEST_CASE("the other half of the batch") {
  RecordedCall call(8);
  call.attend();
  const auto half = static_cast<int64_t>(call.out.size() / 2);
  std::rotate(call.out.begin(), call.out.begin() + half, call.out.end());
  CHECK(culprit_of(call) == "batch");
}

TEST_CASE("outputs of another head") {
  RecordedCall call(9);
  call.attend();
  // The heads of each batch item, one further.
  const int64_t head = RecordedCall::kTokens * RecordedCall::kWidth;
  for (int64_t b = 0; b < RecordedCall::kBatch; ++b) {
    const auto first = call.out.begin() + b * RecordedCall::kHeads * head;
    std::rotate(first, first + head, first + RecordedCall::kHeads * head);
  }
  CHECK(culprit_of(call) == "heads");
}

TEST_CASE("video tokens in another order") {
  RecordedCall call(10);
  call.attend();
  // What stands at (t, y, x) is the token of (y, x, t) order at that place.
  const auto shuffled = [](int64_t token) {
    const int64_t video = token - RecordedCall::kText;
    if (video < 0) return token;
    const int64_t y = video / 8, x = video / 2 % 4, t = video % 2;
    return RecordedCall::kText + (t * 3 + y) * 4 + x;
  };
  call.q = reordered(call, call.q, shuffled);
  CHECK(culprit_of(call) == "token-order");
}

TEST_CASE("text at the other end") {
  RecordedCall call(11);
  call.attend();
  call.q = reordered(call, call.q, [](int64_t token) {
    return token < 24 ? token + RecordedCall::kText : token - 24;
  });
  CHECK(culprit_of(call) == "token-order");
}

TEST_CASE("keys of another layer") {
  RecordedCall first(12), second(13);
  first.attend();
  second.layer = 5;
  second.attend();
  std::swap(first.k, second.k);
  Recording recording;
  recording.add(first);
  recording.add(second);
  const Suspect suspect = recording.culprit();
  CHECK(suspect.culprit == "layer");
  CHECK(suspect.explanation.find("k of layer 5") != std::string::npos);
  const Capture capture = recording.open();
  const auto seen = quick_check(capture, means());
  REQUIRE(seen);
  CHECK(quick_check_warning(*seen).find("attnscope verify") != std::string::npos);
}

TEST_CASE("keys of another layer whose own were lost") {
  RecordedCall first(12), second(13);
  first.attend();
  second.layer = 5;
  second.attend();
  first.k = second.k;
  Recording recording;
  recording.add(first);
  recording.add(second);
  const Suspect suspect = recording.culprit();
  CHECK(suspect.culprit == "layer");
  CHECK(suspect.explanation.find("its k is that of step 0, layer 5") != std::string::npos);
}

TEST_CASE("what is no known mistake is not given a name") {
  RecordedCall call(14);
  call.attend();
  std::reverse(call.out.begin(), call.out.end());
  CHECK(culprit_of(call) == "unknown");
}

TEST_CASE("outputs that are no numbers, or all zero, differ") {
  RecordedCall call(15);
  call.attend();
  SECTION("NaN") { call.out[0] = std::numeric_limits<float>::quiet_NaN(); }
  SECTION("zeros") { std::fill(call.out.begin(), call.out.end(), 0.0f); }
  Recording recording;
  recording.add(call);
  CHECK(check_call(recording.open().calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::differs);
}

TEST_CASE("a q that holds no numbers is named") {
  RecordedCall call(17);
  call.attend();
  SECTION("infinity") { call.q[5] = std::numeric_limits<float>::infinity(); }
  SECTION("NaN") { call.q[5] = std::numeric_limits<float>::quiet_NaN(); }
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  CHECK(suspect.culprit == "values");
  CHECK(suspect.explanation.find("channel 5") != std::string::npos);
}

TEST_CASE("a capture without outputs has nothing to check against") {
  TemporaryFolder folder;
  CallFile().pair({1, 2, 6, 8}, {1, 2, 6, 8}).write(folder.path() / "c.safetensors");
  const Capture capture = Capture::open(folder.path() / "c.safetensors");
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 1);
  CHECK(check.verdict == CheckVerdict::nothing);
  CHECK(check.reason.find("out_rows") != std::string::npos);
  CHECK_FALSE(quick_check(capture, means()));
}

TEST_CASE("recorded LSEs are compared where there are no outputs") {
  // Two keys of zeros: ln 2 in every row.
  TemporaryFolder folder;
  const auto write = [&](float lse) {
    CallFile()
        .pair({1, 1, 2, 4}, {1, 1, 2, 4})
        .tensor("lse", "F32", {1, 1, 2}, raw(std::vector<float>{0.6931472f, lse}))
        .write(folder.path() / "c.safetensors");
    return check_call(Capture::open(folder.path() / "c.safetensors").calls().front(), {}, means(),
                      1);
  };
  CHECK(write(0.6931472f).verdict == CheckVerdict::agrees);
  CHECK(write(0.6931472f).against == "LSE");
  const CallCheck wrong = write(0.8f);
  CHECK(wrong.verdict == CheckVerdict::differs);
  CHECK(wrong.row == 1);
}

TEST_CASE("rows that biases mask are left out, whatever a kernel recorded of them") {
  // Queries 0 and 3 have no key; kernels return the mean of V for them.
  RecordedCall call(18);
  const auto masked = [](int64_t i) { return i == 0 || i == 3; };
  call.attend();
  std::vector<float> bias;
  for (int64_t i = 0; i < RecordedCall::kTokens; ++i) {
    bias.insert(bias.end(), RecordedCall::kTokens, masked(i) ? -1e9f : 0.0f);
    if (!masked(i)) continue;
    for (int64_t b = 0; b < RecordedCall::kBatch; ++b) {
      for (int64_t h = 0; h < RecordedCall::kHeads; ++h) {
        for (int64_t c = 0; c < RecordedCall::kWidth; ++c) {
          float sum = 0;
          for (int64_t j = 0; j < RecordedCall::kTokens; ++j) {
            sum += call.row(call.v, b, h / (RecordedCall::kHeads / RecordedCall::kKvHeads), j)[c];
          }
          call.row(call.out, b, h, i)[c] = sum / float{RecordedCall::kTokens};
        }
      }
    }
  }
  call.mask_fact = "tensor";
  const TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  call.file()
      .tensor("mask", "F32", {RecordedCall::kTokens, RecordedCall::kTokens}, raw(bias))
      .write(path);
  CHECK(check_call(Capture::open(path).calls().front(), {}, means(), 1).verdict ==
        CheckVerdict::agrees);
}

TEST_CASE("the LSE of a row that biases mask is as low as they are") {
  const TemporaryFolder folder;
  const auto verdict = [&](float lse) {
    CallFile()
        .pair({1, 1, 2, 4}, {1, 1, 2, 4})
        .tensor("mask", "F32", {2, 2}, raw(std::vector<float>{0, 0, -1e9f, -1e9f}))
        .tensor("lse", "F32", {1, 1, 2}, raw(std::vector<float>{0.6931472f, lse}))
        .write(folder.path() / "c.safetensors");
    return check_call(Capture::open(folder.path() / "c.safetensors").calls().front(), {}, means(),
                      1)
        .verdict;
  };
  CHECK(verdict(-1e9f) == CheckVerdict::agrees);
  CHECK(verdict(-std::numeric_limits<float>::infinity()) == CheckVerdict::agrees);
  CHECK(verdict(0.6931472f) == CheckVerdict::differs);
}

namespace {

/// The cpu, whose weights of the last key of every row are too large, or which refuses rows.
class WrongBackend : public ForwardingBackend {
 public:
  enum class Fault { weights, refusal };
  explicit WrongBackend(Fault fault)
      : ForwardingBackend(make_backend(BackendKind::cpu, {.threads = 1})), fault_(fault) {}

 protected:
  class Head : public ForwardingHead {
   public:
    Head(std::unique_ptr<BoundHead> inner, Fault fault)
        : ForwardingHead(std::move(inner)), fault_(fault) {}
    void row_norms(const QueryBlock& queries, std::span<RowNorm> norms,
                   std::span<std::byte> workspace) const override {
      if (fault_ == Fault::refusal) throw Error(ErrorCode::value, "row 3 is too much for it");
      ForwardingHead::row_norms(queries, norms, workspace);
    }
    void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
              Quantity quantity, const EmitTarget& target,
              std::span<std::byte> workspace) const override {
      ForwardingHead::emit(queries, norms, keys, quantity, target, workspace);
      auto* const weights = reinterpret_cast<float*>(target.blocks[0]);
      for (size_t row = 0; row < queries.index.size(); ++row) {
        weights[static_cast<int64_t>(row) * target.row_stride + keys.size() - 1] += 0.5f;
      }
    }

   private:
    const Fault fault_;
  };
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    return std::make_unique<Head>(std::move(head), fault_);
  }

 private:
  const Fault fault_;
};

}  // namespace

TEST_CASE("a check sees what the backend makes of a right capture") {
  RecordedCall call(19);
  call.attend();
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  MemoryBudget budget(int64_t{1} << 30);
  for (const auto fault : {WrongBackend::Fault::weights, WrongBackend::Fault::refusal}) {
    const WrongBackend backend(fault);
    const CallCheck check = check_call(capture.calls().front(), {}, {backend, budget}, 2);
    CHECK(check.verdict == CheckVerdict::differs);
    CHECK(check.heads_differing == 8);
    const Suspect suspect = find_culprit(check, capture);
    CHECK(suspect.culprit == "backend");
    CHECK(suspect.explanation.find("in plain loops instead of by cpu") != std::string::npos);
    CHECK(suspect.explanation.find("it agrees") != std::string::npos);
    const bool told = suspect.explanation.find("row 3 is too much") != std::string::npos;
    CHECK(told == (fault == WrongBackend::Fault::refusal));
    CHECK(quick_check(capture, {backend, budget}).has_value());
    CHECK(budget.used() == 0);
  }
}

TEST_CASE("what a backend refuses and nothing else explains is told by its own words") {
  RecordedCall call(20);
  call.attend();
  std::reverse(call.out.begin(), call.out.end());
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  MemoryBudget budget(int64_t{1} << 30);
  const WrongBackend backend(WrongBackend::Fault::refusal);
  const CallCheck check = check_call(capture.calls().front(), {}, {backend, budget}, 1);
  const Suspect suspect = find_culprit(check, capture);
  CHECK(suspect.culprit == "values");
  CHECK(suspect.explanation == "row 3 is too much for it");
}

TEST_CASE("a check keeps to its budget: fewer threads, or none of it") {
  RecordedCall call(21);
  call.attend();
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  const CallEntry& entry = capture.calls().front();
  const int64_t bytes = computed_rows_bytes(entry, means().backend);
  MemoryBudget one(bytes + bytes / 2);
  CHECK(check_call(entry, {}, {means().backend, one}, 4).verdict == CheckVerdict::agrees);
  CHECK(one.peak() == bytes);
  MemoryBudget less(bytes - 1);
  const auto code = thrown_text(ErrorCode::resource, [&] {
    check_call(entry, {}, {means().backend, less}, 1);
  });
  CHECK(code.find("the check of a head") != std::string::npos);
  CHECK_FALSE(quick_check(capture, {means().backend, less}));
}

TEST_CASE("recorded rows may stand in any order, and more than once") {
  const RecordedCall call(22);
  Recording recording;
  recording.add([&] {
    RecordedCall right = call;
    right.attend();
    return right;
  }());
  const Capture capture = recording.open();
  const CallEntry& entry = capture.calls().front();
  std::vector<int64_t> rows{27, 3, 3, 20};
  for (int64_t i = 0; i < RecordedCall::kTokens; ++i) rows.push_back(i);
  const AttendedRows got = computed_rows(entry, 1, 2, rows, means());
  const AttendedRows expected = attend_rows(stated_inputs(entry, 1, 2), rows);
  REQUIRE(got.lse.size() == expected.lse.size());
  REQUIRE(got.outputs.size() == expected.outputs.size());
  for (size_t i = 0; i < got.lse.size(); ++i) {
    CHECK(got.lse[i] == Approx(expected.lse[i]).epsilon(1e-6));
    CHECK(got.spread[i] == Approx(expected.spread[i]).epsilon(1e-5));
  }
  for (size_t i = 0; i < got.outputs.size(); ++i) {
    CHECK(got.outputs[i] == Approx(expected.outputs[i]).margin(1e-6));
  }
}

TEST_CASE("a stop ends a check") {
  RecordedCall call(16);
  call.attend();
  Recording recording;
  recording.add(call);
  std::stop_source stop;
  stop.request_stop();
  const Capture capture = recording.open();
  CHECK_THROWS_AS(check_call(capture.calls().front(), {}, means(), 2, stop.get_token()), Error);
}
