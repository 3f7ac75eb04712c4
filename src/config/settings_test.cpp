#include "config/settings.hpp"

#include <gmock/gmock.h>

#include "config/keys.hpp"

namespace diapause::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Settings parsed(const std::string& text, const Environment& environment = {}) {
  auto settings = parse_settings(text, "c.toml", environment, 1000);
  EXPECT_TRUE(settings.has_value()) << settings.error().message;
  return settings.value_or(Settings{});
}

std::string refusal(const std::string& text, const Environment& environment = {}) {
  const auto settings = parse_settings(text, "c.toml", environment, 1000);
  if (settings) return "accepted";
  EXPECT_EQ(settings.error().code, Code::config);
  return settings.error().message;
}

TEST(Settings, AreTheDefaultsWithoutAFile) {
  const auto settings = parse_settings("", "", {{"HOME", "/root"}, {"DIAPAUS", "1"}}, 7);
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->memory_path, "/dev/shm/diapause-7");
  EXPECT_EQ(settings->global_path, "diapause");
  for (const int level : {1, 2, 3}) EXPECT_EQ(settings->level(level).keep, 1U) << level;
  EXPECT_EQ(settings->level(4).keep, 2U);
  EXPECT_EQ(settings->level(4).tier, TierKind::global);
  EXPECT_EQ(settings->source, "");
}

TEST(Settings, ComeFromEveryKeyOfAFile) {
  const Settings settings = parsed(R"(
lock_wait_s = 2
memory.path = "/m"
local = { path = "/l" }
[global]
path = "/g"
[node]
ranks_per_node = 2
names = ["a", "b.example"]
[level1]
tier = "local"
keep = 3
every_calls = 7
[level2]
every_s = 2.5
[level3]
group_nodes = 8
parity = 3
[level4]
keep = 1
[flips]
bit = 62
every_s = 1e-3
count = 4
limit = 5
region = "temperature"
seed = 9223372036854775807
)");
  EXPECT_EQ(settings.lock_wait_s, 2);
  EXPECT_EQ(settings.memory_path + settings.local_path + settings.global_path, "/m/l/g");
  EXPECT_EQ(settings.ranks_per_node, 2U);
  EXPECT_THAT(settings.node_names, ElementsAre("a", "b.example"));
  EXPECT_EQ(settings.level(1).tier, TierKind::local);
  EXPECT_EQ(settings.level(1).keep, 3U);
  EXPECT_EQ(settings.level(1).interval.calls, 7U);
  EXPECT_EQ(settings.level(2).interval.seconds, 2.5);
  EXPECT_EQ(settings.group_nodes, 8U);
  EXPECT_EQ(settings.parity, 3U);
  EXPECT_EQ(settings.level(4).keep, 1U);
  EXPECT_EQ(settings.flips.bit, 62U);
  EXPECT_EQ(settings.flips.every_s, 1e-3);
  EXPECT_EQ(settings.flips.count, 4U);
  EXPECT_EQ(settings.flips.limit, 5U);
  EXPECT_EQ(settings.flips.region, "temperature");
  EXPECT_EQ(settings.flips.seed, 9223372036854775807U);
  EXPECT_EQ(settings.source, "c.toml");
}

// Returns a value other than the default, as it is written in a file and in the environment.
std::pair<std::string, std::string> other_value(const Key& key) {
  if (key.name == "schedule") return {"\"ckp(1,2,3,4)\"", "ckp(1,2,3,4)"};
  if (!key.words.empty()) return {quoted(key.words.back()), std::string(key.words.back())};
  if (key.name == "referenced_files") return {"[\"/x\", \"/y\"]", "/x,/y"};
  if (key.name == "signals") return {"[\"SIGHUP\", \"SIGINT\"]", "SIGHUP,SIGINT"};
  if (key.name == "names" || key.name == "meters") return {"[\"x\", \"y\"]", "x,y"};
  if (key.rule == Rule::ratio) return {"0.5", "0.5"};
  if (std::holds_alternative<std::string& (*)(Draft&)>(key.place)) return {"\"other\"", "other"};
  return {"3", "3"};
}

