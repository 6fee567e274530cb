#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"
#include "viewer/remote/web/web_page.h"

namespace {

using namespace attnscope;

constexpr std::array<unsigned char, 3> kBytes{1, 2, 3};

const std::vector<WebAsset>& files() {
  static const std::vector<WebAsset> all = {{"/", "text/html", kBytes},
                                            {"/window.js", "text/javascript", kBytes}};
  return all;
}

void require(bool holds) {
  if (!holds) std::abort();
}

/// Written another way than the program's.
bool is_own(std::string host) {
  for (char& c : host) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (host == name) return true;
    const std::string with_port = std::string(name) + ":";
    if (!host.starts_with(with_port) || host.size() == with_port.size()) continue;
    if (host.find_first_not_of("0123456789", with_port.size()) == std::string::npos) return true;
  }
  return false;
}

/// Of a host that the page of a proxy is asked by.
bool is_hub(const std::string& host) {
  std::string lower(host);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string name = lower.substr(0, lower.find(':'));
  return name == "hub.example.org" &&
         lower.find_first_not_of("0123456789:", name.size()) == std::string::npos;
}

void check_fields(const WebRequest& request, const WebAnswer& answer) {
  require(answer.body.empty() || answer.body.data() == kBytes.data());
  if (answer.opens_line) require(!request.origins.empty() && request.upgrade);
  // A field's value goes to the browser as one line.
  for (const auto& [name, value] : answer.fields) {
    require(value.find_first_of("\r\n") == std::string::npos);
  }
}

}  // namespace

// Lines: method, target, hosts, origins and etags, each of which begins with the letter of its
// kind.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const WebPage page(files());
  static const WebPage proxied(files(), {{"hub.example.org"}, "/p/"});
  std::string_view rest = test::fuzz_text(data, size);
  WebRequest request;
  request.upgrade = size % 2 == 1;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("M")) request.method = line.substr(1);
    if (line.starts_with("T")) request.target = line.substr(1);
    if (line.starts_with("H")) request.hosts.push_back(line.substr(1));
    if (line.starts_with("O")) request.origins.push_back(line.substr(1));
    if (line.starts_with("E")) request.etags.push_back(line.substr(1));
  }
  const WebAnswer answer = page.answer(request);
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (answer.opens_line || answer.status < 400) {
    require(request.hosts.size() == 1 && is_own(std::string(request.hosts[0])));
    require(request.method == "GET" || request.method == "HEAD");
    require(path == "/" || path == "/window.js" || (path == "/tiles" && answer.opens_line));
  }
  check_fields(request, answer);
  const WebAnswer there = proxied.answer(request);
  if (there.opens_line || there.status < 400) {
    require(request.hosts.size() == 1);
    const std::string host(request.hosts[0]);
    require(is_own(host) || is_hub(host));
  }
  check_fields(request, there);
  return 0;
}
