// The small maps that a device is held against: the rows that they have, and that a wrong number in
// any of them is found.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/reduce/panel_reduction.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/host/device_backend.h"
#include "kernels/cuda/host/tensors/held_rows.h"
#include "kernels/cuda/host/trust/known_answers.h"
#include "kernels/cuda/host/trust/known_maps.h"
#include "tests/cuda/emulation/control.h"
#include "tests/support/backend/attention_case.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

namespace emulation = cuda::emulation;

/// The error that a backend makes: in the largest entry of a first row, or in a panel.
struct Fault {
  const char* found_as;
  KnownWork work = KnownWork::entries;
  Quantity quantity = Quantity::weights;
  Encoding encoding = Encoding::f32;
  unsigned steps = 0;  ///< added to the entry as a whole number; 0: it is right
  std::function<void(PanelReduction&)> panel = {};
};

class FaultyHead : public ForwardingHead {
 public:
  FaultyHead(std::unique_ptr<BoundHead> inner, const Fault& fault)
      : ForwardingHead(std::move(inner)), fault_(fault) {}
  void emit(const QueryBlock& queries, std::span<const RowNorm> norms, IndexRange keys,
            Quantity quantity, const EmitTarget& target,
            std::span<std::byte> workspace) const override {
    ForwardingHead::emit(queries, norms, keys, quantity, target, workspace);
    const bool meant = quantity == fault_.quantity && target.encoding == fault_.encoding;
    if (fault_.steps == 0 || !meant) return;
    const auto bytes = static_cast<size_t>(encoding_bytes(target.encoding));
    const auto at = [&](int64_t key) {
      return target.blocks[0] + static_cast<size_t>(key) * bytes;
    };
    const auto bits_of = [&](int64_t key) {
      int32_t bits = 0;
      std::memcpy(&bits, at(key), bytes);
      // Halves that are below 0 shall be so.
      return bytes == 2 ? int32_t{static_cast<int16_t>(bits)} : bits;
    };
    int64_t largest = 0;
    for (int64_t key = 1; key < keys.size(); ++key) {
      if (bits_of(key) > bits_of(largest)) largest = key;
    }
    const auto wrong = static_cast<uint32_t>(bits_of(largest)) + fault_.steps;
    std::memcpy(at(largest), &wrong, bytes);
  }
  void reduce(const QueryBlock& queries, int64_t first, PanelReduction& panel,
              std::span<std::byte> workspace) const override {
    ForwardingHead::reduce(queries, first, panel, workspace);
    if (fault_.panel) fault_.panel(panel);
  }

 private:
  const Fault& fault_;
};

class FaultyBackend : public ForwardingBackend {
 public:
  explicit FaultyBackend(const Fault& fault)
      : ForwardingBackend(make_cpu_backend({.threads = 1})), fault_(fault) {}

 protected:
  std::unique_ptr<BoundHead> wrap(std::unique_ptr<BoundHead> head) const override {
    return std::make_unique<FaultyHead>(std::move(head), fault_);
  }

 private:
  const Fault& fault_;
};

std::string complaint_of(const Fault& fault) {
  try {
    const auto cpu = make_cpu_backend({.threads = 1});
    check_known_answers(FaultyBackend(fault), *cpu, DType::bf16, fault.work);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unavailable);
    return error.what();
  }
  return "believed";
}

/// |row|² of a tensor's only head.
std::vector<double> lengths_of(const HeadTensor& tensor) {
  const auto width = static_cast<size_t>(tensor.width());
  std::vector<std::byte> rows(static_cast<size_t>(tensor.tokens() * tensor.row_bytes()));
  tensor.read_rows(0, 0, {0, tensor.tokens()}, rows.data());
  std::vector<float> values(static_cast<size_t>(tensor.tokens()) * width);
  to_floats(tensor.dtype(), rows.data(), static_cast<int64_t>(values.size()), values.data());
  std::vector<double> lengths(static_cast<size_t>(tensor.tokens()));
  for (size_t i = 0; i < values.size(); ++i) {
    lengths[i / width] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return lengths;
}

/// The rows that are held, which come before all others.
IndexRange held_rows(const AttentionProblem& problem) {
  const std::vector<double> keys = lengths_of(problem.k()), queries = lengths_of(problem.q());
  const auto longest = static_cast<float>(*std::max_element(keys.begin(), keys.end()));
  const auto most = static_cast<double>(cuda::most_held_length(problem, 0, longest));
  const auto end =
      std::find_if(queries.begin(), queries.end(), [&](double length) { return length > most; });
  CHECK(std::all_of(end, queries.end(), [&](double length) { return length > most; }));
  return {0, end - queries.begin()};
}

}  // namespace

