/* Datagrams of UDP that wait to be read, and connections that wait to be accepted. */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
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

/* Options, a filter that lets nothing through, and a group of which the socket is a member. */
static int with_options(struct sockaddr_in* address) {
  const int made = udp_at(address, INADDR_ANY);
  const int yes = 1, few = 3;
  const struct ip_mreqn group = {{inet_addr("239.7.7.7")}, {htonl(INADDR_LOOPBACK)}, 0};
  MUST(setsockopt(made, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes) == 0 &&
       setsockopt(made, IPPROTO_IP, IP_MULTICAST_TTL, &few, sizeof few) == 0 &&
       setsockopt(made, SOL_SOCKET, SO_PRIORITY, &few, sizeof few) == 0 &&
       setsockopt(made, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0);
  return made;
}

static int option(int socket, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  MUST(getsockopt(socket, level, name, &value, &length) == 0);
  return value;
}

static void filter_all(int socket) {
  struct sock_filter none = {BPF_RET | BPF_K, 0, 0, 0};
  const struct sock_fprog program = {1, &none};
  MUST(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
}

static void must_have_options(int member, struct sockaddr_in address) {
  MUST(option(member, IPPROTO_IP, IP_PKTINFO) == 1 &&
       option(member, IPPROTO_IP, IP_MULTICAST_TTL) == 3 &&
       option(member, SOL_SOCKET, SO_PRIORITY) == 3);
  const int sender = socket(AF_INET, SOCK_DGRAM, 0);
  const struct in_addr here = {htonl(INADDR_LOOPBACK)};
  address.sin_addr.s_addr = inet_addr("239.7.7.7");
  MUST(setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &here, sizeof here) == 0 &&
       sendto(sender, "all", 3, 0, (void*)&address, sizeof address) == 3);
  struct pollfd asked = {member, POLLIN, 0};
  char text[4] = "";
  MUST(poll(&asked, 1, 5000) == 1 && recv(member, text, 3, 0) == 3 && strcmp(text, "all") == 0);
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
  struct sockaddr_in group;
  const int member = with_options(&group);
  int filtered[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered) == 0 && send(filtered[0], "before", 6, 0) == 6);
  filter_all(filtered[1]);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  must_have_options(member, group);
  must_get(to, "first", sender.sin_port);
  must_get(to, "second", gone.sin_port);
  must_get(to, "third one", sender.sin_port);
  MUST(write(caller, "call", 4) == 4);
  char text[20] = "";
  send(filtered[0], "after", 5, MSG_DONTWAIT);
  MUST(recv(filtered[1], text, sizeof text, MSG_DONTWAIT) == 6 && text[0] == 'b' &&
       recv(filtered[1], text, sizeof text, MSG_DONTWAIT) == -1);
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
