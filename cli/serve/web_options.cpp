#include "cli/serve/web_options.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>

#include "core/base/error.h"
#include "viewer/remote/web/web_token.h"
#include "viewer/session/view_link.h"

namespace attnscope {
namespace {

/// Of the laptop, where there is none of this machine to be taken; another one will do.
constexpr int kPortThere = 8765;

/// How ssh comes here: "me@server".
std::string login_here() {
  std::array<char, 256> host{};
  const bool named = ::gethostname(host.data(), host.size() - 1) == 0 && host[0] != '\0';
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found);
  const std::string at = named ? host.data() : "HOST";
  return found == nullptr ? at : std::string(found->pw_name) + "@" + at;
}

/// A path as a part of what ssh takes apart at colons.
std::string forwarded_path(const std::string& path) {
  std::string out;
  for (const char c : std::filesystem::absolute(path).lexically_normal().string()) {
    if (c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// The address of this machine that a browser here asks for.
std::string own_host(const WebOptions& options) {
  if (!options.bind) return "127.0.0.1";
  const BindAddress address = BindAddress::parse(*options.bind);
  return address.everywhere ? "127.0.0.1" : address.host();
}

}  // namespace

std::string WebOptions::given() const {
  if (port != 0) return "--port";
  if (!socket.empty()) return "--socket";
  if (bind) return "--bind";
  if (!hosts.empty()) return "--allow-host";
  if (base) return "--base-path";
  return token_file ? "--token-file" : "";
}

void add_web_options(CommandParser& command, WebOptions& o) {
  command.add_option("--port", o.port, "the port of 127.0.0.1 that it listens at; a free one")
      .in_range(1, 65535)
      .type_name("PORT");
  command
      .add_option("--socket", o.socket,
                  "listen at a Unix socket of this path instead, which only you can open")
      .type_name("PATH");
  command
      .add_option("--bind", o.bind,
                  "listen at this address of the machine (0.0.0.0: all), which other machines may "
                  "reach, instead of 127.0.0.1; nothing is encrypted")
      .type_name("ADDRESS");
  command
      .add_option("--allow-host", o.hosts,
                  "a host that browsers may ask for, beside 127.0.0.1 and localhost: the proxy's, "
                  "or this machine's name; NAME or NAME:PORT, repeatable")
      .type_name("NAME")
      .one_value_each();
  command
      .add_option("--base-path", o.base,
                  "the path that all addresses begin with, of a proxy that leaves it there")
      .type_name("PATH");
  command
      .add_option("--token-file", o.token_file,
                  "keep the token in this file, yours alone, so that open pages find a server that "
                  "was started again; made where it is missing")
      .type_name("FILE");
}

void check_web_options(const WebOptions& o) {
  if (o.port != 0 && !o.socket.empty()) throw usage_error("--port and --socket: expected one");
  if (o.bind && !o.socket.empty()) throw usage_error("--bind and --socket: expected one");
  if (o.token_file && o.token_file->empty()) throw usage_error("--token-file: expected a file");
  web_rules(o, o.port);
}

WebRules web_rules(const WebOptions& o, int port) {
  WebRules rules;
  for (const std::string& host : o.hosts) rules.hosts.push_back(parse_allowed_host(host));
  if (o.base) rules.base = parse_base_path(*o.base);
  if (o.bind) {
    // No name leads to an address that is asked for as such; what is at its other ports is another
    // place. Browsers leave the port 80 out.
    const BindAddress address = BindAddress::parse(*o.bind);
    if (!address.everywhere && !is_loopback_host(address.host())) {
      rules.hosts.push_back(port == 80 ? address.host()
                                       : fmt::format("{}:{}", address.host(), port));
    }
  }
  return rules;
}

WebDoors open_doors(const WebOptions& o) {
  if (!o.socket.empty()) return WebDoors::on_socket(o.socket);
  return o.bind ? WebDoors::on_address(*o.bind, o.port) : WebDoors::on_loopback(o.port);
}

std::string web_token(const WebOptions& o) {
  return o.token_file ? token_of_file(*o.token_file) : new_web_token();
}

std::string web_addresses(const WebOptions& o, const WebDoors& doors, const std::string& token) {
  const int there = doors.port() == 0 ? kPortThere : doors.port();
  const std::string host = own_host(o);
  const std::string here =
      doors.port() == 0 ? forwarded_path(o.socket) : fmt::format("{}:{}", host, doors.port());
  return fmt::format("http://{}:{}{}#token={}\nssh -N -L {} {}\n", host, there,
                     web_rules(o, doors.port()).base, token,
                     shell_quoted(fmt::format("{}:{}", there, here)), shell_quoted(login_here()));
}

void warn_of_reach(const WebOptions& o, const WebDoors& doors, const Console& console) {
  if (!o.bind) return;
  const BindAddress address = BindAddress::parse(*o.bind);
  if (address.loopback) return;
  console.warn(fmt::format(
      "warning: other machines can reach {}:{}. Whoever has the address can look, and whoever sees "
      "the network's traffic has it: nothing is encrypted, the token included",
      address.host(), doors.port()));
  if (address.everywhere && o.hosts.empty()) {
    console.warn(
        "browsers elsewhere are refused until --allow-host tells by which name or address of this "
        "machine they ask");
  }
}

}  // namespace attnscope
