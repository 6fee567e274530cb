#include "core/mask/neighbourhood.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/mask_runs.h"

namespace attnscope {
namespace {

using CellExtents = std::array<int64_t, 3>;

constexpr std::string_view kAxisLetters = "tyx";

std::string extents_text(const CellExtents& v) {
  return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
}

std::optional<CellExtents> parse_extents(std::string_view text) {
  constexpr int64_t kMost = int64_t{1} << 20;
  CellExtents extents{};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const size_t end = axis + 1 < extents.size() ? text.find('x') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, extents[axis]);
    if (error != std::errc() || stop != text.data() + end) return std::nullopt;
    if (extents[axis] < 1 || extents[axis] > kMost) return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return extents;
}

std::optional<std::array<bool, 3>> parse_causal_axes(std::string_view text) {
  std::array<bool, 3> axes{};
  for (const char letter : text) {
    const size_t axis = kAxisLetters.find(letter);
    if (axis == std::string_view::npos || axes[axis]) return std::nullopt;
    axes[axis] = true;
  }
  return text.empty() ? std::nullopt : std::optional(axes);
}

/// Cells along an axis: from `first` to before `past`, each `step` cells.
struct Reach {
  int64_t first = 0, past = 0, step = 1;

  /// The part of it that lies within `range`.
  Reach within(IndexRange range) const {
    const int64_t skipped = ceil_div(std::max(range.begin - first, int64_t{0}), step);
    return {first + skipped * step, std::min(past, range.end), step};
  }
};

class NeighbourhoodTerm : public RunsTerm {
 public:
  NeighbourhoodTerm(const Neighbourhood& form, const CellExtents& grid, int64_t first)
      : form_(form),
        grid_(grid),
        video_{first, first + grid[0] * grid[1] * grid[2]},
        name_("natten:" + form.text()) {
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      for (int64_t at = 0; at < grid[axis]; ++at) reaches_[axis].push_back(reach(axis, at));
    }
  }

  std::string describe() const override { return name_; }
  std::string identity() const override {
    return name_ + " of " + extents_text(grid_) + " from " + std::to_string(video_.begin);
  }
  void check_shape(int64_t, int64_t, int64_t queries, int64_t keys) const override {
    if (queries == keys && video_.end <= keys) return;
    throw usage_error("mask " + name_ + ": expected as many keys as queries, and a grid " +
                      extents_text(grid_) + " among them (got " + std::to_string(queries) +
                      " queries, " + std::to_string(keys) + " keys)");
  }

 protected:
  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    if (!video_.contains(query)) {
      runs.push_back(keys);
      return;
    }
    const auto append = [&](IndexRange run) {
      const IndexRange kept = intersect(run, keys);
      if (!kept.empty()) runs.push_back(kept);
    };
    append({0, video_.begin});
    const IndexRange video = intersect(keys, video_);
    if (!video.empty()) {
      append_cells(query - video_.begin, {video.begin - video_.begin, video.end - video_.begin},
                   append);
    }
    append({video_.end, keys.end});
  }

 private:
  /// The cells of `wanted` that the cell `query` sees, as runs of tokens.
  template <typename Append>
  void append_cells(int64_t query, IndexRange wanted, const Append& append) const {
    const int64_t width = grid_[2], cells = grid_[1] * width;
    const Reach& frames = reaches_[0][static_cast<size_t>(query / cells)];
    const Reach some = frames.within({wanted.begin / cells, ceil_div(wanted.end, cells)});
    if (some.first >= some.past) return;
    const Reach& rows = reaches_[1][static_cast<size_t>(query / width % grid_[1])];
    const Reach& columns = reaches_[2][static_cast<size_t>(query % width)];
    for (int64_t t = some.first; t < some.past; t += some.step) {
      const int64_t frame = t * cells;
      const Reach lines = rows.within(
          {(std::max(wanted.begin, frame) - frame) / width, ceil_div(wanted.end - frame, width)});
      for (int64_t y = lines.first; y < lines.past; y += lines.step) {
        const int64_t line = video_.begin + frame + y * width;
        if (columns.step == 1) {
          append({line + columns.first, line + columns.past});
          continue;
        }
        for (int64_t x = columns.first; x < columns.past; x += columns.step) {
          append({line + x, line + x + 1});
        }
      }
    }
  }

  /// The cells along an axis that a query at `at` sees.
  Reach reach(size_t axis, int64_t at) const {
    const int64_t dilation = form_.dilation[axis], stride = form_.stride[axis];
    const int64_t window = form_.window[axis], residue = at % dilation, place = at / dilation;
    const int64_t places = ceil_div(grid_[axis] - residue, dilation);
    const int64_t group = place / stride * stride;
    int64_t begin = 0, end = place + 1;
    if (form_.causal[axis]) {
      begin = std::max(std::min(group + stride - 1, places - 1) - window + 1, int64_t{0});
    } else {
      const int64_t leader = std::min(group + stride / 2, places - 1);
      begin = std::clamp(leader - window / 2, int64_t{0}, places - window);
      end = begin + window;
    }
    return {begin * dilation + residue, (end - 1) * dilation + residue + 1, dilation};
  }

  const Neighbourhood form_;
  const CellExtents grid_;
  const IndexRange video_;
  const std::string name_;
  std::array<std::vector<Reach>, 3> reaches_;  ///< of each cell along each axis
};

