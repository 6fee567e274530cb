#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viewer/remote/web/assets/web_assets.h"
#include "viewer/remote/web/web_rules.h"

namespace attnscope {

/// A request of a browser. Borrows its texts.
struct WebRequest {
  std::string_view method;                              ///< "GET"
  std::string_view target;                              ///< "/window.js?1"
  std::vector<std::string_view> hosts, origins, etags;  ///< of each field of that name
  bool upgrade = false;                                 ///< to a WebSocket
};

/// The answer to a request.
struct WebAnswer {
  int status = 200;
  bool opens_line = false;  ///< a WebSocket, and nothing of the rest
  std::vector<std::pair<std::string, std::string>> fields;
  std::span<const unsigned char> body;  ///< of a file of the page, else:
  std::string text;
  size_t length = 0;  ///< of the body or text that there would be, also where the method is HEAD
};

/// The files of the page, and who gets them: those that ask this machine by its own name, or by one
/// that the rules allow. Nothing else is ever sent, whatever is asked for, and no field that a
/// proxy writes of others (X-Forwarded-Host …) counts. Thread-safe.
class WebPage {
 public:
  /// Where WebSockets are opened, below the base.
  static constexpr std::string_view kTiles = "/tiles";

  /// Borrows the files.
  explicit WebPage(std::span<const WebAsset> files, WebRules rules = {});
  WebAnswer answer(const WebRequest& request) const;
  /// Of what is no request that could be answered.
  WebAnswer refusal(int status, const std::string& why) const;

 private:
  struct File {
    const WebAsset* asset;
    std::string etag;  ///< of its bytes: another version's are others
  };
  WebAnswer find(const WebRequest& request) const;
  WebAnswer file(const File& file, const WebRequest& request) const;
  void add_rules(WebAnswer& answer, std::string_view host) const;

  WebRules rules_;
  std::vector<File> files_;
};

}  // namespace attnscope
