/* Has something that cannot be restored: a socket of the kernel, or what the argument says. */
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "step.h"

static pid_t children[3];
static int begun;

/* A segment of System V of which a part is mapped. */
static void have_segment(void) {
  const int segment = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
  MUST(segment >= 0);
  char* const at = shmat(segment, NULL, 0);
  MUST(at != (void*)-1 && munmap(at + 4096, 4096) == 0);
  MUST(shmctl(segment, IPC_RMID, NULL) == 0);
}

static int wait_for_end(void* nothing) {
  for (;;) pause();
  return nothing != NULL;
}

static void begin_sharing(void) {
  static char stack[65536] __attribute__((aligned(16)));
  children[begun++] = clone(wait_for_end, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
}

static void begin_in_lost_directory(void) {
  const pid_t child = children[begun++] = fork();
  if (child != 0) return;
  MUST((mkdir("lost", 0700) == 0 || errno == EEXIST) && chdir("lost") == 0 &&
       rmdir("../lost") == 0);
  wait_for_end(NULL);
}

/* An epoll set that watches a pipe whose descriptor has another number by now. */
static void have_strange_descriptors(void) {
  int ends[2];
  MUST(pipe(ends) == 0);
  const int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  MUST(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0 && dup(ends[0]) >= 0 &&
       close(ends[0]) == 0);
}

static void begin_as_another_user(void) {
  const pid_t child = children[begun++] = fork();
  if (child != 0) return;
  MUST(setuid(65534) == 0);
  wait_for_end(NULL);
}

/* Two connected sockets of TCP. */
static void connect_pair(int* one, int* other) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int door = socket(AF_INET, SOCK_STREAM, 0);
  *one = socket(AF_INET, SOCK_STREAM, 0);
  MUST(bind(door, (void*)&address, length) == 0 && listen(door, 1) == 0 &&
       getsockname(door, (void*)&address, &length) == 0 &&
       connect(*one, (void*)&address, length) == 0);
  *other = accept(door, NULL, NULL);
  MUST(*other >= 0 && close(door) == 0);
}

/* Sockets with something that cannot be looked at: urgent data, a connection that the other end has
 * reset, and a datagram of which only a part was written. */
static void have_hidden_data(void) {
  int urgent, reader, reset, closed;
  connect_pair(&urgent, &reader);
  MUST(send(urgent, "in time", 7, 0) == 7 && send(urgent, "!", 1, MSG_OOB) == 1 &&
       send(urgent, "later", 5, 0) == 5);
  connect_pair(&reset, &closed);
  const struct linger at_once = {1, 0};
  MUST(setsockopt(closed, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 &&
       close(closed) == 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0);
  MUST(bind(to, (void*)&address, length) == 0 && getsockname(to, (void*)&address, &length) == 0 &&
       connect(from, (void*)&address, length) == 0 && send(from, "part", 4, MSG_MORE) == 4);
  MUST(socket(AF_NETLINK, SOCK_RAW, 0) >= 0); /* so that nobody waits until the others are gone */
}

/* A pair of sockets with a message in it that has no bytes, between others. */
static void have_empty_message(void) {
  int pair[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && send(pair[0], "one", 3, 0) == 3 &&
       send(pair[0], "", 0, 0) == 0 && send(pair[0], "two", 3, 0) == 3);
}

/* What the kernel alone knows of memory. The program says what of that the machine has. */
static void have_strange_memory(void) {
  unsigned long requests = 0;
  MUST(syscall(SYS_io_setup, 4, &requests) == 0);
  char* const pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int key = (int)syscall(SYS_pkey_alloc, 0, 0);
  if (key > 0) MUST(syscall(SYS_pkey_mprotect, pages, 4096, PROT_READ, key) == 0);
  const int mseal = 462;
  const int is_sealed = syscall(mseal, pages + 4096, 4096, 0) == 0;
  printf("%d %d\n", key > 0, is_sealed);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "socket";
  if (strcmp(what, "socket") == 0) MUST(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
  if (strcmp(what, "segment") == 0) have_segment();
  if (strcmp(what, "user") == 0) begin_as_another_user();
  if (strcmp(what, "data") == 0) have_hidden_data();
  if (strcmp(what, "empty") == 0) have_empty_message();
  if (strcmp(what, "memory") == 0) have_strange_memory();
  if (strcmp(what, "many") == 0) {
    begin_sharing();
    begin_in_lost_directory();
    have_strange_descriptors();
  }
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  for (int i = 0; i < begun; ++i) {
    MUST(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i]);
  }
  return DONE;
}
