// Names and paths of a server that a proxy or another machine reaches: which are taken, which are
// not.
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/viewer/remote/web/front_server.h"
#include "viewer/remote/web/web_page.h"
#include "viewer/remote/web/web_rules.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

WebRequest asked(std::string_view target, std::string_view host) {
  WebRequest request;
  request.method = "GET";
  request.target = target;
  request.hosts = {host};
  return request;
}

std::string field(const WebAnswer& answer, std::string_view name) {
  for (const auto& [key, value] : answer.fields) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace

TEST_CASE("a host that is allowed is that name, with any port where none was told") {
  const WebRules rules{{"hub.example.org", "lab:8443", "[fd00::5]", "10.0.0.5:80"}, "/"};
  for (const char* host : {"hub.example.org", "HUB.Example.ORG", "hub.example.org:1",
                           "hub.example.org:65535", "lab:8443", "LAB:8443", "[fd00::5]",
                           "[FD00::5]:9", "10.0.0.5:80", "localhost:1", "127.0.0.1", "[::1]:5"}) {
    CAPTURE(host);
    CHECK(is_accepted_host(host, rules));
    CHECK(is_accepted_host(host, {}) == is_loopback_host(host));
  }
  for (const char* host : {"",
                           "lab",
                           "lab:844",
                           "lab:84430",
                           "lab:08443",
                           "10.0.0.5",
                           "10.0.0.5:8080",
                           "hub.example.org.",
                           "hub.example.org:",
                           "example.org",
                           "hub.example.org:x",
                           "x.hub.example.org",
                           "hub.example.org@evil.example",
                           "hub.example.org, evil.example",
                           "hub.example.org/",
                           "fd00::5",
                           "[fd00::5",
                           "[fd00::50]",
                           "*",
                           "hub_example_org",
                           "http://lab:8443"}) {
    CAPTURE(host);
    CHECK_FALSE(is_accepted_host(host, rules));
  }
}

TEST_CASE("a page may ask that is of the host itself, or of one that is allowed") {
  const WebRules rules{{"hub.example.org", "lab:8443"}, "/"};
  const std::string local = "127.0.0.1:8000";
  CHECK(is_accepted_origin("http://127.0.0.1:8000", local, rules));
  CHECK(is_accepted_origin("https://hub.example.org", "hub.example.org", rules));
  CHECK(is_accepted_origin("http://hub.example.org", "hub.example.org", rules));
  CHECK(is_accepted_origin("https://hub.example.org:444", "hub.example.org", rules));
  CHECK(is_accepted_origin("https://hub.example.org", local, rules));
  CHECK(is_accepted_origin("https://lab:8443", local, rules));
  for (const char* origin :
       {"https://127.0.0.1:8000", "https://lab", "https://lab:8444", "null", "", "https://",
        "file://hub.example.org", "ws://hub.example.org", "https://hub.example.org/",
        "https://hub.example.org.evil.example", "https://evil.example", "//hub.example.org",
        "https://user@hub.example.org"}) {
    CAPTURE(origin);
    CHECK_FALSE(is_accepted_origin(origin, local, rules));
  }
  CHECK_FALSE(is_accepted_origin("https://hub.example.org", local, {}));
}

TEST_CASE("names of hosts that no address has are refused") {
  CHECK(parse_allowed_host("Hub.Example.org") == "hub.example.org");
  CHECK(parse_allowed_host("lab:8443") == "lab:8443");
  CHECK(parse_allowed_host("[FD00::5]:80") == "[fd00::5]:80");
  // As browsers write it in Host and Origin, whatever zeros were told.
  CHECK(parse_allowed_host("[FD00:0:0:0::0005]") == "[fd00::5]");
  CHECK(parse_allowed_host("[0:0:0:0:0:0:0:5]:8080") == "[::5]:8080");
  for (const char* text :
       {"", "*", "*.example.org", "https://hub.example.org", "hub.example.org/", "hub example",
        "hub;default-src *", "lab:", "lab:x", "lab:123456", "::1", "fd00::5", "[fd00::5", "[]",
        "[x]", ".example.org", "hub\r\nX: y", "lab:80:80", "user@lab"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_allowed_host(text), Catch::Matchers::Contains("--allow-host") &&
                                                    Catch::Matchers::Contains("without wildcards"));
  }
}

TEST_CASE("a base path is one that a browser asks for as it stands") {
  CHECK(parse_base_path("/") == "/");
  CHECK(parse_base_path("/p") == "/p/");
  CHECK(parse_base_path("/tiles/x") == "/tiles/x/");
  CHECK(parse_base_path("/.p/v1%2e2/...") == "/.p/v1%2e2/.../");
  CHECK(parse_base_path("/user/me%40x/proxy/8765/") == "/user/me%40x/proxy/8765/");
  for (const char* text : {"", "p/", "https://hub/p/", "/p//", "//", "/../", "/a/./b/", "/a/..",
                           "/a/%2e%2E/b/", "/.%2e", "/%2e/", "/a b/", "/a?b/", "/a#b/", "/a\"b/",
                           "/a\r\nb/", "/\xc3\xa4/", "/tiles", "/tiles/"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_base_path(text), Catch::Matchers::Contains("--base-path"));
  }
  CHECK_THROWS(parse_base_path("/" + std::string(2000, 'x')));
}

TEST_CASE("the page stands below the base path, and where a proxy took that away") {
  const WebPage page(small_page(), {{}, "/user/me/"});
  const std::string host = "localhost:8000";
  for (const char* target : {"/user/me/", "/", "/user/me/?x", "/user/me/window.js", "/window.js"}) {
    CAPTURE(target);
    CHECK(page.answer(asked(target, host)).status == 200);
  }
  const WebAnswer moved = page.answer(asked("/user/me?x=1", host));
  CHECK(moved.status == 308);
  CHECK(field(moved, "Location") == "./me/");
  const WebPage colon(small_page(), {{}, "/user/http:/"});
  CHECK(field(colon.answer(asked("/user/http:", host)), "Location") == "./http:/");
  for (const char* target :
       {"/user/", "/user", "/user/me/user/me/", "/user/me//", "/user/me/../me/", "/user/you/",
        "/USER/ME/", "/user/me/index.html", "/user/me/../../etc/passwd", "/user%2fme/"}) {
    CAPTURE(target);
    CHECK(page.answer(asked(target, host)).status == 404);
  }
  WebRequest line = asked("/user/me/tiles", host);
  line.upgrade = true;
  CHECK(page.answer(line).status == 403);
  line.origins = {"http://localhost:8000"};
  CHECK(page.answer(line).opens_line);
  line.target = "/tiles";
  CHECK(page.answer(line).opens_line);
}

TEST_CASE("a page of the same place may frame it where a host is allowed, and else nobody") {
  const WebPage alone(small_page(), {{}, "/p/"});
  const WebPage proxied(small_page(), {{"hub.example.org"}, "/"});
  const WebAnswer here = alone.answer(asked("/", "localhost"));
  CHECK(field(here, "X-Frame-Options") == "DENY");
  CHECK(field(here, "Content-Security-Policy").ends_with("frame-ancestors 'none'"));
  const WebAnswer there = proxied.answer(asked("/", "Hub.Example.org"));
  CHECK(there.status == 200);
  CHECK(field(there, "X-Frame-Options") == "SAMEORIGIN");
  const std::string policy = field(there, "Content-Security-Policy");
  CHECK(policy.ends_with("frame-ancestors 'self'"));
  CHECK(policy.find("connect-src 'self' ws://Hub.Example.org wss://Hub.Example.org;") !=
        std::string::npos);
  // What is refused repeats nothing of what was asked.
  const WebAnswer refused = proxied.answer(asked("/", "evil.example"));
  CHECK(refused.status == 403);
  CHECK(refused.text.find("evil") == std::string::npos);
  CHECK(field(refused, "Content-Security-Policy").find("evil") == std::string::npos);
  CHECK(refused.text.find("--allow-host") != std::string::npos);
}
