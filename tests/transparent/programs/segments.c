/* Segments of System V: their ids and keys, one that is to go with its last process, and one that a
 * child shares. */
#include <sys/ipc.h>
#include <sys/shm.h>

#include "step.h"

enum { BYTES = 3 * 4096 + 100 };

static unsigned* attach(int id, int flags) {
  unsigned* at = shmat(id, NULL, flags);
  MUST(at != (void*)-1);
  return at;
}

int main(void) {
  close(open("key", O_CREAT | O_WRONLY, 0600));
  const key_t key = ftok("key", 5);
  const int before =
      shmget(IPC_PRIVATE, 1, IPC_CREAT | 0600); /* so that ids are not the first ones */
  MUST(before >= 0 && key != -1 && shmctl(before, IPC_RMID, NULL) == 0);
  const int named = shmget(key, BYTES, IPC_CREAT | IPC_EXCL | 0640),
            going = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
  MUST(named >= 0 && going >= 0);
  unsigned* const shared = attach(named, 0);
  const unsigned* const seen = attach(named, SHM_RDONLY);
  unsigned* const gone = attach(going, 0);
  MUST(shmctl(going, IPC_RMID, NULL) == 0);
  gone[5000] = 77;
  int told[2];
  MUST(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    while (read(told[0], &byte, 1) == 1 && byte == 'n') {
      ++shared[0];
      ++gone[1];
    }
    MUST(shmdt(gone) == 0);
    _exit(0);
  }
  for (int i = 0; i < STEPS; ++i) {
    MUST(write(told[1], "n", 1) == 1);
    step(i, (unsigned long)i);
  }
  MUST(write(told[1], "e", 1) == 1);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST(seen[0] == STEPS && gone[1] == STEPS && gone[5000] == 77);
  MUST(shmget(key, BYTES, 0) == named);
  struct shmid_ds found;
  MUST(shmctl(named, IPC_STAT, &found) == 0 && found.shm_segsz == BYTES &&
       (found.shm_perm.mode & 0777) == 0640);
  MUST(found.shm_nattch == 2);
  MUST(shmctl(going, IPC_STAT, &found) == 0 && found.shm_nattch == 1);
  MUST(shmdt(gone) == 0 && shmctl(going, IPC_STAT, &found) == -1);
  MUST(shmctl(named, IPC_RMID, NULL) == 0 && unlink("key") == 0);
  printf("all there\n");
  return DONE;
}
