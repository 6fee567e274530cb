// The words of a check where it is the backend that is wrong.
#include "tests/io/check/recording.h"
#include "tests/support/backend/forwarding_backend.h"

using namespace attnscope;
using namespace attnscope::test;

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
