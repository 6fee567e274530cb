#include "viewer/app/recent_pictures.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "io/files/checksum.h"
#include "io/files/output_file.h"
#include "io/pictures/png_reader.h"
#include "io/pictures/png_writer.h"
#include "viewer/session/recent_files.h"

namespace attnscope {
namespace {

using std::filesystem::path;

path pictures_folder(const path& list) { return list.parent_path() / "recent-pictures"; }

std::string picture_name(const path& capture) {
  const std::string name = recent_name(capture).string();
  return fmt::format("{:016x}.png", checksum64(std::as_bytes(std::span(name))));
}

/// The mean of the pixels from (x0, y0) to before (x1, y1).
Rgb mean_of(const gl::ReadPixels& picture, int x0, int y0, int x1, int y1) {
  std::array<int64_t, 3> sums{};
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      const Rgb colour = picture.at(x, y);
      sums[0] += colour.r;
      sums[1] += colour.g;
      sums[2] += colour.b;
    }
  }
  const int64_t count = int64_t{x1 - x0} * (y1 - y0);
  const auto mean = [&](int64_t sum) { return static_cast<uint8_t>((sum + count / 2) / count); };
  return {mean(sums[0]), mean(sums[1]), mean(sums[2])};
}

/// As large as fits, in its own aspect, and no larger than it is.
Canvas made_small(const gl::ReadPixels& picture) {
  const double by = std::max({1.0, static_cast<double>(picture.width) / kRecentWidth,
                              static_cast<double>(picture.height) / kRecentHeight});
  const int width = std::max(1, static_cast<int>(picture.width / by));
  const int height = std::max(1, static_cast<int>(picture.height / by));
  Canvas canvas(width, height, Rgb{});
  for (int y = 0; y < height; ++y) {
    const int y0 = static_cast<int>(int64_t{y} * picture.height / height);
    const int y1 = static_cast<int>(int64_t{y + 1} * picture.height / height);
    for (int x = 0; x < width; ++x) {
      canvas.row(y)[static_cast<size_t>(x)] =
          mean_of(picture, static_cast<int>(int64_t{x} * picture.width / width), y0,
                  static_cast<int>(int64_t{x + 1} * picture.width / width), y1);
    }
  }
  return canvas;
}

void write_small(const path& file, const Canvas& canvas) {
  std::vector<std::byte> bytes;
  const auto put = [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  PngWriter writer(put, file, canvas.width(), canvas.height());
  for (int y = 0; y < canvas.height(); ++y) writer.write_row(canvas.row(y));
  writer.finish();
  OutputFile out(file, {.force = true, .sync = false});
  out.create_part();
  out.write_at(bytes, 0);
  out.commit();
}

/// Removes the pictures that none of these names is of.
void remove_others(const path& folder, const std::set<std::string>& listed) {
  std::vector<path> others;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const path& file = entry.path();
    const bool is_picture = file.extension() == ".png" && file.stem().string().size() == 16;
    if (is_picture && !listed.contains(file.filename().string())) others.push_back(file);
  }
  for (const path& file : others) std::filesystem::remove(file);
}

}  // namespace

bool keep_recent_picture(const path& list, const path& capture,
                         const gl::ReadPixels& picture) noexcept {
  try {
    std::set<std::string> listed;
    for (const RecentFile& each : recent_files(list)) listed.insert(picture_name(each.file));
    const std::string name = picture_name(capture);
    const path folder = pictures_folder(list);
    if (!listed.contains(name) || picture.width < 1 || picture.height < 1) return false;
    std::filesystem::create_directories(folder);
    write_small(folder / name, made_small(picture));
    remove_others(folder, listed);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<Canvas> recent_picture(const path& list, const path& capture) noexcept {
  try {
    const path file = pictures_folder(list) / picture_name(capture);
    if (!std::filesystem::exists(file)) return std::nullopt;
    return read_png_colour(file);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace attnscope