TEST(Settings, MeanTheSameInAFileAndInTheEnvironment) {
  for (const Key& key : all_keys()) {
    const auto [in_file, in_environment] = other_value(key);
    Draft from_file, from_environment;
    const Found found = found_in_text(key, in_environment);
    ASSERT_TRUE(assign(key, found, from_environment)) << key.full_name();
    std::string text = key.full_name() + " = " + in_file + "\n";
    if (key.name == "tier") text += "local.path = \"/l\"\n";
    if (key.section == "global" && key.name == "mode") text += "global.files = \"auto\"\n";
    if (key.name == "names") text += "node.ranks_per_node = 1\n";
    from_file.settings = parsed(text);
    // These two are converted into other settings.
    if (key.name == "schedule" || key.name == "minute_s") continue;
    EXPECT_EQ(key.shown(from_file), key.shown(from_environment)) << key.full_name();
    Draft defaults;
    defaults.settings = default_settings(1000);
    EXPECT_NE(key.shown(from_file), key.shown(defaults)) << key.full_name();
  }
}

TEST(Settings, SayHowManyFilesTheGlobalTierGets) {
  EXPECT_EQ(parsed("").global_files.kind, FileCount::Kind::per_rank);
  EXPECT_EQ(parsed("global.files = \"auto\"\n").global_files.kind, FileCount::Kind::automatic);
  EXPECT_EQ(parsed("global.files = 16\n").global_files.count, 16U);
  EXPECT_EQ(parsed("", {{"DIAPAUSE_GLOBAL_FILES", "auto"}}).global_files.kind,
            FileCount::Kind::automatic);
  EXPECT_THAT(refusal("global.files = \"node\"\n"),
              HasSubstr("\"rank\", \"auto\" or an integer from 1"));
  EXPECT_THAT(refusal("global.files = 0\n"), HasSubstr("global.files: found 0"));
}

TEST(Settings, TakeMpiIoOnlyWithFilesThatRanksShare) {
  EXPECT_EQ(parsed("global.mode = \"mpi-io\"\nglobal.files = 4\n").global_mode, GlobalMode::mpi_io);
  EXPECT_THAT(refusal("global.mode = \"mpi-io\"\n"),
              HasSubstr("global.mode and global.files (default)"));
  EXPECT_THAT(refusal("global.mode = \"mpi\"\n"),
              HasSubstr("allowed is \"staged\", \"direct\" or \"mpi-io\""));
}

TEST(Settings, OfTheEnvironmentOverrideTheFile) {
  const Settings settings = parsed("[level1]\nkeep = 3\nevery_s = 5\n[level3]\nparity = 3\n",
                                   {{"DIAPAUSE_LEVEL1_KEEP", "4"},
                                    {"DIAPAUSE_LEVEL1_EVERY_S", "0"},
                                    {"DIAPAUSE_SCHEDULE", "ckp(1,2,3,4)"}});
  EXPECT_EQ(settings.level(1).keep, 4U);
  EXPECT_EQ(settings.level(1).interval.seconds, 60);
  EXPECT_EQ(settings.parity, 3U);
}

TEST(Settings, NameThePlaceOfAMistakeWhatIsThereAndWhatIsAllowed) {
  EXPECT_EQ(refusal("[level1]\nkeep = 0\n"),
            "c.toml:2:8: level1.keep: found 0; allowed is an integer from 1 to 4294967295");
  EXPECT_EQ(refusal("[capture]\naudit_percent = 101\n"),
            "c.toml:2:17: capture.audit_percent: found 101; allowed is a number of at least 0 and "
            "at most 100");
  EXPECT_EQ(refusal("[capture]\nstrategy = \"fork\"\n"),
            "c.toml:2:12: capture.strategy: found \"fork\"; allowed is \"auto\", \"copy\", "
            "\"copy-on-write\" or "
            "\"incremental\"");
  EXPECT_EQ(refusal("\n  [level3]\n  tier = \"global\"\n"),
            "c.toml:3:10: level3.tier: found \"global\"; allowed is \"memory\" or \"local\"");
  EXPECT_EQ(refusal("", {{"DIAPAUSE_LEVEL3_PARITY", "two"}}),
            "environment variable DIAPAUSE_LEVEL3_PARITY: level3.parity: found \"two\"; allowed is "
            "an integer from 1 to 254");
}

