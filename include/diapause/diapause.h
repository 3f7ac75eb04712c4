/* Diapause: checkpoint/restart for parallel programs. C API, no MPI needed.
 *
 * A program opens an instance, protects regions of its memory by name, and takes numbered
 * checkpoints (versions) at one of four levels. After a failure it opens the same instance
 * again and restarts from the newest version that every rank can have.
 *
 * Rules that hold for every function here:
 *  - It returns DIAPAUSE_OK (0) or a negative diapause_status; diapause_last_error() then tells
 *    what failed, on which path, rank, tier or region, and what to do. Nothing exits, aborts,
 *    throws, or prints to standard output.
 *  - Calls marked collective are made by all ranks of the communicator, in the same order.
 *    They return the same status class on all ranks: either all succeed or none does.
 *  - Calls on one instance must not overlap in time; different instances are independent.
 *  - Pointers handed out stay valid until the next call on the same instance, or until
 *    diapause_close(), unless said otherwise.
 *  - Sizes are bytes or elements as named; times are seconds of wall clock.
 *  - Structs that a call fills need no preparation, and those that it reads begin as DIAPAUSE_..._INIT or {0}. Later
 *    versions add members at their ends; a program that was compiled before goes on working with a later library.
 */
#ifndef DIAPAUSE_DIAPAUSE_H
#define DIAPAUSE_DIAPAUSE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DIAPAUSE_API __attribute__((visibility("default")))
#else
#define DIAPAUSE_API
#endif

/* The inline functions of this header pass the size of a struct, as the program was compiled with it, to the library.
 */
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
  DIAPAUSE_ERR_FULL = -4,      /* a tier has no room; the last good version is still there */
  DIAPAUSE_ERR_BUSY = -5,      /* another running job or instance uses the same checkpoints */
  DIAPAUSE_ERR_CORRUPT = -6,   /* stored data is damaged and no intact copy is left */
  DIAPAUSE_ERR_NOT_FOUND = -7, /* no such version or region */
  DIAPAUSE_ERR_MISMATCH = -8,  /* stored data does not fit: regions, their size or type, number of ranks */
  DIAPAUSE_ERR_COMM = -9,      /* communication between ranks failed */
  DIAPAUSE_ERR_OFF = -10,      /* the instance turned itself off after an earlier failure */
  DIAPAUSE_ERR_INTERNAL = -11, /* a defect in the library */
  DIAPAUSE_ERR_DENIED = -12,   /* a directory or file belongs to somebody else, or others can write to it */
  DIAPAUSE_ERR_MEMORY = -13,   /* out of memory */
  DIAPAUSE_ERR_TIMEOUT = -14,  /* the time given was over before it happened; it may still happen */
  DIAPAUSE_ERR_AGAIN = -15     /* the system is short of something for the moment; nothing was changed: try again */
} diapause_status;

