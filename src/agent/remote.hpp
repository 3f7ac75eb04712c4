// Runs commands of a job on its other nodes. A launcher inside the job, such as mpirun, starts its
// daemons on other nodes by what it takes for a remote shell. Here that is a process of the job
// that connects to another process of the job, on the node in question, which starts the command
// there: both are captured and restored like all others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/handshake.hpp"
#include "agent/meeting.hpp"
#include "sys/file.hpp"

namespace diapause::agent {

// The program is called this when it stands for a remote shell.
inline constexpr const char* kRemoteShellName = "diapause-remote";

// Says where the commands of a node are taken.
struct Door {
  std::string host, address;
  std::uint16_t port = 0;  // 0: nowhere
};

// Is the file in that directory by which nodes on one machine tell whose a port is
// (process::PortsOfNodes).
inline constexpr const char* kPortsName = "ports";

// This is a private directory with what the processes of a job need to reach its other nodes. It is
// the same path on all nodes.
class RemoteDirectory {
 public:
  // `path` is made if it does not exist.
  static Result<RemoteDirectory> make(const std::string& path);
  // Writes where the commands of each node are taken, and the secret.
  Status write(const std::vector<Door>& doors, const Secret& secret) const;
  // Lets launchers that this process starts use it, unless the user has told them what to use.
  static void announce(const std::string& path, const Nodes& nodes);
  void remove() const;

 private:
  explicit RemoteDirectory(sys::Directory directory) : directory_(std::move(directory)) {}
  sys::Directory directory_;
};

// Is the process that starts commands for other nodes: `diapause serve LISTENER FILE`. It does not
// return.
int serve_commands(int listener, const std::string& file);
// Stands for a remote shell: `diapause-remote HOST COMMAND...`. Returns the status of the command.
Result<int> run_command_on(const std::string& file, const std::vector<std::string>& words);

}  // namespace diapause::agent
