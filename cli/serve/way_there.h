#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "cli/common/capture_options.h"
#include "viewer/remote/remote_link.h"
#include "viewer/session/remote_place.h"

namespace attnscope {

/// The options with which the server of maps on another machine is started.
struct WayThere {
  std::string program = "attnscope";  ///< --remote-program
  RunOptions run;                     ///< of its computation, where they were given
  std::string cache;
  bool follow = false;
};

/// Starts `attnscope serve` there by ssh (or by what ATTNSCOPE_SSH names) and waits for what there
/// is. `second`: empty where there is none, else on the same machine. Throws Error(usage) where the
/// names are wrong or of two machines; what RemoteLink throws.
std::unique_ptr<RemoteLink> open_link(const std::string& name, const std::string& second,
                                      const FactOverrides& facts, const WayThere& way,
                                      const std::stop_token& stop);

/// The words of the command that starts it, for one shell there.
std::string serve_words(const RemotePlace& place, const std::string& second_path,
                        const FactOverrides& facts, const WayThere& way);

/// The tiles that come by a link, and the link with them; `memory` bytes of them stay.
std::unique_ptr<RemoteTileSource> linked_tiles(std::unique_ptr<RemoteLink> link,
                                               const std::string& name, int64_t memory,
                                               std::function<void()> wake);

}  // namespace attnscope
