/* Tests what SCR's functions promise, on each rank alike:
 * scr_functions begin|continue|fetch|choose|chosen|failed. The run that begins ends without
 * SCR_Finalize, as after a crash. */
#include <mpi.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"
#include "scr.h"

#define A_HUNDRED                                      \
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int rank;

/* Returns the rank's file of a dataset, as a path below the prefix directory. */
static const char* file_of(const char* dataset) {
  static char name[200];
  snprintf(name, sizeof name, "%s/deep/%d.txt", dataset, rank);
  return name;
}

static void write_text(const char* path, const char* text) {
  FILE* const file = fopen(path, "w");
  EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int holds_text(const char* path, const char* text) {
  char found[200] = "";
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  const int is_read = fgets(found, sizeof found, file) != NULL;
  return fclose(file) == 0 && is_read && strcmp(found, text) == 0;
}

static int exists(const char* path) {
  struct stat status;
  return stat(path, &status) == 0;
}

/* Each rank's file holds the name of its dataset. */
static int dataset(const char* name, int flags, int valid) {
  char path[SCR_MAX_FILENAME];
  EXPECT(SCR_Start_output(name, flags) == SCR_SUCCESS);
  EXPECT(SCR_Start_output("another", flags) != SCR_SUCCESS);
  EXPECT(SCR_Route_file(file_of(name), path) == SCR_SUCCESS);
  write_text(path, name);
  return SCR_Complete_output(valid);
}

static int is_offered(const char* expected) {
  char name[SCR_MAX_FILENAME] = "";
  int is_there = 7;
  EXPECT(SCR_Have_restart(&is_there, name) == SCR_SUCCESS);
  return is_there == 1 && strcmp(name, expected) == 0;
}

static int restart(const char* expected, int valid) {
  char path[SCR_MAX_FILENAME];
  EXPECT(is_offered(expected));
  EXPECT(SCR_Start_restart(NULL) == SCR_SUCCESS);
  EXPECT(SCR_Route_file("no/such/file", path) != SCR_SUCCESS);
  EXPECT(SCR_Route_file(file_of(expected), path) == SCR_SUCCESS && holds_text(path, expected));
  snprintf(path, sizeof path, "%d.txt", rank); /* without its folders */
  EXPECT(SCR_Route_file(path, path) == SCR_SUCCESS && holds_text(path, expected));
  EXPECT(SCR_Route_file("elsewhere.txt", path) != SCR_SUCCESS);
  return SCR_Complete_restart(valid);
}

static int gives(const char* question, const char* expected) {
  char* const value = (char*)SCR_Config(question);
  const int is_same =
      value == NULL ? expected == NULL : expected != NULL && strcmp(value, expected) == 0;
  free(value);
  return is_same;
}

static void parameters_are_set_asked_and_forgotten(void) {
  EXPECT(gives("SCR_FLUSH", NULL));
  EXPECT(SCR_Config("SCR_FLUSH =3") == NULL && gives("SCR_FLUSH", "3"));
  EXPECT(SCR_Config("SCR_FLUSH=") == NULL && gives("SCR_FLUSH", NULL));
  EXPECT(SCR_Configf("CKPT=%d INTERVAL = 1 TYPE=%s", 0, "SINGLE") == NULL);
  EXPECT(gives("CKPT=0 TYPE", "SINGLE") && gives("CKPT=1 TYPE", NULL) && gives("CKPT", "0"));
  EXPECT(SCR_Config("CKPT=") == NULL && gives("CKPT=0 TYPE", NULL));
  EXPECT(setenv("SCR_FLUSH", "7", 1) == 0 && gives("SCR_FLUSH", "7") && unsetenv("SCR_FLUSH") == 0);
  SCR_Config("SCR_COPY_TYPE=SINGLE");
  SCR_Config("SCR_CACHE_SIZE=10");
  SCR_Config("SCR_CHECKPOINT_INTERVAL=3");
  SCR_Config("SCR_HALT_SECONDS=100");
}

static void a_dataset_is_whole_or_not_there(void) {
  char path[SCR_MAX_FILENAME];
  EXPECT(dataset("invalid", SCR_FLAG_CHECKPOINT, rank != 1) != SCR_SUCCESS);
  EXPECT(dataset("invalid", SCR_FLAG_OUTPUT, rank != 1) != SCR_SUCCESS &&
         !exists(file_of("invalid")));
  EXPECT(SCR_Start_output("missing", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
  EXPECT(rank == 0 || SCR_Route_file("missing/file", path) == SCR_SUCCESS);
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS);
  EXPECT(SCR_Start_output("shared", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
  EXPECT(SCR_Route_file("shared/file", path) == SCR_SUCCESS);
  write_text(path, "mine");
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS);
  EXPECT(SCR_Start_output("outside", SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
  EXPECT(SCR_Route_file("/somewhere/else", path) != SCR_SUCCESS);
  EXPECT(SCR_Route_file("../else", path) != SCR_SUCCESS);
  static char deep[] = "outside/" A_HUNDRED "/" A_HUNDRED "/" A_HUNDRED;
  EXPECT(SCR_Route_file(deep, path) != SCR_SUCCESS);
  deep[250] = '\0'; /* as long as it may be */
  EXPECT(SCR_Route_file(deep, path) == SCR_SUCCESS);
  EXPECT(SCR_Complete_output(0) != SCR_SUCCESS);
  EXPECT(SCR_Start_output("nothing", SCR_FLAG_NONE) != SCR_SUCCESS);
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS);
}

/* Programs put the rank into the name of the file, and should not into that of the dataset. */
static void all_ranks_begin_the_same_dataset(void) {
  char name[20];
  snprintf(name, sizeof name, "own.%d", rank);
  EXPECT(SCR_Start_output(name, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS);
  EXPECT(SCR_Start_output("mixed", rank == 1 ? SCR_FLAG_OUTPUT : SCR_FLAG_CHECKPOINT) !=
         SCR_SUCCESS);
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS); /* none was begun */
}

static void output_is_at_its_own_path(void) {
  char path[SCR_MAX_FILENAME];
  EXPECT(dataset("plot", SCR_FLAG_OUTPUT, 1) == SCR_SUCCESS && holds_text(file_of("plot"), "plot"));
  EXPECT(SCR_Start_output("together", SCR_FLAG_OUTPUT) == SCR_SUCCESS);
  EXPECT(SCR_Route_file("together.txt", path) == SCR_SUCCESS);
  if (rank == 2) write_text(path, "all");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(SCR_Complete_output(1) == SCR_SUCCESS && holds_text("together.txt", "all"));
  EXPECT(SCR_Delete("plot") == SCR_SUCCESS && !exists(file_of("plot")));
}

static void it_says_when(void) {
  int is_due = 7, is_near = 7;
  for (int call = 1; call <= 6; ++call) {
    EXPECT(SCR_Need_checkpoint(&is_due) == SCR_SUCCESS && is_due == (call % 3 == 0));
  }
  EXPECT(SCR_Should_exit(&is_near) == SCR_SUCCESS && !is_near);
  setenv("SCR_END_TIME", "1000", 1); /* in 1970 */
  EXPECT(SCR_Should_exit(&is_near) == SCR_SUCCESS && is_near);
  EXPECT(SCR_Need_checkpoint(&is_due) == SCR_SUCCESS && is_due);
  unsetenv("SCR_END_TIME");
}

static void what_is_missing_is_refused(void) {
  static char longest[2 * SCR_MAX_FILENAME];
  char path[SCR_MAX_FILENAME] = "untouched";
  memset(longest, 'a', sizeof longest - 1);
  EXPECT(SCR_Have_restart(NULL, NULL) != SCR_SUCCESS && SCR_Should_exit(NULL) != SCR_SUCCESS);
  EXPECT(SCR_Need_checkpoint(NULL) != SCR_SUCCESS);
  EXPECT(SCR_Route_file(NULL, path) != SCR_SUCCESS && SCR_Route_file("", path) != SCR_SUCCESS);
  EXPECT(SCR_Route_file("file", NULL) != SCR_SUCCESS);
  EXPECT(SCR_Route_file(longest, path) != SCR_SUCCESS && strcmp(path, "untouched") == 0);
  EXPECT(SCR_Current(NULL) != SCR_SUCCESS && SCR_Current("") != SCR_SUCCESS);
  EXPECT(SCR_Drop("") != SCR_SUCCESS && SCR_Delete(NULL) != SCR_SUCCESS);
}

static void begin(void) {
  char path[SCR_MAX_FILENAME];
  int is_there = 7;
  EXPECT(SCR_Have_restart(&is_there, NULL) == SCR_SUCCESS && !is_there);
  EXPECT(SCR_Start_restart(path) != SCR_SUCCESS && SCR_Complete_restart(1) != SCR_SUCCESS);
  EXPECT(SCR_Route_file("any/file", path) == SCR_SUCCESS && strcmp(path, "any/file") == 0);
  a_dataset_is_whole_or_not_there();
  all_ranks_begin_the_same_dataset();
  output_is_at_its_own_path();
  it_says_when();
  what_is_missing_is_refused();
  EXPECT(dataset("first", SCR_FLAG_CHECKPOINT, 1) == SCR_SUCCESS && !exists(file_of("first")));
  EXPECT(dataset("second", SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT, 1) == SCR_SUCCESS);
  EXPECT(holds_text(file_of("second"), "second"));
  EXPECT(dataset("third", SCR_FLAG_CHECKPOINT, 1) == SCR_SUCCESS);
  EXPECT(dataset("fourth", SCR_FLAG_CHECKPOINT, 1) == SCR_SUCCESS);
  EXPECT(SCR_Drop("fourth") == SCR_SUCCESS);
  EXPECT(SCR_Start_checkpoint() == SCR_SUCCESS);
  EXPECT(SCR_Complete_checkpoint(rank != 2) != SCR_SUCCESS);
}

static void go_on(void) {
  EXPECT(restart("third", rank != 1) != SCR_SUCCESS); /* one rank could not */
  EXPECT(restart("second", 1) == SCR_SUCCESS);
  EXPECT(is_offered("second"));                                        /* a run may go back again */
  EXPECT(SCR_Current("fifth") == SCR_SUCCESS && is_offered("second")); /* there is none */
  EXPECT(SCR_Current("first") == SCR_SUCCESS && restart("first", 1) == SCR_SUCCESS);
  EXPECT(dataset("fourth", SCR_FLAG_CHECKPOINT, 1) == SCR_SUCCESS); /* it counts again */
  EXPECT(is_offered("fourth") && SCR_Current("fifth") == SCR_SUCCESS);
}

/* What is said of restarts counts for later runs too, until there is a new checkpoint. */
static void choose(const char* part) {
  const char* const bypass = getenv("SCR_CACHE_BYPASS");
  int is_there = 7;
  if (strcmp(part, "choose") == 0)
    EXPECT(is_offered("fourth") && SCR_Current("second") == SCR_SUCCESS && is_offered("second"));
  if (strcmp(part, "chosen") == 0) EXPECT(restart("second", rank != 1) != SCR_SUCCESS);
  if (strcmp(part, "failed") != 0) return;
  if (bypass != NULL && strcmp(bypass, "0") == 0) { /* the first was in the cache alone */
    EXPECT(SCR_Have_restart(&is_there, NULL) == SCR_SUCCESS && !is_there);
  } else {
    EXPECT(is_offered("first"));
  }
  EXPECT(SCR_Current("fourth") == SCR_SUCCESS && restart("fourth", 1) == SCR_SUCCESS);
  EXPECT(SCR_Current("second") == SCR_SUCCESS && is_offered("second"));
  EXPECT(dataset("fifth", SCR_FLAG_CHECKPOINT, 1) == SCR_SUCCESS && is_offered("fifth"));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int begins = strcmp(argv[1], "begin") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT(SCR_Complete_output(1) != SCR_SUCCESS); /* before SCR_Init */
  char path[SCR_MAX_FILENAME] = "";
  EXPECT(SCR_Route_file("early/file", path) == SCR_SUCCESS && strcmp(path, "early/file") == 0);
  EXPECT(setenv("SCR_ENABLE", "0", 1) == 0 && SCR_Init() != SCR_SUCCESS);
  EXPECT(SCR_Route_file("any/file", path) == SCR_SUCCESS && strcmp(path, "any/file") == 0);
  EXPECT(unsetenv("SCR_ENABLE") == 0);
  EXPECT(strcmp(SCR_Get_version(), SCR_VERSION) == 0);
  parameters_are_set_asked_and_forgotten();
  EXPECT(SCR_Init() == SCR_SUCCESS);
  EXPECT(SCR_Init() != SCR_SUCCESS);
  if (begins) {
    begin();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(argv[1], "continue") == 0) go_on();
  if (strcmp(argv[1], "fetch") == 0) EXPECT(restart("fourth", 1) == SCR_SUCCESS);
  choose(argv[1]);
  EXPECT(SCR_Finalize() == SCR_SUCCESS && SCR_Finalize() != SCR_SUCCESS);
  MPI_Finalize();
  return 0;
}
