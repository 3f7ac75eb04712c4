// The command `diapause`: arguments.cpp defines what can be typed, and each verb has a file.
#include <exception>

#include "cli/arguments.hpp"
#include "cli/verbs.hpp"

int main(int argc, char** argv) try {
  using namespace diapause::cli;
  struct Do {
    int operator()(const ListArguments& arguments) const { return list(arguments); }
    int operator()(const ShowArguments& arguments) const { return show(arguments); }
    int operator()(const VerifyArguments& arguments) const { return verify(arguments); }
    int operator()(const PruneArguments& arguments) const { return prune(arguments); }
    int operator()(const InjectArguments& arguments) const { return inject(arguments); }
    int operator()(const RunArguments& arguments) const { return run(arguments); }
    int operator()(const JobsArguments& arguments) const { return jobs(arguments); }
    int operator()(const HistoryArguments& arguments) const { return history(arguments); }
    int operator()(const ExportArguments& arguments) const { return export_version(arguments); }
    int operator()(const LaunchArguments& arguments) const { return launch(arguments); }
    int operator()(const CheckpointArguments& arguments) const { return checkpoint(arguments); }
    int operator()(const RestartArguments& arguments) const { return restart(arguments); }
    int operator()(const EnergyArguments& arguments) const { return energy(arguments); }
    int operator()(const ReportArguments& arguments) const { return report(arguments); }
    int operator()(const PowerArguments& arguments) const { return power(arguments); }
    int operator()(const PowerRecordArguments& arguments) const { return power_record(arguments); }
    int operator()(const PowerAlignArguments& arguments) const { return power_align(arguments); }
    int operator()(const PowerCalibrateArguments& arguments) const {
      return power_calibrate(arguments);
    }
    int operator()(const PowerRestoreArguments& arguments) const {
      return power_restore(arguments);
    }
    int operator()(const PowerWatchArguments& arguments) const { return power_watch(arguments); }
    int operator()(const PlanArguments& arguments) const { return plan(arguments); }
    int operator()(const SimulateArguments& arguments) const { return simulate_job(arguments); }
    int operator()(const PredictArguments& arguments) const { return predict(arguments); }
    int operator()(const StudyCompressArguments& arguments) const {
      return study_compress(arguments);
    }
    int operator()(const StudyEncodeArguments& arguments) const { return study_encode(arguments); }
    int operator()(const StudyRunsArguments& arguments) const { return study_runs(arguments); }
  };
  if (const std::optional<int> status = serve_job(argc, argv)) return *status;
  const std::variant<Arguments, int> parsed = parse_arguments(argc, argv);
  if (const int* status = std::get_if<int>(&parsed)) return settle_output(*status);
  return settle_output(std::visit(Do{}, std::get<Arguments>(parsed)));
} catch (const std::exception& exception) {
  return diapause::cli::complain(exception.what());
}
