#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/console.h"
#include "cli/common/parser.h"
#include "viewer/remote/web/web_doors.h"
#include "viewer/remote/web/web_rules.h"

namespace attnscope {

/// Where `attnscope serve` listens, by which names browsers ask for it, and who may look.
struct WebOptions {
  int port = 0;                           ///< --port; 0: a free one
  std::string socket;                     ///< --socket; empty: a port
  std::optional<std::string> bind;        /// --bind; none: loopback
  std::vector<std::string> hosts;         ///< --allow-host
  std::optional<std::string> base;        ///< --base-path; none: /
  std::optional<std::string> token_file;  ///< --token-file; none: a new token each time

  /// The first of the options that was given; empty: none was.
  std::string given() const;
};

/// The options of such a server, with what is in the way of each alone.
void add_web_options(CommandParser& command, WebOptions& options);
/// Throws Error(usage) for options that exclude each other, and for a value that cannot be meant.
void check_web_options(const WebOptions& options);

/// The rules that the options make; an address of --bind at the port that is listened at is a host,
/// too. They must be checked.
WebRules web_rules(const WebOptions& options, int port);
/// Listens where the options say. Throws what WebDoors throws.
WebDoors open_doors(const WebOptions& options);
/// The token of --token-file, or a new one.
std::string web_token(const WebOptions& options);

/// Two lines: the address for a browser, and the line for another machine's shell that makes it
/// reachable there.
std::string web_addresses(const WebOptions& options, const WebDoors& doors,
                          const std::string& token);
/// Says, also where nothing else is said, that other machines may reach it; nothing where they may
/// not.
void warn_of_reach(const WebOptions& options, const WebDoors& doors, const Console& console);

}  // namespace attnscope
