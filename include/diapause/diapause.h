/* Diapause: checkpoint/restart for parallel programs. This is the C interface; it needs no MPI.
 * Programs with MPI include diapause_mpi.h as well.
 *
 * A program opens an instance, protects regions of its memory by name, and takes numbered
 * checkpoints (versions) at one of four levels. After a failure it opens the instance under the
 * same name and restarts from the newest version that all ranks can have.
 *
 * These rules hold for every function here:
 * - A function that can fail returns DIAPAUSE_OK (0) or a negative diapause_status.
 *   diapause_last_error() then says what failed, on which path, rank, tier or region, and what
 *   to do. No function exits, aborts, throws, or prints to standard output.
 * - All ranks of the communicator make a call that is marked collective, in the same order. It
 *   returns the same status on all ranks: it succeeds on all of them or on none. Calls without
 *   that mark are made by any rank on its own.
 * - Two calls on one instance must not overlap in time, but they may come from different
 *   threads. Different instances are independent. An instance on a communicator uses MPI in the
 *   thread that calls it.
 * - A child by fork has a copy of an instance that only diapause_close accepts, which does nothing
 *   then: the instance remains that of the parent.
 * - A pointer that a call gives stays valid until the next call on the same instance, unless its
 *   description says otherwise.
 * - Sizes are in bytes or in elements, as named. Times are seconds of wall clock, and members
 *   that hold them end in _s.
 * - A struct that a call fills needs no preparation. A struct that a call reads begins as
 *   DIAPAUSE_..._INIT or {0}. Later versions of the library add members at the end of a struct;
 *   a program that was compiled before goes on working with them. */
#ifndef DIAPAUSE_DIAPAUSE_H
#define DIAPAUSE_DIAPAUSE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DIAPAUSE_API __attribute__((visibility("default")))
#else
#define DIAPAUSE_API
#endif

/* The inline functions of this header pass the size of a struct, as the program was compiled
 * with it, to the library. */
#ifdef __cplusplus
#define DIAPAUSE_INLINE inline
#else
#define DIAPAUSE_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One instance: a named set of protected regions and its checkpoints. */
typedef struct diapause_instance diapause_t;

/* Status codes. The numbers are part of the interface and never change. */
typedef enum diapause_status {
  DIAPAUSE_OK = 0,
  DIAPAUSE_ERR_ARGUMENT = -1,  /* an argument is out of range, or ranks disagree on it */
  DIAPAUSE_ERR_CONFIG = -2,    /* configuration: unknown key, wrong type, impossible value */
  DIAPAUSE_ERR_IO = -3,        /* a system call failed */
  DIAPAUSE_ERR_FULL = -4,      /* a tier has no room; the versions before are still there */
  DIAPAUSE_ERR_BUSY = -5,      /* another running job or instance uses the same checkpoints */
  DIAPAUSE_ERR_CORRUPT = -6,   /* stored data is damaged and no intact copy is left */
  DIAPAUSE_ERR_NOT_FOUND = -7, /* there is no such version or region */
  /* Stored data does not fit the program: regions, their size or type, number of ranks. */
  DIAPAUSE_ERR_MISMATCH = -8,
  DIAPAUSE_ERR_COMM = -9,      /* communication between ranks failed */
  DIAPAUSE_ERR_OFF = -10,      /* the instance turned itself off after an earlier failure */
  DIAPAUSE_ERR_INTERNAL = -11, /* a defect in the library */
  /* A directory or file belongs to somebody else, or others can write to it. */
  DIAPAUSE_ERR_DENIED = -12,
  DIAPAUSE_ERR_MEMORY = -13, /* out of memory */
  /* The time given was over first; what was waited for may still happen. */
  DIAPAUSE_ERR_TIMEOUT = -14,
  /* The system lacks memory, descriptors or room for the moment: try again. */
  DIAPAUSE_ERR_AGAIN = -15
} diapause_status;

/* The element types of protected memory. */
typedef enum diapause_type {
  DIAPAUSE_BYTES = 0, /* opaque elements of a size that the program gives */
  DIAPAUSE_INT8 = 1,
  DIAPAUSE_UINT8 = 2,
  DIAPAUSE_INT16 = 3,
  DIAPAUSE_UINT16 = 4,
  DIAPAUSE_INT32 = 5,
  DIAPAUSE_UINT32 = 6,
  DIAPAUSE_INT64 = 7,
  DIAPAUSE_UINT64 = 8,
  DIAPAUSE_FLOAT32 = 9,
  DIAPAUSE_FLOAT64 = 10
} diapause_type;