TEST(Settings, RefuseWrongTypes) {
  EXPECT_THAT(refusal("lock_wait_s = \"10\""), HasSubstr("found \"10\"; allowed is a number"));
  EXPECT_THAT(refusal("level1.keep = 2.0"), HasSubstr("found 2; allowed is an integer"));
  EXPECT_THAT(refusal("level1.keep = true"), HasSubstr("found true"));
  EXPECT_THAT(refusal("global.path = 1979-05-27"), HasSubstr("found a date or time"));
  EXPECT_THAT(refusal("global = \"here\""),
              HasSubstr("c.toml:1:10: global: found \"here\"; allowed is a table"));
  EXPECT_THAT(refusal("[[level1]]\nkeep = 1"), HasSubstr("level1: found an array"));
  EXPECT_THAT(refusal("[schedule]\nkeep = 1"),
              HasSubstr("schedule: found a table; allowed is a string"));
  EXPECT_THAT(refusal("node.names = \"a\""), HasSubstr("found \"a\"; allowed is a list"));
  EXPECT_THAT(refusal("node.names = [1]"), HasSubstr("something else than strings"));
}

TEST(Settings, RefuseVariablesThatResembleAKey) {
  const std::pair<const char*, const char*> refused[] = {
      {"DIAPAUSE_LEVEL1_KEPT", "did you mean DIAPAUSE_LEVEL1_KEEP?"},
      {"DIAPAUSE_SHEDULE", "did you mean DIAPAUSE_SCHEDULE?"},
      {"DIAPAUSE_CONFIGS", "did you mean DIAPAUSE_CONFIG?"},
      {"DIAPAUSE_LOCAL_DIR", "Keys of [local] are path."},
      {"DIAPAUSE_LEVEL1_COPIES", "Keys of [level1] are tier, keep, every_s, every_calls."},
  };
  for (const auto& [name, advice] : refused) {
    EXPECT_THAT(refusal("", {{name, "1"}}), AllOf(HasSubstr(name), HasSubstr(advice)));
  }
}

TEST(Settings, NoteVariablesThatASiteSetsAndGoOn) {
  const std::vector<std::string> names = {
      "DIAPAUSE_ROOT",        "DIAPAUSE_DIR",        "DIAPAUSE_HOME",    "DIAPAUSE_PATH",
      "DIAPAUSE_PREFIX",      "DIAPAUSE_BASE",       "DIAPAUSE_VERSION", "DIAPAUSE_LIB",
      "DIAPAUSE_INCLUDE_DIR", "DIAPAUSE_BIN_DIR",    "DIAPAUSE_INC",     "DIAPAUSE_",
      "DIAPAUSE_MODE",        "DIAPAUSE_MODULEPATH", "DIAPAUSE_LICENSE"};
  Environment environment = {{"DIAPAUSE_TEST_ONLY", ""},
                             {"DIAPAUSE_RUN_ATTEMPT", "0"},
                             {"DIAPAUSE_LEVEL1_KEEP", "3"},
                             {"DIAPAUSE_COMMAND", "/opt/bin/diapause"},
                             {"DIAPAUSE_LIBRARY_PATH", "/opt/lib"}};
  for (const std::string& name : names) environment.emplace_back(name, "/opt/diapause");
  const Settings settings = parsed("", environment);
  EXPECT_EQ(settings.unknown_variables, names);
  EXPECT_EQ(settings.level(1).keep, 3U);
}

TEST(Settings, RefuseImpossibleNumbers) {
  for (const char* value : {"-1", "nan", "inf", "-inf", "1e300", "-0.5"}) {
    EXPECT_THAT(refusal(std::string("level1.every_s = ") + value),
                HasSubstr("allowed is a number of at least 0"))
        << value;
    EXPECT_THAT(refusal("", {{"DIAPAUSE_LEVEL1_EVERY_S", value}}), HasSubstr("allowed is a number"))
        << value;
  }
  EXPECT_THAT(refusal("minute_s = 0"), HasSubstr("a number above 0"));
  EXPECT_THAT(refusal("flips.every_s = 0"), HasSubstr("a number above 0"));
  EXPECT_THAT(refusal("level1.keep = 4294967296"), HasSubstr("an integer from 1 to 4294967295"));
  EXPECT_THAT(refusal("flips.seed = -1"), HasSubstr("an integer from 0"));
  EXPECT_THAT(refusal("level3.group_nodes = 256"), HasSubstr("an integer from 2 to 255"));
  EXPECT_THAT(refusal("level3.parity = 0"), HasSubstr("an integer from 1 to 254"));
}

