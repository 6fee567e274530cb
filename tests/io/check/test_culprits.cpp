// Which mistake a capture that differs from its outputs is told to have.
#include <cmath>
#include <limits>

#include "core/problem/rope.h"
#include "tests/io/check/recording.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

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

TEST_CASE("sinks that were not recorded are told as the rows tell them") {
  for (const double sink : {-1.0, 1.5, 2.3456789, 6.0}) {
    RecordedCall call(20);
    call.sinks = {sink, 0.5, sink + 1, 2};
    call.attend();
    Recording recording;
    recording.add(call);
    const Suspect suspect = recording.culprit();
    INFO(suspect.explanation);
    CHECK(suspect.culprit == "sinks");
    CHECK(suspect.error < 1e-4);
    // Of the head that differs most.
    const size_t at = suspect.explanation.find("--sinks ");
    REQUIRE(at != std::string::npos);
    const double told = std::stod(suspect.explanation.substr(at + 8));
    CHECK(std::any_of(call.sinks.begin(), call.sinks.end(),
                      [&](double each) { return std::fabs(each - told) < 2e-3; }));
  }
}

TEST_CASE("capped logits that were not recorded are told with their cap") {
  for (const double cap : {0.5, 2.0, 7.3}) {
    RecordedCall call(21);
    for (float& value : call.q) value *= 2;
    call.cap = cap;
    call.attend();
    Recording recording;
    recording.add(call);
    const Suspect suspect = recording.culprit();
    INFO(suspect.explanation);
    CHECK(suspect.culprit == "softcap");
    CHECK(suspect.error < 1e-3);
    const size_t at = suspect.explanation.find("softcap:");
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(suspect.explanation.substr(at + 8)) == Approx(cap).epsilon(0.01));
  }
}

TEST_CASE("sinks of rows of their own are told where outputs show them") {
  RecordedCall call(24);
  call.row_sinks = [](int64_t head, int64_t query) {
    return 0.5 * static_cast<double>((7 * query + head) % 5);
  };
  call.attend();
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  INFO(suspect.explanation);
  CHECK(suspect.culprit == "sinks");
  CHECK(suspect.explanation.find("for each row") != std::string::npos);
  CHECK(suspect.error < 1e-4);
}