/* A level says which failures a checkpoint survives. Levels 2 to 4 include level 1. */
typedef enum diapause_level {
  DIAPAUSE_L1 = 1, /* the program or a process dies: the image is kept on its own node */
  DIAPAUSE_L2 = 2, /* a node is lost: a partner node has a copy */
  DIAPAUSE_L3 = 3, /* several nodes of a group are lost: the group has Reed-Solomon parity */
  DIAPAUSE_L4 = 4  /* all nodes are lost: the global directory has the images */
} diapause_level;

/* Who does the work that remains after the capture of a checkpoint: publishing, copies, parity,
 * and the global directory. The numbers never change. */
typedef enum diapause_worker {
  /* The checkpoint call itself: async.mode = "off", or nothing else is possible. */
  DIAPAUSE_WORKER_CALL = 0,
  DIAPAUSE_WORKER_THREAD = 1, /* a thread in the first rank of each node */
  /* The same thread, whose communication is done in the program's calls. */
  DIAPAUSE_WORKER_THREAD_IN_CALLS = 2,
  DIAPAUSE_WORKER_RANK = 3 /* the dedicated rank: the last rank of each node */
} diapause_worker;

/* A level for diapause_wait: the memory is copied, but the version survives no failure yet. */
#define DIAPAUSE_CAPTURED 0

/* Says how the program will write to a region (diapause_declare). */
typedef enum diapause_declaration {
  DIAPAUSE_CHANGING = 0, /* it may write at any time: the default */
  DIAPAUSE_STABLE = 1,   /* it does not write from a checkpoint call to the end of its capture
                            (DIAPAUSE_CAPTURED) */
  DIAPAUSE_CONSTANT = 2  /* it never writes again */
} diapause_declaration;

/* This number stands for the newest version of which every rank can get its data. */
#define DIAPAUSE_NEWEST UINT64_MAX

/* Says what a checkpoint call has done. */
typedef struct diapause_checkpoint_info {
  int taken;            /* 1 if a checkpoint was taken (snapshot: 0 when none was due) */
  uint64_t version;     /* the number the program gave */
  int level_asked;      /* 1..4 */
  int level_reached;    /* deepest level published and durable on all ranks; 0 if none */
  uint64_t bytes;       /* protected bytes of this rank */
  uint64_t bytes_total; /* protected bytes of all ranks; 0 with work in the background */
  double blocked_s;     /* time this rank spent in the call */
  int skipped;          /* 1 if a due checkpoint was not taken because of versions in flight
                           (async.when_full) */
  double waited_s; /* the part of blocked_s spent waiting for versions in flight to make room */
  int background;  /* status of the first failure in the background since the last call; DIAPAUSE_OK
                      if none */
  uint64_t background_version; /* the version that failed; diapause_background_reason() says more */
} diapause_checkpoint_info;

/* Which levels a version has reached. */
typedef struct diapause_progress {
  uint64_t version;
  int level_asked;   /* 1..4 */
  int level_reached; /* deepest level that holds now; 0 if none does yet */
  int in_flight;     /* 1 while the background works on it */
  int captured;      /* 1 when the memory is copied: regions declared stable may be written to */
} diapause_progress;

/* Which version a restart chose. */
typedef struct diapause_restart_info {
  uint64_t version; /* the version restored */
  int level;        /* deepest level that version was published at */
  int stepped_back; /* 1 if a newer version existed and could not be had (diapause_restart_reason)
                     */
  uint64_t bytes;   /* bytes of this rank's stored regions */
  double greatest_error; /* greatest difference of a value on any rank to the captured one; 0: all
                            are exact */
  int redundancy_lost;   /* 1 if a level of it does not hold any more: diapause_restart_end restores
                            it */
} diapause_restart_info;

/* The codecs that may change values. The numbers never change. */
typedef enum diapause_lossy_codec {
  DIAPAUSE_LATTICE = 0, /* a fast uniform quantiser, in every build */
  DIAPAUSE_SZ3 = 1,     /* in libraries that were built with SZ3 */
  DIAPAUSE_ZFP = 2      /* in libraries that were built with zfp */
} diapause_lossy_codec;

/* A function of the program that checks an invariant, such as a sum, an energy, or a sign, on
 * values that a codec has changed. `values[i]` points to the values of the i-th region named.
 * The function returns 0 if the invariant does not hold. It must not call the library. */
typedef int (*diapause_invariant)(const void* const* values, void* context);

/* A function of the program that recomputes what depends on restored values. It is called in the
 * thread of the call that restored them. It returns 0, or any other number if the program cannot
 * go on from these values. It must not call the library. */
