#include "viewer/remote/web/web_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace attnscope {
namespace {

/// FNV-1a: nobody gains from two files of one value.
uint64_t hash_of(std::span<const unsigned char> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

WebAnswer plain_text(int status, std::string text) {
  WebAnswer answer;
  answer.status = status;
  answer.text = std::move(text) + "\n";
  answer.length = answer.text.size();
  answer.fields = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
  return answer;
}

/// A page of another place has another origin.
bool is_foreign(const WebRequest& request, const WebRules& rules) {
  if (request.origins.empty()) return false;
  return request.origins.size() != 1 ||
         !is_accepted_origin(request.origins[0], request.hosts[0], rules);
}

}  // namespace

WebPage::WebPage(std::span<const WebAsset> files, WebRules rules) : rules_(std::move(rules)) {
  for (const WebAsset& asset : files) {
    files_.push_back(
        {&asset, fmt::format("\"{:016x}-{:x}\"", hash_of(asset.gzipped), asset.gzipped.size())});
  }
}

WebAnswer WebPage::file(const File& file, const WebRequest& request) const {
  WebAnswer answer;
  // A browser may keep it and has to ask each time whether it still holds.
  answer.fields = {{"ETag", file.etag}, {"Cache-Control", "no-cache"}};
  if (request.etags.size() == 1 && request.etags[0] == file.etag) {
    answer.status = 304;
    return answer;
  }
  answer.fields.emplace_back("Content-Type", file.asset->type);
  answer.fields.emplace_back("Content-Encoding", "gzip");
  answer.body = file.asset->gzipped;
  answer.length = answer.body.size();
  return answer;
}

WebAnswer WebPage::refusal(int status, const std::string& why) const {
  WebAnswer answer = plain_text(status, why);
  add_rules(answer, "");
  return answer;
}

/// `host`: one of is_accepted_host(), or empty.
void WebPage::add_rules(WebAnswer& answer, std::string_view host) const {
  // Some browsers do not count a WebSocket to the page's own place as 'self'.
  std::string socket;
  if (!host.empty()) socket = fmt::format(" ws://{}", host);
  if (!host.empty() && !is_loopback_host(host)) socket += fmt::format(" wss://{}", host);
  // A hub shows the page in a tab of its own page, which has the same origin; without a proxy there
  // is no other page of it.
  const bool framed = !rules_.hosts.empty();
  answer.fields.emplace_back(
      "Content-Security-Policy",
      fmt::format(
          "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'{}; "
          "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors {}",
          socket, framed ? "'self'" : "'none'"));
  answer.fields.emplace_back("X-Content-Type-Options", "nosniff");
  answer.fields.emplace_back("X-Frame-Options", framed ? "SAMEORIGIN" : "DENY");
  answer.fields.emplace_back("Referrer-Policy", "no-referrer");
  answer.fields.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  answer.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
}

WebAnswer WebPage::find(const WebRequest& request) const {
  if (request.hosts.size() != 1) return plain_text(400, "expected one field Host");
  if (!is_accepted_host(request.hosts[0], rules_)) {
    return plain_text(403,
                      "this host is none that the window is served to (127.0.0.1, localhost, and "
                      "those of attnscope serve --allow-host)");
  }
  if (is_foreign(request, rules_)) {
    return plain_text(403, "a page of another place asks for this one");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    WebAnswer answer = plain_text(405, "there is nothing here but to GET");
    answer.fields.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  std::string_view path = request.target.substr(0, request.target.find('?'));
  const std::string_view base(rules_.base);
  if (base.size() > 1 && path == base.substr(0, base.size() - 1)) {
    // The page's own addresses are relative to it. So is this one: a proxy may have a prefix of its
    // own in front. The dot: what has a colon would be a scheme.
    WebAnswer answer = plain_text(308, "the page's address ends with /");
    answer.fields.emplace_back("Location", fmt::format("./{}/", path.substr(path.rfind('/') + 1)));
    return answer;
  }
  if (path.starts_with(base)) path.remove_prefix(base.size() - 1);
  if (path == kTiles) {
    if (!request.upgrade || request.method != "GET") {
      WebAnswer answer = plain_text(426, "this is for WebSockets");
      answer.fields.emplace_back("Upgrade", "websocket");
      return answer;
    }
    // Browsers always say where the page is from that opens one.
    if (request.origins.empty()) return plain_text(403, "no field Origin");
    WebAnswer answer;
    answer.opens_line = true;
    return answer;
  }
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [&](const File& each) { return each.asset->path == path; });
  return found == files_.end() ? plain_text(404, "there is no such file") : file(*found, request);
}

WebAnswer WebPage::answer(const WebRequest& request) const {
  WebAnswer answer = find(request);
  const bool known = request.hosts.size() == 1 && is_accepted_host(request.hosts[0], rules_);
  add_rules(answer, known ? request.hosts[0] : "");
  if (request.method == "HEAD") {
    answer.body = {};
    answer.text.clear();
  }
  return answer;
}

}  // namespace attnscope
