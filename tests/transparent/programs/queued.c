/* Datagrams of UDP that wait to be read, and connections that wait to be accepted. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "step.h"

static int udp_at(struct sockaddr_in* address, uint32_t host) {
  const int made = socket(AF_INET, SOCK_DGRAM, 0);
  socklen_t length = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
  MUST(bind(made, (void*)address, length) == 0 && getsockname(made, (void*)address, &length) == 0);
  return made;
}

static void must_get(int socket, const char* expected, in_port_t port) {
  char text[40] = "";
  struct sockaddr_in from = {0};
  socklen_t length = sizeof from;
  MUST(recvfrom(socket, text, sizeof text, MSG_DONTWAIT, (void*)&from, &length) ==
       (ssize_t)strlen(expected));
  MUST(strcmp(text, expected) == 0 && from.sin_port == port);
}

static int listen_at(struct sockaddr_un* address) {
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(address->sun_path);
  MUST(bind(made, (void*)address, sizeof *address) == 0 && listen(made, 5) == 0);
  return made;
}

int main(void) {
  struct sockaddr_in sender, receiver, gone,
      door = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int from = udp_at(&sender, INADDR_LOOPBACK), to = udp_at(&receiver, INADDR_ANY);
  const int lost = udp_at(&gone, INADDR_LOOPBACK);
  receiver.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  MUST(sendto(from, "first", 5, 0, (void*)&receiver, sizeof receiver) == 5);
  MUST(sendto(lost, "second", 6, 0, (void*)&receiver, sizeof receiver) == 6);
  MUST(sendto(from, "third one", 9, 0, (void*)&receiver, sizeof receiver) == 9 && close(lost) == 0);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = sizeof door;
  MUST(bind(listener, (void*)&door, length) == 0 && listen(listener, 5) == 0);
  MUST(getsockname(listener, (void*)&door, &length) == 0 &&
       connect(caller, (void*)&door, length) == 0);
  struct sockaddr_un path = {AF_UNIX, "queued.socket"};
  const int local = listen_at(&path), one = socket(AF_UNIX, SOCK_STREAM, 0),
            other = socket(AF_UNIX, SOCK_STREAM, 0);
  MUST(connect(one, (void*)&path, sizeof path) == 0 &&
       connect(other, (void*)&path, sizeof path) == 0);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  must_get(to, "first", sender.sin_port);
  must_get(to, "second", gone.sin_port);
  must_get(to, "third one", sender.sin_port);
  MUST(write(caller, "call", 4) == 4);
  char text[20] = "";
  const int accepted = accept(listener, NULL, NULL);
  MUST(accepted >= 0 && read(accepted, text, sizeof text) == 4);
  MUST(write(one, "1", 1) == 1 && write(other, "1", 1) == 1);
  for (int i = 0; i < 2; ++i) {
    const int pair = accept(local, NULL, NULL);
    MUST(pair >= 0 && read(pair, text, sizeof text) == 1 && text[0] == '1');
  }
  printf("all came\n");
  return DONE;
}