typedef int (*diapause_restore_hook)(void* context);

/* A function of the program that prepares the data of a checkpoint, for example by packing it.
 * It is called in the thread of the checkpoint or snapshot call, on every rank and for every
 * checkpoint that is taken, before memory is read. It may call diapause_protect,
 * diapause_protect_bytes, diapause_protect_block, diapause_unprotect and diapause_declare, and
 * no other function of the library. It returns 0, or any other number if there must be no
 * checkpoint now; the checkpoint call then fails on all ranks. */
typedef int (*diapause_capture_hook)(void* context);

/* Says why the program has to stop. The numbers never change. */
typedef enum diapause_stop {
  DIAPAUSE_GO_ON = 0,       /* the program need not stop */
  DIAPAUSE_STOP_SIGNAL = 1, /* a rank received one of the signals of deadline.signals */
  DIAPAUSE_STOP_END = 2     /* the end of the allocation is near */
} diapause_stop;

/* Details of the reason to stop. */
typedef struct diapause_stop_info {
  int signal; /* number of the signal; 0 at the end of the allocation */
  int rank;   /* the rank that received the signal; -1 at the end of the allocation */
} diapause_stop_info;

/* A function of the program that receives the library's messages. `severity` is 0 for an error,
 * 1 for a warning and 2 for information. The function is called in the thread that made the
 * call; it must not call the library. */
typedef void (*diapause_log_function)(void* user, int severity, const char* message);

/* The options of an open call. Begin with DIAPAUSE_OPEN_OPTIONS_INIT, then set what is wanted. */
typedef struct diapause_open_options {
  const char* config_path;   /* a TOML file; NULL: config_text counts */
  const char* config_text;   /* the text of such a file; both NULL: as NULL in diapause_open */
  diapause_log_function log; /* receives all messages, also those of opening; NULL: errors and
                                warnings go to standard error */
  void* log_user;            /* the first argument of `log` */
} diapause_open_options;
#define DIAPAUSE_OPEN_OPTIONS_INIT \
  { NULL, NULL, NULL, NULL }

/* A region as it is stored in the version that a restart has opened. */
typedef struct diapause_region_info {
  const char* name;
  diapause_type type;
  uint64_t element_bytes;
  uint64_t count;
} diapause_region_info;

/* ---- opening and closing ---------------------------------------------------------------- */

/* Opens an instance for a single process. `name` and the global directory together identify the
 * job, and so its checkpoints. A name is 1 to 64 letters, digits, '.', '_' and '-'. `config_path`
 * names a TOML file (docs/configuration.md); NULL stands for the file that $DIAPAUSE_CONFIG names,
 * if it is set, and else for the defaults.
 *
 * The call waits up to `lock_wait_s` for an earlier run of the job to release its checkpoints,
 * and then returns DIAPAUSE_ERR_BUSY. It returns DIAPAUSE_ERR_CONFIG if the configuration is
 * wrong, and DIAPAUSE_ERR_IO or DIAPAUSE_ERR_DENIED if no tier can be used. After an error
 * `*out` is NULL; all other functions return an error for a NULL instance, unless they say
 * otherwise. */
DIAPAUSE_API int diapause_open(const char* name, const char* config_path, diapause_t** out);

/* Opens an instance as diapause_open does, with options; `options` may be NULL. In an MPI
 * program the configuration of rank 0 counts for all ranks. */
DIAPAUSE_INLINE int diapause_open_with(const char* name, const diapause_open_options* options,
                                       diapause_t** out);

/* Ends the job. A program calls this when it has done all of its work and its results are safe.
 * The call waits for the versions in flight, removes all versions from all tiers, or all but the
 * newest of level 4 (`finish.keep`), frees their memory, and releases the instance as
 * diapause_close does. The next start of the program finds nothing to restart from and begins
 * anew; a version that was kept can be restored by its number only. A program that stops before
 * its work is done calls diapause_close instead. After an error the text says what is left; the
 * instance is gone in any case. `instance` may be NULL. Collective. */
DIAPAUSE_API int diapause_finish(diapause_t* instance);

/* Waits for all versions in flight and releases the instance; its checkpoints stay. The call
 * returns the first failure in the background that was not reported yet. The instance is gone in
 * any case. `instance` may be NULL. Collective. */
DIAPAUSE_API int diapause_close(diapause_t* instance);

/* Closes an instance as diapause_close does, but waits only about `seconds` for versions in
 * flight: after that, the step under way is completed and no other one is begun. Levels that
 * were reached stay. Collective. */
