/* Uses an instance in an order that chance decides: regions come, go, grow, shrink and move, a
 * rank may have none, versions hold files or regions that only they have, ranks give up, restarts
 * go back, and instances are closed and opened anew. Every restart must find what the journal of
 * the rank says, also after the program was killed.
 *
 *   any_order SEED STEPS DIRECTORY
 *
 * The directory is for the journals: "RANK.VERSION" is what a rank had when it took that version,
 * and "certain" is a version that all ranks can restart from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "task.h"

enum { kRegions = 8, kAdded = 3, kNameBytes = 8, kMostFiles = 4, kNoFiles = 100 };

struct region {
  char name[kNameBytes];
  uint64_t count; /* of the 64-bit numbers in `data` */
  uint64_t* data;
  bool is_protected;
};

static struct region regions[kRegions], added[kAdded];
static diapause_t* diapause;
static uint64_t common_state, own_state, version;
static const char* directory;

/* The same numbers on all ranks. */
static uint64_t common(uint64_t below) { return mix(common_state++, 1) % below; }
static uint64_t own(uint64_t below) { return mix(own_state++, 2) % below; }

static uint64_t any_count(void) {
  const uint64_t counts[] = {0, 1, own(100), own(3000), 512 * own(40), own(200000)};
  return counts[own(6)];
}

/* Writes to all of a region, or to a few places of it. */
static void change(struct region* region) {
  if (region->count > 2000 && own(2) == 0) {
    for (int i = 0; i < 20; ++i) region->data[own(region->count)] = own(UINT64_MAX);
  } else {
    fill(region->data, region->count * sizeof *region->data, own(UINT64_MAX));
  }
}

static void protect(struct region* region) {
  CHECK_STATUS(DIAPAUSE_OK, diapause_protect(diapause, region->name, region->data, region->count,
                                             DIAPAUSE_UINT64));
  region->is_protected = true;
}

static void forget(struct region* region) {
  if (!region->is_protected) return;
  CHECK_STATUS(DIAPAUSE_OK, diapause_unprotect(diapause, region->name));
  region->is_protected = false;
  free(region->data);
  region->data = NULL;
}

/* Protects memory of another size, after the former is unprotected or while it is not. */
static void renew(struct region* region) {
  uint64_t* former = NULL;
  if (own(2) == 0) {
    forget(region);
  } else if (region->is_protected) {
    former = region->data;
  }
  region->count = any_count();
  region->data = allocate(region->count * sizeof *region->data);
  fill(region->data, region->count * sizeof *region->data, own(UINT64_MAX));
  protect(region);
  free(former);
}

static FILE* journal(uint64_t of, const char* mode) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d.%llu", directory, world_rank(), (unsigned long long)of);
  return fopen(path, mode);
}

static void write_region(FILE* file, const struct region* region) {
  CHECK(fwrite(region->name, kNameBytes, 1, file) == 1);
  CHECK(fwrite(&region->count, sizeof region->count, 1, file) == 1);
  CHECK(fwrite(region->data, sizeof *region->data, region->count, file) == region->count);
}

/* Writes down what the next version will hold: the number of its files, or kNoFiles if it is no
 * version of files, and the regions. */
static void note(uint64_t files, int additional) {
  FILE* const file = journal(version, "w");
  CHECK(file != NULL && fwrite(&files, sizeof files, 1, file) == 1);
  for (int i = 0; i < kRegions; ++i) {
    if (regions[i].is_protected) write_region(file, &regions[i]);
  }
  for (int i = 0; i < additional; ++i) write_region(file, &added[i]);
  fclose(file);
}

static uint64_t file_bytes(uint64_t number) {
  return mix(mix(version, number), (uint64_t)world_rank()) % 30000;
}

static void write_files(const char* where, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/file%llu", where, (unsigned long long)i);
    FILE* const file = fopen(path, "w");
    for (uint64_t k = 0; k < file_bytes(i); ++k) fputc((int)(mix(i, k) % 256), file);
    CHECK(fclose(file) == 0);
  }
}

