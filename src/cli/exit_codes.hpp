// The exit statuses of all verbs (docs/command-line.md). `run` returns the status of its command
// unless it has one of its own.
#pragma once

namespace diapause::cli {

inline constexpr int kDone = 0;
inline constexpr int kDamaged = 1;  // something is damaged, but the newest version can be restored
// The newest version cannot be restored; for `export`: the version is damaged.
inline constexpr int kNotRestorable = 2;
// Wrong usage, an I/O error, an unknown name, or a job that is running.
inline constexpr int kTrouble = 3;
// With this status `run` says that the command stopped in time and continues in another allocation.
inline constexpr int kStopped = 75;
inline constexpr int kCannotRun = 125;  // `run` itself failed

}  // namespace diapause::cli