DIAPAUSE_API int diapause_close_within(diapause_t* instance, double seconds);

/* ---- what is protected ------------------------------------------------------------------ */

/* Registers `count` elements at `data` as the region named `region` (1 to 255 bytes, unique in the
 * instance). Nothing is copied by this call. A call with a name that is already protected replaces
 * its address, count and type. `data` may be NULL only if `count` is 0.
 *
 * The library writes to the memory during restore calls only. It reads the memory during
 * checkpoint calls and, with work in the background, until the version is captured. So unprotect
 * a region, or protect its name anew, before its memory is freed: both calls wait for a capture
 * under way. Memory that cannot be read, or a pointer to the memory of a GPU, is
 * DIAPAUSE_ERR_ARGUMENT. */
DIAPAUSE_API int diapause_protect(diapause_t* instance, const char* region, void* data,
                                  uint64_t count, diapause_type type);

/* Does the same as diapause_protect, for opaque elements of `element_bytes` (greater than 0)
 * each. */
DIAPAUSE_API int diapause_protect_bytes(diapause_t* instance, const char* region, void* data,
                                        uint64_t count, uint64_t element_bytes);

/* Does the same as diapause_protect, and records that the memory is the block `[start, start +
 * shape)` of a global array of `global_shape`. The three arrays have `dims` numbers each, 1 to
 * 8, for the slowest dimension first. The region has as many elements as the product of `shape`;
 * a shape with a 0 makes it empty. */
DIAPAUSE_API int diapause_protect_block(diapause_t* instance, const char* region, void* data,
                                        diapause_type type, int dims, const uint64_t* shape,
                                        const uint64_t* global_shape, const uint64_t* start);

/* Forgets a region; later checkpoints do not hold it. The call waits for a capture under way. It
 * returns DIAPAUSE_ERR_NOT_FOUND if no region of that name is protected. */
DIAPAUSE_API int diapause_unprotect(diapause_t* instance, const char* region);

/* Declares how the program will write to a region, so that the region can be copied in the
 * background. If the program violates the declaration, the stored region may mix old and new
 * values. The declaration holds until the region is protected anew. Not collective. */
DIAPAUSE_API int diapause_declare(diapause_t* instance, const char* region,
                                  diapause_declaration declaration);

/* Allows a codec to change each value of a region by at most `bound` in the global tier. Copies on
 * nodes stay exact. The region must be of DIAPAUSE_FLOAT32 or DIAPAUSE_FLOAT64. The permission
 * holds until the region is protected anew.
 *
 * Every value is compared before a version is published. A block is stored exactly if one of its
 * values is off by more than the bound or if the bound cannot resolve its values. Every
 * `codec.anchor_every`-th version is exact, too.
 *
 * The call reads all values of the region. It returns DIAPAUSE_ERR_ARGUMENT for another type and
 * for a bound that is not a number, infinite, denormal, zero, negative, or below four units in
 * the last place of the region's largest finite value (not counting a fill value). It returns
 * DIAPAUSE_ERR_CONFIG for a codec that the library was built without. All ranks make the same
 * call, which is not collective. docs/compression.md says what lossy checkpoints may be used
 * for, and what not. */
DIAPAUSE_API int diapause_allow_loss(diapause_t* instance, const char* region,
                                     diapause_lossy_codec codec, double bound);

/* Has every checkpoint of level 4 call `holds` with the values that a restart would give back
 * for these regions. If it returns 0 on one rank, the regions are stored without loss in that
 * version. To find out, each such checkpoint compresses the regions once more while the program
 * waits. All ranks make the same call, which is not collective. */
DIAPAUSE_API int diapause_keep_invariant(diapause_t* instance, const char* const* regions,
                                         uint64_t count, diapause_invariant holds, void* context);

/* Has every restore, also that of diapause_restart, call `hook` after it has written the
 * regions; NULL removes the hook. If the hook fails on one rank, the restore fails on all ranks.
 * Not collective. */
DIAPAUSE_API int diapause_on_restore(diapause_t* instance, diapause_restore_hook hook,
                                     void* context);

/* Has every checkpoint call `hook` before it captures memory; NULL removes the hook. Not
 * collective. */
DIAPAUSE_API int diapause_on_capture(diapause_t* instance, diapause_capture_hook hook,
                                     void* context);

/* ---- checkpoints ------------------------------------------------------------------------ */

