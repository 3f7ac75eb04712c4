#include "agent/meeting.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "sys/child.hpp"
#include "sys/open_files.hpp"
#include "sys/process.hpp"

namespace diapause::agent {
namespace {

constexpr double kStepLimit_s = 10;   // for each step of a handshake
constexpr double kStartLimit_s = 60;  // until an agent that was started has come
constexpr double kGlance_s = 0.05;
constexpr int kAttempts = 6;  // to connect to an agent that may be busy with others

constexpr std::string_view kEnd = "end";

// ---- the invitation as text

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', '\x1f');
  return text;
}
std::string original(std::string text) {
  std::ranges::replace(text, '\x1f', '\n');
  return text;
}

template <class T>
Status parse_number(const std::string& text, T& to) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), to);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return {};
  return fail(Code::corrupt, "the first agent sent '" + text + "' where a number must be");
}

// ---- the agents that are started

struct Started {
  std::uint32_t number = 0;
  std::int64_t process = 0;
};

std::vector<std::string> words_of_start(const Nodes& nodes, std::uint32_t number) {
  const std::string program = sys::own_program();
  if (nodes.hosts[number] == nodes.hosts.front() || nodes.are_emulated) return {program, "node"};
  std::vector<std::string> words;
  std::istringstream shell(nodes.remote_shell);
  for (std::string word; shell >> word;) words.push_back(word);
  words.push_back(nodes.hosts[number]);
  words.push_back("'" + program + "' node");
  return words;
}

Error gone(const Nodes& nodes, const Started& one, int status) {
  return {Code::not_found,
          fmt::format("no agent could be started on {}: '{}' ended with status {}",
                      nodes.hosts[one.number],
                      nodes.are_emulated ? "diapause node" : nodes.remote_shell, status)};
}

