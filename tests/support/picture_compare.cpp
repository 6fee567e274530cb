#include "tests/support/picture_compare.h"

#include <algorithm>
#include <cstdlib>

#include "io/pictures/png_writer.h"

namespace attnscope::test {
namespace {

double luma(Rgb c) { return 0.2126 * c.r + 0.7152 * c.g + 0.0722 * c.b; }

/// Wang et al. 2004, with uniform windows and the usual constants.
double block_similarity(const Picture& a, const Picture& b, int x0, int y0, int side) {
  double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
  for (int y = y0; y < y0 + side; ++y) {
    for (int x = x0; x < x0 + side; ++x) {
      const double p = luma(a.at(x, y)), q = luma(b.at(x, y));
      sum_a += p;
      sum_b += q;
      aa += p * p;
      bb += q * q;
      ab += p * q;
    }
  }
  const double n = side * side;
  const double mean_a = sum_a / n, mean_b = sum_b / n;
  const double var_a = aa / n - mean_a * mean_a, var_b = bb / n - mean_b * mean_b;
  const double covariance = ab / n - mean_a * mean_b;
  constexpr double c1 = 6.5025, c2 = 58.5225;
  return (2 * mean_a * mean_b + c1) * (2 * covariance + c2) /
         ((mean_a * mean_a + mean_b * mean_b + c1) * (var_a + var_b + c2));
}

int channel_difference(Rgb p, Rgb q) {
  return std::max({std::abs(p.r - q.r), std::abs(p.g - q.g), std::abs(p.b - q.b)});
}

}  // namespace

PictureLikeness compare_pictures(const Picture& a, const Picture& b, uint32_t rows) {
  constexpr int kSide = 8;
  const int width = static_cast<int>(a.width);
  const int height = static_cast<int>(std::min(rows, a.height));
  double similarity = 0;
  int blocks = 0;
  int64_t bad = 0;
  for (int y = 0; y + kSide <= height; y += kSide) {
    for (int x = 0; x + kSide <= width; x += kSide, ++blocks) {
      similarity += block_similarity(a, b, x, y, kSide);
    }
  }
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) bad += channel_difference(a.at(x, y), b.at(x, y)) > 32 ? 1 : 0;
  }
  return {similarity / blocks, static_cast<double>(bad) / (static_cast<double>(width) * height)};
}

void write_difference(const Picture& a, const Picture& b, const std::filesystem::path& file) {
  StagedFile part(file, true);
  PngWriter writer(part, static_cast<int>(a.width), static_cast<int>(a.height));
  std::vector<Rgb> row(a.width);
  for (int y = 0; y < static_cast<int>(a.height); ++y) {
    for (int x = 0; x < static_cast<int>(a.width); ++x) {
      const auto more = [](int p, int q) {
        return static_cast<uint8_t>(std::min(255, 8 * std::abs(p - q)));
      };
      const Rgb p = a.at(x, y), q = b.at(x, y);
      row[static_cast<size_t>(x)] = {more(p.r, q.r), more(p.g, q.g), more(p.b, q.b)};
    }
    writer.write_row(row);
  }
  writer.finish();
  part.commit();
}

}  // namespace attnscope::test
