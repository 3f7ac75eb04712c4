// Has the other nodes of a job, as its processes' connections see them. It answers what
// process::OtherNodes asks, over the agents' mail.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "agent/meeting.hpp"
#include "process/other_nodes.hpp"

namespace diapause::agent {

class Peers : public process::OtherNodes {
 public:
  // `company` and `comm` must outlive it. The call is collective.
  static Result<std::unique_ptr<Peers>> open(Company& company, comm::Comm& comm);

  std::uint32_t own_number() const override { return company_.branch.own; }
  bool is_of_job(const ByteVector& address) const override;
  Result<std::vector<Place>> find(const std::vector<Addresses>& ends) override;
  Result<std::vector<ByteVector>> swap(const std::vector<Place>& peers,
                                       const std::vector<ByteVector>& bytes) override;
  Result<std::uint64_t> greatest(std::uint64_t value) override { return comm_.all_max(value); }

 private:
  Peers(Company& company, comm::Comm& comm) : company_(company), comm_(comm) {}
  // A connection from an address of the machine to itself never leads to another one.
  bool may_lead_elsewhere(const Addresses& end) const;

  Company& company_;
  comm::Comm& comm_;
  std::set<std::string> addresses_;  // addresses of all nodes
};

}  // namespace diapause::agent