/* Element types of protected memory. */
typedef enum diapause_type {
  DIAPAUSE_BYTES = 0, /* opaque elements of a size given by the user */
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

/* A level is a promise against a class of failure; each includes level 1. */
typedef enum diapause_level {
  DIAPAUSE_L1 = 1, /* the program or a process dies: kept on the node it ran on */
  DIAPAUSE_L2 = 2, /* a node is lost: a second copy on a partner node */
  DIAPAUSE_L3 = 3, /* several nodes of a group are lost: Reed-Solomon parity over the group */
  DIAPAUSE_L4 = 4  /* everything else: the global directory */
} diapause_level;

/* Who does what comes behind the capture of a checkpoint. The numbers never change. */
typedef enum diapause_worker {
  DIAPAUSE_WORKER_CALL = 0,            /* the checkpoint call itself: async.mode = "off", or nothing else is possible */
  DIAPAUSE_WORKER_THREAD = 1,          /* a thread in the first rank of each node */
  DIAPAUSE_WORKER_THREAD_IN_CALLS = 2, /* the same, and what it has to communicate is done in the program's calls */
  DIAPAUSE_WORKER_RANK = 3             /* the last rank of each node, which is set aside */
} diapause_worker;

/* A level for diapause_wait: the memory is copied, but the version survives no failure yet. */
#define DIAPAUSE_CAPTURED 0

/* How the program will write to a region (diapause_declare). */
typedef enum diapause_declaration {
  DIAPAUSE_CHANGING = 0, /* at any time: the default */
  DIAPAUSE_STABLE = 1,   /* not between a checkpoint call and the end of its capture (DIAPAUSE_CAPTURED) */
  DIAPAUSE_CONSTANT = 2  /* never again */
} diapause_declaration;

/* This number stands for the newest version of which every rank can get its data. */
#define DIAPAUSE_NEWEST UINT64_MAX

/* What a checkpoint call did. */
typedef struct diapause_checkpoint_info {
  int taken;            /* 1 if a checkpoint was taken (snapshot: 0 when none was due) */
  uint64_t version;     /* the number the program gave */
  int level_asked;      /* 1..4 */
  int level_reached;    /* deepest level published and durable on all ranks; 0 if none */
  uint64_t bytes;       /* protected bytes of this rank */
  uint64_t bytes_total; /* protected bytes of all ranks */
  double blocked_s;     /* time this rank spent in the call */
  int skipped;          /* 1 if it was due and not taken: too many versions were in flight (async.when_full) */
  double waited_s;      /* part of blocked_s: waiting for versions in flight to make room */
  int background;       /* status of the first failure in the background since the last call; DIAPAUSE_OK if none */
  uint64_t background_version; /* the version it struck; diapause_background_reason() tells more */
} diapause_checkpoint_info;

/* How far a version has come. */
typedef struct diapause_progress {
  uint64_t version;
  int level_asked;   /* 1..4 */
  int level_reached; /* deepest level that holds now; 0: captured only */
  int in_flight;     /* 1 while the background works on it */
  int captured;      /* 1 when the memory is copied: regions declared stable may be written to */
} diapause_progress;

/* Which version a restart chose. */
typedef struct diapause_restart_info {
  uint64_t version; /* the version restored */
  int level;        /* deepest level that version was published at */
  int stepped_back; /* 1 if a newer (or the asked) version existed and could not be had; see diapause_restart_reason */
  uint64_t bytes;   /* bytes of this rank's stored regions */
  double greatest_error; /* of any value on any rank against what was captured; 0: all are exact */
} diapause_restart_info;

/* The codecs that may change values. The numbers never change. */
typedef enum diapause_lossy_codec {
  DIAPAUSE_LATTICE = 0, /* a fast uniform quantiser, in every build */
  DIAPAUSE_SZ3 = 1,     /* in libraries that were built with SZ3 */
  DIAPAUSE_ZFP = 2      /* in libraries that were built with zfp */
} diapause_lossy_codec;

/* The program's check of an invariant, such as a sum, an energy, or a sign, on values that a codec has changed:
 * `values[i]` points to those of the i-th region named. The function returns 0 if the invariant does not hold. It must
 * not call the library. */
typedef int (*diapause_invariant)(const void* const* values, void* context);

/* A function of the program that recomputes what depends on restored values. It is called in the thread of the call
 * that restored them, and returns 0, or anything else if the program cannot go on from these values. It must not call
 * the library. */
typedef int (*diapause_restore_hook)(void* context);

/* A function of the program that prepares what a checkpoint is to hold, for example by packing data. It is called in
 * the thread of the checkpoint or snapshot call, on every rank and for every checkpoint that is taken, before memory is
 * read. It may call diapause_protect, diapause_protect_bytes, diapause_protect_block, diapause_unprotect and
 * diapause_declare, and nothing else of the library. It returns 0, or anything else if there must be no checkpoint now;
 * the checkpoint call then fails on all ranks. */
typedef int (*diapause_capture_hook)(void* context);

/* Why the program has to stop. The numbers never change. */
typedef enum diapause_stop {
  DIAPAUSE_GO_ON = 0,       /* it need not */
  DIAPAUSE_STOP_SIGNAL = 1, /* a rank got one of the signals of deadline.signals */
  DIAPAUSE_STOP_END = 2     /* the end of the allocation is near */
} diapause_stop;

/* Details of the reason to stop. */
typedef struct diapause_stop_info {
  int signal; /* number of the signal; 0 if it is the end of the allocation */
  int rank;   /* the rank that got the signal; -1 if it is the end of the allocation */
} diapause_stop_info;

/* Receives messages instead of standard error. Severity: 0 error, 1 warning, 2 information. The function is called
 * from the thread that makes the call; it must not call Diapause. */
typedef void (*diapause_log_function)(void* user, int severity, const char* message);

/* How an instance is opened. Begin with DIAPAUSE_OPEN_OPTIONS_INIT, then set what is wanted. */
typedef struct diapause_open_options {
  const char* config_path; /* a TOML file; NULL: config_text */
  const char* config_text; /* what would stand in the file; both NULL: $DIAPAUSE_CONFIG if set, else the defaults */
  diapause_log_function
      log;        /* gets all messages, those of opening too; NULL: errors and warnings go to standard error */
  void* log_user; /* its first argument */
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

/* Opens an instance for a single process. `name` identifies the program's checkpoints together
 * with the global directory: letters, digits, '.', '_' and '-', at most 64. `config_path` names a TOML file;
 * NULL means $DIAPAUSE_CONFIG if set, else the defaults (docs/configuration.md). */
DIAPAUSE_API int diapause_open(const char* name, const char* config_path, diapause_t** out);

/* Opens an instance as diapause_open does, with options; NULL stands for none. In an MPI program the configuration of
 * rank 0 counts for all ranks. */
DIAPAUSE_INLINE int diapause_open_with(const char* name, const diapause_open_options* options, diapause_t** out);

/* Ends the job: the program has done all that it was started for and has its results where they are safe. Waits for the
 * versions in flight, then removes all versions in all tiers, or all but the newest of level 4 (`finish.keep`), frees
 * their memory, and releases the instance as diapause_close does. The next start of the program finds nothing to
 * restart from and begins anew; a version that was kept comes back by its number only. Call diapause_close instead
 * where the program stops before its end. After an error the text says what is left; the instance is gone in any case.
 * NULL is fine. Collective. */
DIAPAUSE_API int diapause_finish(diapause_t* instance);

/* Waits for all versions in flight and releases the instance; its checkpoints stay. The call returns the first failure
 * in the background that was not reported yet; the instance is gone in any case. NULL is fine. Collective. */
DIAPAUSE_API int diapause_close(diapause_t* instance);

/* Closes an instance, but waits only about so many seconds for versions in flight: after that the step under way is
 * finished and no other is begun. Levels that were reached stay. Collective. */
DIAPAUSE_API int diapause_close_within(diapause_t* instance, double seconds);

/* ---- what is protected ------------------------------------------------------------------ */

/* Protects `count` elements at `data` under `region` (1 to 255 bytes, unique in the instance). Protecting a name
 * again replaces its address, count and type. `data` may be NULL only if `count` is 0. The memory is written during
 * restore calls only. It is read during checkpoint calls and, with work in the background, until the version is
 * captured: unprotect a region, or protect its name anew, before its memory is freed. Both wait for a capture under
 * way. */
DIAPAUSE_API int diapause_protect(diapause_t* instance, const char* region, void* data, uint64_t count,
                                  diapause_type type);

/* As diapause_protect, for opaque elements of `element_bytes` (> 0). */
DIAPAUSE_API int diapause_protect_bytes(diapause_t* instance, const char* region, void* data, uint64_t count,
                                        uint64_t element_bytes);

/* As diapause_protect, and records that the memory is the block `[start, start + shape)` of a global array of
 * `global_shape`, slowest dimension first; `dims` is 1..8 and shape[i] > 0 unless the block is empty. */
DIAPAUSE_API int diapause_protect_block(diapause_t* instance, const char* region, void* data, diapause_type type,
                                        int dims, const uint64_t* shape, const uint64_t* global_shape,
                                        const uint64_t* start);

/* Forgets a region; later checkpoints do not hold it. */
DIAPAUSE_API int diapause_unprotect(diapause_t* instance, const char* region);

/* Declares how the program will write to a region, so that the region can be copied in the background. If the program
 * violates the declaration, the stored region may mix old and new values. The declaration holds until the region is
 * protected anew. Not collective. */
DIAPAUSE_API int diapause_declare(diapause_t* instance, const char* region, diapause_declaration declaration);

/* Allows a codec to change each value of a region of DIAPAUSE_FLOAT32 or DIAPAUSE_FLOAT64 by at most `bound` in the
 * global tier. Copies on nodes stay exact. The permission holds until the region is protected anew. Every value is
 * compared before a version is published; a block with a value that is off by more, or whose values the bound cannot
 * resolve, is stored exactly, and so is every `codec.anchor_every`-th version. The call reads all values of the region:
 * it returns DIAPAUSE_ERR_ARGUMENT for another type and for a bound that is not a number, infinite, denormal, zero,
 * negative, or below four units in the last place of the region's largest finite value (not counting a fill value), and
 * DIAPAUSE_ERR_CONFIG for a codec that the library was built without. All ranks make the same call; it is not
 * collective. docs/compression.md says what lossy checkpoints may be used for, and what not. */
DIAPAUSE_API int diapause_allow_loss(diapause_t* instance, const char* region, diapause_lossy_codec codec,
                                     double bound);

/* Calls `holds` in every checkpoint of level 4 with the values that a restart would give back for these regions. If it
 * returns 0 on one rank, the regions are stored without loss in that version. Each such call compresses the regions
 * once more while the program waits. All ranks make the same call; it is not collective. */
DIAPAUSE_API int diapause_keep_invariant(diapause_t* instance, const char* const* regions, uint64_t count,
                                         diapause_invariant holds, void* context);

/* Every restore, also that of diapause_restart, calls `hook` after it has written the regions; NULL removes the hook.
 * If the hook fails on one rank, the restore fails on all ranks. Not collective. */
DIAPAUSE_API int diapause_on_restore(diapause_t* instance, diapause_restore_hook hook, void* context);

/* Every checkpoint calls `hook` before it captures memory; NULL removes the hook. Not collective. */
DIAPAUSE_API int diapause_on_capture(diapause_t* instance, diapause_capture_hook hook, void* context);

/* ---- checkpoints ------------------------------------------------------------------------ */

/* Takes a checkpoint now. `version` is any number below DIAPAUSE_NEWEST and should be greater than those before: among
 * the versions of one start of the job the greatest number counts as the newest, and the lowest is removed first. A
 * version whose number was used before replaces the older one once it is published. If a level above 1 fails, the
 * levels already reached stay: the call returns the error and `info->level_reached` says what holds. `info` may be
 * NULL. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint(diapause_t* instance, uint64_t version, int level,
                                        diapause_checkpoint_info* info);

/* A checkpoint in three steps, for programs that gather their data when a checkpoint is to be taken, or that find out
 * on the way that they cannot have one. diapause_checkpoint_begin decides on the version and waits for room. If
 * `info->skipped` is 0 the checkpoint is open then, and every rank ends it, by diapause_checkpoint_commit or
 * diapause_checkpoint_give_up; before that no other checkpoint and no restart can begin. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_begin(diapause_t* instance, uint64_t version, int level,
                                              diapause_checkpoint_info* info);

/* Adds a region that only the open checkpoint holds, besides all that are protected: arguments as of diapause_protect,
 * and DIAPAUSE_BYTES counts single bytes. The memory is read by the commit and may be freed when that returns. A later
 * program restores the region by protecting its name. DIAPAUSE_ERR_ARGUMENT if no checkpoint is open or a region of
 * that name is protected. Not collective: each rank adds what it has. */
DIAPAUSE_API int diapause_checkpoint_add(diapause_t* instance, const char* region, const void* data, uint64_t count,
                                         diapause_type type);

/* Takes the open checkpoint of what is protected and what was added, and closes it: what diapause_checkpoint says of
 * results, errors and `info` holds here, too. DIAPAUSE_ERR_ARGUMENT, and no version on any rank, if one rank gives it
 * up. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_commit(diapause_t* instance, diapause_checkpoint_info* info);

/* The other end of an open checkpoint: this rank has no data for it, and no rank takes the version; the others are told
 * `why` as the error of their commit. NULL: no reason. Collective, together with the commits of other ranks. */
DIAPAUSE_API int diapause_checkpoint_give_up(diapause_t* instance, const char* why);

/* Takes a checkpoint if the configured intervals say that one is due, at the highest level due; the decision is the
 * same on all ranks. Meant to be called in every iteration. When the program has to stop (diapause_should_stop), takes
 * the deepest checkpoint that still ends in time. `info` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_snapshot(diapause_t* instance, uint64_t version, diapause_checkpoint_info* info);

/* Returns 1 if the next diapause_snapshot will take a checkpoint, 0 if not, or a negative status; the same on all
 * ranks. The question costs nothing, because the snapshot call then need not agree on the answer again. Programs that
 * must pack data before a checkpoint ask it; after 0 they may leave the snapshot call out. At most once in an
 * iteration; collective. */
DIAPAUSE_API int diapause_is_due(diapause_t* instance);

/* Returns whether the program has to stop, and why: a diapause_stop, never a status. The last snapshot call has found
 * that out and has taken a checkpoint; the program should end as soon as it can, with whatever exit status. All ranks
 * get the same answer, without communication. A NULL instance need not stop. `info` may be NULL, and is filled only if
 * there is a reason (docs/in-time.md). */
DIAPAUSE_INLINE int diapause_should_stop(diapause_t* instance, diapause_stop_info* info);

/* Returns who does the work behind the capture in this instance: a diapause_worker, or DIAPAUSE_ERR_ARGUMENT.
 *
 * By default the two calls above return as soon as the memory is captured, with level_reached 0, and a thread in the
 * first rank of each node does the rest. If MPI was initialised with less than MPI_THREAD_MULTIPLE, what that thread
 * has to communicate is done in the calls that the first ranks of the nodes make next, which do not wait for it; the
 * log says so once. With async.mode = "rank" the last rank of each node does the rest (diapause_comm). With "off" they
 * return when everything is done. */
DIAPAUSE_API int diapause_worker_of(const diapause_t* instance);

/* Waits until `version` is published and durable at `level` or deeper. With DIAPAUSE_CAPTURED it waits until the memory
 * of this rank is copied, which with copy-on-write is after the checkpoint call. The call returns the error that keeps
 * the version from that level, DIAPAUSE_ERR_TIMEOUT after `seconds`, or DIAPAUSE_ERR_NOT_FOUND for a version that is
 * not among the last 32 taken here. It is not collective; but with less than MPI_THREAD_MULTIPLE the version may
 * advance only in calls that the first ranks of other nodes make. */
DIAPAUSE_API int diapause_wait(diapause_t* instance, uint64_t version, int level, double seconds);

/* Tells without waiting how far `version` has come. Not collective. */
DIAPAUSE_INLINE int diapause_poll(diapause_t* instance, uint64_t version, diapause_progress* progress);

/* Explains the member `background` of the last checkpoint call that set it: the version and the error. "" if no call
 * did. */
DIAPAUSE_API const char* diapause_background_reason(const diapause_t* instance);

/* ---- files of the program's own --------------------------------------------------------- */

/* Gives the path of an empty directory of this rank, on its node, for files of the next version: the program writes
 * what it wants there, with any library, in directories below it too. `*directory` is good until
 * diapause_checkpoint_files. Collective. */
DIAPAUSE_API int diapause_files(diapause_t* instance, const char** directory);

/* Takes a checkpoint of those files, and of what is protected, as diapause_checkpoint does; from then on everything is
 * for files as for memory. `valid`: whether this rank's files are complete. If they are not on all ranks, there is no
 * version: DIAPAUSE_ERR_ARGUMENT. The files are copied in the call, and the directory is gone when it has succeeded;
 * after an error it is as it was, and the call can be made again. Files of any size and number, with paths to 250
 * bytes; links and what else is no file are DIAPAUSE_ERR_DENIED, and empty directories are not kept. `info` may be
 * NULL. Collective. */
DIAPAUSE_INLINE int diapause_checkpoint_files(diapause_t* instance, uint64_t version, int level, int valid,
                                              diapause_checkpoint_info* info);

/* Gives the path of a directory of this rank that holds the files of the version that diapause_restart_begin has
 * opened, verified, under the names that they had. It is there until diapause_restart_end. Collective. */
DIAPAUSE_API int diapause_restore_files(diapause_t* instance, const char** directory);

/* ---- restart ---------------------------------------------------------------------------- */

/* Restores all protected regions from `version`: from the newest that all ranks can have (DIAPAUSE_NEWEST), or from the
 * one of that number and from no other. The data is read once, straight to its place, and every block is verified
 * there: a damaged block is taken from another level, and if no level has it, DIAPAUSE_NEWEST steps back to the next
 * older version. If the version was left with less redundancy than its level promises, because a node was lost, the
 * call returns when the data are there, and the redundancy is put back as diapause_restart_end says.
 *
 * DIAPAUSE_ERR_NOT_FOUND says that there is nothing to restart from: this is a fresh start, and the protected memory is
 * as it was. It is as it was after DIAPAUSE_ERR_MISMATCH, too: a protected region is not stored, or with another size
 * or type. After DIAPAUSE_ERR_CORRUPT, DIAPAUSE_ERR_IO or DIAPAUSE_ERR_AGAIN nothing could be restored, and the
 * protected memory holds nothing that can be used. If no version is found, and a tier that may hold some cannot be
 * read, the call returns the error of that tier, such as DIAPAUSE_ERR_DENIED or DIAPAUSE_ERR_IO. Stored regions that
 * are not protected are left out. `info` may be NULL. Collective. */
DIAPAUSE_INLINE int diapause_restart(diapause_t* instance, uint64_t version, diapause_restart_info* info);

/* The first of three steps of a restart, for programs that must ask for sizes first: it chooses a version, fetches or
 * rebuilds this rank's image, and verifies it. The data is read here to be verified, and once more by diapause_restore.
 * Collective. */
DIAPAUSE_INLINE int diapause_restart_begin(diapause_t* instance, uint64_t version, diapause_restart_info* info);

/* The newest version whose number is at most `at_most` (DIAPAUSE_NEWEST: any), by the manifests that are there. No data
 * is read: diapause_restart_begin with that number may still find it damaged. DIAPAUSE_ERR_NOT_FOUND if there is none.
 * The same `at_most` on all ranks; collective. */
DIAPAUSE_API int diapause_newest(diapause_t* instance, uint64_t at_most, uint64_t* version);

/* Returns how many regions this rank has stored in the version that a restart has opened, or a negative status if no
 * restart is open. */
DIAPAUSE_API int64_t diapause_stored_count(const diapause_t* instance);

/* Describes a stored region, by its `index` (from 0) or by its name. `info->name` is valid until diapause_restart_end.
 */
DIAPAUSE_INLINE int diapause_stored_at(const diapause_t* instance, uint64_t index, diapause_region_info* info);
DIAPAUSE_INLINE int diapause_stored_find(const diapause_t* instance, const char* region, diapause_region_info* info);

/* Restores the named regions, or with `count` 0 all protected ones, into the memory they are protected at.
 * May be called more than once. Collective; every rank may name other regions. */
DIAPAUSE_API int diapause_restore(diapause_t* instance, const char* const* regions, uint64_t count);

/* Ends a restart. Redundancy that the failure cost is put back, in the background where there is one: diapause_poll and
 * diapause_wait of the restored version tell when its levels hold again. Collective. */
DIAPAUSE_API int diapause_restart_end(diapause_t* instance);

/* Tells why the last restart stepped back to an older version or failed, in one line for each version; "" if it did
 * neither. */
DIAPAUSE_API const char* diapause_restart_reason(const diapause_t* instance);

/* ---- restart without reading ------------------------------------------------------------- */

/* When the data of a mapped restart is checked. */
typedef enum diapause_check {
  DIAPAUSE_CHECK_FIRST = 0, /* all of it before the call returns, as in every other restart */
  DIAPAUSE_CHECK_BEHIND = 1 /* in the background: ask diapause_scrub_wait before relying on a result */
} diapause_check;

/* Begins a restart as diapause_restart_begin does, but for regions that are used where they are instead of copied:
 * diapause_map then gives their memory. With DIAPAUSE_CHECK_BEHIND the program goes on at once and pages come from the
 * stored file when they are touched; the next checkpoint, restore or diapause_scrub_wait waits for the check. Images
 * that had to be moved or rebuilt are checked before in any case. Collective; the same `check` on all ranks. */
DIAPAUSE_INLINE int diapause_restart_mapped(diapause_t* instance, uint64_t version, int check,
                                            diapause_restart_info* info);

/* Gives the data of a stored region as private, page-aligned memory of this process, while a restart is open. Writes to
 * it change neither the checkpoint nor what others see, and later checkpoints never change it. It can be protected like
 * any other memory. It is valid until diapause_unmap or diapause_close, beyond the end of the restart; each call gives
 * another address. The data stay readable when Diapause or `diapause prune` removes the file; a disk that fails while a
 * page is read ends the program with SIGBUS, as with every mapped file. */
DIAPAUSE_API int diapause_map(diapause_t* instance, const char* region, void** data);

/* Releases memory that diapause_map gave. A region that is protected there must be unprotected before. */
DIAPAUSE_API int diapause_unmap(diapause_t* instance, void* data);

/* Waits until all that the last restart left unchecked has been read. DIAPAUSE_ERR_CORRUPT names the damaged region:
 * what was computed since may be wrong; restart again, which takes another copy or an older version. Until then no
 * checkpoint is taken. Collective. */
DIAPAUSE_API int diapause_scrub_wait(diapause_t* instance);

/* ---- errors, messages, faults ----------------------------------------------------------- */

/* Text of the last error of the calling thread; "" if there was none. Valid until its next failing call. */
DIAPAUSE_API const char* diapause_last_error(void);

/* A short name of a status code, such as "DIAPAUSE_ERR_FULL". Never NULL. */
DIAPAUSE_API const char* diapause_status_name(int status);

/* Sends the messages of the instance to `function`; NULL sends them to standard error again. */
DIAPAUSE_API int diapause_set_log(diapause_t* instance, diapause_log_function function, void* user);

/* Flips one bit of protected memory on purpose: bit `bit` (0 = least significant) of element `element` of `region`. */
DIAPAUSE_API int diapause_inject_bit_flip(diapause_t* instance, const char* region, uint64_t element, uint32_t bit);

/* The library's version, "major.minor.patch". */
DIAPAUSE_API const char* diapause_version(void);

/* ---- structs that may grow ---------------------------------------------------------------- */

/* The functions above that take a struct call these, which languages that cannot use inline functions of a header call
 * directly: the last argument is the size of the struct as the program knows it. */
DIAPAUSE_API int diapause_open_sized(const char* name, const diapause_open_options* options, size_t options_bytes,
                                     diapause_t** out);
DIAPAUSE_API int diapause_checkpoint_sized(diapause_t* instance, uint64_t version, int level,
                                           diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_begin_sized(diapause_t* instance, uint64_t version, int level,
                                                 diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_commit_sized(diapause_t* instance, diapause_checkpoint_info* info,
                                                  size_t info_bytes);
DIAPAUSE_API int diapause_checkpoint_files_sized(diapause_t* instance, uint64_t version, int level, int valid,
                                                 diapause_checkpoint_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_snapshot_sized(diapause_t* instance, uint64_t version, diapause_checkpoint_info* info,
                                         size_t info_bytes);
DIAPAUSE_API int diapause_should_stop_sized(diapause_t* instance, diapause_stop_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_poll_sized(diapause_t* instance, uint64_t version, diapause_progress* progress,
                                     size_t progress_bytes);
DIAPAUSE_API int diapause_restart_sized(diapause_t* instance, uint64_t version, diapause_restart_info* info,
                                        size_t info_bytes);
DIAPAUSE_API int diapause_restart_begin_sized(diapause_t* instance, uint64_t version, diapause_restart_info* info,
                                              size_t info_bytes);
DIAPAUSE_API int diapause_restart_mapped_sized(diapause_t* instance, uint64_t version, int check,
                                               diapause_restart_info* info, size_t info_bytes);
DIAPAUSE_API int diapause_stored_at_sized(const diapause_t* instance, uint64_t index, diapause_region_info* info,
                                          size_t info_bytes);
DIAPAUSE_API int diapause_stored_find_sized(const diapause_t* instance, const char* region, diapause_region_info* info,
                                            size_t info_bytes);

DIAPAUSE_INLINE int diapause_open_with(const char* name, const diapause_open_options* options, diapause_t** out) {
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
DIAPAUSE_INLINE int diapause_checkpoint_commit(diapause_t* instance, diapause_checkpoint_info* info) {
  return diapause_checkpoint_commit_sized(instance, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_checkpoint_files(diapause_t* instance, uint64_t version, int level, int valid,
                                              diapause_checkpoint_info* info) {
  return diapause_checkpoint_files_sized(instance, version, level, valid, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_snapshot(diapause_t* instance, uint64_t version, diapause_checkpoint_info* info) {
  return diapause_snapshot_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_should_stop(diapause_t* instance, diapause_stop_info* info) {
  return diapause_should_stop_sized(instance, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_poll(diapause_t* instance, uint64_t version, diapause_progress* progress) {
  return diapause_poll_sized(instance, version, progress, sizeof *progress);
}
DIAPAUSE_INLINE int diapause_restart(diapause_t* instance, uint64_t version, diapause_restart_info* info) {
  return diapause_restart_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_restart_begin(diapause_t* instance, uint64_t version, diapause_restart_info* info) {
  return diapause_restart_begin_sized(instance, version, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_restart_mapped(diapause_t* instance, uint64_t version, int check,
                                            diapause_restart_info* info) {
  return diapause_restart_mapped_sized(instance, version, check, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_stored_at(const diapause_t* instance, uint64_t index, diapause_region_info* info) {
  return diapause_stored_at_sized(instance, index, info, sizeof *info);
}
DIAPAUSE_INLINE int diapause_stored_find(const diapause_t* instance, const char* region, diapause_region_info* info) {
  return diapause_stored_find_sized(instance, region, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif
