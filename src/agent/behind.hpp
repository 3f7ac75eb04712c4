// Reads the image that a job is restored from, also while the job runs already and its memory is
// still filled from it.
#pragma once

#include <atomic>
#include <string>

#include "agent/images.hpp"
#include "agent/job_store.hpp"
#include "process/fill_behind.hpp"

namespace diapause::agent {

class RestoredImage {
 public:
  // `store` has fetched the version, and outlives the object.
  RestoredImage(JobStore& store, StoredJob stored, engine::FetchedVersion fetched);
  RestoredImage(const RestoredImage&) = delete;
  RestoredImage& operator=(const RestoredImage&) = delete;

  // The job may be changed until its processes are made.
  StoredJob& stored() { return stored_; }
  const engine::FetchedVersion& fetched() const { return fetched_; }
  // Returns why the image is not sound, as far as it was read.
  const Status& sound() const { return image_.sound; }
  // Returns a reader for what is restored before the job runs.
  process::ReadContents reader();
  // Returns a reader for what is filled behind. Once the job runs, a damaged image is replaced by
  // another of the same version, if there is one and this agent is alone.
  process::ReadPiece piece_reader();
  void set_running() { runs_ = true; }

 private:
  Result<process::SoundPiece> read_piece(const process::StoredContents& contents,
                                         std::uint64_t offset);

  JobStore& store_;
  StoredJob stored_;
  engine::FetchedVersion fetched_;
  StoredImage image_;
  ByteVector scratch_;
  std::atomic<bool> runs_ = false;
};

// This is a note on this machine that the memory of a job is being filled while the job runs. It is
// left if that does not come to its end, and the next restart then checks the whole image before.
class FillNote {
 public:
  // `node` is the name of the emulated node, of which a machine has several; otherwise it is empty.
  static Result<FillNote> open(const StoreRequest& request, const std::string& node);
  bool is_left() const;
  Status leave() const;
  void remove() const;

 private:
  FillNote(sys::Directory directory, std::string name)
      : directory_(std::move(directory)), name_(std::move(name)) {}

  sys::Directory directory_;
  std::string name_;
};

}  // namespace diapause::agent
