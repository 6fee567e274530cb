#include "core/mask/mask_tensor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"

namespace attnscope {
namespace {

/// Tensors are read in pieces of at most this many elements.
constexpr int64_t kPieceElements = 32768;

using Index4 = std::array<int64_t, 4>;  ///< batch, head, query, key

/// A tensor as it broadcasts to [B, H, Nq, Nk], its elements as biases.
class BiasSource {
 public:
  explicit BiasSource(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {
    const auto shape = source_->shape();
    const DType dtype = source_->dtype();
    if (shape.size() > 4) {
      throw usage_error(source_->name() + ": a mask has at most 4 dimensions (got " +
                        std::to_string(shape.size()) + ")");
    }
    if (dtype != DType::boolean && !is_floating(dtype)) {
      throw usage_error(source_->name() + ": a mask is bool or floating (got " +
                        std::string(dtype_name(dtype)) + ")");
    }
    std::copy(shape.begin(), shape.end(), extent_.end() - static_cast<int64_t>(shape.size()));
    for (int64_t extent : extent_) {
      if (extent < 1) throw usage_error(source_->name() + ": a mask without elements");
    }
  }

  const std::string& name() const { return source_->name(); }
  bool is_bool() const { return source_->dtype() == DType::boolean; }
  const Index4& extent() const { return extent_; }

  /// Reads the box as biases, −inf where they mask; begin and count lie within extent(), and the
  /// box holds at most kPieceElements. Throws Error(value) at NaN and +inf.
  void read(const Index4& begin, const Index4& count, std::vector<float>& out) const {
    const int64_t total = count[0] * count[1] * count[2] * count[3];
    assert(total <= kPieceElements);
    std::vector<std::byte> bytes(static_cast<size_t>(total * dtype_bytes(source_->dtype())));
    const size_t rank = source_->shape().size();
    source_->read({begin.end() - rank, rank}, {count.end() - rank, rank}, bytes.data());
    out.resize(static_cast<size_t>(total));
    if (is_bool()) {
      std::transform(bytes.begin(), bytes.end(), out.begin(),
                     [](std::byte b) { return b != std::byte{0} ? 0.0f : kMasked; });
      return;
    }
    to_floats(source_->dtype(), bytes.data(), total, out.data());
    // NaN compares false too.
    const auto bad = std::find_if(out.begin(), out.end(), [](float value) {
      return !(value <= std::numeric_limits<float>::max());
    });
    if (bad != out.end()) refuse(begin, count, bad - out.begin(), *bad);
    std::transform(out.begin(), out.end(), out.begin(), effective_bias);
  }

 private:
  [[noreturn]] void refuse(const Index4& begin, const Index4& count, int64_t position,
                           float value) const {
    std::string place;
    for (size_t axis = 4; axis-- > 4 - source_->shape().size();) {
      const int64_t index = begin[axis] + position % count[axis];
      position /= count[axis];
      place = std::to_string(index) + (place.empty() ? "" : ", ") + place;
    }
    throw Error(ErrorCode::value, name() + ": the bias at [" + place + "] is " +
                                      (std::isnan(value) ? "NaN" : "+inf") +
                                      " (expected a finite number or -inf)");
  }

  std::shared_ptr<const TensorSource> source_;
  Index4 extent_{1, 1, 1, 1};
};

void check_broadcast(const BiasSource& source, const Index4& problem) {
  const Index4& extent = source.extent();
  const auto join = [](const Index4& shape) {
    std::string text;
    for (int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
  };
  for (size_t axis = 0; axis < 4; ++axis) {
    if (extent[axis] == 1 || extent[axis] == problem[axis]) continue;
    throw usage_error(source.name() + ": a mask of shape " + join(extent) +
                      " does not broadcast to " + join(problem));
  }
}

/// The classes of the blocks of a bias, found a band of rows at a time and remembered: a mask that
/// is sparse in blocks then costs no work where it masks everything. Two bits a block, and a
/// pointer a band. Thread-safe, and without a lock: kernels ask for every few rows.
class BlockClasses {
 public:
  explicit BlockClasses(const BiasSource& source)
      : source_(source),
        bands_(ceil_div(source.extent()[2], kBlock)),
        blocks_(ceil_div(source.extent()[3], kBlock)),
        known_(static_cast<size_t>(source.extent()[0] * source.extent()[1] * bands_)) {}
  BlockClasses(const BlockClasses&) = delete;
  BlockClasses& operator=(const BlockClasses&) = delete;
  ~BlockClasses() {
    for (const std::atomic<const Band*>& band : known_) delete band.load();
  }

  TileClass classify(int64_t batch, int64_t head, IndexRange queries, IndexRange keys) const {
    return find_class(batch, head, queries, keys,
                      [&](int64_t plane, int64_t number) { return &band(plane, number); });
  }

  /// The class as far as it is known without reading anything; mixed where it is not.
  TileClass known_class(int64_t batch, int64_t head, IndexRange queries, IndexRange keys) const {
    return find_class(batch, head, queries, keys, [&](int64_t plane, int64_t number) {
      return place_of(plane, number).load(std::memory_order_acquire);
    });
  }

  /// Reads everything once.
  bool has_finite_bias() const {
    const int64_t planes = source_.extent()[0] * source_.extent()[1];
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t b = 0; b < bands_; ++b) {
        if (band(plane, b).finite) return true;
      }
    }
    return false;
  }