/* Takes a checkpoint now. `version` is any number below DIAPAUSE_NEWEST and should be greater than
 * the numbers before: among the versions of one start of the job the greatest number counts as the
 * newest, and the lowest is removed first. A version whose number was used before replaces the
 * older one once it is published.
 *
 * With work in the background the call returns when the memory is captured (diapause_worker_of).
 * If a level above 1 fails in the call, the levels already reached stay: the call returns the
 * error, and `info->level_reached` says what holds. DIAPAUSE_ERR_ARGUMENT says that ranks
 * disagree on `version` or `level`; DIAPAUSE_ERR_FULL that a tier has no room. After either, and
 * after DIAPAUSE_ERR_IO, the versions before are still there and the next call tries again.
 * `info` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint(diapause_t* instance, uint64_t version, int level,
                                        diapause_checkpoint_info* info);

/* Begins a checkpoint in three steps (begin, add, commit). It is for programs that gather their
 * data only when a checkpoint is to be taken, or that may find out on the way that they cannot
 * have one. The call decides on the version and waits for room. If `info->skipped` is 0, the
 * checkpoint is open, and every rank ends it by diapause_checkpoint_commit or
 * diapause_checkpoint_give_up; until then no other checkpoint and no restart can begin.
 * Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_begin(diapause_t* instance, uint64_t version, int level,
                                              diapause_checkpoint_info* info);

/* Adds a region that only the open checkpoint holds, besides all protected regions. The
 * arguments are those of diapause_protect, and DIAPAUSE_BYTES counts single bytes. The commit
 * reads the memory, which may be freed when the commit returns. A later program restores the
 * region by protecting its name. The call returns DIAPAUSE_ERR_ARGUMENT if no checkpoint is open
 * or a region of that name is protected. Not collective: each rank adds what it has. */
DIAPAUSE_API int diapause_checkpoint_add(diapause_t* instance, const char* region, const void* data,
                                         uint64_t count, diapause_type type);

/* Takes the open checkpoint of all regions that are protected and that were added, and closes
 * it. Results, errors and `info` are those of diapause_checkpoint. If one rank gives the
 * checkpoint up, the call returns DIAPAUSE_ERR_ARGUMENT and no rank has the version. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_commit(diapause_t* instance,
                                               diapause_checkpoint_info* info);

/* Ends an open checkpoint for a rank that has no data for it. No rank takes the version, and the
 * commits of the other ranks fail with the text `why`; NULL stands for no reason. Collective,
 * together with the commits of other ranks. */
DIAPAUSE_API int diapause_checkpoint_give_up(diapause_t* instance, const char* why);

/* Takes a checkpoint if the configured intervals say that one is due, at the highest level that
 * is due; the decision is the same on all ranks. Programs call this in every iteration. When the
 * program has to stop (diapause_should_stop), the call takes the deepest checkpoint that still
 * ends in time. `info` may be NULL; `info->taken` says whether a checkpoint was taken. Errors
 * are those of diapause_checkpoint. Collective. */
DIAPAUSE_INLINE int diapause_snapshot(diapause_t* instance, uint64_t version,
                                      diapause_checkpoint_info* info);

/* Returns 1 if the next diapause_snapshot will take a checkpoint, 0 if not, or a negative
 * status; the answer is the same on all ranks. Programs that must pack data before a checkpoint
 * call this at most once in an iteration. The question costs nothing, because the snapshot call
 * then need not agree on the answer again; after 0 the program may leave the snapshot call out.
 * Collective. */
DIAPAUSE_API int diapause_is_due(diapause_t* instance);

/* Returns 1 if the job runs on enough nodes for this level (1 to 4), 0 if not, or a negative
 * status; the answer is the same on all ranks. Level 2 needs 2 nodes, level 3 more nodes than
 * `level3.parity`. diapause_snapshot takes level 1 instead of a level that is not possible;
 * diapause_checkpoint tries, and the version stays at level 1. The question costs nothing. */
DIAPAUSE_API int diapause_has_nodes_for(diapause_t* instance, int level);

/* Returns whether the program has to stop, and why: a diapause_stop, never a status. The last
 * snapshot call has found out and has taken a checkpoint. The program should end as soon as it
 * can; its exit status does not matter. All ranks get the same answer, without communication.
 * For a NULL instance the answer is DIAPAUSE_GO_ON. `info` may be NULL, and is filled only if
 * there is a reason to stop (docs/in-time.md). */
DIAPAUSE_INLINE int diapause_should_stop(diapause_t* instance, diapause_stop_info* info);

