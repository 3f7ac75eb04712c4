/* UNIX sockets: pairs of all three types, and connections by path and by abstract name, with
 * something in them. */
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "step.h"

/* A socket that listens; `name` without a leading slash and with '@' in front is abstract. */
static int listen_at(const char* name, struct sockaddr_un* address, socklen_t* length) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  strcpy(address->sun_path, name);
  *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
  if (name[0] == '@') {
    address->sun_path[0] = 0;
  } else {
    ++*length;
  }
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUST(bind(listening, (struct sockaddr*)address, *length) == 0 && listen(listening, 5) == 0);
  return listening;
}

static int gram_at(const char* name, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  strcpy(address->sun_path, name);
  const int made = socket(AF_UNIX, SOCK_DGRAM, 0);
  MUST(bind(made, (struct sockaddr*)address, sizeof *address) == 0);
  return made;
}

static int connect_to(const struct sockaddr_un* address, socklen_t length) {
  const int connected = socket(AF_UNIX, SOCK_STREAM, 0);
  MUST(connect(connected, (const struct sockaddr*)address, length) == 0);
  return connected;
}

/* Sends back what comes, one more, until the other end is closed. */
static void answer(int socket) {
  long value = 0;
  while (read(socket, &value, sizeof value) == sizeof value) {
    ++value;
    MUST(write(socket, &value, sizeof value) == sizeof value);
  }
  _exit(0);
}

/* Sent before the checkpoint and read behind it. */
static void send_ahead(int to, int count) {
  for (int i = 0; i < count; ++i) MUST(write(to, &i, sizeof i) == sizeof i);
}

static void read_all(int from, int count) {
  for (int i = 0, value = 0; i < count; ++i)
    MUST(read(from, &value, sizeof value) == sizeof value && value == i);
}

int main(void) {
  enum { STREAM, PACKET, GRAM, KINDS, AHEAD = 100 };
  const int types[KINDS] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
  int pairs[KINDS][2], answered[2];
  for (int i = 0; i < KINDS; ++i) {
    MUST(socketpair(AF_UNIX, types[i], 0, pairs[i]) == 0);
    send_ahead(pairs[i][0],
               i == GRAM ? 5 : AHEAD); /* of datagrams no more than net.unix.max_dgram_qlen */
    MUST(write(pairs[i][1], "back", 4) == 4);
  }
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, answered) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(answered[0]);
    answer(answered[1]);
  }
  close(answered[1]);
  int half[2], gone[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, half) == 0 &&
       socketpair(AF_UNIX, SOCK_STREAM, 0, gone) == 0);
  MUST(write(half[0], "last", 4) == 4 && shutdown(half[0], SHUT_WR) == 0);
  MUST(write(gone[0], "left", 4) == 4 && close(gone[0]) == 0);

  struct sockaddr_un at_path, by_name, at_sender, at_receiver;
  socklen_t path_length, name_length;
  char name[64];
  snprintf(name, sizeof name, "@diapause-test-%d-%ld", (int)getpid(), (long)time(NULL));
  const int door = listen_at("door", &at_path, &path_length),
            other_door = listen_at(name, &by_name, &name_length);
  const int caller = connect_to(&at_path, path_length),
            other_caller = connect_to(&by_name, name_length);
  const int called = accept(door, NULL, NULL), other_called = accept(other_door, NULL, NULL);
  MUST(called >= 0 && other_called >= 0);
  MUST(write(caller, "hello", 5) == 5 && write(called, "hi", 2) == 2);
  const int set = epoll_create1(0);
  struct epoll_event event = {EPOLLIN, {.u64 = 33}};
  MUST(epoll_ctl(set, EPOLL_CTL_ADD, door, &event) == 0);

  const int sender = gram_at("sender", &at_sender), receiver = gram_at("receiver", &at_receiver);
  const struct sockaddr* const to = (struct sockaddr*)&at_receiver;
  MUST(sendto(sender, "first", 5, 0, to, sizeof at_receiver) == 5 &&
       sendto(sender, "x", 1, 0, to, sizeof at_receiver) == 1);

  for (long i = 0; i < STEPS; ++i) {
    long value = i;
    MUST(write(answered[0], &value, sizeof value) == sizeof value);
    MUST(write(other_caller, &value, sizeof value) == sizeof value);
    step((int)i, (unsigned long)value);
    MUST(read(answered[0], &value, sizeof value) == sizeof value && value == i + 1);
    MUST(read(other_called, &value, sizeof value) == sizeof value && value == i);
  }
  char text[16] = "";
  for (int i = 0; i < KINDS; ++i) {
    read_all(pairs[i][1], i == GRAM ? 5 : AHEAD);
    MUST(read(pairs[i][0], text, sizeof text) == 4 && memcmp(text, "back", 4) == 0);
    MUST(recv(pairs[i][0], text, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  }
  MUST(read(half[1], text, sizeof text) == 4 && memcmp(text, "last", 4) == 0);
  MUST(read(half[1], text, sizeof text) == 0 && write(half[1], "still", 5) == 5 &&
       read(half[0], text, 5) == 5);
  MUST(read(gone[1], text, sizeof text) == 4 && memcmp(text, "left", 4) == 0 &&
       read(gone[1], text, 1) == 0);
  MUST(read(called, text, sizeof text) == 5 && memcmp(text, "hello", 5) == 0);
  MUST(read(caller, text, sizeof text) == 2 && memcmp(text, "hi", 2) == 0);
  struct sockaddr_un found;
  socklen_t length = sizeof found;
  MUST(recvfrom(receiver, text, sizeof text, 0, (struct sockaddr*)&found, &length) == 5);
  MUST(memcmp(text, "first", 5) == 0 && strcmp(found.sun_path, "sender") == 0);
  MUST(recv(receiver, text, sizeof text, 0) == 1 && unlink("sender") == 0 &&
       unlink("receiver") == 0);
  length = sizeof found;
  MUST(getsockname(called, (struct sockaddr*)&found, &length) == 0 &&
       strcmp(found.sun_path, "door") == 0);
  const int late = connect_to(&at_path, path_length);
  MUST(epoll_wait(set, &event, 1, 60000) == 1 && event.data.u64 == 33 &&
       accept(door, NULL, NULL) >= 0);
  MUST((fcntl(door, F_GETFD) & FD_CLOEXEC) != 0);
  MUST(late >= 0 && unlink("door") == 0);
  close(answered[0]);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  printf("all came\n");
  return DONE;
}
