// Who gets which file of the page.
#include <string>

#include "tests/support/catch.h"
#include "tests/viewer/remote/web/front_server.h"
#include "viewer/remote/web/web_page.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

WebRequest get(std::string_view target) {
  WebRequest request;
  request.method = "GET";
  request.target = target;
  request.hosts = {"127.0.0.1:8000"};
  return request;
}

std::string value_of(const WebAnswer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.fields) {
    if (key == name) return value;
  }
  return "";
}

std::string body_of(const WebAnswer& answer) {
  return {reinterpret_cast<const char*>(answer.body.data()), answer.body.size()};
}

}  // namespace

TEST_CASE("only this machine's own names are hosts, with any port") {
  for (const char* host : {"127.0.0.1", "127.0.0.1:1", "localhost", "LocalHost:65535", "[::1]",
                           "[::1]:8000", "localhost:00080"}) {
    CAPTURE(host);
    CHECK(is_loopback_host(host));
  }
  for (const char* host : {"",
                           "evil.example",
                           "evil.example:8000",
                           "127.0.0.1.evil.example",
                           "localhost.",
                           "localhost.evil.example",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "127.0.0.1:80000000",
                           "127.0.0.1 ",
                           " localhost",
                           "::1",
                           "[::1",
                           "[::1]8000",
                           "[::1]:",
                           "[::2]",
                           "127.1",
                           "0.0.0.0",
                           "127.0.0.2",
                           "user@localhost",
                           "localhost:80:80",
                           "[",
                           "]",
                           ":",
                           "[]:1",
                           "2130706433"}) {
    CAPTURE(host);
    CHECK_FALSE(is_loopback_host(host));
  }
}

TEST_CASE("the page's files are sent with what keeps them where they belong") {
  const WebPage page(small_page());
  const WebAnswer answer = page.answer(get("/?anything"));
  CHECK(answer.status == 200);
  CHECK(body_of(answer) == "the page");
  CHECK(answer.length == 8);
  CHECK(value_of(answer, "Content-Type") == "text/html; charset=utf-8");
  CHECK(value_of(answer, "Content-Encoding") == "gzip");
  CHECK(value_of(answer, "Cache-Control") == "no-cache");
  CHECK(value_of(answer, "X-Content-Type-Options") == "nosniff");
  CHECK(value_of(answer, "Referrer-Policy") == "no-referrer");
  const std::string policy = value_of(answer, "Content-Security-Policy");
  CHECK(policy.starts_with("default-src 'self'; script-src 'self' 'wasm-unsafe-eval';"));
  CHECK(policy.find("connect-src 'self' ws://127.0.0.1:8000;") != std::string::npos);
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(value_of(page.answer(get("/window.wasm")), "Content-Type") == "application/wasm");
}

TEST_CASE("a browser keeps a file as long as it is the same, and asks each time") {
  const WebPage page(small_page());
  const std::string etag = value_of(page.answer(get("/window.js")), "ETag");
  REQUIRE(etag.size() > 10);
  WebRequest again = get("/window.js");
  again.etags = {etag};
  CHECK(page.answer(again).status == 304);
  CHECK(page.answer(again).body.empty());
  CHECK(value_of(page.answer(again), "Content-Security-Policy") != "");
  WebRequest other = get("/");
  other.etags = {etag};
  CHECK(page.answer(other).status == 200);
}

TEST_CASE("nothing but the page's files is sent, whatever is asked for") {
  const WebPage page(small_page());
  for (const char* target :
       {"", "*", "/index.html", "//", "/.", "/..", "/../../etc/passwd", "/%2e%2e/etc/passwd",
        "/window.js/", "/window.js%00", "/WINDOW.JS", "window.js", "/./window.js",
        "http://127.0.0.1/window.js", "/etc/passwd", "/tiles/", "/proc/self/environ"}) {
    CAPTURE(target);
    const WebAnswer answer = page.answer(get(target));
    CHECK(answer.status == 404);
    CHECK(answer.body.empty());
    CHECK(value_of(answer, "Content-Security-Policy") != "");
  }
}

TEST_CASE("names that lead here from elsewhere, and pages of other places, get nothing") {
  const WebPage page(small_page());
  WebRequest rebound = get("/");
  rebound.hosts = {"evil.example:8000"};
  CHECK(page.answer(rebound).status == 403);
  CHECK(page.answer(rebound).text.find("evil") == std::string::npos);
  rebound.hosts = {};
  CHECK(page.answer(rebound).status == 400);
  rebound.hosts = {"127.0.0.1:8000", "127.0.0.1:8000"};
  CHECK(page.answer(rebound).status == 400);
  for (const char* origin : {"null", "http://evil.example", "https://127.0.0.1:8000",
                             "http://127.0.0.1:8001", "http://localhost:8000", ""}) {
    CAPTURE(origin);
    WebRequest foreign = get("/tiles");
    foreign.upgrade = true;
    foreign.origins = {origin};
    CHECK(page.answer(foreign).status == 403);
    CHECK_FALSE(page.answer(foreign).opens_line);
    foreign.target = "/window.js";
    CHECK(page.answer(foreign).status == 403);
  }
}

TEST_CASE("a WebSocket is opened for the page's own origin alone") {
  const WebPage page(small_page());
  WebRequest request = get("/tiles");
  CHECK(page.answer(request).status == 426);
  request.upgrade = true;
  CHECK(page.answer(request).status == 403);
  request.origins = {"http://127.0.0.1:8000"};
  CHECK(page.answer(request).opens_line);
  request.hosts = {"LOCALHOST:8000"};
  request.origins = {"http://localhost:8000"};
  CHECK(page.answer(request).opens_line);
  request.origins = {"http://localhost:8000", "http://localhost:8000"};
  CHECK(page.answer(request).status == 403);
}

TEST_CASE("there is nothing to be done here but to read") {
  const WebPage page(small_page());
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", ""}) {
    CAPTURE(method);
    WebRequest request = get("/");
    request.method = method;
    CHECK(page.answer(request).status == 405);
    CHECK(value_of(page.answer(request), "Allow") == "GET, HEAD");
    CHECK(page.answer(request).body.empty());
  }
  WebRequest head = get("/window.js");
  head.method = "HEAD";
  CHECK(page.answer(head).status == 200);
  CHECK(page.answer(head).body.empty());
  CHECK(page.answer(head).length == 10);
}