  static constexpr int64_t kBlock = 128;

 private:
  static constexpr int64_t kMostBands = 64;

  /// `find_band` yields a plane's band, or null where that is not known.
  template <typename FindBand>
  TileClass find_class(int64_t batch, int64_t head, IndexRange queries, IndexRange keys,
                       const FindBand& find_band) const {
    const Index4& extent = source_.extent();
    const IndexRange bands = extent[2] == 1 ? IndexRange{0, 1} : block_range(queries);
    const IndexRange blocks = extent[3] == 1 ? IndexRange{0, 1} : block_range(keys);
    // A few rows far apart: looking at all between them would cost more than it saves.
    if (bands.size() > kMostBands) return TileClass::mixed;
    const int64_t plane = (extent[0] == 1 ? 0 : batch) * extent[1] + (extent[1] == 1 ? 0 : head);
    std::optional<TileClass> all;
    for (int64_t b = bands.begin; b < bands.end; ++b) {
      const Band* const known = find_band(plane, b);
      if (known == nullptr) return TileClass::mixed;
      for (int64_t block = blocks.begin; block < blocks.end; ++block) {
        const TileClass one = known->at(block);
        if (one == TileClass::mixed || (all && *all != one)) return TileClass::mixed;
        all = one;
      }
    }
    return all.value_or(TileClass::mixed);
  }

  /// The blocks of kBlock rows.
  struct Band {
    std::vector<uint8_t> classes;  ///< two bits a block
    bool finite = false;           ///< holds biases other than 0 and −inf
    TileClass at(int64_t block) const {
      return static_cast<TileClass>(classes[static_cast<size_t>(block / 4)] >> (block % 4 * 2) & 3);
    }
    void set(int64_t block, TileClass value) {
      classes[static_cast<size_t>(block / 4)] |=
          static_cast<uint8_t>(static_cast<unsigned>(value) << (block % 4 * 2));
    }
  };

  static IndexRange block_range(IndexRange range) {
    return {range.begin / kBlock, ceil_div(range.end, kBlock)};
  }

  std::atomic<const Band*>& place_of(int64_t plane, int64_t number) const {
    return known_[static_cast<size_t>(plane * bands_ + number)];
  }

  const Band& band(int64_t plane, int64_t number) const {
    std::atomic<const Band*>& place = place_of(plane, number);
    if (const Band* found = place.load(std::memory_order_acquire)) return *found;
    // Whoever else reads the same meanwhile finds the same, and the first one's stays.
    auto fresh = std::make_unique<const Band>(read_band(plane, number));
    const Band* first = nullptr;
    if (!place.compare_exchange_strong(first, fresh.get(), std::memory_order_acq_rel)) {
      return *first;
    }
    return *fresh.release();
  }

  static constexpr uint8_t kZero = 1, kInfinite = 2, kFinite = 4;

  /// Which kinds of biases there are, as bits.
  static uint8_t kinds_of(std::span<const float> biases) {
    // Numbers of them, so that the loop becomes vector instructions.
    int zeros = 0;
    int infinite = 0;
    for (const float bias : biases) {
      zeros += bias == 0 ? 1 : 0;
      infinite += bias == kMasked ? 1 : 0;
    }
    const bool others = zeros + infinite < static_cast<int>(biases.size());
    return static_cast<uint8_t>((zeros > 0 ? kZero : 0) | (infinite > 0 ? kInfinite : 0) |
                                (others ? kFinite : 0));
  }

