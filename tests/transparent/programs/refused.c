/* Has something that cannot be restored: a socket of the kernel, or, with the argument `segment`, a segment of
   System V of which a part is mapped. */
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "step.h"

static void have_segment(void) {
  const int segment = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
  MUST(segment >= 0);
  char* const at = shmat(segment, NULL, 0);
  MUST(at != (void*)-1 && munmap(at + 4096, 4096) == 0);
  MUST(shmctl(segment, IPC_RMID, NULL) == 0);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "segment") == 0) {
    have_segment();
  } else {
    MUST(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
  }
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  return DONE;
}
