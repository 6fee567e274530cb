#include "web/figure/head/figure_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/mass_range.h"
#include "core/stream/norm_sink.h"
#include "web/engine/page_map.h"
#include "web/figure/head/figure_mask.h"

namespace attnscope {
namespace {

/// Pools the weights of one task. Tiles are cut at texels, so that each is of one tile.
class BaseSink : public TileSink {
 public:
  BaseSink(int64_t rows, int64_t cols, int level)
      : side_(int64_t{1} << level),
        rows_(rows),
        cols_(cols),
        texel_cols_(ceil_div(cols, side_)),
        chunk_(std::max<int64_t>(512, side_)) {
    const auto texels = static_cast<size_t>(ceil_div(rows, side_) * texel_cols_);
    max.resize(texels);
    sum.resize(texels);
  }

  TileRequest request() const override {
    TileRequest request;
    request.norms = false;
    request.chunk_rows = request.chunk_cols = chunk_;
    request.sink_percent = 0;
    return request;
  }
  void begin(std::span<const HeadTask>, int) override {}
  void consume(const Tile& tile) override {
    for (size_t i = 0; i < tile.chunks.size(); ++i) {
      if (tile.chunks[i] == nullptr) continue;
      const int64_t first = tile.cols.begin + static_cast<int64_t>(i) * chunk_;
      const auto* entries = reinterpret_cast<const float*>(tile.chunks[i]);
      const int64_t cols = std::min({chunk_, tile.cols.end - first, cols_ - first});
      for (int64_t row = tile.rows.begin; row < tile.rows.end; ++row, entries += chunk_) {
        const auto texel = static_cast<size_t>(row / side_ * texel_cols_ + first / side_);
        pool_row(entries, cols, side_, &max[texel], &sum[texel]);
      }
    }
  }
  void end() override {}

  float mean(int64_t row, int64_t col) const {
    const int64_t height = std::min(side_, rows_ - row * side_);
    const int64_t width = std::min(side_, cols_ - col * side_);
    return static_cast<float>(sum[static_cast<size_t>(row * texel_cols_ + col)] /
                              static_cast<double>(height * width));
  }

  std::vector<float> max;
  std::vector<double> sum;

