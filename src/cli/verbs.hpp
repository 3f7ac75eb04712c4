// The verbs of `diapause`, one function and one file each. They print results to standard output
// and errors to standard error, and return the exit status.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace diapause::cli {

// Prints one line on standard error; returns kTrouble.
int complain(const std::string& message);
void note(const std::string& text);  // prints a remark that is no error in the same way
inline int complain(const Error& error) { return complain(error.message); }
// Writes out what standard output still holds. Returns the status, or complains if not everything
// could be written, except to a reader that did not want more.
int settle_output(int status);

int list(const ListArguments& arguments);
int show(const ShowArguments& arguments);
int verify(const VerifyArguments& arguments);
int prune(const PruneArguments& arguments);
int inject(const InjectArguments& arguments);
int run(const RunArguments& arguments);
int jobs(const JobsArguments& arguments);
int history(const HistoryArguments& arguments);
int export_version(const ExportArguments& arguments);
// Parts of launched jobs call this program, too. Returns the exit status of such a part, or nothing
// if a user has called the program.
std::optional<int> serve_job(int argc, char** argv);
int launch(const LaunchArguments& arguments);
int checkpoint(const CheckpointArguments& arguments);
int restart(const RestartArguments& arguments);
int energy(const EnergyArguments& arguments);
int predict(const PredictArguments& arguments);
int report(const ReportArguments& arguments);
int power(const PowerArguments& arguments);
int power_record(const PowerRecordArguments& arguments);
int power_align(const PowerAlignArguments& arguments);
int power_calibrate(const PowerCalibrateArguments& arguments);
int power_restore(const PowerRestoreArguments& arguments);
int power_watch(const PowerWatchArguments& arguments);
int plan(const PlanArguments& arguments);
int simulate_job(const SimulateArguments& arguments);
int study_compress(const StudyCompressArguments& arguments);
int study_encode(const StudyEncodeArguments& arguments);
int study_runs(const StudyRunsArguments& arguments);

}  // namespace diapause::cli
