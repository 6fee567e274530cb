#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "core/products/query_volumes.h"
#include "io/pictures/film/filmstrip.h"
#include "viewer/view/maps/tile_source.h"
#include "viewer/view/row/film_content.h"

namespace attnscope {

/// The words in the header of a film.
struct FilmCaption {
  std::string capture, head, what, domain, unit;
};

/// A film on its way into a file: waits for the pictures of the video where it lies over them, then
/// writes on a thread of its own. Only on the window's thread; the destructor waits for the thread.
class FilmExport {
 public:
  struct Film {
    FilmContent content;
    FilmLook look;
    ColourScale scale;
    double factor = 1;
    FilmCaption caption;
    std::optional<LatentCoord> query;  ///< outlined
    bool light = false;                ///< the window is
  };

  /// `path` ends in .gif or .mp4, in / for a folder of pictures, or in .png, .svg or .pdf for a
  /// page with all moments side by side. Throws Error(usage) for other
  /// names, and where a moment lacks its picture; Error(unavailable) as check_mp4(). `wake` is
  /// called from the thread when it has ended.
  FilmExport(const Film& film, std::filesystem::path path, bool force, std::function<void()> wake);

  /// Pictures of the video that it still waits for, first.
  std::vector<FrameRequest> wants() const;
  /// Goes on as far as it can; true once the file is there. Throws what went wrong, Error.
  bool step(const TileSource& tiles);
  const std::filesystem::path& path() const { return path_; }

  /// Throws Error(usage) for a name that is none of a film.
  static void check_name(const std::filesystem::path& path);

 private:
  /// Pixels of a moment's picture.
  PageSize moment_size() const;
  void write() const;
  void begin_to_write();

  const std::filesystem::path path_;
  const bool force_;
  const std::function<void()> wake_;
  int rate_ = 1;
  QueryVolumes volumes_;
  FilmStyle style_;
  std::vector<FrameRequest> wanted_;
  std::future<void> writing_;
};

}  // namespace attnscope
