/* Values that VELOC's functions take and return. */
#ifndef DIAPAUSE_DROP_IN_VELOC_DEFS_H
#define DIAPAUSE_DROP_IN_VELOC_DEFS_H

#define VELOC_SUCCESS (0)
#define VELOC_FAILURE (-1)

/* Bytes that VELOC_Route_file may write. */
#define VELOC_MAX_NAME (1024)

/* Selects protected regions: all, those that are named, or all but those that are named. */
#define VELOC_CKPT_ALL (0)
#define VELOC_CKPT_SOME (1)
#define VELOC_CKPT_REST (2)
#define VELOC_RECOVER_ALL (0)
#define VELOC_RECOVER_SOME (1)
#define VELOC_RECOVER_REST (2)

/* The events that an observer may wait for. */
#define VELOC_OBSERVE_CKPT_END (0)

#endif
