#include "process/terminals.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace diapause::process {
namespace {

using testing::ElementsAre;

// A pseudo-terminal that a program has open.
class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(master_, 0);
    const int unlocked = 0;
    ASSERT_EQ(::ioctl(master_, TIOCSPTLCK, &unlocked), 0);
    end_ = ::ioctl(master_, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(end_, 0);
  }
  void TearDown() override {
    ::close(end_);
    ::close(master_);
  }

  void type(std::string_view text) const {
    ASSERT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void set_local_flags(tcflag_t cleared) const {
    termios settings{};
    ASSERT_EQ(::tcgetattr(end_, &settings), 0);
    settings.c_lflag &= ~cleared;
    ASSERT_EQ(::tcsetattr(end_, TCSANOW, &settings), 0);
  }
  static std::vector<std::string> texts(const std::vector<TypedInput>& typed) {
    std::vector<std::string> found;
    for (const TypedInput& one : typed) {
      const auto* const text = reinterpret_cast<const char*>(one.bytes.data());
      found.push_back((one.is_line ? "line " : "rest ") + std::string(text, one.bytes.size()));
    }
    return found;
  }

  int master_ = -1, end_ = -1;
};

// Keeps all processors busy, so that threads of the kernel have to wait for one. Each process has a
// session of its own, because the kernel may share processor time out among sessions first.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
      const pid_t process = ::fork();
      if (process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::setsid();
        for (;;) {
        }
      }
      processes_.push_back(process);
    }
  }
  ~Load() {
    for (const pid_t one : processes_) {
      if (one <= 0) continue;
      ::kill(one, SIGKILL);
      ::waitpid(one, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
};

TEST_F(TerminalTest, GivesInputBackAsItWasTypedOnABusyMachine) {
  set_local_flags(ECHO);
  type("first\nsecond\nend\004a part");
  const Load load;
  for (int i = 0; i < 20; ++i) {
    const auto unread = take_unread(master_, TerminalInput::is_taken);
    ASSERT_TRUE(unread);
    ASSERT_THAT(texts(unread->typed),
                ElementsAre("line first\n", "line second\n", "line end", "rest a part"));
    ASSERT_TRUE(unread->output.empty());
  }
  type("ial line\n");
  for (const std::string line : {"first\n", "second\n", "end", "a partial line\n"}) {
    std::array<char, 100> room{};
    const ssize_t got = ::read(end_, room.data(), room.size());
    ASSERT_EQ(std::string(room.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))), line);
  }
}

TEST_F(TerminalTest, GivesBackAllThatItHolds) {
  set_local_flags(ECHO | ICANON | ISIG);
  std::string all;
  for (int i = 0; i < 4000; ++i) all.push_back(static_cast<char>(i));
  termios raw{};
  ::tcgetattr(end_, &raw);
  raw.c_iflag = 0;
  ::tcsetattr(end_, TCSANOW, &raw);
  type(all);
  for (int i = 0; i < 3; ++i) {
    const auto unread = take_unread(master_, TerminalInput::is_taken);
    ASSERT_TRUE(unread);
    EXPECT_THAT(texts(unread->typed), ElementsAre("rest " + all));
  }
}

TEST_F(TerminalTest, KeepsOutputAndTheEchoOfInput) {
  ASSERT_EQ(::write(end_, "written\n", 8), 8);
  type("typed");
  for (int i = 0; i < 3; ++i) {
    const auto unread = take_unread(master_, TerminalInput::is_taken);
    ASSERT_TRUE(unread);
    EXPECT_THAT(texts(unread->typed), ElementsAre("rest typed"));
    const auto* const text = reinterpret_cast<const char*>(unread->output.data());
    EXPECT_EQ(std::string(text, unread->output.size()), "written\r\ntyped");
  }
}

}  // namespace
}  // namespace diapause::process
