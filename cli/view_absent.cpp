#include <memory>

#include "cli/common/command.h"
#include "cli/view_options.h"
#include "core/base/error.h"

namespace attnscope {

/// In builds without the window.
Command add_view_command(CLI::App& app) {
  auto options = std::make_shared<ViewRequest>();
  CommandParser command = add_view_options(app, *options);
  return {command, [options]() -> int {
            throw Error(ErrorCode::unavailable,
                        "view: this build has no window (it was configured with "
                        "ATTNSCOPE_VIEWER=OFF)");
          }};
}

}  // namespace attnscope