/* Returns who does the work that remains after a capture in this instance: a diapause_worker, or
 * DIAPAUSE_ERR_ARGUMENT.
 *
 * By default diapause_checkpoint and diapause_snapshot return as soon as the memory is captured,
 * with level_reached 0, and a thread in the first rank of each node does the rest. If MPI was
 * initialised with less than MPI_THREAD_MULTIPLE, the communication of that thread is done in
 * the next calls of the first ranks of the nodes, which do not wait for it; the log says so
 * once. With async.mode = "rank" the last rank of each node does the rest (diapause_comm). With
 * "off" the two calls return when everything is done. */
DIAPAUSE_API int diapause_worker_of(const diapause_t* instance);

/* Waits until `version` is published and durable at `level` or deeper. With DIAPAUSE_CAPTURED it
 * waits until the memory of this rank is copied, which with copy-on-write is after the
 * checkpoint call. The call returns the error that keeps the version from that level,
 * DIAPAUSE_ERR_TIMEOUT after `seconds`, or DIAPAUSE_ERR_NOT_FOUND for a version that is not
 * among the last 32 taken here. Not collective; but with less than MPI_THREAD_MULTIPLE the
 * version may advance only in calls that the first ranks of other nodes make. */
DIAPAUSE_API int diapause_wait(diapause_t* instance, uint64_t version, int level, double seconds);

/* Says, without waiting, how far `version` has come. It returns DIAPAUSE_ERR_NOT_FOUND as
 * diapause_wait does. Not collective. */
DIAPAUSE_INLINE int diapause_poll(diapause_t* instance, uint64_t version,
                                  diapause_progress* progress);

/* Returns a text about the member `background` of the last checkpoint call that set it: the
 * version and the error. The text is "" if no call did. */
DIAPAUSE_API const char* diapause_background_reason(const diapause_t* instance);

/* ---- files of the program's own --------------------------------------------------------- */

/* Gives the path of an empty directory of this rank, on its node, for files of the next version.
 * The program writes its files there, with any library, also in subdirectories. `*directory` is
 * valid until diapause_checkpoint_files. Collective. */
DIAPAUSE_API int diapause_files(diapause_t* instance, const char** directory);

/* Takes a checkpoint of those files, and of all protected regions, as diapause_checkpoint does.
 * `valid` says whether the files of this rank are complete; if it is 0 on one rank, there is no
 * version, and the call returns DIAPAUSE_ERR_ARGUMENT. The files are copied in the call. When it
 * has succeeded they are removed, and the directory is to be asked for again; after an error the
 * directory is as it was, and the call can be made again.
 *
 * Files may have any size and number, and paths of up to 250 bytes. Empty directories are not
 * kept. Links, hard or symbolic, and everything else that is neither a file nor a directory are
 * DIAPAUSE_ERR_DENIED. `info` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_files(diapause_t* instance, uint64_t version, int level,
                                              int valid, diapause_checkpoint_info* info);

/* Gives the path of a directory of this rank that holds the files of the version that
 * diapause_restart_begin has opened. The files are verified and have the names that they had.
 * They are there until diapause_restart_end. Collective. */
DIAPAUSE_API int diapause_restore_files(diapause_t* instance, const char** directory);

/* ---- restart ---------------------------------------------------------------------------- */

/* Restores all protected regions from `version`. DIAPAUSE_NEWEST stands for the newest version that
 * all ranks can have; any other number stands for that version and no other. The data is read once,
 * straight to its place, and every block is verified there. A damaged block is taken from another
 * level; if no level has it, DIAPAUSE_NEWEST steps back to the next older version. If the loss of a
 * node has left the version with less redundancy than its level promises, the call returns when the
 * data is there, and the redundancy is restored afterwards (diapause_restart_end). Stored regions
 * that are not protected are left out. `info` may be NULL. Collective.
 *
 * The protected memory is unchanged after
 * - DIAPAUSE_ERR_NOT_FOUND: there is nothing to restart from, so this is a fresh start;
 * - DIAPAUSE_ERR_MISMATCH: a protected region is not stored, or is stored with another size or
 *   type.
 *
 * The protected memory holds nothing that can be used after DIAPAUSE_ERR_CORRUPT,
 * DIAPAUSE_ERR_IO and DIAPAUSE_ERR_AGAIN. If no version is found, and a tier that may hold some
 * cannot be read, the call returns the error of that tier, such as DIAPAUSE_ERR_DENIED or
 * DIAPAUSE_ERR_IO. */
DIAPAUSE_INLINE int diapause_restart(diapause_t* instance, uint64_t version,
                                     diapause_restart_info* info);