TEST(Settings, RefuseTextAfterANumberInTheEnvironment) {
  for (const char* value : {"", " 3", "3 ", "3x", "0x3", "+3", "99999999999999999999"}) {
    EXPECT_THAT(refusal("", {{"DIAPAUSE_LEVEL1_KEEP", value}}),
                StartsWith("environment variable DIAPAUSE_LEVEL1_KEEP"))
        << value;
  }
}

TEST(Settings, RefuseStringsThatCannotServe) {
  EXPECT_THAT(refusal("memory.path = \"\""), HasSubstr("a string that is not empty"));
  EXPECT_THAT(refusal("", {{"DIAPAUSE_GLOBAL_PATH", ""}}), HasSubstr("a string that is not empty"));
  EXPECT_THAT(refusal("local.path = \"a\\u0000b\""), HasSubstr("found \"a?b\""));
  for (const char* name : {"..", ".", "a/b"}) {
    EXPECT_THAT(refusal(std::string("node.name = \"") + name + "\""),
                HasSubstr("can name a directory"));
  }
  for (const char* names : {"a,,b", "a,a", "a,..", ","}) {
    EXPECT_THAT(refusal("node.ranks_per_node = 1", {{"DIAPAUSE_NODE_NAMES", names}}),
                HasSubstr("different strings"));
  }
}

TEST(Settings, SuggestTheNameThatWasMeant) {
  EXPECT_THAT(refusal("[level1]\nkep = 2"),
              AllOf(StartsWith("c.toml:2:1: unknown key level1.kep; did you mean keep?"),
                    HasSubstr("tier, keep,")));
  EXPECT_THAT(refusal("[levl3]\nkeep = 2"), HasSubstr("unknown table levl3; did you mean level3?"));
  EXPECT_THAT(refusal("shedule = \"\""), HasSubstr("unknown key shedule; did you mean schedule?"));
  EXPECT_THAT(refusal("", {{"DIAPAUSE_LEVEL3_PARTY", "1"}}),
              HasSubstr("did you mean DIAPAUSE_LEVEL3_PARITY?"));
  EXPECT_THAT(refusal("", {{"DIAPAUSE_CONFG", "1"}}), HasSubstr("did you mean DIAPAUSE_CONFIG?"));
}

TEST(Settings, SuggestNothingForANameThatIsFarFromAll) {
  EXPECT_THAT(refusal("compression = 1"),
              HasSubstr("unknown key compression. Keys here are schedule, schedule_goal,"));
  EXPECT_THAT(refusal("level4.tier = \"local\""),
              HasSubstr("unknown key level4.tier. Keys of [level4] are keep"));
  EXPECT_THAT(refusal("flips.x = 1"), HasSubstr("unknown key flips.x. Keys"));
}

TEST(Settings, LeaveVariablesOfTheTestsAndTheLauncherAlone) {
  parsed("", {{"DIAPAUSE_CONFIG", "x"},
              {"DIAPAUSE_TEST_FAULT", "x"},
              {"DIAPAUSE_RUN_ID", "x"},
              {"PATH", "x"}});
}

TEST(Settings, SayWhereAFileIsNotToml) {
  EXPECT_THAT(refusal("[level1\nkeep = 1"), StartsWith("c.toml:1:"));
  EXPECT_THAT(refusal("a = 1\na = 2"), AllOf(StartsWith("c.toml:2:"), HasSubstr("not valid TOML")));
  EXPECT_THAT(refusal("x = \"\xff\""), HasSubstr("not valid TOML"));
  EXPECT_THAT(parse_settings("=", "", {}, 0).error().message, StartsWith("configuration:1:"));
}

TEST(Settings, RefuseALocalTierWithoutADirectory) {
  EXPECT_THAT(refusal("[level2]\ntier = \"local\""),
              AllOf(StartsWith("c.toml:2:8: level2.tier"), HasSubstr("local.path")));
  EXPECT_EQ(parsed("level2.tier = \"local\"", {{"DIAPAUSE_LOCAL_PATH", "/l"}}).local_path, "/l");
}

