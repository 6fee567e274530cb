#pragma once

#include <stop_token>
#include <string>

#include "cli/common/console.h"
#include "cli/serve/served.h"
#include "viewer/remote/byte_line.h"
#include "viewer/remote/web/web_front.h"

namespace attnscope {

/// Serves what is looked at to windows in browsers, one after the other, until a stop is requested,
/// which `bell` rings for. What a window says wrong ends that window.
void serve_windows(Served& served, WebFront& front, const EventBell& bell, const Console& console,
                   const std::stop_token& stop);

/// The address for a browser, and the line for another machine's shell that makes it reachable
/// there. `port`: 0 with a Unix socket, whose path `socket` then is.
std::string web_addresses(int port, const std::string& socket, const std::string& token);

}  // namespace attnscope