/* Begins a restart in three steps (begin, restore, end), for programs that must ask for sizes
 * first. The call chooses a version as diapause_restart does, fetches or rebuilds this rank's
 * image, and verifies it. The data is read here to be verified, and once more by
 * diapause_restore. `info` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_restart_begin(diapause_t* instance, uint64_t version,
                                           diapause_restart_info* info);

/* Gives the newest version whose number is at most `at_most`, by the manifests that are there;
 * DIAPAUSE_NEWEST sets no limit. No data is read: diapause_restart_begin with that number may
 * still find it damaged. The call returns DIAPAUSE_ERR_NOT_FOUND if there is none. `at_most` is
 * the same on all ranks. Collective. */
DIAPAUSE_API int diapause_newest(diapause_t* instance, uint64_t at_most, uint64_t* version);

/* Returns how many regions this rank has stored in the version that a restart has opened, or a
 * negative status if no restart is open. Each file of a version of files counts as a region. */
DIAPAUSE_API int64_t diapause_stored_count(const diapause_t* instance);

/* Describe a stored region of this rank, by its `index` (from 0) or by its name. `info->name` is
 * valid until diapause_restart_end. */
DIAPAUSE_INLINE int diapause_stored_at(const diapause_t* instance, uint64_t index,
                                       diapause_region_info* info);
DIAPAUSE_INLINE int diapause_stored_find(const diapause_t* instance, const char* region,
                                         diapause_region_info* info);

/* Restores the named regions into the memory that is protected under their names, or with
 * `count` 0 all protected regions. It may be called more than once. Collective; each rank may
 * name other regions. */
DIAPAUSE_API int diapause_restore(diapause_t* instance, const char* const* regions, uint64_t count);

/* Ends a restart. Redundancy that the failure cost is restored, in the background where there is
 * one: diapause_poll and diapause_wait of the restored version say when its levels hold again.
 * Collective. */
DIAPAUSE_API int diapause_restart_end(diapause_t* instance);

/* Returns why the last restart stepped back to an older version or failed, in one line for each
 * version; "" if it did neither. */
DIAPAUSE_API const char* diapause_restart_reason(const diapause_t* instance);

/* ---- restart without reading ------------------------------------------------------------- */

/* Says when the data of a mapped restart is verified. */
typedef enum diapause_check {
  DIAPAUSE_CHECK_FIRST = 0, /* before the call returns, as in every other restart */
  /* In the background: call diapause_scrub_wait before relying on a result. */
  DIAPAUSE_CHECK_BEHIND = 1
} diapause_check;

/* Begins a restart as diapause_restart_begin does, for regions that are used where they are
 * stored instead of copied: diapause_map then gives their memory. With DIAPAUSE_CHECK_BEHIND the
 * program goes on at once, and a page is read from the stored file when it is first touched; the
 * next checkpoint, restore or diapause_scrub_wait waits for the verification. Images that had to
 * be moved or rebuilt are verified in this call in any case. `check` is the same on all ranks.
 * Collective. */
DIAPAUSE_INLINE int diapause_restart_mapped(diapause_t* instance, uint64_t version, int check,
                                            diapause_restart_info* info);

/* Gives the data of a stored region as private, page-aligned memory of this process, while a
 * restart is open. Writes to it change neither the checkpoint nor what others see, and later
 * checkpoints never change it. It can be protected like any other memory. It is valid until
 * diapause_unmap or diapause_close, beyond the end of the restart; each call gives another
 * address. The data stays readable when Diapause or `diapause prune` removes the file. If a disk
 * fails while a page is read, SIGBUS ends the program, as with every mapped file. Not
 * collective. */
DIAPAUSE_API int diapause_map(diapause_t* instance, const char* region, void** data);

/* Releases memory that diapause_map gave. Unprotect a region that lies there first. Not
 * collective. */
DIAPAUSE_API int diapause_unmap(diapause_t* instance, void* data);

/* Waits until everything that the last restart left unverified has been verified.
 * DIAPAUSE_ERR_CORRUPT names the damaged region: results computed since may be wrong; restart
 * again, which takes another copy or an older version. Until then no checkpoint is taken.
 * Collective. */
DIAPAUSE_API int diapause_scrub_wait(diapause_t* instance);

/* ---- errors, messages, faults ----------------------------------------------------------- */

/* Returns the text of the last error of the calling thread; "" if there was none. It is valid
 * until the next failing call of that thread. */
DIAPAUSE_API const char* diapause_last_error(void);

/* Returns the name of a status code, such as "DIAPAUSE_ERR_FULL". Never NULL. */
DIAPAUSE_API const char* diapause_status_name(int status);