std::string names_of_missing(const Nodes& nodes, const Mail& mail) {
  std::vector<std::string> missing;
  for (std::uint32_t i = 1; i < nodes.hosts.size(); ++i) {
    if (!mail.has_link(i)) missing.push_back(nodes.hosts[i]);
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

// Starts the agents, a few more whenever some have come, so that many do not knock at once.
class Hostess {
 public:
  Hostess(const Invitation& invitation, sys::Listener& listener, Mail& mail)
      : invitation_(invitation), nodes_(invitation.nodes), listener_(listener), mail_(mail) {}
  ~Hostess() {
    if (is_done_) return;
    for (const Started& one : started_) sys::kill_child(one.process);
  }

  Status gather() {
    const auto count = static_cast<std::uint32_t>(nodes_.hosts.size());
    double last_s = sys::monotonic_s();
    std::uint32_t next = 1, come = 1;
    while (come < count) {
      for (; next < count && next - come < kAtOnce; ++next) DIAPAUSE_TRY(start(next));
      auto stream = listener_.accept(kGlance_s);
      if (stream) {
        // A process that does not know the secret is sent away.
        if (const auto hello = welcome(*stream, invitation_.secret, kStepLimit_s)) {
          if (hello->who == 0 || hello->who >= count || mail_.has_link(hello->who)) continue;
          doors_[hello->who] = {stream->peer_address(), hello->number};
          DIAPAUSE_TRY(mail_.add_link(hello->who, std::move(*stream)));
          last_s = sys::monotonic_s();
          ++come;
        }
      } else if (stream.error().code != Code::timeout) {
        return fail(stream.error());
      }
      DIAPAUSE_TRY(look_after());
      if (sys::monotonic_s() - last_s > kStartLimit_s) {
        return fail(Code::not_found,
                    fmt::format("no agent came from {} within {:g} s: can it reach port {} of {}?",
                                names_of_missing(nodes_, mail_), kStartLimit_s, listener_.port(),
                                fmt::join(invitation_.addresses, " or ")));
      }
    }
    is_done_ = true;
    return {};
  }

  struct Door {
    std::string address;
    std::uint32_t port = 0;
  };
  const std::map<std::uint32_t, Door>& doors() const { return doors_; }
  std::vector<std::int64_t> processes() const {
    std::vector<std::int64_t> all;
    for (const Started& one : started_) all.push_back(one.process);
    return all;
  }

 private:
  static constexpr std::uint32_t kAtOnce = 32;

  Status start(std::uint32_t number) {
    Invitation mine = invitation_;
    mine.number = number;
    DIAPAUSE_TRY_ASSIGN(const std::int64_t process,
                        sys::start_with_input(words_of_start(nodes_, number), mine.text()));
    started_.push_back({number, process});
    return {};
  }

  Status look_after() {
    for (const Started& one : started_) {
      const auto status =
          mail_.has_link(one.number) ? std::nullopt : sys::status_if_ended(one.process);
      if (status) return fail(gone(nodes_, one, *status));
    }
    return {};
  }

  const Invitation& invitation_;
  const Nodes& nodes_;
  sys::Listener& listener_;
  Mail& mail_;
  std::vector<Started> started_;
  std::map<std::uint32_t, Door> doors_;
  bool is_done_ = false;
};

// ---- links between agents other than the first

// Makes the links to `peers`: to those with lower numbers by connecting, from the others by waiting
// for them. The one with the lowest number only waits, so that nobody waits in a circle.
class Linker {
 public:
  Linker(std::shared_ptr<const Doors> doors, Secret secret)
      : doors_(std::move(doors)), secret_(secret) {}

  Status operator()(Mail& mail, std::span<const std::uint32_t> peers) const {
    for (const std::uint32_t peer : peers) {
      if (peer < mail.own() && !mail.has_link(peer)) DIAPAUSE_TRY(connect_to(mail, peer));
    }
    const double end_s = sys::monotonic_s() + kStartLimit_s;
    for (const std::uint32_t peer : peers) {
      while (!mail.has_link(peer)) {
        auto stream = doors_->listener->accept(std::max(kGlance_s, end_s - sys::monotonic_s()));
        if (!stream)
          return fail(Code::comm, fmt::format("{} does not connect: {}", mail.name(peer),
                                              stream.error().message));
        const auto hello = welcome(*stream, secret_, kStepLimit_s);
        const bool is_known = hello && hello->who < mail.size() && !mail.has_link(hello->who);
        if (is_known) DIAPAUSE_TRY(mail.add_link(hello->who, std::move(*stream)));
      }
    }
    return {};
  }

 private:
  Status connect_to(Mail& mail, std::uint32_t peer) const {
    Status done;
    for (int tries = 0; tries < kAttempts; ++tries) {
      auto stream =
          sys::Stream::connect(doors_->addresses[peer], doors_->ports[peer], kStepLimit_s);
      done =
          stream ? greet(*stream, secret_, {mail.own(), 0}, kStartLimit_s) : fail(stream.error());
      if (done) return mail.add_link(peer, std::move(*stream));
      if (done.error().code == Code::denied) break;
    }
    return fail(Code::comm,
                fmt::format("{} cannot be reached: {}", mail.name(peer), done.error().message));
  }

  std::shared_ptr<const Doors> doors_;
  Secret secret_;
};

// Tells all agents where the others are; on the first one `mine` is the list.
Result<Doors> share_doors(Mail& mail, const std::vector<std::string>& lines) {
  std::string text = fmt::format("{}", fmt::join(lines, "\n"));
  if (mail.own() == 0) {
    std::vector<Post> posts;
    for (std::uint32_t i = 1; i < mail.size(); ++i)
      posts.push_back({i, as_byte_view(std::string_view(text))});
    DIAPAUSE_TRY(mail.transfer(posts, {}));
  } else {
    const std::uint32_t first = 0;
    DIAPAUSE_TRY_ASSIGN(const std::vector<ByteVector> got, mail.transfer({}, {&first, 1}));
    text.assign(reinterpret_cast<const char*>(got[0].data()), got[0].size());
  }
  Doors doors;
  std::istringstream words(text);
  for (std::string address; words >> address;) {
    std::uint16_t port = 0;
    words >> port;
    doors.addresses.push_back(address);
    doors.ports.push_back(port);
  }
  if (doors.addresses.size() != mail.size())
    return fail(Code::comm, "the first agent does not tell where the others are");
  return doors;
}

// Each link is an open file.
Status allow_links(std::size_t count) {
  constexpr std::size_t kOtherFiles = 128;
  Status allowed = sys::allow_open_files(count + kOtherFiles);
  if (!allowed) {
    allowed.error().message =
        fmt::format("an agent with connections to {} others: {}", count, allowed.error().message);
  }
  return allowed;
}

Result<Company> settle(std::unique_ptr<Mail> mail, const Invitation& invitation, Doors doors,
                       sys::Listener listener) {
  Company company;
  company.nodes = invitation.nodes;
  company.branch = {invitation.number, mail->size(), invitation.nodes.fan_out};
  company.doors = std::make_shared<Doors>(std::move(doors));
  company.doors->listener = std::make_shared<sys::Listener>(std::move(listener));
  const Linker linker(company.doors, invitation.secret);
  const std::vector<std::uint32_t> neighbours = company.branch.neighbours();
  DIAPAUSE_TRY(linker(*mail, neighbours));
  mail->set_neighbours(neighbours);
  mail->connect_by(linker);
  company.mail = std::move(mail);
  return company;
}

}  // namespace

std::string Invitation::text() const {
  std::string text;
  const auto line = [&](std::string_view name, const auto& value) {
    text += fmt::format("{} {}\n", name, value);
  };
  for (const std::string& host : nodes.hosts) line("host", host);
  line("emulated", nodes.are_emulated ? 1 : 0);
  line("fan-out", nodes.fan_out);
  line("limit", nodes.limit_s);
  line("number", number);
  line("secret", secret.text());
  for (const std::string& address : addresses) line("address", address);
  line("port", port);
  line("job", job);
  line("config", config_path);
  line("directory", one_line(directory));
  for (const auto& [name, value] : environment) line("environment", one_line(name + "=" + value));
  line("restart", task.is_restart ? 1 : 0);
  line("continue", task.beginning == Beginning::from_newest ? 1 : 0);
  if (task.version) line("version", *task.version);
  line("mapped", task.is_mapped ? 1 : 0);
  for (const std::string& pattern : task.files) line("files", one_line(pattern));
  return text + std::string(kEnd) + "\n";
}

Result<Invitation> Invitation::parse(const std::string& text) {
  Invitation made;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != kEnd) {
    const std::size_t space = line.find(' ');
    const std::string name = line.substr(0, space),
                      value = space == line.npos ? "" : line.substr(space + 1);
    std::uint32_t number = 0;
    if (name == "host") made.nodes.hosts.push_back(value);
    if (name == "address") made.addresses.push_back(value);
    if (name == "job") made.job = value;
    if (name == "config") made.config_path = value;
    if (name == "files") made.task.files.push_back(original(value));
    if (name == "directory") made.directory = original(value);
    if (name == "environment") {
      const std::size_t equals = value.find('=');
      made.environment.emplace_back(original(value.substr(0, equals)),
                                    original(value.substr(equals + 1)));
    }
    if (name == "emulated") {
      DIAPAUSE_TRY(parse_number(value, number));
      made.nodes.are_emulated = number != 0;
    }
    if (name == "secret") {
      DIAPAUSE_TRY_ASSIGN(made.secret, Secret::parse(value));
    }
    if (name == "fan-out") DIAPAUSE_TRY(parse_number(value, made.nodes.fan_out));
    if (name == "limit") DIAPAUSE_TRY(parse_number(value, made.nodes.limit_s));
    if (name == "number") DIAPAUSE_TRY(parse_number(value, made.number));
    if (name == "port") DIAPAUSE_TRY(parse_number(value, made.port));
    if (name == "restart") {
      DIAPAUSE_TRY(parse_number(value, number));
      made.task.is_restart = number != 0;
    }
    if (name == "continue") {
      DIAPAUSE_TRY(parse_number(value, number));
      made.task.beginning = number != 0 ? Beginning::from_newest : Beginning::anew;
    }
    if (name == "version") DIAPAUSE_TRY(parse_number(value, made.task.version.emplace()));
    if (name == "mapped") {
      DIAPAUSE_TRY(parse_number(value, number));
      made.task.is_mapped = number != 0;
    }
  }
  const bool is_whole = line == kEnd && made.number != 0 && made.number < made.nodes.hosts.size() &&
                        made.nodes.fan_out != 0 && !made.addresses.empty();
  if (is_whole) return made;
  return fail(
      Code::argument,
      "'diapause node' is started by 'diapause launch', and reads from standard input what to do");
}

