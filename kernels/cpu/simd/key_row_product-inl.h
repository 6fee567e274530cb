// Products of keys as they are stored with a few query rows by a tile unit. Included behind
// tile_product-inl.h, with the same macros and whose order of parts is this one's.
//
// Keys are the left operand, so that their rows need no packing; the queries' channels are the
// right one. A product is the sum of the same terms in the same order as with the sides exchanged,
// and a fused multiply-add's factors commute: so are their bits.

namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE {

/// Up to four tiles of keys with all query rows, into tiles 0 to 3.
class KeyRowStep {
 public:
  KeyRowStep(const KeyRows& rows, ATTNSCOPE_TILES& tiles)
      : rows_(rows), products_(PartProducts::of(rows.parts)), tiles_(tiles) {}

  HWY_INLINE void multiply(const std::byte* keys, int64_t key_tiles) {
    tiles_.template zero<0>();
    tiles_.template zero<1>();
    tiles_.template zero<2>();
    tiles_.template zero<3>();
    for (int64_t pair = 0; pair < rows_.pairs; pair += kTileSide) {
      for (int64_t i = 0; i < products_.count; ++i) {
        const PartProducts::Pair parts = products_.pairs[i];
        const int64_t query = (parts.q * rows_.pairs + pair) * kTileSide;
        tiles_.template load<6>(rows_.queries + query, kTileSide * 4);
        const std::byte* const at = keys + (parts.k * rows_.pairs + pair) * 4;
        add<0, 4>(at, key_tiles);
        add<1, 5>(at, key_tiles);
        add<2, 4>(at, key_tiles);
        add<3, 5>(at, key_tiles);
      }
    }
  }

  /// Sums of the tiles, [keys, kTileSide].
  HWY_INLINE void store(float* sums) const {
    constexpr int64_t kStride = kTileSide * 4;
    tiles_.template store<0>(sums, kStride);
    tiles_.template store<1>(sums + kTileSide * kTileSide, kStride);
    tiles_.template store<2>(sums + 2 * kTileSide * kTileSide, kStride);
    tiles_.template store<3>(sums + 3 * kTileSide * kTileSide, kStride);
  }

 private:
  template <int kSum, int kKeys>
  HWY_INLINE void add(const std::byte* keys, int64_t key_tiles) {
    if (kSum >= key_tiles) return;
    tiles_.template load<kKeys>(keys + kSum * kTileSide * rows_.key_stride, rows_.key_stride);
    tiles_.template multiply<kSum, kKeys, 6>();
  }

  const KeyRows& rows_;
  const PartProducts products_;
  ATTNSCOPE_TILES& tiles_;
};

/// CpuKernels::Products::key_rows.
void multiply_key_rows(const KeyRows& rows) {
  static_assert(kKeyRowTile == kTileSide);
  constexpr int64_t kStepTiles = 4;
  constexpr int64_t kStepKeys = kStepTiles * kTileSide;
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto columns = hn::Mul(hn::Iota(di, 0), hn::Set(di, kTileSide));
  alignas(64) float sums[kStepKeys * kTileSide];
  ATTNSCOPE_TILES tiles;
  KeyRowStep step(rows, tiles);
  for (int64_t key = 0; key < rows.count; key += kStepKeys) {
    const int64_t left = rows.count - key;
    const int64_t key_tiles = HWY_MIN(kStepTiles, (left + kTileSide - 1) / kTileSide);
    step.multiply(rows.keys + key * rows.key_stride, key_tiles);
    step.store(sums);
    for (int64_t row = 0; row < rows.rows; ++row) {
      float* const out = rows.out + row * rows.out_stride + key;
      for (int64_t at = 0; at < key_tiles * kTileSide; at += kLanes) {
        hn::StoreU(hn::GatherIndex(d, sums + at * kTileSide + row, columns), d, out + at);
      }
    }
  }
}

}  // namespace attnscope::HWY_NAMESPACE::ATTNSCOPE_DOT_NAMESPACE
