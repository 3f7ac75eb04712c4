#include "process/state.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace diapause::process {
namespace {

using ::testing::HasSubstr;

Job small_job() {
  Job job;
  job.machine = "x86_64";
  job.command = 2;
  Process shell;
  shell.id = 2;
  shell.parent = 1;
  shell.program = "/bin/sh";
  Thread leader;
  leader.id = 2;
  leader.name = "sh";
  leader.registers = ByteVector(27 * 8, std::byte{3});
  leader.waiting_signals = {ByteVector(128, std::byte{1})};
  shell.threads.push_back(leader);
  Area code;
  code.begin = 0x400000;
  code.end = 0x402000;
  code.protection = 5;
  shell.areas.push_back(code);
  shell.descriptors.push_back({0, 0, false});
  shell.actions[9].handler = 0x401000;
  Process child = shell;
  child.id = 5;
  child.parent = 2;
  child.threads[0].id = 5;
  job.processes = {shell, child};
  Description standard;
  standard.kind = DescriptionKind::standard;
  job.descriptions.push_back(standard);
  return job;
}

Job job_with_connection() {
  Job job = small_job();
  Socket end;
  end.family = 1;
  end.type = 1;
  end.state = SocketState::connected;
  end.waiting = {ByteVector(5, std::byte{7})};
  job.sockets = {end, end};
  job.sockets[0].peer = 1;
  job.sockets[1].peer = 0;
  job.descriptions[0].kind = DescriptionKind::socket;
  return job;
}

Job job_with_far_end() {
  Job job = job_with_connection();
  Socket& end = job.sockets.emplace_back();
  end.family = 2;
  end.type = 1;
  end.state = SocketState::connected;
  job.far_ends = {{2, 3, 0}};
  return job;
}

Job job_with_library() {
  Job job = small_job();
  SharedMemory library;
  library.kind = SharedKind::file_pages;
  library.path = "/usr/lib/library.so";
  library.bytes = 0x3200;
  job.memories = {library};
  job.processes[0].areas[0].shared = 0;
  job.file_parts = {{0, 0, 0x1000, 7}, {0, 0x3000, 0x200, 8}};
  return job;
}

Job job_with_files() {
  Job job = small_job();
  SharedMemory log;
  log.kind = SharedKind::job_file;
  log.path = "/home/log";
  log.bytes = 5;
  job.memories = {log};
  job.unix_ns = 5;
  job.file_patterns = {"/home"};
  job.files = {{"/home/log", 0, -7}, {"/home/elsewhere", kNone, 0}};
  return job;
}

// Returns the message with which a decoder refuses a job that was encoded although it is
// impossible.
std::string refusal(const Job& job) {
  const auto decoded = decode_job(encode_job(job));
  EXPECT_FALSE(decoded);
  return decoded ? "" : decoded.error().message;
}

TEST(ProcessesOfAnImage, ComeBackWithTheirConnectionsToOtherNodes) {
  const auto decoded = decode_job(encode_job(job_with_far_end()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->far_ends, job_with_far_end().far_ends);
}

TEST(ProcessesOfAnImage, AreRefusedWithImpossibleConnectionsToOtherNodes) {
  Job none = job_with_far_end(), local = none, twice = none, paired = none;
  none.far_ends[0].socket = 3;
  local.sockets[2].family = 1;
  twice.far_ends.push_back(twice.far_ends[0]);
  paired.far_ends[0].socket = 0;
  for (const Job& job : {none, local, twice, paired})
    EXPECT_THAT(refusal(job), HasSubstr("to another node"));
}

TEST(ProcessesOfAnImage, ComeBackAsTheyWere) {
  const ByteVector encoded = encode_job(small_job());
  const auto decoded = decode_job(encoded);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->processes.size(), 2u);
  EXPECT_EQ(decoded->processes[1].threads[0].waiting_signals[0].size(), 128u);
  EXPECT_EQ(decoded->processes[0].actions[9].handler, 0x401000u);
  EXPECT_EQ(encode_job(*decoded), encoded);
}

TEST(ProcessesOfAnImage, KeepWhatIsInTheirSockets) {
  const auto decoded = decode_job(encode_job(job_with_connection()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->sockets[1].peer, 0u);
  EXPECT_EQ(decoded->sockets[0].waiting[0].size(), 5u);
}

TEST(ProcessesOfAnImage, KeepWhatFilesMustHold) {
  const auto decoded = decode_job(encode_job(job_with_library()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->file_parts, job_with_library().file_parts);
  EXPECT_EQ(decoded->processes[0].areas[0].shared, 0u);
}

TEST(ProcessesOfAnImage, AreRefusedIfTheirFilesCannotBe) {
  Job job = job_with_library();
  job.memories[0].path = "library.so";
  EXPECT_THAT(refusal(job), HasSubstr("a shared memory"));

  job = job_with_library();
  job.memories[0].kind = SharedKind::file;
  EXPECT_THAT(refusal(job), HasSubstr("shares a memory"));

  job = job_with_library();
  job.processes[0].areas[0].kind = AreaKind::shared;
  EXPECT_THAT(refusal(job), HasSubstr("shares a memory"));

  job = job_with_library();
  job.processes[0].areas[0].shared = 1;
  EXPECT_THAT(refusal(job), HasSubstr("shares a memory"));

  for (const FilePart part :
       {FilePart{1, 0, 1, 0}, FilePart{0, 0x31ff, 1, 0}, FilePart{0, 0x3200, 1, 0},
        FilePart{0, 0x3201, ~std::uint64_t{0}, 0}}) {
    job = job_with_library();
    job.file_parts.push_back(part);
    EXPECT_THAT(refusal(job), HasSubstr("a part of a file"));
  }
}

TEST(ProcessesOfAnImage, KeepTheFilesThatBelongToThem) {
  const auto decoded = decode_job(encode_job(job_with_files()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->files, job_with_files().files);
  EXPECT_EQ(decoded->file_patterns, job_with_files().file_patterns);
  EXPECT_EQ(decoded->unix_ns, 5u);
}

TEST(ProcessesOfAnImage, AreRefusedIfFilesThatBelongToThemCannotBe) {
  Job unknown = job_with_files(), relative = unknown, twice = unknown, other = unknown,
      no_file = unknown;
  unknown.files[0].memory = 1;
  relative.files[1].path = "elsewhere";
  twice.files.push_back(twice.files[1]);
  other.files[0].path = "/etc/passwd";
  no_file.memories[0].kind = SharedKind::anonymous;
  for (const Job& job : {unknown, relative, twice, other, no_file})
    EXPECT_THAT(refusal(job), HasSubstr("a file that belongs to it"));

  Job pattern = job_with_files();
  pattern.file_patterns.emplace_back("*.log");
  EXPECT_THAT(refusal(pattern), HasSubstr("a name of its files"));
}

TEST(ProcessesOfAnImage, AreRefusedIfTheyHaveAFileOpenThatNobodyHasOpen) {
  Job mapped = job_with_files(), open = mapped, sealed = mapped;
  mapped.processes[0].areas[0].kind = AreaKind::shared;
  mapped.processes[0].areas[0].shared = 0;
  EXPECT_THAT(refusal(mapped), HasSubstr("shares a memory"));
  open.descriptions[0].kind = DescriptionKind::memory;
  EXPECT_THAT(refusal(open), HasSubstr("an open file"));
  sealed.seals = {{0, 1}};
  EXPECT_THAT(refusal(sealed), HasSubstr("belongs to nothing"));
}

TEST(ProcessesOfAnImage, AreRefusedWhateverByteIsDamagedOrMissing) {
  const ByteVector sound = encode_job(small_job());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    ByteVector damaged = sound;
    damaged[i] ^= std::byte{1};
    EXPECT_FALSE(decode_job(damaged)) << i;
    EXPECT_FALSE(decode_job(ByteView(sound).first(i))) << i;
  }
}

TEST(ProcessesOfAnImage, AreRefusedFromTheFuture) {
  ByteVector encoded = encode_job(small_job());
  encoded[8] = std::byte{kProcessesFormatVersion + 1};
  const auto decoded = decode_job(encoded);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::mismatch);
}

TEST(ProcessesOfAnImage, AreRefusedIfTheyCannotBe) {
  Job job = small_job();
  job.processes[1].threads[0].id = job.processes[1].id = 2;
  EXPECT_THAT(refusal(job), HasSubstr("thread 2"));

  job = small_job();
  std::swap(job.processes[0], job.processes[1]);
  EXPECT_THAT(refusal(job), HasSubstr("has no parent"));

  job = small_job();
  job.processes[0].areas[0].end += 1;
  EXPECT_THAT(refusal(job), HasSubstr("has memory from"));

  job = small_job();
  job.processes[0].areas.push_back(job.processes[0].areas[0]);
  EXPECT_THAT(refusal(job), HasSubstr("has memory from"));

  job = small_job();
  job.processes[0].areas[0].kind = AreaKind::shared;
  job.processes[0].areas[0].shared = 0;
  EXPECT_THAT(refusal(job), HasSubstr("shares a memory"));

  job = small_job();
  job.processes[0].descriptors[0].description = 1;
  EXPECT_THAT(refusal(job), HasSubstr("descriptor 0"));

  job = small_job();
  job.descriptions[0].kind = DescriptionKind::pipe;
  EXPECT_THAT(refusal(job), HasSubstr("an open file"));

  job = job_with_connection();
  job.sockets[1].peer = 1;
  EXPECT_THAT(refusal(job), HasSubstr("socket 0"));

  job = job_with_connection();
  job.sockets[1].state = SocketState::listening;
  EXPECT_THAT(refusal(job), HasSubstr("socket 0"));

  job = job_with_connection();
  job.sockets[0].local = ByteVector(129);
  EXPECT_THAT(refusal(job), HasSubstr("socket 0"));

  job = job_with_connection();
  job.sockets.clear();
  EXPECT_THAT(refusal(job), HasSubstr("an open file"));

  job = small_job();
  job.locks.push_back({2, 77, LockKind::process, true, 0, 0});
  EXPECT_THAT(refusal(job), HasSubstr("a lock"));

  job = small_job();
  job.locks.push_back({3, 0, LockKind::process, true, 0, 0});
  EXPECT_THAT(refusal(job), HasSubstr("a lock"));

  for (const Guard guard : {Guard{3, 0x1000, 0x1000}, Guard{2, 0x1001, 0x1000}, Guard{2, 0x1000, 0},
                            Guard{2, 0x1000, ~std::uint64_t{0xfff}}}) {
    job = small_job();
    job.guards.push_back(guard);
    EXPECT_THAT(refusal(job), HasSubstr("guard pages"));
  }

  job = small_job();
  job.schedules.push_back({3, {}, {}, 25, kNone});
  EXPECT_THAT(refusal(job), HasSubstr("the schedule of thread 3"));

  job = small_job();
  job.schedules.push_back({2, {}, ByteVector(47), 25, kNone});
  EXPECT_THAT(refusal(job), HasSubstr("the schedule of thread 2"));

  job = small_job();
  job.descriptions[0].kind = DescriptionKind::terminal;
  EXPECT_THAT(refusal(job), HasSubstr("an open file"));

  job = small_job();
  job.command = 3;
  EXPECT_THAT(refusal(job), HasSubstr("the command"));
}

TEST(ProcessesOfAnImage, AreRefusedIfAPartOfThemBelongsToNothing) {
  for (const auto& spoil :
       std::vector<std::function<void(Job&)>>{[](Job& one) {
                                                one.timers = {{3, 0, 1, 0, 34, 0, 0, 0, 0}};
                                              },
                                              [](Job& one) {
                                                one.stopped = {{3, true}};
                                              },
                                              [](Job& one) {
                                                one.privileges = {{3, 0, 0, 0, 0}};
                                              },
                                              [](Job& one) {
                                                one.end_signals = {{3, 34}};
                                              },
                                              [](Job& one) {  // of process 1
                                                one.end_signals = {{one.command, 34}};
                                              },
                                              [](Job& one) {
                                                one.owners = {{0, 3, 2, 0}};
                                              },
                                              [](Job& one) {
                                                one.seals = {{0, 1}};
                                              },
                                              [](Job& one) {
                                                one.typed = {{0, false, {}}};
                                              },
                                              [](Job& one) {
                                                one.watches = {{0, 1, 2, "/etc"}};
                                              }}) {
    Job job = small_job();
    spoil(job);
    EXPECT_THAT(refusal(job), HasSubstr("belongs to nothing"));
  }
}

TEST(ProcessesOfAnImage, AreRefusedWithAnAddressThatCannotBeOne) {
  for (const std::string address : {"", "192.0.2.1 192.0.2.2", "a-host", "192.0.2.1\n"}) {
    Job job = small_job();
    job.addresses = {"192.0.2.1", address};
    EXPECT_THAT(refusal(job), HasSubstr("an address of their node"));
  }
}

}  // namespace
}  // namespace diapause::process