  Band read_band(int64_t plane, int64_t number) const {
    static_assert(kPieceElements % kBlock == 0);
    const Index4& extent = source_.extent();
    std::vector<uint8_t> seen(static_cast<size_t>(blocks_), 0);
    std::vector<float> piece;
    const int64_t end = std::min((number + 1) * kBlock, extent[2]);
    for (int64_t row = number * kBlock; row < end; ++row) {
      for (int64_t key = 0; key < extent[3]; key += kPieceElements) {
        const int64_t count = std::min(kPieceElements, extent[3] - key);
        source_.read({plane / extent[1], plane % extent[1], row, key}, {1, 1, 1, count}, piece);
        for (int64_t i = 0; i < count; i += kBlock) {
          const std::span<const float> biases(piece.data() + i, std::min(kBlock, count - i));
          seen[static_cast<size_t>((key + i) / kBlock)] |= kinds_of(biases);
        }
      }
    }
    Band band;
    band.classes.resize(static_cast<size_t>(ceil_div(blocks_, 4)));
    for (int64_t block = 0; block < blocks_; ++block) {
      const uint8_t what = seen[static_cast<size_t>(block)];
      band.finite |= (what & kFinite) != 0;
      band.set(block, what == kZero       ? TileClass::full
                      : what == kInfinite ? TileClass::empty
                                          : TileClass::mixed);
    }
    return band;
  }

  const BiasSource& source_;
  const int64_t bands_;
  const int64_t blocks_;
  mutable std::vector<std::atomic<const Band*>> known_;  ///< [plane, band], null until it is read
};

/// A bias that may differ from query to query: read where it is needed.
class DenseBiasTerm : public MaskTerm {
 public:
  explicit DenseBiasTerm(BiasSource source) : source_(std::move(source)), classes_(source_) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    return classes_.classify(batch, head, queries, keys);
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    if (queries.empty()) return;
    // Uniform blocks need not be read again; the caller has asked for their class before.
    const IndexRange rows{queries.front(), queries.back() + 1};
    for (int64_t key = keys.begin; key < keys.end;) {
      const TileClass kind = classes_.known_class(batch, head, rows, block_at(key, keys));
      IndexRange part = block_at(key, keys);
      while (part.end < keys.end &&
             classes_.known_class(batch, head, rows, block_at(part.end, keys)) == kind) {
        part.end = block_at(part.end, keys).end;
      }
      float* to = out + (key - keys.begin);
      if (kind == TileClass::mixed) read_bias(batch, head, queries, part, to, row_stride);
      if (kind == TileClass::empty) mask_out(queries.size(), part.size(), to, row_stride);
      key = part.end;
    }
  }

  bool has_finite_bias() const override { return !source_.is_bool() && classes_.has_finite_bias(); }
  std::string describe() const override { return "tensor"; }
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    check_broadcast(source_, {batch, heads, queries, keys});
  }
  const BiasSource& source() const { return source_; }

 private:
  /// The part of `keys` that lies in the block of `key`.
  static IndexRange block_at(int64_t key, IndexRange keys) {
    const int64_t end = (key / BlockClasses::kBlock + 1) * BlockClasses::kBlock;
    return {key, std::min(end, keys.end)};
  }

  static void mask_out(size_t rows, int64_t keys, float* out, int64_t row_stride) {
    for (size_t row = 0; row < rows; ++row, out += row_stride) std::fill_n(out, keys, kMasked);
  }

  /// Adds what the tensor holds there.
  void read_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                 float* out, int64_t row_stride) const {
    const Index4& extent = source_.extent();
    const bool one_key = extent[3] == 1;
    const bool one_query = extent[2] == 1;
    std::vector<float> piece;
    for (int64_t key = keys.begin; key < keys.end;) {
      const int64_t wide = std::min(keys.end - key, kPieceElements);
      const int64_t width = one_key ? 1 : wide;
      const int64_t most_rows = std::max<int64_t>(1, kPieceElements / width);
      for (size_t row = 0; row < queries.size();) {
        const int64_t rows = one_query ? static_cast<int64_t>(queries.size())
                                       : run_length(queries.subspan(row), most_rows);
        source_.read({extent[0] == 1 ? 0 : batch, extent[1] == 1 ? 0 : head,
                      one_query ? 0 : queries[row], one_key ? 0 : key},
                     {1, 1, one_query ? 1 : rows, width}, piece);
        for (int64_t r = 0; r < rows; ++r) {
          float* to = out + (static_cast<int64_t>(row) + r) * row_stride + (key - keys.begin);
          const float* from = piece.data() + (one_query ? 0 : r * width);
          for (int64_t c = 0; c < wide; ++c) to[c] += from[one_key ? 0 : c];
        }
        row += static_cast<size_t>(rows);
      }
      key += wide;
    }
  }

  /// How many of the first queries are consecutive, at most `limit`.
  static int64_t run_length(std::span<const int64_t> queries, int64_t limit) {
    int64_t length = 1;
    while (length < limit && length < static_cast<int64_t>(queries.size()) &&
           queries[static_cast<size_t>(length)] == queries[0] + length) {
      ++length;
    }
    return length;
  }
  BiasSource source_;
  BlockClasses classes_;  ///< borrows source_
};

