#include "cli/version_options.hpp"

#include "cli/verb_options.hpp"

namespace diapause::cli {
namespace {

constexpr const char* kVerifyExitCodes =
    "Exit status:\n"
    "  0  nothing is damaged, and the newest version of every job can be restored\n"
    "  1  something is damaged, but the newest version can be restored\n"
    "  2  the newest version of a job cannot be restored from what can be reached from here\n"
    "  3  wrong usage, an I/O error, or nothing of that name";

constexpr const char* kExportExitCodes =
    "Exit status:\n"
    "  0  done\n"
    "  2  the version is damaged, and no intact copy can be reached\n"
    "  3  wrong usage, an I/O error, or nothing of that name";

}  // namespace

void add_list(CLI::App& app, ListArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("list", "Lists all versions in all tiers that can be reached from here");
  add_job(verb, arguments.job);
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  add_places(verb, arguments.places);
  verb.footer(
      footer({"diapause list", "diapause list heat --global /lustre/project/checkpoints --json"},
             kUsualExitCodes));
}

void add_show(CLI::App& app, ShowArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "show", "Shows one version in detail: ranks, nodes, partners, groups, regions");
  add_job(verb, arguments.job)->required();
  verb.add_option("version", arguments.version, "Number of the version [the newest]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_flag("--json", arguments.json, "JSON instead of tables");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause show heat", "diapause show heat 1200 --json"}, kUsualExitCodes));
}

void add_verify(CLI::App& app, VerifyArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "verify", "Reads and checks every byte, and says what could be restored after which loss");
  add_job(verb, arguments.job);
  verb.add_option("version", arguments.version, "Number of the version [all]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_flag("--json", arguments.json, "JSON instead of text");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause verify", "diapause verify heat 1200"}, kVerifyExitCodes));
}

void add_prune(CLI::App& app, PruneArguments& arguments) {
  constexpr const char* kWhat = "What to remove (one of the first three, --unfinished, or both)";
  CLI::App& verb = *app.add_subcommand("prune", "Removes versions of a job that is not running");
  add_job(verb, arguments.job);
  verb.add_option("--keep", arguments.keep,
                  "Remove versions older than the newest N that can be restored from here, which "
                  "are read and checked first")
      ->option_text("N")
      ->check(natural())
      ->group(kWhat);
  verb.add_option("--version", arguments.versions,
                  "Remove the version of this number; may be given more than once")
      ->option_text("V")
      ->check(natural())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kWhat);
  verb.add_flag("--all", arguments.all, "Remove every version of the job, which must be named")
      ->group(kWhat);
  verb.add_flag("--unfinished", arguments.unfinished, "Remove checkpoints that were not completed")
      ->group(kWhat);
  verb.add_flag("--dry-run", arguments.dry_run, "Only say what would be removed");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause prune heat --keep 2 --dry-run",
                      "diapause prune heat --version 1200", "diapause prune --unfinished"},
                     kUsualExitCodes));
}

void check_prune(const PruneArguments& arguments) {
  const int ways =
      int{arguments.keep.has_value()} + int{!arguments.versions.empty()} + int{arguments.all};
  if (ways > 1)
    throw CLI::ValidationError("prune", "--keep, --version and --all exclude each other");
  if (arguments.keep == std::uint64_t{0}) {
    throw CLI::ValidationError(
        "prune", "--keep 0 would keep nothing: prune JOB --all removes every version of a job");
  }
  if (ways == 0 && !arguments.unfinished) {
    throw CLI::ValidationError("prune",
                               "say what to remove: --keep N, --version V, --all or --unfinished");
  }
  if (!arguments.versions.empty() && arguments.job.empty()) {
    throw CLI::ValidationError("prune", "--version needs a job");
  }
  if (arguments.all && arguments.job.empty()) {
    throw CLI::ValidationError(
        "prune", "--all removes every version of a job: name it, as in diapause prune JOB --all");
  }
}

void add_inject(CLI::App& app, InjectArguments& arguments) {
  constexpr const char* kHow = "How to damage it (one of)";
  CLI::App& verb =
      *app.add_subcommand("inject", "Damages a file on purpose, to test that the damage is found");
  verb.add_option("file", arguments.file, "Regular file below one of the tiers")
      ->option_text("FILE")
      ->required();
  verb.add_option("--bit", arguments.bit,
                  "Flip this bit (0: least significant) of the byte at the offset")
      ->option_text("B")
      ->check(within(0u, 7u))
      ->group(kHow);
  verb.add_option("--overwrite", arguments.overwrite,
                  "Write these bytes (hexadecimal digits) at the offset")
      ->option_text("BYTES")
      ->group(kHow);
  verb.add_option("--truncate", arguments.truncate, "Cut the file to this length")
      ->option_text("N")
      ->check(natural())
      ->group(kHow);
  verb.add_option("--offset", arguments.offset,
                  "Position in bytes; only --overwrite has a default, which is 0")
      ->option_text("N")
      ->check(natural());
  verb.add_flag("--force", arguments.force, "Accept any regular file, also outside of the tiers");
  add_places(verb, arguments.places);
  verb.footer(
      footer({"diapause inject /dev/shm/diapause-1000/heat-0a1b2c3d/node0/v12-i0-.../r0.img "
              "--offset 5000 --bit 3",
              "diapause inject r0.img --truncate 4096 --force",
              "diapause inject r0.img --overwrite 00ff00ff"},
             kUsualExitCodes));
}

void check_inject(const InjectArguments& arguments) {
  const int ways = int{arguments.bit.has_value()} + int{arguments.overwrite.has_value()} +
                   int{arguments.truncate.has_value()};
  if (ways != 1)
    throw CLI::ValidationError("inject",
                               "exactly one of --bit, --overwrite and --truncate is wanted");
  if (arguments.bit && !arguments.offset)
    throw CLI::ValidationError("inject", "--bit needs an --offset");
  if (arguments.truncate && arguments.offset)
    throw CLI::ValidationError("inject", "--truncate takes no --offset");
}

void add_jobs(CLI::App& app, JobsArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "jobs", "Lists what each job has left in the tiers, how old it is, and which jobs are gone");
  add_job(verb, arguments.job);
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause jobs", "diapause jobs heat --json"}, kUsualExitCodes));
}

void add_export(CLI::App& app, ExportArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "export", "Verifies a version, and writes its regions as arrays, and its files");
  add_job(verb, arguments.job)->required();
  verb.add_option("version", arguments.version,
                  "Number of the version [the newest that is complete]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_option(
          "--to", arguments.to,
          "Directory for one NumPy file for each region, or a file of HDF5 or VTK with all regions")
      ->option_text("DIRECTORY|FILE.h5|FILE.vti")
      ->required();
  add_places(verb, arguments.places);
  verb.footer(
      footer({"diapause export heat --to heat-arrays", "diapause export heat 1200 --to heat.h5"},
             kExportExitCodes));
}

}  // namespace diapause::cli
