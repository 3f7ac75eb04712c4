/* Semaphores, message queues and segments of System V, with their ids, which belong to no process.
 */
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "step.h"

struct letter {
  long type;
  char text[20];
};

int main(void) {
  const int first = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600),
            semaphores = semget(0x5eed, 3, IPC_CREAT | 0600);
  MUST(first >= 0 && semaphores >= 0 && semctl(first, 0, IPC_RMID) == 0);
  unsigned short values[] = {4, 0, 9};
  MUST(semctl(semaphores, 0, SETALL, values) == 0);
  const int gone = msgget(IPC_PRIVATE, IPC_CREAT | 0600), queue = msgget(0x5eed, IPC_CREAT | 0600);
  MUST(gone >= 0 && queue >= 0 && msgctl(gone, IPC_RMID, NULL) == 0);
  const int segment = shmget(0x5eed, 10000, IPC_CREAT | 0600);
  char* at = shmat(segment, NULL, 0);
  MUST(segment >= 0 && at != (void*)-1);
  strcpy(at + 9000, "kept");
  MUST(shmdt(at) == 0);
  struct letter letter = {5, "five"};
  MUST(msgsnd(queue, &letter, 5, 0) == 0);
  letter.type = 2;
  MUST(msgsnd(queue, &letter, 0, 0) == 0);
  for (int i = 0; i < STEPS; ++i) step(i, (unsigned long)i);
  MUST(semget(0x5eed, 3, 0) == semaphores && msgget(0x5eed, 0) == queue &&
       shmget(0x5eed, 0, 0) == segment);
  unsigned short found[3];
  MUST(semctl(semaphores, 0, GETALL, found) == 0 && memcmp(found, values, sizeof found) == 0);
  struct sembuf take = {0, -4, 0};
  MUST(semop(semaphores, &take, 1) == 0);
  MUST(msgrcv(queue, &letter, 20, 0, IPC_NOWAIT) == 5 && letter.type == 5 &&
       strcmp(letter.text, "five") == 0);
  MUST(msgrcv(queue, &letter, 20, 0, IPC_NOWAIT) == 0 && letter.type == 2);
  MUST(msgrcv(queue, &letter, 20, 0, IPC_NOWAIT) == -1 && errno == ENOMSG);
  at = shmat(segment, NULL, 0);
  MUST(at != (void*)-1 && strcmp(at + 9000, "kept") == 0);
  MUST(semctl(semaphores, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0);
  MUST(shmctl(segment, IPC_RMID, NULL) == 0);
  printf("all there\n");
  return DONE;
}