/// A bias that is the same for every query: a padding mask has one or two runs of equal biases,
/// which are read at the first use and kept. One with many runs is read where it is needed.
class KeyBiasTerm : public MaskTerm {
 public:
  explicit KeyBiasTerm(BiasSource source) : dense_(std::move(source)) {}

  TileClass classify(int64_t batch, int64_t head, IndexRange queries,
                     IndexRange keys) const override {
    const Runs& runs = known();
    if (runs.too_many) return dense_.classify(batch, head, queries, keys);
    std::optional<TileClass> all;
    for_each_run(runs, batch, head, keys, [&](IndexRange, float bias) {
      const TileClass one = bias == 0         ? TileClass::full
                            : bias == kMasked ? TileClass::empty
                                              : TileClass::mixed;
      all = !all || *all == one ? one : TileClass::mixed;
    });
    return all.value_or(TileClass::mixed);
  }

  void add_bias(int64_t batch, int64_t head, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const Runs& runs = known();
    if (runs.too_many) return dense_.add_bias(batch, head, queries, keys, out, row_stride);
    for (size_t row = 0; row < queries.size(); ++row, out += row_stride) {
      for_each_run(runs, batch, head, keys, [&](IndexRange range, float bias) {
        if (bias == 0) return;
        for (int64_t key = range.begin; key < range.end; ++key) out[key - keys.begin] += bias;
      });
    }
  }

  bool has_finite_bias() const override { return known().finite; }
  std::string describe() const override { return "tensor"; }
  void check_shape(int64_t batch, int64_t heads, int64_t queries, int64_t keys) const override {
    dense_.check_shape(batch, heads, queries, keys);
  }

 private:
  /// So many runs are kept at most, over all batch items and heads.
  static constexpr size_t kMostRuns = 4096;

  /// Equal biases from `begin` to the next run's.
  struct Run {
    int64_t begin = 0;
    float bias = 0;
  };
  struct Runs {
    std::vector<std::vector<Run>> rows;  ///< [batch or 1, head or 1]
    bool too_many = false;
    bool finite = false;
  };

  /// Reads the tensor at the first call. Throws what reading it throws, then and later.
  const Runs& known() const {
    std::call_once(once_, [this] { runs_ = read_runs(); });
    return runs_;
  }

  Runs read_runs() const {
    const BiasSource& source = dense_.source();
    const Index4& extent = source.extent();
    Runs runs;
    size_t count = 0;
    std::vector<float> piece;
    for (int64_t row = 0; row < extent[0] * extent[1]; ++row) {
      std::vector<Run> list;
      for (int64_t key = 0; key < extent[3]; key += kPieceElements) {
        const int64_t wide = std::min(kPieceElements, extent[3] - key);
        source.read({row / extent[1], row % extent[1], 0, key}, {1, 1, 1, wide}, piece);
        for (int64_t i = 0; i < wide; ++i) {
          const float bias = piece[static_cast<size_t>(i)];
          runs.finite |= bias != kMasked && bias != 0;
          if (runs.too_many || (!list.empty() && list.back().bias == bias)) continue;
          list.push_back({key + i, bias});
          runs.too_many = ++count > kMostRuns;
        }
      }
      runs.rows.push_back(std::move(list));
    }
    if (runs.too_many) runs.rows = {};
    return runs;
  }

  template <typename Visit>
  void for_each_run(const Runs& runs, int64_t batch, int64_t head, IndexRange keys,
                    const Visit& visit) const {
    const Index4& extent = dense_.source().extent();
    const int64_t row = (extent[0] == 1 ? 0 : batch) * extent[1] + (extent[1] == 1 ? 0 : head);
    const std::vector<Run>& list = runs.rows[static_cast<size_t>(row)];
    if (extent[3] == 1) return visit(keys, list.front().bias);
    auto run = std::upper_bound(list.begin(), list.end(), keys.begin,
                                [](int64_t key, const Run& r) { return key < r.begin; });
    --run;
    for (int64_t key = keys.begin; key < keys.end; ++run) {
      const int64_t end = run + 1 == list.end() ? keys.end : std::min(keys.end, (run + 1)->begin);
      visit(IndexRange{key, end}, run->bias);
      key = end;
    }
  }

  DenseBiasTerm dense_;
  mutable std::once_flag once_;
  mutable Runs runs_;
};

}  // namespace

MaskTermPtr tensor_term(std::shared_ptr<const TensorSource> source) {
  BiasSource bias(std::move(source));
  if (bias.extent()[2] == 1) return std::make_shared<KeyBiasTerm>(std::move(bias));
  return std::make_shared<DenseBiasTerm>(std::move(bias));
}

}  // namespace attnscope
