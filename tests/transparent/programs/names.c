/* Two processes on two nodes of a job, of which the second connects to the first again and again,
 * by the address that the first node had when the job began. Both are told the addresses by which
 * they know each other, whichever those of their nodes are: by accept(), getsockname() and
 * getpeername(). The first waits in accept() most of the time.
 * Without a job, both are on one machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "step.h"

typedef struct sockaddr_in Address;

/* What one end is told of a connection. */
typedef struct {
  Address own, peer;
} Names;

static Address address_of(const char* variable, uint16_t port) {
  Address address = {.sin_family = AF_INET, .sin_port = htons(port)};
  const char* text = getenv(variable);
  MUST(inet_pton(AF_INET, text != NULL ? text : "127.0.0.1", &address.sin_addr) == 1);
  return address;
}

static Names names_of(int socket) {
  Names names;
  socklen_t length = sizeof(Address);
  memset(&names, 0, sizeof names);
  MUST(getsockname(socket, (struct sockaddr*)&names.own, &length) == 0);
  MUST(length == sizeof(Address));
  MUST(getpeername(socket, (struct sockaddr*)&names.peer, &length) == 0);
  MUST(length == sizeof(Address));
  return names;
}

static int is_host(Address one, Address other) {
  return one.sin_addr.s_addr == other.sin_addr.s_addr;
}
static int is_same(Address one, Address other) {
  return is_host(one, other) && one.sin_port == other.sin_port;
}

static int be_other(uint16_t port) {
  const Address first = address_of("NAMES_FIRST", port);
  for (int i = 0; i < STEPS; ++i) {
    int made = socket(AF_INET, SOCK_STREAM | (i % 2 != 0 ? SOCK_NONBLOCK : 0), 0), error = 0;
    socklen_t length = sizeof error;
    char turn;
    pause_ms(10);
    if (connect(made, (const struct sockaddr*)&first, sizeof first) != 0) {
      MUST(errno == EINPROGRESS);
      while (send(made, "", 0, MSG_NOSIGNAL) != 0) {
        MUST(getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
        pause_ms(1);
      }
    }
    const Names names = names_of(made);
    MUST(is_same(names.peer, first));
    MUST(send(made, &names, sizeof names, MSG_NOSIGNAL) == sizeof names);
    while (recv(made, &turn, 1, 0) != 1) {
      MUST(errno == EAGAIN);
      pause_ms(1);
    }
    close(made);
  }
  return DONE;
}

int main(int argc, char** argv) {
  if (argc == 2) return be_other((uint16_t)atoi(argv[1]));
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  const Address second = address_of("NAMES_SECOND", 0);
  Address own;
  socklen_t length = sizeof own;
  char command[4096];
  MUST(listen(door, 8) == 0);
  MUST(getsockname(door, (struct sockaddr*)&own, &length) == 0);
  const Address first = address_of("NAMES_FIRST", ntohs(own.sin_port));
  snprintf(command, sizeof command, "exec %s %u", argv[0], ntohs(own.sin_port));
  const pid_t other = fork();
  if (other == 0) {
    const char *shell = getenv("DIAPAUSE_RUN_ON"), *host = getenv("NAMES_HOST");
    if (shell != NULL) execl(shell, shell, host != NULL ? host : "node1", command, NULL);
    execl("/bin/sh", "sh", "-c", command, NULL);
    _exit(1);
  }
  for (int i = 0; i < STEPS; ++i) {
    Address from, now;
    Names its;
    length = sizeof from;
    const int accepted = accept(door, (struct sockaddr*)&from, &length);
    MUST(accepted >= 0 && length == sizeof from);
    MUST(recv(accepted, &its, sizeof its, MSG_WAITALL) == sizeof its);
    const Names mine = names_of(accepted);
    length = sizeof now;
    MUST(getsockname(door, (struct sockaddr*)&now, &length) == 0);
    step(i, (unsigned long)(is_host(from, second) * 1000 + is_same(from, mine.peer) * 100 +
                            is_same(mine.own, first) * 10 + is_same(now, own)));
    MUST(is_same(its.own, from) && is_same(its.peer, mine.own));
    MUST(send(accepted, "", 1, MSG_NOSIGNAL) == 1);
    close(accepted);
  }
  int status = 0;
  MUST(waitpid(other, &status, 0) == other);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == DONE);
  return DONE;
}
