// Packing of K by several threads.
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "tests/support/catch.h"

namespace attnscope {
namespace {

constexpr int64_t kTokens = 40000;
constexpr int64_t kWidth = 63;

std::shared_ptr<const TensorSource> random_source() {
  std::mt19937 random(9);
  std::vector<std::byte> bytes(kTokens * kWidth * 4);
  for (int64_t i = 0; i < kTokens * kWidth; ++i) {
    const float x = std::normal_distribution<float>()(random);
    std::memcpy(bytes.data() + 4 * i, &x, 4);
  }
  return std::make_shared<MemoryTensor>("k", DType::f32, std::vector<int64_t>{kTokens, kWidth},
                                        std::move(bytes));
}

/// Fails wherever one of the tokens in `bad` is read.
class FailingSource : public TensorSource {
 public:
  FailingSource(std::shared_ptr<const TensorSource> source, std::vector<int64_t> bad)
      : source_(std::move(source)), bad_(std::move(bad)) {}

  const std::string& name() const override { return source_->name(); }
  DType dtype() const override { return source_->dtype(); }
  std::span<const int64_t> shape() const override { return source_->shape(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    for (const int64_t token : bad_) {
      if (token >= begin[0] && token < begin[0] + count[0]) {
        throw Error(ErrorCode::value, "token " + std::to_string(token));
      }
    }
    source_->read(begin, count, destination);
  }

 private:
  std::shared_ptr<const TensorSource> source_;
  std::vector<int64_t> bad_;
};

/// Says that it unpacks, and watches how it is read.
class OrderedSource : public FailingSource {
 public:
  explicit OrderedSource(std::shared_ptr<const TensorSource> source)
      : FailingSource(std::move(source), {}) {}

  bool prefers_order() const override { return true; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    if (begin[0] != rows) ++backwards;
    rows = begin[0] + count[0];
    FailingSource::read(begin, count, destination);
  }

  mutable int64_t rows = 0;
  mutable int backwards = 0;
};

std::vector<float> packed(const PackedFormat& format, const HeadTensor& k, int threads,
                          float& largest) {
  std::vector<float> panels(static_cast<size_t>(packed_key_elements(format, k.tokens())), -1.0f);
  largest = pack_keys(format, k, 0, 0, threads, panels.data()).largest_key;
  return panels;
}

}  // namespace

TEST_CASE("keys are packed alike by one thread and by several") {
  const auto source = random_source();
  const HeadTensor k(source, Layout::sd);
  for (const PackedProducts products : {PackedProducts::floats, PackedProducts::tiles}) {
    const PackedFormat format{DType::f32, kWidth, ScoreFunction::softmax, products};
    CHECK(pack_keys_transient_bytes(format, k, 4) > pack_keys_transient_bytes(format, k, 1));
    float one_largest = 0;
    float four_largest = 0;
    const std::vector<float> one = packed(format, k, 1, one_largest);
    const std::vector<float> four = packed(format, k, 4, four_largest);
    CHECK(std::memcmp(one.data(), four.data(), one.size() * sizeof(float)) == 0);
    CHECK(one_largest == four_largest);
    CHECK((one_largest > 8) == (products == PackedProducts::tiles));
  }
  // Every channel of every key where the kernels look for it.
  const PackedFormat format{DType::f32, kWidth, ScoreFunction::softmax, PackedProducts::floats};
  float unused = 0;
  const std::vector<float> panels = packed(format, k, 4, unused);
  std::vector<float> row(kWidth);
  int wrong = 0;
  for (int64_t key = 0; key < kTokens; key += 7) {
    k.read_rows(0, 0, {key, key + 1}, reinterpret_cast<std::byte*>(row.data()));
    for (int64_t c = 0; c < kWidth; ++c) {
      const int64_t at = (key / kPanelKeys * kWidth + c) * kPanelKeys + key % kPanelKeys;
      wrong += panels[static_cast<size_t>(at)] == row[static_cast<size_t>(c)] ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("keys that unpack in order are read in order, once") {
  const auto source = std::make_shared<OrderedSource>(random_source());
  const HeadTensor k(source, Layout::sd);
  const PackedFormat format{DType::f32, kWidth, ScoreFunction::softmax, PackedProducts::floats};
  CHECK(packing_threads(format, k, 4) == 1);
  CHECK(packing_threads(format, HeadTensor(random_source(), Layout::sd), 4) == 4);
  float unused = 0;
  packed(format, k, 4, unused);
  CHECK(source->backwards == 0);
  CHECK(source->rows == kTokens);
}

TEST_CASE("of several errors in K the earliest is reported, by any number of threads") {
  const auto source = random_source();
  const PackedFormat format{DType::f32, kWidth, ScoreFunction::softmax, PackedProducts::floats};
  std::vector<float> panels(static_cast<size_t>(packed_key_elements(format, kTokens)));
  const auto failing = std::make_shared<FailingSource>(source, std::vector<int64_t>{39000, 9000});
  const HeadTensor k(failing, Layout::sd);
  for (const int threads : {1, 2, 4}) {
    for (int round = 0; round < 5; ++round) {
      try {
        pack_keys(format, k, 0, 0, threads, panels.data());
        FAIL("packed");
      } catch (const Error& error) {
        CHECK(std::string(error.what()) == "token 9000");
      }
    }
  }
}

}  // namespace attnscope