TEST_CASE("linear biases are told with their slope") {
  for (const double slope : {0.5, 0.0625, 0.3}) {
    RecordedCall call(25);
    call.attend([&](int64_t i, int64_t j) { return -slope * std::fabs(i - j); });
    Recording recording;
    recording.add(call);
    const Suspect suspect = recording.culprit();
    INFO(suspect.explanation);
    REQUIRE(suspect.culprit == "alibi");
    const size_t at = suspect.explanation.find("head's is ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(suspect.explanation.substr(at + 10)) == Approx(slope).epsilon(0.01));
  }
}

TEST_CASE("scales that each head has of its own are told for all of them") {
  RecordedCall call(26);
  call.scales = {0.21, 0.09, 0.125, 0.17};
  call.attend();
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  INFO(suspect.explanation);
  REQUIRE(suspect.culprit == "scale");
  size_t at = suspect.explanation.find("--scale ");
  REQUIRE(at != std::string::npos);
  at += 8;
  for (const double scale : call.scales) {
    CHECK(std::stod(suspect.explanation.substr(at)) == Approx(scale).epsilon(0.01));
    at = suspect.explanation.find_first_of(",)", at) + 1;
  }
}

TEST_CASE("LSEs in another base are told as that, with and without a stated sink") {
  for (const bool base2 : {true, false}) {
    for (const bool sinks : {false, true}) {
      for (const bool counted : {true, false}) {
        if (!sinks && !counted) continue;
        RecordedCall call(27);
        if (sinks) call.sinks = {1, 2, 3, 4};
        call.attend();
        call.outputs = false;
        const TemporaryFolder folder;
        std::vector<float> lse = call.lse(counted);
        if (base2 || counted) {
          for (float& value : lse) value *= base2 ? 1.44269504f : 0.69314718f;
        }
        CallFile file = call.file();
        file.tensor("lse", "F32", {call.kBatch, call.kHeads, call.kTokens}, raw(lse));
        if (sinks) file.tensor("sinks", "F32", {4}, raw(std::vector<float>{1, 2, 3, 4}));
        file.write(folder.path() / "call.safetensors");
        const Capture capture = Capture::open(folder.path());
        const CallCheck check = check_call(capture.calls().front(), {}, means(), 8);
        REQUIRE(check.verdict == CheckVerdict::differs);
        const Suspect suspect = find_culprit(check, capture);
        INFO(suspect.explanation);
        const bool plain = !base2 && !counted;
        CHECK(suspect.culprit == (plain ? "sinks" : "lse"));
        CHECK((suspect.explanation.find("sink out") != std::string::npos) == !counted);
        if (!plain) {
          CHECK(suspect.explanation.find(base2 ? "base 2" : "ln 2") != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("sinks that are stated and not the model's are told") {
  RecordedCall call(28);
  call.attend();
  const TemporaryFolder folder;
  call.file()
      .tensor("sinks", "F32", {4}, raw(std::vector<float>{1, 2, 3, 4}))
      .write(folder.path() / "call.safetensors");
  const Capture capture = Capture::open(folder.path());
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 8);
  REQUIRE(check.verdict == CheckVerdict::differs);
  CHECK(find_culprit(check, capture).explanation.find("--sinks none") != std::string::npos);
}

TEST_CASE("a sink is found beside a cap that is stated") {
  RecordedCall call(29);
  call.cap = 3;
  call.sinks = {2, 2, 2, 2};
  call.attend();
  const TemporaryFolder folder;
  call.file().fact("softcap", "3").write(folder.path() / "call.safetensors");
  const Capture capture = Capture::open(folder.path());
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 8);
  REQUIRE(check.verdict == CheckVerdict::differs);
  const Suspect suspect = find_culprit(check, capture);
  INFO(suspect.explanation);
  CHECK(suspect.culprit == "sinks");
  CHECK(suspect.explanation.find("--sinks 2") != std::string::npos);
}

TEST_CASE("outputs that are all multiplied by a number have no sinks") {
  RecordedCall call(30);
  call.attend();
  for (float& value : call.out) value *= 0.5f;
  Recording recording;
  recording.add(call);
  const Suspect suspect = recording.culprit();
  INFO(suspect.explanation);
  CHECK(suspect.culprit == "outputs");
  CHECK(suspect.explanation.find("outputs 0.5 times") != std::string::npos);
}

TEST_CASE("stated biases by place stay while masks are tried, and are left out by themselves") {
  const auto bias = [](int64_t i, int64_t j) { return -0.25 * std::fabs(i - j); };
  constexpr int64_t kTokens = RecordedCall::kTokens;
  std::vector<float> falling;
  for (int64_t i = 1 - kTokens; i < kTokens; ++i) {
    falling.push_back(static_cast<float>(bias(i, 0)));
  }
  for (const int round : {0, 1, 2, 3}) {
    const bool biased = round % 2 == 0, slopes = round < 2;
    RecordedCall call(32);
    if (biased) {
      call.attend([&](int64_t i, int64_t j) { return j > i ? -1e300 : bias(i, j); });
    } else {
      call.attend();
    }
    const TemporaryFolder folder;
    CallFile file = call.file();
    if (slopes) file.tensor("alibi_slopes", "F32", {4}, raw(std::vector<float>(4, 0.25f)));
    if (!slopes) file.tensor("relative_bias", "F32", {1, 2 * kTokens - 1}, raw(falling));
    file.write(folder / "a.safetensors");
    const Capture capture = Capture::open(folder / "a.safetensors");
    const CallCheck check = check_call(capture.calls().front(), {}, means(), 8);
    REQUIRE(check.verdict == CheckVerdict::differs);
    const std::string told = find_culprit(check, capture).explanation;
    INFO(told);
    const char* const without = slopes ? "--alibi none" : "--relative-bias none";
    CHECK(told.find(biased ? "--mask causal" : without) != std::string::npos);
  }
}

TEST_CASE("what is barely off is blamed on no sink and no cap") {
  RecordedCall call(23);
  call.attend();
  for (size_t i = 0; i < call.out.size(); ++i) call.out[i] *= i % 2 == 0 ? 1.005f : 0.995f;
  Recording recording;
  recording.add(call);
  const Capture capture = recording.open();
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 2);
  REQUIRE(check.verdict == CheckVerdict::differs);
  const std::string culprit = find_culprit(check, capture).culprit;
  CHECK(culprit != "sinks");
  CHECK(culprit != "softcap");
  CHECK(culprit != "alibi");
}

TEST_CASE("what is recorded of caps and sinks agrees") {
  RecordedCall call(22);
  call.cap = 3;
  call.sinks = {1, -1, 2, 0};
  call.attend();
  const TemporaryFolder folder;
  call.file()
      .fact("softcap", "3")
      .tensor("sinks", "F32", {4}, raw(std::vector<float>{1, -1, 2, 0}))
      .write(folder.path() / "call.safetensors");
  const Capture capture = Capture::open(folder.path());
  const CallCheck check = check_call(capture.calls().front(), {}, means(), 8);
  CHECK(check.verdict == CheckVerdict::agrees);
  CHECK(check.error < 1e-4);
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
  // The place (t, y, x) gets the token that stands there in the order (y, x, t).
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
  CHECK(suspect.explanation.find("its k is that of layer 5") != std::string::npos);
}

TEST_CASE("what is no known mistake is not given a name") {
  RecordedCall call(14);
  call.attend();
  std::reverse(call.out.begin(), call.out.end());
  CHECK(culprit_of(call) == "unknown");
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