std::unique_ptr<comm::Comm> Company::comm() const {
  const auto first = std::ranges::find(nodes.hosts, nodes.hosts[branch.own]) - nodes.hosts.begin();
  return make_node_comm(*mail, branch, nodes.are_emulated ? 0 : static_cast<std::uint32_t>(first));
}

Result<Company> invite(Invitation invitation, const LogSink& log) {
  const Nodes& nodes = invitation.nodes;
  DIAPAUSE_TRY(allow_links(nodes.hosts.size()));
  DIAPAUSE_TRY_ASSIGN(sys::Listener listener, sys::Listener::open());
  invitation.port = listener.port();
  invitation.addresses =
      nodes.are_emulated ? std::vector<std::string>{"127.0.0.1"} : sys::own_addresses();
  if (invitation.addresses.empty())
    return fail(Code::io, "this machine has no address that other nodes could reach");
  DIAPAUSE_TRY_ASSIGN(Mail opened, Mail::open(0, nodes.hosts));
  auto mail = std::make_unique<Mail>(std::move(opened));
  mail->begin_round(1);
  Hostess hostess(invitation, listener, *mail);
  DIAPAUSE_TRY(hostess.gather());
  std::vector<std::string> lines = {
      fmt::format("{} {}", invitation.addresses.front(), listener.port())};
  for (const auto& [number, door] : hostess.doors())
    lines.push_back(fmt::format("{} {}", door.address, door.port));
  DIAPAUSE_TRY_ASSIGN(Doors doors, share_doors(*mail, lines));
  log(Severity::information, fmt::format("agents run on {} nodes", nodes.hosts.size()));
  DIAPAUSE_TRY_ASSIGN(Company company,
                      settle(std::move(mail), invitation, std::move(doors), std::move(listener)));
  company.started = hostess.processes();
  return company;
}

