#include "fabric/foreign.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace diapause::fabric {
namespace {

// Names in a variable's value that choose a fabric.
struct Choice {
  std::string_view variable;
  std::string_view names;  // with a space before and behind each
  std::string_view what;
  std::string_view instead;
};

constexpr std::string_view kOfLibfabric = " psm psm2 opx cxi gni usnic efa ";
constexpr std::string_view kAboutLibfabric =
    "libfabric then uses an adapter by other means than verbs";
constexpr std::array kChoices{
    Choice{"FI_PROVIDER", kOfLibfabric, kAboutLibfabric, "FI_PROVIDER=tcp"},
    Choice{"I_MPI_OFI_PROVIDER", kOfLibfabric, kAboutLibfabric, "I_MPI_OFI_PROVIDER=tcp"},
    Choice{"OMPI_MCA_mtl", " psm psm2 portals4 ",
           "Open MPI then uses an adapter by other means than verbs",
           "OMPI_MCA_pml=ob1 and OMPI_MCA_btl=tcp,self,vader"},
    Choice{
        "UCX_TLS", " rc_mlx5 rc_x ud_mlx5 ud_x dc dc_mlx5 dc_x ugni ugni_rdma ugni_smsg ugni_udt ",
        "UCX then uses an adapter by other means than verbs", "UCX_TLS=rc_verbs,ud_verbs,sm,self"},
};

// Devices by the beginnings of their paths.
struct Kind {
  std::string_view begin;
  std::string_view trouble;
};
constexpr std::array kKinds{
    Kind{
        "/dev/infiniband/rdma_cm",
        "it connects by rdma_cm past the library of Diapause, as jobs of other users than root do, "
        "and programs that are linked statically or find librdmacm elsewhere: let it connect "
        "without (for UCX UCX_SOCKADDR_TLS_PRIORITY=tcp, for libfabric FI_PROVIDER=tcp)"},
    Kind{"/dev/infiniband/umad", "management datagrams are not restored"},
    Kind{"/dev/hfi1", "PSM is not restored: set FI_PROVIDER=tcp, and OMPI_MCA_mtl=^psm,psm2"},
    Kind{"/dev/ipath", "PSM is not restored: set FI_PROVIDER=tcp, and OMPI_MCA_mtl=^psm,psm2"},
    Kind{"/dev/cxi", "CXI is not restored: set FI_PROVIDER=tcp"},
    Kind{"/dev/kgni", "GNI is not restored: set FI_PROVIDER=tcp"},
};
constexpr std::string_view kVerbs = "/dev/infiniband/uverbs";
constexpr std::string_view kPastUs =
    "it uses verbs past the library of Diapause: jobs of other users than root, and programs that "
    "are linked statically or find libibverbs elsewhere do so, and processes that were forked from "
    "one that had an adapter open";

// Returns the first name of a list that is one of those, or an empty text. A list that begins with
// ^ names what is not to be used.
std::string_view chosen(std::string_view list, std::string_view names) {
  if (list.starts_with('^')) return {};
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(",;: "), list.size());
    const std::string_view name = list.substr(0, end);
    const auto found = names.find(name);
    const bool is_whole = !name.empty() && found != std::string_view::npos &&
                          names[found - 1] == ' ' && names[found + name.size()] == ' ';
    if (is_whole) return name;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return {};
}

}  // namespace

Status check_choice(std::span<const std::pair<std::string, std::string>> environment) {
  for (const auto& [name, value] : environment) {
    const auto choice = std::ranges::find(kChoices, name, &Choice::variable);
    if (choice == kChoices.end()) continue;
    const std::string_view fabric = chosen(value, choice->names);
    if (fabric.empty()) continue;
    return fail(Code::argument,
                fmt::format("{}={} chooses '{}', which cannot be checkpointed: {}. Set {} instead, "
                            "or remove the variable",
                            name, value, fabric, choice->what, choice->instead));
  }
  return {};
}

std::string trouble_with_device(const std::string& path, Way way) {
  if (path.starts_with(kVerbs)) return std::string(way == Way::otherwise ? kPastUs : "");
  const auto kind =
      std::ranges::find_if(kKinds, [&](const Kind& one) { return path.starts_with(one.begin); });
  return std::string(kind == kKinds.end() ? "" : kind->trouble);
}

}  // namespace diapause::fabric
