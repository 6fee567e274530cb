#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/capture/facts/fact_overrides.h"
#include "viewer/settings/settings.h"

namespace attnscope {

/// The input that was open, and the size of the window.
struct SessionInput {
  std::filesystem::path capture;  ///< empty: bare tensors
  BareTensors tensors;
  FactOverrides facts;
  std::filesystem::path other_capture;  ///< a second one, of which side B is; may be empty
  int width = 1280, height = 800;       ///< of the window, in its own units
};

/// A session that was read.
struct StoredSession : SessionInput {
  struct Line {
    std::string place;  ///< "FILE:7"; of format 1 "FILE: view.product"
    SettingChange change;
  };
  std::vector<Line> lines;       ///< of settings, in their order
  std::filesystem::path folder;  ///< that its files are named from
};

}  // namespace attnscope
