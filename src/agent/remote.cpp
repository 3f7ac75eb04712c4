#include "agent/remote.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "process/translator.hpp"
#include "sys/child.hpp"
#include "sys/path.hpp"
#include "sys/process.hpp"
#include "sys/remote_command.hpp"
#include "sys/text_file.hpp"

namespace diapause::agent {
namespace {

constexpr double kCommandLimit_s = 60;
constexpr const char* kDoorsName = "nodes";
constexpr const char* kHostsName = "hosts";

struct DoorList {
  Secret secret;
  std::vector<Door> doors;
};

Result<DoorList> read_doors(const std::string& file) {
  DIAPAUSE_TRY_ASSIGN(const std::string text, sys::read_text_file(sys::real_kernel(), file));
  std::istringstream lines(text);
  std::string secret;
  lines >> secret;
  DoorList list;
  DIAPAUSE_TRY_ASSIGN(list.secret, Secret::parse(secret));
  Door door;
  while (lines >> door.host >> door.address >> door.port) list.doors.push_back(door);
  return list;
}

Status write_file(const sys::Directory& directory, const char* name, const std::string& text) {
  const std::string temporary = fmt::format("{}-{}", name, sys::process_id());
  {
    DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.create_file(temporary));
    DIAPAUSE_TRY(file.write_all(as_byte_view(std::string_view(text)), 0));
  }
  return directory.rename(temporary, directory, name);
}

void announce_one(const std::string& name, const std::string& value) {
  const auto environment = sys::environment();
  const bool is_set =
      std::ranges::any_of(environment, [&](const auto& one) { return one.first == name; });
  if (!is_set) sys::set_environment(name, value);
}

}  // namespace

Result<RemoteDirectory> RemoteDirectory::make(const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(sys::Directory directory,
                      sys::Directory::make_private(sys::real_kernel(), path));
  DIAPAUSE_TRY(sys::make_link(sys::own_program(), path + "/" + kRemoteShellName));
  return RemoteDirectory(std::move(directory));
}

Status RemoteDirectory::write(const std::vector<Door>& doors, const Secret& secret) const {
  std::string lines = secret.text() + "\n", hosts;
  for (const Door& one : doors) {
    lines += fmt::format("{} {} {}\n", one.host, one.address, one.port);
    hosts += one.host + "\n";
  }
  DIAPAUSE_TRY(write_file(directory_, kDoorsName, lines));
  DIAPAUSE_TRY(
      write_file(directory_, kPortsName, std::string(process::PortsOfNodes::kBytes, '\0')));
  return write_file(directory_, kHostsName, hosts);
}

void RemoteDirectory::announce(const std::string& path, const Nodes& nodes) {
  const std::string shell = path + "/" + kRemoteShellName, hosts = path + "/" + kHostsName;
  sys::set_environment("DIAPAUSE_RUN_ON", shell);
  announce_one("OMPI_MCA_plm", "rsh");
  announce_one("OMPI_MCA_plm_rsh_agent", shell);
  announce_one("OMPI_MCA_orte_default_hostfile", hosts);
  announce_one("HYDRA_LAUNCHER", "rsh");
  announce_one("HYDRA_LAUNCHER_EXEC", shell);
  announce_one("HYDRA_HOST_FILE", hosts);
  if (!nodes.are_emulated) return;
  // These stand for the network between emulated nodes.
  announce_one("OMPI_MCA_btl_tcp_if_include", "lo");
  announce_one("OMPI_MCA_oob_tcp_if_include", "lo");
  announce_one("HYDRA_IFACE", "lo");
}

void RemoteDirectory::remove() const {
  for (const char* name : {kDoorsName, kHostsName, kPortsName, kRemoteShellName})
    (void)directory_.remove_file(name);
  sys::remove_directory(directory_.path());
}

int serve_commands(int listener, const std::string& file) {
  sys::serve_forever(listener, [&](sys::Stream stream) {
    // After a restart the job has another secret, so it is read for each connection.
    const auto list = read_doors(file);
    if (list && welcome(stream, list->secret, kCommandLimit_s)) (void)sys::run_for_another(stream);
  });
}

Result<int> run_command_on(const std::string& file, const std::vector<std::string>& words) {
  // Options of a remote shell, of which launchers give some, come before the host.
  const auto host =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  if (host == words.end()) return fail(Code::argument, "give a host and a command");
  DIAPAUSE_TRY_ASSIGN(const DoorList list, read_doors(file));
  const auto door = std::ranges::find(list.doors, *host, &Door::host);
  if (door == list.doors.end()) {
    return fail(Code::not_found,
                *host + " is no node of this job: name it with --hosts when the job is launched");
  }
  if (door->port == 0)
    return fail(Code::not_found, *host + " is the node that the job was launched on");
  DIAPAUSE_TRY_ASSIGN(sys::Stream stream,
                      sys::Stream::connect(door->address, door->port, kCommandLimit_s));
  DIAPAUSE_TRY(greet(stream, list.secret, {}, kCommandLimit_s));
  return sys::run_remotely(stream, fmt::format("{}", fmt::join(host + 1, words.end(), " ")));
}

}  // namespace diapause::agent
