#include "web/engine/page_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/mass_range.h"
#include "web/engine/page_map.h"

#define ATTNSCOPE_EXPORT(name) __attribute__((export_name(#name)))

namespace attnscope {
namespace {

std::unique_ptr<PageMap> open_map;
std::vector<float> texels;
std::array<double, 2> ends{};
std::string problem_text;

/// Runs it; exceptions become what attnscope_problem() says, and a `Result` of 0.
template <typename F>
auto answer(const F& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    problem_text = "the browser has no memory left for this page";
  } catch (const std::exception& error) {
    problem_text = error.what();
  }
  return {};
}

PageMap& map() {
  if (open_map == nullptr) throw usage_error("no map is open");
  return *open_map;
}

/// [first, first + count), which must not be empty and lie within 0…size.
IndexRange checked_range(int first, int count, int64_t size) {
  const IndexRange range{first, int64_t{first} + count};
  if (first < 0 || count < 1 || range.end > size) throw usage_error("outside the map");
  return range;
}

PageMask mask_of(const double* facts, const int32_t* row_lists, const int32_t* starts,
                 const int32_t* runs) {
  PageMask mask;
  mask.row_lists.assign(row_lists, row_lists + static_cast<size_t>(facts[1]));
  mask.starts.assign(starts, starts + static_cast<size_t>(facts[7]) + 1);
  for (size_t i = 0; i < static_cast<size_t>(facts[8]); ++i) {
    mask.runs.push_back({runs[2 * i], runs[2 * i + 1]});
  }
  return mask;
}

}  // namespace
}  // namespace attnscope

using namespace attnscope;

extern "C" {

ATTNSCOPE_EXPORT(attnscope_reserve) void* attnscope_reserve(unsigned bytes) {
  return std::malloc(bytes == 0 ? 1 : bytes);
}

ATTNSCOPE_EXPORT(attnscope_release) void attnscope_release(void* memory) { std::free(memory); }

ATTNSCOPE_EXPORT(attnscope_open)
int attnscope_open(const double* facts, const void* q, const void* k, const double* sums,
                   const int32_t* exponents, const int32_t* row_lists, const int32_t* starts,
                   const int32_t* runs) {
  return answer([&] {
    open_map.reset();
    PageHead head;
    head.dtype = static_cast<DType>(static_cast<int>(facts[0]));
    head.queries = static_cast<int64_t>(facts[1]);
    head.keys = static_cast<int64_t>(facts[2]);
    head.dim = static_cast<int64_t>(facts[3]);
    head.scale = facts[4];
    head.score = {static_cast<ScoreFunction::Form>(static_cast<int>(facts[5])), facts[9]};
    head.all_keys = facts[6] != 0;
    head.q = static_cast<const std::byte*>(q);
    head.k = static_cast<const std::byte*>(k);
    for (int64_t row = 0; sums != nullptr && row < head.queries; ++row) {
      head.norms.push_back({sums[row], exponents[row]});
    }
    if (facts[7] > 0) head.mask = mask_of(facts, row_lists, starts, runs);
    open_map = std::make_unique<PageMap>(std::move(head));
    return 1;
  });
}

ATTNSCOPE_EXPORT(attnscope_entries)
const float* attnscope_entries(int row, int rows, int key, int cols, int quantity, int own) {
  return answer([&]() -> const float* {
    const IndexRange queries = checked_range(row, rows, map().queries());
    const IndexRange keys = checked_range(key, cols, map().keys());
    return map()
        .entries(queries, keys, quantity == 1 ? Quantity::logits : Quantity::weights, own != 0)
        .data();
  });
}

ATTNSCOPE_EXPORT(attnscope_texels)
const float* attnscope_texels(int level, int row, int rows, int col, int cols) {
  return answer([&]() -> const float* {
    if (level < 0 || level > 30) throw usage_error("no such level");
    const int64_t side = int64_t{1} << level;
    const IndexRange down = checked_range(row, rows, (map().queries() + side - 1) / side);
    const IndexRange across = checked_range(col, cols, (map().keys() + side - 1) / side);
    const auto count = static_cast<size_t>(down.size() * across.size());
    texels.resize(2 * count);
    map().texels(level, down, across, texels.data(), texels.data() + count);
    return texels.data();
  });
}

ATTNSCOPE_EXPORT(attnscope_mass_ends)
const double* attnscope_mass_ends(const float* values, const float* masses, int count) {
  return answer([&]() -> const double* {
    if (count < 1) throw usage_error("no cell has a value");
    std::vector<ValueMass> cells;
    cells.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) cells.push_back({values[i], masses[i]});
    std::sort(cells.begin(), cells.end(),
              [](const ValueMass& a, const ValueMass& b) { return a.value < b.value; });
    const MassEnds found = mass_ends(cells);
    ends = {found.low, found.high};
    return ends.data();
  });
}

ATTNSCOPE_EXPORT(attnscope_lse) double attnscope_lse(int row) {
  const std::vector<double> found = answer([&] {
    const IndexRange range = checked_range(row, 1, map().queries());
    return std::vector<double>{map().lse(range.begin)};
  });
  return found.empty() ? std::nan("") : found.front();
}

ATTNSCOPE_EXPORT(attnscope_problem) const char* attnscope_problem() { return problem_text.c_str(); }
}
