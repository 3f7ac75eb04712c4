// Exit statuses of all verbs but `run`, which gives the status of its command where it has none of its own.
// docs/command-line.md.
#pragma once

namespace diapause::cli {

inline constexpr int kDone = 0;
inline constexpr int kDamaged = 1;        // something is damaged, but the newest version can be restored
inline constexpr int kNotRestorable = 2;  // the newest version cannot be restored
inline constexpr int kTrouble = 3;        // wrong usage, an I/O error, nothing of that name, or a job that runs
inline constexpr int kStopped = 75;       // `run`: the command stopped in time and is to go on in another allocation
inline constexpr int kCannotRun = 125;    // `run`: it could not do its work

}  // namespace diapause::cli