Result<Company> come(const Invitation& invitation) {
  const Nodes& nodes = invitation.nodes;
  DIAPAUSE_TRY(allow_links(std::min<std::size_t>(nodes.hosts.size(), nodes.fan_out)));
  DIAPAUSE_TRY_ASSIGN(Mail opened, Mail::open(invitation.number, invitation.nodes.hosts));
  auto mail = std::make_unique<Mail>(std::move(opened));
  mail->begin_round(1);
  DIAPAUSE_TRY_ASSIGN(sys::Listener listener, sys::Listener::open());
  Status done = fail(Code::argument, "the first agent has no address");
  for (const std::string& address : invitation.addresses) {
    auto stream = sys::Stream::connect(address, invitation.port, kStepLimit_s);
    done = stream ? greet(*stream, invitation.secret, {invitation.number, listener.port()},
                          kStartLimit_s)
                  : fail(stream.error());
    if (!done) continue;
    DIAPAUSE_TRY(mail->add_link(0, std::move(*stream)));
    break;
  }
  DIAPAUSE_TRY(done);
  DIAPAUSE_TRY_ASSIGN(Doors doors, share_doors(*mail, {}));
  return settle(std::move(mail), invitation, std::move(doors), std::move(listener));
}

}  // namespace diapause::agent