TEST_CASE("the known maps have rows that are held and rows that are not") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    CHECK(held_rows(cuda::narrow_map(dtype)).end == 100);
    CHECK(held_rows(cuda::loud_map(dtype)).end == 0);
    CHECK(held_rows(cuda::ragged_map(dtype)).end == 128);
    CHECK(held_rows(cuda::video_map(dtype)).end == 128);
    CHECK(held_rows(cuda::biased_map(dtype, ScoreFunction::softmax)).end == 0);
  }
}

TEST_CASE("a number that is wrong in one form of a map alone is found") {
  const auto cpu = make_cpu_backend({.threads = 1});
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const KnownWork work :
         {KnownWork::entries, KnownWork::reductions, KnownWork::texels, KnownWork::outputs}) {
      CHECK_NOTHROW(check_known_answers(*cpu, *cpu, dtype, work));
    }
  }
  const auto row = [](PanelReduction& panel, auto spoil) { spoil(panel.row(1)); };
  const Fault faults[] = {
      {.found_as = "weight (0, ", .steps = 1 << 13},
      {.found_as = "half-float weight (0, ", .encoding = Encoding::f16_scaled, .steps = 2},
      {.found_as = "coded weight (0, ", .encoding = Encoding::u8_log2, .steps = 2},
      {.found_as = "logit (0, ", .quantity = Quantity::logits, .steps = 1 << 14},
      {.found_as = "half-float logit (0, ",
       .quantity = Quantity::logits,
       .encoding = Encoding::f16,
       .steps = 2},
      {.found_as = "mass around its own place 5 is ",
       .work = KnownWork::reductions,
       .panel =
           [&](PanelReduction& p) { row(p, [](RowReduction& r) { r.places.local *= 1.001; }); }},
      {.found_as = "the largest weight of row 1 is ",
       .work = KnownWork::reductions,
       .panel = [&](PanelReduction& p) { row(p, [](RowReduction& r) { r.max_weight *= 0.999; }); }},
      {.found_as = "the weight of the largest key of row 1 is ",
       .work = KnownWork::reductions,
       .panel = [&](PanelReduction& p) { row(p, [](RowReduction& r) { r.max_key ^= 1; }); }},
      {.found_as = "the entropy of row 1 is ",
       .work = KnownWork::reductions,
       .panel = [&](PanelReduction& p) { row(p, [](RowReduction& r) { r.entropy *= 1.001; }); }},
  };
  for (const Fault& fault : faults) {
    const std::string complaint = complaint_of(fault);
    INFO(fault.found_as);
    CHECK(complaint.find(std::string("wrongly: ") + fault.found_as) != std::string::npos);
  }
}

TEST_CASE("every kernel of row sums has computed a known map before it is believed") {
  emulation::reset();
  emulation::set_devices({emulation::Device::of(9)});
  CudaModuleOptions options;
  options.fallback = make_cpu_backend({.threads = 1});
  options.notice = [](const std::string& line) { FAIL(line); };
  const auto backend = make_device_backend(options);
  // With and without moments, with and without the polynomial.
  const auto launches = [](bool moments, bool polynomial) {
    const auto name = [](bool value) { return value ? "true" : "false"; };
    return emulation::launches_of(
        std::string_view(std::string("WgmmaProduct<attnscope::cuda::HalfTag>, ") + name(moments) +
                         ", " + name(polynomial)));
  };
  for (const bool polynomial : {false, true}) {
    CHECK(launches(false, polynomial) > 0);
    CHECK(launches(true, polynomial) == 0);
  }
  check_known_answers(*backend, *options.fallback, DType::f16, KnownWork::reductions);
  for (const bool polynomial : {false, true}) CHECK(launches(true, polynomial) > 0);
  emulation::reset();
}

}  // namespace attnscope::test
