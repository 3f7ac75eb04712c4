/* A program whose data is scattered in memory: a list is packed into one array before a checkpoint,
 * and only then. Run the program twice: the first run stops half-way on purpose, the second
 * continues and finishes. A third begins anew.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diapause/diapause.h"

enum { kSteps = 90, kStopAt = 50 };

struct node {
  uint64_t value;
  struct node* next;
};

struct list {
  diapause_t* diapause;
  struct node* head;
  uint64_t* packed;
};

static void tell(int status) {
  if (status != DIAPAUSE_OK) fprintf(stderr, "packed: %s\n", diapause_last_error());
}

static void push(struct list* list, uint64_t value) {
  struct node* node = malloc(sizeof *node);
  if (node == NULL) abort();
  *node = (struct node){value, list->head};
  list->head = node;
}

/* The library calls this hook before each capture. The memory must stay until the next capture, or
 * until it is unprotected. */
static int pack(void* context) {
  struct list* list = context;
  uint64_t count = 0;
  for (const struct node* node = list->head; node != NULL; node = node->next) ++count;
  uint64_t* packed = realloc(list->packed, count * sizeof *packed);
  if (packed == NULL) return 1; /* there is no checkpoint, and the program goes on */
  list->packed = packed;
  uint64_t place = count; /* the newest value is the first of the list and the last of the array */
  for (const struct node* node = list->head; node != NULL; node = node->next)
    packed[--place] = node->value;
  return diapause_protect(list->diapause, "list", packed, count, DIAPAUSE_UINT64);
}

/* Asks for the size first, because the length of the list is not known. Returns the step to
 * continue from; 0 is a fresh start. */
static uint64_t continue_from_checkpoint(struct list* list) {
  diapause_restart_info restart;
  diapause_region_info stored;
  const int status = diapause_restart_begin(list->diapause, DIAPAUSE_NEWEST, &restart);
  if (status == DIAPAUSE_ERR_NOT_FOUND) return 0;
  tell(status);
  if (status != DIAPAUSE_OK) exit(2);
  tell(diapause_stored_find(list->diapause, "list", &stored));
  list->packed = malloc(stored.count * sizeof *list->packed);
  if (list->packed == NULL) abort();
  tell(diapause_protect(list->diapause, "list", list->packed, stored.count, DIAPAUSE_UINT64));
  tell(diapause_restore(list->diapause, NULL, 0));
  tell(diapause_restart_end(list->diapause));
  for (uint64_t i = 0; i < stored.count; ++i) push(list, list->packed[i]);
  printf("continuing after step %" PRIu64 "\n", restart.version);
  return restart.version;
}

int main(void) {
  struct list list = {NULL, NULL, NULL};
  diapause_open_options options = DIAPAUSE_OPEN_OPTIONS_INIT;
  options.config_text = "[level1]\nevery_calls = 20\n"; /* due at every twentieth snapshot call */
  tell(diapause_open_with("packed", &options, &list.diapause));
  const uint64_t first = continue_from_checkpoint(&list);
  tell(diapause_on_capture(list.diapause, pack, &list));

  for (uint64_t step = first + 1; step <= kSteps; ++step) {
    push(&list, step * step);
    /* The answer is equal on all ranks and costs nothing. A program may pack its data here instead
     * of in a hook. */
    if (diapause_is_due(list.diapause) == 1)
      printf("a checkpoint is due in step %" PRIu64 "\n", step);
    tell(diapause_snapshot(list.diapause, step, NULL));
    if (first == 0 && step == kStopAt) {
      puts("stopping half-way; run me again");
      fflush(stdout);
      _exit(3); /* like a crash: nothing is closed */
    }
  }

  uint64_t sum = 0, right = 0;
  for (const struct node* node = list.head; node != NULL; node = node->next) sum += node->value;
  for (uint64_t step = 1; step <= kSteps; ++step) right += step * step;
  printf("the squares up to %d add up to %" PRIu64 "\n", kSteps, sum);
  tell(diapause_finish(list.diapause));
  free(list.packed);
  return sum == right ? 0 : 1;
}
