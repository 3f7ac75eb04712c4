/* Values that VELOC's functions take and return. */
#ifndef DIAPAUSE_DROP_IN_VELOC_DEFS_H
#define DIAPAUSE_DROP_IN_VELOC_DEFS_H

#define VELOC_SUCCESS (0)
#define VELOC_FAILURE (-1)

/* Bytes that VELOC_Route_file may write. */
#define VELOC_MAX_NAME (1024)

/* Which of the protected regions: all, those named, all but those named. */
#define VELOC_CKPT_ALL (0)
#define VELOC_CKPT_SOME (1)
#define VELOC_CKPT_REST (2)
#define VELOC_RECOVER_ALL (0)
#define VELOC_RECOVER_SOME (1)
#define VELOC_RECOVER_REST (2)

/* What an observer may wait for. */
#define VELOC_OBSERVE_CKPT_END (0)

#endif
