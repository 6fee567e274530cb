#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "viewer/app/document.h"
#include "viewer/app/film_export.h"

namespace attnscope {

/// The film that is being written, if any. Only on the window's thread.
class FilmSaving {
 public:
  bool is_on() const { return export_ != nullptr; }
  /// Begins with that film, and gives up another one. Of one that a script `waits` for, an error is
  /// saved()'s, else step()'s.
  void begin(std::unique_ptr<FilmExport> film, bool waits);
  void give_up() { export_.reset(); }
  /// True while no film is being written. Throws the error of the last one that was waited for,
  /// once.
  bool saved();
  /// Pictures of the document that it still waits for, first.
  std::vector<FrameRequest> wants() const;
  /// Goes on as far as it can; the file once it is there. Throws what FilmExport::step() and
  /// Document::require_unchanged() throw; the film is given up then.
  std::optional<std::filesystem::path> step(const Document& document);

 private:
  std::unique_ptr<FilmExport> export_;
  std::optional<Error> failure_;
  bool waits_ = false;
};

}  // namespace attnscope
