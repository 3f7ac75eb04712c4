/* Datagram sockets that are connected to others by name, one way and both ways, and that hold a
 * datagram. */
#include <sys/socket.h>
#include <sys/un.h>

#include "step.h"

static int bound_to(const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int made = socket(AF_UNIX, SOCK_DGRAM, 0);
  strcpy(address.sun_path, name);
  unlink(name);
  MUST(bind(made, (void*)&address, sizeof address) == 0);
  return made;
}

static void connect_to(int socket, const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, name);
  MUST(connect(socket, (void*)&address, sizeof address) == 0);
}

static void must_refuse_others(const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int other = socket(AF_UNIX, SOCK_DGRAM, 0);
  strcpy(address.sun_path, name);
  MUST(sendto(other, "x", 1, 0, (void*)&address, sizeof address) < 0 && errno == EPERM);
  MUST(close(other) == 0);
}

int main(void) {
  const int open_to_all = bound_to("open"), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
  const int first = bound_to("first"), second = bound_to("second");
  connect_to(sender, "open");
  connect_to(first, "second");
  connect_to(second, "first");
  const int ways[3][2] = {{sender, open_to_all}, {first, second}, {second, first}};
  for (int i = 0; i < STEPS; ++i) {
    unsigned long sum = 0;
    for (int k = 0; k < 3; ++k) {
      const int sent = i * 10 + k;
      int got = 0;
      MUST(send(ways[k][0], &sent, sizeof sent, 0) == sizeof sent);
      if (i == 0) continue;
      MUST(recv(ways[k][1], &got, sizeof got, MSG_DONTWAIT) == sizeof got);
      MUST(got == sent - 10);
      sum += (unsigned long)got;
    }
    must_refuse_others("first");
    must_refuse_others("second");
    step(i, sum);
  }
  return DONE;
}