 private:
  const int64_t side_, rows_, cols_, texel_cols_, chunk_;
};

uint16_t weight_code(float weight) {
  if (!(weight >= 0x1p-127f)) return 0;
  const double octaves = std::log2(static_cast<double>(weight));
  return static_cast<uint16_t>(std::clamp(1 + std::round(512 * (127 + octaves)), 1.0, 65535.0));
}

/// The weight's log₂ of which `share` of the codes that are not 0 lie below.
double quantile(std::vector<uint16_t>& codes, double share) {
  const auto at = static_cast<int64_t>(share * static_cast<double>(codes.size() - 1));
  std::nth_element(codes.begin(), codes.begin() + at, codes.end());
  return (codes[static_cast<size_t>(at)] - 1) / 512.0 - 127;
}

void set_range(FigurePyramid& pyramid) {
  std::vector<uint16_t> shown;
  const auto texels = static_cast<std::ptrdiff_t>(pyramid.codes.size() / 2);
  std::copy_if(pyramid.codes.begin(), pyramid.codes.begin() + texels, std::back_inserter(shown),
               [](uint16_t code) { return code != 0; });
  if (shown.empty()) return;
  pyramid.low = quantile(shown, 0.01);
  pyramid.high = quantile(shown, 0.999);
  if (pyramid.high - pyramid.low < 1) pyramid.low = pyramid.high - 1;
}

/// Codes are few: what cells have of each is added up.
void set_mass_ends(FigurePyramid& pyramid) {
  const size_t texels = pyramid.codes.size() / 2;
  for (size_t pool = 0; pool < 2; ++pool) {
    std::map<uint16_t, ValueMass> by_code;
    for (size_t i = 0; i < texels; ++i) {
      const uint16_t code = pyramid.codes[pool * texels + i];
      if (code == 0) continue;
      ValueMass& all =
          by_code.try_emplace(code, ValueMass{weight_of_code(code), 0, 0}).first->second;
      all.mass += weight_of_code(pyramid.codes[texels + i]);
      all.count += 1;
    }
    if (by_code.empty()) continue;
    std::vector<ValueMass> cells;
    for (const auto& [code, all] : by_code) cells.push_back(all);
    const MassEnds ends = mass_ends(cells);
    pyramid.mass[pool] = {std::log2(ends.low), std::log2(ends.high)};
  }
}

/// The problem that the page has.
AttentionProblem problem_of_page(const FigureCut& cut, const FigureMap& map,
                                 std::span<const RowNorm> norms) {
  const AttentionProblem& whole = *cut.problem;
  PageHead head;
  head.dtype = whole.q().dtype();
  head.queries = cut.rows.count;
  head.keys = cut.keys.count;
  head.dim = whole.head_dim();
  head.scale = whole.scale(cut.head);
  head.score = whole.score();
  head.q = map.q.data();
  head.k = map.k.data();
  head.norms.assign(norms.begin(), norms.end());
  head.mask = map.mask;
  return page_problem(head);
}

std::vector<RowNorm> norms_of_rows(const FigureCut& cut, const FigureStream& stream) {
  std::vector<int64_t> rows(static_cast<size_t>(cut.rows.count));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = cut.rows.at(static_cast<int64_t>(i));
  HeadTask task{cut.problem, cut.batch, cut.head, {}, {}, {0, cut.problem->num_keys()}};
  if (cut.rows.stride == 1) {
    task.rows = {cut.rows.first, cut.rows.first + cut.rows.count};
  } else {
    task.row_list = rows;
  }
  TileRequest request;
  request.entries = false;
  std::vector<RowNorm> norms(rows.size());
  NormSink sink(request, norms);
  stream({&task, 1}, sink);
  return norms;
}

FigurePyramid base_of(const FigureCut& cut, const AttentionProblem& problem,
                      std::span<const RowNorm> norms, const FigureStream& stream) {
  FigurePyramid pyramid;
  pyramid.level = cut.base_level();
  HeadTask task{&problem, 0, 0, {0, cut.rows.count}, {}, {0, cut.keys.count}};
  task.known_norms = norms;
  BaseSink sink(cut.rows.count, cut.keys.count, pyramid.level);
  stream({&task, 1}, sink);
  pyramid.rows = ceil_div(cut.rows.count, int64_t{1} << pyramid.level);
  pyramid.cols = ceil_div(cut.keys.count, int64_t{1} << pyramid.level);
  for (const float largest : sink.max) pyramid.codes.push_back(weight_code(largest));
  for (int64_t row = 0; row < pyramid.rows; ++row) {
    for (int64_t col = 0; col < pyramid.cols; ++col) {
      pyramid.codes.push_back(weight_code(sink.mean(row, col)));
    }
  }
  set_range(pyramid);
  set_mass_ends(pyramid);
  return pyramid;
}

}  // namespace

double weight_of_code(uint16_t code) { return code == 0 ? 0 : std::exp2((code - 1) / 512.0 - 127); }

int64_t figure_map_bytes(const FigureCut& cut) {
  return 2 * (cut.query_bytes() + cut.key_bytes()) + 2 * cut.norm_bytes();
}

FigureMap make_figure_map(const FigureCut& cut, const FigureStream& stream) {
  FigureMap map;
  if (!cut.problem->mask().is_none()) map.mask = page_mask_of(cut);
  std::vector<RowNorm> norms;
  if (needs_norms(cut.problem->score(), Quantity::weights)) norms = norms_of_rows(cut, stream);
  map.q = read_queries(cut);
  map.k = read_keys(cut);
  const AttentionProblem page = problem_of_page(cut, map, norms);
  map.pyramid = base_of(cut, page, norms, stream);
  for (const RowNorm& norm : norms) {
    map.sums.push_back(norm.sum);
    map.exponents.push_back(static_cast<int32_t>(norm.exponent));
  }
  return map;
}

}  // namespace attnscope