void check_neighbourhood(const Neighbourhood& form, const CellExtents& grid) {
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    const std::string along = " along " + std::string(1, kAxisLetters[axis]);
    const auto refuse = [&](const std::string& what) {
      throw usage_error("mask natten:" + form.text() + ": " + what);
    };
    const int64_t window = form.window[axis], dilation = form.dilation[axis];
    if (form.stride[axis] > window) {
      refuse("the stride " + std::to_string(form.stride[axis]) + along + " exceeds the window's " +
             std::to_string(window));
    }
    if (window * dilation <= grid[axis]) continue;
    const std::string apart = dilation == 1 ? "" : " of dilation " + std::to_string(dilation);
    refuse("the window's " + std::to_string(window) + " cells" + apart + along +
           " exceed the grid " + extents_text(grid) + ", which has " + std::to_string(grid[axis]));
  }
}

}  // namespace

std::string Neighbourhood::set(std::string_view name, std::string_view value) {
  if (name == "causal") {
    const auto axes = parse_causal_axes(value);
    if (!axes) return "letters of axes, of t, y and x";
    causal = *axes;
    return "";
  }
  const auto extents = parse_extents(value);
  if (!extents) return "three numbers from 1 on, TxHxW";
  (name == "window" ? window : name == "stride" ? stride : dilation) = *extents;
  return "";
}

std::string Neighbourhood::text() const {
  std::string text = extents_text(window);
  if (stride != CellExtents{1, 1, 1}) text += ",stride=" + extents_text(stride);
  if (dilation != CellExtents{1, 1, 1}) text += ",dilation=" + extents_text(dilation);
  std::string axes;
  for (size_t axis = 0; axis < causal.size(); ++axis) {
    if (causal[axis]) axes += kAxisLetters[axis];
  }
  return axes.empty() ? text : text + ",causal=" + axes;
}

std::optional<Neighbourhood> parse_neighbourhood(std::string_view text) {
  Neighbourhood form;
  std::vector<std::string_view> seen;
  for (bool more = true; more;) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    more = comma < text.size();
    text.remove_prefix(more ? comma + 1 : comma);
    const size_t equals = part.find('=');
    const bool bare = equals == std::string_view::npos;
    const std::string_view name = bare ? "window" : part.substr(0, equals);
    if (bare != seen.empty() || std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return std::nullopt;
    }
    if (!bare && name != "stride" && name != "dilation" && name != "causal") return std::nullopt;
    if (!form.set(name, bare ? part : part.substr(equals + 1)).empty()) return std::nullopt;
    seen.push_back(name);
  }
  return form;
}

Mask neighbourhood_mask(const Neighbourhood& form, CellExtents grid, int64_t first) {
  check_neighbourhood(form, grid);
  return Mask::term(std::make_shared<NeighbourhoodTerm>(form, grid, first));
}

}  // namespace attnscope