TEST(Settings, RefuseAsMuchParityAsNodes) {
  EXPECT_THAT(refusal("level3.parity = 4"),
              AllOf(StartsWith("c.toml:1:17"), HasSubstr("4 parity chunks in groups of 4")));
  EXPECT_THAT(refusal("level3.parity = 2", {{"DIAPAUSE_LEVEL3_GROUP_NODES", "2"}}),
              HasSubstr("environment variable DIAPAUSE_LEVEL3_GROUP_NODES"));
}

TEST(Settings, RefuseTwoWaysToSayWhenALevelIsDue) {
  EXPECT_THAT(refusal("[level1]\nevery_s = 1\nevery_calls = 1"),
              HasSubstr("level1.every_s and level1.every_calls"));
  EXPECT_THAT(
      refusal("schedule = \"ckp(1,1,1,1)\"\nlevel4.every_calls = 1"),
      AllOf(StartsWith("c.toml:1:12: schedule and level4.every_calls"), HasSubstr("c.toml:2:22")));
  EXPECT_EQ(parsed("schedule = \"ckp(1,1,1,1)\"",
                   {{"DIAPAUSE_SCHEDULE", ""}, {"DIAPAUSE_LEVEL4_EVERY_S", "3"}})
                .level(4)
                .interval.seconds,
            3);
}

TEST(Settings, LeaveTheIntervalsToTheJobWhereItIsSaidWhatFails) {
  const Settings settings =
      parsed("schedule = \"auto\"\nschedule_goal = \"mixed\"\n[failures]\nmtbf_system_s = 1e5");
  EXPECT_TRUE(settings.auto_schedule.is_on);
  EXPECT_EQ(settings.auto_schedule.goal, ScheduleGoal::mixed);
  EXPECT_EQ(settings.failures.mtbf_s[4], 1e5);
  for (int level = 1; level <= 4; ++level) EXPECT_EQ(settings.level(level).interval.seconds, 0);
  EXPECT_FALSE(parsed("").auto_schedule.is_on);
  EXPECT_THAT(refusal("schedule = \"auto\""),
              AllOf(StartsWith("c.toml:1:12: schedule"), HasSubstr("set failures.node_mtbf_s")));
  EXPECT_THAT(refusal("[failures]\nnode_mtbf_s = 1e8\nmtbf_node_s = 1e5"),
              HasSubstr("set one of them to 0"));
}

TEST(Settings, RefuseNamesForNodesThatAreNotThere) {
  EXPECT_THAT(refusal("node.names = [\"a\"]"), HasSubstr("none without ranks_per_node"));
  EXPECT_THAT(refusal("[node]\nname = \"a\"\nranks_per_node = 1"), HasSubstr("use node.names"));
}

TEST(Settings, TakeTheIntervalsAndTheBitFromTheSchedule) {
  const Settings settings = parsed("schedule = \"ckp(3, 5,0,0.5)/e31\"\nminute_s = 2");
  EXPECT_EQ(settings.level(1).interval.seconds, 6);
  EXPECT_EQ(settings.level(2).interval.seconds, 10);
  EXPECT_EQ(settings.level(3).interval.seconds, 0);
  EXPECT_EQ(settings.level(4).interval.seconds, 1);
  EXPECT_EQ(settings.flips.bit, 31U);
  EXPECT_EQ(parsed("schedule = \"ckp(1,1,1,1)\"\nflips.bit = 3").flips.bit, 3U);
  EXPECT_THAT(refusal("schedule = \"ckp(1,1,1,1)/e1\"\nflips.bit = 1"),
              HasSubstr("schedule and flips.bit (c.toml:2"));
}

