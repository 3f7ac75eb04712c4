#include "cli/nodes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "agent/agent.hpp"
#include "agent/remote.hpp"
#include "cli/text.hpp"
#include "cli/verbs.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"

namespace diapause::cli {
namespace {

Result<std::vector<std::string>> hosts_in(const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, sys::read_text_file(sys::real_kernel(), path));
  std::vector<std::string> hosts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string host;
    if (words >> host && !host.starts_with('#')) hosts.push_back(host);
  }
  return hosts;
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

Status check_hosts(const std::vector<std::string>& hosts, Repeated repeated) {
  const std::set<std::string> different(hosts.begin(), hosts.end());
  if (repeated == Repeated::refused && different.size() != hosts.size())
    return fail(Code::argument, "a host is named twice");
  for (const std::string& host : hosts) {
    const bool is_name =
        !host.empty() && !host.starts_with('-') &&
        std::ranges::none_of(host, [](char c) { return c <= ' ' || c == '\'' || c == 127; });
    if (!is_name)
      return fail(Code::argument, "'" + printable(host) + "' cannot be the name of a host");
  }
  const std::string own = short_name(sys::host_name());
  const auto here = std::ranges::find(hosts, own, short_name);
  if (here == hosts.end() || here == hosts.begin()) return {};
  return fail(Code::argument,
              fmt::format("this machine is {}: name it first, or start the job on {}", *here,
                          hosts.front()));
}

int report_to_job(const Result<int>& status) {
  if (status) return *status;
  fmt::print(stderr, "diapause: {}\n", printable_lines(status.error().message));
  // Other remote shells use this status, too, if they could not run the command.
  constexpr int kNoRemoteShell = 255;
  return kNoRemoteShell;
}

}  // namespace

Result<agent::Nodes> nodes_of(const NodeArguments& arguments, Repeated repeated) {
  agent::Nodes nodes;
  nodes.hosts = arguments.hosts;
  if (!arguments.host_file.empty()) {
    DIAPAUSE_TRY_ASSIGN(nodes.hosts, hosts_in(arguments.host_file));
  }
  for (std::uint32_t i = 0; i < arguments.emulated; ++i)
    nodes.hosts.push_back(fmt::format("node{}", i));
  nodes.are_emulated = arguments.emulated > 0;
  nodes.remote_shell = arguments.remote_shell;
  nodes.fan_out = arguments.fan_out;
  nodes.limit_s = arguments.limit_s;
  if (!nodes.are_emulated) DIAPAUSE_TRY(check_hosts(nodes.hosts, repeated));
  return nodes;
}

std::optional<int> serve_job(int argc, char** argv) {
  const std::string called(argc > 0 ? argv[0] : ""), verb(argc > 1 ? argv[1] : "");
  const std::size_t slash = called.rfind('/');
  if (slash != called.npos && called.substr(slash + 1) == agent::kRemoteShellName) {
    return report_to_job(
        agent::run_command_on(called.substr(0, slash) + "/nodes", {argv + 1, argv + argc}));
  }
  if (verb == "node" && argc == 2) return report_to_job(agent::be_invited(standard_error_sink()));
  if ((verb != "serve" && verb != "translate") || argc != 4) return std::nullopt;
  int listener = -1;
  const std::string number(argv[2]);
  std::from_chars(number.data(), number.data() + number.size(), listener);
  return verb == "serve" ? agent::serve_commands(listener, argv[3])
                         : agent::translate(listener, argv[3]);
}

}  // namespace diapause::cli
