#include "viewer/remote/web/web_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace attnscope {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// FNV-1a: nobody gains from two files of one value.
uint64_t hash_of(std::span<const unsigned char> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

WebAnswer plain_text(int status, std::string text) {
  WebAnswer answer;
  answer.status = status;
  answer.text = std::move(text) + "\n";
  answer.length = answer.text.size();
  answer.fields = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
  return answer;
}

/// Adds the fields that every answer has. `host` is one of is_loopback_host(), or empty.
void add_rules(WebAnswer& answer, std::string_view host) {
  // Some browsers do not count a WebSocket to the page's own place as 'self'.
  const std::string socket = host.empty() ? "" : fmt::format(" ws://{}", host);
  answer.fields.emplace_back(
      "Content-Security-Policy",
      fmt::format(
          "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'{}; "
          "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
          socket));
  answer.fields.emplace_back("X-Content-Type-Options", "nosniff");
  answer.fields.emplace_back("X-Frame-Options", "DENY");
  answer.fields.emplace_back("Referrer-Policy", "no-referrer");
  answer.fields.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  answer.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
}

/// A page of another place has another origin. Empty, or what is wrong.
std::string wrong_origin(const WebRequest& request, std::string_view host) {
  if (request.origins.empty()) return "";
  const bool own =
      request.origins.size() == 1 && lower(request.origins[0]) == "http://" + lower(host);
  return own ? "" : "a page of another place asks for this one";
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') : host.find(':');
  if (host.starts_with('[') && end == std::string_view::npos) return false;
  const size_t length = host.starts_with('[') ? end + 1 : std::min(end, host.size());
  const std::string_view rest = host.substr(length);
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return false;
  const std::string name = lower(host.substr(0, length));
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

WebPage::WebPage(std::span<const WebAsset> files) {
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

WebAnswer WebPage::answer(const WebRequest& request) const {
  const auto find = [&]() -> WebAnswer {
    if (request.hosts.size() != 1) return plain_text(400, "expected one field Host");
    if (!is_loopback_host(request.hosts[0])) {
      return plain_text(403, "this is served to 127.0.0.1 and localhost alone");
    }
    const std::string wrong = wrong_origin(request, request.hosts[0]);
    if (!wrong.empty()) return plain_text(403, wrong);
    if (request.method != "GET" && request.method != "HEAD") {
      WebAnswer answer = plain_text(405, "there is nothing here but to GET");
      answer.fields.emplace_back("Allow", "GET, HEAD");
      return answer;
    }
    const std::string_view path = request.target.substr(0, request.target.find('?'));
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
  };
  WebAnswer answer = find();
  const bool known = request.hosts.size() == 1 && is_loopback_host(request.hosts[0]);
  add_rules(answer, known ? request.hosts[0] : "");
  if (request.method == "HEAD") {
    answer.body = {};
    answer.text.clear();
  }
  return answer;
}

}  // namespace attnscope