static void check_files(uint64_t count) {
  const char* where = NULL;
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore_files(diapause, &where));
  for (uint64_t i = 0; i < count; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/file%llu", where, (unsigned long long)i);
    FILE* const file = fopen(path, "r");
    if (!CHECK(file != NULL)) continue;
    uint64_t k = 0;
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file), ++k) {
      if (byte != (int)(mix(i, k) % 256)) break;
    }
    CHECK(feof(file) && k == file_bytes(i));
    fclose(file);
  }
}

static void note_certain(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() != 0) return;
  char path[512], next[520];
  snprintf(path, sizeof path, "%s/certain", directory);
  snprintf(next, sizeof next, "%s.next", path);
  FILE* const file = fopen(next, "w");
  fprintf(file, "%llu\n", (unsigned long long)version);
  fclose(file);
  rename(next, path);
}

static uint64_t certain(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/certain", directory);
  unsigned long long number = 0;
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%llu", &number) != 1) number = 0;
  fclose(file);
  return number;
}

static void take(void) {
  for (int i = 0; i < kRegions; ++i) {
    if (regions[i].is_protected && own(2) == 0) change(&regions[i]);
  }
  ++version;
  note(kNoFiles, 0);
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint(diapause, version, 1 + (int)common(4), NULL));
}

static void take_files(void) {
  const char* where = NULL;
  const uint64_t count = own(kMostFiles);
  ++version;
  CHECK_STATUS(DIAPAUSE_OK, diapause_files(diapause, &where));
  write_files(where, count);
  note(count, 0);
  CHECK_STATUS(DIAPAUSE_OK,
               diapause_checkpoint_files(diapause, version, 1 + (int)common(4), 1, NULL));
}

/* Takes a version in steps, with regions that only it holds, or gives it up on one rank. */
static void take_in_steps(int ranks) {
  ++version;
  CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_begin(diapause, version, 1 + (int)common(4), NULL));
  const int additional = (int)own(kAdded + 1);
  for (int i = 0; i < additional; ++i) {
    snprintf(added[i].name, kNameBytes, "added%d", i);
    added[i].count = any_count();
    added[i].data = allocate(added[i].count * sizeof *added[i].data);
    fill(added[i].data, added[i].count * sizeof *added[i].data, own(UINT64_MAX));
    CHECK_STATUS(DIAPAUSE_OK, diapause_checkpoint_add(diapause, added[i].name, added[i].data,
                                                      added[i].count, DIAPAUSE_UINT64));
  }
  note(kNoFiles, additional);
  const bool is_given_up = common(4) == 0;
  const int quitter = (int)common((uint64_t)ranks);
  if (is_given_up && quitter == world_rank()) {
    diapause_checkpoint_give_up(diapause, "chance wants it");
  } else {
    CHECK_STATUS(is_given_up ? DIAPAUSE_ERR_ARGUMENT : DIAPAUSE_OK,
                 diapause_checkpoint_commit(diapause, NULL));
  }
  for (int i = 0; i < additional; ++i) free(added[i].data);
  if (is_given_up) --version;
}

/* Reads the next region of a journal into memory of its own. Returns false after the last. */
static bool read_region(FILE* file, struct region* region) {
  if (fread(region->name, kNameBytes, 1, file) != 1) return false;
  CHECK(fread(&region->count, sizeof region->count, 1, file) == 1);
  region->data = allocate(region->count * sizeof *region->data);
  return CHECK(fread(region->data, sizeof *region->data, region->count, file) == region->count);
}