/* Sends the messages of the instance to `function`, with `user` as its first argument; NULL
 * sends errors and warnings to standard error again. */
DIAPAUSE_API int diapause_set_log(diapause_t* instance, diapause_log_function function, void* user);

/* Flips one bit of protected memory on purpose, to test a program: bit `bit` (0 is the least
 * significant) of element `element` of `region`. */
DIAPAUSE_API int diapause_inject_bit_flip(diapause_t* instance, const char* region,
                                          uint64_t element, uint32_t bit);

/* Returns the version of the library, "major.minor.patch". */
DIAPAUSE_API const char* diapause_version(void);

/* ---- structs that may grow ---------------------------------------------------------------- */

/* The inline functions above that take a struct call these functions. The last argument is the
 * size of the struct as the program knows it. Languages that cannot use inline functions of a
 * header call these directly. */
DIAPAUSE_API int diapause_open_sized(const char* name, const diapause_open_options* options,
                                     size_t options_bytes, diapause_t** out);
DIAPAUSE_API int diapause_checkpoint_sized(diapause_t* instance, uint64_t version, int level,
                                           diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_begin_sized(diapause_t* instance, uint64_t version, int level,
                                                 diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_commit_sized(diapause_t* instance,
                                                  diapause_checkpoint_info* info,
                                                  size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_files_sized(diapause_t* instance, uint64_t version, int level,
                                                 int valid, diapause_checkpoint_info* info,
                                                 size_t info_bytes);
DIAPAUSE_API int diapause_snapshot_sized(diapause_t* instance, uint64_t version,
                                         diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_should_stop_sized(diapause_t* instance, diapause_stop_info* info,
                                            size_t info_bytes);
DIAPAUSE_API int diapause_poll_sized(diapause_t* instance, uint64_t version,
                                     diapause_progress* progress, size_t progress_bytes);
DIAPAUSE_API int diapause_restart_sized(diapause_t* instance, uint64_t version,
                                        diapause_restart_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_restart_begin_sized(diapause_t* instance, uint64_t version,
                                              diapause_restart_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_restart_mapped_sized(diapause_t* instance, uint64_t version, int check,
                                               diapause_restart_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_stored_at_sized(const diapause_t* instance, uint64_t index,
                                          diapause_region_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_stored_find_sized(const diapause_t* instance, const char* region,
                                            diapause_region_info* info, size_t info_bytes);

DIAPAUSE_INLINE int diapause_open_with(const char* name, const diapause_open_options* options,
                                       diapause_t** out) {
  return diapause_open_sized(name, options, sizeof *options, out);
}
DIAPAUSE_INLINE int diapause_checkpoint(diapause_t* instance, uint64_t version, int level,
                                        diapause_checkpoint_info* info) {
  return diapause_checkpoint_sized(instance, version, level, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_checkpoint_begin(diapause_t* instance, uint64_t version, int level,
                                              diapause_checkpoint_info* info) {
  return diapause_checkpoint_begin_sized(instance, version, level, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_checkpoint_commit(diapause_t* instance,
                                               diapause_checkpoint_info* info) {
  return diapause_checkpoint_commit_sized(instance, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_checkpoint_files(diapause_t* instance, uint64_t version, int level,
                                              int valid, diapause_checkpoint_info* info) {
  return diapause_checkpoint_files_sized(instance, version, level, valid, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_snapshot(diapause_t* instance, uint64_t version,
                                      diapause_checkpoint_info* info) {
  return diapause_snapshot_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_should_stop(diapause_t* instance, diapause_stop_info* info) {
  return diapause_should_stop_sized(instance, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_poll(diapause_t* instance, uint64_t version,
                                  diapause_progress* progress) {
  return diapause_poll_sized(instance, version, progress, sizeof *progress);
}
DIAPAUSE_INLINE int diapause_restart(diapause_t* instance, uint64_t version,
                                     diapause_restart_info* info) {
  return diapause_restart_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_restart_begin(diapause_t* instance, uint64_t version,
                                           diapause_restart_info* info) {
  return diapause_restart_begin_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_restart_mapped(diapause_t* instance, uint64_t version, int check,
                                            diapause_restart_info* info) {
  return diapause_restart_mapped_sized(instance, version, check, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_stored_at(const diapause_t* instance, uint64_t index,
                                       diapause_region_info* info) {
  return diapause_stored_at_sized(instance, index, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_stored_find(const diapause_t* instance, const char* region,
                                         diapause_region_info* info) {
  return diapause_stored_find_sized(instance, region, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif
