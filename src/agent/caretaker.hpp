// Looks after a job that runs: takes its checkpoints, hands signals on to it, and answers who asks.
#pragma once

#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "agent/increments.hpp"
#include "agent/last_checkpoint.hpp"
#include "agent/probation.hpp"
#include "agent/team.hpp"
#include "fabric/pause.hpp"
#include "process/copies.hpp"
#include "process/fill_behind.hpp"
#include "process/freeze.hpp"
#include "process/job_files.hpp"
#include "process/keeper.hpp"
#include "process/references.hpp"
#include "process/relocation.hpp"
#include "process/watch.hpp"
#include "sys/local_socket.hpp"
#include "sys/process.hpp"

namespace diapause::agent {

// A caretaker works with these. All of it must outlive the caretaker.
struct Environment {
  const StoreRequest& request;
  JobStore& store;
  process::Keeper& keeper;
  process::Watch& watch;
  Team* team = nullptr;                   // null: the job is on this node alone
  sys::LocalSocket* door = nullptr;       // null: of an agent that the first one gives orders
  process::FillBehind* behind = nullptr;  // what the job still lacks; null if it lacks nothing
  const process::Relocation& relocation;  // where the job's nodes are
  fabric::Board& board;                   // for processes that begin to use verbs
};

// Returns how a pause of this agent wakes threads of the job with process `first`. `timed` must
// outlive it.
fabric::Wake wake_in(pid_t first, process::TimedCalls& timed);

// Returns how a pause of this agent communicates with those of the others. `team` is null if there
// are none, and must otherwise outlive it.
fabric::Gather gather_of(Team* team);

class Caretaker {
 public:
  explicit Caretaker(const Environment& environment)
      : environment_(environment),
        references_(environment.store.referenced_files()),
        increments_(environment.store.audit_percent()),
        last_(environment.store),
        verbs_(gather_of(environment.team), wake_in(environment.keeper.process(), timed_),
               environment.board) {}

  void take_every(double interval_s, int level, Wish wish);
  void goes_on(process::TimedCalls timed) { timed_ = std::move(timed); }
  // The job was restored from a version that held this of it on this node.
  void goes_on_from(const process::Job& job) { probation_.restored(job, sys::monotonic_s()); }
  void looks_after(process::JobFiles files) { files_ = std::move(files); }
  // The job is finished if its command ends with status 0.
  void finishes() { finishes_ = true; }
  // Returns the status of the job's command, as a shell gives it, or kStoppedInTime. On other nodes
  // than the first it returns that of what starts commands there.
  int until_end();

 private:
  std::optional<double> time_left() const;
  bool is_end_watched() const;
  void do_what_is_due();
  void take_due();
  void obey_signal(const process::Event& event);
  void stop(int signal);
  void note_stop(const std::string& text) const;
  Result<Answer> checkpoint(Wish wish, int level);
  Result<Answer> try_checkpoint(Wish wish, int level);
  Result<Answer> take_part(Wish wish, int level);
  Result<Answer> take_part_without_verbs(Wish wish, int level);
  // Lets the job go on: its threads, and then, on all nodes together, its verbs.
  struct GoOn {
    std::function<Status()> thaw;
    std::function<void()> connect;
  };
  Result<engine::Captures> capture(process::FrozenJob& frozen, process::Dump& dump, int level,
                                   const GoOn* go_on);
  void connect_again();
  Status wait_for_others() const;
  Status do_together(const std::function<Status()>& work) const;
  Status wait_for_memory();
  Status give_up_older();
  Status look_at_files();
  Result<std::set<std::string>> files_of_others(const process::Job& job) const;
  void tell_which_files_are_cut(const process::Job& job);
  std::optional<process::Copies> copies_for(process::FrozenJob& frozen, process::Dump& dump,
                                            const process::Spared& spared) const;
  Status confirm(const process::FrozenJob& frozen, const std::optional<process::Copies>& copies);
  Status store(engine::Captures captures, Answer& answer);
  bool is_incremental() const;
  void tell_why_all_is_copied();
  void answer_door();
  void obey();
  int end_of_command(int status);
  void put_last_version_in_doubt();
  void finish();
  int what_to_watch() const;
  bool is_abandoned();

  const Environment environment_;
  process::References references_;
  Increments increments_;
  process::TimedCalls timed_;
  process::JobFiles files_;
  bool has_told_of_files_ = false;
  bool has_all_memory_ = false;                  // the job, on all nodes
  std::optional<process::Processor> processor_;  // from the first checkpoint on
  process::EmptyMessages empty_messages_;
  bool foresees_ = true;  // what is looked at before the job stands still has been confirmed
  double interval_s_ = 0, next_s_ = 0;
  int level_ = 1;
  Wish wish_ = Wish::checkpoint;
  std::string last_refusal_;
  std::string last_told_;  // the reason for which all memory is copied
  LastCheckpoint last_;
  Probation probation_;
  fabric::Pause verbs_;
  bool has_ended_ = false;      // by an order
  bool is_finished_ = false;    // by an order, and an order to end is to follow
  bool has_stopped_ = false;    // after its last checkpoint
  bool was_signalled_ = false;  // from outside, perhaps to end
  bool finishes_ = false;
  bool is_alone_ = false;  // the first agent has gone
  std::optional<double> idle_since_s_;
};

}  // namespace diapause::agent