/* Compares the stored regions with the journal, and goes on with them. */
static void check_regions(FILE* file, uint64_t files) {
  struct region expected[kRegions + kAdded];
  int count = 0;
  while (count < kRegions + kAdded && read_region(file, &expected[count])) ++count;
  CHECK(diapause_stored_count(diapause) == (int64_t)files + count);
  for (int i = 0; i < kRegions; ++i) forget(&regions[i]);
  struct region* restored[kRegions + kAdded];
  for (int i = 0; i < count; ++i) {
    const bool is_added = expected[i].name[0] == 'a';
    struct region* const one =
        (is_added ? added : regions) + (expected[i].name[is_added ? 5 : 6] - '0');
    memcpy(one->name, expected[i].name, kNameBytes);
    one->count = expected[i].count;
    one->data = allocate(one->count * sizeof *one->data);
    protect(one);
    restored[i] = one;
  }
  CHECK_STATUS(DIAPAUSE_OK, diapause_restore(diapause, NULL, 0));
  for (int i = 0; i < count; ++i) {
    CHECK(expected[i].count == 0 || memcmp(expected[i].data, restored[i]->data,
                                           expected[i].count * sizeof *expected[i].data) == 0);
    free(expected[i].data);
    if (restored[i]->name[0] == 'a') forget(restored[i]);
  }
}

/* Restores the newest version, which is at least the given one, or, if it is there, an older one.
 */
static void go_back(uint64_t least, bool is_newest) {
  diapause_restart_info info;
  const uint64_t wanted = is_newest ? DIAPAUSE_NEWEST : version - common(version < 4 ? version : 4);
  const int status = diapause_restart_begin(diapause, wanted, &info);
  if (status == DIAPAUSE_ERR_NOT_FOUND && (!is_newest || least == 0)) return;
  if (!CHECK_STATUS(DIAPAUSE_OK, status)) return;
  CHECK(!is_newest || info.version >= least);
  const uint64_t before = version;
  version = info.version;
  FILE* const file = journal(version, "r");
  uint64_t files = 0;
  if (CHECK(file != NULL && fread(&files, sizeof files, 1, file) == 1)) {
    check_regions(file, files == kNoFiles ? 0 : files);
    if (files != kNoFiles) check_files(files);
  }
  if (file != NULL) fclose(file);
  CHECK_STATUS(DIAPAUSE_OK, diapause_restart_end(diapause));
  if (before > version) version = before;
}

static void open_anew(void) {
  if (diapause != NULL) CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  CHECK_STATUS(DIAPAUSE_OK, diapause_mpi_open(MPI_COMM_WORLD, "any_order", NULL, &diapause));
  for (int i = 0; i < kRegions; ++i) {
    if (regions[i].is_protected) protect(&regions[i]);
  }
}

static void make_step(int ranks) {
  const uint64_t what = common(12);
  if (what < 3) {
    for (uint64_t i = own(4); i > 0; --i) renew(&regions[own(kRegions)]);
  } else if (what == 3) {
    forget(&regions[own(kRegions)]);
  } else if (what < 7) {
    take();
  } else if (what == 7) {
    take_in_steps(ranks);
  } else if (what == 8) {
    take_files();
  } else if (what == 9 && version > 0) {
    go_back(version, common(3) > 0);
  } else if (what == 10 && version > 0) {
    const int status = diapause_wait(diapause, version, DIAPAUSE_L1, 60);
    CHECK(status == DIAPAUSE_OK || status == DIAPAUSE_ERR_NOT_FOUND);
    note_certain();
  } else if (what == 11 && common(2) == 0) {
    open_anew();
  }
}

int main(int argc, char** argv) {
  begin_checks(&argc, &argv);
  if (argc < 4) return 2;
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  common_state = strtoull(argv[1], NULL, 10) << 32;
  own_state = common_state + ((uint64_t)world_rank() << 24);
  directory = argv[3];
  for (int i = 0; i < kRegions; ++i) snprintf(regions[i].name, kNameBytes, "region%d", i);
  open_anew();
  go_back(certain(), true);
  for (long step = strtol(argv[2], NULL, 10); step > 0; --step) make_step(ranks);
  CHECK_STATUS(DIAPAUSE_OK, diapause_close(diapause));
  return end_checks();
}