TEST(Schedule, SaysWhatIsWrongAndWhere) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "\"ckp\" was expected at character 1"},
      {"every 3", "\"ckp\" was expected at character 1"},
      {"ckp(3,5,7)", "\",\" was expected at character 10"},
      {"ckp(3,5,7,11", "\")\" was expected at character 13"},
      {"ckp(3,5,7,11,13)", "\")\" was expected at character 13"},
      {"ckp(3,x,7,11)", "a number of minutes was expected at character 7"},
      {"ckp(-1,5,7,11)", "an interval from 0"},
      {"ckp(nan,5,7,11)", "an interval from 0"},
      {"ckp(inf,5,7,11)", "an interval from 0"},
      {"ckp(1e9,5,7,11)", "an interval from 0"},
      {"ckp(3,5,7,11)/e", "the number of a bit was expected at character 16"},
      {"ckp(3,5,7,11)/e-1", "the number of a bit was expected"},
      {"ckp(3,5,7,11)/f1", "\"/e\" was expected at character 14"},
      {"ckp(3,5,7,11)/e1 2", "the end was expected at character 18"}};
  for (const auto& [text, message] : cases) {
    Settings settings;
    const Status status = apply_schedule(text, 60, settings);
    ASSERT_FALSE(status.has_value()) << text;
    EXPECT_EQ(status.error().code, Code::config);
    EXPECT_THAT(status.error().message, HasSubstr(message)) << text;
    EXPECT_EQ(settings.level(1).interval.seconds, 0) << text;
  }
  EXPECT_THAT(refusal("schedule = \"ckp\""), StartsWith("c.toml:1:12: schedule \"ckp\""));
  EXPECT_THAT(refusal("", {{"DIAPAUSE_SCHEDULE", "ckp"}}),
              StartsWith("environment variable DIAPAUSE_SCHEDULE: "));
}

TEST(Messages, StayShortAndPrintableWhateverTheFileHolds) {
  const std::string message = refusal("\"" + std::string(5000, 'x') + "\\n\" = 1");
  EXPECT_LT(message.size(), 1000U);
  EXPECT_THAT(refusal("\"a\\nb\" = 1"), HasSubstr("unknown key a?b"));
}

TEST(Settings, TakeSignalsAndTheEndOfTheAllocationFromSlurm) {
  const Environment slurm = {{"SLURM_JOB_ID", "77"}, {"SLURM_JOB_END_TIME", "1900000000"}};
  const DeadlineSettings deadline = parsed("", slurm).deadline;
  EXPECT_THAT(deadline.signals, ElementsAre("SIGTERM", "SIGUSR1"));
  EXPECT_EQ(deadline.at_unix_s, 1900000000u);
  EXPECT_EQ(parsed("", {{"SLURM_JOB_END_TIME", "1900000000"}}).deadline.at_unix_s, 0u)
      << "of no job";
  EXPECT_EQ(
      parsed("", {{"SLURM_JOB_ID", "77"}, {"SLURM_JOB_END_TIME", "UNLIMITED"}}).deadline.at_unix_s,
      0u);
}

TEST(Settings, OfTheDeadlineGoBeforeThoseOfSlurm) {
  const Environment slurm = {{"SLURM_JOB_ID", "77"}, {"SLURM_JOB_END_TIME", "1900000000"}};
  EXPECT_THAT(parsed("deadline.signals = []", slurm).deadline.signals, ElementsAre());
  EXPECT_THAT(parsed("deadline.signals = [\"SIGUSR2\"]", slurm).deadline.signals,
              ElementsAre("SIGUSR2"));
  EXPECT_EQ(parsed("deadline.in_s = 60", slurm).deadline.at_unix_s, 0u);
  EXPECT_EQ(parsed("deadline.at_unix_s = 5", slurm).deadline.at_unix_s, 5u);
}

TEST(Settings, RefuseSignalsThatCannotBeTakenAndTwoEnds) {
  EXPECT_THAT(refusal("deadline.signals = [\"SIGKILL\"]"),
              HasSubstr("allowed is a list of different ones of SIGHUP"));
  EXPECT_THAT(refusal("deadline.signals = [\"TERM\"]"), HasSubstr("SIGTERM"));
  EXPECT_THAT(refusal("deadline.signals = [\"SIGTERM\", \"SIGTERM\"]"), HasSubstr("different"));
  EXPECT_THAT(refusal("[deadline]\nat_unix_s = 5\nin_s = 5"),
              HasSubstr("both say when the allocation ends"));
}

TEST(Settings, HaveTheUsualScheduleUnlessIntervalsAreSetLevelByLevel) {
  EXPECT_EQ(parsed("").level(4).interval.seconds, 11 * 60);
  EXPECT_EQ(parsed("minute_s = 1\n[flips]\nbit = 1\nevery_s = 2").level(1).interval.seconds, 3);
  EXPECT_EQ(parsed("schedule = \"\"").level(1).interval.seconds, 0);
  EXPECT_EQ(parsed("[level2]\nevery_calls = 5").level(1).interval.seconds, 0);
  EXPECT_EQ(parsed("[level2]\nevery_calls = 5").level(2).interval.calls, 5U);
}

}  // namespace
}  // namespace diapause::config
