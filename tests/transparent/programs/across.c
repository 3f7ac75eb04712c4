/* Two processes on two nodes of a job, and connections between them that are in every state when a
 * checkpoint is taken: one by which they take turns, one whose buffers are full in both directions,
 * one that is half closed, one that the other end has closed, and one that is made at the end only.
 * The first process also listens at the same port of IPv6, where the machine has that.
 * Without a job, both are on one machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "step.h"

enum { TURNS, FULL, HALF, CLOSED, LATE, CONNECTIONS };
enum { FILL_AT = 5, EMPTY_AT = STEPS - 5, LEFT = 3000 };

static uint16_t port_of(int socket) {
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  MUST(getsockname(socket, (struct sockaddr*)&address, &length) == 0);
  return ntohs(address.sin_port);
}

static int connect_to(uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  int made = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (getenv("ACROSS_ADDRESS") != NULL)
    inet_pton(AF_INET, getenv("ACROSS_ADDRESS"), &address.sin_addr);
  MUST(connect(made, (struct sockaddr*)&address, sizeof address) == 0);
  return made;
}

static void listen_beside(int door) {
  const int yes = 1, beside = socket(AF_INET6, SOCK_STREAM, 0);
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port_of(door))};
  if (beside < 0) return;
  MUST(setsockopt(beside, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0);
  if (bind(beside, (struct sockaddr*)&address, sizeof address) == 0)
    MUST(listen(beside, CONNECTIONS) == 0);
}

static void put(int to, const void* data, size_t bytes) {
  const char* from = data;
  while (bytes > 0) {
    const ssize_t sent = send(to, from, bytes, MSG_NOSIGNAL);
    MUST(sent > 0);
    from += sent;
    bytes -= (size_t)sent;
  }
}

static void get(int from, void* data, size_t bytes) {
  MUST(recv(from, data, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static unsigned char pattern(unsigned long at, int seed) {
  return (unsigned char)(at * 7 + at / 251 + (unsigned)seed);
}

/* Sends until neither end has room for more; returns how many bytes that were. */
static unsigned long fill(int to, int seed) {
  unsigned char piece[4096];
  unsigned long sent = 0;
  int idle = 0;
  while (idle < 20) {
    for (unsigned i = 0; i < sizeof piece; ++i) piece[i] = pattern(sent + i, seed);
    const ssize_t now = send(to, piece, sizeof piece, MSG_DONTWAIT | MSG_NOSIGNAL);
    MUST(now > 0 || errno == EAGAIN);
    if (now > 0) sent += (unsigned long)now;
    idle = now > 0 ? 0 : idle + 1;
    if (now <= 0) pause_ms(5);
  }
  return sent;
}

static void empty(int from, unsigned long bytes, int seed) {
  for (unsigned long at = 0; at < bytes; ++at) {
    static unsigned char piece[4096];
    static unsigned long begin, end;
    if (at == 0) begin = end = 0;
    if (at == end) {
      const size_t most = bytes - at < sizeof piece ? bytes - at : sizeof piece;
      const ssize_t got = recv(from, piece, most, 0);
      MUST(got > 0);
      begin = at;
      end = at + (unsigned long)got;
    }
    MUST(piece[at - begin] == pattern(at, seed));
  }
}

static void must_be_at_its_end(int from) {
  char more;
  MUST(recv(from, &more, 1, 0) == 0);
}

/* The one on the other node: does what the first one says by its turns. */
static int be_other(uint16_t port) {
  int ends[CONNECTIONS];
  char left[LEFT] = "left";
  unsigned long sent = 0, received = 0;
  for (int i = 0; i < LATE; ++i) ends[i] = connect_to(port);
  for (int i = 0; i < STEPS; ++i) {
    uint64_t turn;
    get(ends[TURNS], &turn, sizeof turn);
    if (i == FILL_AT) {
      put(ends[CLOSED], left, sizeof left);
      close(ends[CLOSED]);
      shutdown(ends[HALF], SHUT_WR);
      sent = fill(ends[FULL], 1);
    }
    turn = turn * 3 + (uint64_t)i;
    put(ends[TURNS], &turn, sizeof turn);
    if (i != EMPTY_AT) continue;
    put(ends[TURNS], &sent, sizeof sent);
    get(ends[TURNS], &received, sizeof received);
    empty(ends[FULL], received, 2);
    get(ends[HALF], left, sizeof left);
    ends[LATE] = connect_to(port);
    put(ends[LATE], left, sizeof left);
  }
  return DONE;
}

static pid_t start_other(const char* program, uint16_t port) {
  const char* shell = getenv("DIAPAUSE_RUN_ON");
  const char* host = getenv("ACROSS_HOST");
  char command[4096];
  snprintf(command, sizeof command, "exec %s %u", program, port);
  const pid_t child = fork();
  if (child != 0) return child;
  if (shell != NULL) {
    execl(shell, shell, host != NULL ? host : "node1", command, NULL);
  } else {
    execl("/bin/sh", "sh", "-c", command, NULL);
  }
  _exit(1);
}

int main(int argc, char** argv) {
  if (argc == 2) return be_other((uint16_t)atoi(argv[1]));
  int door = socket(AF_INET, SOCK_STREAM, 0), ends[CONNECTIONS], status = 0;
  char left[LEFT] = "left too";
  unsigned long sent = 0, received = 0;
  MUST(listen(door, CONNECTIONS) == 0);
  listen_beside(door);
  const pid_t other = start_other(argv[0], port_of(door));
  for (int i = 0; i < LATE; ++i) MUST((ends[i] = accept(door, NULL, NULL)) >= 0);
  for (int i = 0; i < STEPS; ++i) {
    uint64_t turn = (uint64_t)i * 5;
    put(ends[TURNS], &turn, sizeof turn);
    if (i == FILL_AT) sent = fill(ends[FULL], 2);
    get(ends[TURNS], &turn, sizeof turn);
    step(i, turn);
    if (i != EMPTY_AT) continue;
    get(ends[TURNS], &received, sizeof received);
    put(ends[TURNS], &sent, sizeof sent);
    MUST(received > 100000 && sent > 100000);
    empty(ends[FULL], received, 1);
    put(ends[HALF], left, sizeof left);
    must_be_at_its_end(ends[HALF]);
    get(ends[CLOSED], left, sizeof left);
    must_be_at_its_end(ends[CLOSED]);
    MUST((ends[LATE] = accept(door, NULL, NULL)) >= 0);
    get(ends[LATE], left, sizeof left);
  }
  MUST(waitpid(other, &status, 0) == other);
  MUST(WIFEXITED(status) && WEXITSTATUS(status) == DONE);
  return DONE;
}
