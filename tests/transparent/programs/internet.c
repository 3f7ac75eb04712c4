/* Loopback TCP: sockets that listen and connections within the job, with bytes in them and on their
 * way. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "step.h"

enum { MANY = 200 * 1000 };

struct end {
  int door, caller, called;
  uint16_t port;
};

static struct end make_connection(int family, int options) {
  struct end made;
  struct sockaddr_in6 address = {0};
  struct sockaddr_in* four = (struct sockaddr_in*)&address;
  socklen_t length = family == AF_INET ? sizeof *four : sizeof address;
  address.sin6_family = (sa_family_t)family;
  if (family == AF_INET) four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (family == AF_INET6) address.sin6_addr = in6addr_loopback;
  made.door = socket(family, SOCK_STREAM, 0);
  MUST(setsockopt(made.door, SOL_SOCKET, SO_REUSEADDR, &options, sizeof options) == 0);
  MUST(bind(made.door, (struct sockaddr*)&address, length) == 0 && listen(made.door, 7) == 0);
  MUST(getsockname(made.door, (struct sockaddr*)&address, &length) == 0);
  made.port = ntohs(four->sin_port);
  made.caller = socket(family, SOCK_STREAM, 0);
  MUST(setsockopt(made.caller, IPPROTO_TCP, TCP_NODELAY, &options, sizeof options) == 0);
  MUST(connect(made.caller, (struct sockaddr*)&address, length) == 0);
  made.called = accept(made.door, NULL, NULL);
  MUST(made.called >= 0);
  return made;
}

static unsigned char byte_of(int i) { return (unsigned char)((unsigned)i * 2654435761u >> 13); }

/* Until the kernel takes no more: some wait with the reader, some with the writer. */
static int fill(int to) {
  int sent = 0;
  for (;; ++sent) {
    const unsigned char value = byte_of(sent);
    if (send(to, &value, 1, MSG_DONTWAIT) != 1) break;
  }
  MUST(errno == EAGAIN);
  return sent;
}

static void send_many(int to) {
  for (int i = 0; i < MANY; i += 1000) {
    unsigned char part[1000];
    for (int k = 0; k < 1000; ++k) part[k] = byte_of(i + k);
    MUST(send(to, part, sizeof part, 0) == sizeof part);
  }
}

static void read_exactly(int from, int count) {
  unsigned char value = 0;
  for (int i = 0; i < count; ++i)
    MUST(recv(from, &value, 1, MSG_WAITALL) == 1 && value == byte_of(i));
  MUST(recv(from, &value, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static int option(int socket, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  MUST(getsockopt(socket, IPPROTO_TCP, name, &value, &length) == 0);
  return value;
}

int main(void) {
  const struct end talk = make_connection(AF_INET, 1), both = make_connection(AF_INET6, 0);
  const struct end full = make_connection(AF_INET, 1), half = make_connection(AF_INET, 1),
                   gone = make_connection(AF_INET, 0), over = make_connection(AF_INET6, 0),
                   past = make_connection(AF_INET, 0), past6 = make_connection(AF_INET6, 0);
  /* The kernel keeps the ports of their doors busy for a minute (TIME-WAIT), in which no other
   * socket gets them. */
  close(past.called), close(past.caller), close(past6.called), close(past6.caller);
  const int small = 4096;
  MUST(setsockopt(full.called, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
  MUST(setsockopt(full.caller, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  const int on_the_way = fill(full.caller);
  send_many(both.caller);
  send_many(both.called);
  MUST(send(half.caller, "last", 4, 0) == 4 && shutdown(half.caller, SHUT_WR) == 0);
  MUST(send(gone.caller, "left", 4, 0) == 4 && close(gone.caller) == 0);
  MUST(send(over.caller, "over", 4, 0) == 4 && shutdown(over.caller, SHUT_RDWR) == 0);
  close(half.door); /* a connection whose door is shut */
  const pid_t child = fork();
  if (child == 0) {
    close(talk.caller);
    long value = 0;
    while (recv(talk.called, &value, sizeof value, MSG_WAITALL) == sizeof value) {
      value = value * 3 + 1;
      MUST(send(talk.called, &value, sizeof value, 0) == sizeof value);
    }
    _exit(0);
  }
  close(talk.called);
  for (long i = 0; i < STEPS; ++i) {
    long value = i;
    MUST(send(talk.caller, &value, sizeof value, 0) == sizeof value);
    step((int)i, (unsigned long)i);
    MUST(recv(talk.caller, &value, sizeof value, MSG_WAITALL) == sizeof value &&
         value == i * 3 + 1);
  }
  read_exactly(full.called, on_the_way);
  read_exactly(both.called, MANY);
  read_exactly(both.caller, MANY);
  char text[16] = "";
  MUST(recv(half.called, text, sizeof text, 0) == 4 && memcmp(text, "last", 4) == 0);
  MUST(recv(half.called, text, 1, 0) == 0 && send(half.called, "still", 5, 0) == 5 &&
       recv(half.caller, text, 5, 0) == 5);
  MUST(recv(gone.called, text, sizeof text, 0) == 4 && memcmp(text, "left", 4) == 0);
  MUST(recv(gone.called, text, 1, 0) == 0);
  MUST(recv(over.called, text, sizeof text, 0) == 4 && memcmp(text, "over", 4) == 0);
  MUST(recv(over.called, text, 1, 0) == 0 && recv(over.caller, text, 1, 0) == 0);
  MUST(option(talk.caller, TCP_NODELAY) == 1);
  struct sockaddr_in found;
  socklen_t length = sizeof found;
  MUST(getpeername(talk.caller, (struct sockaddr*)&found, &length) == 0 &&
       ntohs(found.sin_port) == talk.port);
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  MUST(connect(late, (struct sockaddr*)&found, length) == 0 && accept(talk.door, NULL, NULL) >= 0);
  close(talk.caller);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  printf("all came\n");
  return DONE;
}
